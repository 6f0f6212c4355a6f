//! The loops of a rule, compiled for every kernel that it runs on.
//!
//! [`for_kernel`] selects the loop of batches once, when a filter is built; a single key selects
//! its code again, by the kernel ([`observe_one`]):
//!
//! ```text
//! observe_batch -> RuleLoops::observe              times the batch now and then
//!   -> RuleLoop::observe (a dynamic call for a batch)
//!     -> BatchLoop, for kernel O                   prefetch, one line per key, pack verdicts
//!        -> RuleStep::visit -> R::visit            inlined: the rule on the line, by operations of O
//! observe_batch of one key -> observe_one (a dynamic call, and branches on the kernel)
//!   -> SingleVisit, for kernel O -> RuleStep::visit -> R::visit
//! ```

use std::fmt;
use std::iter::empty;
use std::marker::PhantomData;

use super::rule::Rule;
use crate::hash::KeyHash;
use crate::isa::DetectedKernel;
use crate::kernels::scalar::Scalar;
use crate::kernels::{
    BLOCK, BatchCounts, BatchLoop, ForKernel, KnownPositions, LineOps, LineRange, LineStep,
    LookAhead, Outcome, SingleVisit, Tuner, Tunes,
};
use crate::memory::Line;

/// Keys, and the lines that a rule observes them in.
pub(super) struct RuleBatch<'a, R> {
    pub(super) rule: R,
    pub(super) lines: &'a mut [Line],
    pub(super) range: LineRange,
    pub(super) keys: &'a [KeyHash],
    /// For a rule with a clock, the tick of each key, all of them in one era; or none, if the clock
    /// stays.
    pub(super) ticks: &'a [u64],
    pub(super) duplicates: &'a mut [u64],
}

/// The loops of a rule in one filter, and how far they look ahead.
#[derive(Debug)]
pub(super) struct RuleLoops<R> {
    on_kernel: Box<dyn RuleLoop<R>>,
    /// In batches of more than a block.
    batches: Tuner,
    /// In batches of up to a block.
    blocks: Tuner,
    positions: Box<KnownPositions>,
}

impl<R: Rule> RuleLoops<R> {
    /// Observes keys, for a rule with a clock also each at its own tick.
    pub(super) fn observe(&mut self, batch: RuleBatch<'_, R>) -> BatchCounts {
        let keys = batch.keys.len();
        let tuner = if keys > BLOCK {
            &self.batches
        } else {
            &self.blocks
        };
        let (on_kernel, positions) = (&*self.on_kernel, &mut *self.positions);
        tuner.run(keys, |look_ahead| {
            on_kernel.observe(batch, look_ahead, positions)
        })
    }

    /// The look-ahead of the next batch.
    pub(super) fn look_ahead(&self) -> LookAhead {
        self.batches.best()
    }

    /// The same, if it was chosen by measuring.
    pub(super) fn measured_look_ahead(&self) -> Option<LookAhead> {
        self.batches.measured()
    }
}

/// The batch loop of a rule, compiled for one kernel.
trait RuleLoop<R: Rule>: fmt::Debug + Send + Sync {
    /// Observes keys.
    fn observe(
        &self,
        batch: RuleBatch<'_, R>,
        look_ahead: LookAhead,
        positions: &mut KnownPositions,
    ) -> BatchCounts;
}

/// The token of the kernel, which proves that this CPU has its instructions.
#[derive(Debug)]
struct OnKernel<O>(O);

impl<O: LineOps, R: Rule> RuleLoop<R> for OnKernel<O> {
    fn observe(
        &self,
        batch: RuleBatch<'_, R>,
        look_ahead: LookAhead,
        positions: &mut KnownPositions,
    ) -> BatchCounts {
        let (ops, rule) = (self.0, batch.rule);
        match batch.ticks {
            [] => {
                let ticks = empty();
                self.run(batch, RuleStep { ops, rule, ticks }, look_ahead, positions)
            }
            // For other rules, this loop is not compiled.
            ticks if R::HAS_CLOCK => {
                let ticks = ticks.iter();
                self.run(batch, RuleStep { ops, rule, ticks }, look_ahead, positions)
            }
            _ => unreachable!("ticks for a rule without a clock"),
        }
    }
}

impl<O: LineOps> OnKernel<O> {
    #[inline]
    fn run<R, S: LineStep>(
        &self,
        batch: RuleBatch<'_, R>,
        step: S,
        look_ahead: LookAhead,
        positions: &mut KnownPositions,
    ) -> BatchCounts {
        self.0.run(BatchLoop {
            lines: batch.lines,
            range: batch.range,
            keys: batch.keys,
            duplicates: batch.duplicates,
            look_ahead,
            positions,
            step,
        })
    }
}

/// A rule and its kernel, as a step of the loops that moves the clock of the rule to the tick of
/// each key.
struct RuleStep<O, R, T> {
    ops: O,
    rule: R,
    /// The ticks of the keys that are not visited yet: none, known when this is compiled, if the
    /// clock stays.
    ticks: T,
}

impl<'a, O: LineOps, R: Rule, T: Iterator<Item = &'a u64>> LineStep for RuleStep<O, R, T> {
    type Bucket = R::Bucket;
    const ONE_LOOP: bool = O::ONE_LOOP;

    #[inline(always)]
    fn visit(&mut self, bucket: &mut R::Bucket, key: KeyHash) -> Outcome {
        if let Some(tick) = self.ticks.next() {
            self.rule.follow(*tick);
        }
        self.rule.visit(self.ops, bucket, key)
    }

    #[inline(always)]
    fn evictions(duplicates: u64, displaced: u64) -> u64 {
        R::evictions(duplicates, displaced)
    }
}

/// The loops of a rule for a kernel, in a filter of so many lines, all partitions together.
pub(super) fn for_kernel<R: Rule>(kernel: DetectedKernel, lines: u64) -> RuleLoops<R> {
    on_kernel::<R, _>(kernel, ForRule(lines, PhantomData))
}

/// Observes a single key in its bucket.
#[inline]
pub(super) fn observe_one<R: Rule>(
    kernel: DetectedKernel,
    rule: R,
    bucket: &mut R::Bucket,
    key: KeyHash,
) -> BatchCounts {
    on_kernel::<R, _>(kernel, OneKey { rule, bucket, key })
}

/// Calls `with` with the operations of the kernel that a rule runs on.
#[inline]
fn on_kernel<R: Rule, W: ForKernel>(kernel: DetectedKernel, with: W) -> W::Output {
    // To compile all rules for all kernels takes minutes. The tests inside this crate and the
    // models are not about rules on kernels; those in `engine/tests` are.
    if cfg!(any(test, loom)) {
        with.call(Scalar)
    } else if R::HAS_PORTABLE_LOOP {
        kernel.dispatch(with)
    } else {
        kernel.dispatch_words(with)
    }
}

/// A single key and its bucket. Predicted branches on the kernel lead to its code, where a function
/// in a table would take two dependent loads.
struct OneKey<'a, R: Rule> {
    rule: R,
    bucket: &'a mut R::Bucket,
    key: KeyHash,
}

impl<R: Rule> ForKernel for OneKey<'_, R> {
    type Output = BatchCounts;

    #[inline(always)]
    fn call<O: LineOps>(self, ops: O) -> BatchCounts {
        let Self { rule, bucket, key } = self;
        let ticks = empty();
        let step = RuleStep { ops, rule, ticks };
        ops.run(SingleVisit { bucket, key, step })
    }
}

/// Picks the batch loop of a rule by the kernel.
struct ForRule<R>(u64, PhantomData<R>);

impl<R: Rule> ForKernel for ForRule<R> {
    type Output = RuleLoops<R>;

    fn call<O: LineOps>(self, ops: O) -> RuleLoops<R> {
        RuleLoops {
            on_kernel: Box::new(OnKernel(ops)),
            batches: Tuner::new::<(O, R)>(self.0, Tunes::BlocksAndCache),
            blocks: Tuner::new::<(O, R)>(self.0, Tunes::Cache),
            positions: Box::new(KnownPositions::new()),
        }
    }
}
