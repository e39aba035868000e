//! The command of a training program.

/// Whether a program is a Python interpreter.
pub(super) fn is_python(program: &str) -> bool {
    let name = program.rsplit('/').next().unwrap_or(program);
    name.strip_prefix("python").is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit() || c == '.'))
}

/// What a launcher is given to run: it brings its own Python, unbuffered.
pub(super) fn without_interpreter(command: &[String]) -> Vec<String> {
    command.iter().skip(1).skip_while(|word| word.as_str() == "-u").cloned().collect()
}
