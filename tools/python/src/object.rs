//! The base of the classes of filters: an object of the table of calls, and what is known about it.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{RwLock, TryLockError};

use echoless::KeyHasher;
use echoless_foreign::{At, Call, Kind, Object, ReportFields, Source, Target, UNKNOWN_COUNT};
use echoless_stream::Unit;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::blocks::verdicts;
use crate::errors::{raise, raise_of_path};
use crate::keys::{Hashed, Hashing, Input};
use crate::options::hasher;
use crate::times::{Times, parse_tick};

/// What the filters of all classes have.
#[pyclass(frozen, subclass, module = "echoless")]
pub(crate) struct AnyFilter {
    /// `None` if the filter is closed.
    object: RwLock<Option<Object>>,
    /// One thread at a time may use it. No call waits for the lock: a second thread gets an error.
    is_exclusive: bool,
    pub(crate) hashing: Hashing,
    spec: String,
    pub(crate) seed: u64,
    pub(crate) is_secret: bool,
    pub(crate) tick: Option<Unit>,
    /// The bytes that were saved with the state that it was loaded from.
    pub(crate) data: Vec<u8>,
}

/// How the keys of a filter are hashed, and how long its ticks are.
#[derive(Clone, Copy, Default)]
pub(crate) struct Settings<'a> {
    pub(crate) seed: u64,
    pub(crate) secret: Option<&'a [u8]>,
    pub(crate) tick: Option<Unit>,
}

impl<'a> Settings<'a> {
    /// # Errors
    /// If there is no such tick.
    pub(crate) fn new(seed: u64, secret: Option<&'a [u8]>, tick: Option<&str>) -> PyResult<Self> {
        let tick = tick.map(parse_tick).transpose()?;
        Ok(Self { seed, secret, tick })
    }
}

impl AnyFilter {
    /// Makes the filter of a specification.
    pub(crate) fn make(
        py: Python<'_>,
        kind: Kind,
        spec: &str,
        partitions: usize,
        settings: Settings<'_>,
    ) -> PyResult<Self> {
        let hasher = hasher(settings.seed, settings.secret)?;
        let made = py.detach(|| Object::new(kind, spec, hasher.clone(), partitions));
        Self::of_object(kind, made.map_err(raise)?, hasher, settings, Vec::new())
    }

    /// Restores the filter of a file.
    pub(crate) fn restore(
        py: Python<'_>,
        kind: Kind,
        path: &Path,
        partitions: usize,
        settings: Settings<'_>,
        memory_limit: Option<u64>,
    ) -> PyResult<Self> {
        let file = File::open(path).map_err(|error| raise_of_path(path, &error))?;
        let hasher = hasher(settings.seed, settings.secret)?;
        let limit = memory_limit.unwrap_or(u64::MAX);
        let loaded = py.detach(|| {
            let from = match kind {
                // The path is a folder. Its failures have paths.
                Kind::Exact => Source::File(path.to_owned()),
                _ => Source::Streams(vec![Box::new(file)]),
            };
            Object::load(kind, from, hasher.clone(), partitions, limit)
        });
        let (data, object) = loaded.map_err(|failure| match kind {
            Kind::Exact => raise(failure),
            _ => raise(failure.of_path(path)),
        })?;
        Self::of_object(kind, object, hasher, settings, data)
    }

    pub(crate) fn of_object(
        kind: Kind,
        object: Object,
        hasher: KeyHasher,
        settings: Settings<'_>,
        data: Vec<u8>,
    ) -> PyResult<Self> {
        Ok(Self {
            spec: object.spec().map_err(raise)?,
            hashing: Hashing {
                hasher,
                digester: object.digester().map_err(raise)?,
            },
            object: RwLock::new(Some(object)),
            is_exclusive: matches!(kind, Kind::Filter | Kind::Exact),
            seed: settings.seed,
            is_secret: settings.secret.is_some(),
            tick: settings.tick,
            data,
        })
    }

    /// Uses the object, alone if only one thread at a time may.
    pub(crate) fn using<T>(&self, with: impl FnOnce(&Object) -> PyResult<T>) -> PyResult<T> {
        let closed = || PyValueError::new_err("the filter is closed");
        if self.is_exclusive {
            let object = self.object.try_write().map_err(of_lock)?;
            with(object.as_ref().ok_or_else(closed)?)
        } else {
            let object = self.object.try_read().map_err(of_lock)?;
            with(object.as_ref().ok_or_else(closed)?)
        }
    }

    /// Runs a call with numbers, without the interpreter.
    pub(crate) fn call(&self, py: Python<'_>, call: Call, argument: u64) -> PyResult<u64> {
        self.using(|object| py.detach(|| object.call(call, argument)).map_err(raise))
    }

    pub(crate) fn observe<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        times: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let input = Input::read(keys, &self.hashing)?;
        let times = Times::read(times, self.tick, input.len())?;
        self.using(|object| {
            let ticks = match &times {
                None => None,
                Some(Times::All(tick)) => {
                    object.call(Call::advance, *tick).map_err(raise)?;
                    None
                }
                Some(Times::Each(ticks)) => Some(&ticks[..]),
            };
            verdicts(keys.py(), &input, ticks, |keys, ticks, words| {
                object.observe(At(keys, ticks), words)
            })
        })
    }

    pub(crate) fn observe_one(&self, key: &Bound<'_, PyAny>, time: Option<u64>) -> PyResult<bool> {
        let key = Hashed::one(key, &self.hashing)?;
        self.using(|object| {
            if let Some(tick) = time {
                object.call(Call::advance, tick).map_err(raise)?;
            }
            let count = object.observe(key, &mut [0]);
            Ok(count.map_err(raise)? == 1)
        })
    }

    pub(crate) fn contains<'py>(&self, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let input = Input::read(keys, &self.hashing)?;
        self.using(|object| {
            verdicts(keys.py(), &input, None, |keys, _, words| {
                object.contains(keys, words)
            })
        })
    }
}

fn of_lock<T>(error: TryLockError<T>) -> PyErr {
    PyRuntimeError::new_err(match error {
        TryLockError::WouldBlock => {
            "another thread uses the filter: use SharedFilter, a filter for each thread, or a lock"
        }
        TryLockError::Poisoned(_) => "the filter panicked in an earlier call: a defect",
    })
}

#[pymethods]
impl AnyFilter {
    /// The memory of the filter's state, in bytes.
    #[getter]
    fn memory_bytes(&self, py: Python<'_>) -> PyResult<u64> {
        self.call(py, Call::memory_bytes, 0)
    }

    /// Counters and error estimates as a dict; None is what the filter does not know. This may
    /// read the whole memory of the filter. An ``OrderedFilter`` reports one point of the stream,
    /// from a thread that holds no ticket.
    ///
    /// >>> from echoless import Filter
    /// >>> filter = Filter(memory="1MiB")
    /// >>> _ = filter.observe(["a", "b", "a"])
    /// >>> report = filter.report()
    /// >>> report["observed"], report["fresh"], report["memory_bytes"]
    /// (3, 2, 1048576)
    fn report<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.using(|object| report_of(py, object))
    }

    /// The specification; ``Filter(filter.spec)`` makes an empty filter of it.
    #[getter]
    fn spec(&self) -> &str {
        &self.spec
    }

    /// The bytes that were saved with the state that the filter was loaded from.
    #[getter]
    fn data<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.data)
    }

    /// Writes the state into a file, with bytes of the caller such as a position in the input. The
    /// file is replaced as a whole: it has the old state or the new one, also after a power cut.
    /// Seed, secret and tick are not in it. Filters with lines can be saved (form=line), which the
    /// default filter has.
    ///
    /// Other threads use a ``SharedFilter`` meanwhile, of which none waits. Its state has the keys
    /// of the calls that had ended before, and each later key or not: take the position first.
    ///
    /// >>> import tempfile, os
    /// >>> from echoless import Filter
    /// >>> path = os.path.join(tempfile.mkdtemp(), "calls.state")
    /// >>> with Filter(memory="1MiB", seed=7) as filter:
    /// ...     _ = filter.observe(["a", "b"])
    /// ...     filter.save(path, b"record 2")
    /// >>> filter = Filter.load(path, seed=7)
    /// >>> filter.data, filter.observe("a")
    /// (b'record 2', True)
    #[pyo3(signature = (path, data = None))]
    pub(crate) fn save(&self, py: Python<'_>, path: PathBuf, data: Option<&[u8]>) -> PyResult<()> {
        let data = data.unwrap_or_default();
        self.using(|object| {
            let saved = py.detach(|| object.save(Target::File(path), data));
            saved.map_err(raise)
        })
    }

    /// Frees the memory. Later calls are errors; closing again is none. A ``with`` block closes
    /// the filter at its end.
    fn close(&self) -> PyResult<()> {
        self.object.try_write().map_err(of_lock)?.take();
        Ok(())
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyResult<PyRef<'_, Self>> {
        slf.using(|_| Ok(()))?;
        Ok(slf)
    }

    fn __exit__(
        &self,
        _type: &Bound<'_, PyAny>,
        _error: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.close()
    }

    /// The secret is not shown.
    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let this = slf.get();
        let seed = match this.seed {
            0 => String::new(),
            seed => format!(", seed={seed}"),
        };
        let secret = if this.is_secret { ", secret=..." } else { "" };
        let class = slf.get_type().name()?;
        Ok(format!("{class}(\"{}\"{seed}{secret})", this.spec))
    }
}

/// The report of an object. The names are those of C.
fn report_of<'py>(py: Python<'py>, object: &Object) -> PyResult<Bound<'py, PyDict>> {
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
