//! What callers pass as keys: one key, or many in any of the forms that Python has.

use echoless::{KeyHash, KeyHasher};
use echoless_foreign::{Keys, hash_all};
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyInt, PyList, PyString, PyTuple};

use crate::columns::{Column, Piece, piece_of_column, pieces_of_arrow, rows};
use crate::errors::{invalid, wrong_type};
use crate::numpy::Array;
use crate::output::Form;
use crate::{arrow, numpy};

const ALLOWED: &str = "bytes, str, int, or a tuple of them";

/// How many objects are hashed between two checks for signals.
const SIGNAL_KEYS: usize = 1 << 20;

/// The keys of a call.
pub(crate) enum Input {
    One(KeyHash),
    Many(Batch),
}

/// Many keys, in pieces, and the form of their verdicts.
pub(crate) struct Batch {
    pieces: Vec<Piece>,
    len: usize,
    pub(crate) form: Form,
}

impl Input {
    /// Reads the keys of a call. No key is judged before all of them are read.
    pub(crate) fn read(object: &Bound<'_, PyAny>, hasher: &KeyHasher) -> PyResult<Self> {
        if is_key(object) {
            return hash_key(object, hasher).map(Self::One);
        }
        let (pieces, form) = if let Some(arrays) = arrow::import(object)? {
            (pieces_of_arrow(&arrays)?, Form::of(object)?)
        } else if numpy::is_array(object) {
            let piece = match numpy::import(object)? {
                Array::Column(column) => piece_of_column(column, 0)?,
                Array::Objects(list) => hash_each(&list, hasher)?,
            };
            (vec![piece], Form::Numpy)
        } else if let Some(columns) = columns_of(object)? {
            (rows(&columns)?, Form::of(&object.get_item(0)?)?)
        } else {
            (vec![hash_each(object, hasher)?], Form::Numpy)
        };
        let len = pieces.iter().map(Keys::len).sum();
        Ok(Self::Many(Batch { pieces, len, form }))
    }

    /// The hashes of all keys.
    pub(crate) fn into_hashes(self, hasher: &KeyHasher) -> Vec<KeyHash> {
        match self {
            Self::One(hash) => vec![hash],
            Self::Many(batch) => {
                let mut hashes = Vec::new();
                hash_all(&batch, hasher, &mut hashes);
                hashes
            }
        }
    }
}

impl Keys for Batch {
    fn len(&self) -> usize {
        self.len
    }

    fn hash(&self, hasher: &KeyHasher, mut from: usize, mut hashes: &mut [KeyHash]) {
        for piece in &self.pieces {
            if hashes.is_empty() {
                return;
            }
            let here = piece.len().saturating_sub(from).min(hashes.len());
            if here > 0 {
                let (now, later) = hashes.split_at_mut(here);
                piece.hash(hasher, from, now);
                hashes = later;
            }
            from = from.saturating_sub(piece.len());
        }
    }
}

/// Whether the object is one key, and not a sequence of keys.
fn is_key(object: &Bound<'_, PyAny>) -> bool {
    object.is_instance_of::<PyBytes>()
        || object.is_instance_of::<PyString>()
        || object.is_instance_of::<PyInt>()
        || object.is_instance_of::<PyByteArray>()
}

/// The hash of one key; a tuple has fields.
pub(crate) fn hash_key(object: &Bound<'_, PyAny>, hasher: &KeyHasher) -> PyResult<KeyHash> {
    if let Ok(bytes) = object.cast::<PyBytes>() {
        return Ok(hasher.hash(bytes.as_bytes()));
    }
    if let Ok(text) = object.cast::<PyString>() {
        return Ok(hasher.hash(text.to_str()?));
    }
    if let Ok(bytes) = object.cast::<PyByteArray>() {
        return Ok(hasher.hash(bytes.to_vec()));
    }
    if let Ok(fields) = object.cast::<PyTuple>() {
        return hash_fields(fields, hasher);
    }
    number(object).map(|number| hasher.hash_u64(number))
}

/// A number of 64 bits, with a sign or without.
fn number(object: &Bound<'_, PyAny>) -> PyResult<u64> {
    let number = match object.extract::<i64>() {
        Ok(number) => return Ok(number as u64),
        Err(error) if error.is_instance_of::<PyOverflowError>(object.py()) => object.extract(),
        Err(error) => Err(error),
    };
    number.map_err(|error: PyErr| {
        if error.is_instance_of::<PyOverflowError>(object.py()) {
            invalid("key", object, "-2^63 to 2^64 - 1, or bytes")
        } else if error.is_instance_of::<PyTypeError>(object.py()) {
            let name = object.get_type().name();
            let name = name.map_or_else(|_| "object".to_owned(), |name| name.to_string());
            wrong_type("key", name, ALLOWED)
        } else {
            error
        }
    })
}

/// A field of a tuple.
enum Field<'py> {
    Missing,
    Number([u8; 8]),
    Bytes(Bound<'py, PyBytes>),
    Text(Bound<'py, PyString>),
}

fn hash_fields(fields: &Bound<'_, PyTuple>, hasher: &KeyHasher) -> PyResult<KeyHash> {
    let fields = fields.iter().map(|field| {
        Ok(if field.is_none() {
            Field::Missing
        } else if let Ok(bytes) = field.cast::<PyBytes>() {
            Field::Bytes(bytes.clone())
        } else if let Ok(text) = field.cast::<PyString>() {
            Field::Text(text.clone())
        } else {
            Field::Number(number(&field)?.to_le_bytes())
        })
    });
    let fields = fields.collect::<PyResult<Vec<_>>>()?;
    let slices = fields.iter().map(|field| {
        Ok(match field {
            Field::Missing => None,
            Field::Number(bytes) => Some(&bytes[..]),
            Field::Bytes(bytes) => Some(bytes.as_bytes()),
            Field::Text(text) => Some(text.to_str()?.as_bytes()),
        })
    });
    let slices = slices.collect::<PyResult<Vec<_>>>()?;
    Ok(hasher.hash_fields(slices))
}

/// The hashes of the keys of an iterable.
fn hash_each(keys: &Bound<'_, PyAny>, hasher: &KeyHasher) -> PyResult<Piece> {
    let Ok(iterator) = keys.try_iter() else {
        let name = keys.get_type().name()?;
        let allowed = format!("{ALLOWED}; or a sequence, a numpy array or Arrow data");
        return Err(wrong_type("keys", name, allowed));
    };
    let mut hashes = Vec::with_capacity(keys.len().unwrap_or(0));
    for key in iterator {
        hashes.push(hash_key(&key?, hasher)?);
        if hashes.len() % SIGNAL_KEYS == 0 {
            keys.py().check_signals()?;
        }
    }
    Ok(Piece::Hashes(hashes))
}

/// The columns of a list or tuple of arrays.
fn columns_of(object: &Bound<'_, PyAny>) -> PyResult<Option<Vec<Vec<Column>>>> {
    if !object.is_instance_of::<PyList>() && !object.is_instance_of::<PyTuple>() {
        return Ok(None);
    }
    let is_column = |item: &Bound<'_, PyAny>| -> PyResult<bool> {
        Ok(!is_key(item)
            && !item.is_instance_of::<PyTuple>()
            && (numpy::is_array(item) || arrow::exports(item)?))
    };
    if object.len()? == 0 || !is_column(&object.get_item(0)?)? {
        return Ok(None);
    }
    let columns = object.try_iter()?.map(|item| {
        let item = item?;
        if let Some(arrays) = arrow::import(&item)? {
            return arrays.iter().map(Column::of_arrow).collect();
        }
        if numpy::is_array(&item)
            && let Array::Column(column) = numpy::import(&item)?
        {
            return Ok(vec![column]);
        }
        let name = item.get_type().name()?;
        Err(wrong_type(
            "column",
            name,
            "Arrow data, or a numpy array of integers or bytes",
        ))
    });
    columns.collect::<PyResult<_>>().map(Some)
}
