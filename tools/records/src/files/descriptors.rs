//! Which standard streams were closed when this process was started, as by `>&-` in a shell.
//!
//! The standard library opens `/dev/null` in their place before `main`. What is written to it is
//! lost without an error, and what is read from it looks like an empty file. So the descriptors are
//! checked earlier, by a function in the list of those that the loader calls. Elsewhere than on
//! Linux nothing is known of them.

#![allow(unsafe_code)] // the entry in the list of the loader

use std::io;

/// An error if standard input was closed.
pub(super) fn check_stdin() -> io::Result<()> {
    check(system::STDIN)
}

/// An error if standard output was closed.
///
/// # Errors
/// If standard output was closed when the process started.
pub fn check_stdout() -> io::Result<()> {
    check(system::STDOUT)
}

fn check(stream: u8) -> io::Result<()> {
    if system::closed() & stream == 0 {
        Ok(())
    } else {
        Err(io::Error::other("it is closed"))
    }
}

#[cfg(target_os = "linux")]
mod system {
    use std::sync::atomic::{AtomicU8, Ordering};

    use rustix::io::{Errno, fcntl_getfd};
    use rustix::stdio;

    pub(super) const STDIN: u8 = 1;
    pub(super) const STDOUT: u8 = 2;

    /// The standard streams that were closed.
    static CLOSED: AtomicU8 = AtomicU8::new(0);

    // SAFETY: the loader calls every pointer in this section once, before the standard library
    // starts, with arguments that a function without parameters may ignore. `note_closed` needs
    // nothing of the standard library: it makes two system calls and stores to an atomic, and it
    // cannot unwind.
    #[used]
    #[unsafe(link_section = ".init_array")]
    static NOTE_CLOSED: extern "C" fn() = note_closed;

    extern "C" fn note_closed() {
        let is_closed = |stream| fcntl_getfd(stream) == Err(Errno::BADF);
        let stdin = u8::from(is_closed(stdio::stdin())) * STDIN;
        let stdout = u8::from(is_closed(stdio::stdout())) * STDOUT;
        // Relaxed: there is one thread.
        CLOSED.store(stdin | stdout, Ordering::Relaxed);
    }

    pub(super) fn closed() -> u8 {
        // Relaxed: it was stored before any thread was started.
        CLOSED.load(Ordering::Relaxed)
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    pub(super) const STDIN: u8 = 1;
    pub(super) const STDOUT: u8 = 2;

    pub(super) const fn closed() -> u8 {
        0
    }
}
