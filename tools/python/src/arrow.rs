//! Arrow data of other packages, without copying: the `PyCapsule` interface of Arrow.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int, c_void};

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi_and_data_type};
use arrow_array::{ArrayRef, make_array};
use arrow_schema::{ArrowError, DataType};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};

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

/// The arrays of an object with `__arrow_c_array__` or `__arrow_c_stream__`; `None` if it has
/// neither.
pub(crate) fn import(object: &Bound<'_, PyAny>) -> PyResult<Option<Vec<ArrayRef>>> {
    if let Some(export) = object.getattr_opt("__arrow_c_array__")? {
        return import_array(&export.call0()?).map(|array| Some(vec![array]));
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

/// The pointer of a capsule, if it has this name.
fn pointer<T>(capsule: &Bound<'_, PyAny>, name: &CStr) -> PyResult<*mut T> {
    let capsule = capsule.cast::<PyCapsule>()?;
    Ok(capsule.pointer_checked(Some(name))?.as_ptr().cast())
}

fn import_array(pair: &Bound<'_, PyAny>) -> PyResult<ArrayRef> {
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
    if array.is_released() {
        return Err(PyValueError::new_err("the Arrow data were released"));
    }
    let data_type = DataType::try_from(&schema).map_err(|error| failed(&error))?;
    to_array(array, data_type)
}

fn to_array(array: FFI_ArrowArray, data_type: DataType) -> PyResult<ArrayRef> {
    // SAFETY: the producer promises buffers of the lengths that this type has.
    let data = unsafe { from_ffi_and_data_type(array, data_type) };
    Ok(make_array(data.map_err(|error| failed(&error))?))
}

fn import_stream(capsule: &Bound<'_, PyAny>) -> PyResult<Vec<ArrayRef>> {
    let stream = pointer::<Stream>(capsule, c"arrow_array_stream")?;
    // SAFETY: by its name the capsule has this struct, and keeps it alive; only this thread uses
    // it, since it was made for this call. The capsule releases it when it is dropped.
    let stream = unsafe { &mut *stream };
    let (Some(get_schema), Some(get_next)) = (stream.get_schema, stream.get_next) else {
        return Err(PyValueError::new_err("the Arrow stream was released"));
    };
    let mut schema = FFI_ArrowSchema::empty();
    // SAFETY: a function of the stream, with itself and a struct that it fills.
    let status = unsafe { get_schema(stream, &mut schema) };
    check(stream, status)?;
    let data_type = DataType::try_from(&schema).map_err(|error| failed(&error))?;
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
        arrays.push(to_array(array, data_type.clone())?);
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

fn failed(error: &ArrowError) -> PyErr {
    PyValueError::new_err(format!("the Arrow data cannot be read: {error}"))
}
