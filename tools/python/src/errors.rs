//! The errors of the library as Python exceptions, with the library's texts.

use std::io;
use std::path::Path;

use echoless::{BuildError, SpecError};
use echoless_foreign::{Code, Failure};
use echoless_lab::LabError;
use pyo3::exceptions::{PyMemoryError, PyOSError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyInt, PyString};

/// The exception of a failure.
pub(crate) fn raise(failure: impl Into<Failure>) -> PyErr {
    let Failure { code, text } = failure.into();
    match code {
        Code::InvalidArgument | Code::InvalidSpec | Code::InvalidState | Code::StateMismatch => {
            PyValueError::new_err(text)
        }
        Code::Io => PyOSError::new_err(text),
        Code::OutOfMemory => PyMemoryError::new_err(text),
        _ => PyRuntimeError::new_err(text),
    }
}

/// A value that is not allowed, in the form of the library: `invalid seed=-1: expected ..`.
pub(crate) fn invalid(
    name: &'static str,
    value: impl std::fmt::Display,
    allowed: impl Into<String>,
) -> PyErr {
    raise(Failure::argument(name, value, allowed))
}

/// A number or text in a message, and the type of anything else: the text of an array is made by its
/// package, from memory that may be wrong.
pub(crate) fn shown(object: &Bound<'_, PyAny>) -> String {
    if object.is_exact_instance_of::<PyInt>()
        || object.is_exact_instance_of::<PyFloat>()
        || object.is_exact_instance_of::<PyString>()
    {
        return object.to_string();
    }
    let name = object.get_type().name();
    name.map_or_else(|_| "object".to_owned(), |name| name.to_string())
}

/// Makes room for more, as much as there is memory for.
pub(crate) fn reserve<T>(into: &mut Vec<T>, more: usize) -> Result<(), PyErr> {
    into.try_reserve(more).map_err(|_| {
        let text = format!("cannot allocate memory for {more} more keys");
        PyMemoryError::new_err(text)
    })
}

/// An object of a type that is not allowed.
pub(crate) fn wrong_type(
    name: &'static str,
    value: impl std::fmt::Display,
    allowed: impl Into<String>,
) -> PyErr {
    PyTypeError::new_err(Failure::argument(name, value, allowed).text)
}

/// A file that cannot be opened. Python selects the class, such as `FileNotFoundError`.
pub(crate) fn raise_of_path(path: &Path, error: &io::Error) -> PyErr {
    match error.raw_os_error() {
        Some(number) => {
            let text = error.to_string();
            // Python adds the number itself.
            let text = text.split(" (os error").next().unwrap_or(&text).to_owned();
            PyOSError::new_err((number, text, path.to_path_buf()))
        }
        None => PyOSError::new_err(format!("{}: {error}", path.display())),
    }
}

/// The exception of a measurement or plan that failed.
pub(crate) fn raise_of_lab(error: &LabError) -> PyErr {
    let text = error.to_string();
    match error {
        LabError::Filter {
            source: BuildError::Memory(_),
            ..
        }
        | LabError::Oracle(BuildError::Memory(_)) => PyMemoryError::new_err(text),
        LabError::Figure { .. } => PyOSError::new_err(text),
        _ => PyValueError::new_err(text),
    }
}

/// The exception of a value that is not allowed.
pub(crate) fn raise_of_spec(error: SpecError) -> PyErr {
    raise(Failure::from(error))
}
