//! Whether a pipe has ended before it is read, and how much it holds then.
//!
//! Hundreds of threads are worth starting for a long stream only: the rings between a thousand of
//! them take seconds and gigabytes. A short pipe has usually ended by the time that its reader
//! starts. What is found here depends on chance, so only the number of threads may depend on it,
//! never a verdict.

use std::time::Duration;

use crate::files::Source;

/// So many threads start in some 10 ms, and their rings take 14 MB.
pub(super) const CHEAP_THREADS: usize = 64;

/// How long to wait for the end of a pipe: less than the threads beyond the cheap ones take.
const PATIENCE: Duration = Duration::from_millis(50);

/// The length of all inputs in bytes, if each is a regular file or a pipe that ends soon.
pub(super) fn bytes_if_ended(sources: &[Source]) -> Option<u64> {
    Source::total_of(sources, |source| {
        source.len().or_else(|| rest_of_pipe(source))
    })
}

/// The bytes that are left in standard input, if it is a pipe without a writer.
#[cfg(unix)]
fn rest_of_pipe(source: &Source) -> Option<u64> {
    use std::os::unix::fs::FileTypeExt;

    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    // A named pipe gets its writer when it is opened, which is later.
    if !matches!(source, Source::Stdin) {
        return None;
    }
    let pipe = source.open().ok()?;
    if !pipe.metadata().ok()?.file_type().is_fifo() {
        return None;
    }
    let patience = Timespec::try_from(PATIENCE).ok();
    // Without a request for data, `poll` waits until the last writer is gone.
    let mut polled = [PollFd::new(&pipe, PollFlags::HUP)];
    poll(&mut polled, patience.as_ref()).ok()?;
    let has_ended = polled[0].revents().contains(PollFlags::HUP);
    has_ended
        .then(|| rustix::io::ioctl_fionread(&pipe).ok())
        .flatten()
}

#[cfg(not(unix))]
fn rest_of_pipe(_: &Source) -> Option<u64> {
    None
}
