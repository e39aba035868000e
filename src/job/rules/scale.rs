//! How many processes a job file asks for.

use crate::document::{Fault, Problems};
use crate::job::file::JobFile;
use crate::job::framework::Framework;
use crate::job::training::Scale;

/// As many pods as both roles may have together.
const MOST_PODS: u32 = 1000;

/// The number of processes of each kind.
pub(super) fn build_scale(file: &JobFile, problems: &mut Problems) -> Option<Scale> {
    let framework = file.framework.value;
    if let (Some(image), None) = (&file.ps_image, &file.ps) {
        let fault = Fault::new("psImage is the image of parameter servers, and there are none");
        problems.add(image.position, fault.help("write ps: and workers:, or remove psImage"));
    }
    match (&file.replicas, &file.ps, &file.workers) {
        (Some(replicas), None, None) if framework != Framework::TensorflowSeed => {
            Some(Scale::Replicas(replicas.value))
        }
        (Some(replicas), None, None) => {
            let fault =
                Fault::new("tensorflow-seed programs work with parameter servers, not with replicas alone");
            problems.add(
                replicas.position,
                fault.help("write ps: 2 and workers: 4, for example, or use framework: tensorflow"),
            );
            None
        }
        (None, Some(servers), Some(workers)) if framework.has_parameter_servers() => {
            let total = servers.value.saturating_add(workers.value);
            if total > MOST_PODS {
                let fault = Fault::new(format!(
                    "ps and workers are {total} pods together, at most {MOST_PODS} are allowed"
                ));
                problems.add(workers.position, fault);
            }
            let image = file.ps_image.as_ref().and_then(|image| problems.parse(image));
            Some(Scale::Servers { servers: servers.value, image, workers: workers.value })
        }
        (None, Some(servers), _) if !framework.has_parameter_servers() => {
            let why = match framework {
                Framework::PaddleV0 => "every paddle-v0 trainer brings its own parameter server",
                _ => "its processes are all alike",
            };
            let fault = Fault::new(format!("framework {framework} has no ps: {why}"));
            problems.add(servers.position, fault.help("write replicas: with their number"));
            None
        }
        (None, None, Some(workers)) => {
            let fault = Fault::new("workers: goes with ps:");
            problems.add(workers.position, fault.help("without parameter servers write replicas:"));
            None
        }
        (None, Some(servers), None) => {
            let fault = Fault::new("ps: goes with workers:");
            problems.add(servers.position, fault.help("write the number of workers too"));
            None
        }
        (Some(replicas), _, _) => {
            let fault = Fault::new("replicas is given together with ps or workers");
            problems.add(replicas.position, fault.help("write either replicas, or ps and workers"));
            None
        }
        (None, None, None) => {
            let help = match framework {
                Framework::TensorflowSeed => "write ps: 2 and workers: 4, for example",
                Framework::Tensorflow => "write replicas: 2, or ps: 2 and workers: 4, for example",
                _ => "write replicas: 2, for example",
            };
            problems.add(None, Fault::new("the number of processes is missing").help(help));
            None
        }
        (None, Some(_), Some(_)) => None,
    }
}
