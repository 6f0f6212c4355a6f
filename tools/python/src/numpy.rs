//! Arrays of numpy. Their memory is copied at once, by numpy and with the interpreter held: nothing
//! that Python has keeps it in its place (`resize(refcheck=False)`, `__setstate__`), and other
//! threads may write to it.
//!
//! Only the methods of `ndarray` itself are called, which read the array as it is. What a subclass
//! says about itself (`__len__`, `dtype`, `__array_interface__`) is not asked.

use arrow_buffer::{Buffer, NullBuffer, ScalarBuffer};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyList, PyType};

use crate::columns::{Column, Values};
use crate::errors::{invalid, wrong_type};
use crate::numbers::Meaning;

/// What is allowed, for messages.
const ALLOWED: &str = "integers, bytes of fixed width (S or V), datetime64, timedelta64, str, \
     objects, or fields of them";

/// An array as keys.
pub(crate) enum Array<'py> {
    /// A copy of its memory.
    Column(Column),
    /// A list of its elements, which are objects or strings of numpy.
    Objects(Bound<'py, PyAny>),
}

/// The class `numpy.ndarray`. If numpy is not installed, there is none.
fn ndarray<'py>(py: Python<'py>) -> PyResult<&'py Bound<'py, PyType>> {
    static NDARRAY: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    NDARRAY.import(py, "numpy", "ndarray")
}

/// Whether the object is an array of numpy.
pub(crate) fn is_array(object: &Bound<'_, PyAny>) -> bool {
    // The real type, and not what `__class__` says.
    let class = object.get_type();
    ndarray(object.py()).is_ok_and(|array| class.is_subclass(array).unwrap_or(false))
}

/// An attribute of an array, by the descriptor of `ndarray`.
fn attribute<'py>(array: &Bound<'py, PyAny>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    let descriptor = ndarray(array.py())?.getattr(name)?;
    descriptor.call_method1("__get__", (array,))
}

/// The result of a method of `ndarray`.
fn method<'py>(array: &Bound<'py, PyAny>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    ndarray(array.py())?.call_method1(name, (array,))
}

/// The only dimension of an array.
fn length(array: &Bound<'_, PyAny>) -> PyResult<usize> {
    let shape: Vec<usize> = attribute(array, "shape")?.extract()?;
    match shape[..] {
        [len] => Ok(len),
        _ => {
            let value = format!("array of {} dimensions", shape.len());
            Err(invalid("keys", value, "1 dimension"))
        }
    }
}

/// The fields of a structured array, as arrays.
pub(crate) fn fields<'py>(array: &Bound<'py, PyAny>) -> PyResult<Option<Vec<Bound<'py, PyAny>>>> {
    let dtype = attribute(array, "dtype")?;
    let names = dtype.getattr("names")?;
    let has_objects: bool = dtype.getattr("hasobject")?.extract()?;
    if names.is_none() || has_objects || has_mask(array)? {
        return Ok(None);
    }
    let len = length(array)?;
    let width: usize = dtype.getattr("itemsize")?.extract()?;
    // Of one copy, which nothing moves, and all at one moment.
    let bytes = copied(array)?;
    if !attribute(array, "dtype")?.is(&dtype) || Some(bytes.len()) != len.checked_mul(width) {
        return Err(changed());
    }
    let class = ndarray(array.py())?;
    let copy = class.call1(((len,), dtype, bytes))?;
    let field = |name: Bound<'py, PyAny>| class.call_method1("__getitem__", (&copy, name));
    let fields = names.try_iter()?.map(|name| field(name?));
    fields.collect::<PyResult<_>>().map(Some)
}

/// The column of an array of one dimension. A value that is masked, or no time (`NaT`), is a null.
pub(crate) fn import<'py>(array: &Bound<'py, PyAny>) -> PyResult<Array<'py>> {
    let len = length(array)?;
    let dtype = attribute(array, "dtype")?;
    let kind: String = dtype.getattr("kind")?.extract()?;
    let width: usize = dtype.getattr("itemsize")?.extract()?;
    let is_native: bool = dtype.getattr("isnative")?.extract()?;
    let reject = || Err(wrong_type("keys", format!("array of {dtype}"), ALLOWED));
    // Fields are columns; their bytes may have gaps.
    let has_fields = !dtype.getattr("names")?.is_none();
    let has_objects: bool = dtype.getattr("hasobject")?.extract()?;
    if has_fields && has_objects && !has_mask(array)? {
        // Tuples.
        return Ok(Array::Objects(method(array, "tolist")?));
    }
    if has_fields || !is_native || has_objects && !has_items(&kind) {
        return reject();
    }
    let nulls = mask(array, len)?;
    if has_items(&kind) {
        let list = method(array, "tolist")?;
        let list = list.cast_into::<PyList>()?;
        for row in nulls.iter().flat_map(masked_rows) {
            // Also one that is shorter by now.
            list.set_item(row, array.py().None())?;
        }
        return Ok(Array::Objects(list.into_any()));
    }
    let meaning = match (&*kind, width) {
        ("S" | "V", 1..) => None,
        ("i", 1 | 2 | 4 | 8) => Some(Meaning::Signed),
        ("u", 1 | 2 | 4 | 8) => Some(Meaning::Unsigned),
        ("M", 8) => Some(Meaning::Instant(unit(&dtype)?)),
        ("m", 8) => Some(Meaning::Duration(unit(&dtype)?)),
        _ => return reject(),
    };
    let bytes = copied(array)?;
    if !attribute(array, "dtype")?.is(&dtype) || Some(bytes.len()) != len.checked_mul(width) {
        return Err(changed());
    }
    let Some(meaning) = meaning else {
        let bytes = buffer(bytes);
        // Without zeros at the end, which numpy does not return either when an element is read.
        let trim = kind == "S";
        let values = Values::Fixed { bytes, width, trim };
        return Ok(Array::Column(Column::new(values, nulls, len)));
    };
    let numbers = numbers(bytes, width, matches!(meaning, Meaning::Signed));
    let nulls = match meaning {
        Meaning::Instant(_) | Meaning::Duration(_) => {
            let is_time = numbers.iter().map(|time| *time != NOT_A_TIME);
            NullBuffer::union(nulls.as_ref(), Some(&is_time.collect()))
        }
        Meaning::Signed | Meaning::Unsigned | Meaning::OfDay(_) => nulls,
    };
    let values = Values::Numbers { numbers, meaning };
    Ok(Array::Column(Column::new(values, nulls, len)))
}

/// Whether the elements of an array of this kind are read as objects.
fn has_items(kind: &str) -> bool {
    matches!(kind, "U" | "O" | "T")
}

/// `NaT` of numpy.
const NOT_A_TIME: u64 = i64::MIN as u64;

fn changed() -> PyErr {
    invalid(
        "keys",
        "array that changes during the call",
        "one that stays",
    )
}

/// The bytes of all elements in their order, without gaps. One call of C: no other thread runs
/// between the look at the array and the end of the copy.
fn copied(array: &Bound<'_, PyAny>) -> PyResult<PyBackedBytes> {
    Ok(method(array, "tobytes")?.cast_into::<PyBytes>()?.into())
}

fn buffer(bytes: PyBackedBytes) -> Buffer {
    Buffer::from(bytes::Bytes::from_owner(bytes))
}

/// Integers of some width in 64 bits.
fn numbers(bytes: PyBackedBytes, width: usize, signed: bool) -> ScalarBuffer<u64> {
    if width == 8 && bytes.as_ptr().cast::<u64>().is_aligned() {
        return buffer(bytes).into();
    }
    let widen = |value: &[u8]| {
        let is_negative = signed && value[width - 1] >= 0x80;
        let mut wide = [if is_negative { 0xff } else { 0 }; 8];
        wide[..width].copy_from_slice(value);
        u64::from_le_bytes(wide)
    };
    bytes.chunks_exact(width).map(widen).collect()
}

/// The nanoseconds of a unit of times, such as `[ms]` or `[15m]`.
fn unit(dtype: &Bound<'_, PyAny>) -> PyResult<u64> {
    let data = (dtype.py().import("numpy")?).call_method1("datetime_data", (dtype,))?;
    let (unit, count): (String, u64) = data.extract()?;
    let nanoseconds: Option<u64> = match &*unit {
        "ns" => Some(1),
        "us" => Some(1_000),
        "ms" => Some(1_000_000),
        "s" => Some(1_000_000_000),
        "m" => Some(60_000_000_000),
        "h" => Some(3_600_000_000_000),
        "D" => Some(86_400_000_000_000),
        "W" => Some(604_800_000_000_000),
        _ => None,
    };
    let unit = nanoseconds.and_then(|nanoseconds| nanoseconds.checked_mul(count));
    let unit = unit.filter(|unit| *unit <= Meaning::MOST_UNIT);
    unit.ok_or_else(|| wrong_type("times", dtype, "units from W to ns, and less than a year"))
}

fn has_mask(array: &Bound<'_, PyAny>) -> PyResult<bool> {
    static MASKED: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let class = MASKED.import(array.py(), "numpy.ma", "MaskedArray")?;
    array.get_type().is_subclass(class)
}

/// The values that are not masked, if the array has a mask.
fn mask(array: &Bound<'_, PyAny>, len: usize) -> PyResult<Option<NullBuffer>> {
    if !has_mask(array)? {
        return Ok(None);
    }
    let module = array.py().import("numpy.ma")?;
    let mask = module.call_method1("getmask", (array,))?;
    if mask.is(&module.getattr("nomask")?) {
        return Ok(None);
    }
    let is_mask = is_array(&mask) && {
        let kind: String = attribute(&mask, "dtype")?.getattr("kind")?.extract()?;
        kind == "b"
    };
    let bytes = if is_mask { Some(copied(&mask)?) } else { None };
    match bytes {
        Some(bytes) if bytes.len() == len => {
            Ok(Some(bytes.iter().map(|byte| *byte == 0).collect()))
        }
        _ => Err(invalid(
            "keys",
            "array with another mask",
            "a bool for each value",
        )),
    }
}

/// The rows that are masked.
fn masked_rows(nulls: &NullBuffer) -> impl Iterator<Item = usize> {
    (0..nulls.len()).filter(|row| nulls.is_null(*row))
}
