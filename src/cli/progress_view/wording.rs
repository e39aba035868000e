//! The words for events that a terminal and a log have in common.

use std::time::Duration;

use anstyle::{AnsiColor, Style};
use time::OffsetDateTime;

use crate::aws::ResourceStatus;
use crate::cli::terminal::styled_text::StyledText;
use crate::deploy::Event;
use crate::deploy::preflight::{Finding, Severity};

pub(super) const FAILURE: Style = AnsiColor::Red.on_default().bold();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();
const STAGE: Style = Style::new().bold();

/// The lines for an event that is about no stack's own line.
pub(super) fn lines_for(event: &Event) -> Vec<StyledText> {
    match event {
        Event::Stage { what } => vec![StyledText::styled(STAGE, what)],
        Event::Note { text } => text.lines().map(StyledText::from).collect(),
        Event::Warning { text } => {
            let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
            let first = StyledText::styled(WARNING, "warning:").then(" ").then(first);
            std::iter::once(first).chain(rest.lines().map(StyledText::from)).collect()
        }
        Event::Preflight { finding } => finding_lines(finding),
        Event::Uploaded { key, bytes } => vec![format!("uploaded {} ({bytes} bytes)", short_key(key)).into()],
        Event::LaunchFailed { stack, resource, reason, times } => {
            let often = if *times == 1 { "once".to_owned() } else { format!("{times} times") };
            let failure = format!("{stack}: {resource} could not start a machine");
            vec![StyledText::styled(FAILURE, failure).then(format!(" ({often}): {}", one_line(reason)))]
        }
        Event::Record { name, state, target } => {
            vec![format!("record {name} points at {target}: {}", state.name()).into()]
        },
        Event::Ready { endpoint } => {
            vec![StyledText::styled(STAGE, "the cluster is ready:").then(" ").then(endpoint)]
        }
        Event::Stacks { .. }
        | Event::StackBegan { .. }
        | Event::Machine { .. }
        | Event::Resource { .. }
        | Event::UndoBegan { .. }
        | Event::StackEnded { .. }
        | Event::StackUnchanged { .. }
        | Event::StackSkipped { .. }
        | Event::Waiting { .. }
        // Printed by the command itself, with the whole plan and the whole report.
        | Event::Machines { .. }
        | Event::Destroyed { .. }
        | Event::StackFailed { .. } => Vec::new(),
    }
}

pub(in super::super) fn finding_lines(finding: &Finding) -> Vec<StyledText> {
    let (style, word) = match finding.severity {
        Severity::Refused => (FAILURE, "refused"),
        Severity::Warning => (WARNING, "warning"),
    };
    vec![
        StyledText::styled(style, format_args!("{word}:")).then(format_args!(
            " {}: {}",
            finding.subject,
            one_line(&finding.what)
        )),
        format!("  why:  {}", one_line(&finding.why)).into(),
        format!("  fix:  {}", one_line(&finding.fix)).into(),
    ]
}

/// A resource's failure, with its reason if there is one.
pub(super) fn failed_status(resource: &str, status: &ResourceStatus, reason: Option<&str>) -> StyledText {
    let reason = reason.map(|reason| format!(": {}", one_line(reason))).unwrap_or_default();
    StyledText::from(format_args!("{resource} ")).then(StyledText::styled(FAILURE, status)).then(reason)
}

/// What AWS and others say, in one line.
pub(super) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// An object's key without most of its digest, which would fill the line.
fn short_key(key: &str) -> String {
    const SHOWN: usize = 12;
    let (place, name) = key.rsplit_once('/').unwrap_or(("", key));
    match name.split_once('.') {
        Some((digest, kind))
            if digest.len() > SHOWN && digest.bytes().all(|byte| byte.is_ascii_hexdigit()) =>
        {
            format!("{place}/{}….{kind}", &digest[..SHOWN])
        }
        _ => key.to_owned(),
    }
}

/// `45s`, `1m20s`, `3m`, `1h05m`.
pub(in super::super) fn duration_in_words(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds}s"),
        (0, minutes, 0) => format!("{minutes}m"),
        (0, minutes, seconds) => format!("{minutes}m{seconds:02}s"),
        (hours, 0, _) => format!("{hours}h"),
        (hours, minutes, _) => format!("{hours}h{minutes:02}m"),
    }
}

/// The time of day.
pub(in super::super) fn clock_time(now: OffsetDateTime) -> String {
    let (hour, minute, second) = now.time().as_hms();
    format!("{hour:02}:{minute:02}:{second:02}")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use time::macros::datetime;

    use super::{StyledText, clock_time, duration_in_words, failed_status, lines_for};
    use crate::deploy::Event;
    use crate::deploy::preflight::{Finding, Severity};

    fn bare(event: &Event) -> Vec<String> {
        lines_for(event).iter().map(StyledText::bare).collect()
    }

    #[test]
    fn durations_are_short() {
        let cases = [
            (0, "0s"),
            (45, "45s"),
            (64, "1m04s"),
            (80, "1m20s"),
            (180, "3m"),
            (3600, "1h"),
            (3900, "1h05m"),
        ];
        for (seconds, text) in cases {
            assert_eq!(duration_in_words(Duration::from_secs(seconds)), text);
        }
    }

    #[test]
    fn an_uploaded_object_fits_a_line() {
        let uploaded = |key: &str| bare(&Event::Uploaded { key: key.to_owned(), bytes: 7 });
        let digest = "26643c5b4f3bcad6edeb4773f3c96f6022637a14ea6767f374a45cc2e08d2d69";
        let key = format!("clusters/paddle/controller/{digest}.ign");
        assert_eq!(uploaded(&key), ["uploaded clusters/paddle/controller/26643c5b4f3b….ign (7 bytes)"]);
        // What is no digest is shown in full.
        assert_eq!(
            uploaded("clusters/a-file-with-a-name.txt"),
            ["uploaded clusters/a-file-with-a-name.txt (7 bytes)"]
        );
    }

    #[test]
    fn the_clock_has_two_digits_each() {
        assert_eq!(clock_time(datetime!(2026-03-01 02:03:05 UTC)), "02:03:05");
    }

    #[test]
    fn a_finding_says_what_why_and_what_to_do() {
        let finding = Finding {
            severity: Severity::Warning,
            subject: "certificates",
            what: "etcd ends in 12 days".to_owned(),
            why: "the cluster stops then".to_owned(),
            fix: "renew it".to_owned(),
        };
        assert_eq!(
            bare(&Event::Preflight { finding }),
            [
                "warning: certificates: etcd ends in 12 days",
                "  why:  the cluster stops then",
                "  fix:  renew it"
            ]
        );
    }

    #[test]
    fn a_failed_launch_says_how_often_in_one_line() {
        let failed = |times| Event::LaunchFailed {
            stack: "paddle-pool-gpu".to_owned(),
            resource: "Group".to_owned(),
            reason: "no\n capacity".to_owned(),
            times,
        };
        assert_eq!(
            bare(&failed(1)),
            ["paddle-pool-gpu: Group could not start a machine (once): no capacity"]
        );
        assert_eq!(
            bare(&failed(3)),
            ["paddle-pool-gpu: Group could not start a machine (3 times): no capacity"]
        );
    }

    #[test]
    fn a_failure_has_its_reason() {
        let text = |reason| failed_status("Vpc", &"CREATE_FAILED".into(), reason).bare();
        assert_eq!(text(Some("limit\nreached")), "Vpc CREATE_FAILED: limit reached");
        assert_eq!(text(None), "Vpc CREATE_FAILED");
    }
}
