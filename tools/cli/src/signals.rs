//! Signals that ask for the end: the stream ends where it was read to, and the run ends in good order.
//!
//! A reader waits for its file and for a signal at once. That also makes it wait for a file that does not block.

use std::fs::File;
use std::io;

pub(crate) use system::Signals;

#[cfg(unix)]
mod system {
    use std::os::unix::net::UnixStream;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use rustix::event::{PollFd, PollFlags, poll};
    use signal_hook::consts::{SIGINT, SIGTERM};
    use signal_hook::{flag, low_level};

    use super::{File, io};

    /// The signals that ask for the end, caught from now on. The second one of a kind ends the process at once, as if none were caught.
    #[derive(Debug)]
    pub(crate) struct Signals {
        caught: [(i32, Arc<AtomicBool>); 2],
        /// Readable for ever once a signal came.
        bell: UnixStream,
    }

    impl Signals {
        /// Catches them.
        pub(crate) fn catch() -> io::Result<Self> {
            let (bell, rope) = UnixStream::pair()?;
            let caught = [SIGINT, SIGTERM].map(|signal| (signal, Arc::default()));
            for (signal, came) in &caught {
                // In the order in which they shall run: the first time the flag is not set yet.
                flag::register_conditional_default(*signal, Arc::clone(came))?;
                flag::register(*signal, Arc::clone(came))?;
                low_level::pipe::register(*signal, rope.try_clone()?)?;
            }
            Ok(Self { caught, bell })
        }

        /// The number of the signal that came, if one did.
        pub(crate) fn caught(&self) -> Option<u8> {
            let came = |(_, came): &&(i32, Arc<AtomicBool>)| came.load(Ordering::Relaxed);
            let (signal, _) = self.caught.iter().find(came)?;
            u8::try_from(*signal).ok()
        }

        /// Waits until `file` has something to read, or has ended; `false` if a signal came.
        pub(crate) fn wait_for(&self, file: &File) -> io::Result<bool> {
            let mut both = [
                PollFd::new(file, PollFlags::IN),
                PollFd::new(&self.bell, PollFlags::IN),
            ];
            while let Err(error) = poll(&mut both, None) {
                if error != rustix::io::Errno::INTR {
                    return Err(error.into());
                }
            }
            Ok(both[1].revents().is_empty())
        }
    }
}

#[cfg(not(unix))]
mod system {
    use super::{File, io};

    /// No signals are caught here.
    #[derive(Debug)]
    pub(crate) struct Signals;

    impl Signals {
        pub(crate) fn catch() -> io::Result<Self> {
            Ok(Self)
        }

        pub(crate) fn caught(&self) -> Option<u8> {
            None
        }

        pub(crate) fn wait_for(&self, _: &File) -> io::Result<bool> {
            Ok(true)
        }
    }
}
