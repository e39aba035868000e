//! What the pod that conducts the check has printed, read.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::report::Transport;

/// What was measured so far, by the numbers of machines.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Measurements {
    /// Machines that could not begin, and why.
    pub(super) errors: BTreeMap<usize, String>,
    /// The bus bandwidth of each pair, in GB/s, or why there is none.
    pub(super) pairs: Vec<(usize, usize, Result<f64, String>)>,
    /// The bus bandwidth of all that could take part, or why there is none.
    pub(super) together: Option<Result<f64, String>>,
    /// What each machine talks over.
    pub(super) transports: BTreeMap<usize, Transport>,
    /// The round that has begun, and how many there are.
    pub(super) round: Option<(u32, u32)>,
    /// Whether nothing more comes.
    pub(super) has_ended: bool,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    Measured { group: Vec<usize>, seconds: f64, ranks: u32 },
    Failed { group: Vec<usize>, errors: BTreeMap<String, String> },
    Machine { machine: usize, error: String },
    Network { machine: usize, network: Vec<String> },
    Round { round: u32, of: u32 },
    End { end: bool },
}

impl Measurements {
    /// Reads a log. A line that is not whole yet, or was printed by something else, is skipped.
    pub(super) fn read(log: &str, bytes: u64) -> Self {
        let mut measured = Self::default();
        for line in log.lines().filter_map(|line| serde_json::from_str(line).ok()) {
            measured.add(line, bytes);
        }
        measured
    }

    fn add(&mut self, line: Line, bytes: u64) {
        match line {
            Line::Measured { group, seconds, ranks } => {
                self.add_group(&group, Ok(bus_bandwidth(bytes, ranks, seconds)));
            }
            Line::Failed { group, errors } => {
                self.add_group(&group, Err(error_that_says_most(errors)));
            }
            Line::Machine { machine, error } => {
                self.errors.insert(machine, error);
            }
            Line::Network { machine, network } => {
                self.transports.extend(transport_in(&network).map(|transport| (machine, transport)));
            }
            Line::Round { round, of } => self.round = Some((round, of)),
            Line::End { end } => self.has_ended = end,
        }
    }

    fn add_group(&mut self, group: &[usize], found: Result<f64, String>) {
        match group {
            [one, other] if self.round.is_none_or(|(round, of)| round < of || of == 1) => {
                self.pairs.push((*one, *other, found));
            }
            _ => self.together = Some(found),
        }
    }
}

/// The error that says most: a machine whose peer has failed knows only that it got no answer.
fn error_that_says_most(errors: BTreeMap<String, String>) -> String {
    let silence = "no answer in time".to_owned();
    errors.into_values().find(|why| *why != silence).unwrap_or(silence)
}

/// GB/s that each link carries in the best algorithm, whatever the number of processes: as nccl-tests computes `busbw`.
fn bus_bandwidth(bytes: u64, ranks: u32, seconds: f64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a bandwidth has no 15 digits")]
    let bytes = bytes as f64;
    let ranks = f64::from(ranks);
    2.0 * (ranks - 1.0) / ranks * bytes / seconds / 1e9
}

/// What NCCL says that it talks over. A single process on sockets is what the others wait for.
fn transport_in(lines: &[String]) -> Option<Transport> {
    let says = |words: &str| lines.iter().any(|line| line.to_lowercase().contains(words));
    let other_provider = lines.iter().map(|line| line.to_lowercase()).any(|line| {
        line.split_once("selected provider is ").is_some_and(|(_, provider)| !provider.starts_with("efa"))
    });
    if says("using network socket") || other_provider {
        Some(Transport::Tcp)
    } else if says("selected provider is efa") {
        Some(Transport::Efa)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::{Measurements, Transport, bus_bandwidth, transport_in};

    #[test]
    fn bus_bandwidth_is_that_of_nccl_tests() {
        // Two processes send every byte once; of many, nearly twice.
        assert!((bus_bandwidth(1_000_000_000, 2, 0.5) - 2.0).abs() < 1e-9);
        assert!((bus_bandwidth(1_000_000_000, 16, 0.5) - 3.75).abs() < 1e-9);
    }

    #[test]
    fn a_log_is_read_before_and_after_its_end() {
        let log = "this machine waits\n{\"machine\": 2, \"error\": \"no torch\"}\n{\"round\": 1, \"of\": 2}\n\
            {\"group\": [0, 1], \"seconds\": 0.5, \"ranks\": 2}\n\
            {\"group\": [2, 3], \"errors\": {\"3\": \"no answer in time\"}}\n{\"round\": 2, \"of\": 2}\n";
        let begun = Measurements::read(&format!("{log}{{\"group\": [0, 1"), 1_000_000_000);
        assert_eq!(begun.pairs, [(0, 1, Ok(2.0)), (2, 3, Err("no answer in time".to_owned()))]);
        assert_eq!((begun.round, begun.has_ended, &begun.together), (Some((2, 2)), false, &None));
        assert_eq!(begun.errors.get(&2).map(String::as_str), Some("no torch"));
        // Two of the machines are all that are left.
        let rest = "{\"group\": [0, 1], \"seconds\": 1.0, \"ranks\": 2}\n\
            {\"machine\": 0, \"network\": [\"Using network Socket\"]}\n{\"end\": true}\n";
        let ended = Measurements::read(&format!("{log}{rest}"), 1_000_000_000);
        assert_eq!((ended.pairs.len(), ended.together, ended.has_ended), (2, Some(Ok(1.0)), true));
        assert_eq!(ended.transports.get(&0), Some(&Transport::Tcp));
    }

    #[test]
    fn the_only_round_of_two_machines_is_their_pair() {
        let log = "{\"round\": 1, \"of\": 1}\n{\"group\": [0, 1], \"seconds\": 1.0, \"ranks\": 2}\n";
        let measured = Measurements::read(log, 1_000_000_000);
        assert_eq!((measured.pairs.len(), measured.together), (1, None));
    }

    #[test]
    fn what_nccl_says_of_its_network_is_understood() {
        for (lines, transport) in [
            (
                &["NET/OFI Selected Provider is efa (found 4 nics)", "Using network AWS Libfabric"][..],
                Some(Transport::Efa),
            ),
            (
                &["NET/OFI Selected provider is efa, fabric is efa-direct (found 16 nics)"],
                Some(Transport::Efa),
            ),
            (&["NET/Plugin: Could not find: libnccl-net.so.", "Using network Socket"], Some(Transport::Tcp)),
            (
                &["NET/OFI Selected provider is tcp, fabric is 10.2.1.0/24 (found 1 nics)"],
                Some(Transport::Tcp),
            ),
            (
                &["NET/OFI Selected provider is efa (found 4 nics)", "Using network Socket"],
                Some(Transport::Tcp),
            ),
            (&[], None),
        ] {
            let lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
            assert_eq!(transport_in(&lines), transport, "{lines:?}");
        }
    }
}
