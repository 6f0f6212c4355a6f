//! `echoless.ExactFilter`: a filter without errors.

use std::path::PathBuf;

use echoless_foreign::Kind;
use pyo3::prelude::*;

use crate::object::{Settings, WholeFilter};
use crate::options;

/// A filter without errors: it drops no fresh key and misses no duplicate. Keys that its filter may
/// have seen are compared with the digests, of 128 bits, of all keys, which it never forgets. A key
/// takes 17 to 40 bytes of memory until the first ``save``, and from then on 16.1 in its folder.
///
/// ``ExactFilter("fingerprint:memory=64MiB")`` takes the specification of a filter in lines, which
/// has no window; ``ExactFilter(memory="64MiB")`` is that. Give it 10 bytes for each key: once it
/// is full, all keys are looked up. Keys and results are those of ``Filter.observe``; times have no
/// effect. One thread at a time may use it. If its folder fails, so do all later calls: load it as
/// it was last saved. ``clear`` removes the keys of a filter that was never saved.
///
/// >>> import os, tempfile
/// >>> from echoless import ExactFilter
/// >>> folder = os.path.join(tempfile.mkdtemp(), "calls")
/// >>> with ExactFilter(memory="1MiB") as seen:
/// ...     _ = seen.observe(["call 17", "call 18"])
/// ...     seen.save(folder, b"line 2")
/// >>> seen = ExactFilter.load(folder)
/// >>> seen.data, seen.observe(["call 18", "call 19"]).tolist()
/// (b'line 2', [True, False])
#[pyclass(frozen, extends = WholeFilter, module = "echoless")]
pub(crate) struct ExactFilter;

#[pymethods]
impl ExactFilter {
    #[new]
    #[pyo3(signature = (spec = None, *, memory = None, seed = 0, secret = None))]
    fn new(
        py: Python<'_>,
        spec: Option<&str>,
        memory: Option<&Bound<'_, PyAny>>,
        seed: u64,
        secret: Option<&[u8]>,
    ) -> PyResult<PyClassInitializer<Self>> {
        let text = options::spec(spec, memory, "fingerprint")?;
        let settings = Settings::new(seed, secret, None)?;
        Ok(WholeFilter::make(py, Kind::Exact, &text, settings)?.add_subclass(Self))
    }

    /// Saves the filter with bytes of the caller in a folder, which is made if necessary. The first
    /// call moves the digests of all keys there; later ones, of the same folder, write what is new,
    /// and the filter. After a kill or a power cut, the folder is as it was last saved. The secret
    /// of the digests is in it; seed and secret of the filter are not.
    #[pyo3(signature = (path, data = None))]
    fn save(slf: &Bound<'_, Self>, path: PathBuf, data: Option<&[u8]>) -> PyResult<()> {
        slf.as_super().as_super().get().save(slf.py(), path, data)
    }

    /// Opens a folder as it was last saved, which no other filter or process may use meanwhile.
    /// ``FileNotFoundError`` if no filter was ever saved in it.
    /// Seed and secret must be those of the filter that was saved. ``data`` has the bytes that were
    /// saved with it. ``memory_limit`` rejects filters of more bytes, for folders from others.
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
        let base = WholeFilter::restore(py, Kind::Exact, &path, settings, memory_limit)?;
        Py::new(py, base.add_subclass(Self))
    }
}
