//! `echoless.Filter`: a filter for one thread at a time.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, TryLockError};

use echoless::KeyHasher;
use echoless_foreign::{At, Call, Kind, Object, Source, Target};
use echoless_stream::Unit;
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::blocks::verdicts;
use crate::errors::{invalid, raise};
use crate::keys::Input;
use crate::object::{self, About};
use crate::options;
use crate::times::{Times, parse_tick};

/// Reports for each key of an endless stream whether it came before, in fixed memory.
///
/// ``Filter("fingerprint:fpr=1e-8,memory=64MiB")`` takes a specification; the options ``memory``,
/// ``fpr``, ``window`` and ``refresh`` make the default filter.
///
/// * ``memory``: bytes, or text such as ``"64MiB"``.
/// * ``fpr``: the highest false positive rate, 1e-8 by default.
/// * ``window``: how long a key is remembered: a number of ticks, text such as ``"10m"``, or a
///   ``timedelta``. ``times=`` of ``observe`` moves the clock.
/// * ``refresh``: whether a duplicate renews its key (``True`` by default).
/// * ``tick``: the length of a tick: ``"ns"``, ``"us"``, ``"ms"`` or ``"s"``. It is needed for
///   times with a unit; ``window="10m"`` sets it to ``"ms"``.
/// * ``seed`` of the key hashes, or a ``secret`` of 16 bytes against chosen keys.
///
/// >>> from echoless import Filter
/// >>> filter = Filter(memory="1MiB", fpr=1e-8)
/// >>> filter.observe(["call 17", "call 18", "call 17"]).tolist()
/// [False, False, True]
/// >>> filter.observe("call 18")
/// True
/// >>> Filter("bloom:k=0,memory=1MiB")
/// Traceback (most recent call last):
///     ...
/// ValueError: invalid k=0: expected 1 to 64
#[pyclass(frozen, module = "echoless")]
pub(crate) struct Filter {
    /// No call waits for the lock: a second thread gets an error. `None` if the filter is closed.
    object: Mutex<Option<Object>>,
    about: About,
    tick: Option<Unit>,
}

/// The filter of a call.
struct Locked<'a>(MutexGuard<'a, Option<Object>>);

impl Locked<'_> {
    fn get(&self) -> PyResult<&Object> {
        let closed = || PyValueError::new_err("the filter is closed");
        self.0.as_ref().ok_or_else(closed)
    }
}

impl Filter {
    fn lock(&self) -> PyResult<Locked<'_>> {
        match self.object.try_lock() {
            Ok(guard) => Ok(Locked(guard)),
            Err(TryLockError::WouldBlock) => Err(PyRuntimeError::new_err(
                "another thread uses the filter: use SharedFilter, a filter for each thread, or a \
                 lock",
            )),
            Err(TryLockError::Poisoned(_)) => Err(PyRuntimeError::new_err(
                "the filter panicked in an earlier call: a defect",
            )),
        }
    }

    fn of_object((object, about): (Object, About), tick: Option<Unit>) -> Self {
        Self {
            object: Mutex::new(Some(object)),
            about,
            tick,
        }
    }

    /// Runs a call with numbers, without the interpreter.
    fn call(&self, py: Python<'_>, call: Call, argument: u64) -> PyResult<u64> {
        let locked = self.lock()?;
        let object = locked.get()?;
        py.detach(|| object.call(call, argument)).map_err(raise)
    }
}

#[pymethods]
impl Filter {
    #[new]
    #[pyo3(signature = (
        spec = None, *, memory = None, fpr = None, window = None, refresh = None, tick = None,
        seed = 0, secret = None
    ))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments")]
    fn new(
        py: Python<'_>,
        spec: Option<&str>,
        memory: Option<&Bound<'_, PyAny>>,
        fpr: Option<f64>,
        window: Option<&Bound<'_, PyAny>>,
        refresh: Option<bool>,
        tick: Option<&str>,
        seed: u64,
        secret: Option<&[u8]>,
    ) -> PyResult<Self> {
        let mut tick = tick.map(parse_tick).transpose()?;
        let has_options =
            memory.is_some() || fpr.is_some() || window.is_some() || refresh.is_some();
        let text = match spec {
            Some(_) if has_options => {
                let allowed = "no memory, fpr, window and refresh beside a specification";
                return Err(invalid("spec", spec.unwrap_or_default(), allowed));
            }
            Some(spec) => spec.to_owned(),
            None => {
                let mut options = Vec::new();
                if let Some(memory) = memory {
                    options.push(format!("memory={}", options::memory(memory)?));
                }
                if let Some(fpr) = fpr {
                    options.push(format!("fpr={fpr:e}"));
                }
                if let Some(window) = window {
                    let ticks;
                    (ticks, tick) = options::window(window, tick)?;
                    options.push(format!("window={ticks}"));
                }
                if refresh == Some(false) {
                    options.push("replacement=fifo".to_owned());
                }
                format!("fingerprint:{}", options.join(","))
            }
        };
        let made = object::make(py, Kind::Filter, &text, 1, seed, secret)?;
        Ok(Self::of_object(made, tick))
    }

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
        &self,
        py: Python<'py>,
        keys: &Bound<'py, PyAny>,
        times: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let input = Input::read(keys, &self.about.hasher)?;
        let times = times
            .map(|times| Times::read(times, self.tick, input.len()))
            .transpose()?;
        let locked = self.lock()?;
        let filter = locked.get()?;
        let ticks = match &times {
            None => None,
            Some(Times::All(tick)) => {
                filter.call(Call::advance, *tick).map_err(raise)?;
                None
            }
            Some(Times::Each(ticks)) => Some(&ticks[..]),
        };
        verdicts(py, &input, ticks, |keys, ticks, words| {
            filter.observe(At(keys, ticks), words)
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
    fn observe_one(&self, key: &Bound<'_, PyAny>, time: Option<u64>) -> PyResult<bool> {
        let locked = self.lock()?;
        let filter = locked.get()?;
        if let Some(tick) = time {
            filter.call(Call::advance, tick).map_err(raise)?;
        }
        self.about.observe_one(filter, key)
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
        &self,
        py: Python<'py>,
        keys: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let input = Input::read(keys, &self.about.hasher)?;
        let locked = self.lock()?;
        let filter = locked.get()?;
        verdicts(py, &input, None, |keys, _, words| {
            filter.contains(keys, words)
        })
    }

    /// Moves the clock of a window. An earlier tick has no effect.
    fn advance_to(&self, py: Python<'_>, tick: u64) -> PyResult<()> {
        self.call(py, Call::advance, tick).map(drop)
    }

    /// Removes all keys, and resets the counters and the clock.
    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        self.call(py, Call::clear, 0).map(drop)
    }

    /// The memory of the filter's state, in bytes.
    #[getter]
    fn memory_bytes(&self, py: Python<'_>) -> PyResult<u64> {
        self.call(py, Call::memory_bytes, 0)
    }

    /// Counters and error estimates as a dict; None is what the filter does not know. This may
    /// read the whole memory of the filter.
    ///
    /// >>> from echoless import Filter
    /// >>> filter = Filter(memory="1MiB")
    /// >>> _ = filter.observe(["a", "b", "a"])
    /// >>> report = filter.report()
    /// >>> report["observed"], report["fresh"], report["memory_bytes"]
    /// (3, 2, 1048576)
    fn report<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        object::report(py, self.lock()?.get()?)
    }

    /// The specification; ``Filter(filter.spec)`` makes an empty filter of it.
    #[getter]
    fn spec(&self) -> &str {
        &self.about.spec
    }

    /// The length of a tick, or None.
    #[getter]
    fn tick(&self) -> Option<&'static str> {
        self.tick.map(|tick| tick.name)
    }

    /// The bytes that were saved with the state that the filter was loaded from.
    #[getter]
    fn data<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.about.data)
    }

    /// Writes the state into a file, with bytes of the caller such as a position in the input. The
    /// file is replaced as a whole: it has the old state or the new one, also after a power cut.
    /// Seed, secret and tick are not in it. Filters with lines can be saved (form=line), which the
    /// default filter has.
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
    fn save(&self, py: Python<'_>, path: PathBuf, data: Option<&[u8]>) -> PyResult<()> {
        object::save(py, self.lock()?.get()?, path, data)
    }

    /// The filter of a state that ``save``, the command or another program wrote. Seed and secret
    /// must be those of the filter that was saved. ``data`` has the bytes that were saved with it.
    /// ``memory_limit`` rejects filters of more bytes, for files from others.
    #[staticmethod]
    #[pyo3(signature = (path, *, seed = 0, secret = None, tick = None, memory_limit = None))]
    fn load(
        py: Python<'_>,
        path: PathBuf,
        seed: u64,
        secret: Option<&[u8]>,
        tick: Option<&str>,
        memory_limit: Option<u64>,
    ) -> PyResult<Self> {
        let tick = tick.map(parse_tick).transpose()?;
        let loaded = object::load(py, Kind::Filter, &path, 1, seed, secret, memory_limit)?;
        Ok(Self::of_object(loaded, tick))
    }

    /// Pickles the state. A secret must not be in a pickle.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Pickled)> {
        if self.about.is_secret {
            return Err(PyTypeError::new_err(
                "a filter with a secret cannot be pickled: use save and load",
            ));
        }
        let locked = self.lock()?;
        let filter = locked.get()?;
        let mut state = Vec::new();
        py.detach(|| {
            let stream = Target::Stream(None, Box::new(&mut state));
            filter.save(stream, &self.about.data)
        })
        .map_err(raise)?;
        let restore = py.get_type::<Self>().getattr("_restore")?;
        Ok((
            restore,
            (
                PyBytes::new(py, &state).unbind(),
                self.about.seed,
                self.tick(),
            ),
        ))
    }

    #[staticmethod]
    fn _restore(py: Python<'_>, state: &[u8], seed: u64, tick: Option<&str>) -> PyResult<Self> {
        let tick = tick.map(parse_tick).transpose()?;
        let hasher = KeyHasher::seeded(seed);
        let loaded = py.detach(|| {
            let from = Source::Streams(vec![Box::new(state)]);
            Object::load(Kind::Filter, from, hasher.clone(), 1, u64::MAX)
        });
        let (data, object) = loaded.map_err(raise)?;
        let restored = object::about(object, hasher, seed, None, data)?;
        Ok(Self::of_object(restored, tick))
    }

    /// Frees the memory. Later calls are errors; closing again is none. A ``with`` block closes
    /// the filter at its end.
    fn close(&self) -> PyResult<()> {
        self.lock()?.0.take();
        Ok(())
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyResult<PyRef<'_, Self>> {
        slf.lock()?.get()?;
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

    fn __repr__(&self) -> String {
        self.about.repr("Filter")
    }
}

/// What a pickle has: the state, the seed and the tick.
type Pickled = (Py<PyBytes>, u64, Option<&'static str>);
