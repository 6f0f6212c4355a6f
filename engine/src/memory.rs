//! Arrays of cache lines: zeroed, aligned, on huge pages where the machine grants them.
//!
//! One random line costs one cache miss and, on 4 KiB pages, one page-table walk on top; huge pages save the walk.

#![allow(unsafe_code)] // a view of a fresh anonymous mapping as lines, and the prefetch hint

use std::ops::{Deref, DerefMut};

use memmap2::{MmapMut, MmapRaw};

use crate::error::MemoryError;
use crate::sync::AtomicU64;

/// The size of a cache line in bytes.
pub const LINE_BYTES: u64 = 64;

/// The size of a huge page of x86-64 and of most aarch64 systems, in bytes.
const HUGE_PAGE_BYTES: usize = 2 << 20;

/// One cache line: eight words, aligned so that it never straddles two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct Line(pub [u64; 8]);

impl Line {
    /// The line that a fresh array is full of.
    pub const EMPTY: Self = Self([0; 8]);
}

/// A zeroed array of lines, aligned to a huge page if it fills one.
///
/// Pages are granted when first touched, so a filter that stays empty costs nothing.
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
    /// Without references into the memory, so that words which threads write through `&self` are never promised to stay as they are.
    mapping: MmapRaw,
    /// Where the first line starts in the mapping, in bytes: a multiple of 64.
    start: usize,
    lines: usize,
}

impl LineArray {
    /// An array of `lines` empty lines.
    ///
    /// # Errors
    /// [`MemoryError`] if the machine has not that much memory available.
    pub fn zeroed(lines: u64) -> Result<Self, MemoryError> {
        let refused = |reason: String| MemoryError {
            bytes: lines.saturating_mul(LINE_BYTES),
            reason,
        };
        let bytes = lines
            .checked_mul(LINE_BYTES)
            .and_then(|bytes| usize::try_from(bytes).ok())
            .filter(|bytes| *bytes <= isize::MAX as usize - HUGE_PAGE_BYTES)
            .ok_or_else(|| refused("more than the address space".into()))?;
        if bytes == 0 {
            return Err(refused("an array has at least one line".into()));
        }
        check_available(bytes as u64)?;
        let huge = bytes >= HUGE_PAGE_BYTES;
        let slack = if huge { HUGE_PAGE_BYTES } else { 0 };
        let mapping =
            MmapMut::map_anon(bytes + slack).map_err(|error| refused(error.to_string()))?;
        let mapping = MmapRaw::from(mapping);
        let start = if huge {
            mapping.as_ptr().align_offset(HUGE_PAGE_BYTES)
        } else {
            0
        };
        #[cfg(target_os = "linux")]
        if huge {
            // A kernel without huge pages refuses; `huge_page_bytes` tells the truth later.
            let _ = mapping.advise_range(memmap2::Advice::HugePage, start, bytes);
        }
        assert!(
            start + bytes <= mapping.len(),
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

    /// Where the first line is: `zeroed` mapped `start + lines * 64` bytes or more, and `start` is a multiple of 64 in a page-aligned
    /// mapping. It may be written through as far as `self` may.
    #[inline(always)]
    fn first(&self) -> *mut Line {
        let first = self.mapping.as_mut_ptr().wrapping_add(self.start).cast();
        debug_assert!(<*mut Line>::is_aligned(first));
        first
    }

    /// How many bytes of the array lie on huge pages now; see [`huge_page_bytes`].
    #[must_use]
    pub fn huge_page_bytes(&self) -> u64 {
        huge_page_bytes(self)
    }
}

/// How many bytes of an array lie on huge pages now, as the kernel reports it; 0 where it does not report.
#[must_use]
pub fn huge_page_bytes(lines: &[Line]) -> u64 {
    std::fs::read_to_string("/proc/self/smaps")
        .ok()
        .and_then(|smaps| huge_bytes_at(&smaps, lines.as_ptr() as u64))
        .map_or(0, |bytes| bytes.min(size_of_val(lines) as u64))
}

impl Deref for LineArray {
    type Target = [Line];

    #[inline]
    fn deref(&self) -> &[Line] {
        // SAFETY: there are so many lines at `first`, which is aligned; every bit pattern is a `Line`; `self` owns the mapping for as
        // long as the slice is borrowed, and only an exclusive borrow of `self` writes it (for `AtomicWords`, which never comes here,
        // see there).
        unsafe { std::slice::from_raw_parts(self.first(), self.lines) }
    }
}

impl DerefMut for LineArray {
    #[inline]
    fn deref_mut(&mut self) -> &mut [Line] {
        // SAFETY: as in `deref`; the borrow of `self` is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.first(), self.lines) }
    }
}

/// An array of words that any number of threads update at once, on the memory of a [`LineArray`].
#[derive(Debug)]
pub(crate) struct AtomicWords {
    #[cfg(not(loom))]
    lines: LineArray,
    /// A model checker must see every access, so its words are its own.
    #[cfg(loom)]
    words: Vec<AtomicU64>,
}

impl AtomicWords {
    /// An array of `lines` times eight words, all zero.
    pub(crate) fn zeroed(lines: u64) -> Result<Self, MemoryError> {
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
        // SAFETY: as in `LineArray::deref`, eight words a line. The array is private and never seen as lines, and its pointer comes
        // from no reference: all accesses to the memory are atomic, by any number of threads.
        unsafe { std::slice::from_raw_parts(lines.first().cast::<AtomicU64>(), lines.lines * 8) }
    }
}

/// Asks the cache for an item that will be visited soon. A hint: it changes nothing, and a position past the end is harmless.
#[inline(always)]
pub fn prefetch<T>(items: &[T], position: usize) {
    let item = items.as_ptr().wrapping_add(position);
    #[cfg(target_arch = "x86_64")]
    // SAFETY: SSE is part of x86-64, and a prefetch of any address reads nothing and cannot fault.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(item.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = item;
}

/// Refuses a request that the machine cannot grant. The kernel would grant more than it has and end the process later.
///
/// # Errors
/// [`MemoryError`] if fewer than `bytes` bytes are available.
pub(crate) fn check_available(bytes: u64) -> Result<(), MemoryError> {
    match available_memory() {
        Some(available) if bytes > available => Err(MemoryError {
            bytes,
            reason: format!("{available} bytes are available"),
        }),
        _ => Ok(()),
    }
}

/// What the kernel says can be had without swapping, and what is left in the control groups of this process, in bytes.
fn available_memory() -> Option<u64> {
    let meminfo = std::fs::read_to_string("/proc/meminfo").ok()?;
    let available = kibibytes(&meminfo, "MemAvailable:")? * 1024;
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let left = groups.lines().filter_map(left_in_group).min();
    Some(left.map_or(available, |left| left.min(available)))
}

/// What the control group on a line of `/proc/self/cgroup` may still use, in bytes: version 2 (`0::/path`) or the memory group of version 1.
/// Limits of the groups around it are not looked at.
fn left_in_group(line: &str) -> Option<u64> {
    let mut parts = line.splitn(3, ':');
    let (number, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
    let (root, limit, used) = if number == "0" && controllers.is_empty() {
        ("/sys/fs/cgroup", "memory.max", "memory.current")
    } else if controllers.split(',').any(|name| name == "memory") {
        (
            "/sys/fs/cgroup/memory",
            "memory.limit_in_bytes",
            "memory.usage_in_bytes",
        )
    } else {
        return None;
    };
    // Inside a container the group's own path may not be visible, and the root is the group.
    [format!("{root}{path}"), root.to_owned()]
        .iter()
        .find_map(|group| {
            let text = |file: &str| std::fs::read_to_string(format!("{group}/{file}")).ok();
            let number = |file: &str| -> Option<u64> { text(file)?.trim().parse().ok() };
            let cached = cached_files(&text("memory.stat").unwrap_or_default());
            Some(number(limit)?.saturating_sub(number(used)?.saturating_sub(cached)))
        })
}

/// How much of a control group's memory holds files that can be read again, by its `memory.stat`: it is given up when memory is asked for.
fn cached_files(stat: &str) -> u64 {
    let value = |names: [&str; 2]| -> Option<u64> {
        stat.lines().find_map(|line| {
            let (name, value) = line.split_once(' ')?;
            names.contains(&name).then(|| value.trim().parse().ok())?
        })
    };
    // The totals of version 1 hold the groups below, as the numbers of version 2 do.
    let active = value(["active_file", "total_active_file"]).unwrap_or(0);
    active + value(["inactive_file", "total_inactive_file"]).unwrap_or(0)
}

/// The number on the line of `/proc` text that starts with `label`.
fn kibibytes(text: &str, label: &str) -> Option<u64> {
    text.lines()
        .find_map(|line| line.strip_prefix(label))?
        .trim()
        .strip_suffix("kB")?
        .trim()
        .parse()
        .ok()
}

/// The `AnonHugePages` of the mapping in `smaps` that holds `address`, in bytes.
fn huge_bytes_at(smaps: &str, address: u64) -> Option<u64> {
    let holds = |line: &str| {
        let (low, high) = line.split_once(' ')?.0.split_once('-')?;
        let low = u64::from_str_radix(low, 16).ok()?;
        let high = u64::from_str_radix(high, 16).ok()?;
        (low..high).contains(&address).then_some(())
    };
    let mut lines = smaps.lines();
    lines.find(|line| holds(line).is_some())?;
    lines
        .find_map(|line| line.strip_prefix("AnonHugePages:"))
        .and_then(|rest| rest.trim().strip_suffix("kB")?.trim().parse().ok())
        .map(|kibibytes: u64| kibibytes * 1024)
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
    fn impossible_sizes_are_refused() {
        for lines in [0, (64 << 40) / 64, u64::MAX / 64, u64::MAX] {
            let error = LineArray::zeroed(lines).unwrap_err();
            assert_eq!(error.bytes, lines.saturating_mul(64));
            assert!(error.to_string().contains(&error.bytes.to_string()));
        }
    }

    #[test]
    fn files_that_can_be_read_again_are_no_memory_in_use() {
        let stat = "anon 7\nfile 50\nactive_file 20\ninactive_file 30\nslab 9\n";
        assert_eq!(cached_files(stat), 50);
        assert_eq!(cached_files("total_inactive_file 30\nrss 1\n"), 30);
        assert_eq!(cached_files(""), 0);
    }

    #[test]
    fn huge_pages_are_read_from_the_mapping_that_holds_the_address() {
        let smaps = "1000-2000 rw-p 00000000 00:00 0\nRss: 4 kB\nAnonHugePages:  2 kB\n\
                     2000-9000 rw-p 00000000 00:00 0\nRss: 4 kB\nAnonHugePages:   16 kB\n";
        assert_eq!(huge_bytes_at(smaps, 0x2000), Some(16 * 1024));
        assert_eq!(huge_bytes_at(smaps, 0x1fff), Some(2 * 1024));
        assert_eq!(huge_bytes_at(smaps, 0x9000), None);
        let array = LineArray::zeroed(1 << 16).unwrap();
        assert!(array.huge_page_bytes() <= array.bytes());
    }
}
