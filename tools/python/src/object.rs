//! The base of the classes of filters: an object of the table of calls, and what is known about it.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{RwLock, TryLockError};

use echoless::KeyHasher;
use echoless_foreign::{
    Call, FILTER_FILE, Kind, Object, ReportFields, Source, Target, UNKNOWN_COUNT, is_saved,
};
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
        let opened = match kind {
            // A folder, which has that once it was saved. What is wrong with one that lost it is
            // said by the library.
            Kind::Exact if is_saved(path) => path.to_owned(),
            Kind::Exact => path.join(FILTER_FILE),
            _ => path.to_owned(),
        };
        // A named pipe waits for its writer, which may be a thread of this process.
        let file = py.detach(|| File::open(&opened));
        let file = file.map_err(|error| raise_of_path(&opened, &error))?;
        let hasher = hasher(settings.seed, settings.secret)?;
        let limit = memory_limit.unwrap_or(u64::MAX);
        let loaded = py.detach(|| {
            let from = match kind {
                // Its failures have paths.
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

/// A filter whose keys are judged by calls of its own, and not by threads with tickets.
#[pyclass(frozen, subclass, extends = AnyFilter, module = "echoless")]
pub(crate) struct WholeFilter;

impl WholeFilter {
    /// The filter of a specification.
    pub(crate) fn make(
        py: Python<'_>,
        kind: Kind,
        spec: &str,
        settings: Settings<'_>,
    ) -> PyResult<PyClassInitializer<Self>> {
        AnyFilter::make(py, kind, spec, 1, settings).map(Self::over)
    }

    /// The filter that was saved there.
    pub(crate) fn restore(
        py: Python<'_>,
        kind: Kind,
        path: &Path,
        settings: Settings<'_>,
        memory_limit: Option<u64>,
    ) -> PyResult<PyClassInitializer<Self>> {
        AnyFilter::restore(py, kind, path, 1, settings, memory_limit).map(Self::over)
    }

    /// Moves the clock of a window.
    pub(crate) fn advance(slf: &Bound<'_, Self>, tick: u64) -> PyResult<()> {
        let this = slf.as_super().get();
        this.call(slf.py(), Call::advance, tick).map(drop)
    }

    pub(crate) fn over(base: AnyFilter) -> PyClassInitializer<Self> {
        PyClassInitializer::from(base).add_subclass(Self)
    }
}

#[pymethods]
impl WholeFilter {
    /// Reports which keys are duplicates, in order, and records the others.
    ///
    /// One key (bytes, str or int) gives a bool. Many keys give an array of bools: of pyarrow for
    /// keys from pyarrow, otherwise of numpy. Many keys are
    ///
    /// * a list, tuple or other iterable of bytes, str, int, or tuples of them (several fields as
    ///   one key; None is a missing field),
    /// * a numpy array of integers, bytes of fixed width (S, V), times, str or objects,
    /// * Arrow data (pyarrow, polars, pandas, duckdb): integers, dates, times, strings, binary, and
    ///   dictionaries (categories) of them; a struct, record batch, table or data frame is a key of
    ///   several fields, and its index is none of them,
    /// * a list of columns: arrays whose rows are the fields of one key.
    ///
    /// Keys are equal by value; the README has a table. Arrow data are read in place, arrays of
    /// numpy are copied. Missing and masked values are an error in one column of keys, and missing
    /// fields in several.
    ///
    /// With a window, ``times`` moves the clock: an int for all keys, or one for each key. Times
    /// with a unit (datetime64, Arrow timestamps) are converted to the ticks of the filter. An
    /// earlier time than the clock's leaves it as it is.
    ///
    /// Nothing is recorded if the keys or times are invalid. Ctrl-C ends a long call after a
    /// million keys; those are recorded then.
    ///
    /// >>> import numpy as np
    /// >>> from echoless import Filter
    /// >>> filter = Filter(memory="1MiB")
    /// >>> filter.observe(np.array([7, 8, 7], dtype="uint64"))
    /// array([False, False,  True])
    /// >>> filter.observe([("+4930123", 1), ("+4930123", None), ("+4930123", 1)]).tolist()
    /// [False, False, True]
    /// >>> filter = Filter(memory="1MiB", window="10m")
    /// >>> times = np.array(["2026-11-25T12:00", "2026-11-25T12:09", "2026-11-25T13:00"], "M8[s]")
    /// >>> filter.observe(["a", "a", "a"], times=times).tolist()
    /// [False, True, False]
    #[pyo3(signature = (keys, times = None))]
    fn observe<'py>(
        slf: &Bound<'py, Self>,
        keys: &Bound<'py, PyAny>,
        times: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let this = slf.as_super().get();
        let input = Input::read(keys, &this.hashing)?;
        let times = Times::read(times, this.tick, input.len())?;
        this.using(|object| {
            let ticks = match &times {
                None => None,
                Some(Times::All(tick)) => {
                    object.call(Call::advance, *tick).map_err(raise)?;
                    None
                }
                Some(Times::Each(ticks)) => Some(&ticks[..]),
            };
            verdicts(keys.py(), &input, ticks, |keys, ticks, words| {
                object.observe_at(keys, ticks, words)
            })
        })
    }

    /// Reports whether one key is a duplicate, and records it if not. The key is bytes, str, int,
    /// or a tuple of fields.
    ///
    /// >>> from echoless import Filter
    /// >>> filter = Filter(memory="1MiB")
    /// >>> filter.observe_one(("+4930123", 17)), filter.observe_one(("+4930123", 17))
    /// (False, True)
    #[pyo3(signature = (key, time = None))]
    fn observe_one(
        slf: &Bound<'_, Self>,
        key: &Bound<'_, PyAny>,
        time: Option<u64>,
    ) -> PyResult<bool> {
        let this = slf.as_super().get();
        let key = Hashed::one(key, &this.hashing)?;
        this.using(|object| {
            if let Some(tick) = time {
                object.call(Call::advance, tick).map_err(raise)?;
            }
            let count = object.observe(key, &mut [0]);
            Ok(count.map_err(raise)? == 1)
        })
    }

    /// Reports which keys would be duplicates now, and records nothing. The arguments and results
    /// are those of ``observe``.
    ///
    /// >>> from echoless import Filter
    /// >>> filter = Filter(memory="1MiB")
    /// >>> filter.observe("a")
    /// False
    /// >>> filter.contains(["a", "b", "b"]).tolist()
    /// [True, False, False]
    fn contains<'py>(
        slf: &Bound<'py, Self>,
        keys: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let this = slf.as_super().get();
        let input = Input::read(keys, &this.hashing)?;
        this.using(|object| {
            verdicts(keys.py(), &input, None, |keys, _, words| {
                object.contains(keys, words)
            })
        })
    }

    /// Removes all keys, and resets the counters and the clock.
    fn clear(slf: &Bound<'_, Self>) -> PyResult<()> {
        let this = slf.as_super().get();
        this.call(slf.py(), Call::clear, 0).map(drop)
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
