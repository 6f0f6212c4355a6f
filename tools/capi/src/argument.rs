//! The arguments of calls: what a C program passes, and the check of it before a call does
//! anything. Each type of the [table](echoless_foreign::for_each_call) is a type here.
//!
//! A call runs `check` of each argument, which notes the memory behind its pointers, then
//! checks that all memory that it writes is apart from what else it reads and
//! writes, and only then makes a `value` of each argument. Results have places, which are checked
//! with the arguments, so that a call that fails has changed nothing, and which `write` fills.
//!
//! All of these are unsafe: pointers are as the documentation of their type and of the call says,
//! what is read does not change during the call, and nothing else uses what is written.

use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::io::{self, Read, Write};
use std::ops::Range;
use std::path::PathBuf;
use std::{ptr, slice};

use echoless::{KeyHash, KeyHasher};
use echoless_foreign as foreign;
use echoless_foreign::{Code, Failure, Kind as ObjectKind, ReportFields};

use crate::exports::OBJECTS;
use crate::types::*;

/// The memory of the caller that a call uses.
#[derive(Debug, Default)]
pub struct Memory {
    spans: [Span; 8],
    count: usize,
    /// The number of keys, which says how long the memory for their verdicts is.
    keys: usize,
}

#[derive(Debug, Default, Clone)]
struct Span {
    name: &'static str,
    bytes: Range<usize>,
    is_written: bool,
}

/// The most bytes that a process can have: no 64-bit processor maps more.
const MOST_BYTES: usize = if usize::BITS == 64 {
    1 << 57
} else {
    isize::MAX as usize
};

impl Memory {
    /// Checks a pointer to `count` values and notes their memory. Of no values it may be anything.
    fn add<T>(
        &mut self,
        name: &'static str,
        data: *const T,
        count: usize,
        is_written: bool,
    ) -> Result<(), Failure> {
        if count == 0 {
            return Ok(());
        }
        if data.is_null() {
            return Err(Failure::argument(name, "NULL", "a pointer"));
        }
        if !data.is_aligned() {
            let allowed = format!("an address divisible by {}", align_of::<T>());
            return Err(Failure::argument(name, format!("{data:p}"), allowed));
        }
        let most = MOST_BYTES.min(usize::MAX - data.addr());
        if count > most / size_of::<T>().max(1) {
            let value = format!("{count} values");
            return Err(Failure::argument(name, value, "what memory can hold"));
        }
        self.spans[self.count] = Span {
            name,
            bytes: data.addr()..data.addr() + count * size_of::<T>(),
            is_written,
        };
        self.count += 1;
        Ok(())
    }

    /// As [`add`](Self::add), of memory that is read.
    pub(crate) fn read<T>(
        &mut self,
        name: &'static str,
        data: *const T,
        count: usize,
    ) -> Result<(), Failure> {
        self.add(name, data, count, false)
    }

    /// As [`add`](Self::add), of a place.
    pub(crate) fn write<T>(&mut self, name: &'static str, place: *const T) -> Result<(), Failure> {
        self.add(name, place, 1, true)
    }

    /// Notes how many keys the call has.
    pub(crate) const fn set_keys(&mut self, keys: usize) {
        self.keys = keys;
    }

    /// Checks that nothing that the call writes is also something else that it uses. The failure
    /// names the first two that overlap.
    pub(crate) fn check_apart(&self) -> Result<(), Failure> {
        let spans = &self.spans[..self.count];
        for (index, span) in spans.iter().enumerate() {
            let overlaps = |other: &&Span| {
                let start = span.bytes.start.max(other.bytes.start);
                (span.is_written || other.is_written) && start < span.bytes.end.min(other.bytes.end)
            };
            if let Some(other) = spans[..index].iter().find(overlaps) {
                let allowed = format!("memory apart from that of {}", other.name);
                let value = format!("{:#x}", span.bytes.start);
                return Err(Failure::argument(span.name, value, allowed));
            }
        }
        Ok(())
    }
}

/// The slice of `count` values that were checked; of none the pointer may be NULL.
///
/// # Safety
/// `data` points to `count` values that stay and do not change during the call.
pub(crate) unsafe fn values<'a, T>(data: *const T, count: usize) -> &'a [T] {
    match count {
        0 => &[],
        // SAFETY: not NULL, aligned and not longer than an allocation can be, as checked; the
        // caller answers for what it points to.
        _ => unsafe { slice::from_raw_parts(data, count) },
    }
}

/// As [`values`], to be written.
///
/// # Safety
/// As [`values`], and nothing else reads or writes the values during the call.
unsafe fn values_mut<'a, T>(data: *mut T, count: usize) -> &'a mut [T] {
    match count {
        0 => &mut [],
        // SAFETY: as in `values`.
        _ => unsafe { slice::from_raw_parts_mut(data, count) },
    }
}

/// The text at `text`, or the default if it is NULL and there is one. Fails if it is NULL without
/// one, or not UTF-8.
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
unsafe fn path(text: *const c_char) -> Result<PathBuf, Failure> {
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStrExt;
        // SAFETY: not NULL, as the callers have seen; the caller answers for its end.
        let bytes = unsafe { CStr::from_ptr(text) }.to_bytes();
        Ok(OsStr::from_bytes(bytes).into())
    }
    #[cfg(not(unix))]
    // SAFETY: as of the caller.
    unsafe { self::text("path", text, None) }.map(|text| OsStr::new(text).into())
}

fn no_function(name: &'static str) -> Failure {
    Failure::argument(name, "NULL", "a path or a function")
}

/// Declares an argument or a place: how it is checked, and what it is or how it is written.
macro_rules! argument {
    (
        $(#[$doc:meta])* $name:ident($type:ty) $c:literal,
        check |$field:ident, $of:ident, $memory:ident| $check:expr,
        value $value:ty: |$argument:ident, $called:ident, $noted:ident| $run:expr
    ) => {
        argument! { @type $(#[$doc])* $name($type) $c, |$field, $of, $memory| $check }

        impl $name {
            #[inline]
            #[allow(
                clippy::needless_lifetimes,
                clippy::mut_from_ref,
                reason = "what is lent is memory of the caller, as long as the checks are kept"
            )]
            pub(crate) unsafe fn value<'a>(
                self,
                $called: &'static str,
                $noted: &'a Memory,
            ) -> Result<$value, Failure> {
                let $argument = self.0;
                // SAFETY: checked, and as of the caller.
                #[allow(unused_unsafe, reason = "few need it")]
                unsafe { $run }
            }
        }
    };
    (
        $(#[$doc:meta])* $name:ident($type:ty) $c:literal,
        check |$field:ident, $of:ident, $memory:ident| $check:expr,
        write $value:ty: |$place:ident, $written:ident| $run:expr
    ) => {
        argument! { @type $(#[$doc])* $name($type) $c, |$field, $of, $memory| $check }

        impl $name {
            #[inline]
            pub(crate) unsafe fn write(self, $written: $value) -> Result<(), Failure> {
                let $place = self.0;
                // SAFETY: checked, and as of the caller.
                unsafe { $run }
            }
        }
    };
    (
        @type $(#[$doc:meta])* $name:ident($type:ty) $c:literal,
        |$field:ident, $of:ident, $memory:ident| $check:expr
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy)]
        #[repr(transparent)]
        pub struct $name(pub $type);

        impl $name {
            /// The type in the header, to be followed by a name.
            pub const C: &'static str = $c;

            #[inline]
            pub(crate) unsafe fn check(
                self,
                $of: &'static str,
                $memory: &mut Memory,
            ) -> Result<(), Failure> {
                let $field = self.0;
                // SAFETY: as of the caller.
                #[allow(unused_unsafe, reason = "few need it")]
                unsafe { $check }
            }
        }
    };
}

/// Declares arguments without pointers.
macro_rules! plain {
    ($($(#[$doc:meta])* $name:ident($type:ty) $c:literal => $value:ty, |$argument:ident| $run:expr;)*) => {$(
        argument! {
            $(#[$doc])* $name($type) $c,
            check |_argument, _name, _memory| Ok(()),
            value $value: |$argument, _name, _memory| $run
        }
    )*};
}

plain! {
    /// A number of any meaning.
    Number(u64) "uint64_t " => u64, |number| Ok(number);
    /// A number of things.
    Count(usize) "size_t " => usize, |count| Ok(count);
    /// A kind of objects.
    Kind(u32) "uint32_t " => ObjectKind, |kind| ObjectKind::of_number(kind);
    /// The object of the call, whose handle is looked up later.
    Instance(*const echoless_handle) "echoless_handle *" => *const echoless_handle, |handle| Ok(handle);
}

argument! {
    /// A text that ends with a NUL.
    Text(*const c_char) "const char *",
    check |text, name, _memory| match text.is_null() {
        true => Err(Failure::argument(name, "NULL", "a text")),
        false => Ok(()),
    },
    value &'a str: |data, name, _memory| text(name, data, None)
}

argument! {
    /// How keys are hashed; NULL is seed 0.
    Hashing(*const echoless_hashing) "const echoless_hashing *",
    check |hashing, name, memory| memory.read(name, hashing, usize::from(!hashing.is_null())),
    value KeyHasher: |hashing, _name, _memory| Ok(match hashing.as_ref() {
        None => KeyHasher::seeded(0),
        Some(hashing) if hashing.secret.is_null() => KeyHasher::seeded(hashing.seed),
        // It has 16 bytes, as the documentation of the struct says.
        Some(hashing) => KeyHasher::keyed(*hashing.secret.cast::<[u8; 16]>()),
    })
}

argument! {
    /// A bit for each key.
    Verdicts(*mut u64) "uint64_t *",
    check |words, name, memory| memory.add(name, words, memory.keys.div_ceil(64), true),
    value &'a mut [u64]: |words, _name, memory| Ok(values_mut(words, memory.keys.div_ceil(64)))
}

argument! {
    /// A hash for each key. A `KeyHash` is a `u64` in memory (`repr(transparent)`).
    Hashes(*mut KeyHash) "uint64_t *",
    check |hashes, name, memory| memory.add(name, hashes, memory.keys, true),
    value &'a mut [KeyHash]: |hashes, _name, memory| Ok(values_mut(hashes, memory.keys))
}

argument! {
    /// Words for the verdicts of a batch, as many as there are.
    Words(echoless_room) "echoless_room ",
    check |room, name, memory| memory.add(name, room.data.cast::<u64>(), room.capacity / 8, true),
    value &'a mut [u64]: |room, _name, _memory| Ok(values_mut(room.data.cast(), room.capacity / 8))
}

argument! {
    /// Bytes of the caller.
    Bytes(echoless_slice) "echoless_slice ",
    check |bytes, name, memory| memory.read(name, bytes.data, bytes.length),
    value &'a [u8]: |bytes, _name, _memory| Ok(values(bytes.data, bytes.length))
}

argument! {
    /// Where a state is saved.
    Target(echoless_target) "echoless_target ",
    check |target, _name, _memory| match (target.path.is_null(), target.write) {
        (true, None) => Err(no_function("to")),
        _ => Ok(()),
    },
    value foreign::Target<'a>: |target, _name, _memory| {
        let Some(write) = target.write.filter(|_| target.path.is_null()) else {
            return Ok(foreign::Target::File(path(target.path)?));
        };
        let lines = match (target.first, target.end) {
            (0, u64::MAX) => None,
            (first, end) => Some(first..end),
        };
        let stream = Box::new(Stream { call: write, context: target.context });
        Ok(foreign::Target::Stream(lines, stream))
    }
}

argument! {
    /// Where a state was saved.
    Source(echoless_source) "echoless_source ",
    check |source, _name, memory| match (source.path.is_null(), source.read) {
        (true, None) => Err(no_function("from")),
        (true, _) => memory.read("contexts", source.contexts, source.count),
        _ => Ok(()),
    },
    value foreign::Source<'a>: |source, _name, _memory| {
        let Some(read) = source.read.filter(|_| source.path.is_null()) else {
            return Ok(foreign::Source::File(path(source.path)?));
        };
        let stream = |context: &*mut c_void| -> Box<dyn Read> {
            Box::new(Stream { call: read, context: *context })
        };
        let streams = values(source.contexts, source.count).iter().map(stream);
        Ok(foreign::Source::Streams(streams.collect()))
    }
}

/// The most bytes of the caller in a state of an ordered filter.
const MOST_POSITION: usize = 1 << 16;

argument! {
    /// What is done where a state ends.
    Cut(echoless_cut) "echoless_cut ",
    check |_cut, _name, _memory| Ok(()),
    value foreign::Cut<'a>: |cut, _name, _memory| Ok(foreign::Cut {
        before: Box::new(move || {
            if let Some(before) = cut.before {
                before(cut.context);
            }
        }),
        position: Box::new(move || {
            let Some(position) = cut.position else {
                return Ok(Vec::new());
            };
            let (mut bytes, mut length) = (vec![0; MOST_POSITION], 0);
            let status = position(cut.context, bytes.as_mut_ptr(), bytes.len(), &raw mut length);
            if status != 0 || length > bytes.len() {
                let text = format!("position returned {status} and {length} bytes");
                return Err(Failure::new(Code::Io, text));
            }
            bytes.truncate(length);
            Ok(bytes)
        }),
    })
}

argument! {
    /// A place for the handle of a new object.
    Handle(*mut *mut echoless_handle) "echoless_handle **",
    check |out, name, memory| memory.write(name, out),
    write foreign::Object: |out, object| {
        out.write(OBJECTS.insert(object)?.pointer());
        Ok(())
    }
}

argument! {
    /// A place for a number, unless it is NULL.
    OptionalNumber(*mut u64) "uint64_t *",
    check |into, name, memory| memory.add(name, into, usize::from(!into.is_null()), true),
    write u64: |into, number| {
        if !into.is_null() {
            into.write(number);
        }
        Ok(())
    }
}

argument! {
    /// A place for a number of things, unless it is NULL.
    OptionalCount(*mut usize) "size_t *",
    check |into, name, memory| memory.add(name, into, usize::from(!into.is_null()), true),
    write usize: |into, count| {
        if !into.is_null() {
            into.write(count);
        }
        Ok(())
    }
}

argument! {
    /// The struct of a caller for a report, of the size that the caller knows.
    Report(*mut ReportFields) "echoless_report *",
    check |into, name, memory| {
        // Only the size must be there.
        Memory::default().add(name, into, 1, true)?;
        let size = into.cast::<usize>().read();
        if size < size_of::<usize>() {
            let allowed = "sizeof(echoless_report), set before the call";
            return Err(Failure::argument("size of report", size, allowed));
        }
        memory.add(name, into.cast::<u8>(), size.min(size_of::<ReportFields>()), true)
    },
    write echoless::Report: |into, report| {
        // As much of a report as the caller knows.
        let size = into.cast::<usize>().read().min(size_of::<ReportFields>());
        let fields = ReportFields {
            size,
            ..ReportFields::from(&report)
        };
        let fields = (&raw const fields).cast::<u8>();
        ptr::copy_nonoverlapping(fields, into.cast::<u8>(), size);
        Ok(())
    }
}

argument! {
    /// As [`Report`], unless it is NULL.
    OptionalReport(*mut ReportFields) "echoless_report *",
    check |into, name, memory| match into.is_null() {
        true => Ok(()),
        false => Report(into).check(name, memory),
    },
    write echoless::Report: |into, report| match into.is_null() {
        true => Ok(()),
        false => Report(into).write(report),
    }
}

argument! {
    /// Memory for a text with a NUL.
    TextRoom(echoless_room) "echoless_room ",
    check |room, name, memory| room.check(name, memory),
    write String: |room, text| {
        room.write_length(text.len());
        room.write(&[text.as_bytes(), b"\0"].concat())
    }
}

argument! {
    /// Memory for bytes, unless it is NULL.
    OptionalRoom(echoless_room) "echoless_room ",
    check |room, name, memory| {
        let capacity = if room.data.is_null() { 0 } else { room.capacity };
        echoless_room { capacity, ..room }.check(name, memory)
    },
    write Vec<u8>: |room, bytes| {
        room.write_length(bytes.len());
        match room.data.is_null() {
            true => Ok(()),
            false => room.write(&bytes),
        }
    }
}

impl echoless_room {
    fn check(self, name: &'static str, memory: &mut Memory) -> Result<(), Failure> {
        memory.add(name, self.data.cast::<u8>(), self.capacity, true)?;
        memory.add(
            "length",
            self.length,
            usize::from(!self.length.is_null()),
            true,
        )
    }

    /// # Safety
    /// The room was checked, and nothing else uses it.
    unsafe fn write_length(self, length: usize) {
        if !self.length.is_null() {
            // SAFETY: not NULL, checked.
            unsafe { self.length.write(length) };
        }
    }

    /// Writes the bytes.
    ///
    /// # Safety
    /// The room was checked, and nothing else uses it.
    unsafe fn write(self, bytes: &[u8]) -> Result<(), Failure> {
        if bytes.len() > self.capacity {
            let allowed = format!("{} or more", bytes.len());
            return Err(Failure::argument("capacity", self.capacity, allowed));
        }
        // SAFETY: so many bytes fit; the caller answers for them. What is written is memory of the
        // library.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.data.cast(), bytes.len()) };
        Ok(())
    }
}

/// A stream of the caller: a function and what it gets.
struct Stream<F> {
    call: F,
    context: *mut c_void,
}

impl Write for Stream<unsafe extern "C" fn(*mut c_void, *const u8, usize) -> c_int> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // SAFETY: the function and the context are of one caller, who answers for both.
        match unsafe { (self.call)(self.context, bytes.as_ptr(), bytes.len()) } {
            0 => Ok(bytes.len()),
            status => Err(io::Error::other(format!("the writer returned {status}"))),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for Stream<unsafe extern "C" fn(*mut c_void, *mut u8, usize, *mut usize) -> c_int> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let (capacity, mut length) = (bytes.len(), 0);
        // SAFETY: the function and the context are of one caller, who answers for both.
        let status =
            unsafe { (self.call)(self.context, bytes.as_mut_ptr(), capacity, &raw mut length) };
        match status {
            0 if length <= capacity => Ok(length),
            0 => Err(io::Error::other(format!(
                "the reader gave {length} bytes of {capacity}"
            ))),
            status => Err(io::Error::other(format!("the reader returned {status}"))),
        }
    }
}

pub(crate) use argument;
