//! Filters that one thread at a time uses, and their states.

use std::ffi::{c_char, c_int, c_void};
use std::io::{self, Read, Write};
use std::sync::Mutex;

use echoless::Report;
use echoless_foreign::{Failure, Filter, ReportFields, Table, exclusive, hash_all};

use crate::call::{call, echoless_hashing, hasher, path, slice, slice_mut, text, write_if_wanted};
use crate::keys::{echoless_keys, judge_keys, with_keys, write_handle};

/// A handle: a filter of any kind. One thread at a time may use it; a call while another one runs
/// is an error. After an error of a call nothing has changed, unless the function says otherwise.
#[derive(Debug)]
pub struct echoless_filter {
    _opaque: (),
}

pub(crate) const FILTER: &str = "filter";

static FILTERS: Table<Mutex<Filter>> = Table::new(2, FILTER);

/// Runs `with` on the filter of a handle.
#[inline]
fn with_filter<T>(
    handle: *const echoless_filter,
    with: impl FnOnce(&mut Filter) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let entry = FILTERS.get(handle)?;
    with(&mut *exclusive(FILTER, &entry)?)
}

/// Builds a filter from a specification such as "fingerprint:fpr=1e-8,memory=64MiB". Free it with
/// `echoless_filter_free`. Any thread may call this.
///
/// # Safety
/// `spec` ends with a NUL; `hashing` is NULL or as its type says; `out` points to memory for a
/// handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn echoless_filter_new(
    spec: *const c_char,
    hashing: *const echoless_hashing,
    out: *mut *mut echoless_filter,
) -> c_int {
    call(|| {
        // SAFETY: the caller answers for the text and the hashing.
        let (spec, hasher) = unsafe { (text("spec", spec, None)?, hasher(hashing)?) };
        let handle = FILTERS.insert(Mutex::new(Filter::new(spec, hasher)?))?;
        // SAFETY: the caller answers for `out`.
        unsafe { write_handle("out", out, handle, |handle| FILTERS.remove(handle)) }
    })
}

/// Frees a filter; NULL has no effect. A call that uses it meanwhile ends as usual.
#[unsafe(no_mangle)]
pub extern "C" fn echoless_filter_free(filter: *mut echoless_filter) -> c_int {
    call(|| FILTERS.remove(filter))
}

/// Probes and inserts each key in order. Bit `i % 64` of `duplicates[i / 64]` is set if key `i` is
/// a duplicate, and `duplicates` has one bit for each key, rounded up to whole words: bits past the
/// last key are zero. `count`, if it is not NULL, gets the number of duplicates.
///
/// # Safety
/// `keys` are as their form says; `duplicates` points to memory for the bits; `count` is NULL or
/// points to memory for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn echoless_filter_observe(
    filter: *mut echoless_filter,
    keys: echoless_keys,
    duplicates: *mut u64,
    count: *mut u64,
) -> c_int {
    call(|| {
        with_filter(filter, |filter| {
            // SAFETY: the caller answers for the pointers.
            unsafe {
                judge_keys(&keys, duplicates, count, |keys, ticks, words| {
                    filter.observe(keys, ticks, words)
                })
            }
        })
    })
}

/// Whether each key would be a duplicate now, as `echoless_filter_observe` writes it. Changes
/// nothing in the filter; ticks of the keys have no effect.
///
/// # Safety
/// As `echoless_filter_observe`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn echoless_filter_contains(
    filter: *mut echoless_filter,
    keys: echoless_keys,
    duplicates: *mut u64,
    count: *mut u64,
) -> c_int {
    call(|| {
        with_filter(filter, |filter| {
            // SAFETY: the caller answers for the pointers.
            unsafe {
                judge_keys(&keys, duplicates, count, |keys, _, words| {
                    filter.contains(keys, words)
                })
            }
        })
    })
}

/// The hash of each key, as the filter hashes it, for a program that passes keys to several filters
/// with the same hashing.
///
/// # Safety
/// `keys` are as their form says; `hashes` points to memory for a number for each key.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn echoless_filter_hash(
    filter: *mut echoless_filter,
    keys: echoless_keys,
    hashes: *mut u64,
) -> c_int {
    call(|| {
        with_filter(filter, |filter| {
            // SAFETY: the caller answers for the pointers.
            let into = unsafe { slice_mut("hashes", hashes, keys.count)? };
            // SAFETY: as above.
            unsafe {
                with_keys(&keys, |keys, _| {
                    let mut buffer = Vec::new();
                    let hashes = hash_all(keys, filter.hasher(), &mut buffer);
                    for (into, hash) in into.iter_mut().zip(hashes) {
                        *into = hash.get();
                    }
                    Ok(())
                })
            }
        })
    })
}

/// Moves the clock of a window to `tick`. An earlier tick has no effect, and neither has any
/// without a window.
#[unsafe(no_mangle)]
pub extern "C" fn echoless_filter_advance(filter: *mut echoless_filter, tick: u64) -> c_int {
    call(|| {
        with_filter(filter, |filter| {
            filter.advance_to(tick);
            Ok(())
        })
    })
}

/// Removes all keys, and resets the counters and the clock.
#[unsafe(no_mangle)]
pub extern "C" fn echoless_filter_clear(filter: *mut echoless_filter) -> c_int {
    call(|| {
        with_filter(filter, |filter| {
            filter.clear();
            Ok(())
        })
    })
}

/// Counters and error estimates. Set `report->size` to `sizeof(echoless_report)` first; the fields
/// that the library knows are written, up to that size. This may read the whole filter.
///
/// # Safety
/// `report` points to a struct of the size that it says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn echoless_filter_report(
    filter: *mut echoless_filter,
    report: *mut ReportFields,
) -> c_int {
    call(|| {
        with_filter(filter, |filter| {
            // SAFETY: the caller answers for the struct.
            unsafe { write_report(&filter.report(), report) }
        })
    })
}

/// Writes as much of a report as the caller knows.
///
/// # Safety
/// `into` is NULL or points to a struct of the size that it says.
pub(crate) unsafe fn write_report(report: &Report, into: *mut ReportFields) -> Result<(), Failure> {
    // SAFETY: the first field is the size; the caller answers for it.
    let size = unsafe { slice("report", into.cast::<usize>(), 1)?[0] };
    if size < size_of::<usize>() {
        let allowed = "sizeof(echoless_report), set before the call";
        return Err(Failure::argument("size of report", size, allowed));
    }
    let known = size.min(size_of::<ReportFields>());
    let fields = ReportFields {
        size: known,
        ..ReportFields::from(report)
    };
    // SAFETY: both have `known` bytes.
    unsafe { std::ptr::copy_nonoverlapping((&raw const fields).cast::<u8>(), into.cast(), known) };
    Ok(())
}

/// Writes the specification of the filter as a text with a NUL into `text`, which has `capacity`
/// bytes. `length`, if it is not NULL, gets its length without the NUL, also if it does not fit,
/// which is an error.
///
/// # Safety
/// `text` points to `capacity` bytes; `length` is NULL or points to memory for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn echoless_filter_spec(
    filter: *mut echoless_filter,
    text: *mut c_char,
    capacity: usize,
    length: *mut usize,
) -> c_int {
    call(|| {
        with_filter(filter, |filter| {
            let spec = filter.spec().to_string();
            // SAFETY: the caller answers for the pointers.
            unsafe {
                write_if_wanted("length", length, spec.len())?;
                if spec.len() >= capacity {
                    let allowed = format!("{} or more", spec.len() + 1);
                    return Err(Failure::argument("capacity", capacity, allowed));
                }
                let into = slice_mut("text", text.cast::<u8>(), spec.len() + 1)?;
                into[..spec.len()].copy_from_slice(spec.as_bytes());
                into[spec.len()] = 0;
            }
            Ok(())
        })
    })
}

/// Saves the filter with `bytes` of the caller, such as a position in a stream, into a file that is
/// replaced as a whole: it has the old content or the new one, also after a power cut. The secret
/// of the hashing is not in it. Only filters in lines can be saved.
///
/// # Safety
/// `path` ends with a NUL; `bytes` points to `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn echoless_filter_save_file(
    filter: *mut echoless_filter,
    path: *const c_char,
    bytes: *const u8,
    length: usize,
) -> c_int {
    call(|| {
        // SAFETY: the caller answers for the pointers.
        let (path, bytes) = unsafe { (self::path(path)?, slice("bytes", bytes, length)?) };
        with_filter(filter, |filter| filter.save_file(&path, bytes))
    })
}

/// Takes bytes of a state; returns 0, or anything else to end the save with an error.
pub type echoless_write =
    Option<unsafe extern "C" fn(context: *mut c_void, bytes: *const u8, length: usize) -> c_int>;

/// Gives bytes of a state: writes up to `capacity` of them and their number, 0 at the end; returns
/// 0, or anything else to end the load with an error.
pub type echoless_read = Option<
    unsafe extern "C" fn(
        context: *mut c_void,
        bytes: *mut u8,
        capacity: usize,
        length: *mut usize,
    ) -> c_int,
>;

struct Writer {
    write: unsafe extern "C" fn(*mut c_void, *const u8, usize) -> c_int,
    context: *mut c_void,
}

impl Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // SAFETY: the function and the context are of one caller, who answers for both.
        match unsafe { (self.write)(self.context, bytes.as_ptr(), bytes.len()) } {
            0 => Ok(bytes.len()),
            status => Err(io::Error::other(format!("the writer returned {status}"))),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Reader {
    read: unsafe extern "C" fn(*mut c_void, *mut u8, usize, *mut usize) -> c_int,
    context: *mut c_void,
}

impl Read for Reader {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let mut length = 0;
        // SAFETY: the function and the context are of one caller, who answers for both.
        let status = unsafe {
            (self.read)(
                self.context,
                bytes.as_mut_ptr(),
                bytes.len(),
                &raw mut length,
            )
        };
        match status {
            0 if length <= bytes.len() => Ok(length),
            0 => Err(io::Error::other(format!(
                "the reader gave {length} bytes of {}",
                bytes.len()
            ))),
            status => Err(io::Error::other(format!("the reader returned {status}"))),
        }
    }
}

/// The number of lines of the filter. The parts of a state are ranges of them.
///
/// # Safety
/// `lines` points to memory for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn echoless_filter_lines(
    filter: *mut echoless_filter,
    lines: *mut u64,
) -> c_int {
    call(|| {
        with_filter(filter, |filter| {
            let count = filter.lines()?;
            // SAFETY: the caller answers for the memory.
            unsafe { write_if_wanted("lines", lines, count) }
        })
    })
}

/// Saves the lines from `first` to before `end` to a function of the caller: a part of a state, or
/// all of it from 0 to `echoless_filter_lines`. The function must not use the filter.
///
/// # Safety
/// `bytes` points to `length` bytes; `write` takes `context`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn echoless_filter_save_part(
    filter: *mut echoless_filter,
    first: u64,
    end: u64,
    bytes: *const u8,
    length: usize,
    write: echoless_write,
    context: *mut c_void,
) -> c_int {
    call(|| {
        // SAFETY: the caller answers for the bytes.
        let bytes = unsafe { slice("bytes", bytes, length)? };
        let write = write.ok_or_else(|| Failure::argument("write", "NULL", "a function"))?;
        let writer = Writer { write, context };
        with_filter(filter, |filter| {
            filter.save(Some(first..end), bytes, writer)
        })
    })
}

/// Restores a filter from a file. `memory_limit` rejects a filter of more memory before it is
/// built; with `UINT64_MAX` there is no limit. The bytes that were saved with it are written to
/// `bytes`, which has `capacity`, and their number to `length`; it is an error if they do not fit.
/// NULL and 0 leave them out.
///
/// # Safety
/// `path` ends with a NUL; `hashing` is NULL or as its type says; `bytes` points to `capacity`
/// bytes; `length` is NULL or points to memory for a number; `out` points to memory for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn echoless_filter_load_file(
    path: *const c_char,
    hashing: *const echoless_hashing,
    memory_limit: u64,
    bytes: *mut u8,
    capacity: usize,
    length: *mut usize,
    out: *mut *mut echoless_filter,
) -> c_int {
    call(|| {
        // SAFETY: the caller answers for the path and the hashing.
        let (path, hasher) = unsafe { (self::path(path)?, hasher(hashing)?) };
        let (filter, saved) = Filter::load_file(&path, hasher, memory_limit)?;
        // SAFETY: the caller answers for the pointers.
        unsafe {
            write_bytes(&saved, bytes, capacity, length)?;
            let handle = FILTERS.insert(Mutex::new(filter))?;
            write_handle("out", out, handle, |handle| FILTERS.remove(handle))
        }
    })
}

/// Restores a filter from the states of all its parts, in any order: `count` contexts, each of
/// which `read` reads one part from. Otherwise as `echoless_filter_load_file`; the bytes are those
/// of the parts behind each other, in the order of their lines.
///
/// # Safety
/// `contexts` points to `count` of them, which `read` takes; otherwise as
/// `echoless_filter_load_file`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn echoless_filter_load_parts(
    read: echoless_read,
    contexts: *const *mut c_void,
    count: usize,
    hashing: *const echoless_hashing,
    memory_limit: u64,
    bytes: *mut u8,
    capacity: usize,
    length: *mut usize,
    out: *mut *mut echoless_filter,
) -> c_int {
    call(|| {
        let read = read.ok_or_else(|| Failure::argument("read", "NULL", "a function"))?;
        // SAFETY: the caller answers for the pointers.
        let (contexts, hasher) = unsafe { (slice("contexts", contexts, count)?, hasher(hashing)?) };
        let readers = contexts.iter().map(|context| {
            io::BufReader::new(Reader {
                read,
                context: *context,
            })
        });
        let (filter, saved) = Filter::load(readers, hasher, memory_limit)?;
        // SAFETY: the caller answers for the pointers.
        unsafe {
            write_bytes(&saved.concat(), bytes, capacity, length)?;
            let handle = FILTERS.insert(Mutex::new(filter))?;
            write_handle("out", out, handle, |handle| FILTERS.remove(handle))
        }
    })
}

/// Writes bytes of a state, unless the caller leaves them out.
///
/// # Safety
/// `into` is NULL or points to `capacity` bytes, `length` is NULL or points to memory for a number.
pub(crate) unsafe fn write_bytes(
    saved: &[u8],
    into: *mut u8,
    capacity: usize,
    length: *mut usize,
) -> Result<(), Failure> {
    // SAFETY: the caller answers for the pointers.
    unsafe { write_if_wanted("length", length, saved.len())? };
    if into.is_null() {
        return Ok(());
    }
    if saved.len() > capacity {
        let allowed = format!("{} or more", saved.len());
        return Err(Failure::argument("capacity", capacity, allowed));
    }
    // SAFETY: as above.
    unsafe { slice_mut("bytes", into, saved.len())?.copy_from_slice(saved) };
    Ok(())
}
