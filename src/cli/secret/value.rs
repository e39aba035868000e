//! Where the value of a secret comes from: a question, a file, or standard input. Never the command line.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use anyhow::Context;
use zeroize::Zeroizing;

use crate::cli::failure::Refusal;
use crate::cli::hidden_answer::{ask_hidden, into_text};
use crate::cli::question::can_ask;
use crate::cli::session::Session;
use crate::credentials::SecretText;

/// What Linux passes to a program as one variable, its name included.
const LONGEST_VALUE: usize = 128 * 1024 - 256;

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ValueSource {
    /// A question at the terminal.
    Question,
    /// A file.
    File(PathBuf),
    /// Standard input.
    Input,
}

/// A key and where its value comes from: `KEY`, `KEY=@FILE` or `KEY=-`. Nothing behind `=` is ever repeated in a message.
pub(super) fn parse_key(argument: &str) -> Result<(&str, ValueSource), Refusal> {
    let Some((key, source)) = argument.split_once('=') else {
        return Ok((argument, ValueSource::Question));
    };
    match source.strip_prefix('@') {
        Some("") => Err(Refusal::invalid(format!("{key}=@ names no file")).help(format!("write {key}=@FILE"))),
        Some(file) => Ok((key, ValueSource::File(file.into()))),
        None if source == "-" => Ok((key, ValueSource::Input)),
        None => Err(Refusal::invalid(format!(
            "the value of {key} is on the command line, where other users of this machine read it in the process list, and the shell keeps it"
        ))
        .help(format!(
            "write {key} to be asked for it, {key}=@FILE or {key}=-; replace the value at its issuer, and delete this line from the shell's history"
        ))),
    }
}

impl ValueSource {
    /// The value of `what`, such as a key.
    pub(super) fn read(&self, what: &str, session: &Session) -> anyhow::Result<SecretText> {
        let value = match self {
            Self::Question if can_ask() => return ask_hidden(what, &session.printer),
            Self::Question => {
                return Err(Refusal::new(format!("there is no terminal to ask for {what}"))
                    .help("write =@FILE or =- behind the key")
                    .into());
            }
            Self::File(path) => read_file(&session.assets.named_file(path)?),
            // The standard library's own reader keeps what it read in a buffer.
            Self::Input => {
                let input = io::stdin().as_fd().try_clone_to_owned().context("reading standard input")?;
                read_value(File::from(input)).context("reading standard input")
            }
        }?;
        check_secret_value(value, what)
    }
}

fn read_file(path: &Path) -> anyhow::Result<Zeroizing<Vec<u8>>> {
    let reading = || format!("reading {}", path.display());
    let file = File::open(path).with_context(reading)?;
    read_value(file).with_context(reading)
}

/// At most as much as a value may have, and a byte more.
fn read_value(mut file: File) -> io::Result<Zeroizing<Vec<u8>>> {
    let mut bytes = Zeroizing::new(vec![0; LONGEST_VALUE + 3]);
    let mut length = 0;
    while length < bytes.len() {
        match file.read(&mut bytes[length..]) {
            Ok(0) => break,
            Ok(count) => length += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(length);
    Ok(bytes)
}

/// The line end that editors and `echo` write is no part of a value.
fn check_secret_value(mut bytes: Zeroizing<Vec<u8>>, what: &str) -> anyhow::Result<SecretText> {
    let line_end = if bytes.ends_with(b"\r\n") { 2 } else { usize::from(bytes.ends_with(b"\n")) };
    let length = bytes.len() - line_end;
    let objection = if length == 0 {
        "is empty"
    } else if length > LONGEST_VALUE {
        "is longer than 127 KiB, more than a program can get as a variable"
    } else if bytes.contains(&0) {
        "contains a zero byte, which no variable can"
    } else {
        bytes.truncate(length);
        return match into_text(&mut bytes) {
            Some(text) => Ok(text),
            None => Err(refuse_value(what, "is not UTF-8 text, which a variable has to be").into()),
        };
    };
    Err(refuse_value(what, objection).into())
}

fn refuse_value(what: &str, objection: &str) -> Refusal {
    Refusal::invalid(format!("the value of {what} {objection}")).help("nothing was changed")
}

#[cfg(test)]
mod tests {
    use zeroize::Zeroizing;

    use super::{LONGEST_VALUE, ValueSource, check_secret_value, parse_key};

    #[test]
    fn a_value_on_the_command_line_is_refused_and_not_repeated() -> Result<(), String> {
        for argument in ["TOKEN=hunter2", "TOKEN=", "TOKEN==", "TOKEN=-hunter2"] {
            let refusal = parse_key(argument).err().ok_or("it was accepted")?;
            let said = format!("{refusal} {refusal:?}");
            assert!(said.contains("TOKEN") && !said.contains("hunter2"), "{said}");
        }
        Ok(())
    }

    #[test]
    fn a_key_says_where_its_value_comes_from() {
        let source = |argument| parse_key(argument).ok().map(|(_, source)| source);
        assert_eq!(source("A"), Some(ValueSource::Question));
        assert_eq!(source("A=@b=c"), Some(ValueSource::File("b=c".into())));
        assert_eq!(source("A=-"), Some(ValueSource::Input));
        assert_eq!(source("A=@"), None);
    }

    #[test]
    fn a_value_is_text_without_the_last_line_end() {
        let read = |bytes: &[u8]| {
            check_secret_value(Zeroizing::new(bytes.to_vec()), "A").ok().map(|text| text.expose().to_owned())
        };
        assert_eq!(read(b"a\n").as_deref(), Some("a"));
        assert_eq!(read(b"a\nb\r\n").as_deref(), Some("a\nb"));
        assert_eq!(read(b"a \n\n").as_deref(), Some("a \n"));
        for bad in [&b""[..], b"\n", b"a\0b", b"\xff", &vec![b'a'; LONGEST_VALUE + 1]] {
            assert_eq!(read(bad), None);
        }
        assert!(read(&vec![b'a'; LONGEST_VALUE]).is_some());
    }
}
