//! The standard streams as files. They are used through a duplicate of their descriptor: the
//! handles of the standard library would buffer again and search for newlines.

use std::fs::File;
use std::io::{self, Write};

use super::descriptors::check_stdout;
use crate::failure::Failure;

/// Writes to standard output.
pub fn write_stdout(text: &[u8]) -> Result<(), Failure> {
    let mut output = io::stdout().lock();
    check_stdout()
        .and_then(|()| output.write_all(text))
        .and_then(|()| output.flush())
        .map_err(Failure::writing_stdout)
}

#[cfg(unix)]
pub(super) fn standard_input() -> io::Result<File> {
    use std::os::fd::AsFd;
    Ok(io::stdin().as_fd().try_clone_to_owned()?.into())
}

/// Standard output, as a file.
#[cfg(unix)]
pub fn standard_output() -> io::Result<File> {
    use std::os::fd::AsFd;
    Ok(io::stdout().as_fd().try_clone_to_owned()?.into())
}

#[cfg(windows)]
pub(super) fn standard_input() -> io::Result<File> {
    use std::os::windows::io::AsHandle;
    Ok(io::stdin().as_handle().try_clone_to_owned()?.into())
}

#[cfg(windows)]
pub(crate) fn standard_output() -> io::Result<File> {
    use std::os::windows::io::AsHandle;
    Ok(io::stdout().as_handle().try_clone_to_owned()?.into())
}
