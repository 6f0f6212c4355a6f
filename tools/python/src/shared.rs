//! `echoless.SharedFilter`: a filter for all threads at the same time.

use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;

use echoless::KeyHasher;
use echoless_foreign::{Hashes, ReportFields, Shared};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::blocks::verdicts;
use crate::errors::{invalid, raise, raise_of_path};
use crate::filter::{report_dict, repr};
use crate::keys::{Input, hash_key};
use crate::options::{self, hasher};

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
    inner: Shared,
    hasher: KeyHasher,
    seed: u64,
    is_secret: bool,
    data: Vec<u8>,
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
        let hasher = hasher(seed, secret)?;
        let inner = py
            .detach(|| Shared::new(&text, hasher.clone()))
            .map_err(raise)?;
        Ok(Self {
            inner,
            hasher,
            seed,
            is_secret: secret.is_some(),
            data: Vec::new(),
        })
    }

    /// Reports which keys are duplicates, and records the others; see ``Filter.observe``.
    fn observe<'py>(
        &self,
        py: Python<'py>,
        keys: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let input = Input::read(keys, &self.hasher)?;
        verdicts(py, &input, None, |keys, _, words| {
            self.inner.observe(keys, words)
        })
    }

    /// Reports whether one key is a duplicate, and records it if not.
    fn observe_one(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let hash = hash_key(key, &self.hasher)?;
        Ok(self
            .inner
            .observe(&Hashes(&[hash]), &mut [0])
            .map_err(raise)?
            == 1)
    }

    /// Reports which keys would be duplicates now, and records nothing.
    fn contains<'py>(
        &self,
        py: Python<'py>,
        keys: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let input = Input::read(keys, &self.hasher)?;
        verdicts(py, &input, None, |keys, _, words| {
            self.inner.contains(keys, words)
        })
    }

    /// Removes all keys. If threads observe keys meanwhile, some of these are forgotten.
    fn clear(&self, py: Python<'_>) {
        py.detach(|| self.inner.clear());
    }

    /// Counters and error estimates as a dict; None is what the filter does not know.
    fn report<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let report = py.detach(|| ReportFields::from(&self.inner.report()));
        report_dict(py, &report)
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
        py.detach(|| self.inner.save_file(&path, data.unwrap_or_default()))
            .map_err(raise)
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
        let hasher = hasher(seed, secret)?;
        let file = File::open(&path).map_err(|error| raise_of_path(&path, &error))?;
        let limit = memory_limit.unwrap_or(u64::MAX);
        let loaded = py.detach(|| Shared::load(BufReader::new(file), hasher.clone(), limit));
        let (inner, data) = loaded.map_err(raise)?;
        Ok(Self {
            inner,
            hasher,
            seed,
            is_secret: secret.is_some(),
            data,
        })
    }

    /// The bytes that were saved with the filter.
    #[getter]
    fn data<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.data)
    }

    /// The specification.
    #[getter]
    fn spec(&self) -> String {
        self.inner.spec().to_string()
    }

    fn __repr__(&self) -> String {
        repr("SharedFilter", &self.spec(), self.seed, self.is_secret)
    }
}
