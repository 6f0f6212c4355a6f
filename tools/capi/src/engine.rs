//! The engine: workers own a partition each, and threads pass batches through ports.

use std::ffi::{c_char, c_int};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use echoless::{Engine, FilterSpec, KeyHash, KeyHasher, LineFilter, Port, Verdicts, report_of};
use echoless_foreign::{Code, Failure, Keys, ReportFields, Table, exclusive, hash_all};

use crate::call::{call, echoless_hashing, hasher, slice_mut, text, write_if_wanted};
use crate::filter::write_report;
use crate::keys::{echoless_keys, with_keys, write_handle};

/// A handle: workers, each with a partition of a filter in lines. Any thread may use it.
#[derive(Debug)]
pub struct echoless_engine {
    _opaque: (),
}

/// A handle: the way of one thread to the workers. One thread at a time may use it.
#[derive(Debug)]
pub struct echoless_port {
    _opaque: (),
}

struct Workers {
    engine: Engine<Box<dyn LineFilter>>,
    /// It was shut down, or is now: a new port would have no workers.
    has_ended: AtomicBool,
    hasher: KeyHasher,
}

struct PortOf {
    port: Port,
    hasher: KeyHasher,
    hashes: Vec<KeyHash>,
    verdicts: Verdicts,
}

static ENGINES: Table<Arc<Workers>> = Table::new(6, "engine");
static PORTS: Table<Mutex<PortOf>> = Table::new(7, PORT);
const PORT: &str = "port";

/// Builds an engine of `partitions` workers from the specification of a filter in lines. Ports come
/// from `echoless_port_new`. Free it with `echoless_engine_free`. Any thread may call this.
///
/// # Safety
/// As `echoless_filter_new`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn echoless_engine_new(
    spec: *const c_char,
    hashing: *const echoless_hashing,
    partitions: usize,
    out: *mut *mut echoless_engine,
) -> c_int {
    call(|| {
        // SAFETY: the caller answers for the text and the hashing.
        let (spec, hasher) = unsafe { (text("spec", spec, None)?, hasher(hashing)?) };
        let spec: FilterSpec = spec.parse()?;
        let filter = spec.build_line_partitions(partitions)?;
        let (engine, _) = Engine::builder(filter).build()?;
        let handle = ENGINES.insert(Arc::new(Workers {
            engine,
            has_ended: AtomicBool::new(false),
            hasher,
        }))?;
        // SAFETY: the caller answers for `out`.
        unsafe { write_handle("out", out, handle, |handle| ENGINES.remove(handle)) }
    })
}

/// Frees an engine; NULL has no effect. Workers that were not shut down stop once they have
/// answered what was submitted; until then, ports may still submit.
#[unsafe(no_mangle)]
pub extern "C" fn echoless_engine_free(engine: *mut echoless_engine) -> c_int {
    call(|| ENGINES.remove(engine))
}

/// Opens a port for a thread. Free it with `echoless_port_free`. Any thread may call this.
///
/// # Safety
/// `out` points to memory for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn echoless_port_new(
    engine: *mut echoless_engine,
    out: *mut *mut echoless_port,
) -> c_int {
    call(|| {
        let workers = Arc::clone(&*ENGINES.get(engine)?);
        // Relaxed: a port that is opened at the same time fails with its first batch.
        if workers.has_ended.load(Ordering::Relaxed) {
            let text = "the engine was shut down: expected one that runs";
            return Err(Failure::new(Code::Disconnected, text));
        }
        let port = workers.engine.attach()?;
        let handle = PORTS.insert(Mutex::new(PortOf {
            port,
            hasher: workers.hasher.clone(),
            hashes: Vec::new(),
            verdicts: Verdicts::new(),
        }))?;
        // SAFETY: the caller answers for `out`.
        unsafe { write_handle("out", out, handle, |handle| PORTS.remove(handle)) }
    })
}

/// Frees a port; NULL has no effect. Batches in flight are judged, and their verdicts are lost.
#[unsafe(no_mangle)]
pub extern "C" fn echoless_port_free(port: *mut echoless_port) -> c_int {
    call(|| PORTS.remove(port))
}

/// Runs `with` on the port of a handle.
#[inline]
fn with_port<T>(
    handle: *const echoless_port,
    with: impl FnOnce(&mut PortOf) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let entry = PORTS.get(handle)?;
    with(&mut *exclusive(PORT, &entry)?)
}

/// Submits a batch; waits if the workers are behind. The keys are hashed before the call returns,
/// so their memory can be used again. All keys have one tick, that of the last of them, if they
/// have ticks.
///
/// # Safety
/// `keys` are as their form says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn echoless_port_submit(
    port: *mut echoless_port,
    keys: echoless_keys,
) -> c_int {
    call(|| {
        with_port(port, |port| {
            let submit = |keys: &dyn Keys, ticks: Option<&[u64]>| {
                let hashes = hash_all(keys, &port.hasher, &mut port.hashes);
                match ticks.and_then(<[u64]>::last) {
                    Some(tick) => port.port.submit_at(*tick, hashes)?,
                    None => port.port.submit(hashes)?,
                }
                Ok(())
            };
            // SAFETY: the caller answers for the keys.
            unsafe { with_keys(&keys, submit) }
        })
    })
}

/// Waits for the verdicts of the oldest batch in flight. `keys` gets the number of its keys, 0 if
/// no batch is in flight or the batch was empty, and `duplicates`, which has `capacity` words,
/// their bits as `echoless_filter_observe` writes them. If they do not fit, that is an error, and
/// the same batch comes with the next call. `count`, if it is not NULL, gets the number of
/// duplicates.
///
/// # Safety
/// `duplicates` points to `capacity` words; `keys` and `count` are NULL or point to memory for a
/// number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn echoless_port_drain(
    port: *mut echoless_port,
    duplicates: *mut u64,
    capacity: usize,
    keys: *mut usize,
    count: *mut u64,
) -> c_int {
    call(|| {
        with_port(port, |port| {
            // SAFETY: the caller answers for the pointers.
            unsafe {
                // What did not fit is still there.
                if port.verdicts.is_empty() {
                    port.port.drain(&mut port.verdicts)?;
                }
                let words = port.verdicts.words();
                if words.len() > capacity {
                    let allowed = format!("{} words or more", words.len());
                    return Err(Failure::argument("capacity", capacity, allowed));
                }
                slice_mut("duplicates", duplicates, words.len())?.copy_from_slice(words);
                write_if_wanted("keys", keys, port.verdicts.len())?;
                write_if_wanted("count", count, port.verdicts.count_duplicates())?;
                port.verdicts.reset(0);
            }
            Ok(())
        })
    })
}

/// Waits at most so many milliseconds until `echoless_port_drain` would not wait: the oldest batch
/// in flight is answered, or there is none. If the time is over, that is
/// `ECHOLESS_STATUS_TIMED_OUT`, and nothing has changed.
#[unsafe(no_mangle)]
pub extern "C" fn echoless_port_wait(port: *mut echoless_port, milliseconds: u64) -> c_int {
    call(|| {
        let timeout = Duration::from_millis(milliseconds);
        with_port(port, |port| Ok(port.port.wait(timeout)?))
    })
}

/// As `echoless_filter_report`, while the workers run: each answers between two messages. From any
/// thread.
///
/// # Safety
/// As `echoless_filter_report`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn echoless_engine_report(
    engine: *mut echoless_engine,
    report: *mut ReportFields,
) -> c_int {
    call(|| {
        let workers = Arc::clone(&*ENGINES.get(engine)?);
        let found = workers.engine.report()?;
        // SAFETY: the caller answers for the struct.
        unsafe { write_report(&found, report) }
    })
}

/// Stops the workers once they have answered what was submitted before, and writes the report of
/// the filter, if it is not NULL. Answered batches can still be drained; new ones are rejected, and
/// so is a drain without a batch in flight.
///
/// # Safety
/// As `echoless_filter_report`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn echoless_engine_shutdown(
    engine: *mut echoless_engine,
    report: *mut ReportFields,
) -> c_int {
    call(|| {
        let workers = Arc::clone(&*ENGINES.get(engine)?);
        workers.has_ended.store(true, Ordering::Relaxed);
        let filter = workers.engine.shutdown().map_err(|error| {
            let code = match error.repeated {
                true => Code::Disconnected,
                false => Code::PartitionLost,
            };
            Failure::new(code, error.to_string())
        })?;
        if report.is_null() {
            return Ok(());
        }
        // SAFETY: the caller answers for the struct.
        unsafe { write_report(&report_of(filter.filters()), report) }
    })
}
