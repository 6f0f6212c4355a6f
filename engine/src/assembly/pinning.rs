//! Which core a thread runs on.

use crate::error::SpecError;

/// Where to run threads: the workers of an engine, or any that a caller starts and [pins](pin_thread), as those of a mesh.
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
pub enum Pinning {
    /// Wherever the system puts them.
    #[default]
    Unpinned,
    /// Thread `i` on core `i`, counted through the cores that this process may use, and round again if there are more threads. Where the
    /// system does not say which cores these are, as [`Unpinned`](Self::Unpinned).
    Spread,
    /// Thread `i` on the `i`-th of these cores.
    Cores(Vec<usize>),
}

impl Pinning {
    /// The core of each of `threads` threads.
    ///
    /// # Errors
    /// [`SpecError`] if the list is not as long as there are threads, or names a core that this process may not use.
    pub fn cores(&self, threads: usize) -> Result<Vec<Option<usize>>, SpecError> {
        let usable = usable_cores();
        match self {
            Self::Unpinned => Ok(vec![None; threads]),
            Self::Spread if usable.is_empty() => Ok(vec![None; threads]),
            Self::Spread => Ok(usable.into_iter().cycle().take(threads).map(Some).collect()),
            Self::Cores(cores) => {
                if cores.len() != threads {
                    let asked = format!("{} cores", cores.len());
                    return Err(SpecError::new(
                        "pinning",
                        asked,
                        format!("one core for each of {threads} threads"),
                    ));
                }
                if let Some(core) = cores.iter().find(|core| !usable.contains(core)) {
                    let allowed = format!("one of the cores {usable:?} that this process may use");
                    return Err(SpecError::new("pinning", format!("core {core}"), allowed));
                }
                Ok(cores.iter().copied().map(Some).collect())
            }
        }
    }
}

fn usable_cores() -> Vec<usize> {
    let cores = core_affinity::get_core_ids().unwrap_or_default();
    cores.into_iter().map(|core| core.id).collect()
}

/// Moves the calling thread to a core, if one is given, as [`Pinning::cores`] chose it; false if the system refused, and the thread runs on
/// wherever it did.
///
/// # Examples
/// ```
/// use echoless::{Pinning, assembly::pin_thread};
/// let cores = Pinning::Spread.cores(2)?;
/// std::thread::scope(|scope| {
///     for core in cores {
///         scope.spawn(move || {
///             if !pin_thread(core) {
///                 eprintln!("core {core:?} is refused");
///             }
///         });
///     }
/// });
/// # Ok::<(), echoless::SpecError>(())
/// ```
#[must_use = "the system may refuse"]
pub fn pin_thread(core: Option<usize>) -> bool {
    core.is_none_or(|id| core_affinity::set_for_current(core_affinity::CoreId { id }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spread_uses_every_core_before_any_twice() {
        let usable = usable_cores();
        let cores = Pinning::Spread.cores(usable.len() * 2).unwrap();
        for (core, place) in usable.iter().zip(&cores) {
            assert_eq!(Some(*core), *place);
        }
        assert_eq!(cores[..usable.len()], cores[usable.len()..]);
    }

    #[test]
    fn cores_that_do_not_exist_are_refused() {
        let error = Pinning::Cores(vec![1 << 20]).cores(1).unwrap_err();
        assert_eq!(error.asked, "core 1048576");
    }
}
