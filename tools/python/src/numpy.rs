//! Arrays of numpy, without copying: what `__array_interface__` says about their memory.
#![allow(unsafe_code)]

use std::panic::AssertUnwindSafe;
use std::ptr::NonNull;
use std::sync::Arc;

use arrow_buffer::{Buffer, ScalarBuffer};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

use crate::columns::{Column, Values};
use crate::errors::{invalid, wrong_type};

/// What is allowed, for messages.
const ALLOWED: &str = "integers, bytes of fixed width (S or V), datetime64, str or objects";

/// An array as keys.
pub(crate) enum Array<'py> {
    /// Its memory.
    Column(Column),
    /// A list of its elements, which are objects or strings of numpy.
    Objects(Bound<'py, PyAny>),
}

/// Whether the object is an array of numpy. If numpy is not installed, nothing is.
pub(crate) fn is_array(object: &Bound<'_, PyAny>) -> bool {
    static NDARRAY: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let array = NDARRAY.import(object.py(), "numpy", "ndarray");
    array.is_ok_and(|array| object.is_instance(array).unwrap_or(false))
}

/// The column of an array of one dimension.
pub(crate) fn import<'py>(array: &Bound<'py, PyAny>) -> PyResult<Array<'py>> {
    let py = array.py();
    let dimensions: usize = array.getattr("ndim")?.extract()?;
    if dimensions != 1 {
        return Err(invalid(
            "keys",
            format!("array of {dimensions} dimensions"),
            "1 dimension",
        ));
    }
    let dtype = array.getattr("dtype")?;
    let kind: String = dtype.getattr("kind")?.extract()?;
    let width: usize = dtype.getattr("itemsize")?.extract()?;
    let is_native: bool = dtype.getattr("isnative")?.extract()?;
    let reject = || Err(wrong_type("keys", format!("array of {dtype}"), ALLOWED));
    if !is_native || dtype.getattr("hasobject")?.extract::<bool>()? && kind != "O" {
        return reject();
    }
    let numpy = py.import("numpy")?;
    let array = match (kind.as_str(), width) {
        ("U" | "O" | "T", _) => return Ok(Array::Objects(array.call_method0("tolist")?)),
        ("S" | "V", _) | ("i" | "u" | "M", 8) => array.clone(),
        ("i", _) => array.call_method1("astype", ("int64",))?,
        ("u", _) => array.call_method1("astype", ("uint64",))?,
        _ => return reject(),
    };
    let flags = array.getattr("flags")?;
    let is_plain =
        flags.getattr("c_contiguous")?.is_truthy()? && flags.getattr("aligned")?.is_truthy()?;
    // A copy of an array that has gaps or is not aligned.
    let array = if is_plain {
        array
    } else {
        numpy.call_method1("require", (array, py.None(), ("C", "A")))?
    };
    let len = array.len()?;
    let values = match kind.as_str() {
        "S" | "V" => Values::Fixed {
            bytes: buffer(&array, len * width)?,
            width,
            // What numpy does when an element is read.
            trim: kind == "S",
        },
        _ => Values::Numbers {
            numbers: ScalarBuffer::new(buffer(&array, len * 8)?, 0, len),
            signed: kind != "u",
        },
    };
    let unit = if kind == "M" {
        let data = numpy.call_method1("datetime_data", (dtype,))?;
        let (unit, count): (String, u64) = data.extract()?;
        let nanoseconds = match unit.as_str() {
            "ns" => 1,
            "us" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            "D" => 86_400_000_000_000,
            _ => {
                return Err(wrong_type(
                    "times",
                    format!("datetime64[{unit}]"),
                    "D to ns",
                ));
            }
        };
        Some(count * nanoseconds)
    } else {
        None
    };
    Ok(Array::Column(Column::new(values, None, len, unit)))
}

/// The memory of an array without gaps, which stays as long as the buffer.
fn buffer(array: &Bound<'_, PyAny>, len: usize) -> PyResult<Buffer> {
    if len == 0 {
        return Ok(Buffer::default());
    }
    let interface = array.getattr("__array_interface__")?;
    let (address, _): (usize, bool) = interface.get_item("data")?.extract()?;
    let Some(start) = NonNull::new(address as *mut u8) else {
        return Err(invalid("keys", "array without memory", "an array"));
    };
    let owner = Arc::new(AssertUnwindSafe(array.clone().unbind()));
    // SAFETY: numpy states that its memory is at the address, `len` bytes without gaps, and keeps
    // it there while the array is referenced, which the owner does. The caller must not write to
    // the array during the call, as documented.
    Ok(unsafe { Buffer::from_custom_allocation(start, len, owner) })
}
