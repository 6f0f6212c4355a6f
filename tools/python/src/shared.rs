//! `echoless.SharedFilter`: a filter for all threads at the same time.

use echoless::KeyHasher;
use echoless_foreign::{Hashes, ReportFields, Shared};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::blocks::verdicts;
use crate::errors::{invalid, raise};
use crate::filter::{report_dict, repr};
use crate::keys::{Input, hash_key};
use crate::options::{self, hasher};

/// A filter that any number of threads use at the same time, without locks. Of equal keys of
/// several threads exactly one is fresh.
///
/// ``SharedFilter("row4x16:memory=64MiB")`` takes a specification: ``row4x16``, ``row2x32``,
/// ``bloom:k=4`` or ``ageing:k=4``; ``SharedFilter(memory="64MiB")`` is a ``row4x16``. Keys and
/// results are those of ``Filter.observe``. There are no windows, and no states.
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

    /// The specification.
    #[getter]
    fn spec(&self) -> String {
        self.inner.spec().to_string()
    }

    fn __repr__(&self) -> String {
        repr("SharedFilter", &self.spec(), self.seed, self.is_secret)
    }
}
