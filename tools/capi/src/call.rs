//! What every call has in common: arguments as slices, the status, and the text of the error.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int};
use std::ops::Range;
use std::ptr;
use std::slice;

use echoless::KeyHasher;
use echoless_foreign::{Failure, catch};

thread_local! {
    static LAST_ERROR: RefCell<CString> = RefCell::default();
}

/// Runs a call. A failure becomes its number and its text, and a panic is one.
pub(crate) fn call(run: impl FnOnce() -> Result<(), Failure>) -> c_int {
    let failure = match catch(run) {
        Ok(()) => return 0,
        Err(failure) => failure,
    };
    let text = CString::new(failure.text).unwrap_or_default();
    // A call from the destructor of another thread-local finds none.
    let _ = LAST_ERROR.try_with(|last| last.replace(text));
    failure.code.number()
}

/// The text of the last error of this thread: one line, in UTF-8. An empty text if there was none.
///
/// The pointer is valid until the next call of this thread that fails. Any thread may call this.
#[unsafe(no_mangle)]
pub extern "C" fn echoless_last_error() -> *const c_char {
    LAST_ERROR
        .try_with(|last| last.borrow().as_ptr())
        .unwrap_or(c"".as_ptr())
}

/// The version of the library that runs, such as "0.1.0". `ECHOLESS_VERSION` is that of the header.
///
/// The text is static. Any thread may call this.
#[unsafe(no_mangle)]
pub extern "C" fn echoless_version() -> *const c_char {
    const VERSION: &CStr =
        match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
            Ok(version) => version,
            Err(_) => panic!("a version has no NUL"),
        };
    VERSION.as_ptr()
}

/// How keys are hashed. A NULL pointer to this is seed 0 without a secret.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct echoless_hashing {
    /// The seed of the fast hash. Filters find the keys of each other only with equal seeds.
    pub seed: u64,
    /// NULL, or 16 secret bytes: a slower hash for which nobody without them can choose keys that
    /// collide. The seed has no effect then.
    pub secret: *const u8,
}

/// The slice of `count` values, which may be NULL if there are none.
///
/// # Errors
/// [`Failure`] if the pointer is NULL or misaligned, or the values are more than memory can hold.
///
/// # Safety
/// `data` points to `count` values that stay and do not change during the call.
pub(crate) unsafe fn slice<'a, T>(
    name: &'static str,
    data: *const T,
    count: usize,
) -> Result<&'a [T], Failure> {
    if count == 0 {
        return Ok(&[]);
    }
    check_pointer(name, data, count)?;
    // SAFETY: not NULL, aligned and not longer than an allocation can be, as checked; the caller
    // answers for what it points to.
    Ok(unsafe { slice::from_raw_parts(data, count) })
}

/// As [`slice`], to be written.
///
/// # Errors
/// As [`slice`].
///
/// # Safety
/// As [`slice`], and nothing else reads or writes the values during the call.
pub(crate) unsafe fn slice_mut<'a, T>(
    name: &'static str,
    data: *mut T,
    count: usize,
) -> Result<&'a mut [T], Failure> {
    if count == 0 {
        return Ok(&mut []);
    }
    check_pointer(name, data, count)?;
    // SAFETY: as in `slice`.
    Ok(unsafe { slice::from_raw_parts_mut(data, count) })
}

/// The most bytes that a process can have: no 64-bit processor maps more.
const MOST_BYTES: usize = if usize::BITS == 64 {
    1 << 57
} else {
    isize::MAX as usize
};

/// Checks a pointer to one value or more.
///
/// # Errors
/// As [`slice`].
pub(crate) fn check_pointer<T>(
    name: &'static str,
    data: *const T,
    count: usize,
) -> Result<(), Failure> {
    if data.is_null() {
        return Err(Failure::argument(name, "NULL", "a pointer"));
    }
    if !data.is_aligned() {
        let allowed = format!("an address divisible by {}", align_of::<T>());
        return Err(Failure::argument(name, format!("{data:p}"), allowed));
    }
    let most = MOST_BYTES.min(usize::MAX - data.addr());
    if count > most / size_of::<T>().max(1) {
        return Err(Failure::argument(
            name,
            format!("{count} values"),
            "what memory can hold",
        ));
    }
    Ok(())
}

/// The text at `text`, or the default if it is NULL and there is one.
///
/// # Errors
/// [`Failure`] if it is NULL without a default, or not UTF-8.
///
/// # Safety
/// `text` is NULL or points to a text that ends with a NUL and stays during the call.
pub(crate) unsafe fn text<'a>(
    name: &'static str,
    text: *const c_char,
    default: Option<&'a str>,
) -> Result<&'a str, Failure> {
    if text.is_null() {
        return default.ok_or_else(|| Failure::argument(name, "NULL", "a text"));
    }
    // SAFETY: not NULL; the caller answers for its end.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str()
        .map_err(|_| Failure::argument(name, text.to_string_lossy(), "UTF-8"))
}

/// The path of a file. On Unix any bytes, elsewhere UTF-8.
///
/// # Errors
/// As [`text`].
///
/// # Safety
/// As [`text`].
pub(crate) unsafe fn path(text: *const c_char) -> Result<std::path::PathBuf, Failure> {
    #[cfg(unix)]
    if !text.is_null() {
        use std::os::unix::ffi::OsStrExt;
        // SAFETY: not NULL; the caller answers for its end.
        let bytes = unsafe { CStr::from_ptr(text) }.to_bytes();
        return Ok(std::ffi::OsStr::from_bytes(bytes).into());
    }
    // SAFETY: as of the caller.
    unsafe { self::text("path", text, None) }.map(Into::into)
}

/// The hasher of `hashing`.
///
/// # Errors
/// As [`slice`].
///
/// # Safety
/// It is NULL or points to a struct whose secret is NULL or has 16 bytes.
pub(crate) unsafe fn hasher(hashing: *const echoless_hashing) -> Result<KeyHasher, Failure> {
    if hashing.is_null() {
        return Ok(KeyHasher::seeded(0));
    }
    // SAFETY: not NULL; the caller answers for what it points to.
    let hashing = unsafe { slice("hashing", hashing, 1)?[0] };
    if hashing.secret.is_null() {
        return Ok(KeyHasher::seeded(hashing.seed));
    }
    let mut secret = [0; 16];
    // SAFETY: not NULL; it has 16 bytes, as the documentation of the struct says.
    secret.copy_from_slice(unsafe { slice("secret", hashing.secret, 16)? });
    Ok(KeyHasher::keyed(secret))
}

/// Memory of the caller: its name in messages, and its addresses.
pub(crate) type Memory = (&'static str, Range<usize>);

/// The memory of `count` values.
pub(crate) fn memory<T>(name: &'static str, data: *const T, count: usize) -> Memory {
    let bytes = count.saturating_mul(size_of::<T>());
    (name, data.addr()..data.addr().saturating_add(bytes))
}

/// Checks that nothing that a call writes is also something else that it writes.
///
/// # Errors
/// [`Failure`] with the first two that overlap.
pub(crate) fn check_apart(written: &[Memory]) -> Result<(), Failure> {
    for (index, memory) in written.iter().enumerate() {
        check_not_written(&written[..index], memory)?;
    }
    Ok(())
}

/// Checks that nothing that a call writes is `memory`.
///
/// # Errors
/// As [`check_apart`].
pub(crate) fn check_not_written(written: &[Memory], (name, bytes): &Memory) -> Result<(), Failure> {
    let overlaps = |other: &Range<usize>| {
        let start = bytes.start.max(other.start);
        start < bytes.end.min(other.end)
    };
    match written.iter().find(|(_, other)| overlaps(other)) {
        None => Ok(()),
        Some((other, _)) => {
            let allowed = format!("memory apart from that of {other}");
            Err(Failure::argument(
                name,
                format!("{:#x}", bytes.start),
                allowed,
            ))
        }
    }
}

/// A place of the caller for one result. It is checked before a call does anything, so that a call
/// that fails has changed nothing.
pub(crate) struct Place<T> {
    name: &'static str,
    into: *mut T,
}

impl<T> Place<T> {
    /// The place that a call must have.
    ///
    /// # Errors
    /// [`Failure`] if the pointer is NULL or misaligned.
    ///
    /// # Safety
    /// `into` is NULL or points to memory for a value that nothing else uses during the call, and
    /// the place is used no longer.
    pub(crate) unsafe fn new(name: &'static str, into: *mut T) -> Result<Self, Failure> {
        check_pointer(name, into, 1)?;
        Ok(Self { name, into })
    }

    /// A place that the caller can leave out.
    ///
    /// # Errors
    /// [`Failure`] if the pointer is misaligned.
    ///
    /// # Safety
    /// As [`new`](Self::new).
    pub(crate) unsafe fn optional(name: &'static str, into: *mut T) -> Result<Self, Failure> {
        if into.is_null() {
            return Ok(Self { name, into });
        }
        // SAFETY: as of the caller.
        unsafe { Self::new(name, into) }
    }

    /// Its memory; none if it was left out.
    pub(crate) fn memory(&self) -> Memory {
        memory(self.name, self.into, usize::from(!self.into.is_null()))
    }

    /// Writes the result, unless the place was left out.
    pub(crate) fn write(&self, value: T) {
        if !self.into.is_null() {
            // SAFETY: not NULL and aligned, as checked; the caller of `new` answers for the memory.
            unsafe { ptr::write(self.into, value) };
        }
    }
}
