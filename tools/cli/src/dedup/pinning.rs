//! Threads kept on cores of their own.

use std::num::NonZeroUsize;
use std::thread::available_parallelism;

use echoless::assembly::pin_thread;
use echoless::{Pinning, SpecError};

/// The core of each thread; `None` everywhere unless `--pin` was given.
pub(crate) fn cores(pin: bool, threads: usize) -> Result<Vec<Option<usize>>, SpecError> {
    if !pin {
        return Ok(vec![None; threads]);
    }
    let cores = available_parallelism().map_or(1, NonZeroUsize::get);
    if threads > cores {
        let allowed = format!("1 to {cores} with --pin, a core for each");
        return Err(SpecError::new("--threads", threads.to_string(), allowed));
    }
    let places = Pinning::Spread.cores(threads)?;
    if places.contains(&None) {
        let allowed = "nothing, for this system does not say which cores there are";
        return Err(SpecError::new("--pin", "a core for each thread", allowed));
    }
    Ok(places)
}

/// Has this thread stay on a core, if one is given.
pub(crate) fn pin(core: Option<usize>) -> Result<(), SpecError> {
    if pin_thread(core) {
        return Ok(());
    }
    let asked = core.map_or_else(String::new, |core| format!("core {core}"));
    let allowed = "a core that the system lets this process choose";
    Err(SpecError::new("--pin", asked, allowed))
}
