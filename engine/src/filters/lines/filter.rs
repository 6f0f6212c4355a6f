//! The filter itself: lines, and a rule that says what a key does to its own.

use crate::filters::Filter;
use crate::filters::lines::fingerprint::FingerprintLines;
use crate::hash::KeyHash;
use crate::kernels::isa::{DetectedKernel, Kernel};
use crate::kernels::{BatchLoop, BitOps, LineRange, LineStep, Outcome, SlotOps, scalar::Scalar};
#[cfg(target_arch = "x86_64")]
use crate::kernels::{avx2::Avx2, avx512::Avx512};
use crate::memory::{Line, LineArray};

/// A filter of lines that shows them, to be measured and looked into.
pub trait LineForm: Filter {
    /// The lines as they are now.
    fn lines(&self) -> &[Line];

    /// Which of the whole filter's lines they are: all, or those of a partition.
    fn range(&self) -> LineRange;

    /// How many bytes of them lie on huge pages; 0 where the system does not tell.
    fn huge_page_bytes(&self) -> u64;

    /// How many of the keys so far, were they all distinct, it expects to have called duplicates; `None` if it cannot say.
    fn expected_false_duplicates(&self) -> Option<f64> {
        None
    }

    /// The probability that a key never seen before would now be called a duplicate. It may have to look at all lines.
    fn expected_fpr(&self) -> f64;

    /// P, the cells that an update lowers; `None` if the filter lowers none.
    fn decrements(&self) -> Option<u32> {
        None
    }
}

/// What a key does to its line, and what it must find there to be a duplicate.
pub(super) trait Rule: Copy + Send + 'static {
    /// Tests and records the key; true means duplicate. Must be `#[inline(always)]`.
    fn visit<O: BitOps + SlotOps>(self, ops: O, line: &mut Line, key: KeyHash) -> bool;

    /// Whether the key would be called a duplicate.
    fn holds(self, line: &Line, key: KeyHash) -> bool;

    /// The share of the line's cells that hold something.
    fn load(self, line: &Line) -> f64;

    /// The probability that a key never seen, of this line among `lines`, would be called a duplicate.
    fn fpr(self, line: &Line, lines: u64) -> f64;

    /// The cells that an update lowers.
    fn decrements(self) -> Option<u32> {
        None
    }
}

/// Any rule on a range of lines. One cache line is touched for each key.
#[derive(Debug)]
pub(super) struct LineFilter<R> {
    lines: LineArray,
    range: LineRange,
    rule: R,
    kernel: DetectedKernel,
}

impl<R: Rule> LineFilter<R> {
    pub(super) const fn new(
        lines: LineArray,
        range: LineRange,
        rule: R,
        kernel: DetectedKernel,
    ) -> Self {
        Self {
            lines,
            range,
            rule,
            kernel,
        }
    }

    fn run<O: BitOps + SlotOps>(&mut self, ops: O, keys: &[KeyHash], duplicates: &mut [u64]) {
        let rule = self.rule;
        ops.run(BatchLoop {
            lines: &mut self.lines,
            range: self.range,
            keys,
            duplicates,
            step: Step { ops, rule },
        });
    }
}

impl<R: Rule> Filter for LineFilter<R> {
    /// # Panics
    /// If a key does not belong to this partition.
    fn observe_words(&mut self, keys: &[KeyHash], duplicates: &mut [u64]) {
        let granted = self.kernel;
        match granted.kernel() {
            // Vectors of 128 bits hold two words of a line: too little to gain by.
            Kernel::Scalar | Kernel::Portable => self.run(Scalar, keys, duplicates),
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx2 | Kernel::Avx512 => {
                if let Some(ops) = Avx512::new(granted) {
                    self.run(ops, keys, duplicates);
                } else if let Some(ops) = Avx2::new(granted) {
                    self.run(ops, keys, duplicates);
                }
            }
            #[cfg(not(target_arch = "x86_64"))]
            Kernel::Avx2 | Kernel::Avx512 => self.run(Scalar, keys, duplicates),
        }
    }

    fn contains(&self, key: KeyHash) -> bool {
        self.rule.holds(&self.lines[self.range.position(key)], key)
    }

    fn clear(&mut self) {
        self.lines.fill(Line::EMPTY);
    }

    fn memory_bytes(&self) -> u64 {
        self.lines.bytes()
    }

    fn load(&self) -> Option<f64> {
        let loads = self.lines.iter().map(|line| self.rule.load(line));
        Some(loads.sum::<f64>() / self.lines.len() as f64)
    }
}

impl<R: Rule> LineForm for LineFilter<R> {
    fn lines(&self) -> &[Line] {
        &self.lines
    }

    fn range(&self) -> LineRange {
        self.range
    }

    fn huge_page_bytes(&self) -> u64 {
        self.lines.huge_page_bytes()
    }

    fn expected_fpr(&self) -> f64 {
        let rates = self.lines.iter();
        let rates = rates.map(|line| self.rule.fpr(line, self.range.total));
        rates.sum::<f64>() / self.lines.len() as f64
    }

    fn decrements(&self) -> Option<u32> {
        self.rule.decrements()
    }
}

impl LineForm for FingerprintLines {
    fn lines(&self) -> &[Line] {
        Self::lines(self)
    }

    fn range(&self) -> LineRange {
        Self::range(self)
    }

    fn huge_page_bytes(&self) -> u64 {
        self.report().huge_page_bytes
    }

    fn expected_false_duplicates(&self) -> Option<f64> {
        Some(self.report().expected_false_duplicates)
    }

    fn expected_fpr(&self) -> f64 {
        self.report().expected_fpr
    }
}

impl LineForm for Box<dyn LineForm> {
    fn lines(&self) -> &[Line] {
        (**self).lines()
    }

    fn range(&self) -> LineRange {
        (**self).range()
    }

    fn huge_page_bytes(&self) -> u64 {
        (**self).huge_page_bytes()
    }

    fn expected_false_duplicates(&self) -> Option<f64> {
        (**self).expected_false_duplicates()
    }

    fn expected_fpr(&self) -> f64 {
        (**self).expected_fpr()
    }

    fn decrements(&self) -> Option<u32> {
        (**self).decrements()
    }
}

/// A rule as the batch loop sees it.
struct Step<O, R> {
    ops: O,
    rule: R,
}

impl<O: BitOps + SlotOps, R: Rule> LineStep for Step<O, R> {
    #[inline(always)]
    fn visit(&self, line: &mut Line, key: KeyHash) -> Outcome {
        Outcome {
            duplicate: self.rule.visit(self.ops, line, key),
            displaced: false,
        }
    }

    /// Bits and counters fade; no key is known to have been forgotten.
    #[inline(always)]
    fn evictions(_duplicates: u64, _displaced: u64) -> u64 {
        0
    }
}
