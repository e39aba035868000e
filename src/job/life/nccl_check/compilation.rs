//! The report of a check, from its machines and what was measured on them.

use super::measurements::Measurements;
use super::members::{Absence, Member, Runner};
use super::report::{Backend, MachineBandwidth, NcclCheckReport, PairBandwidth};
use super::settings::NcclCheckSettings;
use super::verdict::{Standard, judge_bandwidths, upper_median};
use crate::config::gpu::gpus_of;
use crate::config::values::InstanceType;
use crate::plural::count_of;

/// Compiles the report. `runners` are the members that measured, by their numbers.
pub(super) fn compile_report(
    settings: &NcclCheckSettings,
    members: &[Member],
    runners: &[Runner<'_>],
    measured: &Measurements,
) -> NcclCheckReport {
    let has_efa = runners.iter().any(|runner| runner.node.efa > 0);
    let is_over_efa = has_efa && settings.backend == Backend::Nccl;
    let standard = Standard {
        names: runners.iter().map(|runner| runner.node.name.clone()).collect(),
        types: runners.iter().map(|runner| runner.node.instance_type.clone()).collect(),
        expected: expected_bandwidth(runners).filter(|_| is_over_efa),
        has_efa,
        backend: settings.backend,
    };
    let verdict = judge_bandwidths(measured, &standard);
    let number_of = |member: &Member| runners.iter().position(|runner| runner.node.name == member.node.name);
    let machines = members.iter().map(|member| {
        let number = number_of(member);
        let line = line_of(member, number, measured, &standard.names);
        let problem = line.problem.clone().or_else(|| verdict.machines.get(&number?).cloned());
        MachineBandwidth { problem, ..line }
    });
    let pair = |(one, other, found): &(usize, usize, Result<f64, String>)| PairBandwidth {
        nodes: [standard.names[*one].clone(), standard.names[*other].clone()],
        bandwidth: found.as_ref().ok().copied(),
        problem: found.as_ref().err().cloned(),
    };
    let machines = machines.collect();
    let mut problems = verdict.others;
    let present = u32::try_from(members.len()).unwrap_or(u32::MAX);
    problems.extend(settings.expected_machines.filter(|expected| present < *expected).map(|expected| {
        let has = if present == 0 { "no machines".to_owned() } else { count_of(present, "machine") };
        format!("pool {} has {has}, and should have {expected}", settings.pool)
    }));
    if !runners.is_empty() && !measured.has_ended {
        problems.push("the check was not complete in time; `--timeout` gives it longer".to_owned());
    }
    NcclCheckReport {
        pool: settings.pool.clone(),
        backend: settings.backend,
        bytes: settings.bytes,
        expected: standard.expected,
        together: measured.together.as_ref().and_then(|together| together.as_ref().ok().copied()),
        machines,
        pairs: measured.pairs.iter().map(pair).collect(),
        problems,
    }
}

fn line_of(
    member: &Member,
    number: Option<usize>,
    measured: &Measurements,
    names: &[String],
) -> MachineBandwidth {
    let mut pairs = number.map(|own| pairs_with(measured, own, names)).unwrap_or_default();
    pairs.sort_by(|one, other| one.0.total_cmp(&other.0));
    let bandwidths: Vec<f64> = pairs.iter().map(|pair| pair.0).collect();
    let (left_out, problem) = match &member.absence {
        Some(Absence::LeftOut(why)) => (Some(why.clone()), None),
        Some(Absence::Problem(why)) => (None, Some(why.clone())),
        None => (None, None),
    };
    MachineBandwidth {
        node: member.node.name.clone(),
        instance: member.node.instance_id.clone(),
        instance_type: member.node.instance_type.clone(),
        transport: number.and_then(|number| measured.transports.get(&number).copied()),
        median: upper_median(&bandwidths),
        slowest: bandwidths.first().copied(),
        slowest_with: pairs.first().map(|pair| pair.1.to_owned()),
        left_out,
        problem,
    }
}

/// The bandwidths of a machine's pairs, with the other machine.
fn pairs_with<'n>(measured: &Measurements, own: usize, names: &'n [String]) -> Vec<(f64, &'n str)> {
    let pairs = measured.pairs.iter().filter_map(|(one, other, found)| {
        let with = if *one == own { *other } else { *one };
        let bandwidth = *found.as_ref().ok()?;
        (*one == own || *other == own).then(|| (bandwidth, names[with].as_str()))
    });
    pairs.collect()
}

/// What the table expects of the machines; nothing unless it expects something of each.
fn expected_bandwidth(runners: &[Runner<'_>]) -> Option<f64> {
    let of = |runner: &Runner<'_>| {
        let instance_type: InstanceType = runner.node.instance_type.as_deref()?.parse().ok()?;
        gpus_of(&instance_type).ok()??.expected_all_reduce
    };
    let expected: Option<Vec<u32>> = runners.iter().map(of).collect();
    expected?.into_iter().min().map(f64::from)
}
