//! A batch in flight: the verdicts that arrived, and which keys will have none.

use super::exchange_error::ExchangeError;
use super::link::RequestOutcome;
use super::loss_policy::LossPolicy;
use super::routing::{MessageIndex, Selections};
use crate::isa::DetectedKernel;
use crate::verdicts::Verdicts;

/// One batch of a port. Its buffers are reused.
#[derive(Debug, Default)]
pub(super) struct PendingBatch {
    verdicts: Verdicts,
    /// For each link, the keys of the batch that it owns.
    pub(super) selections: Selections,
    /// Requests without an outcome.
    unanswered: usize,
    /// Every message was sent, or never will be. Until then the batch is not settled, even if all
    /// messages so far are answered.
    sent: bool,
    /// Why some keys have no verdict, if that is an error.
    error: Option<ExchangeError>,
}

impl PendingBatch {
    pub(super) fn reset(&mut self, keys: usize) {
        self.verdicts.reset(keys);
        self.unanswered = 0;
        self.sent = false;
        self.error = None;
    }

    /// Counts a request that was sent.
    pub(super) const fn expect_answer(&mut self) {
        self.unanswered += 1;
    }

    /// No message follows.
    pub(super) const fn end_sending(&mut self) {
        self.sent = true;
    }

    /// Whether every key has a verdict or will never have one.
    pub(super) const fn is_settled(&self) -> bool {
        self.sent && self.unanswered == 0
    }

    /// Why the batch is an error, if it is one.
    pub(super) const fn error(&self) -> Option<ExchangeError> {
        self.error
    }

    /// Takes the outcome of the next request of a link.
    pub(super) fn take_outcome(
        &mut self,
        kernel: DetectedKernel,
        owner: usize,
        outcome: RequestOutcome,
        policy: LossPolicy,
    ) {
        self.unanswered -= 1;
        match outcome {
            RequestOutcome::Known(bits) => {
                let verdicts = &mut self.verdicts;
                self.selections.answer(owner, kernel, bits, verdicts);
            }
            RequestOutcome::Lost(error) => {
                self.take_unknown(
                    kernel,
                    owner,
                    (policy == LossPolicy::Error).then_some(error),
                );
            }
            RequestOutcome::Closed(error) => self.take_unknown(kernel, owner, Some(error)),
        }
    }

    /// The keys of the next message of a link have no verdict.
    #[cold]
    fn take_unknown(&mut self, kernel: DetectedKernel, owner: usize, error: Option<ExchangeError>) {
        self.error = self.error.or(error);
        let verdicts = &mut self.verdicts;
        self.selections.answer_unknown(owner, kernel, verdicts);
    }

    /// The keys that a link owns were not sent, from this message on.
    #[cold]
    pub(super) fn mark_unsent(
        &mut self,
        owner: usize,
        index: Option<MessageIndex>,
        error: ExchangeError,
    ) {
        if !self.selections.is_empty(owner) {
            self.error = self.error.or(Some(error));
            let verdicts = &mut self.verdicts;
            self.selections.mark_unsent(owner, index, verdicts);
        }
    }

    /// Exchanges the buffer of the verdicts for the caller's, after the policy has judged the keys
    /// without a verdict.
    pub(super) fn take_verdicts(
        &mut self,
        kernel: DetectedKernel,
        policy: LossPolicy,
        verdicts: &mut Verdicts,
    ) {
        self.selections.finish(kernel, &mut self.verdicts);
        match policy {
            LossPolicy::AsDuplicate => self.verdicts.set_unknown_duplicate(),
            LossPolicy::AsFresh | LossPolicy::Error => {}
        }
        std::mem::swap(&mut self.verdicts, verdicts);
    }
}
