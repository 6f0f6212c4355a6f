//! `echoless.SharedFilter`: a filter for all threads at the same time.

use std::path::PathBuf;

use echoless_foreign::Kind;
use pyo3::prelude::*;

use crate::object::{Settings, WholeFilter};
use crate::options;

/// A filter that any number of threads use at the same time. Of equal keys of several threads
/// exactly one is fresh. No call waits for another one.
///
/// ``SharedFilter("row4x16:memory=64MiB")`` takes a specification: ``row4x16``, ``row2x32``,
/// ``bloom:k=4``, ``ageing:k=4``, or ``stamped:window=600`` with a window of 600 ticks;
/// ``SharedFilter(memory="64MiB")`` is a ``row4x16``. Keys, times and results are those of
/// ``Filter.observe``, and times are whole ticks. The clock is that of all threads, and threads may
/// be a window apart. If threads observe keys during a ``clear``, some of these are forgotten.
///
/// >>> from concurrent.futures import ThreadPoolExecutor
/// >>> from echoless import SharedFilter
/// >>> filter = SharedFilter(memory="1MiB")
/// >>> with ThreadPoolExecutor(4) as threads:
/// ...     verdicts = list(threads.map(filter.observe, ["call 17"] * 4))
/// >>> sorted(verdicts)
/// [False, True, True, True]
/// >>> filter = SharedFilter("stamped:window=600,memory=1MiB")
/// >>> filter.observe(["a", "a", "a"], times=[0, 600, 1201 + 3]).tolist()
/// [False, True, False]
#[pyclass(frozen, extends = WholeFilter, module = "echoless")]
pub(crate) struct SharedFilter;

#[pymethods]
impl SharedFilter {
    #[new]
    #[pyo3(signature = (spec = None, *, memory = None, seed = 0, secret = None))]
    fn new(
        py: Python<'_>,
        spec: Option<&str>,
        memory: Option<&Bound<'_, PyAny>>,
        seed: u64,
        secret: Option<&[u8]>,
    ) -> PyResult<PyClassInitializer<Self>> {
        let text = options::spec(spec, memory, "row4x16")?;
        let settings = Settings::new(seed, secret, None)?;
        Ok(WholeFilter::make(py, Kind::Shared, &text, settings)?.add_subclass(Self))
    }

    /// Moves the clock of a window. An earlier tick has no effect.
    fn advance_to(slf: &Bound<'_, Self>, tick: u64) -> PyResult<()> {
        WholeFilter::advance(slf.as_super(), tick)
    }

    /// The filter of a state that ``save`` or another program wrote; see ``Filter.load``.
    #[staticmethod]
    #[pyo3(signature = (path, *, seed = 0, secret = None, memory_limit = None))]
    fn load(
        py: Python<'_>,
        path: PathBuf,
        seed: u64,
        secret: Option<&[u8]>,
        memory_limit: Option<u64>,
    ) -> PyResult<Py<Self>> {
        let settings = Settings::new(seed, secret, None)?;
        let base = WholeFilter::restore(py, Kind::Shared, &path, settings, memory_limit)?;
        Py::new(py, base.add_subclass(Self))
    }
}
