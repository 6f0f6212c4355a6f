//! Buckets: the lines that a key hash selects. Everything that a key reads or writes lies in its
//! bucket, so a range of whole buckets can be a partition.
//!
//! ```text
//! lines     | 0 | 1 | 2 | ...                                | 64 | 65 | ...
//! Line      | one bucket for each line
//! Page      | 64 lines of 64 bytes, one page of 4 KiB        | the next page
//!                 ^ home          ^ partner                    of one key: two lines of its page
//! ```

use crate::hash::KeyHash;
use crate::memory::{CacheLevel, Line, prefetch};

/// The number of lines of a [`Page`]: 4 KiB, the smallest page of the memory.
pub(crate) const PAGE_LINES: usize = 64;

/// The lines of a page.
pub(crate) type Page = [Line; PAGE_LINES];

/// One odd multiplier, 2^64 / golden ratio: it spreads every bit of a hash over the high bits of
/// the product.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// The lines that one key can read and write.
pub trait Bucket: Sized {
    /// The number of lines of a bucket. An array has a whole number of buckets.
    const LINES: usize;

    /// The bucket of the line at `position`.
    ///
    /// # Panics
    /// If `position` is past the last line: the key belongs to another partition.
    fn at(lines: &[Line], position: usize) -> &Self;

    /// As [`at`](Self::at), mutable.
    fn at_mut(lines: &mut [Line], position: usize) -> &mut Self;

    /// All buckets.
    fn all(lines: &[Line]) -> &[Self];

    /// Calls `with` with the position of each line that a visit of the key can write. `position` is
    /// that of the line that its hash selects.
    fn for_each_line(position: usize, key: KeyHash, with: impl FnMut(usize));

    /// Prefetches the lines that a visit of the key reads: those that it can write.
    #[inline(always)]
    fn prefetch(lines: &[Line], position: usize, key: KeyHash, cache: CacheLevel) {
        Self::for_each_line(position, key, |position| prefetch(lines, position, cache));
    }
}

/// In the place of the bounds check, which would only name an index.
#[cold]
#[inline(never)]
fn foreign_key() -> ! {
    panic!("a key of another partition: this filter does not hold its line")
}

impl Bucket for Line {
    const LINES: usize = 1;

    #[inline(always)]
    fn at(lines: &[Line], position: usize) -> &Self {
        lines.get(position).unwrap_or_else(|| foreign_key())
    }

    #[inline(always)]
    fn at_mut(lines: &mut [Line], position: usize) -> &mut Self {
        lines.get_mut(position).unwrap_or_else(|| foreign_key())
    }

    fn all(lines: &[Line]) -> &[Self] {
        lines
    }

    #[inline(always)]
    fn for_each_line(position: usize, _key: KeyHash, mut with: impl FnMut(usize)) {
        with(position);
    }
}

impl Bucket for Page {
    const LINES: usize = PAGE_LINES;

    #[inline(always)]
    fn at(lines: &[Line], position: usize) -> &Self {
        let page = lines.as_chunks().0.get(position / PAGE_LINES);
        page.unwrap_or_else(|| foreign_key())
    }

    #[inline(always)]
    fn at_mut(lines: &mut [Line], position: usize) -> &mut Self {
        let page = lines.as_chunks_mut().0.get_mut(position / PAGE_LINES);
        page.unwrap_or_else(|| foreign_key())
    }

    fn all(lines: &[Line]) -> &[Self] {
        lines.as_chunks().0
    }

    #[inline(always)]
    fn for_each_line(position: usize, key: KeyHash, mut with: impl FnMut(usize)) {
        with(position);
        with(position ^ PageKey::new(key).step);
    }
}

/// What a key takes from its hash besides its line and fingerprint, in a [`Page`].
///
/// ```text
/// hash * SPREAD   63      58 57           40 39  32 31                         0
///                 | step 0-63 |            | coin  |
/// ```
#[derive(Debug, Clone, Copy)]
pub(crate) struct PageKey {
    /// The partner line is `home ^ step`: 1 to 63, so it is another line of the page. 1 stands for
    /// 0, too.
    pub(crate) step: usize,
    /// Eight random bits.
    pub(crate) coin: u64,
}

impl PageKey {
    #[inline(always)]
    pub(crate) const fn new(key: KeyHash) -> Self {
        // The high bits of a hash are its line and the low ones its fingerprint; the product
        // depends on all of them, also where they overlap.
        let spread = key.0.wrapping_mul(SPREAD);
        let step = (spread >> 58) as usize;
        Self {
            step: step + (step == 0) as usize,
            coin: spread >> 32 & 0xff,
        }
    }

    /// The home and the partner of the key in its page. `home` is its line among all lines.
    #[inline(always)]
    pub(crate) const fn pair(self, home: u64) -> [usize; 2] {
        // The remainders prove the indices to the compiler, which then omits the bounds checks.
        let home = home as usize % PAGE_LINES;
        [home, (home ^ self.step) % PAGE_LINES]
    }
}
