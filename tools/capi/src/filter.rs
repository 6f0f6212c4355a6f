//! Filters that one thread at a time uses, and their states.

use std::ffi::{CString, c_char, c_int, c_void};
use std::io::{self, Read, Write};
use std::sync::Mutex;

use echoless::{KeyHash, Report};
use echoless_foreign::{Failure, Filter, Handle, ReportFields, Table, exclusive};

use crate::call::{
    Memory, Place, call, check_apart, check_pointer, echoless_hashing, hasher, memory, path, slice,
    slice_mut, text,
};
use crate::keys::{echoless_keys, judge_keys, with_keys};

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
        // SAFETY: the caller answers for the pointers.
        let (out, spec, hasher) = unsafe {
            let out = Place::new("out", out)?;
            (out, text("spec", spec, None)?, hasher(hashing)?)
        };
        let handle = FILTERS.insert(Mutex::new(Filter::new(spec, hasher)?))?;
        out.write(handle.pointer());
        Ok(())
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
            // A `KeyHash` is a `u64` in memory (`repr(transparent)`).
            let hashes = hashes.cast::<KeyHash>();
            let written = [memory("hashes", hashes, keys.count)];
            // SAFETY: the caller answers for the pointers.
            unsafe {
                with_keys(&keys, &written, |keys, _| {
                    keys.hash(filter.hasher(), 0, slice_mut("hashes", hashes, keys.len())?);
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
        // SAFETY: the caller answers for the struct.
        let place = unsafe { ReportPlace::new(report)? };
        with_filter(filter, |filter| {
            place.write(&filter.report());
            Ok(())
        })
    })
}

/// The struct of a caller for a report, of the size that the caller knows.
pub(crate) struct ReportPlace {
    into: *mut u8,
    size: usize,
}

impl ReportPlace {
    /// # Errors
    /// [`Failure`] if the pointer is NULL or misaligned, or the struct has no size.
    ///
    /// # Safety
    /// `into` is NULL or points to a struct of the size that it says, which nothing else uses
    /// during the call, and the place is used no longer.
    pub(crate) unsafe fn new(into: *mut ReportFields) -> Result<Self, Failure> {
        check_pointer("report", into, 1)?;
        // SAFETY: the first field is the size; the caller answers for it.
        let size = unsafe { into.cast::<usize>().read() };
        if size < size_of::<usize>() {
            let allowed = "sizeof(echoless_report), set before the call";
            return Err(Failure::argument("size of report", size, allowed));
        }
        let size = size.min(size_of::<ReportFields>());
        Ok(Self {
            into: into.cast(),
            size,
        })
    }

    /// Writes as much of a report as the caller knows.
    pub(crate) fn write(&self, report: &Report) {
        let fields = ReportFields {
            size: self.size,
            ..ReportFields::from(report)
        };
        let fields = (&raw const fields).cast::<u8>();
        // SAFETY: both have so many bytes; the caller of `new` answers for those written.
        unsafe { std::ptr::copy_nonoverlapping(fields, self.into, self.size) };
    }
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
            let into = unsafe { BytesPlace::new("text", text.cast(), capacity, length)? };
            into.length.write(spec.len());
            into.write(CString::new(spec).unwrap_or_default().as_bytes_with_nul())
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

/// Takes bytes of a state; returns 0, or anything else to end the save with an error. It must
/// return: a `longjmp` or an exception of C++ must not leave it.
pub type echoless_write =
    Option<unsafe extern "C" fn(context: *mut c_void, bytes: *const u8, length: usize) -> c_int>;

/// Gives bytes of a state: writes up to `capacity` of them and their number, 0 at the end; returns
/// 0, or anything else to end the load with an error. As `echoless_write`, it must return.
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
            // SAFETY: the caller answers for the memory.
            let place = unsafe { Place::optional("lines", lines)? };
            place.write(filter.lines()?);
            Ok(())
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
        // SAFETY: the caller answers for the pointers.
        let (loaded, path, hasher) = unsafe {
            let loaded = LoadPlaces::new(bytes, capacity, length, out)?;
            (loaded, self::path(path)?, hasher(hashing)?)
        };
        let (filter, saved) = Filter::load_file(&path, hasher, memory_limit)?;
        loaded.write(&saved, || FILTERS.insert(Mutex::new(filter)))
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
        let (loaded, contexts, hasher) = unsafe {
            let loaded = LoadPlaces::new(bytes, capacity, length, out)?;
            (
                loaded,
                slice("contexts", contexts, count)?,
                hasher(hashing)?,
            )
        };
        let readers = contexts.iter().map(|context| {
            io::BufReader::new(Reader {
                read,
                context: *context,
            })
        });
        let (filter, saved) = Filter::load(readers, hasher, memory_limit)?;
        loaded.write(&saved.concat(), || FILTERS.insert(Mutex::new(filter)))
    })
}

/// Memory of the caller for bytes of any number, and a place for the number.
struct BytesPlace {
    name: &'static str,
    into: *mut u8,
    capacity: usize,
    length: Place<usize>,
}

impl BytesPlace {
    /// # Errors
    /// [`Failure`] if a pointer is misaligned, or NULL with a capacity, or the memory is that of
    /// the length.
    ///
    /// # Safety
    /// `into` points to `capacity` bytes, and `length` is NULL or points to memory for a number;
    /// nothing else uses either during the call, and the place is used no longer.
    unsafe fn new(
        name: &'static str,
        into: *mut u8,
        capacity: usize,
        length: *mut usize,
    ) -> Result<Self, Failure> {
        if capacity > 0 {
            check_pointer(name, into, capacity)?;
        }
        // SAFETY: as of the caller.
        let length = unsafe { Place::optional("length", length)? };
        let place = Self {
            name,
            into,
            capacity,
            length,
        };
        check_apart(&place.memory())?;
        Ok(place)
    }

    fn memory(&self) -> [Memory; 2] {
        let bytes = memory(self.name, self.into, self.capacity);
        [bytes, self.length.memory()]
    }

    /// Writes the bytes.
    ///
    /// # Errors
    /// [`Failure`] if they do not fit.
    fn write(&self, bytes: &[u8]) -> Result<(), Failure> {
        if bytes.len() > self.capacity {
            let allowed = format!("{} or more", bytes.len());
            return Err(Failure::argument("capacity", self.capacity, allowed));
        }
        // SAFETY: so many bytes fit; the caller of `new` answers for them. What is written is
        // memory of the library.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.into, bytes.len()) };
        Ok(())
    }
}

/// Where a load writes its results.
pub(crate) struct LoadPlaces<H> {
    bytes: BytesPlace,
    out: Place<*mut H>,
}

impl<H> LoadPlaces<H> {
    /// # Errors
    /// As [`BytesPlace::new`]; [`Failure`] if there is no place for the handle.
    ///
    /// # Safety
    /// As [`BytesPlace::new`], and `out` as in [`Place::new`].
    pub(crate) unsafe fn new(
        bytes: *mut u8,
        capacity: usize,
        length: *mut usize,
        out: *mut *mut H,
    ) -> Result<Self, Failure> {
        // SAFETY: as of the caller.
        let (bytes, out) = unsafe {
            // NULL leaves them out, whatever the capacity.
            let capacity = if bytes.is_null() { 0 } else { capacity };
            let bytes = BytesPlace::new("bytes", bytes, capacity, length)?;
            (bytes, Place::new("out", out)?)
        };
        let [memory, length] = bytes.memory();
        check_apart(&[memory, length, out.memory()])?;
        Ok(Self { bytes, out })
    }

    /// Writes the bytes of a state, unless the caller leaves them out, and the handle of what
    /// `insert` puts into its table.
    ///
    /// # Errors
    /// [`Failure`] if the bytes do not fit, or that of `insert`.
    pub(crate) fn write(
        &self,
        saved: &[u8],
        insert: impl FnOnce() -> Result<Handle, Failure>,
    ) -> Result<(), Failure> {
        self.bytes.length.write(saved.len());
        if !self.bytes.into.is_null() {
            self.bytes.write(saved)?;
        }
        self.out.write(insert()?.pointer());
        Ok(())
    }
}
