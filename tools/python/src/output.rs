//! Verdicts as arrays of Python.

use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyBytes};

/// The type of the array with the verdicts.
#[derive(Clone, Copy)]
pub(crate) enum Form {
    Numpy,
    /// For keys from pyarrow.
    PyArrow,
}

impl Form {
    /// The form for keys in this object.
    pub(crate) fn of(object: &Bound<'_, PyAny>) -> Self {
        // A class may have anything as its module.
        let module = object.get_type().module().ok();
        let name = module.as_ref().and_then(|module| module.to_str().ok());
        match name.and_then(|name| name.split('.').next()) {
            Some("pyarrow") => Self::PyArrow,
            _ => Self::Numpy,
        }
    }

    /// The bits of the verdicts as an array of `len` booleans, true for a duplicate.
    pub(crate) fn array<'py>(
        self,
        py: Python<'py>,
        duplicates: &[u64],
        len: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        let bits: Vec<u8> = duplicates
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect();
        let bits = PyBytes::new(py, &bits);
        match self {
            Self::Numpy => {
                let numpy = py.import("numpy")?;
                let bits = numpy.call_method1("frombuffer", (bits, "uint8"))?;
                let named = [("bitorder", "little".into_pyobject(py)?.into_any())];
                let named = named.into_py_dict(py)?;
                named.set_item("count", len)?;
                let bytes = numpy.call_method("unpackbits", (bits,), Some(&named))?;
                bytes.call_method1("view", (numpy.getattr("bool_")?,))
            }
            Self::PyArrow => {
                let pyarrow = py.import("pyarrow")?;
                let bits = pyarrow.call_method1("py_buffer", (bits,))?;
                let array = pyarrow.getattr("BooleanArray")?;
                let bool_type = pyarrow.call_method0("bool_")?;
                array.call_method1("from_buffers", (bool_type, len, [py.None(), bits.unbind()]))
            }
        }
    }
}
