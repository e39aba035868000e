//! A program in a pod whose input and output are ours: those of a terminal, or pipes.

use std::fs::File;
use std::io::Read;
use std::thread;

use anyhow::Context;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::{Receiver, channel};

use crate::cli::exit::Exit;
use crate::cli::interruption::Interrupted;
use crate::cli::terminal::closed_pipe::reader_left;
use crate::cli::terminal::printer::{LogPrinter, Printer};
use crate::cli::terminal::raw_terminal::{RawTerminal, open_input};
use crate::kube::{ApiServer, ExecEvent, ExecInput, ExecOutput, ExecRequest, KubeError};

/// What is read of the input at once.
const PIECE: usize = 32 << 10;
/// Pieces of the input that wait to be sent; more would only use memory.
const PIECES: usize = 4;
/// What shells add to the number of a signal that ended a program.
const SIGNALLED: u8 = 128;

/// Runs a program in a pod at this terminal, or with these pipes, and ends as it does. The terminal is as before when this returns.
pub(super) async fn run_attached(
    api: &ApiServer,
    request: &ExecRequest<'_>,
    printer: &Printer,
) -> anyhow::Result<Exit> {
    let mut signals = Signals::listen()?;
    let (input, output) = tokio::select! {
        begun = api.exec(request) => begun?,
        ended = signals.next() => return ended,
    };
    if request.terminal {
        at_terminal(input, output, signals).await
    } else {
        with_pipes(input, output, signals, printer).await
    }
}

async fn at_terminal(input: ExecInput, mut output: ExecOutput, mut signals: Signals) -> anyhow::Result<Exit> {
    let mut resized = signal(SignalKind::window_change())?;
    let terminal = RawTerminal::new().context("giving the terminal to the program")?;
    let resize = async || {
        let window = terminal.window().context("reading the size of the terminal")?;
        Ok::<_, anyhow::Error>(input.resize(window).await?)
    };
    resize().await?;
    pass_input(input.clone())?;
    let mut screen = LogPrinter::of_terminal();
    loop {
        tokio::select! {
            event = output.next() => match event? {
                ExecEvent::Stdout(bytes) | ExecEvent::Stderr(bytes) => screen.print(&bytes)?,
                ExecEvent::Ended(code) => return Ok(exit_of(code)),
            },
            _ = resized.recv() => resize().await?,
            ended = signals.next() => return ended,
        }
    }
}

async fn with_pipes(
    input: ExecInput,
    mut output: ExecOutput,
    mut signals: Signals,
    printer: &Printer,
) -> anyhow::Result<Exit> {
    pass_input(input)?;
    let (mut stdout, mut stderr) = (printer.log(), LogPrinter::of_stderr());
    let exit = loop {
        tokio::select! {
            event = output.next() => match event? {
                ExecEvent::Stdout(bytes) => stdout.print(&bytes)?,
                ExecEvent::Stderr(bytes) => stderr.print(&bytes)?,
                ExecEvent::Ended(code) => break exit_of(code),
            },
            // What the program would still print is for nobody.
            () = reader_left() => break Exit::Done,
            ended = signals.next() => return ended,
        }
    };
    stdout.finish()?;
    stderr.finish()?;
    Ok(exit)
}

/// Codes that no process can end with are failures.
fn exit_of(code: i32) -> Exit {
    Exit::OfProgram(u8::try_from(code).unwrap_or(1))
}

/// Sends what is typed or piped, in a task of its own: a program that does not read must not keep its output from being printed.
fn pass_input(input: ExecInput) -> anyhow::Result<()> {
    let mut pieces = read_input(open_input().context("opening stdin")?);
    tokio::spawn(async move {
        while let Some(piece) = pieces.recv().await {
            input.send(&piece).await?;
        }
        input.finish().await?;
        // The clone of the sender is dropped with this, and the connection stays open for the output.
        Ok::<_, KubeError>(())
    });
    Ok(())
}

/// Reads in a thread, which a read that never ends keeps until the process ends.
fn read_input(mut file: File) -> Receiver<Vec<u8>> {
    let (sender, pieces) = channel(PIECES);
    thread::spawn(move || {
        let mut buffer = vec![0; PIECE];
        while let Ok(count @ 1..) = file.read(&mut buffer) {
            if sender.blocking_send(buffer.get(..count).unwrap_or_default().to_vec()).is_err() {
                return;
            }
        }
    });
    pieces
}

/// The signals that end the command. Without a listener they would leave the terminal as it is.
struct Signals {
    interrupted: Signal,
    terminated: Signal,
    hung_up: Signal,
    quit: Signal,
}

impl Signals {
    fn listen() -> anyhow::Result<Self> {
        Ok(Self {
            interrupted: signal(SignalKind::interrupt())?,
            terminated: signal(SignalKind::terminate())?,
            hung_up: signal(SignalKind::hangup())?,
            quit: signal(SignalKind::quit())?,
        })
    }

    /// How the command ends with the next signal.
    async fn next(&mut self) -> anyhow::Result<Exit> {
        let number = tokio::select! {
            _ = self.interrupted.recv() => return Err(Interrupted::WhileProgramRuns.into()),
            _ = self.terminated.recv() => SignalKind::terminate(),
            _ = self.hung_up.recv() => SignalKind::hangup(),
            _ = self.quit.recv() => SignalKind::quit(),
        };
        let number = u8::try_from(number.as_raw_value()).unwrap_or_default();
        Ok(Exit::OfProgram(SIGNALLED + number))
    }
}
