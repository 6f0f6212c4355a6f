//! The loops of a rule, compiled for every kernel that it runs on.
//!
//! [`for_kernel`] selects the loops of a batch once, when a filter is built; a single key selects
//! its code again, by the kernel ([`observe_one`]):
//!
//! ```text
//! observe_batch -> RuleLoop::observe (two dynamic calls for a batch)
//!   -> BatchLoop or BlockLoop, for kernel O  prefetch, one line per key, pack verdicts
//!        -> RuleStep::visit -> R::visit      inlined: the rule on the line, by the operations of O
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
    BLOCK, BatchCounts, BatchLoop, BlockLoop, ForKernel, LineOps, LineRange, LineStep, LookAhead,
    Outcome, SingleVisit, Tuner, Tunes,
};
use crate::memory::Line;

/// Keys, and the lines that a rule observes them in.
pub(super) struct RuleBatch<'a, R> {
    pub(super) rule: R,
    pub(super) lines: &'a mut [Line],
    pub(super) range: LineRange,
    pub(super) keys: &'a [KeyHash],
    pub(super) ticks: Option<&'a [u64]>,
    pub(super) duplicates: &'a mut [u64],
}

/// The batch loop of a rule, compiled for one kernel.
pub(super) trait RuleLoop<R: Rule>: fmt::Debug + Send + Sync {
    /// Observes keys, for a rule with a clock also each at its own tick, all of them in one era.
    fn observe(&self, batch: RuleBatch<'_, R>) -> BatchCounts;

    /// The look-ahead of the next batch.
    fn look_ahead(&self) -> LookAhead;

    /// The same, if it was chosen by measuring.
    fn measured_look_ahead(&self) -> Option<LookAhead>;
}

/// The token of the kernel, which proves that this CPU has its instructions, and how far to look
/// ahead.
#[derive(Debug)]
struct KernelLoop<O> {
    ops: O,
    /// In batches of more than a block.
    batches: Tuner,
    /// In batches of up to a block.
    blocks: Tuner,
}

impl<O: LineOps, R: Rule> RuleLoop<R> for KernelLoop<O> {
    fn observe(&self, batch: RuleBatch<'_, R>) -> BatchCounts {
        let (ops, rule) = (self.ops, batch.rule);
        match batch.ticks {
            None => {
                let ticks = empty();
                self.run(batch, RuleStep { ops, rule, ticks })
            }
            // For other rules, this loop is not compiled.
            Some(ticks) if R::HAS_CLOCK => {
                let ticks = ticks.iter();
                self.run(batch, RuleStep { ops, rule, ticks })
            }
            Some(_) => unreachable!("ticks for a rule without a clock"),
        }
    }

    fn look_ahead(&self) -> LookAhead {
        self.batches.best()
    }

    fn measured_look_ahead(&self) -> Option<LookAhead> {
        self.batches.measured()
    }
}

impl<O: LineOps> KernelLoop<O> {
    /// Runs a batch through the loop for its length.
    #[inline]
    fn run<R, S: LineStep>(&self, batch: RuleBatch<'_, R>, step: S) -> BatchCounts {
        let RuleBatch {
            lines,
            range,
            keys,
            duplicates,
            ..
        } = batch;
        if keys.len() > BLOCK {
            let run = |look_ahead| {
                self.ops.run(BatchLoop {
                    lines,
                    range,
                    keys,
                    duplicates,
                    look_ahead,
                    step,
                })
            };
            self.batches.run(keys.len(), run)
        } else {
            let run = |look_ahead: LookAhead| {
                self.ops.run(BlockLoop {
                    lines,
                    range,
                    keys,
                    duplicates,
                    cache: look_ahead.cache(),
                    step,
                })
            };
            self.blocks.run(keys.len(), run)
        }
    }
}

/// A rule and its kernel, as a step of the batch loop that moves the clock of the rule to the tick
/// of each key.
struct RuleStep<O, R, T> {
    ops: O,
    rule: R,
    /// The ticks of the keys that are not visited yet: none, known when this is compiled, if the
    /// clock stays.
    ticks: T,
}

impl<'a, O: LineOps, R: Rule, T: Iterator<Item = &'a u64>> LineStep for RuleStep<O, R, T> {
    type Bucket = R::Bucket;

    const FINDS_LINES: bool = O::FINDS_LINES;

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

/// The batch loops of a rule for a kernel, in a filter of so many lines, all partitions together.
pub(super) fn for_kernel<R: Rule>(kernel: DetectedKernel, lines: u64) -> Box<dyn RuleLoop<R>> {
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
    type Output = Box<dyn RuleLoop<R>>;

    fn call<O: LineOps>(self, ops: O) -> Box<dyn RuleLoop<R>> {
        let tunes = if O::FINDS_LINES {
            Tunes::Everything
        } else {
            Tunes::BlocksAndCache
        };
        Box::new(KernelLoop {
            ops,
            batches: Tuner::new::<(O, R)>(self.0, tunes),
            blocks: Tuner::new::<(O, R)>(self.0, Tunes::Cache),
        })
    }
}
