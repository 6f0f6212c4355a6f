//! Memory that is shared with the kernel.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::{self, NonNull};

/// A mapping that is read and written. It exposes pointers only; its owner and the kernel agree on
/// who may access the bytes.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: the mapping belongs to no thread, and users of its pointers synchronise their accesses.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps so many bytes of a file from an offset on, which is one of a page.
    pub(crate) fn of_file(file: BorrowedFd<'_>, offset: u64, length: usize) -> io::Result<Self> {
        Self::new(libc::MAP_SHARED, file.as_raw_fd(), offset, length)
    }

    /// Maps so many zeros.
    pub(crate) fn of_zeros(length: usize) -> io::Result<Self> {
        Self::new(libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0, length)
    }

    fn new(flags: i32, file: i32, offset: u64, length: usize) -> io::Result<Self> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let offset = offset.try_into().map_err(io::Error::other)?;
        // SAFETY: a new mapping, which replaces no other.
        let start = unsafe { libc::mmap64(ptr::null_mut(), length, access, flags, file, offset) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, length })
    }

    /// The number of bytes.
    pub(crate) const fn len(&self) -> usize {
        self.length
    }

    /// A pointer to the byte at this offset, which so many bytes follow that are in the mapping,
    /// that one included.
    ///
    /// # Panics
    /// If they are not.
    #[inline]
    pub(crate) fn at(&self, offset: usize, bytes: usize) -> *mut u8 {
        let end = offset.checked_add(bytes);
        assert!(
            end.is_some_and(|end| end <= self.length),
            "bytes of a mapping"
        );
        // SAFETY: inside the mapping, whose length fits in memory.
        unsafe { self.start.as_ptr().add(offset) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping of `new`, whose owner has no pointers of it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}
