//! `echoless.Filter`: a filter for one thread at a time.

use std::path::PathBuf;

use echoless::KeyHasher;
use echoless_foreign::{Kind, Object, Source, Target};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::{invalid, raise};
use crate::object::{AnyFilter, Settings, WholeFilter};
use crate::options;

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
#[pyclass(frozen, extends = WholeFilter, module = "echoless")]
pub(crate) struct Filter;

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
    ) -> PyResult<PyClassInitializer<Self>> {
        let mut settings = Settings::new(seed, secret, tick)?;
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
                    (ticks, settings.tick) = options::window(window, settings.tick)?;
                    options.push(format!("window={ticks}"));
                }
                if refresh == Some(false) {
                    options.push("replacement=fifo".to_owned());
                }
                format!("fingerprint:{}", options.join(","))
            }
        };
        Ok(WholeFilter::make(py, Kind::Filter, &text, settings)?.add_subclass(Self))
    }

    /// Moves the clock of a window. An earlier tick has no effect.
    fn advance_to(slf: &Bound<'_, Self>, tick: u64) -> PyResult<()> {
        WholeFilter::advance(slf.as_super(), tick)
    }

    /// The length of a tick, or None.
    #[getter]
    fn tick(slf: &Bound<'_, Self>) -> Option<&'static str> {
        slf.as_super().as_super().get().tick.map(|tick| tick.name)
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
    ) -> PyResult<Py<Self>> {
        let settings = Settings::new(seed, secret, tick)?;
        let base = WholeFilter::restore(py, Kind::Filter, &path, settings, memory_limit)?;
        Py::new(py, base.add_subclass(Self))
    }

    /// Pickles the state. A secret must not be in a pickle.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Pickled)> {
        let (py, this) = (slf.py(), slf.as_super().as_super().get());
        if this.is_secret {
            return Err(PyTypeError::new_err(
                "a filter with a secret cannot be pickled: use save and load",
            ));
        }
        let mut state = Vec::new();
        this.using(|filter| {
            let saved = py.detach(|| {
                let stream = Target::Stream(None, Box::new(&mut state));
                filter.save(stream, &this.data)
            });
            saved.map_err(raise)
        })?;
        let restore = py.get_type::<Self>().getattr("_restore")?;
        let state = PyBytes::new(py, &state).unbind();
        Ok((restore, (state, this.seed, Self::tick(slf))))
    }

    #[staticmethod]
    fn _restore(py: Python<'_>, state: &[u8], seed: u64, tick: Option<&str>) -> PyResult<Py<Self>> {
        let settings = Settings::new(seed, None, tick)?;
        let hasher = KeyHasher::seeded(seed);
        let loaded = py.detach(|| {
            let from = Source::Streams(vec![Box::new(state)]);
            Object::load(Kind::Filter, from, hasher.clone(), 1, u64::MAX)
        });
        let (data, object) = loaded.map_err(raise)?;
        let base = AnyFilter::of_object(Kind::Filter, object, hasher, settings, data)?;
        let base = WholeFilter::over(base);
        Py::new(py, base.add_subclass(Self))
    }
}

/// What a pickle has: the state, the seed and the tick.
type Pickled = (Py<PyBytes>, u64, Option<&'static str>);
