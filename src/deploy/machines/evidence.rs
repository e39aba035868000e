//! The activities of an Auto Scaling group and the consoles of its machines, for a failure without a signal.

use crate::aws::{Clients, ScalingActivity};
use crate::deploy::event::Evidence;

/// How many lines of a console are shown.
const LAST_LINES: usize = 15;
/// How many consoles are shown: those of one Auto Scaling group are usually alike.
const MACHINES: usize = 2;
/// The beginning of every line of infra's boot scripts.
const OUR_MARK: &str = "infra: ";

/// Gathers what can be read; the rest is left out, because the failure itself matters more.
pub(crate) async fn gather_evidence(clients: &Clients, group: &str) -> Vec<Evidence> {
    let mut evidence = Vec::new();
    let activities = clients.scaling_activities(group).await.unwrap_or_default();
    let failures = activities.iter().filter_map(ScalingActivity::failure);
    let lines: Vec<String> = failures.take(3).map(str::to_owned).collect();
    if !lines.is_empty() {
        evidence.push(Evidence { source: format!("group {group}"), last_step: None, lines });
    }
    let machines = activities.iter().filter_map(|activity| instance_in(&activity.description));
    let mut asked: Vec<&str> = Vec::new();
    for machine in machines {
        if asked.len() == MACHINES || asked.contains(&machine) {
            continue;
        }
        asked.push(machine);
        if let Ok(Some(text)) = clients.console_output(machine).await {
            evidence.push(console_evidence(machine, &text));
        }
    }
    evidence
}

/// The end of a console, and the last step that infra's boot scripts reported.
#[must_use]
pub(crate) fn console_evidence(machine: &str, text: &str) -> Evidence {
    let lines: Vec<String> =
        text.lines().map(|line| line.trim_end().to_owned()).filter(|line| !line.is_empty()).collect();
    let ours = lines.iter().rev().find_map(|line| line.split_once(OUR_MARK));
    Evidence {
        source: format!("console of {machine}"),
        last_step: ours.map(|(_, step)| step.to_owned()),
        lines: lines[lines.len().saturating_sub(LAST_LINES)..].to_vec(),
    }
}

fn instance_in(description: &str) -> Option<&str> {
    let start = description.find("i-")?;
    description[start..].split(|c: char| !c.is_ascii_alphanumeric() && c != '-').next()
}

#[cfg(test)]
mod tests {
    use super::{console_evidence, instance_in};

    #[test]
    fn the_last_step_of_our_own_scripts_is_found() {
        let text = "boot\n[   12.3] infra: waiting for volume\r\n[ 14] infra: claim-volume failed: no such volume\nlogin:\n";
        let evidence = console_evidence("i-1", text);
        assert_eq!(evidence.last_step.as_deref(), Some("claim-volume failed: no such volume"));
        assert_eq!(evidence.lines.len(), 4);
    }

    #[test]
    fn the_machine_of_an_activity_is_found() {
        assert_eq!(instance_in("Launching a new EC2 instance: i-0ab12.  Status Reason: x"), Some("i-0ab12"));
        assert_eq!(instance_in("Launching a new EC2 instance"), None);
    }
}
