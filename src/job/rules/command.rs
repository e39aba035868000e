//! The program that a job file wants to have run.

use super::own_launcher::warn_of_own_launcher;
use crate::document::{Fault, Problems};
use crate::job::command::{is_python, split_interpreter};
use crate::job::file::JobFile;
use crate::job::framework::Framework;

/// The program and its arguments.
pub(super) fn build_command(file: &JobFile, problems: &mut Problems) -> Option<Vec<String>> {
    let framework = file.framework.value;
    let Some(command) = &file.command else {
        if framework == Framework::PaddleV0 {
            return Some(Vec::new());
        }
        let fault =
            Fault::new("'command' is missing").help("command: the training program, as [python, train.py]");
        problems.add(None, fault);
        return None;
    };
    if file.seed_image.value && framework == Framework::PaddleV0 {
        let fault = Fault::new("a seed image runs its own start script");
        problems.add(command.position, fault.help("remove command, or seedImage"));
        return None;
    }
    let words: Vec<String> = command.value.iter().map(|word| word.value.clone()).collect();
    match words.first() {
        None => problems
            .add(command.position, Fault::new("the command is empty").help("write it as [python, train.py]")),
        Some(first) if first.contains(char::is_whitespace) => {
            let fault = Fault::new(format!("there is no program called '{first}'"));
            problems.add(
                command.value[0].position,
                fault.help("write each word by itself, as [python, train.py]"),
            );
        }
        Some(first) if first.contains('/') && !first.starts_with(['/', '.']) && file.code.is_none() => {
            let fault = Fault::new(format!("'{first}' depends on the directory it is started in"));
            problems.add(command.value[0].position, fault.help(format!("write /{first}")));
        }
        Some(first) if framework == Framework::Paddle && !is_python(first) => {
            let fault = Fault::new("paddle.distributed.launch starts Python programs only");
            problems.add(command.value[0].position, fault.help("write it as [python, train.py]"));
        }
        Some(_) => match check_interpreter(&words, framework) {
            Ok(()) => {
                warn_of_own_launcher(&words, file, problems);
                return Some(words);
            }
            Err((word, fault)) => {
                problems.add(command.value.get(word).and_then(|word| word.position), fault);
            }
        },
    }
    None
}

/// The launchers of PyTorch and Paddle start `script.py` or `-m module`; other options of the interpreter would be lost.
fn check_interpreter(words: &[String], framework: Framework) -> Result<(), (usize, Fault)> {
    if !matches!(framework, Framework::Pytorch | Framework::Paddle) {
        return Ok(());
    }
    let Some((interpreter, program)) = split_interpreter(words) else { return Ok(()) };
    let at = words.len() - program.len();
    match program.first().map(String::as_str) {
        None => Err((
            0,
            Fault::new(format!("{interpreter} has no program to run")).help("write it as [python, train.py]"),
        )),
        Some("-m") if program.len() > 1 => Ok(()),
        Some(option) if option.starts_with('-') => Err((
            at,
            Fault::new(format!("the launcher of {framework} cannot pass {option} on to {interpreter}"))
                .help("set it by a variable in env (PYTHONWARNINGS, PYTHONOPTIMIZE …), or in the program"),
        )),
        Some(_) => Ok(()),
    }
}
