//! The report of a running engine: its workers count their partitions, one after the other, when
//! they take a question out of their mailboxes.
//!
//! ```text
//!   thread that asks                             worker 0        worker 1
//!   post: no counts            ----------------> count
//!   counts of 0                <---------------- answer; wake
//!   post: counts of 0, last    --------------------------------> count; report on the sum
//!   report                     <-------------------------------- answer; wake
//! ```
//!
//! A question without an answer, because the worker ends, is dropped with the mailbox, and its drop
//! is the answer. So no thread waits forever.

use super::attacher::AttachableWorker;
use super::loss::ExchangeError;
use super::mailbox::Event;
use super::owned::OwnedFilter;
use crate::filters::Filter;
use crate::report::{Report, Tally};
use crate::sync::{Arc, Mutex, unpoisoned};
use crate::transport::{Doorbell, Parker, Wait};

/// What a worker answers: the counts of the partitions up to its own, and the report on their sum
/// if it is the last one.
type Reported = Result<(Vec<Tally>, Option<Report>), ExchangeError>;

/// The question to a worker.
#[derive(Debug)]
pub(super) struct ReportRequest {
    partition: usize,
    /// The counts of the partitions before.
    tallies: Vec<Tally>,
    /// No partition follows.
    is_last: bool,
    answer: Arc<Mutex<Option<Reported>>>,
    /// Of the thread that asks.
    doorbell: Doorbell,
}

/// The report of all partitions.
///
/// # Errors
/// If a worker is gone, or has no filter.
pub(super) fn live_report(workers: &[AttachableWorker]) -> Result<Report, ExchangeError> {
    let mut parker = Parker::new();
    let mut counted = (Vec::new(), None);
    for (partition, worker) in workers.iter().enumerate() {
        if worker.status.is_forked() {
            return Err(ExchangeError::Forked);
        }
        let answer = Arc::new(Mutex::new(None));
        let request = ReportRequest {
            partition,
            tallies: counted.0,
            is_last: partition + 1 == workers.len(),
            answer: Arc::clone(&answer),
            doorbell: parker.doorbell(),
        };
        worker.mailbox.post(Event::Report(Box::new(request)));
        worker.doorbell.wake();
        let mut reported = None;
        // A worker first ends its pass.
        parker.wait_until(Wait::Shared, || {
            reported = unpoisoned(answer.lock()).take();
            reported.is_some()
        });
        counted = reported.unwrap_or(Err(ExchangeError::Disconnected(partition)))?;
    }
    counted.1.ok_or(ExchangeError::Disconnected(0))
}

impl ReportRequest {
    /// Counts the partition, and answers.
    pub(super) fn answer<F: Filter>(mut self, owned: &mut OwnedFilter<F>) {
        let mut tallies = std::mem::take(&mut self.tallies);
        let is_last = self.is_last;
        let counted = owned.inspect(|filter| {
            tallies.push(filter.tally());
            let report = is_last.then(|| filter.report_on(tallies.drain(..).sum()));
            (tallies, report)
        });
        let reported = counted.ok_or(ExchangeError::Panicked(self.partition));
        *unpoisoned(self.answer.lock()) = Some(reported);
    }
}

impl Drop for ReportRequest {
    fn drop(&mut self) {
        let gone = ExchangeError::Disconnected(self.partition);
        unpoisoned(self.answer.lock()).get_or_insert(Err(gone));
        self.doorbell.wake();
    }
}
