//! Asking a person at a terminal, one question at a time, each with its reason.

use std::io::{self, BufRead, IsTerminal};
use std::str::FromStr;

use crate::cli::failure::Refusal;
use crate::cli::terminal::printer::Printer;
use crate::document::Fault;

/// Whether a person can answer.
pub(super) fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks until the answer is valid. `why` says what the answer is for.
pub(super) fn ask_for_value<T: FromStr<Err = Fault>>(
    question: &str,
    why: &str,
    printer: &Printer,
) -> anyhow::Result<T> {
    printer.note(format_args!("\n{why}"));
    loop {
        printer.question(format_args!("{question}:"));
        match read_answer()?.parse() {
            Ok(value) => return Ok(value),
            Err(fault) => explain_question(&fault, printer),
        }
    }
}

/// Asks for something that may be left out with an empty answer.
pub(super) fn ask_optional<T: FromStr<Err = Fault>>(
    question: &str,
    why: &str,
    printer: &Printer,
) -> anyhow::Result<Option<T>> {
    printer.note(format_args!("\n{why}"));
    loop {
        printer.question(format_args!("{question} (empty for none):"));
        let answer = read_answer()?;
        if answer.is_empty() {
            return Ok(None);
        }
        match answer.parse() {
            Ok(value) => return Ok(Some(value)),
            Err(fault) => explain_question(&fault, printer),
        }
    }
}

/// Asks for something that is `default` if the answer is empty.
pub(super) fn ask_or_default<T: FromStr<Err = Fault>>(
    question: &str,
    default: &str,
    printer: &Printer,
) -> anyhow::Result<T> {
    loop {
        printer.question(format_args!("{question} (empty for {default}):"));
        let answer = read_answer()?;
        match if answer.is_empty() { default } else { &answer }.parse() {
            Ok(value) => return Ok(value),
            Err(fault) => explain_question(&fault, printer),
        }
    }
}

/// Asks for a yes or a no until there is one; an empty answer is a yes.
pub(super) fn ask_yes_or_no(question: &str, why: &str, printer: &Printer) -> anyhow::Result<bool> {
    printer.note(format_args!("\n{why}"));
    loop {
        printer.question(format_args!("{question} [Y/n]:"));
        match read_answer()?.to_lowercase().as_str() {
            "" | "y" | "yes" => return Ok(true),
            "n" | "no" => return Ok(false),
            other => printer.note(format_args!("  '{other}' is neither yes nor no")),
        }
    }
}

/// Asks for one or more answers, separated by spaces or commas.
pub(super) fn ask_list<T: FromStr<Err = Fault>>(
    question: &str,
    why: &str,
    printer: &Printer,
) -> anyhow::Result<Vec<T>> {
    printer.note(format_args!("\n{why}"));
    loop {
        printer.question(format_args!("{question}:"));
        let answer = read_answer()?;
        let words = answer.split([' ', ',']).filter(|word| !word.is_empty());
        match words.map(str::parse).collect::<Result<Vec<T>, Fault>>() {
            Ok(values) if !values.is_empty() => return Ok(values),
            Ok(_) => printer.note("  name at least one"),
            Err(fault) => explain_question(&fault, printer),
        }
    }
}

/// Asks for a yes; any other answer, or no terminal, is a no. `flag` is the flag that answers yes instead.
pub(super) fn ask_for_yes(question: &str, flag: &str, printer: &Printer) -> anyhow::Result<()> {
    if !can_ask() {
        return Err(Refusal::new(format!("{question} There is no terminal to answer it."))
            .help(format!("`{flag}` answers yes"))
            .into());
    }
    printer.question(format_args!("{question} [y/N]"));
    match read_answer()?.to_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(Refusal::new("declined; nothing was changed").into()),
    }
}

/// Asks for a yes on a thread of its own, so that Ctrl-C works meanwhile.
pub(super) async fn ask_on_thread(
    question: &str,
    flag: &'static str,
    printer: &Printer,
) -> anyhow::Result<()> {
    let (printer, question) = (printer.clone(), question.to_owned());
    tokio::task::spawn_blocking(move || ask_for_yes(&question, flag, &printer)).await?
}

/// Asks for a word to be typed, for what cannot be undone. `flag` is the flag that gives the word instead.
pub(super) async fn ask_word_on_thread(
    question: &str,
    word: &str,
    flag: &'static str,
    printer: &Printer,
) -> anyhow::Result<()> {
    if !can_ask() {
        return Err(Refusal::new(format!("{question} There is no terminal to answer it."))
            .help(format!("`{flag}` gives the answer"))
            .into());
    }
    let (printer, question, word) = (printer.clone(), question.to_owned(), word.to_owned());
    tokio::task::spawn_blocking(move || {
        printer.question(&question);
        if read_answer()? == word {
            Ok(())
        } else {
            Err(Refusal::new("declined; nothing was changed").into())
        }
    })
    .await?
}

fn read_answer() -> anyhow::Result<String> {
    let mut line = String::new();
    if io::stdin().lock().read_line(&mut line)? == 0 {
        return Err(Refusal::new("the questions were not answered; nothing was written").into());
    }
    Ok(line.trim().to_owned())
}

fn explain_question(fault: &Fault, printer: &Printer) {
    printer.note(format_args!("  {fault}"));
    if let Some(help) = &fault.help {
        printer.note(format_args!("  {help}"));
    }
}
