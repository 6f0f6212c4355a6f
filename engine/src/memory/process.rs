//! The process that something was built in. A fork copies the memory of a process, with its locks
//! and rings, but of its threads only the one that forks: in the copy, a wait for another thread
//! lasts forever.

use crate::sync::{
    Ordering,
    unmodelled::{AtomicU64, OnceLock},
};

/// How many forks lie between the first process that built something and this one. The children of
/// one process have equal numbers, but none of them can reach what another one has built.
static FORKS: AtomicU64 = AtomicU64::new(0);

/// A process, as one of those that a chain of forks has led through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Process {
    forks: u64,
}

impl Process {
    /// The process of the caller.
    pub(crate) fn current() -> Self {
        static COUNTED: OnceLock<()> = OnceLock::new();
        COUNTED.get_or_init(count_forks);
        Self {
            forks: FORKS.load(Ordering::Relaxed),
        }
    }

    /// Whether the caller is in this process, and not in a fork of it. One load: the number of the
    /// process from the system would be a system call.
    #[inline]
    pub(crate) fn is_current(self) -> bool {
        // Relaxed: it changes while a process has no other thread yet.
        self.forks == FORKS.load(Ordering::Relaxed)
    }
}

/// Makes every child of this process count its fork before it does anything else.
#[cfg(all(unix, not(any(loom, miri))))]
fn count_forks() {
    unsafe extern "C" fn count() {
        FORKS.fetch_add(1, Ordering::Relaxed);
    }
    // SAFETY: the handler may run in a child of a process with other threads, whose locks are left
    // as they were: it adds to an atomic word, and calls nothing. It is never unloaded before the
    // word.
    let outcome = unsafe { libc::pthread_atfork(None, None, Some(count)) };
    // Its only error is a lack of memory. Forks are then taken for their parents.
    debug_assert_eq!(outcome, 0, "memory for a fork handler");
}

/// No system other than Unix forks, no model does, and Miri cannot.
#[cfg(not(all(unix, not(any(loom, miri)))))]
fn count_forks() {}
