//! The filter that all threads share.

use std::ffi::{c_char, c_int};

use echoless_foreign::{ReportFields, Shared, Table};

use crate::call::{Place, call, echoless_hashing, hasher, path, slice, text};
use crate::filter::{LoadPlaces, ReportPlace};
use crate::keys::{echoless_keys, judge_keys};

/// A handle: a filter that all threads use at the same time. No call waits for another one, except
/// for a save.
#[derive(Debug)]
pub struct echoless_shared {
    _opaque: (),
}

static SHARED: Table<Shared> = Table::new(3, "shared filter");

/// Builds a shared filter from a specification such as "row4x16:memory=64MiB". Free it with
/// `echoless_shared_free`. Any thread may call this.
///
/// # Safety
/// As `echoless_filter_new`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn echoless_shared_new(
    spec: *const c_char,
    hashing: *const echoless_hashing,
    out: *mut *mut echoless_shared,
) -> c_int {
    call(|| {
        // SAFETY: the caller answers for the pointers.
        let (out, spec, hasher) = unsafe {
            let out = Place::new("out", out)?;
            (out, text("spec", spec, None)?, hasher(hashing)?)
        };
        out.write(SHARED.insert(Shared::new(spec, hasher)?)?.pointer());
        Ok(())
    })
}

/// Frees a shared filter; NULL has no effect. Calls that use it meanwhile end as usual.
#[unsafe(no_mangle)]
pub extern "C" fn echoless_shared_free(shared: *mut echoless_shared) -> c_int {
    call(|| SHARED.remove(shared))
}

/// As `echoless_filter_observe`, from any thread: of equal keys of several threads, exactly one is
/// fresh. A shared filter has no window, so ticks of the keys have no effect.
///
/// # Safety
/// As `echoless_filter_observe`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn echoless_shared_observe(
    shared: *mut echoless_shared,
    keys: echoless_keys,
    duplicates: *mut u64,
    count: *mut u64,
) -> c_int {
    call(|| {
        let shared = SHARED.get(shared)?;
        // SAFETY: the caller answers for the pointers.
        unsafe {
            judge_keys(&keys, duplicates, count, |keys, _, words| {
                shared.observe(keys, words)
            })
        }
    })
}

/// As `echoless_filter_contains`, from any thread.
///
/// # Safety
/// As `echoless_filter_contains`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn echoless_shared_contains(
    shared: *mut echoless_shared,
    keys: echoless_keys,
    duplicates: *mut u64,
    count: *mut u64,
) -> c_int {
    call(|| {
        let shared = SHARED.get(shared)?;
        // SAFETY: the caller answers for the pointers.
        unsafe {
            judge_keys(&keys, duplicates, count, |keys, _, words| {
                shared.contains(keys, words)
            })
        }
    })
}

/// Removes all keys, while no thread observes any.
#[unsafe(no_mangle)]
pub extern "C" fn echoless_shared_clear(shared: *mut echoless_shared) -> c_int {
    call(|| {
        SHARED.get(shared)?.clear();
        Ok(())
    })
}

/// As `echoless_filter_report`, from any thread.
///
/// # Safety
/// As `echoless_filter_report`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn echoless_shared_report(
    shared: *mut echoless_shared,
    report: *mut ReportFields,
) -> c_int {
    call(|| {
        // SAFETY: the caller answers for the struct.
        let place = unsafe { ReportPlace::new(report)? };
        place.write(&SHARED.get(shared)?.report());
        Ok(())
    })
}

/// As `echoless_filter_save_file`, while other threads use the filter, of which none waits. The
/// state has the keys of the calls that had ended before, and each later key or not.
///
/// # Safety
/// As `echoless_filter_save_file`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn echoless_shared_save_file(
    shared: *mut echoless_shared,
    path: *const c_char,
    bytes: *const u8,
    length: usize,
) -> c_int {
    call(|| {
        // SAFETY: the caller answers for the pointers.
        let (path, bytes) = unsafe { (self::path(path)?, slice("bytes", bytes, length)?) };
        SHARED.get(shared)?.save_file(&path, bytes)
    })
}

/// As `echoless_filter_load_file`, from the file of a shared filter.
///
/// # Safety
/// As `echoless_filter_load_file`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn echoless_shared_load_file(
    path: *const c_char,
    hashing: *const echoless_hashing,
    memory_limit: u64,
    bytes: *mut u8,
    capacity: usize,
    length: *mut usize,
    out: *mut *mut echoless_shared,
) -> c_int {
    call(|| {
        // SAFETY: the caller answers for the pointers.
        let (loaded, path, hasher) = unsafe {
            let loaded = LoadPlaces::new(bytes, capacity, length, out)?;
            (loaded, self::path(path)?, hasher(hashing)?)
        };
        let (shared, saved) = Shared::load_file(&path, hasher, memory_limit)?;
        loaded.write(&saved, || SHARED.insert(shared))
    })
}
