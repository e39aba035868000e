//! The program that a job file wants to have run.

use crate::document::{Fault, Problems};
use crate::job::command::{is_python, split_interpreter};
use crate::job::file::JobFile;
use crate::job::framework::Framework;

/// Modules that are launchers; of others the first word counts.
const TORCH_LAUNCHERS: [&str; 2] = ["torch.distributed.run", "torch.distributed.launch"];
/// Programs that start processes on machines by themselves, and find only this one in a pod.
const OWN_LAUNCHERS: [&str; 6] = ["deepspeed", "accelerate", "horovodrun", "mpirun", "mpiexec", "colossalai"];
/// Shells, whose command line nobody here reads.
const SHELLS: [&str; 5] = ["sh", "bash", "dash", "zsh", "ksh"];

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

/// Programs that launch by themselves train alone in every pod, all into one directory.
fn warn_of_own_launcher(words: &[String], file: &JobFile, problems: &mut Problems) {
    let (framework, gpus) = (file.framework.value, file.gpus.value);
    let is_group = file.replicas.as_ref().is_none_or(|replicas| replicas.value > 1) || gpus > 1;
    if !is_group || framework != Framework::Pytorch {
        return;
    }
    let name = launcher_name(words);
    let position = file.command.as_ref().and_then(|command| command.position);
    if OWN_LAUNCHERS.contains(&name) || TORCH_LAUNCHERS.contains(&name) {
        let fault = Fault::new(format!("{name} starts processes by itself, and finds only its own pod"));
        let help = "let torchrun start the program: command: [python, train.py]; or give it the hosts: MASTER_ADDR, RANK and WORLD_SIZE are set";
        problems.warn(position, fault.help(help));
    } else if SHELLS.contains(&name) {
        let fault = Fault::new(format!("{name} is started once in each pod, without torchrun"));
        let help = "one process uses one GPU unless the script starts more: call `torchrun train.py` in it (PET_* variables are set), or write command: [python, train.py]";
        problems.warn(position, fault.help(help));
    } else if name == "torchrun" && meets_at_itself(words) {
        let fault = Fault::new("torchrun would rendezvous at this pod only, so that each pod trains alone");
        problems.warn(position, fault.help("remove the option: PET_* variables say where the group meets"));
    }
}

/// The program, or the module that Python runs if that is a launcher.
fn launcher_name(words: &[String]) -> &str {
    if let Some((_, [option, module, ..])) = split_interpreter(words)
        && option == "-m"
    {
        let package = module.split('.').next().unwrap_or(module);
        return if OWN_LAUNCHERS.contains(&package) { package } else { module };
    }
    let program = words.first().map(String::as_str).unwrap_or_default();
    program.rsplit('/').next().unwrap_or(program)
}

/// Whether options of torchrun overrule the variables that say where the group meets.
fn meets_at_itself(words: &[String]) -> bool {
    let is_local = |word: &String| word.contains("localhost") || word.contains("127.0.0.1");
    let is_alone = |word: &String| ["--standalone", "--nnodes=1", "--nnodes=1:1"].contains(&word.as_str());
    let one_node = |pair: &[String]| pair[0] == "--nnodes" && ["1", "1:1"].contains(&pair[1].as_str());
    words.iter().any(|word| is_local(word) || is_alone(word)) || words.windows(2).any(one_node)
}
