//! Arrays of cache lines: zeroed, aligned, and on huge pages where the system provides them.
//!
//! A probe of a random line costs one cache miss. On 4 KiB pages it usually costs a page-table walk
//! as well, because the TLB cannot cover a large filter; on huge pages it does not.
//!
//! The array is an anonymous mapping, not an allocation: the kernel hands out zeroed pages on first
//! touch, so a large filter starts at once, and huge pages can be requested for exactly its lines.
//! For a long stream, threads can ask for all of them before (`LineArray::provide`).
//!
//! ```text
//! mapping      | slack   | line 0 | line 1 | ...              | line n-1 | slack   |
//!              ^         ^
//!              |         first(): start bytes in, a multiple of 2 MiB
//!              page aligned                 (slack is 2 MiB in total; none below 2 MiB of lines)
//! ```

// Views of an anonymous mapping as lines or atomic words, prefetches, and a fork handler.
#![allow(unsafe_code)]

mod available;
#[cfg(feature = "threads")]
pub(crate) mod process;

use std::ops::{Deref, DerefMut};

use memmap2::{MmapMut, MmapRaw};

use crate::error::MemoryError;
use crate::sync::AtomicU64;

pub use available::available;
pub use available::check_available;

/// The size of a cache line in bytes.
pub const LINE_BYTES: u64 = 64;

/// The size of a huge page of x86-64 and of most aarch64 systems, in bytes.
const HUGE_PAGE_BYTES: usize = 2 << 20;

/// One cache line: eight words, aligned so that they never straddle two lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct Line(pub [u64; 8]);

impl Line {
    /// An empty line: all zero, as in a fresh mapping.
    pub const EMPTY: Self = Self([0; 8]);

    /// Whether a word differs. `!=` calls `memcmp`, which costs more than the comparison where all
    /// lines of a filter are read in order.
    #[inline(always)]
    pub(crate) fn differs_from(&self, other: &Self) -> bool {
        let words = self.0.iter().zip(&other.0);
        words.fold(0, |differing, (one, two)| differing | (one ^ two)) != 0
    }
}

/// The bytes of lines as they are in memory.
pub(crate) fn line_bytes(lines: &[Line]) -> &[u8] {
    // SAFETY: a line is an array of words (`repr(C)`), 64 bytes without padding, and bytes need no
    // alignment. The slice borrows `lines`.
    unsafe { std::slice::from_raw_parts(lines.as_ptr().cast(), size_of_val(lines)) }
}

/// As [`line_bytes`], to overwrite them.
pub(crate) fn line_bytes_mut(lines: &mut [Line]) -> &mut [u8] {
    // SAFETY: as in `line_bytes`, and every bit pattern is a line. The borrow of `lines` is
    // exclusive.
    unsafe { std::slice::from_raw_parts_mut(lines.as_mut_ptr().cast(), size_of_val(lines)) }
}

/// A zeroed array of lines, aligned to a huge page if it is at least that large.
///
/// The system backs a page with memory when it is first written, so an empty filter uses none
/// unless it is [provided](Self::provide).
///
/// # Examples
/// ```
/// use echoless::memory::{Line, LineArray};
/// let lines = LineArray::zeroed(1000).unwrap();
/// assert_eq!(lines.len(), 1000);
/// assert!(lines.iter().all(|line| *line == Line::EMPTY));
/// assert_eq!(lines.as_ptr() as usize % 64, 0);
/// ```
#[derive(Debug)]
pub struct LineArray {
    /// A raw mapping, not an [`MmapMut`], which hands out `&[u8]` and `&mut [u8]`. [`AtomicWords`]
    /// lets several threads write through `&self`; no reference may promise that the bytes do not
    /// change.
    mapping: MmapRaw,
    /// The offset of the first line in the mapping, in bytes: a multiple of 64.
    start: usize,
    /// The number of lines, at least 1. `start + lines * 64` is at most the length of the mapping.
    lines: usize,
}

impl LineArray {
    /// An array of `lines` empty lines.
    ///
    /// # Errors
    /// [`MemoryError`] if `lines` is 0, if the array would not fit into the address space, or if
    /// less memory is available.
    pub fn zeroed(lines: u64) -> Result<Self, MemoryError> {
        let rejected = |reason: String| MemoryError {
            bytes: lines.saturating_mul(LINE_BYTES),
            reason,
        };
        let bytes = lines
            .checked_mul(LINE_BYTES)
            .and_then(|bytes| usize::try_from(bytes).ok())
            // A slice must not exceed `isize::MAX` bytes; leave room for the slack.
            .filter(|bytes| *bytes <= isize::MAX as usize - HUGE_PAGE_BYTES)
            .ok_or_else(|| rejected("more than the address space".into()))?;
        if bytes == 0 {
            return Err(rejected("an array has at least one line".into()));
        }
        check_available(bytes as u64)?;
        let huge = bytes >= HUGE_PAGE_BYTES;
        let slack = if huge { HUGE_PAGE_BYTES } else { 0 };
        let mapping =
            MmapMut::map_anon(bytes + slack).map_err(|error| rejected(error.to_string()))?;
        let mapping = MmapRaw::from(mapping);
        let start = if huge {
            mapping.as_ptr().align_offset(HUGE_PAGE_BYTES)
        } else {
            0
        };
        #[cfg(target_os = "linux")]
        if huge {
            // A kernel without huge pages returns an error, and the array works on small pages.
            // `huge_page_bytes` reports the outcome.
            let _ = mapping.advise_range(memmap2::Advice::HugePage, start, bytes);
        }
        // `first` and the unsafe blocks below rely on this. The sum is checked because
        // `align_offset` is allowed to return `usize::MAX`.
        let end = start.checked_add(bytes);
        assert!(
            end.is_some_and(|end| end <= mapping.len()),
            "the lines lie in the mapping"
        );
        Ok(Self {
            mapping,
            start,
            lines: lines as usize,
        })
    }

    /// The size of the array in bytes.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.lines as u64 * LINE_BYTES
    }

    /// Has the system provide one of `shares` shares of the memory now and not on its first touch,
    /// so that threads can do it side by side. A hint, which Linux follows from version 5.14 on.
    pub fn provide(&self, share: usize, shares: usize) {
        #[cfg(target_os = "linux")]
        if share < shares {
            let bytes = self.bytes() as usize;
            let pages = bytes.div_ceil(HUGE_PAGE_BYTES) as u128;
            let from = |share: usize| {
                let page = pages * share as u128 / shares as u128;
                bytes.min(page as usize * HUGE_PAGE_BYTES)
            };
            let (from, to) = (from(share), from(share + 1));
            if from < to {
                let populate = memmap2::Advice::PopulateWrite;
                let _ = self
                    .mapping
                    .advise_range(populate, self.start + from, to - from);
            }
        }
    }

    /// A pointer to the first line. `lines` lines from it on lie in the mapping, by the assertion
    /// in [`zeroed`](Self::zeroed). It is aligned, because `start` is a multiple of 64 and a
    /// mapping is page-aligned. Writing through it needs an exclusive borrow of `self`, or atomic
    /// operations.
    #[inline(always)]
    fn first(&self) -> *mut Line {
        // `wrapping_add` keeps the provenance of the mapping and needs no unsafe block.
        let first = self.mapping.as_mut_ptr().wrapping_add(self.start).cast();
        debug_assert!(<*mut Line>::is_aligned(first));
        first
    }
}

/// The number of bytes of this process that are on huge pages now; `None` where the system does not
/// report it. The kernel visits all pages of the process for it, which takes milliseconds for each
/// gigabyte on small pages.
#[must_use]
pub fn huge_page_bytes() -> Option<u64> {
    huge_bytes_in(&std::fs::read_to_string("/proc/self/smaps_rollup").ok()?)
}

impl Deref for LineArray {
    type Target = [Line];

    #[inline]
    fn deref(&self) -> &[Line] {
        // SAFETY: `first` is aligned and points to `lines` lines in one mapping (see `first`). They
        // are initialised: the kernel zeroes the pages, and every bit pattern is a `Line`. The
        // mapping outlives the slice, which borrows `self`. Nothing writes the lines during the
        // borrow, because `deref_mut` needs an exclusive one. `AtomicWords`, which writes through a
        // shared borrow, never calls this function.
        unsafe { std::slice::from_raw_parts(self.first(), self.lines) }
    }
}

impl DerefMut for LineArray {
    #[inline]
    fn deref_mut(&mut self) -> &mut [Line] {
        // SAFETY: as in `deref`. The borrow of `self` is exclusive, so this is the only reference
        // to the lines.
        unsafe { std::slice::from_raw_parts_mut(self.first(), self.lines) }
    }
}

/// An array of words that several threads update at once, in the memory of a [`LineArray`].
///
/// # Examples
/// ```
/// use std::sync::atomic::Ordering;
/// let words = echoless::memory::AtomicWords::zeroed(2).unwrap();
/// assert_eq!(words.len(), 16);
/// words[15].fetch_add(3, Ordering::Relaxed);
/// assert_eq!(words[15].load(Ordering::Relaxed), 3);
/// ```
#[derive(Debug)]
pub struct AtomicWords {
    #[cfg(not(loom))]
    lines: LineArray,
    /// loom tracks accesses to its own atomic type only, which cannot be laid over a mapping.
    #[cfg(loom)]
    words: Vec<AtomicU64>,
}

impl AtomicWords {
    /// An array of eight words for each of `lines` lines, all zero.
    ///
    /// # Errors
    /// [`MemoryError`] as of [`LineArray::zeroed`].
    pub fn zeroed(lines: u64) -> Result<Self, MemoryError> {
        Ok(Self {
            #[cfg(not(loom))]
            lines: LineArray::zeroed(lines)?,
            #[cfg(loom)]
            words: (0..lines * 8).map(|_| AtomicU64::new(0)).collect(),
        })
    }
}

impl Deref for AtomicWords {
    type Target = [AtomicU64];

    #[cfg(loom)]
    fn deref(&self) -> &[AtomicU64] {
        &self.words
    }

    #[cfg(not(loom))]
    #[inline]
    fn deref(&self) -> &[AtomicU64] {
        let lines = &self.lines;
        // SAFETY: the memory is valid and initialised as in `LineArray::deref`. `AtomicU64` has the
        // layout of `u64`, eight of which make up a `Line`. The array is private to this type,
        // which never views it as lines, and `first` derives from a raw pointer: every access to
        // the memory is atomic, so shared slices may exist on any number of threads.
        unsafe { std::slice::from_raw_parts(lines.first().cast::<AtomicU64>(), lines.lines * 8) }
    }
}

/// The cache that a prefetch brings a line into.
///
/// A CPU follows only so many misses of its L1 cache at a time. AMD Zen 4 can follow more than
/// twice as many of its L2 cache, and a line from there costs a visit next to nothing; see
/// `bench/record/TRIED.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheLevel {
    /// All caches, down to the first level.
    L1,
    /// Down to the second level.
    L2,
}

/// Prefetches the cache line of an item. It is a hint without effect on results; a position past
/// the end is allowed. Does nothing on CPUs other than x86-64.
#[inline(always)]
pub fn prefetch<T>(items: &[T], position: usize, cache: CacheLevel) {
    // `wrapping_add`: a position past the end must not be undefined behaviour.
    let item = items.as_ptr().wrapping_add(position);
    #[cfg(target_arch = "x86_64")]
    // SAFETY: SSE is part of x86-64. A prefetch does not access memory as the abstract machine
    // defines it, and cannot fault for any address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _MM_HINT_T1, _mm_prefetch};
        match cache {
            CacheLevel::L1 => _mm_prefetch::<_MM_HINT_T0>(item.cast()),
            CacheLevel::L2 => _mm_prefetch::<_MM_HINT_T1>(item.cast()),
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (item, cache);
}

/// The `AnonHugePages` in the text of `smaps_rollup`, in bytes.
fn huge_bytes_in(rollup: &str) -> Option<u64> {
    let mut lines = rollup.lines();
    let rest = lines.find_map(|line| line.strip_prefix("AnonHugePages:"))?;
    let kibibytes: u64 = rest.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_zero_aligned_and_writable() {
        for lines in [1, 63, 64, 65, (3 << 20) / 64, (5 << 20) / 64 + 1] {
            let mut array = LineArray::zeroed(lines).unwrap();
            assert_eq!(array.len() as u64, lines);
            assert_eq!(array.bytes(), lines * 64);
            let alignment = if array.bytes() >= 2 << 20 {
                2 << 20
            } else {
                64
            };
            assert_eq!(array.as_ptr() as usize % alignment, 0);
            assert!(array.iter().all(|line| *line == Line::EMPTY));
            *array.first_mut().unwrap() = Line([1; 8]);
            *array.last_mut().unwrap() = Line([2; 8]);
            assert_eq!(array[lines as usize - 1], Line([2; 8]));
        }
    }

    #[test]
    fn provided_memory_is_as_it_was() {
        for lines in [1, 1 << 15, 100_000] {
            let mut array = LineArray::zeroed(lines).unwrap();
            array[lines as usize - 1] = Line([7; 8]);
            for (share, shares) in [(0, 1), (0, 3), (1, 3), (2, 3), (4, 5)] {
                array.provide(share, shares);
            }
            let (last, others) = array.split_last().unwrap();
            assert!(*last == Line([7; 8]) && others.iter().all(|line| *line == Line::EMPTY));
        }
    }

    #[test]
    fn impossible_sizes_are_rejected() {
        for lines in [0, (64 << 40) / 64, u64::MAX / 64, u64::MAX] {
            let error = LineArray::zeroed(lines).unwrap_err();
            assert_eq!(error.bytes, lines.saturating_mul(64));
            assert!(error.to_string().contains(&error.bytes.to_string()));
        }
    }

    #[test]
    fn huge_pages_are_read_from_the_sum_of_the_mappings() {
        let rollup = "00400000 [rollup]\nRss:  100 kB\nAnonHugePages:     2048 kB\nSwap: 0 kB\n";
        assert_eq!(huge_bytes_in(rollup), Some(2 << 20));
        assert_eq!(huge_bytes_in("Rss: 1 kB\n"), None);
    }
}
