//! Where standard error writes if it is the same file as standard output.

/// Whether standard error writes behind what standard output has written, if both are one regular
/// file: they share a position, as with `>log 2>&1`, or append. With `>log 2>log` the file is open
/// twice, each has a position of its own, and they overwrite each other.
#[cfg(unix)]
pub(crate) fn is_at_end_of_stdout() -> bool {
    use std::io;

    use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

    let (stdout, stderr) = (io::stdout(), io::stderr());
    let (Ok(of_stdout), Ok(of_stderr)) = (fcntl_getfl(&stdout), fcntl_getfl(&stderr)) else {
        return true;
    };
    if of_stdout != of_stderr {
        return false;
    }
    if of_stdout.contains(OFlags::APPEND) {
        return true;
    }
    // Flags belong to the open file, as the position does, so a change shows whether there is one
    // open file or two. This flag has no effect on a regular file. To move the position instead
    // could misplace what another program writes meanwhile.
    if fcntl_setfl(&stderr, of_stderr ^ OFlags::NONBLOCK).is_err() {
        return true;
    }
    let is_shared = fcntl_getfl(&stdout) != Ok(of_stdout);
    let _ = fcntl_setfl(&stderr, of_stderr);
    is_shared
}

/// Elsewhere than on Unix, nothing is known of their positions.
#[cfg(not(unix))]
pub(crate) const fn is_at_end_of_stdout() -> bool {
    true
}
