//! The one clock: every pause of a run, its time limit, and the user's interruption.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

/// Why a wait ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitEnd {
    /// The user interrupted it.
    Interrupted,
    /// The time limit was reached.
    TimedOut,
}

impl fmt::Display for WaitEnd {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Interrupted => "detached",
            Self::TimedOut => "the time limit was reached",
        })
    }
}

/// Ends all waits of a run.
#[derive(Clone, Debug)]
pub(crate) struct Interrupter(Arc<watch::Sender<bool>>);

impl Interrupter {
    /// Ends all waits now.
    pub(crate) fn interrupt(&self) {
        self.0.send_replace(true);
    }

    /// Whether all waits were ended.
    #[must_use]
    pub(crate) fn is_interrupted(&self) -> bool {
        *self.0.borrow()
    }
}

/// How long a run may wait.
#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    interrupted: watch::Receiver<bool>,
    deadline: Option<Instant>,
    tempo: Tempo,
}

impl Waiting {
    /// Waits at most this long in total, or until it is interrupted.
    #[must_use]
    pub(crate) fn new(limit: Option<Duration>) -> (Interrupter, Self) {
        let (sender, interrupted) = watch::channel(false);
        let deadline = limit.and_then(|limit| Instant::now().checked_add(limit));
        (Interrupter(Arc::new(sender)), Self { interrupted, deadline, tempo: Tempo::default() })
    }

    /// Shortens every pause, and no limit.
    #[must_use]
    pub(crate) fn at_tempo(self, tempo: Tempo) -> Self {
        Self { tempo, ..self }
    }

    /// Pauses.
    pub(crate) async fn pause(&self, duration: Duration) -> Result<(), WaitEnd> {
        let wake = Instant::now() + self.tempo.shorten(duration);
        let (until, ends) = match self.deadline {
            Some(deadline) if deadline <= wake => (deadline, true),
            _ => (wake, false),
        };
        let mut interrupted = self.interrupted.clone();
        tokio::select! {
            biased;
            Ok(_) = interrupted.wait_for(|interrupted| *interrupted) => Err(WaitEnd::Interrupted),
            () = sleep_until(until) => if ends { Err(WaitEnd::TimedOut) } else { Ok(()) },
        }
    }

    /// A limit after which the run continues without what it waits for.
    #[must_use]
    pub(crate) fn optional_wait(&self, limit: Duration) -> OptionalWait {
        OptionalWait { own: self.at_most(limit), run: self.clone() }
    }

    /// Why waits end at once, if they do.
    #[must_use]
    pub(crate) fn end(&self) -> Option<WaitEnd> {
        if *self.interrupted.borrow() {
            return Some(WaitEnd::Interrupted);
        }
        self.deadline.is_some_and(|deadline| deadline <= Instant::now()).then_some(WaitEnd::TimedOut)
    }

    /// A limit of its own for a part of the run.
    #[must_use]
    pub(crate) fn at_most(&self, limit: Duration) -> Self {
        let own = Instant::now() + limit;
        let deadline = self.deadline.map_or(own, |deadline| deadline.min(own));
        Self { deadline: Some(deadline), ..self.clone() }
    }
}

/// How long a run waits for something that it can continue without.
#[derive(Clone, Debug)]
pub(crate) struct OptionalWait {
    own: Waiting,
    run: Waiting,
}

impl OptionalWait {
    /// Pauses; returns whether there is time left. Only the end of the whole run is an error.
    pub(crate) async fn pause(&self, duration: Duration) -> Result<bool, WaitEnd> {
        match self.own.pause(duration).await {
            Err(WaitEnd::TimedOut) => self.run.pause(Duration::ZERO).await.map(|()| false),
            other => other.map(|()| true),
        }
    }
}

/// How long pauses are, as a fraction of what they are for users; less than one only for tests, which would sleep most of their time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Tempo(f64);

impl Tempo {
    /// A pause at this tempo.
    #[must_use]
    pub(crate) fn shorten(self, pause: Duration) -> Duration {
        pause.mul_f64(self.0)
    }
}

impl Default for Tempo {
    fn default() -> Self {
        Self(1.0)
    }
}

impl FromStr for Tempo {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.parse() {
            Ok(part) if part > 0.0 && part <= 1.0 => Ok(Self(part)),
            _ => Err(format!("'{text}' is not a number above 0 and at most 1")),
        }
    }
}

/// Pauses between polls of the same thing: short at first, then as long as rate limits ask for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    next: Duration,
    longest: Duration,
}

impl Pace {
    /// For a stack: a poll every two seconds at first, every ten at last.
    #[must_use]
    pub(crate) fn of_stack() -> Self {
        Self { next: Duration::from_secs(2), longest: Duration::from_secs(10) }
    }

    /// For what takes seconds.
    #[must_use]
    pub(crate) fn of_moment() -> Self {
        Self { next: Duration::from_millis(500), longest: Duration::from_secs(5) }
    }

    /// The next pause; the one after it is half as long again.
    pub(crate) fn next_pause(&mut self) -> Duration {
        let pause = self.next;
        self.next = (pause * 3 / 2).min(self.longest);
        pause
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::Instant;

    use super::{Pace, Tempo, WaitEnd, Waiting};

    #[test]
    fn a_stack_is_polled_every_two_to_ten_seconds() {
        let mut pace = Pace::of_stack();
        let pauses: Vec<u128> = (0..7).map(|_| pace.next_pause().as_millis()).collect();
        assert_eq!(pauses, [2000, 3000, 4500, 6750, 10000, 10000, 10000]);
    }

    #[tokio::test(start_paused = true)]
    async fn the_limit_and_the_user_end_a_wait() {
        let (interrupter, waiting) = Waiting::new(Some(Duration::from_secs(10)));
        let start = Instant::now();
        assert_eq!(waiting.end(), None);
        assert_eq!(waiting.pause(Duration::from_secs(4)).await, Ok(()));
        assert_eq!(waiting.pause(Duration::from_mins(1)).await, Err(WaitEnd::TimedOut));
        assert_eq!(start.elapsed(), Duration::from_secs(10));
        assert_eq!(waiting.end(), Some(WaitEnd::TimedOut));
        interrupter.interrupt();
        assert_eq!(waiting.pause(Duration::from_secs(1)).await, Err(WaitEnd::Interrupted));
        assert_eq!(waiting.end(), Some(WaitEnd::Interrupted));
        assert_eq!(start.elapsed(), Duration::from_secs(10));
    }

    #[tokio::test(start_paused = true)]
    async fn an_optional_wait_ends_before_the_run_and_with_it() {
        let (interrupter, waiting) = Waiting::new(Some(Duration::from_secs(10)));
        let wait = waiting.optional_wait(Duration::from_secs(3));
        assert_eq!(wait.pause(Duration::from_secs(2)).await, Ok(true));
        assert_eq!(wait.pause(Duration::from_secs(2)).await, Ok(false));
        let wait = waiting.optional_wait(Duration::from_mins(1));
        assert_eq!(wait.pause(Duration::from_secs(30)).await, Err(WaitEnd::TimedOut));
        let (again, waiting) = Waiting::new(None);
        let wait = waiting.optional_wait(Duration::from_secs(3));
        again.interrupt();
        assert_eq!(wait.pause(Duration::from_secs(5)).await, Err(WaitEnd::Interrupted));
        drop(interrupter);
    }

    #[tokio::test(start_paused = true)]
    async fn a_tempo_shortens_pauses_and_no_limit() {
        let (_interrupter, waiting) = Waiting::new(Some(Duration::from_secs(10)));
        let waiting = waiting.at_tempo(Tempo(0.1));
        let start = Instant::now();
        assert_eq!(waiting.pause(Duration::from_secs(40)).await, Ok(()));
        assert_eq!(start.elapsed(), Duration::from_secs(4));
        assert_eq!(waiting.at_most(Duration::from_secs(2)).pause(Duration::from_secs(10)).await, Ok(()));
        assert_eq!(
            waiting.optional_wait(Duration::from_secs(2)).pause(Duration::from_secs(30)).await,
            Ok(false)
        );
        assert_eq!(start.elapsed(), Duration::from_secs(7));
        assert_eq!(waiting.pause(Duration::from_secs(30)).await, Err(WaitEnd::TimedOut));
        assert_eq!(start.elapsed(), Duration::from_secs(10));
    }

    #[test]
    fn a_tempo_is_a_fraction() {
        for text in ["", "0", "-0.5", "1.01", "NaN", "inf", "fast"] {
            assert!(text.parse::<Tempo>().is_err(), "{text}");
        }
        assert_eq!("1".parse(), Ok(Tempo::default()));
    }
}
