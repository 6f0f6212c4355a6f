//! Reports on a run that goes on: a line on standard error for each SIGUSR1, and the statistics so
//! far for each SIGUSR1 and every so often (`--stats-every`).
//!
//! A thread of its own waits for both, so that a stream that pauses reports, too. It reports
//! between two chunks; the filter itself reports only at the end. The thread also sees to it that
//! the records before a pause are committed to the state of the run, and that files which are over
//! get their names.

use std::sync::Mutex;
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

use crate::dedup::delivery::Delivery;
use echoless_records::failure::{Failure, lock};
use echoless_records::signals::{Asked, Requests};

/// The shortest time between two looks at whether a commit is due in a pause.
const SHORTEST_PAUSE: Duration = Duration::from_millis(10);

/// Starts to report on `delivery`, at these intervals, until the other end of `requests` is dropped.
pub(in crate::dedup) fn start<'scope, 'env, 'run: 'env>(
    scope: &'scope Scope<'scope, 'env>,
    every: Option<Duration>,
    delivery: &'env Mutex<Delivery<'run>>,
    requests: Requests,
) -> Result<(), Failure> {
    thread::Builder::new()
        .name("echoless-report".into())
        .spawn_scoped(scope, move || report(&requests, every, delivery))
        .map(drop)
        .map_err(Failure::file("a thread"))
}

fn report(requests: &Requests, every: Option<Duration>, delivery: &Mutex<Delivery<'_>>) {
    let commits = lock(delivery).pause_interval();
    let commits = commits.map(|interval| interval.max(SHORTEST_PAUSE));
    let after = |interval: Option<Duration>| interval.map(|interval| Instant::now() + interval);
    let (mut due, mut commit_due) = (after(every), after(commits));
    loop {
        let next = [due, commit_due].into_iter().flatten().min();
        let left = next.map(|next| next.saturating_duration_since(Instant::now()));
        let asked = match requests.wait(left) {
            Asked::BySignal => true,
            Asked::ByTime => false,
            Asked::ToStop => return,
        };
        let is_over = |due: Option<Instant>| due.is_some_and(|due| due <= Instant::now());
        let mut delivery = lock(delivery);
        if is_over(commit_due) {
            commit_due = after(commits);
            delivery.work_in_pause();
        }
        if asked || is_over(due) {
            due = after(every);
            delivery.report_so_far(asked);
        }
    }
}
