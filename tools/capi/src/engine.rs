//! The engine: workers own a partition each, and threads pass batches through ports.

use std::ffi::{c_char, c_int};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use echoless::{Engine, FilterSpec, KeyHash, KeyHasher, LineFilter, Port, Verdicts, report_of};
use echoless_foreign::{
    Code, Failure, Keys, ReportFields, Table, exclusive, give_back, give_back_verdicts, hash_all,
};

use crate::call::{
    Place, call, check_apart, check_pointer, echoless_hashing, hasher, memory, slice_mut, text,
};
use crate::filter::ReportPlace;
use crate::keys::{echoless_keys, with_keys};

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
    /// `verdicts` are those of the oldest batch, which is not drained yet.
    is_answered: bool,
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
        // SAFETY: the caller answers for the pointers.
        let (out, spec, hasher) = unsafe {
            let out = Place::new("out", out)?;
            (out, text("spec", spec, None)?, hasher(hashing)?)
        };
        let spec: FilterSpec = spec.parse()?;
        let filter = spec.build_line_partitions(partitions)?;
        let (engine, _) = Engine::builder(filter).build()?;
        let handle = ENGINES.insert(Arc::new(Workers {
            engine,
            has_ended: AtomicBool::new(false),
            hasher,
        }))?;
        out.write(handle.pointer());
        Ok(())
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
        // SAFETY: the caller answers for the memory.
        let out = unsafe { Place::new("out", out)? };
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
            is_answered: false,
        }))?;
        out.write(handle.pointer());
        Ok(())
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
                let submitted = match ticks.and_then(<[u64]>::last) {
                    Some(tick) => port.port.submit_at(*tick, hashes),
                    None => port.port.submit(hashes),
                };
                give_back(&mut port.hashes);
                Ok(submitted?)
            };
            // SAFETY: the caller answers for the keys.
            unsafe { with_keys(&keys, &[], submit) }
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
            let (keys, count) = unsafe {
                (
                    Place::optional("keys", keys)?,
                    Place::optional("count", count)?,
                )
            };
            if capacity > 0 {
                check_pointer("duplicates", duplicates, capacity)?;
            }
            let words = memory("duplicates", duplicates, capacity);
            check_apart(&[words, keys.memory(), count.memory()])?;
            // What did not fit is still there.
            if !port.is_answered {
                port.port.drain(&mut port.verdicts)?;
                port.is_answered = true;
            }
            let words = port.verdicts.words();
            if words.len() > capacity {
                let allowed = format!("{} words or more", words.len());
                return Err(Failure::argument("capacity", capacity, allowed));
            }
            // SAFETY: as above.
            unsafe { slice_mut("duplicates", duplicates, words.len())?.copy_from_slice(words) };
            keys.write(port.verdicts.len());
            count.write(port.verdicts.count_duplicates());
            give_back_verdicts(&mut port.verdicts);
            port.is_answered = false;
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
        let end = Instant::now().checked_add(Duration::from_millis(milliseconds));
        with_port(port, |port| {
            // Of a batch, each partition has an answer, and the port waits for one at a time.
            while !port.is_answered && port.port.in_flight() > 0 {
                match port.port.poll(&mut port.verdicts) {
                    Ok(is_answered) => port.is_answered = is_answered,
                    // A drain returns it at once.
                    Err(_) => break,
                }
                if !port.is_answered {
                    let rest = end.map_or(Duration::MAX, |end| end - Instant::now());
                    port.port.wait(rest)?;
                }
            }
            Ok(())
        })
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
        // SAFETY: the caller answers for the struct.
        let place = unsafe { ReportPlace::new(report)? };
        place.write(&Arc::clone(&*ENGINES.get(engine)?).engine.report()?);
        Ok(())
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
        let place = match report.is_null() {
            true => None,
            // SAFETY: the caller answers for the struct.
            false => Some(unsafe { ReportPlace::new(report)? }),
        };
        let workers = Arc::clone(&*ENGINES.get(engine)?);
        workers.has_ended.store(true, Ordering::Relaxed);
        let filter = workers.engine.shutdown().map_err(|error| {
            let code = match error.repeated {
                true => Code::Disconnected,
                false => Code::PartitionLost,
            };
            Failure::new(code, error.to_string())
        })?;
        if let Some(place) = place {
            place.write(&report_of(filter.filters()));
        }
        Ok(())
    })
}
