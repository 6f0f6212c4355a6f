//! Series and frames of pandas, as arrays of numpy or pyarrow. The index is not part of them.

use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::PySlice;

/// What a module has by this name, if a program has imported it.
fn imported<'py>(py: Python<'py>, module: &str, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    let modules = py.import("sys")?.getattr("modules")?;
    let module = modules.call_method1("get", (module,))?;
    if module.is_none() {
        return Ok(None);
    }
    module.getattr_opt(name)
}

/// The class of a module, if the object is of it by its type, not by its `__class__`. Methods of
/// pyarrow do not check their object.
pub(crate) fn class_of<'py>(
    object: &Bound<'py, PyAny>,
    module: &str,
    name: &str,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let class = imported(object.py(), module, name)?;
    Ok(match class {
        Some(class) if object.get_type().is_subclass(&class)? => Some(class),
        _ => None,
    })
}

/// Whether an object is `NA` or `NaT`.
pub(crate) fn is_missing(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    for name in ["NA", "NaT"] {
        let missing = imported(object.py(), "pandas", name)?;
        if missing.is_some_and(|missing| object.is(&missing)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether an object is of a class of a module.
pub(crate) fn is_of(object: &Bound<'_, PyAny>, module: &str, name: &str) -> PyResult<bool> {
    class_of(object, module, name).map(|class| class.is_some())
}

/// The values of a series or index as an array of numpy or pyarrow; other objects as they are.
pub(crate) fn values<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let is_series = is_of(object, "pandas", "Series")?;
    if !is_series && !is_of(object, "pandas", "Index")? {
        return Ok(object.clone());
    }
    let py = object.py();
    let dtype = object.getattr("dtype")?;
    let kind = kind_of(&dtype)?;
    if kind.as_deref().is_some_and(|kind| kind != "O") {
        return object.call_method0("to_numpy");
    }
    if !is_series {
        // It is iterated.
        return Ok(object.clone());
    }
    let array = py
        .import("pyarrow")
        .and_then(|arrow| arrow.call_method1("array", (object,)));
    // Objects of several types, tuples, or numbers that are too large: they are read one by one.
    let are_read_alone = match &array {
        Err(error) => error.is_instance_of::<PyException>(py),
        Ok(array) => is_of(array, "pyarrow", "ListArray")?,
    };
    if kind.is_none() || !are_read_alone {
        return array;
    }
    let objects = object.call_method1("to_numpy", ("object",))?;
    let masked = py.import("numpy.ma")?.getattr("MaskedArray")?;
    masked.call1((objects, object.call_method0("isna")?))
}

/// The kind of a type of numpy.
fn kind_of(dtype: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    let class = dtype.py().import("numpy")?.getattr("dtype")?;
    if dtype.is_instance(&class)? {
        dtype.getattr("kind")?.extract().map(Some)
    } else {
        Ok(None)
    }
}

/// The columns of a frame.
pub(crate) fn columns<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<Vec<Bound<'py, PyAny>>>> {
    if !is_of(object, "pandas", "DataFrame")? {
        return Ok(None);
    }
    let count = object.getattr("columns")?.len()?;
    let series = object.getattr("iloc")?;
    let every = PySlice::full(object.py());
    let columns = (0..count).map(|index| series.get_item((&every, index)));
    columns.collect::<PyResult<_>>().map(Some)
}
