//! The command of a training program.

/// The name of a program, without the directory it is in.
pub(super) fn program_name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// Whether a program is a Python interpreter.
pub(super) fn is_python(program: &str) -> bool {
    program_name(program)
        .strip_prefix("python")
        .is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit() || c == '.'))
}

/// The interpreter of a Python program, and what it runs. Output is unbuffered anyway.
pub(super) fn split_interpreter(command: &[String]) -> Option<(&String, &[String])> {
    let (interpreter, mut rest) = command.split_first().filter(|(first, _)| is_python(first))?;
    while let Some((first, others)) = rest.split_first()
        && first == "-u"
    {
        rest = others;
    }
    Some((interpreter, rest))
}

#[cfg(test)]
mod tests {
    use std::error::Error;
    use std::path::Path;

    use crate::job::validate;

    fn job(command: &str) -> String {
        format!(
            "name: train\nframework: pytorch\nimage: pytorch/pytorch:2.7.1\nreplicas: 2\ngpus: 1\n{command}\n"
        )
    }

    #[test]
    fn what_help_proposes_for_a_command_is_accepted() -> Result<(), Box<dyn Error>> {
        for command in
            ["python train.py", "python -u train.py --steps 10 --rate=0.1", "torchrun a/b.py, --on true"]
        {
            let text = job(&format!("command: {command}"));
            let problems = validate(Path::new("job.yaml"), &text, None).err().ok_or("a text was accepted")?;
            let help = problems.list().iter().find_map(|problem| problem.help.clone()).ok_or("no help")?;
            let proposal = help.strip_prefix("write ").ok_or("nothing is proposed")?;
            assert!(proposal.starts_with("command: ["), "{proposal}");
            let accepted = validate(Path::new("job.yaml"), &job(proposal), None)?.value;
            assert_eq!(accepted.command.join(" "), command.replace(',', ""));
        }
        Ok(())
    }
}
