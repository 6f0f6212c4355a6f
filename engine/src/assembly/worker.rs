//! The thread of a worker of an engine: it serves one partition until the engine stops it. And the
//! cores that workers, and threads of ordered filters, run on.

use super::server::ArrivalServer;
use crate::error::SpecError;
use crate::filters::Filter;
use crate::sync::{Arc, AtomicBool, Ordering, Sender};
use crate::transport::{Parker, Wait};

/// The state and the loop of a worker thread.
pub(super) struct WorkerTask<F> {
    pub(super) server: ArrivalServer<F>,
    pub(super) parker: Parker,
    pub(super) wait: Wait,
    pub(super) pin: Option<PinRequest>,
    pub(super) stop: Arc<AtomicBool>,
}

/// The core that a worker pins itself to, and the channel on which it reports whether it could.
pub(super) struct PinRequest {
    pub(super) core: usize,
    pub(super) report: Sender<bool>,
}

impl<F: Filter> WorkerTask<F> {
    /// Serves until the engine sets `stop`, then answers what is still in the rings.
    pub(super) fn work(&mut self) {
        if let Some(PinRequest { core, report }) = self.pin.take() {
            // Fails only if the builder returned early, with another error, and dropped the
            // receiver.
            let _ = report.send(pin_thread(Some(core)));
        }
        let Self { server, stop, .. } = self;
        loop {
            // Acquire: pairs with the Release in `Engine::stop_workers`. Read before the rings are,
            // so that the last pass finds every message that was enqueued before the stop.
            if stop.load(Ordering::Acquire) {
                // Reject new messages, or a port that never pauses would keep this loop running.
                server.close();
                while server.serve() {}
                return;
            }
            if !server.serve() {
                self.parker.wait_until(self.wait, || {
                    server.is_ready() || stop.load(Ordering::Acquire)
                });
            }
        }
    }

    pub(super) fn into_filter(self) -> Result<F, String> {
        self.server.into_filter()
    }
}

/// The cores on which threads run: the workers of an engine, or threads that the caller starts and
/// [pins](pin_thread), such as those that share an ordered filter.
///
/// # Examples
/// ```
/// use echoless::Pinning;
/// let cores = Pinning::Cores(vec![0, 0]).cores(2).unwrap();
/// assert_eq!(cores, [Some(0), Some(0)]);
/// assert!(Pinning::Cores(vec![0]).cores(2).is_err());
/// assert_eq!(Pinning::Unpinned.cores(2).unwrap(), [None, None]);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Pinning {
    /// The operating system schedules each thread on any core.
    #[default]
    Unpinned,
    /// Thread `i` runs on the `i`-th core that this process may use, modulo the number of those
    /// cores. Equals [`Unpinned`](Self::Unpinned) if the operating system does not report these
    /// cores, or the library was built without its feature `pinning`.
    Spread,
    /// Thread `i` runs on the `i`-th of these cores, which are numbered as by the operating system.
    /// An error without the feature `pinning`.
    Cores(Vec<usize>),
}

impl Pinning {
    /// The core of each of `threads` threads; `None` for a thread that is not pinned.
    ///
    /// # Errors
    /// [`SpecError`] if the number of listed cores is not `threads`, or this process may not use
    /// one of them.
    pub fn cores(&self, threads: usize) -> Result<Vec<Option<usize>>, SpecError> {
        let usable = usable_cores();
        match self {
            Self::Unpinned => Ok(vec![None; threads]),
            Self::Spread if usable.is_empty() => Ok(vec![None; threads]),
            Self::Spread => Ok(usable.into_iter().cycle().take(threads).map(Some).collect()),
            Self::Cores(cores) => {
                if cores.len() != threads {
                    let allowed = format!("one core for each of {threads} threads");
                    return Err(SpecError::new("pinning", format!("{cores:?}"), allowed));
                }
                if let Some(core) = cores.iter().find(|core| !usable.contains(core)) {
                    let allowed = if cfg!(feature = "pinning") {
                        format!("one of the cores {usable:?}, which this process may use")
                    } else {
                        "no core, as this library was built without its feature pinning".to_owned()
                    };
                    return Err(SpecError::new("pinning", format!("core {core}"), allowed));
                }
                Ok(cores.iter().copied().map(Some).collect())
            }
        }
    }
}

/// The cores that this process may use, by the operating system's numbers; empty if it does not
/// report them, or without the feature `pinning`.
fn usable_cores() -> Vec<usize> {
    #[cfg(feature = "pinning")]
    {
        let cores = core_affinity::get_core_ids().unwrap_or_default();
        cores.into_iter().map(|core| core.id).collect()
    }
    #[cfg(not(feature = "pinning"))]
    Vec::new()
}

/// The numbers of cores that fit in the mask of the operating system. `core_affinity` panics beyond
/// them, in a function that cannot unwind.
#[cfg(feature = "pinning")]
const MASK_CORES: usize = if cfg!(windows) {
    64
} else if cfg!(any(target_os = "linux", target_os = "android")) {
    1024
} else {
    256
};

/// Pins the calling thread to a core, and returns whether it did.
fn pin_to(core: usize) -> bool {
    #[cfg(feature = "pinning")]
    {
        // The usable cores would not do: to a thread that is pinned already, they are its own.
        core < MASK_CORES && core_affinity::set_for_current(core_affinity::CoreId { id: core })
    }
    #[cfg(not(feature = "pinning"))]
    {
        let _ = core;
        false
    }
}

/// Pins the calling thread to a core, or does nothing if the core is `None`, as [`Pinning::cores`]
/// returns it. Returns false if the operating system rejects the core, or the library was built
/// without its feature `pinning`; the thread then runs as before.
///
/// # Examples
/// ```
/// use echoless::{Pinning, assembly::pin_thread};
/// let cores = Pinning::Spread.cores(2)?;
/// std::thread::scope(|scope| {
///     for core in cores {
///         scope.spawn(move || {
///             if !pin_thread(core) {
///                 eprintln!("cannot pin to core {core:?}");
///             }
///         });
///     }
/// });
/// # Ok::<(), echoless::SpecError>(())
/// ```
#[must_use = "the operating system may reject the core"]
pub fn pin_thread(core: Option<usize>) -> bool {
    core.is_none_or(pin_to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spread_uses_every_core_before_any_twice() {
        let usable = usable_cores();
        let cores = Pinning::Spread.cores(usable.len() * 2).unwrap();
        for (core, assigned) in usable.iter().zip(&cores) {
            assert_eq!(Some(*core), *assigned);
        }
        assert_eq!(cores[..usable.len()], cores[usable.len()..]);
    }

    #[test]
    fn a_thread_is_not_pinned_to_a_core_that_no_mask_has() {
        for core in [1024, usize::MAX] {
            assert!(!pin_thread(Some(core)), "core {core}");
        }
        assert!(pin_thread(None));
    }

    #[test]
    fn cores_that_do_not_exist_are_rejected() {
        let error = Pinning::Cores(vec![1 << 20]).cores(1).unwrap_err();
        assert_eq!(error.asked, "core 1048576");
    }
}
