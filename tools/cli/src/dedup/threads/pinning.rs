//! `--pin`: threads on cores of their own.

use echoless::assembly::pin_thread;
use echoless::{Pinning, SpecError};

use crate::config::core_count;

/// The core of each thread; all `None` without `--pin`. Fails if there are more threads than cores,
/// or the system does not list its cores.
pub(in crate::dedup) fn cores(pin: bool, threads: usize) -> Result<Vec<Option<usize>>, SpecError> {
    if !pin {
        return Ok(vec![None; threads]);
    }
    let cores = core_count();
    if threads > cores {
        let allowed = format!("1 to {cores} with --pin, one for each core");
        return Err(SpecError::new("--threads", threads.to_string(), allowed));
    }
    let pinned = Pinning::Spread.cores(threads)?;
    if pinned.contains(&None) {
        let allowed = "no --pin, since this system does not list its cores";
        return Err(SpecError::new("--threads", threads.to_string(), allowed));
    }
    Ok(pinned)
}

/// Pins this thread to a core, if one is given.
pub(in crate::dedup) fn pin(core: Option<usize>) -> Result<(), SpecError> {
    if pin_thread(core) {
        return Ok(());
    }
    let asked = core.map_or_else(String::new, |core| format!("core {core}"));
    let allowed = "a core that this process may use";
    Err(SpecError::new("--pin", asked, allowed))
}
