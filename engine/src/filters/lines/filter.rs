//! The filter itself: lines, and a rule that says what a key does to its own.

use crate::cpu::Granted;
use crate::filters::Filter;
use crate::hash::KeyHash;
use crate::kernels::{Drive, LineRange, LineStep, Visit};
use crate::memory::{Line, LineArray, prefetch};

/// What a key does to its line, and what it must find there to be a duplicate.
pub(super) trait Rule: Copy + Send + 'static {
    /// Tests and records the key; true means duplicate. Must be `#[inline(always)]`.
    fn visit(self, line: &mut Line, key: KeyHash) -> bool;

    /// Whether the key would be called a duplicate.
    fn holds(self, line: &Line, key: KeyHash) -> bool;

    /// The share of the line's cells that hold something.
    fn load(self, line: &Line) -> f64;
}

/// Any rule on a range of lines. One cache line is touched for each key.
#[derive(Debug)]
pub(super) struct LineFilter<R> {
    lines: LineArray,
    range: LineRange,
    rule: R,
    kernel: Granted,
}

impl<R: Rule> LineFilter<R> {
    pub(super) const fn new(lines: LineArray, range: LineRange, rule: R, kernel: Granted) -> Self {
        Self {
            lines,
            range,
            rule,
            kernel,
        }
    }
}

impl<R: Rule> Filter for LineFilter<R> {
    /// # Panics
    /// If a key does not belong to this partition.
    fn observe_words(&mut self, keys: &[KeyHash], duplicates: &mut [u64]) {
        self.kernel.run(Drive {
            lines: &mut self.lines,
            range: self.range,
            keys,
            duplicates,
            step: Step(self.rule),
        });
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

    fn lines(&self) -> Option<&[Line]> {
        Some(&self.lines)
    }

    fn prefetch(&self, keys: &[KeyHash]) {
        for key in keys {
            prefetch(&self.lines, self.range.position(*key));
        }
    }
}

/// A rule as the batch loop sees it.
struct Step<R>(R);

impl<R: Rule> LineStep for Step<R> {
    #[inline(always)]
    fn visit(&self, line: &mut Line, key: KeyHash) -> Visit {
        Visit {
            duplicate: self.0.visit(line, key),
            displaced: false,
        }
    }

    /// Bits and counters fade; no key is known to have been forgotten.
    #[inline(always)]
    fn evictions(_duplicates: u64, _displaced: u64) -> u64 {
        0
    }
}
