//! The handle of a thread, and the ticket of its next batch.

use super::filter::{OrderedState, Passage};
use crate::assembly::exchange_error::ExchangeError;
use crate::assembly::link::RequestOutcome;
use crate::assembly::loss_policy::LossPolicy;
use crate::assembly::pending_batch::PendingBatch;
use crate::assembly::routing::{Messages, Router};
use crate::filters::Filter;
use crate::hash::KeyHash;
use crate::sync::Arc;
use crate::transport::Parker;
use crate::verdicts::{Verdicts, bits_of_words};

/// A thread's access to an [`OrderedFilter`](crate::OrderedFilter): the buffers for its batches.
/// Threads make one each, with [`OrderedFilter::handle`](crate::OrderedFilter::handle).
#[derive(Debug)]
pub struct OrderedHandle<F> {
    shared: Arc<OrderedState<F>>,
    buffers: Buffers,
}

/// What a thread needs to pass a batch.
#[derive(Debug)]
struct Buffers {
    parker: Parker,
    router: Router,
    batch: PendingBatch,
    /// The last batch failed, and `batch` has the verdicts that are known.
    has_partial: bool,
    /// The keys of one partition, if the router does not have them in one place.
    keys: Vec<KeyHash>,
    /// The verdict bits of one partition.
    words: Vec<u64>,
}

/// The place of a batch in the order of all batches. Dropped without a batch, it is left out.
///
/// All later tickets wait until the batch of this one has passed, or it is dropped. A thread that
/// waits with a later ticket while it holds this one would wait forever.
#[derive(Debug)]
#[must_use = "a ticket that is dropped is left out"]
pub struct Ticket<'a, F> {
    passage: Passage<'a, F>,
    shared: &'a OrderedState<F>,
    buffers: &'a mut Buffers,
}

impl<F: Filter> OrderedHandle<F> {
    pub(super) fn new(shared: Arc<OrderedState<F>>) -> Self {
        Self {
            buffers: Buffers {
                parker: Parker::new(),
                router: Router::new(shared.partitioning.clone()),
                batch: PendingBatch::default(),
                has_partial: false,
                keys: Vec::new(),
                words: Vec::new(),
            },
            shared,
        }
    }

    /// The next ticket: its batch applies after those of all tickets that were taken before, by any
    /// thread. Does not block.
    pub fn ticket(&mut self) -> Ticket<'_, F> {
        Ticket {
            passage: Passage::new(&self.shared),
            shared: &self.shared,
            buffers: &mut self.buffers,
        }
    }

    /// Takes a ticket and observes the batch with it.
    ///
    /// # Errors
    /// As [`Ticket::observe`].
    ///
    /// # Panics
    /// As [`Ticket::observe`].
    ///
    /// # Examples
    /// ```
    /// use echoless::{FingerprintSpec, KeyHasher, OrderedFilter, Verdicts};
    /// let halves = FingerprintSpec::new(1 << 20).build_partitions(2)?;
    /// let mut handle = OrderedFilter::builder(halves).build().handle();
    /// let keys = ["a", "b", "a"].map(|key| KeyHasher::seeded(0).hash(key));
    /// let mut verdicts = Verdicts::new();
    /// handle.observe(&keys, &mut verdicts)?;
    /// assert!(verdicts.duplicates().eq([2]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn observe(
        &mut self,
        keys: &[KeyHash],
        verdicts: &mut Verdicts,
    ) -> Result<(), ExchangeError> {
        self.ticket().observe(keys, verdicts)
    }

    /// What is known of the last batch of this handle, if it failed: the verdicts of the surviving
    /// partitions, which have recorded their keys. All other keys are
    /// [unknown](Verdicts::is_unknown), and no filter has recorded them, so they can be observed
    /// again. Returns false, with empty `verdicts`, if the last batch did not fail, or this was
    /// called before.
    ///
    /// # Examples
    /// ```
    /// use echoless::{ExchangeError, Filter, KeyHash, OrderedHandle, Verdicts};
    /// /// Observes a batch, and the keys of a lost partition again once it is replaced.
    /// fn observe_all<F: Filter>(
    ///     handle: &mut OrderedHandle<F>,
    ///     keys: &[KeyHash],
    ///     replace: impl Fn(usize),
    /// ) -> Result<Vec<bool>, ExchangeError> {
    ///     let mut verdicts = Verdicts::new();
    ///     let Err(error) = handle.observe(keys, &mut verdicts) else {
    ///         return Ok((&verdicts).into_iter().map(|verdict| verdict.is_duplicate()).collect());
    ///     };
    ///     let ExchangeError::Panicked(partition) = error else {
    ///         return Err(error);
    ///     };
    ///     handle.take_partial(&mut verdicts);
    ///     replace(partition);
    ///     let unknown: Vec<usize> = (0..keys.len()).filter(|i| verdicts.is_unknown(*i)).collect();
    ///     let rest: Vec<KeyHash> = unknown.iter().map(|index| keys[*index]).collect();
    ///     let mut all: Vec<bool> = (0..keys.len()).map(|i| verdicts.is_duplicate(i)).collect();
    ///     for (index, duplicate) in unknown.iter().zip(observe_all(handle, &rest, replace)?) {
    ///         all[*index] = duplicate;
    ///     }
    ///     Ok(all)
    /// }
    /// ```
    pub fn take_partial(&mut self, verdicts: &mut Verdicts) -> bool {
        verdicts.reset(0);
        let partial = std::mem::take(&mut self.buffers.has_partial);
        if partial {
            self.buffers.take_verdicts(self.shared.policy, verdicts);
        }
        partial
    }
}

impl Buffers {
    fn take_verdicts(&mut self, policy: LossPolicy, verdicts: &mut Verdicts) {
        let kernel = self.router.kernel();
        self.batch.take_verdicts(kernel, policy, verdicts);
    }

    /// Passes the keys of one partition through it, in their turn.
    fn pass<F: Filter>(
        &mut self,
        shared: &OrderedState<F>,
        passage: &mut Passage<'_, F>,
        partition: usize,
        tick: u64,
    ) {
        let selections = &self.batch.selections;
        let keys = self.router.keys_of(selections, partition, &mut self.keys);
        self.words.clear();
        self.words.resize(keys.len().div_ceil(64), 0);
        let mut turn = passage.wait_for_turn(partition, &mut self.parker, shared.wait);
        let judged =
            shared.partitions[partition].judge(partition, &mut turn, tick, keys, &mut self.words);
        // The router cuts the keys of a partition into messages, with a word of verdicts for each.
        let (kernel, mut start) = (self.router.kernel(), 0);
        let mut messages = Messages::to(partition);
        while let Some(keys) = messages.next(&self.router, &self.batch.selections) {
            let outcome = match judged {
                Ok(()) => RequestOutcome::Known(bits_of_words(&self.words, start, keys.len())),
                Err(outcome) => outcome,
            };
            start += keys.len();
            self.batch.expect_answer();
            self.batch
                .take_outcome(kernel, partition, outcome, shared.policy);
        }
    }
}

impl<F: Filter> Ticket<'_, F> {
    /// Observes the batch of this ticket: passes it through all partitions, and blocks at each
    /// until the batches of all lower tickets have passed it.
    ///
    /// `verdicts` is empty after an error; [`take_partial`](OrderedHandle::take_partial) has those
    /// that are known.
    ///
    /// # Errors
    /// [`ExchangeError`] if the batch has keys of a lost partition, with
    /// [`LossPolicy::Error`](crate::LossPolicy::Error), or the filter was shut down. The other
    /// partitions have recorded their keys.
    ///
    /// # Panics
    /// If the batch has 2^31 keys or more.
    pub fn observe(self, keys: &[KeyHash], verdicts: &mut Verdicts) -> Result<(), ExchangeError> {
        self.observe_at(0, keys, verdicts)
    }

    /// As [`observe`](Self::observe), at a tick: every partition moves its clock to `tick` before
    /// it judges the keys; see [`Filter::advance_to`]. An earlier tick has no effect, like the
    /// tick 0.
    ///
    /// # Errors
    /// As [`observe`](Self::observe).
    ///
    /// # Panics
    /// As [`observe`](Self::observe).
    pub fn observe_at(
        mut self,
        tick: u64,
        keys: &[KeyHash],
        verdicts: &mut Verdicts,
    ) -> Result<(), ExchangeError> {
        verdicts.reset(0);
        assert!(keys.len() < 1 << 31, "a batch of {} keys", keys.len());
        let Self {
            passage,
            shared,
            buffers,
        } = &mut self;
        buffers.has_partial = false;
        buffers.batch.reset(keys.len());
        let selections = &mut buffers.batch.selections;
        buffers.router.route(keys, selections);
        for partition in 0..shared.partitions.len() {
            buffers.pass(shared, passage, partition, tick);
        }
        if let Some(error) = buffers.batch.error() {
            buffers.has_partial = true;
            return Err(error);
        }
        buffers.take_verdicts(shared.policy, verdicts);
        Ok(())
    }
}
