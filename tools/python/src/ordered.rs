//! `echoless.OrderedFilter`: a filter for several threads whose verdicts are those of one.

use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use echoless_foreign::{Call, Code, Cut, Failure, Hashes, Kind, Object, Target};
use echoless_stream::Unit;
use pyo3::prelude::*;
use pyo3::types::PyBool;

use crate::errors::{invalid, raise};
use crate::keys::{Hashing, Input};
use crate::object::{AnyFilter, Settings};
use crate::output::Form;
use crate::times::Times;

/// A filter for several threads whose verdicts are those of one thread: batches apply in the order
/// of their tickets. Each thread observes through a ``thread()`` of its own.
///
/// ``OrderedFilter("fingerprint:fpr=1e-8,memory=64MiB", partitions=2)`` takes the specification of a
/// filter in lines; threads that do nothing but judge need a partition each, and verdicts do not
/// depend on the number. ``tick``, ``seed`` and ``secret`` are those of ``Filter``.
///
/// >>> from echoless import OrderedFilter
/// >>> filter = OrderedFilter("fingerprint:memory=1MiB", partitions=2)
/// >>> one, two = filter.thread(), filter.thread()
/// >>> one.take()  # before two, whenever its batch comes
/// >>> two.wait(0.001)
/// False
/// >>> one.observe(["call 17"]).tolist(), two.observe("call 17")
/// ([False], True)
/// >>> filter.report()["fresh"], filter.memory_bytes
/// (1, 1048576)
#[pyclass(frozen, extends = AnyFilter, module = "echoless")]
pub(crate) struct OrderedFilter;

#[pymethods]
impl OrderedFilter {
    #[new]
    #[pyo3(signature = (spec, *, partitions, tick = None, seed = 0, secret = None))]
    fn new(
        py: Python<'_>,
        spec: &str,
        partitions: usize,
        tick: Option<&str>,
        seed: u64,
        secret: Option<&[u8]>,
    ) -> PyResult<PyClassInitializer<Self>> {
        let settings = Settings::new(seed, secret, tick)?;
        let base = AnyFilter::make(py, Kind::Ordered, spec, partitions, settings)?;
        Ok(PyClassInitializer::from(base).add_subclass(Self))
    }

    /// The access of one more thread.
    fn thread(slf: &Bound<'_, Self>) -> PyResult<OrderedThread> {
        let this = slf.as_super().get();
        Ok(OrderedThread {
            object: this.using(|object| object.open().map_err(raise))?,
            hashing: this.hashing.clone(),
            tick: this.tick,
        })
    }

    /// Saves one point of the stream while threads observe, as ``Filter.save`` does. There
    /// ``before()`` is called, then the ticket of the point is taken, then ``position()`` returns
    /// the bytes of the caller: so ``before`` can lock the input, and ``position`` read its position
    /// and unlock it. ``position`` must not use the filter, which is an error. ``data`` are bytes
    /// that are known before.
    ///
    /// >>> import os, tempfile
    /// >>> from echoless import OrderedFilter
    /// >>> path = os.path.join(tempfile.mkdtemp(), "ordered.state")
    /// >>> filter = OrderedFilter("fingerprint:memory=1MiB", partitions=2)
    /// >>> filter.thread().observe("a")
    /// False
    /// >>> filter.save(path, position=lambda: b"record 1")
    /// >>> filter = OrderedFilter.load(path, partitions=3)
    /// >>> filter.data, filter.thread().observe("a")
    /// (b'record 1', True)
    #[pyo3(signature = (path, data = None, *, before = None, position = None))]
    fn save(
        slf: &Bound<'_, Self>,
        path: PathBuf,
        data: Option<&[u8]>,
        before: Option<Py<PyAny>>,
        position: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        if data.is_some() && position.is_some() {
            return Err(invalid("data", "bytes", "none beside a position"));
        }
        let raised = Mutex::new(None);
        let failed_by = |error| {
            if let Ok(mut raised) = raised.lock() {
                *raised = Some(error);
            }
            Failure::new(Code::Io, "a function raised an exception")
        };
        let lock = || {
            // What it returns, such as the `True` of a lock, says nothing.
            let called = Python::attach(|py| before.as_ref().map(|it| it.call0(py)).transpose());
            called.map(drop).map_err(failed_by)
        };
        let read = || {
            let Some(position) = &position else {
                return Ok(data.unwrap_or_default().to_vec());
            };
            let called = Python::attach(|py| {
                let returned = position.call0(py)?;
                match returned.is_none(py) {
                    true => Ok(Vec::new()),
                    false => returned.extract::<Vec<u8>>(py),
                }
            });
            called.map_err(failed_by)
        };
        let saved = slf.as_super().get().using(|object| {
            let saved = slf.py().detach(|| {
                let failed = Mutex::new(None);
                let cut = Cut {
                    before: Box::new(|| {
                        if let (Err(failure), Ok(mut failed)) = (lock(), failed.lock()) {
                            *failed = Some(failure);
                        }
                    }),
                    position: Box::new(|| match failed.lock().ok().and_then(|mut it| it.take()) {
                        Some(failure) => Err(failure),
                        None => read(),
                    }),
                };
                object.save_at(Target::File(path), cut)
            });
            saved.map_err(raise)
        });
        match raised.into_inner() {
            Ok(Some(error)) => Err(error),
            _ => saved,
        }
    }

    /// The filter of a state of an ordered filter with any number of partitions, or of a
    /// ``Filter``; see ``Filter.load``.
    #[staticmethod]
    #[pyo3(signature = (
        path, *, partitions, seed = 0, secret = None, tick = None, memory_limit = None
    ))]
    fn load(
        py: Python<'_>,
        path: PathBuf,
        partitions: usize,
        seed: u64,
        secret: Option<&[u8]>,
        tick: Option<&str>,
        memory_limit: Option<u64>,
    ) -> PyResult<Py<Self>> {
        let (kind, settings) = (Kind::Ordered, Settings::new(seed, secret, tick)?);
        let base = AnyFilter::restore(py, kind, &path, partitions, settings, memory_limit)?;
        Py::new(py, PyClassInitializer::from(base).add_subclass(Self))
    }
}

/// The access of one thread to an ordered filter.
#[pyclass(frozen, module = "echoless")]
pub(crate) struct OrderedThread {
    object: Object,
    hashing: Hashing,
    tick: Option<Unit>,
}

#[pymethods]
impl OrderedThread {
    /// Takes the next ticket: the batch of the next ``observe`` applies after those of all tickets
    /// that were taken before. Usually under the lock of the input, so that both have one order.
    /// Without effect if the thread holds a ticket.
    ///
    /// All later tickets wait until the batch has passed, so a thread that holds a ticket must
    /// observe, or leave it out with ``leave``.
    fn take(&self) -> PyResult<()> {
        self.object.call(Call::take, 0).map(drop).map_err(raise)
    }

    /// Leaves out the ticket that the thread holds, if it holds one.
    fn leave(&self) -> PyResult<()> {
        self.object.call(Call::leave, 0).map(drop).map_err(raise)
    }

    /// Waits at most so many seconds for the turn of the ticket that the thread holds, which it
    /// takes if it holds none. If the time is over, that is False, and the thread still holds its
    /// ticket.
    fn wait(&self, py: Python<'_>, seconds: f64) -> PyResult<bool> {
        let timeout = Duration::try_from_secs_f64(seconds)
            .map_err(|_| invalid("seconds", seconds, "0 or more"))?;
        let milliseconds = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
        match py.detach(|| self.object.call(Call::wait, milliseconds)) {
            Err(failure) if failure.code == Code::TimedOut => Ok(false),
            waited => waited.map(|_| true).map_err(raise),
        }
    }

    /// Reports which keys are duplicates, and records the others, with the ticket that the thread
    /// holds, or else the next one; see ``Filter.observe``. All keys are one batch, so Ctrl-C waits
    /// for its end.
    #[pyo3(signature = (keys, times = None))]
    fn observe<'py>(
        &self,
        py: Python<'py>,
        keys: &Bound<'py, PyAny>,
        times: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let input = Input::read(keys, &self.hashing)?;
        let times = Times::read(times, self.tick, input.len())?;
        let form = match &input {
            Input::One(_) => None,
            Input::Many(batch) => Some(batch.form),
        };
        let (words, count, len) = py
            .detach(|| {
                let hashes = input.into_hashes(&self.hashing.hasher);
                let ticks = times.map(|times| match times {
                    Times::All(tick) => vec![tick; hashes.len()],
                    Times::Each(ticks) => ticks,
                });
                let mut words = vec![0; hashes.len().div_ceil(64)];
                let ticks = ticks.as_deref();
                let count = (self.object).observe_at(&Hashes(&hashes), ticks, &mut words)?;
                Ok::<_, Failure>((words, count, hashes.len()))
            })
            .map_err(raise)?;
        match form {
            None => Ok(PyBool::new(py, count == 1).to_owned().into_any()),
            Some(form) => Form::array(form, py, &words, len),
        }
    }
}
