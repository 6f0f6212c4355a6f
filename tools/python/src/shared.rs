//! `echoless.SharedFilter`: a filter for all threads at the same time.

use std::path::PathBuf;

use echoless_foreign::{Call, Kind};
use pyo3::prelude::*;

use crate::errors::invalid;
use crate::object::{AnyFilter, Settings};
use crate::options;

/// A filter that any number of threads use at the same time. Of equal keys of several threads
/// exactly one is fresh. No call waits for another one.
///
/// ``SharedFilter("row4x16:memory=64MiB")`` takes a specification: ``row4x16``, ``row2x32``,
/// ``bloom:k=4``, ``ageing:k=4``, or ``stamped:window=600`` with a window of 600 ticks;
/// ``SharedFilter(memory="64MiB")`` is a ``row4x16``. Keys, times and results are those of
/// ``Filter.observe``, and times are whole ticks.
///
/// >>> from concurrent.futures import ThreadPoolExecutor
/// >>> from echoless import SharedFilter
/// >>> filter = SharedFilter(memory="1MiB")
/// >>> with ThreadPoolExecutor(4) as threads:
/// ...     verdicts = list(threads.map(filter.observe, ["call 17"] * 4))
/// >>> sorted(verdicts)
/// [False, True, True, True]
#[pyclass(frozen, extends = AnyFilter, module = "echoless")]
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
        let text = match (spec, memory) {
            (Some(spec), None) => spec.to_owned(),
            (None, Some(memory)) => format!("row4x16:memory={}", options::memory(memory)?),
            _ => {
                return Err(invalid(
                    "spec",
                    spec.unwrap_or("None"),
                    "a specification or a memory",
                ));
            }
        };
        let settings = Settings::new(seed, secret, None)?;
        let base = AnyFilter::make(py, Kind::Shared, &text, 1, settings)?;
        Ok(PyClassInitializer::from(base).add_subclass(Self))
    }

    /// Reports which keys are duplicates, and records the others; see ``Filter.observe``. The clock
    /// is that of all threads, and threads may be a window apart.
    ///
    /// >>> from echoless import SharedFilter
    /// >>> filter = SharedFilter("stamped:window=600,memory=1MiB")
    /// >>> filter.observe(["a", "a", "a"], times=[0, 600, 1201 + 3]).tolist()
    /// [False, True, False]
    #[pyo3(signature = (keys, times = None))]
    fn observe<'py>(
        slf: &Bound<'py, Self>,
        keys: &Bound<'py, PyAny>,
        times: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        slf.as_super().get().observe(keys, times)
    }

    /// Reports whether one key is a duplicate, and records it if not.
    #[pyo3(signature = (key, time = None))]
    fn observe_one(
        slf: &Bound<'_, Self>,
        key: &Bound<'_, PyAny>,
        time: Option<u64>,
    ) -> PyResult<bool> {
        slf.as_super().get().observe_one(key, time)
    }

    /// Moves the clock of a window. An earlier tick has no effect.
    fn advance_to(slf: &Bound<'_, Self>, tick: u64) -> PyResult<()> {
        let advanced = slf.as_super().get().call(slf.py(), Call::advance, tick);
        advanced.map(drop)
    }

    /// Reports which keys would be duplicates now, and records nothing.
    fn contains<'py>(
        slf: &Bound<'py, Self>,
        keys: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        slf.as_super().get().contains(keys)
    }

    /// Removes all keys. If threads observe keys meanwhile, some of these are forgotten.
    fn clear(slf: &Bound<'_, Self>) -> PyResult<()> {
        slf.as_super()
            .get()
            .call(slf.py(), Call::clear, 0)
            .map(drop)
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
        let base = AnyFilter::restore(py, Kind::Shared, &path, 1, settings, memory_limit)?;
        Py::new(py, PyClassInitializer::from(base).add_subclass(Self))
    }
}
