//! The last lines of a log that explain a failure: those of the program, and not the page that torchrun prints behind them.

use crate::kube::{ApiServer, LogPart};

/// How many are shown.
const LINES: usize = 15;
/// torchrun's page has seven lines for each process that failed, and its own traceback.
const READ_LINES: u32 = 120;
/// A line has no limit in Kubernetes.
const LONGEST_TEXT: usize = 256 << 10;
/// Begins what torchrun prints of a failure, in a line of its log.
const TORCHRUN_FAILED: &str = "failed (exitcode:";
/// Its module, by the path or, in older versions, by the name.
const TORCHRUN_MODULES: [&str; 2] =
    ["torch/distributed/elastic/multiprocessing/api.py", "torch.distributed.elastic.multiprocessing.api"];
/// A line of these stands before and behind the page.
const RULE: &str = "====================";
const LAUNCHER: &str = "infra: ";

/// The last lines a pod printed. What explains a failure must not become one: without a pod there are none.
pub(super) async fn last_lines(api: &ApiServer, namespace: &str, pod: &str) -> Vec<String> {
    let part = LogPart { tail: Some(READ_LINES), ..LogPart::default() };
    let Ok(mut body) = api.pod_log(namespace, pod, part).await else { return Vec::new() };
    let text = body.beginning(LONGEST_TEXT).await.unwrap_or_default();
    telling_lines(String::from_utf8_lossy(&text).lines())
}

/// The last of some lines, without torchrun's page.
pub(super) fn telling_lines<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<String> {
    let (mut kept, mut rules_to_come) = (Vec::new(), 0);
    for line in lines {
        if is_begin_of_page(line) {
            // It says which of the processes failed, and how.
            kept.push(line.to_owned());
            rules_to_come = 2;
        } else if rules_to_come == 0 || line.starts_with(LAUNCHER) {
            // The launcher speaks when torchrun has ended.
            rules_to_come = 0;
            kept.push(line.to_owned());
        } else if line.starts_with(RULE) {
            rules_to_come -= 1;
        }
    }
    kept.split_off(kept.len().saturating_sub(LINES))
}

fn is_begin_of_page(line: &str) -> bool {
    line.contains(TORCHRUN_FAILED) && TORCHRUN_MODULES.iter().any(|module| line.contains(module))
}

#[cfg(test)]
mod tests {
    use super::telling_lines;

    const BEGIN: &str = "E1118 02:08:20.114000 71 torch/distributed/elastic/multiprocessing/api.py:984] failed (exitcode: 3) local_rank: 0 (pid: 93) of binary: /usr/bin/python";
    const OLD_BEGIN: &str = "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: 3) local_rank: 0 (pid: 93) of binary: /usr/bin/python";

    fn page() -> Vec<String> {
        let rule = "=".repeat(60);
        let mut lines: Vec<String> =
            (0..20).map(|number| format!("  File \"run.py\", line {number}")).collect();
        lines.extend([
            rule.clone(),
            "train.py FAILED".to_owned(),
            "-".repeat(60),
            "  exitcode  : 3".to_owned(),
            rule,
        ]);
        lines
    }

    fn told(before: &[&str], begin: &str, after: &[&str]) -> Vec<String> {
        let page = page();
        let all = before.iter().copied().chain([begin]).chain(page.iter().map(String::as_str));
        telling_lines(all.chain(after.iter().copied()))
    }

    #[test]
    fn the_page_of_torchrun_does_not_hide_what_the_program_said() {
        let ours = "infra: the program exited with 1";
        for begin in [BEGIN, OLD_BEGIN] {
            assert_eq!(
                told(&["epoch 1", "a bad sample"], begin, &[ours]),
                ["epoch 1", "a bad sample", begin, ours]
            );
        }
        // A script may go on.
        assert_eq!(
            told(&["one"], BEGIN, &["two", "===================="]),
            ["one", BEGIN, "two", "===================="]
        );
    }

    #[test]
    fn a_page_that_is_cut_off_ends_with_the_launcher() {
        let ends = "infra: the program exited with 1";
        let lines = ["one", BEGIN, "Traceback", ends, "two"];
        assert_eq!(telling_lines(lines.into_iter()), ["one", BEGIN, ends, "two"]);
    }

    #[test]
    fn other_lines_stay_and_the_last_count() {
        let lines = ["====================", "failed (exitcode: 3)", "===================="];
        assert_eq!(telling_lines(lines.into_iter()), lines);
        let many: Vec<String> = (0..40).map(|number| number.to_string()).collect();
        assert_eq!(telling_lines(many.iter().map(String::as_str)), many[25..]);
    }
}
