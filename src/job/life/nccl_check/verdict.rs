//! Which machine is to blame for what was measured.
//!
//! A pair is as fast as the slower of its machines, so that a machine is at least as fast as its best pair. Machines are compared with
//! those of their own type.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::measurements::Measurements;
use super::report::{Backend, Transport, gigabytes_in_words};
use crate::plural::count_of;

/// The part of what others reach below which a machine or a pair is slow. Gloo's processors may have other work.
const fn slow_part(backend: Backend) -> f64 {
    match backend {
        Backend::Nccl => 0.7,
        Backend::Gloo => 0.5,
    }
}

/// What machines should do.
#[derive(Clone, Debug)]
pub(super) struct Standard {
    /// The names of the machines.
    pub(super) names: Vec<String>,
    /// The instance types of the machines.
    pub(super) types: Vec<Option<String>>,
    /// GB/s that each must reach.
    pub(super) expected: Option<f64>,
    /// Whether each has EFA.
    pub(super) has_efa: bool,
    /// The library that was measured with.
    pub(super) backend: Backend,
}

/// What is wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Verdict {
    /// With single machines.
    pub(super) machines: BTreeMap<usize, String>,
    /// With anything else.
    pub(super) others: Vec<String>,
}

/// Judges what was measured.
pub(super) fn judge_bandwidths(measured: &Measurements, standard: &Standard) -> Verdict {
    let mut verdict = Verdict { machines: measured.errors.clone(), others: Vec::new() };
    blame_failures(measured, standard, &mut verdict);
    blame_tcp(measured, standard, &mut verdict);
    blame_slowness(measured, standard, &mut verdict);
    if let Some(together) = &measured.together {
        judge_together(together, standard, &mut verdict);
    }
    verdict
}

/// Pairs that failed: machines that reach nobody while others do, then the machine that most of the rest have in common; pairs that are
/// left are named as such.
fn blame_failures(measured: &Measurements, standard: &Standard, verdict: &mut Verdict) {
    let succeeds = |number: usize| pairs_of(measured, number).any(|pair| pair.2.is_ok());
    if measured.pairs.iter().any(|pair| pair.2.is_ok()) {
        for number in (0..standard.names.len()).filter(|number| !succeeds(*number)) {
            let failed = count_of(pairs_of(measured, number).count(), "pair");
            let why = pairs_of(measured, number).find_map(|pair| pair.2.as_ref().err());
            if let Some(why) = why {
                let text = format!("it reaches no other machine, in {failed}: {why}");
                verdict.machines.entry(number).or_insert(text);
            }
        }
    }
    loop {
        let open: Vec<(usize, usize, &String)> = measured
            .pairs
            .iter()
            .filter(|(one, other, _)| {
                [one, other].iter().all(|number| !verdict.machines.contains_key(number))
            })
            .filter_map(|(one, other, found)| found.as_ref().err().map(|why| (*one, *other, why)))
            .collect();
        let failures =
            |number: usize| open.iter().filter(|pair| pair.0 == number || pair.1 == number).count();
        let mut counted: Vec<(usize, usize)> =
            (0..standard.names.len()).map(|number| (failures(number), number)).collect();
        counted.sort_by(|one, other| other.cmp(one));
        match counted.as_slice() {
            [(most, number), (next, _), ..] if most > next => {
                let all = pairs_of(measured, *number).count();
                let why = open.iter().find(|pair| pair.0 == *number || pair.1 == *number);
                let why = why.map(|pair| pair.2.as_str()).unwrap_or_default();
                let text = format!("{most} of its {} failed: {why}", count_of(all, "pair"));
                verdict.machines.insert(*number, text);
            }
            _ => {
                verdict.others.extend(open.iter().map(|(one, other, why)| {
                    format!("{} and {}: {why}", standard.names[*one], standard.names[*other])
                }));
                return;
            }
        }
    }
}

fn blame_tcp(measured: &Measurements, standard: &Standard, verdict: &mut Verdict) {
    if standard.backend != Backend::Nccl || !standard.has_efa {
        return;
    }
    for (number, transport) in &measured.transports {
        if *transport == Transport::Tcp {
            let text = "NCCL uses TCP instead of EFA".to_owned();
            verdict.machines.entry(*number).or_insert(text);
        }
    }
}

fn blame_slowness(measured: &Measurements, standard: &Standard, verdict: &mut Verdict) {
    let mut open: Vec<Pair> = measured
        .pairs
        .iter()
        .filter_map(|(one, other, found)| {
            let bandwidth = *found.as_ref().ok()?;
            Some(Pair { machines: [*one, *other], bandwidth, part: 1.0 })
        })
        .collect();
    let slow = slow_part(standard.backend);
    let references = reference_bandwidths(&open, standard, verdict);
    for pair in &mut open {
        let [one, other] = pair.machines.map(|number| references[number]);
        pair.part = one.zip(other).map_or(1.0, |(one, other)| pair.bandwidth / one.min(other));
    }
    open.retain(|pair| !pair.machines.iter().any(|number| verdict.machines.contains_key(number)));
    // The slowest goes first: what its pairs say of the others is not their fault. Then those that are slow with most.
    for (fewest_pairs, of) in [(1, best_bandwidth as fn(&[f64]) -> Option<f64>), (2, upper_median)] {
        loop {
            let candidates = (0..standard.names.len()).filter_map(|number| {
                let own: Vec<&Pair> = pairs_with(&open, number).collect();
                let part = of(&own.iter().map(|pair| pair.part).collect::<Vec<_>>())?;
                let bandwidth = of(&own.iter().map(|pair| pair.bandwidth).collect::<Vec<_>>())?;
                let is_slow = own.len() >= fewest_pairs && part < slow;
                is_slow.then_some((part, number, bandwidth, references[number]?))
            });
            let slowest = candidates.min_by(|one, other| compare_bandwidths(one.0, other.0));
            let Some((_, number, bandwidth, reference)) = slowest else { break };
            let (bandwidth, reference) = (gigabytes_in_words(bandwidth), gigabytes_in_words(reference));
            let how = if fewest_pairs == 1 { "at most" } else { "usually" };
            verdict.machines.insert(number, format!("slow: {how} {bandwidth}, others reach {reference}"));
            open.retain(|pair| !pair.machines.contains(&number));
        }
    }
    verdict.others.extend(open.iter().filter(|pair| pair.part < slow).map(|pair| {
        let [one, other] = pair.machines.map(|number| &standard.names[number]);
        let bandwidth = gigabytes_in_words(pair.bandwidth);
        format!("{one} and {other} reach {bandwidth} with each other, and more with others")
    }));
    let Some(expected) = standard.expected else { return };
    for number in 0..standard.names.len() {
        let bandwidths: Vec<f64> = pairs_with(&open, number).map(|pair| pair.bandwidth).collect();
        if let Some(best) = best_bandwidth(&bandwidths).filter(|best| *best < expected) {
            let (best, expected) = (gigabytes_in_words(best), gigabytes_in_words(expected));
            verdict.machines.insert(number, format!("at most {best}; {expected} is expected"));
        }
    }
}

/// A pair that was measured.
#[derive(Clone, Debug)]
struct Pair {
    machines: [usize; 2],
    bandwidth: f64,
    /// The part that this is of what its machines should reach.
    part: f64,
}

fn pairs_with(pairs: &[Pair], number: usize) -> impl Iterator<Item = &Pair> {
    pairs.iter().filter(move |pair| pair.machines.contains(&number))
}

/// For each machine, what those of its type reach; nothing if it is the only one.
fn reference_bandwidths(open: &[Pair], standard: &Standard, verdict: &Verdict) -> Vec<Option<f64>> {
    let numbers = 0..standard.names.len();
    let alike =
        |number: usize| numbers.clone().filter(move |other| standard.types[*other] == standard.types[number]);
    let reference = |number: usize| {
        let bests: Vec<f64> = alike(number)
            .filter(|other| !verdict.machines.contains_key(other))
            .filter_map(|other| {
                best_bandwidth(&pairs_with(open, other).map(|pair| pair.bandwidth).collect::<Vec<_>>())
            })
            .collect();
        upper_median(&bests).filter(|_| alike(number).count() > 1)
    };
    numbers.clone().map(reference).collect()
}

fn judge_together(together: &Result<f64, String>, standard: &Standard, verdict: &mut Verdict) {
    match (together, standard.expected) {
        (Err(why), _) => verdict.others.push(format!("all machines together: {why}")),
        // A machine that is slow alone is why all are slow together.
        (Ok(bandwidth), Some(expected)) if *bandwidth < expected && verdict.machines.is_empty() => {
            verdict.others.push(format!(
                "all machines together reach {}; {} is expected",
                gigabytes_in_words(*bandwidth),
                gigabytes_in_words(expected)
            ));
        }
        (Ok(_), _) => {}
    }
}

fn pairs_of(
    measured: &Measurements,
    number: usize,
) -> impl Iterator<Item = &(usize, usize, Result<f64, String>)> {
    measured.pairs.iter().filter(move |(one, other, _)| *one == number || *other == number)
}

fn compare_bandwidths(one: f64, other: f64) -> Ordering {
    one.total_cmp(&other)
}

fn best_bandwidth(values: &[f64]) -> Option<f64> {
    values.iter().copied().max_by(|one, other| compare_bandwidths(*one, *other))
}

/// The median; of an even number the greater of the two in the middle, so that one slow partner of two says nothing.
pub(super) fn upper_median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(|one, other| compare_bandwidths(*one, *other));
    sorted.get(sorted.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::measurements::Measurements;
    use super::super::report::{Backend, Transport};
    use super::super::rounds::rounds_of_pairs;
    use super::{Standard, Verdict, judge_bandwidths};

    fn standard(machines: usize) -> Standard {
        Standard {
            names: (0..machines).map(|number| format!("m{number}")).collect(),
            types: vec![Some("p5.48xlarge".to_owned()); machines],
            expected: None,
            has_efa: false,
            backend: Backend::Nccl,
        }
    }

    /// Every pair of machines, as `of` says.
    fn measured(machines: usize, of: impl Fn(usize, usize) -> Result<f64, String>) -> Measurements {
        let pairs = rounds_of_pairs(machines).into_iter().flatten().filter(|group| group.len() == 2);
        let pairs = pairs.map(|pair| (pair[0], pair[1], of(pair[0], pair[1]))).collect();
        Measurements { pairs, ..Measurements::default() }
    }

    fn of_speeds(speeds: &[f64]) -> Measurements {
        measured(speeds.len(), |one, other| Ok(speeds[one].min(speeds[other])))
    }

    fn blamed(verdict: &Verdict) -> Vec<usize> {
        verdict.machines.keys().copied().collect()
    }

    #[test]
    fn machines_that_are_about_as_fast_are_healthy() {
        for speeds in [&[96.0, 94.0][..], &[90.0, 96.0, 80.0], &[1.2, 1.0, 1.1, 0.95, 1.3]] {
            assert_eq!(
                judge_bandwidths(&of_speeds(speeds), &standard(speeds.len())),
                Verdict::default(),
                "{speeds:?}"
            );
        }
    }

    #[test]
    fn the_slow_machines_are_named_and_no_other() {
        for (speeds, slow) in [
            (&[96.0, 11.0, 95.0][..], vec![1]),
            (&[96.0, 95.0, 94.0, 11.0], vec![3]),
            (&[11.0, 95.0, 12.0, 96.0], vec![0, 2]),
            (&[11.0, 95.0, 50.0, 96.0, 97.0, 94.0], vec![0, 2]),
        ] {
            let verdict = judge_bandwidths(&of_speeds(speeds), &standard(speeds.len()));
            assert_eq!((blamed(&verdict), verdict.others.len()), (slow, 0), "{speeds:?}");
        }
        let verdict = judge_bandwidths(&of_speeds(&[96.0, 11.0, 95.0]), &standard(3));
        assert_eq!(verdict.machines[&1], "slow: at most 11.0 GB/s, others reach 95.0 GB/s");
    }

    #[test]
    fn processors_with_other_work_are_no_slow_network() {
        let over_gloo = Standard { backend: Backend::Gloo, ..standard(4) };
        let noisy = of_speeds(&[0.61, 0.42, 0.71, 0.6]);
        assert_eq!(judge_bandwidths(&noisy, &over_gloo), Verdict::default());
        assert_eq!(blamed(&judge_bandwidths(&noisy, &standard(4))), [1]);
        assert_eq!(blamed(&judge_bandwidths(&of_speeds(&[0.61, 0.2, 0.71, 0.6]), &over_gloo)), [1]);
    }

    #[test]
    fn a_machine_that_is_slow_with_most_is_named_and_a_pair_that_is_slow_alone_too() {
        let partly = measured(5, |one, other| Ok(if one == 0 && other != 1 { 20.0 } else { 96.0 }));
        let verdict = judge_bandwidths(&partly, &standard(5));
        assert_eq!((blamed(&verdict), verdict.others.len()), (vec![0], 0));
        assert_eq!(verdict.machines[&0], "slow: usually 20.0 GB/s, others reach 96.0 GB/s");
        let pair = measured(4, |one, other| Ok(if (one, other) == (1, 2) { 20.0 } else { 96.0 }));
        let verdict = judge_bandwidths(&pair, &standard(4));
        assert_eq!(blamed(&verdict), Vec::<usize>::new());
        assert_eq!(verdict.others, ["m1 and m2 reach 20.0 GB/s with each other, and more with others"]);
    }

    #[test]
    fn a_machine_that_all_failing_pairs_have_in_common_is_named() {
        let hangs = |who: &'static [usize]| {
            move |one: usize, other: usize| {
                let hangs = who.contains(&one) || who.contains(&other);
                if hangs { Err("no answer in time".to_owned()) } else { Ok(96.0) }
            }
        };
        let verdict = judge_bandwidths(&measured(4, hangs(&[2])), &standard(4));
        assert_eq!(
            verdict.machines,
            BTreeMap::from([(2, "it reaches no other machine, in 3 pairs: no answer in time".to_owned())])
        );
        let verdict = judge_bandwidths(&measured(5, hangs(&[0, 3])), &standard(5));
        assert_eq!((blamed(&verdict), verdict.others.len()), (vec![0, 3], 0));
        let partly = measured(5, |one, other| match (one, other) {
            (1, 2..=4) => Err("no answer in time".to_owned()),
            _ => Ok(96.0),
        });
        let verdict = judge_bandwidths(&partly, &standard(5));
        assert_eq!(
            verdict.machines,
            BTreeMap::from([(1, "3 of its 4 pairs failed: no answer in time".to_owned())])
        );
        let verdict = judge_bandwidths(&measured(2, hangs(&[0])), &standard(2));
        assert_eq!(verdict.others, ["m0 and m1: no answer in time"]);
    }

    #[test]
    fn what_the_table_expects_is_asked_of_every_machine() {
        let expecting = Standard { expected: Some(240.0), ..standard(3) };
        let verdict = judge_bandwidths(&of_speeds(&[300.0, 310.0, 305.0]), &expecting);
        assert_eq!(verdict, Verdict::default());
        let verdict = judge_bandwidths(&of_speeds(&[100.0, 101.0, 102.0]), &expecting);
        assert_eq!(blamed(&verdict), [0, 1, 2]);
        assert_eq!(verdict.machines[&0], "at most 100 GB/s; 240 GB/s is expected");
        let slow_together = Measurements { together: Some(Ok(90.0)), ..of_speeds(&[300.0, 310.0, 305.0]) };
        let verdict = judge_bandwidths(&slow_together, &expecting);
        assert_eq!(verdict.others, ["all machines together reach 90.0 GB/s; 240 GB/s is expected"]);
    }

    #[test]
    fn tcp_is_a_problem_where_there_is_efa() {
        let over = |transport| (0..3).map(|number| (number, transport)).collect();
        let uses_tcp = Measurements { transports: over(Transport::Tcp), ..of_speeds(&[3.0, 3.1, 3.2]) };
        let with_efa = Standard { has_efa: true, expected: Some(240.0), ..standard(3) };
        let verdict = judge_bandwidths(&uses_tcp, &with_efa);
        assert_eq!(verdict.machines.into_values().collect::<Vec<_>>(), ["NCCL uses TCP instead of EFA"; 3]);
        assert_eq!(judge_bandwidths(&uses_tcp, &standard(3)), Verdict::default());
        let uses_efa = Measurements { transports: over(Transport::Efa), ..of_speeds(&[300.0, 310.0, 320.0]) };
        assert_eq!(judge_bandwidths(&uses_efa, &with_efa), Verdict::default());
    }

    #[test]
    fn machines_are_compared_with_those_of_their_type() {
        let mut mixed = standard(4);
        mixed.types[2] = Some("g5.xlarge".to_owned());
        mixed.types[3] = Some("g5.xlarge".to_owned());
        assert_eq!(judge_bandwidths(&of_speeds(&[96.0, 95.0, 10.0, 11.0]), &mixed), Verdict::default());
        let verdict = judge_bandwidths(&of_speeds(&[96.0, 95.0, 10.0, 2.0]), &mixed);
        assert_eq!(blamed(&verdict), [3]);
    }

    #[test]
    fn a_machine_that_cannot_begin_is_named_once() {
        let lost = measured(3, |_, other| if other == 2 { Err("gone".to_owned()) } else { Ok(96.0) });
        let lost = Measurements { errors: BTreeMap::from([(2, "gone".to_owned())]), ..lost };
        let verdict = judge_bandwidths(&lost, &standard(3));
        assert_eq!(
            verdict,
            Verdict { machines: BTreeMap::from([(2, "gone".to_owned())]), others: Vec::new() }
        );
    }
}
