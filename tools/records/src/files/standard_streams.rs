//! The standard streams as files, and whether two of them are one. They are used through a duplicate
//! of their descriptor: the handles of the standard library would buffer again and search for
//! newlines.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::thread;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

use super::descriptors::check_stdout;
use crate::failure::Failure;

/// Writes to standard output.
///
/// # Errors
/// [`Failure`] if it cannot be written.
pub fn write_stdout(text: &[u8]) -> Result<(), Failure> {
    let mut output = io::stdout().lock();
    check_stdout()
        .and_then(|()| output.write_all(text))
        .and_then(|()| output.flush())
        .map_err(Failure::writing_stdout)
}

pub(super) fn standard_input() -> io::Result<File> {
    Ok(io::stdin().as_fd().try_clone_to_owned()?.into())
}

/// Standard output, as a file.
///
/// # Errors
/// The error of the system if the descriptor cannot be duplicated.
pub fn standard_output() -> io::Result<File> {
    Ok(io::stdout().as_fd().try_clone_to_owned()?.into())
}

/// How often the flags are compared before two open files are taken for separate ones. A concurrent
/// process with the same files, which compares them as well, can disturb one comparison.
const COMPARISONS: u32 = 16;

/// Whether standard error writes behind what standard output has written, if both are one regular
/// file: they share a position, as with `>log 2>&1`, or append. With `>log 2>log` the file is open
/// twice, each has a position of its own, and they overwrite each other.
pub(super) fn is_at_end_of_stdout() -> bool {
    let (stdout, stderr) = (io::stdout(), io::stderr());
    let (Ok(of_stdout), Ok(of_stderr)) = (fcntl_getfl(&stdout), fcntl_getfl(&stderr)) else {
        return true;
    };
    if (of_stdout & of_stderr).contains(OFlags::APPEND) {
        return true;
    }
    // Changed below, by concurrent processes as well. It has no effect on a regular file.
    let probe = OFlags::NONBLOCK;
    if of_stdout.difference(probe) != of_stderr.difference(probe) {
        return false;
    }
    // Flags belong to the open file, as the position does, so a change shows whether there is one
    // open file or two. To move the position instead could misplace what another program writes
    // meanwhile.
    let follows = |flags: OFlags| {
        let is_set = fcntl_setfl(&stderr, flags).is_ok();
        !is_set || fcntl_getfl(&stdout).map_or(true, |shown| shown == flags)
    };
    let is_shared = (0..COMPARISONS).any(|_| {
        thread::yield_now();
        follows(of_stderr | probe) && follows(of_stderr.difference(probe))
    });
    let _ = fcntl_setfl(&stderr, of_stderr);
    is_shared
}
