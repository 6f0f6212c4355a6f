//! Capture by AF_XDP: a program of the kernel takes the frames of an interface from the host, and
//! puts those of each of its queues into memory of this process.

mod program;
mod reader;
mod socket;
mod umem;

use std::io::{self, ErrorKind};
use std::thread;
use std::time::Duration;

pub(crate) use reader::XdpReader;

/// How often a step is repeated while something is busy, and how long it waits between: the kernel
/// takes back what another process has left a moment after its end.
const TRIES: usize = 50;
const BETWEEN_TRIES: Duration = Duration::from_millis(10);

/// Repeats a step for a moment while another program has a queue or the interface.
fn while_busy<T>(mut step: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    for _ in 1..TRIES {
        match step() {
            Err(error) if is_busy(&error) => thread::sleep(BETWEEN_TRIES),
            done => return done,
        }
    }
    step()
}

/// Whether another program has a queue or the interface.
fn is_busy(error: &io::Error) -> bool {
    [ErrorKind::ResourceBusy, ErrorKind::AlreadyExists].contains(&error.kind())
}
