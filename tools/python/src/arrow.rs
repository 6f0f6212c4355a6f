//! Arrow data of other packages, without copying: the `PyCapsule` interface of Arrow.
//!
//! The structs of the interface have pointers without lengths, so a consumer has to believe what a
//! producer says about its memory. Programs can make arrays of pyarrow from any buffers, so these
//! are validated by pyarrow, which knows the lengths. What the buffers say (offsets, views, indices)
//! is checked here, for all producers.
// Structs with pointers of other packages become arrays here.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi_and_data_type};
use arrow_array::{ArrayRef, make_array};
use arrow_schema::{DataType, Field};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};

use crate::columns::check_type;
use crate::errors::wrong_type;
use crate::pandas::{class_of, is_of};

/// The `ArrowArrayStream` of the C stream interface. The one of the `arrow-array` crate reads
/// streams of record batches only, and a chunked column is a stream of arrays.
#[repr(C)]
struct Stream {
    get_schema: Option<unsafe extern "C" fn(*mut Stream, *mut FFI_ArrowSchema) -> c_int>,
    get_next: Option<unsafe extern "C" fn(*mut Stream, *mut FFI_ArrowArray) -> c_int>,
    get_last_error: Option<unsafe extern "C" fn(*mut Stream) -> *const c_char>,
    release: Option<unsafe extern "C" fn(*mut Stream)>,
    private_data: *mut c_void,
}

impl Stream {
    const RELEASED: Self = Self {
        get_schema: None,
        get_next: None,
        get_last_error: None,
        release: None,
        private_data: std::ptr::null_mut(),
    };
}

impl Drop for Stream {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: the function of the stream that frees it, called once: it was moved here.
            unsafe { release(self) }
        }
    }
}

/// The arrays of an object with `__arrow_c_array__` or `__arrow_c_stream__`; `None` if it has
/// neither.
pub(crate) fn import(object: &Bound<'_, PyAny>) -> PyResult<Option<Vec<ArrayRef>>> {
    let object = &batches(object)?;
    reject_pointers(object)?;
    if let Some((class, is_stream)) = class_of_pyarrow(object)? {
        // Those of the class, and not what a subclass has in their place.
        class.call_method1("validate", (object,))?;
        return if is_stream {
            import_stream(&class.call_method1("__arrow_c_stream__", (object,))?)
        } else {
            import_array(&class.call_method1("__arrow_c_array__", (object,))?)
        }
        .map(Some);
    }
    if let Some(export) = object.getattr_opt("__arrow_c_array__")? {
        return import_array(&export.call0()?).map(Some);
    }
    match object.getattr_opt("__arrow_c_stream__")? {
        Some(export) => import_stream(&export.call0()?).map(Some),
        None => Ok(None),
    }
}

/// Whether the object exports Arrow data.
pub(crate) fn exports(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(object.hasattr("__arrow_c_array__")? || object.hasattr("__arrow_c_stream__")?)
}

/// The table of a reader of pyarrow; other objects as they are.
fn batches<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    match class_of(object, "pyarrow", "RecordBatchReader")? {
        Some(class) => class.call_method1("read_all", (object,)),
        None => Ok(object.clone()),
    }
}

/// The class of an object of pyarrow, and whether it is one of several pieces.
fn class_of_pyarrow<'py>(
    object: &Bound<'py, PyAny>,
) -> PyResult<Option<(Bound<'py, PyAny>, bool)>> {
    for (name, is_stream) in [
        ("Array", false),
        ("RecordBatch", false),
        ("ChunkedArray", true),
        ("Table", true),
    ] {
        if let Some(class) = class_of(object, "pyarrow", name)? {
            return Ok(Some((class, is_stream)));
        }
    }
    Ok(None)
}

/// Rejects objects of polars, which it exports as their addresses.
fn reject_pointers(object: &Bound<'_, PyAny>) -> PyResult<()> {
    let dtypes = if is_of(object, "polars", "Series")? {
        vec![object.getattr("dtype")?]
    } else if is_of(object, "polars", "DataFrame")? {
        object.getattr("dtypes")?.extract()?
    } else {
        return Ok(());
    };
    let objects = object.py().import("polars")?.getattr("Object")?;
    for dtype in dtypes {
        if dtype.eq(&objects)? {
            let allowed = "a column with a type, or a list: series.to_list()";
            return Err(wrong_type("keys", "polars Object", allowed));
        }
    }
    Ok(())
}

/// The pointer of a capsule, if it has this name.
fn pointer<T>(capsule: &Bound<'_, PyAny>, name: &CStr) -> PyResult<*mut T> {
    let capsule = capsule.cast::<PyCapsule>()?;
    Ok(capsule.pointer_checked(Some(name))?.as_ptr().cast())
}

fn import_array(pair: &Bound<'_, PyAny>) -> PyResult<Vec<ArrayRef>> {
    let pair = pair.cast::<PyTuple>()?;
    let schema = pointer::<FFI_ArrowSchema>(&pair.get_item(0)?, c"arrow_schema")?;
    let array = pointer::<FFI_ArrowArray>(&pair.get_item(1)?, c"arrow_array")?;
    // SAFETY: by the names of the capsules these are the structs of the C data interface. They are
    // moved out, which the interface allows once: the capsules then release nothing.
    let (schema, array) = unsafe {
        (
            FFI_ArrowSchema::from_raw(schema),
            FFI_ArrowArray::from_raw(array),
        )
    };
    to_array(array, &type_of(&schema)?).map(|array| vec![array])
}

/// The type of a schema. What its extension types mean is not known here, but that a `UUID` is its
/// bytes and JSON its text.
fn type_of(schema: &FFI_ArrowSchema) -> PyResult<DataType> {
    let field = guarded(|| Field::try_from(schema).map_err(failed))?;
    let mut fields = vec![&field];
    while let Some(field) = fields.pop() {
        if let Some(name) = field.metadata().get("ARROW:extension:name")
            && !["arrow.uuid", "arrow.json"].contains(&&**name)
        {
            let allowed = "plain types, such as the storage of the column";
            return Err(wrong_type(
                "keys",
                format!("Arrow extension {name:?}"),
                allowed,
            ));
        }
        if let DataType::Struct(children) = field.data_type() {
            fields.extend(children.iter().map(|child| &**child));
        }
    }
    Ok(field.data_type().clone())
}

fn to_array(array: FFI_ArrowArray, data_type: &DataType) -> PyResult<ArrayRef> {
    if array.is_released() {
        return Err(PyValueError::new_err("the Arrow data were released"));
    }
    guarded(|| {
        check_type(data_type)?;
        check_struct(&array, data_type)?;
        // SAFETY: the structs have the buffers of this type, and the producer promises that these
        // have the lengths of it.
        let data = unsafe { from_ffi_and_data_type(array, data_type.clone()) };
        Ok(make_array(data.map_err(failed)?))
    })
}

/// Checks that the structs of an array have the shape of its type.
fn check_struct(array: &FFI_ArrowArray, data_type: &DataType) -> PyResult<()> {
    let wrong = |what: &str| Err(failed(format!("{what} of {data_type}")));
    // Negative numbers are larger, too.
    const MOST: usize = 1 << 50;
    let rows = match (array.len(), array.offset()) {
        (len @ 0..MOST, offset @ 0..MOST) => len + offset,
        _ => return wrong("invalid length or offset"),
    };
    // The bitmap of nulls, and others.
    let (buffers, is_exact) = match data_type {
        // The specification has none; polars has one.
        DataType::Null if array.num_buffers() > 0 => {
            let allowed = "a type of values, as by cast(polars.String)";
            return Err(wrong_type("keys", "Arrow Null with a buffer", allowed));
        }
        DataType::Null => (0, true),
        DataType::Struct(_) => (1, true),
        DataType::Utf8 | DataType::Binary | DataType::LargeUtf8 | DataType::LargeBinary => {
            (3, true)
        }
        DataType::Utf8View | DataType::BinaryView => (3, false),
        _ => (2, true),
    };
    let found = array.num_buffers();
    if found < buffers || is_exact && found > buffers {
        return wrong("invalid number of buffers");
    }
    // Text of no bytes may have no buffer.
    if rows > 0 && buffers > 1 && array.buffer(1).is_null() {
        return wrong("missing buffer");
    }
    let has_nulls = array.null_count_opt().is_some_and(|count| count > 0);
    if has_nulls && buffers > 0 && array.buffer(0).is_null() {
        return wrong("missing bitmap of nulls");
    }
    match (data_type, array.dictionary()) {
        (DataType::Dictionary(_, values), Some(dictionary)) => check_struct(dictionary, values)?,
        (DataType::Dictionary(..), None) => return wrong("missing dictionary"),
        (_, Some(_)) => return wrong("unexpected dictionary"),
        (_, None) => {}
    }
    let fields = match data_type {
        DataType::Struct(fields) => &fields[..],
        _ => &[],
    };
    if array.num_children() != fields.len() {
        return wrong("invalid number of children");
    }
    for (index, field) in fields.iter().enumerate() {
        let child = array.child(index);
        if child.len() < rows {
            return wrong("invalid length of a child");
        }
        check_struct(child, field.data_type())?;
    }
    Ok(())
}

/// Reads foreign structs. A panic says that they are not as the specification of Arrow has them.
fn guarded<T>(read: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(read))
        .unwrap_or_else(|_| Err(failed("they are not those of their type")))
}

fn import_stream(capsule: &Bound<'_, PyAny>) -> PyResult<Vec<ArrayRef>> {
    let stream = pointer::<Stream>(capsule, c"arrow_array_stream")?;
    // SAFETY: by its name the capsule has this struct. It is moved out, so that no other thread
    // uses it: the capsule then releases nothing.
    let stream = &mut unsafe { std::ptr::replace(stream, Stream::RELEASED) };
    let (Some(get_schema), Some(get_next)) = (stream.get_schema, stream.get_next) else {
        return Err(PyValueError::new_err("the Arrow stream was released"));
    };
    let mut schema = FFI_ArrowSchema::empty();
    // SAFETY: a function of the stream, with itself and a struct that it fills.
    let status = unsafe { get_schema(stream, &mut schema) };
    check(stream, status)?;
    let data_type = type_of(&schema)?;
    check_type(&data_type)?;
    let mut arrays = Vec::new();
    loop {
        let mut array = FFI_ArrowArray::empty();
        // SAFETY: as above.
        let status = unsafe { get_next(stream, &mut array) };
        check(stream, status)?;
        // The end of the stream.
        if array.is_released() {
            break;
        }
        arrays.push(to_array(array, &data_type)?);
        capsule.py().check_signals()?;
    }
    if arrays.is_empty() {
        arrays.push(arrow_array::new_empty_array(&data_type));
    }
    Ok(arrays)
}

/// The error of the last call of the stream.
fn check(stream: &mut Stream, status: c_int) -> PyResult<()> {
    if status == 0 {
        return Ok(());
    }
    // SAFETY: a function of the stream; its text is valid until the next call.
    let text = unsafe {
        let text = stream.get_last_error.map(|get| get(stream));
        let text = text
            .filter(|text| !text.is_null())
            .map(|text| CStr::from_ptr(text));
        text.map_or_else(String::new, |text| text.to_string_lossy().into_owned())
    };
    Err(PyOSError::new_err(format!(
        "the Arrow stream failed with status {status}: {text}"
    )))
}

fn failed(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(format!("the Arrow data cannot be read: {error}"))
}
