//! Calls of the C interface, chosen by the bytes and checked against a model
//! (`../tests/random_calls.c`).
#![no_main]

use std::env;
use std::ffi::{CString, c_char};
use std::os::unix::ffi::OsStringExt;
use std::sync::LazyLock;

// For its functions, which the program in C calls.
extern crate echoless_c as _;

use libfuzzer_sys::fuzz_target;

unsafe extern "C" {
    fn calls_from_bytes(folder: *const c_char, bytes: *const u8, length: usize);
}

/// States are saved here, and removed again.
static FOLDER: LazyLock<CString> =
    LazyLock::new(|| CString::new(env::temp_dir().into_os_string().into_vec()).unwrap());

fuzz_target!(|bytes: &[u8]| {
    // SAFETY: the path ends with a NUL, and the bytes are as many as their length says. One thread
    // at a time runs this.
    unsafe { calls_from_bytes(FOLDER.as_ptr(), bytes.as_ptr(), bytes.len()) };
});
