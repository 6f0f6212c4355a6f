//! From verdict bits to runs of adjacent records with the same verdict.

use std::ops::Range;

/// The longest runs of records whose bit is clear, or set, in order; none is empty.
///
/// A bit of `edges` is set where a verdict differs from the one before, so a word of 64 equal
/// verdicts costs one comparison.
///
/// ```text
/// word         0 0 1 1 1 0     bit 0 first; 1 is outside of a run
/// shifted in   1 0 0 1 1 1     the verdict of the record before
/// edges        1 0 1 0 0 1     runs 0..2 and 5..
/// ```
#[derive(Debug, Clone)]
pub(crate) struct Runs<'a> {
    words: std::slice::Iter<'a, u64>,
    flip: u64,
    records: usize,
    /// The number of the record at bit 0 of `edges`.
    base: usize,
    edges: u64,
    /// 1 if the last record of the previous word is outside of a run, else 0.
    outside: u64,
}

impl<'a> Runs<'a> {
    /// The runs of `records` records in `words`: of the clear bits, or of the set ones.
    pub(crate) fn new(words: &'a [u64], records: usize, of_set_bits: bool) -> Self {
        debug_assert_eq!(words.len(), records.div_ceil(64));
        Self {
            words: words.iter(),
            flip: if of_set_bits { u64::MAX } else { 0 },
            records,
            base: 0_usize.wrapping_sub(64),
            edges: 0,
            outside: 1,
        }
    }

    /// The number of the next record that begins a run or follows one.
    #[inline]
    fn next_edge(&mut self) -> Option<usize> {
        while self.edges == 0 {
            let word = self.words.next()? ^ self.flip;
            self.edges = word ^ (word << 1 | self.outside);
            self.outside = word >> 63;
            self.base = self.base.wrapping_add(64);
        }
        let edge = self.base + self.edges.trailing_zeros() as usize;
        self.edges &= self.edges - 1;
        Some(edge)
    }
}

impl Iterator for Runs<'_> {
    type Item = Range<usize>;

    #[inline]
    fn next(&mut self) -> Option<Range<usize>> {
        // The unused bits of the last word may form a run.
        let start = self.next_edge().filter(|start| *start < self.records)?;
        let end = self
            .next_edge()
            .map_or(self.records, |end| end.min(self.records));
        Some(start..end)
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// One record at a time.
    fn model(bits: &[bool], of_set_bits: bool) -> Vec<Range<usize>> {
        let mut runs: Vec<Range<usize>> = Vec::new();
        for (record, bit) in bits.iter().enumerate() {
            if *bit != of_set_bits {
                continue;
            }
            match runs.last_mut() {
                Some(run) if run.end == record => run.end = record + 1,
                _ => runs.push(record..record + 1),
            }
        }
        runs
    }

    fn check(bits: &[bool]) {
        let mut words = vec![0; bits.len().div_ceil(64)];
        for (record, bit) in bits.iter().enumerate() {
            words[record / 64] |= u64::from(*bit) << (record % 64);
        }
        for of_set_bits in [false, true] {
            let runs: Vec<_> = Runs::new(&words, bits.len(), of_set_bits).collect();
            assert_eq!(runs, model(bits, of_set_bits), "{of_set_bits}");
        }
    }

    proptest! {
        #[test]
        fn runs_equal_the_model(bits in vec(any::<bool>(), 0..300)) {
            check(&bits);
        }

        #[test]
        fn long_runs_equal_the_model(lengths in vec(1usize..200, 0..12), first: bool) {
            let mut bits = Vec::new();
            for (run, length) in lengths.iter().enumerate() {
                bits.extend(std::iter::repeat_n(first ^ (run % 2 == 0), *length));
            }
            check(&bits);
        }
    }
}
