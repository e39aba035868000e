//! When a pool has how many machines: its schedule, its time zone and its end.

use super::super::cluster::{PoolSchedule, ScheduleEntry};
use super::super::file::PoolFile;
use super::super::values::{Cron, Expiry, TimeZone};
use super::optional::parse_optional;
use crate::document::{At, Fault, Problems};

/// How many scheduled actions an Auto Scaling group may have.
const MOST_ACTIONS: usize = 125;

pub(super) fn build_schedule(
    pool: &PoolFile,
    least: u32,
    most: u32,
    problems: &mut Problems,
) -> Option<PoolSchedule> {
    let time_zone: Option<Option<TimeZone>> =
        parse_optional(pool.time_zone.as_ref(), |text| problems.parse(text));
    let expires: Option<Option<Expiry>> = parse_optional(pool.expires.as_ref(), |text| problems.parse(text));
    let entries = parse_entries(pool, most, problems);
    check_number(pool, problems);
    check_meetings(&entries, problems);
    if let (Some(Some(end)), Some(zone)) = (expires, &time_zone)
        && zone.as_ref().is_none_or(TimeZone::is_default)
    {
        check_end_meets_none(&entries, end, problems);
    }
    check_direction(pool, &entries, least, problems);
    if let Some(written) = pool.time_zone.as_ref().filter(|_| pool.schedule.value.is_empty()) {
        let fault = Fault::new(format!("pool '{}' has no schedule for a time zone", pool.name.value))
            .help("timeZone is that of the schedule; expires is in UTC");
        problems.warn(written.position, fault);
    }
    let is_complete = entries.len() == pool.schedule.value.len();
    let entries = entries.into_iter().map(|entry| entry.value).collect();
    let (time_zone, expires) = (time_zone?.unwrap_or_default(), expires?);
    is_complete.then_some(PoolSchedule { entries, time_zone, expires })
}

fn parse_entries(pool: &PoolFile, most: u32, problems: &mut Problems) -> Vec<At<ScheduleEntry>> {
    let entries = pool.schedule.value.iter().filter_map(|entry| {
        let (at, count) = (&entry.value.at, &entry.value.count);
        if count.value > most {
            let fault = Fault::new(format!("count {} is more than the pool's maximum, {most}", count.value))
                .help("set maxCount of the pool to the most that it has at any time");
            problems.add(count.position, fault);
        }
        let at = At { position: at.position, value: problems.parse::<Cron>(at)? };
        Some(At { position: at.position, value: ScheduleEntry { at: at.value, count: count.value } })
    });
    entries.collect()
}

fn check_number(pool: &PoolFile, problems: &mut Problems) {
    let actions = pool.schedule.value.len() + usize::from(pool.expires.is_some());
    if actions > MOST_ACTIONS {
        let fault = Fault::new(format!(
            "{actions} scheduled actions are needed, an Auto Scaling group has room for {MOST_ACTIONS}"
        ))
        .help("name several moments in one entry, as in \"0 8,20 * * MON-FRI\"; expires takes one, too");
        problems.add(pool.schedule.position, fault);
    }
}

/// Auto Scaling takes no two actions for one moment.
fn check_meetings(entries: &[At<ScheduleEntry>], problems: &mut Problems) {
    for (index, entry) in entries.iter().enumerate() {
        if let Some(other) =
            entries[..index].iter().find(|other| other.value.at.has_common_minute(&entry.value.at))
        {
            let fault = Fault::new(format!(
                "'{}' and '{}' are the same moment at times",
                entry.value.at, other.value.at
            ))
            .help("Auto Scaling takes one action for each moment: change the days or the time of one");
            problems.add(entry.position, fault);
        }
    }
}

/// The end is a moment of every year, in UTC; in another time zone only AWS knows whether an entry is the same.
fn check_end_meets_none(entries: &[At<ScheduleEntry>], end: Expiry, problems: &mut Problems) {
    let yearly = Cron::yearly(end.time());
    if let Some(entry) = entries.iter().find(|entry| entry.value.at.has_common_minute(&yearly)) {
        let fault = Fault::new(format!("'{}' and the end, {end}, are the same moment", entry.value.at))
            .help("Auto Scaling takes one action for each moment: change one of them by a minute");
        problems.add(entry.position, fault);
    }
}

/// What comes after a pool has no machines.
fn check_direction(pool: &PoolFile, entries: &[At<ScheduleEntry>], least: u32, problems: &mut Problems) {
    let starting = entries.iter().find(|entry| entry.value.count > 0);
    let holds = |entry: &&At<ScheduleEntry>| entry.value.count < least.max(1);
    match (starting, &pool.expires) {
        (Some(starting), Some(_)) => {
            let name = &pool.name.value;
            let fault = Fault::new(format!("pool '{name}' would start again after its end, at '{}'", starting.value.at))
                .help("AWS repeats a schedule for ever: remove expires, or the entries of the schedule that have machines");
            problems.add(starting.position, fault);
        }
        (None, None) => {
            if let Some(last) = entries.iter().find(holds) {
                let fault = Fault::new(format!(
                    "nothing starts pool '{}' again after '{}'",
                    pool.name.value, last.value.at
                ))
                .help("add an entry with a count, or use expires for an end");
                problems.warn(last.position, fault);
            }
        }
        _ => {}
    }
}
