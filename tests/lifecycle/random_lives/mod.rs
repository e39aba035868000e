//! Whole lives in random order: up, changes of every kind, kills, lost answers, throttling, a second operator, foreign resources,
//! destroy, two faults at once. After every act nothing is orphaned, no data is lost, the exit code was true, and the next run
//! converges. The same seed plays the same life.

mod chance;
mod cluster_file;
mod figures;
mod groups;
mod life;
mod story;
mod verdict;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::time::Instant;

use chance::Chance;
use figures::Figures;
use life::Life;
use story::Story;

use crate::matrix::words_of;
use crate::support::in_parallel_by;
use crate::support::world::World;

/// Lives at the same time, on each stand-in: they mostly wait.
const LIVES_AT_ONCE: usize = 3;

/// Plays a life; returns what was tried, and why it failed.
fn play(seed: u64, world: &World) -> (Figures, Option<String>) {
    let mut chance = Chance::of_seed(seed);
    let story = Story::draw(&mut chance);
    let mut life = Life::beside(world, &story, chance);
    let played = catch_unwind(AssertUnwindSafe(|| life.play(&story)));
    let played = played.unwrap_or_else(|panic| Err(words_of(&*panic)));
    let failure = played.err().map(|error| format!("seed {seed}: {error}\nthe whole life: {story:#?}"));
    (life.figures, failure)
}

fn play_all(seeds: std::ops::Range<u64>) {
    let started = Instant::now();
    let worlds: Vec<World> = (0..2).map(|_| World::alone("minimal")).collect();
    let count = seeds.end - seeds.start;
    let (figures, failures) = (Mutex::new(Figures::default()), Mutex::new(Vec::new()));
    in_parallel_by(LIVES_AT_ONCE * worlds.len(), seeds, |seed| {
        let begun = Instant::now();
        let (tried, failure) = play(seed, &worlds[usize::try_from(seed).unwrap() % worlds.len()]);
        figures.lock().unwrap().add(&tried);
        eprintln!(
            "seed {seed}: {} ({tried}; {:.0?})",
            if failure.is_some() { "FAILED" } else { "ok" },
            begun.elapsed()
        );
        if let Some(failure) = failure {
            eprintln!("{failure}");
            failures.lock().unwrap().push(failure);
        }
    });
    let (figures, failures) = (figures.into_inner().unwrap(), failures.into_inner().unwrap());
    eprintln!("{count} lives, {} failed, {:.0?}: {figures}", failures.len(), started.elapsed());
    assert!(failures.is_empty(), "{} of {count} lives failed:\n{}", failures.len(), failures.join("\n\n"));
}

#[test]
fn a_few_random_lives() {
    play_all(1..7);
}

/// As many as `scripts/lives` was asked for.
#[test]
#[ignore = "scripts/lives runs it"]
fn many_random_lives() {
    let number = |name: &str| -> u64 { std::env::var(name).unwrap().parse().unwrap() };
    let first = number("SEED");
    play_all(first..first + number("COUNT"));
}
