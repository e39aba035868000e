//! The survival matrix: every call of `up`, of an update and of `destroy` goes wrong once in every way; the command gets over it or
//! says what it was, the next run brings things to their end, and after the last destroy nothing is left.

mod life;
mod table;
mod traces;
mod ways;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::time::Instant;

use life::{Call, Life, Step, Undisturbed};
use table::{Case, table};
use ways::Way;

use crate::support::so_many_at_once;
use crate::support::world::World;

/// Lives at the same time, on each stand-in.
const LIVES: usize = 5;

/// Tries some calls of every step, each in a life that it shares with one call of every other step.
fn try_calls(
    way: Way,
    is_tried: impl Fn(&Call) -> bool + Sync,
    usual: &Undisturbed,
    worlds: &[World],
) -> Vec<Case> {
    let tried = |step: Step| -> Vec<(usize, &Call)> {
        usual.calls[&step].iter().enumerate().filter(|(_, call)| is_tried(call)).collect()
    };
    let tried = Step::ALL.map(|step| (step, tried(step)));
    let lives = tried.iter().map(|(_, calls)| calls.len()).max().unwrap();
    let cases = Mutex::new(Vec::new());
    so_many_at_once(LIVES * worlds.len(), 0..lives, |number| {
        let life = Life::beside(&worlds[number % worlds.len()]);
        for (step, calls) in &tried {
            let call = calls.get(number);
            let attempt = || life.disturb(*step, call.map(|(_, call)| *call), way, usual);
            let ending =
                catch_unwind(AssertUnwindSafe(attempt)).unwrap_or_else(|panic| Err(words_of(&*panic)));
            let has_failed = ending.is_err();
            let (place, call) = call.map_or_else(
                || (usize::MAX, Call { operation: "undisturbed".to_owned(), number: 0 }),
                |(place, call)| (*place, (*call).clone()),
            );
            if has_failed || place != usize::MAX {
                cases.lock().unwrap().push(Case { step: *step, place, call, way, ending });
            }
            if has_failed {
                // What comes after it would be about another cluster.
                return;
            }
        }
    });
    cases.into_inner().unwrap()
}

fn words_of(panic: &(dyn std::any::Any + Send)) -> String {
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

#[test]
fn a_change_may_be_the_last_that_a_run_does_or_its_answer_be_lost() {
    let worlds = worlds();
    let usual = Life::undisturbed(&worlds[0]);
    let mut cases = Vec::new();
    for way in [Way::Killed, Way::Lost] {
        cases.extend(try_calls(way, |call| !call.is_reading(), &usual, &worlds));
    }
    eprintln!("{}", table(&cases));
    expect_no_failure(&cases);
}

/// The ways that `scripts/faults` was asked for.
#[test]
#[ignore = "scripts/faults runs it"]
fn the_whole_matrix() {
    let asked = std::env::var("FAULTS").unwrap_or_default();
    let asked: Vec<&str> = asked.split_whitespace().collect();
    let unknown: Vec<_> =
        asked.iter().filter(|name| Way::ALL.iter().all(|way| way.name() != **name)).collect();
    assert!(unknown.is_empty(), "{unknown:?} are none of {:?}", Way::ALL.map(Way::name));
    let worlds = worlds();
    let usual = Life::undisturbed(&worlds[0]);
    let mut cases = Vec::new();
    for way in Way::ALL.into_iter().filter(|way| asked.is_empty() || asked.contains(&way.name())) {
        let started = Instant::now();
        let tried = try_calls(way, |_| true, &usual, &worlds);
        let failed = tried.iter().filter_map(Case::failure).count();
        eprintln!("{}: {} calls, {failed} failed, {:.0?}", way.name(), tried.len(), started.elapsed());
        cases.extend(tried);
    }
    println!("{}", table(&cases));
    expect_no_failure(&cases);
}
