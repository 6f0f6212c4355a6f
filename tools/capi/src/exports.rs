//! The functions of the interface, one for each row of the table of calls.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int, c_void};

use echoless_foreign::{Call, Failure, Object, Table, catch, for_each_call};

use crate::argument::*;
use crate::keys::{Keys, PacketHandle, PacketKeys, PacketOptions};
use crate::types::echoless_handle;

/// The objects of all handles.
pub(crate) static OBJECTS: Table<Object> = Table::new(1, "handle");

/// The packet keys of all handles.
pub(crate) static PACKET_KEYS: Table<PacketKeys> = Table::new(2, "packet_keys");

thread_local! {
    static LAST_ERROR: RefCell<CString> = RefCell::default();
}

/// Runs a call. A failure becomes its number and its text, and a panic is one.
#[inline]
fn run(call: impl FnOnce() -> Result<(), Failure>) -> c_int {
    match catch(call) {
        Ok(()) => 0,
        Err(failure) => keep(failure),
    }
}

#[cold]
fn keep(failure: Failure) -> c_int {
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

/// The version of the library that runs, such as "0.2.0". `ECHOLESS_VERSION` is that of the header.
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

/// A function of the interface, for the headers and the tests.
#[derive(Debug)]
pub struct Function {
    /// The name behind `echoless_`.
    pub name: &'static str,
    /// The lines of its documentation.
    pub doc: &'static [&'static str],
    /// Its arguments, and the places of its results behind them.
    pub arguments: &'static [Parameter],
    /// Calls it with arguments that are given by where they are.
    ///
    /// # Safety
    /// As the function, and each points to a value of its type.
    pub call: unsafe fn(&[*const c_void]) -> c_int,
}

/// An argument of a function.
#[derive(Debug, Clone, Copy)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// Its type in the table.
    pub role: &'static str,
    /// Its type in C, to be followed by the name.
    pub c: &'static str,
}

/// The next argument.
///
/// # Safety
/// It points to an argument of this type.
unsafe fn next<T: Copy>(arguments: &mut std::slice::Iter<'_, *const c_void>) -> T {
    let argument = arguments.next().expect("an argument");
    // SAFETY: as of the caller.
    unsafe { argument.cast::<T>().read() }
}

/// Declares the functions of some rows, in a list. `$body` is a macro that makes the call: it gets
/// the name of the row and the names of its values.
macro_rules! functions {
    ($list:ident $first:tt $body:ident $($(#[doc = $doc:literal])* $name:ident $arguments:tt -> $results:tt;)*) => {
        $(functions! {@function $first $body $(#[doc = $doc])* $name $arguments $results})*

        /// The functions of these rows.
        pub const $list: &[Function] = &[$(Function {
            name: stringify!($name),
            doc: &[$($doc),*],
            arguments: functions!(@parameters $first $arguments $results),
            call: functions!(@call $name $first $arguments $results),
        }),*];
    };
    (@function [$($first:ident: $object:ident),*] $body:ident
        $(#[doc = $doc:literal])*
        $name:ident ($($argument:ident: $type:ident),* $(,)?) ($($result:ident: $place:ident),*)
    ) => {
        $(#[doc = $doc])*
        ///
        /// # Safety
        /// What the arguments point to is as their types say, and nothing else uses it during the
        /// call.
        #[allow(unused_unsafe, unused_mut, reason = "some have no arguments")]
        #[unsafe(export_name = concat!("echoless_", stringify!($name)))]
        pub unsafe extern "C" fn $name(
            $($first: $object,)* $($argument: $type,)* $($result: $place),*
        ) -> c_int {
            run(|| {
                // SAFETY: the caller answers for the pointers.
                unsafe {
                    let mut memory = Memory::default();
                    $($argument.check(stringify!($argument), &mut memory)?;)*
                    $($result.check(stringify!($result), &mut memory)?;)*
                    memory.check_apart()?;
                    $(let $argument = $argument.value(stringify!($argument), &memory)?;)*
                    functions!(@write ($body!($name [$($first)*] $($argument)*)?) $($result)*);
                    Ok(())
                }
            })
        }
    };
    (@write ($value:expr)) => { let _ = $value; };
    (@write ($value:expr) $place:ident) => { $place.write($value)?; };
    (@write ($value:expr) $place:ident $other:ident) => {{
        let (first, second) = $value;
        $place.write(first)?;
        $other.write(second)?;
    }};
    (@parameters [$($first:ident: $object:ident),*]
        ($($argument:ident: $type:ident),* $(,)?) ($($result:ident: $place:ident),*)
    ) => {
        &[
            $(functions!(@parameter $first $object),)*
            $(functions!(@parameter $argument $type),)*
            $(functions!(@parameter $result $place),)*
        ]
    };
    (@parameter $name:ident $type:ident) => {
        Parameter { name: stringify!($name), role: stringify!($type), c: <$type>::C }
    };
    (@call $name:ident [$($first:ident: $object:ident),*]
        ($($argument:ident: $type:ident),* $(,)?) ($($result:ident: $place:ident),*)
    ) => {
        |arguments| {
            let mut arguments = arguments.iter();
            // SAFETY: as of the caller.
            unsafe {
                $name(
                    $(next::<$object>(&mut arguments),)*
                    $(next::<$type>(&mut arguments),)*
                    $(next::<$place>(&mut arguments)),*
                )
            }
        }
    };
}

macro_rules! make {
    ($name:ident [] $($argument:ident)*) => { Object::$name($($argument),*) };
}

macro_rules! run_number {
    ($name:ident [$handle:ident]) => {
        OBJECTS.get($handle.0)?.call(Call::$name, 0)
    };
    ($name:ident [$handle:ident] $argument:ident) => {
        OBJECTS.get($handle.0)?.call(Call::$name, $argument)
    };
}

macro_rules! run_method {
    ($name:ident [$handle:ident] $($argument:ident)*) => {
        OBJECTS.get($handle.0)?.$name($($argument),*)
    };
}

macro_rules! run_here {
    ($name:ident [] $($argument:ident)*) => { here::$name($($argument),*) };
}

macro_rules! export {
    (made { $($made:tt)* } numbers { $($numbers:tt)* } calls { $($calls:tt)* }) => {
        functions! { MADE [] make $($made)* }
        functions! { NUMBERS [handle: Instance] run_number $($numbers)* }
        functions! { CALLS [handle: Instance] run_method $($calls)* }
    };
}

for_each_call!(export);

// What only C has.
functions! { OWN [] run_here
    /// Makes packet keys, which say what the keys of packets are made of. All threads may use them
    /// at the same time. `options` may be NULL: Ethernet and all defaults. Free them with
    /// `echoless_free`.
    packet_keys(options: PacketOptions) -> (out: PacketHandle);
    /// Frees a handle of any kind; NULL has no effect. A call that uses it meanwhile ends as usual.
    ///
    /// The threads of an ordered filter go on, and the filter itself is freed with the last of
    /// them; a ticket that a freed thread holds is left out. The workers of an engine that was not
    /// shut down stop once they have answered what was submitted; until then, ports may still
    /// submit. Batches of a freed port are judged, and their verdicts are lost.
    free(handle: Instance) -> ();
}

/// The functions that are not of the table.
mod here {
    use super::{Failure, OBJECTS, PACKET_KEYS, PacketKeys, echoless_handle};

    pub(super) fn packet_keys(keys: PacketKeys) -> Result<PacketKeys, Failure> {
        Ok(keys)
    }

    pub(super) fn free(handle: *const echoless_handle) -> Result<(), Failure> {
        match PACKET_KEYS.is_of(handle) {
            true => PACKET_KEYS.remove(handle),
            false => OBJECTS.remove(handle),
        }
    }
}

/// All functions of the interface but `echoless_last_error` and `echoless_version`.
pub fn functions() -> impl Iterator<Item = &'static Function> {
    [MADE, OWN, NUMBERS, CALLS].into_iter().flatten()
}
