//! What the classes of filters have in common: an object of the table of calls, and what is known
//! about it.

use std::fs::File;
use std::path::{Path, PathBuf};

use echoless::KeyHasher;
use echoless_foreign::{Hashes, Kind, Object, ReportFields, Source, Target, UNKNOWN_COUNT};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::{raise, raise_of_path};
use crate::keys::hash_key;
use crate::options::hasher;

/// What is known about an object without using it.
pub(crate) struct About {
    pub(crate) hasher: KeyHasher,
    pub(crate) spec: String,
    pub(crate) seed: u64,
    pub(crate) is_secret: bool,
    /// The bytes that were saved with the state that it was loaded from.
    pub(crate) data: Vec<u8>,
}

/// Makes the object of a specification.
pub(crate) fn make(
    py: Python<'_>,
    kind: Kind,
    spec: &str,
    partitions: usize,
    seed: u64,
    secret: Option<&[u8]>,
) -> PyResult<(Object, About)> {
    let hasher = hasher(seed, secret)?;
    let made = py.detach(|| Object::new(kind, spec, hasher.clone(), partitions));
    about(made.map_err(raise)?, hasher, seed, secret, Vec::new())
}

/// Restores the object of a file.
pub(crate) fn load(
    py: Python<'_>,
    kind: Kind,
    path: &Path,
    partitions: usize,
    seed: u64,
    secret: Option<&[u8]>,
    memory_limit: Option<u64>,
) -> PyResult<(Object, About)> {
    let hasher = hasher(seed, secret)?;
    let file = File::open(path).map_err(|error| raise_of_path(path, &error))?;
    let limit = memory_limit.unwrap_or(u64::MAX);
    let loaded = py.detach(|| {
        let from = Source::Streams(vec![Box::new(file)]);
        Object::load(kind, from, hasher.clone(), partitions, limit)
    });
    let (data, object) = loaded.map_err(|failure| raise(failure.of_path(path)))?;
    about(object, hasher, seed, secret, data)
}

pub(crate) fn about(
    object: Object,
    hasher: KeyHasher,
    seed: u64,
    secret: Option<&[u8]>,
    data: Vec<u8>,
) -> PyResult<(Object, About)> {
    let about = About {
        hasher,
        spec: object.spec().map_err(raise)?,
        seed,
        is_secret: secret.is_some(),
        data,
    };
    Ok((object, about))
}

impl About {
    /// How an object is shown. The secret is not.
    pub(crate) fn repr(&self, class: &str) -> String {
        let seed = match self.seed {
            0 => String::new(),
            seed => format!(", seed={seed}"),
        };
        let secret = if self.is_secret { ", secret=..." } else { "" };
        format!("{class}(\"{}\"{seed}{secret})", self.spec)
    }

    /// Whether one key is a duplicate.
    pub(crate) fn observe_one(&self, object: &Object, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let hash = hash_key(key, &self.hasher)?;
        let count = object.observe(Hashes(&[hash]), &mut [0]);
        Ok(count.map_err(raise)? == 1)
    }
}

/// Saves an object into a file.
pub(crate) fn save(
    py: Python<'_>,
    object: &Object,
    path: PathBuf,
    data: Option<&[u8]>,
) -> PyResult<()> {
    let data = data.unwrap_or_default();
    py.detach(|| object.save(Target::File(path), data))
        .map_err(raise)
}

/// The report of an object. The names are those of C.
pub(crate) fn report<'py>(py: Python<'py>, object: &Object) -> PyResult<Bound<'py, PyDict>> {
    let report = py.detach(|| object.read_report()).map_err(raise)?;
    let report = ReportFields::from(&report);
    let dict = PyDict::new(py);
    dict.set_item("memory_bytes", report.memory_bytes)?;
    for (name, count) in [
        ("observed", report.observed),
        ("fresh", report.fresh),
        ("evictions", report.evictions),
        ("expired", report.expired),
    ] {
        dict.set_item(name, Some(count).filter(|count| *count != UNKNOWN_COUNT))?;
    }
    for (name, value) in [
        ("fill", report.fill),
        ("expected_fpr", report.expected_fpr),
        ("most_fpr", report.most_fpr),
        (
            "expected_false_duplicates",
            report.expected_false_duplicates,
        ),
        ("miss_age", report.miss_age),
    ] {
        dict.set_item(name, Some(value).filter(|value| !value.is_nan()))?;
    }
    dict.set_item(
        "window_ticks",
        Some(report.window_ticks).filter(|ticks| *ticks > 0),
    )?;
    Ok(dict)
}
