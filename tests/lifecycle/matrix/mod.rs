//! The survival matrix: every call of `up`, of an update and of `destroy` fails once in every way; the command survives it or reports
//! it, the next run completes the work, and after the last destroy nothing is left.

pub mod failures;
mod life;
mod table;
pub mod traces;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{LazyLock, Mutex};
use std::time::Instant;

use failures::Failure;
use life::{Call, Life, Step, Undisturbed};
use table::{Case, table, totals};

use crate::support::in_parallel_by;
use crate::support::world::World;

/// Tries some calls of every step, each in a life that it shares with one call of every other step.
fn try_calls(
    failure: Failure,
    is_tried: impl Fn(Step, &Call) -> bool + Sync,
    usual: &Undisturbed,
    worlds: &[World],
) -> Vec<Case> {
    let tried = |step: Step| -> Vec<(usize, &Call)> {
        usual.calls[&step].iter().enumerate().filter(|(_, call)| is_tried(step, call)).collect()
    };
    let tried = Step::ALL.map(|step| (step, tried(step)));
    let lives = tried.iter().map(|(_, calls)| calls.len()).max().unwrap();
    let cases = Mutex::new(Vec::new());
    in_parallel_by(failure.lives_at_once() * worlds.len(), 0..lives, |number| {
        let life = Life::beside(&worlds[number % worlds.len()]);
        for (step, calls) in &tried {
            let call = calls.get(number);
            let attempt = || life.disturb(*step, call.map(|(_, call)| *call), failure, usual);
            let ending =
                catch_unwind(AssertUnwindSafe(attempt)).unwrap_or_else(|panic| Err(words_of(&*panic)));
            let has_failed = ending.is_err();
            let (place, call) = call.map_or_else(
                || (usize::MAX, Call { operation: "undisturbed".to_owned(), number: 0 }),
                |(place, call)| (*place, (*call).clone()),
            );
            if has_failed || place != usize::MAX {
                cases.lock().unwrap().push(Case { step: *step, place, call, failure, ending });
            }
            if has_failed {
                // What comes after it would be about another cluster.
                return;
            }
        }
    });
    cases.into_inner().unwrap()
}

pub fn words_of(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
}

fn worlds() -> Vec<World> {
    (0..2).map(|_| World::alone("minimal")).collect()
}

fn expect_no_failure(cases: &[Case]) {
    let failures: Vec<String> = cases.iter().filter_map(Case::failure).collect();
    assert!(failures.is_empty(), "{} of {}:\n{}", failures.len(), cases.len(), failures.join("\n\n"));
}

/// What an undisturbed life is like, looked at once for all tests.
fn usual() -> &'static Undisturbed {
    static USUAL: LazyLock<Undisturbed> = LazyLock::new(|| Life::undisturbed(&World::of_golden("minimal")));
    &USUAL
}

#[test]
fn a_run_killed_after_any_call_is_resumed() {
    let cases = try_calls(Failure::Killed, |_, _| true, usual(), &worlds());
    eprintln!("{}", totals(&cases));
    expect_no_failure(&cases);
}

#[test]
fn a_lost_response_to_any_change_is_survived() {
    let cases = try_calls(Failure::Lost, |_, call| !call.is_reading(), usual(), &worlds());
    eprintln!("{}", totals(&cases));
    expect_no_failure(&cases);
}

/// Tries the calls named, one of each step, in one life.
fn try_these(failure: Failure, named: [(Step, &str, usize); 4]) {
    let is_tried = |step, call: &Call| named.contains(&(step, &call.operation, call.number));
    let cases = try_calls(failure, is_tried, usual(), &[World::of_golden("minimal")]);
    assert_eq!(cases.len(), named.len());
    expect_no_failure(&cases);
}

/// The time limit of one answer is half a minute; `scripts/faults` takes the time for all.
#[test]
fn a_change_that_is_never_answered_is_survived() {
    let named = [
        (Step::Up, "cloudformation:CreateChangeSet", 1),
        (Step::Update, "cloudformation:ExecuteChangeSet", 1),
        (Step::Destroy, "cloudformation:DeleteStack", 1),
        (Step::DeleteData, "elasticfilesystem:DeleteFileSystem", 1),
    ];
    try_these(Failure::Silent, named);
}

/// Where it was taken for something else before.
#[test]
fn a_denied_call_is_named() {
    let named = [
        (Step::Up, "s3:HeadBucket", 2),
        (Step::Update, "kms:ListGrants", 1),
        (Step::Destroy, "kms:ListGrants", 1),
        (Step::DeleteData, "tagging:GetResources", 1),
    ];
    try_these(Failure::Denied, named);
}

/// The failures that `scripts/faults` was asked for.
#[test]
#[ignore = "scripts/faults runs it"]
fn the_whole_matrix() {
    let asked = std::env::var("FAULTS").unwrap_or_default();
    let named = |name: &str| {
        let failure = Failure::ALL.into_iter().find(|failure| failure.name() == name);
        failure.unwrap_or_else(|| panic!("'{name}' is none of {:?}", Failure::ALL.map(Failure::name)))
    };
    let mut failures: Vec<Failure> = asked.split_whitespace().map(named).collect();
    if failures.is_empty() {
        failures.extend(Failure::ALL);
    }
    let worlds = worlds();
    let mut cases = Vec::new();
    for failure in failures {
        let started = Instant::now();
        let tried = try_calls(failure, |_, _| true, usual(), &worlds);
        let failed = tried.iter().filter_map(Case::failure).count();
        eprintln!("{}: {} calls, {failed} failed, {:.0?}", failure.name(), tried.len(), started.elapsed());
        cases.extend(tried);
    }
    eprintln!("{}", table(&cases));
    expect_no_failure(&cases);
}
