//! Launchers that a command names itself: what becomes of them beside the one that infra starts, and in several pods.

use crate::document::{Fault, Problems};
use crate::job::command::{is_python, program_name, split_interpreter};
use crate::job::file::JobFile;
use crate::job::framework::Framework;

/// Programs that start processes on machines by themselves, and find only this one in a pod; of their modules the first part counts.
const OWN_LAUNCHERS: [&str; 9] = [
    "deepspeed",
    "accelerate",
    "accelerate-launch",
    "horovod",
    "horovodrun",
    "mpirun",
    "mpiexec",
    "orterun",
    "colossalai",
];
/// What torchrun is called, as a program and as modules.
const TORCHRUN: [&str; 3] = ["torchrun", "torch.distributed.run", "torch.distributed.launch"];
const PADDLE: &str = "paddle.distributed.launch";
/// Shells, which read a command line of their own.
const SHELLS: [&str; 5] = ["sh", "bash", "dash", "zsh", "ksh"];
/// Programs that start the one that follows their options.
const WRAPPERS: [&str; 8] = ["env", "exec", "nohup", "nice", "time", "numactl", "stdbuf", "command"];
/// Options of torchrun without a value.
const TORCHRUN_FLAGS: [&str; 6] = ["standalone", "m", "module", "no-python", "run-path", "use-env"];
/// Options of torchrun that say where the group meets.
const MEETING_POINTS: [&str; 2] = ["rdzv-endpoint", "master-addr"];

/// A launcher, and the words behind it.
#[derive(Debug, PartialEq, Eq)]
struct Launch<'a> {
    name: &'a str,
    arguments: Vec<&'a str>,
}

impl Launch<'_> {
    fn is_torchrun(&self) -> bool {
        TORCHRUN.contains(&self.name)
    }
}

/// Warns of launchers that train alone in every pod, all into one directory, or once more in each process of ours.
pub(super) fn warn_of_own_launcher(words: &[String], file: &JobFile, problems: &mut Problems) {
    let framework = file.framework.value;
    if !matches!(framework, Framework::Pytorch | Framework::Paddle) {
        return;
    }
    let position = file.command.as_ref().and_then(|command| command.position);
    let has_peers = file.replicas.as_ref().is_none_or(|replicas| replicas.value > 1);
    let plain: Vec<&str> = words.iter().map(String::as_str).collect();
    if split_interpreter(words).is_some() {
        if let Some(launch) = launch_of(&plain) {
            problems.warn(position, nested(launch.name, framework));
        }
        return;
    }
    let shell = plain.first().map(|program| program_name(program)).filter(|name| SHELLS.contains(name));
    let launch = match shell {
        Some(_) => script_of(&plain).and_then(launch_in_script),
        None => launch_of(&plain),
    };
    match (launch, shell) {
        (Some(launch), _) if launch.is_torchrun() && has_peers && meets_at_itself(&launch.arguments) => {
            let fault =
                Fault::new("torchrun would rendezvous at this pod only, so that each pod trains alone");
            let help = "remove the option: PET_* variables say where the group meets";
            problems.warn(position, fault.help(help));
        }
        (Some(launch), _) if has_peers && !launch.is_torchrun() => {
            let name = launch.name;
            let fault = Fault::new(format!("{name} starts processes by itself, and finds only its own pod"));
            let help = "let torchrun start the program: command: [python, train.py]; or give it the hosts: MASTER_ADDR, RANK and WORLD_SIZE are set";
            problems.warn(position, fault.help(help));
        }
        (None, Some(name)) if has_peers || file.gpus.value > 1 => {
            let fault = Fault::new(format!("{name} is started once in each pod, without torchrun"));
            let help = "one process uses one GPU unless the script starts more: call `torchrun train.py` in it (PET_* variables are set), or write command: [python, train.py]";
            problems.warn(position, fault.help(help));
        }
        _ => {}
    }
}

/// A launcher behind the interpreter is started by ours, once for each GPU.
fn nested(name: &str, framework: Framework) -> Fault {
    Fault::new(format!(
        "{name} starts processes by itself, and the launcher of {framework} starts it once for each GPU"
    ))
    .help("name the program alone: command: [python, train.py]")
}

/// The launcher that a command line begins with, be it a path, a module, or a script of an interpreter.
fn launch_of<'a>(words: &[&'a str]) -> Option<Launch<'a>> {
    let mut rest = without_wrappers(words);
    let mut name = program_name(rest.first()?);
    rest = &rest[1..];
    if is_python(name) {
        while rest.first() == Some(&"-u") {
            rest = &rest[1..];
        }
        name = match rest.first()? {
            &"-m" => {
                rest = &rest[1..];
                launcher_of_module(rest.first()?)
            }
            script => program_name(script),
        };
        rest = &rest[1..];
    }
    let is_known = TORCHRUN.contains(&name) || OWN_LAUNCHERS.contains(&name) || name == PADDLE;
    is_known.then(|| Launch { name, arguments: rest.to_vec() })
}

/// A module's package, if that is a launcher.
fn launcher_of_module(module: &str) -> &str {
    let package = module.split('.').next().unwrap_or(module);
    if OWN_LAUNCHERS.contains(&package) { package } else { module }
}

/// A command line without what comes before its program: variables, and programs that only start another.
fn without_wrappers<'a, 'b>(words: &'b [&'a str]) -> &'b [&'a str] {
    let mut rest = words;
    let mut follows_wrapper = false;
    while let Some((first, others)) = rest.split_first() {
        let is_assignment = first.split_once('=').is_some_and(|(name, _)| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        });
        let is_wrapper = WRAPPERS.contains(&program_name(first));
        if !(is_assignment || is_wrapper || follows_wrapper && first.starts_with('-')) {
            break;
        }
        follows_wrapper |= is_wrapper;
        rest = others;
    }
    rest
}

/// What a shell is told to run with `-c`, alone or with other letters.
fn script_of<'a>(words: &[&'a str]) -> Option<&'a str> {
    let is_told = |word: &&str| word.starts_with('-') && !word.starts_with("--") && word.contains('c');
    let at = words.iter().skip(1).position(is_told)?;
    words.get(at + 2).copied()
}

/// The first launcher that a script starts, as far as its words say so.
fn launch_in_script(script: &str) -> Option<Launch<'_>> {
    script.split([';', '&', '|', '\n', '(', ')', '{', '}']).find_map(|line| {
        let words = line.split_whitespace().map(|word| word.trim_matches(['"', '\'']));
        launch_of(&words.filter(|word| !word.is_empty() && *word != "\\").collect::<Vec<&str>>())
    })
}

/// Whether options of torchrun overrule the variables that say where the group meets. What follows the program is the program's.
fn meets_at_itself(arguments: &[&str]) -> bool {
    let mut words = arguments.iter();
    while let Some(option) = words.next().and_then(|word| word.strip_prefix('-')) {
        let (name, value) = match option.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (option, None),
        };
        let name = name.trim_start_matches('-').replace('_', "-");
        if name == "standalone" {
            return true;
        }
        if TORCHRUN_FLAGS.contains(&name.as_str()) {
            continue;
        }
        let value = value.or_else(|| words.next().copied()).unwrap_or_default();
        let value = value.trim_matches(['"', '\'']);
        let is_one_node = name == "nnodes" && ["1", "1:1"].contains(&value);
        if is_one_node || (MEETING_POINTS.contains(&name.as_str()) && is_local(value)) {
            return true;
        }
    }
    false
}

/// Whether an endpoint is the pod itself, with a port or without.
fn is_local(endpoint: &str) -> bool {
    let host = endpoint.trim_start_matches("tcp://");
    host == "::1"
        || host.starts_with("[::1]")
        || ["localhost", "127.0.0.1", "0.0.0.0"].contains(&host.split(':').next().unwrap_or(host))
}

#[cfg(test)]
mod tests {
    use super::{launch_in_script, launch_of, meets_at_itself};

    fn name_of(line: &str) -> Option<String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        launch_of(&words).map(|launch| launch.name.to_owned())
    }

    #[test]
    fn launchers_are_known_by_path_module_and_script() {
        for (line, name) in [
            ("torchrun train.py", "torchrun"),
            ("/opt/conda/bin/torchrun train.py", "torchrun"),
            ("python -m torch.distributed.run train.py", "torch.distributed.run"),
            ("/usr/bin/python3.12 -u -m torch.distributed.launch train.py", "torch.distributed.launch"),
            ("python /opt/conda/bin/torchrun train.py", "torchrun"),
            ("/venv/bin/accelerate launch train.py", "accelerate"),
            ("python -m accelerate.commands.launch train.py", "accelerate"),
            ("python -m deepspeed.launcher.runner train.py", "deepspeed"),
            ("python -m horovod.runner.launch train.py", "horovod"),
            ("env NCCL_DEBUG=INFO torchrun train.py", "torchrun"),
            ("OMP_NUM_THREADS=4 exec mpirun -n 4 ./train", "mpirun"),
        ] {
            assert_eq!(name_of(line).as_deref(), Some(name), "{line}");
        }
        for line in ["", "python", "python -m", "python train.py torchrun", "./train --launcher=torchrun"] {
            assert_eq!(name_of(line), None, "{line}");
        }
    }

    #[test]
    fn the_launcher_of_a_script_is_the_first_that_a_line_begins_with() {
        for (script, name) in [
            ("cd /mnt/code && torchrun train.py", Some("torchrun")),
            ("set -e\nexport A=1\nexec torchrun \\\n  --standalone train.py", Some("torchrun")),
            ("pip install deepspeed; \"deepspeed\" train.py", Some("deepspeed")),
            ("pip install deepspeed && python train.py", None),
            ("echo torchrun", None),
        ] {
            assert_eq!(launch_in_script(script).map(|launch| launch.name), name, "{script}");
        }
    }

    #[test]
    fn only_options_before_the_program_say_where_torchrun_meets() {
        for (line, expected) in [
            ("--standalone train.py", true),
            ("--nproc_per_node 4 --nnodes 1 train.py", true),
            ("--nnodes=1:1 train.py", true),
            ("--nnodes=2 train.py", false),
            ("--rdzv-endpoint localhost:29400 train.py", true),
            ("--rdzv_backend=c10d --rdzv_endpoint=127.0.0.1 train.py", true),
            ("--master-addr=[::1] -m train", true),
            ("--master_addr \"localhost\" train.py", true),
            ("--rdzv_endpoint=localhost.example.com:1 train.py", false),
            ("-m train --standalone", false),
            ("train.py --redis localhost:6379 --nnodes 1", false),
            ("--no-python ./train --standalone", false),
            ("", false),
        ] {
            let words: Vec<&str> = line.split_whitespace().collect();
            assert_eq!(meets_at_itself(&words), expected, "{line}");
        }
    }
}
