//! The filter itself: lines, and the counts that its reports are made of.

use std::marker::PhantomData;

use super::replacement::{Fifo, Lru, Policy, Qqhtd, Replacement};
use super::sizing::{Entries, FingerprintGeometry, SlotWidth};
use crate::filters::Filter;
use crate::hash::KeyHash;
use crate::kernels::isa::{DetectedKernel, Kernel};
use crate::kernels::{
    BatchLoop, LineRange, LineStep, Outcome, Slot, SlotOps, portable::Portable, scalar::Scalar,
};
#[cfg(target_arch = "x86_64")]
use crate::kernels::{avx2::Avx2, avx512::Avx512};
use crate::memory::{Line, LineArray};
use crate::report::Report;

/// A duplicate filter that keeps, for each line, its most recent fingerprints. One cache line is touched for each key.
///
/// Source: rows of quotient hash tables (paper 002, section 3), each as wide as a cache line. False positives: a key that was never
/// seen matches a fingerprint of its line, at most [`FingerprintGeometry::full_fpr`]. False negatives: a key was pushed out by
/// younger ones of its line, which [`Report::evictions`] counts; without evictions there are none.
///
/// # Examples
/// ```
/// use echoless::{Filter, FingerprintSpec, KeyHasher, Verdicts};
/// let mut filter = FingerprintSpec::new(1 << 20).build().unwrap();
/// let hasher = KeyHasher::seeded(0);
/// let keys = [b"a", b"b", b"a"].map(|key| hasher.hash(key));
/// let mut verdicts = Verdicts::new();
/// filter.observe(&keys, &mut verdicts);
/// assert_eq!(verdicts.words(), [0b100]);
/// assert_eq!(filter.report().evictions, 0);
/// ```
#[derive(Debug)]
pub struct FingerprintLines {
    lines: LineArray,
    range: LineRange,
    width: SlotWidth,
    replacement: Replacement,
    kernel: DetectedKernel,
    tally: Tally,
}

/// What the filter has counted since it was built or cleared.
#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    observed: u64,
    fresh: u64,
    evictions: u64,
}

impl FingerprintLines {
    pub(crate) fn new(
        lines: LineArray,
        range: LineRange,
        width: SlotWidth,
        replacement: Replacement,
        kernel: DetectedKernel,
    ) -> Self {
        Self {
            lines,
            range,
            width,
            replacement,
            kernel,
            tally: Tally::default(),
        }
    }

    /// The shape of this filter; of a partition, the lines it owns.
    #[must_use]
    pub fn geometry(&self) -> FingerprintGeometry {
        FingerprintGeometry {
            lines: self.lines.len() as u64,
            width: self.width,
        }
    }

    /// The lines as they are now, for measurements and to look into.
    #[must_use]
    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// Which of the whole filter's lines they are.
    pub(crate) const fn range(&self) -> LineRange {
        self.range
    }

    /// How a full line ages.
    #[must_use]
    pub const fn replacement(&self) -> Replacement {
        self.replacement
    }

    /// What the filter is and has done. For partitions see [`report_of`](Self::report_of): rates that the 64-bit hash limits are those of
    /// the whole.
    #[must_use]
    pub fn report(&self) -> Report {
        self.joint_report(self.lines.huge_page_bytes(), self.geometry(), self.tally)
    }

    /// What several partitions of one filter are and have done together: the same, but for `huge_page_bytes`, as one undivided
    /// filter would report.
    ///
    /// # Panics
    /// If there is no partition.
    #[must_use]
    pub fn report_of(partitions: &[Self]) -> Report {
        let first = partitions.first().expect("at least one partition");
        let sum = |count: fn(&Self) -> u64| partitions.iter().map(count).sum();
        let shape = FingerprintGeometry {
            lines: sum(|partition| partition.lines.len() as u64),
            width: first.width,
        };
        let tally = Tally {
            observed: sum(|partition| partition.tally.observed),
            fresh: sum(|partition| partition.tally.fresh),
            evictions: sum(|partition| partition.tally.evictions),
        };
        let huge = sum(|partition| partition.lines.huge_page_bytes());
        first.joint_report(huge, shape, tally)
    }

    fn joint_report(&self, huge: u64, shape: FingerprintGeometry, tally: Tally) -> Report {
        let (pushed, entries) = match self.replacement {
            Replacement::Fifo | Replacement::Lru => (tally.fresh, Entries::Distinct),
            Replacement::Qqhtd => (tally.observed, Entries::Repeated),
        };
        let occupied = pushed - tally.evictions;
        // Of the keys pushed only the fresh ones were never seen before and could have been false duplicates.
        let fresh_share = tally.fresh as f64 / pushed.max(1) as f64;
        Report {
            memory_bytes: shape.bytes(),
            huge_page_bytes: huge,
            kernel: self.kernel.kernel(),
            slot_bits: self.width.bits(),
            observed: tally.observed,
            fresh: tally.fresh,
            evictions: tally.evictions,
            fill: occupied as f64 / shape.capacity() as f64,
            expected_fpr: shape.fpr_with(entries, occupied as f64 / shape.lines as f64),
            expected_false_duplicates: shape.false_duplicates_with(entries, pushed) * fresh_share,
            miss_age_keys: shape.miss_age_keys(),
        }
    }

    fn run_kernel<O: SlotOps>(&mut self, ops: O, keys: &[KeyHash], duplicates: &mut [u64]) {
        match self.width {
            SlotWidth::Bits8 => self.run_width::<O, u8>(ops, keys, duplicates),
            SlotWidth::Bits16 => self.run_width::<O, u16>(ops, keys, duplicates),
            SlotWidth::Bits32 => self.run_width::<O, u32>(ops, keys, duplicates),
            SlotWidth::Bits64 => self.run_width::<O, u64>(ops, keys, duplicates),
        }
    }

    fn run_width<O: SlotOps, S: Slot>(&mut self, ops: O, keys: &[KeyHash], duplicates: &mut [u64]) {
        match self.replacement {
            Replacement::Fifo => self.run_policy::<O, S, Fifo>(ops, keys, duplicates),
            Replacement::Lru => self.run_policy::<O, S, Lru>(ops, keys, duplicates),
            Replacement::Qqhtd => self.run_policy::<O, S, Qqhtd>(ops, keys, duplicates),
        }
    }

    fn run_policy<O: SlotOps, S: Slot, P: Policy>(
        &mut self,
        ops: O,
        keys: &[KeyHash],
        duplicates: &mut [u64],
    ) {
        let visits = ops.run(BatchLoop {
            lines: &mut self.lines,
            range: self.range,
            keys,
            duplicates,
            step: Step::<O, S, P> {
                ops,
                types: PhantomData,
            },
        });
        let observed = keys.len() as u64;
        self.tally.observed += observed;
        self.tally.fresh += observed - visits.duplicates;
        self.tally.evictions += visits.evictions;
    }
}

impl Filter for FingerprintLines {
    /// # Panics
    /// If a key does not belong to this partition.
    fn observe_words(&mut self, keys: &[KeyHash], duplicates: &mut [u64]) {
        let granted = self.kernel;
        match granted.kernel() {
            Kernel::Scalar => self.run_kernel(Scalar, keys, duplicates),
            Kernel::Portable => self.run_kernel(Portable, keys, duplicates),
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx2 | Kernel::Avx512 => {
                if let Some(ops) = Avx512::new(granted) {
                    self.run_kernel(ops, keys, duplicates);
                } else if let Some(ops) = Avx2::new(granted) {
                    self.run_kernel(ops, keys, duplicates);
                }
            }
            #[cfg(not(target_arch = "x86_64"))]
            Kernel::Avx2 | Kernel::Avx512 => self.run_kernel(Portable, keys, duplicates),
        }
    }

    fn contains(&self, key: KeyHash) -> bool {
        let line = &self.lines[self.range.position(key)];
        let found = match self.width {
            SlotWidth::Bits8 => Scalar.find(line, u8::from_key(key)),
            SlotWidth::Bits16 => Scalar.find(line, u16::from_key(key)),
            SlotWidth::Bits32 => Scalar.find(line, u32::from_key(key)),
            SlotWidth::Bits64 => Scalar.find(line, u64::from_key(key)),
        };
        found != 0
    }

    fn clear(&mut self) {
        self.lines.fill(Line::EMPTY);
        self.tally = Tally::default();
    }

    fn memory_bytes(&self) -> u64 {
        self.lines.bytes()
    }

    fn load(&self) -> Option<f64> {
        Some(self.joint_report(0, self.geometry(), self.tally).fill)
    }
}

/// What happens to the line of one key.
struct Step<O, S, P> {
    ops: O,
    types: PhantomData<(S, P)>,
}

impl<O: SlotOps, S: Slot, P: Policy> LineStep for Step<O, S, P> {
    #[inline(always)]
    fn visit(&self, line: &mut Line, key: KeyHash) -> Outcome {
        let fingerprint = S::from_key(key);
        let found = self.ops.find(line, fingerprint);
        let displaced = self.ops.last_is_occupied::<S>(line);
        self.ops.push_front(line, fingerprint, P::moved::<S>(found));
        Outcome {
            duplicate: found != 0,
            displaced,
        }
    }

    #[inline(always)]
    fn evictions(duplicates: u64, displaced: u64) -> u64 {
        displaced & P::pushes(duplicates)
    }
}
