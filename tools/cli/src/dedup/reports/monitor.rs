//! Reports on a run that goes on: a line on standard error for each SIGUSR1, and the statistics so
//! far for each SIGUSR1 and every so often (`--stats-every`).
//!
//! A thread of its own waits for both, so that a stream that pauses reports, too. It reports
//! between two chunks; the filter itself reports only at the end.

use std::sync::Mutex;
use std::thread::{self, Scope};
use std::time::Instant;

use crate::config::DedupConfig;
use crate::dedup::delivery::Delivery;
use crate::failure::Failure;
use crate::locks::lock;
use crate::signals::{Asked, Requests};

/// Starts to report on `delivery`, until the other end of `requests` is dropped.
///
/// # Errors
/// [`Failure`] if the thread cannot be started.
pub(in crate::dedup) fn start<'scope, 'env>(
    scope: &'scope Scope<'scope, 'env>,
    config: &'env DedupConfig,
    delivery: &'env Mutex<Delivery>,
    requests: Requests,
) -> Result<(), Failure> {
    thread::Builder::new()
        .name("echoless-report".into())
        .spawn_scoped(scope, move || report(&requests, config, delivery))
        .map(drop)
        .map_err(Failure::file("a thread"))
}

fn report(requests: &Requests, config: &DedupConfig, delivery: &Mutex<Delivery>) {
    let every = config.run.stats_every;
    let mut due = every.map(|every| Instant::now() + every);
    loop {
        let left = due.map(|due| due.saturating_duration_since(Instant::now()));
        let asked = match requests.wait(left) {
            Asked::BySignal => true,
            Asked::ByTime => {
                due = every.map(|every| Instant::now() + every);
                false
            }
            Asked::ToStop => return,
        };
        let mut delivery = lock(delivery);
        delivery.report_so_far(config, asked);
    }
}
