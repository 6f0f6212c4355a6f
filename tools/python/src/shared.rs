//! `echoless.SharedFilter`: a filter for all threads at the same time.

use std::path::PathBuf;

use echoless_foreign::{Call, Kind, Object};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::blocks::verdicts;
use crate::errors::{invalid, raise};
use crate::keys::Input;
use crate::object::{self, About};
use crate::options;

/// A filter that any number of threads use at the same time. Of equal keys of several threads
/// exactly one is fresh. No call waits for another one.
///
/// ``SharedFilter("row4x16:memory=64MiB")`` takes a specification: ``row4x16``, ``row2x32``,
/// ``bloom:k=4`` or ``ageing:k=4``; ``SharedFilter(memory="64MiB")`` is a ``row4x16``. Keys and
/// results are those of ``Filter.observe``. There are no windows.
///
/// >>> from concurrent.futures import ThreadPoolExecutor
/// >>> from echoless import SharedFilter
/// >>> filter = SharedFilter(memory="1MiB")
/// >>> with ThreadPoolExecutor(4) as threads:
/// ...     verdicts = list(threads.map(filter.observe, ["call 17"] * 4))
/// >>> sorted(verdicts)
/// [False, True, True, True]
#[pyclass(frozen, module = "echoless")]
pub(crate) struct SharedFilter {
    object: Object,
    about: About,
}

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
    ) -> PyResult<Self> {
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
        let (object, about) = object::make(py, Kind::Shared, &text, 1, seed, secret)?;
        Ok(Self { object, about })
    }

    /// Reports which keys are duplicates, and records the others; see ``Filter.observe``.
    fn observe<'py>(
        &self,
        py: Python<'py>,
        keys: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let input = Input::read(keys, &self.about.hasher)?;
        verdicts(py, &input, None, |keys, _, words| {
            self.object.observe(keys, words)
        })
    }

    /// Reports whether one key is a duplicate, and records it if not.
    fn observe_one(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.about.observe_one(&self.object, key)
    }

    /// Reports which keys would be duplicates now, and records nothing.
    fn contains<'py>(
        &self,
        py: Python<'py>,
        keys: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let input = Input::read(keys, &self.about.hasher)?;
        verdicts(py, &input, None, |keys, _, words| {
            self.object.contains(keys, words)
        })
    }

    /// Removes all keys. If threads observe keys meanwhile, some of these are forgotten.
    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        let cleared = py.detach(|| self.object.call(Call::clear, 0));
        cleared.map(drop).map_err(raise)
    }

    /// The memory of the filter's state, in bytes.
    #[getter]
    fn memory_bytes(&self) -> PyResult<u64> {
        self.object.call(Call::memory_bytes, 0).map_err(raise)
    }

    /// Counters and error estimates as a dict; None is what the filter does not know.
    fn report<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        object::report(py, &self.object)
    }

    /// Saves the filter and ``data`` of the program as ``Filter.save`` does, while other threads use
    /// it, of which none waits. The state has the keys of the calls that had ended before, and each
    /// later key or not: take the position first.
    ///
    /// >>> import os, tempfile
    /// >>> from echoless import SharedFilter
    /// >>> path = os.path.join(tempfile.mkdtemp(), "shared.state")
    /// >>> filter = SharedFilter(memory="1MiB", seed=7)
    /// >>> filter.observe(["a", "b"]).tolist()
    /// [False, False]
    /// >>> filter.save(path, b"record 2")
    /// >>> filter = SharedFilter.load(path, seed=7)
    /// >>> filter.data, filter.observe("a")
    /// (b'record 2', True)
    #[pyo3(signature = (path, data = None))]
    fn save(&self, py: Python<'_>, path: PathBuf, data: Option<&[u8]>) -> PyResult<()> {
        object::save(py, &self.object, path, data)
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
    ) -> PyResult<Self> {
        let (object, about) = object::load(py, Kind::Shared, &path, 1, seed, secret, memory_limit)?;
        Ok(Self { object, about })
    }

    /// The bytes that were saved with the filter.
    #[getter]
    fn data<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.about.data)
    }

    /// The specification.
    #[getter]
    fn spec(&self) -> &str {
        &self.about.spec
    }

    fn __repr__(&self) -> String {
        self.about.repr("SharedFilter")
    }
}
