//! The batch loop that every line filter runs in: fetch lines ahead, then visit them in order and pack the verdicts.

use crate::cpu::HotLoop;
use crate::hash::KeyHash;
use crate::memory::Line;

/// How many keys ahead a line is fetched. Far enough to cover a memory access, near enough that the line is still cached.
const AHEAD: usize = 24;

/// What a filter does to the one line of a key.
pub(crate) trait LineStep {
    /// Tests and records the key in its line; true if it is a duplicate. Must be `#[inline(always)]`.
    fn visit(&mut self, line: &mut Line, key: KeyHash) -> bool;
}

/// A contiguous range of the lines of a filter: all of them, or a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LineRange {
    /// How many lines the whole filter has.
    pub(crate) total: u64,
    /// The first line of the range.
    pub(crate) first: u64,
}

impl LineRange {
    /// Where the line of a key lies in an array that holds this range; past its end if the key is not of this range.
    #[inline(always)]
    pub(crate) const fn position(self, key: KeyHash) -> usize {
        key.line(self.total).wrapping_sub(self.first) as usize
    }
}

/// One batch on its way through the lines.
pub(crate) struct Drive<'a, S> {
    pub(crate) lines: &'a mut [Line],
    pub(crate) range: LineRange,
    pub(crate) keys: &'a [KeyHash],
    pub(crate) duplicates: &'a mut [u64],
    pub(crate) step: S,
}

impl<S: LineStep> HotLoop for Drive<'_, S> {
    /// The step, with what it counted.
    type Output = S;

    #[inline(always)]
    fn run(mut self) -> S {
        assert_eq!(
            self.duplicates.len(),
            self.keys.len().div_ceil(64),
            "one verdict word for each 64 keys"
        );
        for key in self.keys.iter().take(AHEAD) {
            prefetch(self.lines, self.range.position(*key));
        }
        let mut ahead = self.keys.iter().skip(AHEAD);
        for (keys, word) in self.keys.chunks(64).zip(self.duplicates) {
            let mut bits = 0;
            for (index, key) in keys.iter().enumerate() {
                if let Some(next) = ahead.next() {
                    prefetch(self.lines, self.range.position(*next));
                }
                let line = &mut self.lines[self.range.position(*key)];
                bits |= u64::from(self.step.visit(line, *key)) << index;
            }
            *word = bits;
        }
        self.step
    }
}

/// Asks the cache for a line; a position past the end is harmless.
#[inline(always)]
pub(crate) fn prefetch(lines: &[Line], position: usize) {
    let line = lines.as_ptr().wrapping_add(position);
    #[cfg(target_arch = "x86_64")]
    #[allow(unsafe_code)] // a prefetch is a hint: it reads nothing and cannot fault
    // SAFETY: SSE is part of x86-64, and a prefetch of any address is allowed.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(line.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = line;
}
