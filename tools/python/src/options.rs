//! The options of filters: specifications, windows, and the hasher of the keys.

use std::time::Duration;

use echoless::KeyHasher;
use echoless_stream::{Unit, nanoseconds};
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyString};

use crate::errors::{invalid, shown, wrong_type};

/// A hasher with a seed, or with a secret key of 16 bytes.
pub(crate) fn hasher(seed: u64, secret: Option<&[u8]>) -> PyResult<KeyHasher> {
    let Some(secret) = secret else {
        return Ok(KeyHasher::seeded(seed));
    };
    if seed != 0 {
        return Err(invalid("seed", seed, "no seed beside a secret"));
    }
    let Ok(secret) = <[u8; 16]>::try_from(secret) else {
        return Err(invalid("length of secret", secret.len(), "16 bytes"));
    };
    Ok(KeyHasher::keyed(secret))
}

/// The specification of a filter, or that of `name` with this memory.
pub(crate) fn spec(
    spec: Option<&str>,
    memory: Option<&Bound<'_, PyAny>>,
    name: &str,
) -> PyResult<String> {
    match (spec, memory) {
        (Some(spec), None) => Ok(spec.to_owned()),
        (None, Some(size)) => Ok(format!("{name}:memory={}", self::memory(size)?)),
        _ => {
            let allowed = "a specification or a memory";
            Err(invalid("spec", spec.unwrap_or("None"), allowed))
        }
    }
}

/// A size as the text of a specification has it.
pub(crate) fn memory(size: &Bound<'_, PyAny>) -> PyResult<String> {
    match (size.cast::<PyString>(), size.extract::<u64>()) {
        (Ok(text), _) => Ok(text.to_str()?.to_owned()),
        (_, Ok(bytes)) => Ok(bytes.to_string()),
        _ => Err(invalid(
            "memory",
            shown(size),
            "a number of bytes, or text such as \"64MiB\"",
        )),
    }
}

/// A window in ticks, and their length if the window states one.
pub(crate) fn window(
    window: &Bound<'_, PyAny>,
    tick: Option<Unit>,
) -> PyResult<(u64, Option<Unit>)> {
    if let Ok(ticks) = window.extract::<u64>() {
        return Ok((ticks, tick));
    }
    let nanoseconds = if let Ok(text) = window.cast::<PyString>() {
        nanoseconds(text.to_str()?)
    } else if let Ok(duration) = window.extract::<Duration>() {
        Some(duration.as_nanos())
    } else {
        None
    };
    let allowed = "a number of ticks, text such as \"10m\" (ms, s, m, h, d), or a timedelta";
    let Some(nanoseconds) = nanoseconds else {
        // Negative ones, and text of no time.
        let has_type = window.is_instance_of::<PyString>() || window.is_instance_of::<PyInt>();
        return Err(if has_type || window.hasattr("total_seconds")? {
            invalid("window", window, allowed)
        } else {
            wrong_type("window", shown(window), allowed)
        });
    };
    let tick = tick.unwrap_or(Unit::MILLISECOND);
    let of_tick = u128::from(tick.nanoseconds);
    if !nanoseconds.is_multiple_of(of_tick) {
        return Err(invalid(
            "window",
            window,
            format!("whole ticks of 1 {}", tick.name),
        ));
    }
    let ticks = u64::try_from(nanoseconds / of_tick);
    let ticks = ticks.map_err(|_| invalid("window", window, "fewer than 2^64 ticks"))?;
    Ok((ticks, Some(tick)))
}
