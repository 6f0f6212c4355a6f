//! What callers pass as keys: one key, or many in any of the forms that Python has.

use echoless::hash::KeyDigest;
use echoless::{KeyHash, KeyHasher};
use echoless_foreign::{Digester, Failure, Keys, hash_all};
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyFloat, PyInt, PyList, PyRange, PyString, PyTuple};

use crate::columns::{Column, Piece, Values, piece_of_column, pieces_of_arrow, rows};
use crate::errors::{invalid, reserve, shown, wrong_type};
use crate::numbers::{Meaning, WIDE};
use crate::numpy::Array;
use crate::output::Form;
use crate::{arrow, numpy, pandas};

const ALLOWED: &str = "bytes, str, int, or a tuple of them";

/// How many objects are hashed between two checks for signals.
const SIGNAL_KEYS: usize = 1 << 20;

/// The keys of a call.
pub(crate) enum Input {
    One(Hashed),
    Many(Batch),
}

/// How keys are hashed.
#[derive(Clone)]
pub(crate) struct Hashing {
    pub(crate) hasher: KeyHasher,
    /// For a filter without errors.
    pub(crate) digester: Option<Digester>,
}

/// Keys that were objects.
#[derive(Default)]
pub(crate) struct Hashed {
    hashes: Vec<KeyHash>,
    /// None unless a filter without errors needs them.
    digests: Vec<KeyDigest>,
}

impl Hashed {
    /// One key; a tuple has fields.
    pub(crate) fn one(object: &Bound<'_, PyAny>, hashing: &Hashing) -> PyResult<Self> {
        let mut hashed = Self::default();
        hashed.push(object, hashing)?;
        Ok(hashed)
    }

    fn push(&mut self, object: &Bound<'_, PyAny>, hashing: &Hashing) -> PyResult<()> {
        let hash = hash_key(object, &hashing.hasher)?;
        if let Some(digester) = &hashing.digester {
            let mut digest = [KeyDigest::from_words([0; 2])];
            digester.digest(&mut digest, |hasher, hashes| {
                hash_key(object, hasher).map(|hash| hashes[0] = hash)
            })?;
            reserve(&mut self.digests, 1)?;
            self.digests.extend(digest);
        }
        reserve(&mut self.hashes, 1)?;
        self.hashes.push(hash);
        Ok(())
    }
}

impl Keys for Hashed {
    fn len(&self) -> usize {
        self.hashes.len()
    }

    fn hash(&self, _hasher: &KeyHasher, from: usize, hashes: &mut [KeyHash]) {
        hashes.copy_from_slice(&self.hashes[from..from + hashes.len()]);
    }

    fn digests(&self) -> Result<Option<&[KeyDigest]>, Failure> {
        Ok(Some(&self.digests))
    }
}

/// Many keys, in pieces, and the form of their verdicts.
pub(crate) struct Batch {
    pieces: Vec<Piece>,
    len: usize,
    pub(crate) form: Form,
}

impl Input {
    /// Reads the keys of a call. No key is judged before all of them are read.
    pub(crate) fn read(object: &Bound<'_, PyAny>, hashing: &Hashing) -> PyResult<Self> {
        if is_key(object) {
            return Hashed::one(object, hashing).map(Self::One);
        }
        let fields = match pandas::columns(object)? {
            None if numpy::is_array(object) => numpy::fields(object)?,
            columns => columns,
        };
        let (pieces, form) = if let Some(columns) = fields {
            let columns = columns
                .iter()
                .map(column_of)
                .collect::<PyResult<Vec<_>>>()?;
            (rows(&columns)?, Form::Numpy)
        } else {
            // A series of pandas may be one of Arrow, but its verdicts are of numpy.
            let values = &pandas::values(object)?;
            let form = Form::of(object);
            if numpy::is_array(values) {
                let piece = match numpy::import(values)? {
                    Array::Column(column) => piece_of_column(column, 0)?,
                    Array::Objects(list) => hash_each(&list, hashing)?,
                };
                (vec![piece], Form::Numpy)
            } else if let Some(arrays) = arrow::import(values)? {
                (pieces_of_arrow(&arrays)?, form)
            } else if let Some((columns, form)) = columns_of(values)? {
                (rows(&columns)?, form)
            } else {
                (vec![hash_each(values, hashing)?], Form::Numpy)
            }
        };
        let len = pieces.iter().map(Keys::len).sum();
        Ok(Self::Many(Batch { pieces, len, form }))
    }

    /// The number of keys.
    pub(crate) const fn len(&self) -> usize {
        match self {
            Self::One(_) => 1,
            Self::Many(batch) => batch.len,
        }
    }

    /// The hashes of all keys.
    pub(crate) fn into_hashes(self, hasher: &KeyHasher) -> Vec<KeyHash> {
        match self {
            Self::One(key) => key.hashes,
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
                break;
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

    fn digests(&self) -> Result<Option<&[KeyDigest]>, Failure> {
        match &self.pieces[..] {
            // Objects are hashed into one piece.
            [Piece::Hashed(keys)] => keys.digests(),
            _ => Ok(None),
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
fn hash_key(object: &Bound<'_, PyAny>, hasher: &KeyHasher) -> PyResult<KeyHash> {
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
    let (number, meaning) = number(object)?;
    let mut hash = [KeyHash::default()];
    meaning.hash(hasher, &[number], &mut hash);
    Ok(hash[0])
}

/// A number of 64 bits, with a sign or without.
fn number(object: &Bound<'_, PyAny>) -> PyResult<(u64, Meaning)> {
    if !object.is_instance_of::<PyInt>() && numpy::is_array(object) {
        // One without dimensions has an index, and may be masked.
        return Err(wrong_type("key", object.get_type().name()?, ALLOWED));
    }
    let number = match object.extract::<i64>() {
        Ok(number) => return Ok((number as u64, Meaning::Signed)),
        Err(error) if error.is_instance_of::<PyOverflowError>(object.py()) => {
            object.extract().map(|number| (number, Meaning::Unsigned))
        }
        Err(error) => Err(error),
    };
    number.map_err(|error: PyErr| {
        if error.is_instance_of::<PyOverflowError>(object.py()) {
            invalid("key", shown(object), "-2^63 to 2^64 - 1, or bytes")
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
    Number(u64, Meaning, [u8; WIDE]),
    Bytes(Bound<'py, PyBytes>),
    Copied(Vec<u8>),
    Text(Bound<'py, PyString>),
}

impl<'py> Field<'py> {
    fn of(field: &Bound<'py, PyAny>) -> PyResult<Self> {
        Ok(if let Ok(bytes) = field.cast::<PyBytes>() {
            Self::Bytes(bytes.clone())
        } else if let Ok(text) = field.cast::<PyString>() {
            Self::Text(text.clone())
        } else if let Ok(bytes) = field.cast::<PyByteArray>() {
            Self::Copied(bytes.to_vec())
        } else if field.is_none() || field.cast::<PyFloat>().is_ok_and(|it| it.value().is_nan()) {
            Self::Missing
        } else {
            match number(field) {
                Ok((number, meaning)) => Self::Number(number, meaning, [0; WIDE]),
                Err(_) if pandas::is_missing(field)? => Self::Missing,
                Err(error) => return Err(error),
            }
        })
    }

    fn bytes(&mut self) -> PyResult<Option<&[u8]>> {
        Ok(match self {
            Self::Missing => None,
            Self::Number(number, meaning, wide) => Some(meaning.field(*number, wide)),
            Self::Bytes(bytes) => Some(bytes.as_bytes()),
            Self::Copied(bytes) => Some(bytes),
            Self::Text(text) => Some(text.to_str()?.as_bytes()),
        })
    }
}

fn hash_fields(fields: &Bound<'_, PyTuple>, hasher: &KeyHasher) -> PyResult<KeyHash> {
    let fields = fields.iter().map(|field| Field::of(&field));
    let mut fields = fields.collect::<PyResult<Vec<_>>>()?;
    let slices = fields.iter_mut().map(Field::bytes);
    Ok(hasher.hash_fields(slices.collect::<PyResult<Vec<_>>>()?))
}

/// The hashes of the keys of an iterable.
fn hash_each(keys: &Bound<'_, PyAny>, hashing: &Hashing) -> PyResult<Piece> {
    let Ok(iterator) = keys.try_iter() else {
        let name = keys.get_type().name()?;
        let allowed = format!("{ALLOWED}; or a sequence, a numpy array or Arrow data");
        return Err(wrong_type("keys", name, allowed));
    };
    let mut hashed = Hashed::default();
    if keys.is_exact_instance_of::<PyRange>() {
        // Lengths are hints, and only this one can be too long and true.
        reserve(&mut hashed.hashes, keys.len().unwrap_or(usize::MAX))?;
    }
    for key in iterator {
        hashed.push(&key?, hashing)?;
        if hashed.len() % SIGNAL_KEYS == 0 {
            keys.py().check_signals()?;
        }
    }
    Ok(Piece::Hashed(hashed))
}

/// The columns of a list or tuple of arrays, and the form of their verdicts.
fn columns_of(object: &Bound<'_, PyAny>) -> PyResult<Option<(Vec<Vec<Column>>, Form)>> {
    if !object.is_instance_of::<PyList>() && !object.is_instance_of::<PyTuple>() {
        return Ok(None);
    }
    let is_column = |item: &Bound<'_, PyAny>| -> PyResult<bool> {
        Ok(!is_key(item)
            && !item.is_instance_of::<PyTuple>()
            && (numpy::is_array(item)
                || arrow::exports(item)?
                || pandas::is_of(item, "pandas", "Series")?))
    };
    // What a subclass has in place of items is not asked.
    let items = match object.cast::<PyList>() {
        Ok(list) => list.to_tuple(),
        Err(_) => object.cast::<PyTuple>()?.clone(),
    };
    let Ok(first) = items.get_item(0) else {
        return Ok(None);
    };
    if !is_column(&first)? {
        return Ok(None);
    }
    let columns = items.iter().map(|item| column_of(&item));
    let columns = columns.collect::<PyResult<_>>()?;
    Ok(Some((columns, Form::of(&first))))
}

/// The pieces of a column.
fn column_of(object: &Bound<'_, PyAny>) -> PyResult<Vec<Column>> {
    let values = &pandas::values(object)?;
    if numpy::is_array(values) {
        return Ok(vec![match numpy::import(values)? {
            Array::Column(column) => column,
            Array::Objects(list) => column_of_objects(&list)?,
        }]);
    } else if let Some(arrays) = arrow::import(values)? {
        return arrays.iter().map(Column::of_arrow).collect();
    }
    let name = object.get_type().name()?;
    Err(wrong_type("column", name, "Arrow data or a numpy array"))
}

/// The column of the fields that some objects are.
fn column_of_objects(objects: &Bound<'_, PyAny>) -> PyResult<Column> {
    let (mut bytes, mut offsets, mut valid) = (Vec::new(), vec![0], Vec::new());
    for object in objects.try_iter()? {
        let mut field = Field::of(&object?)?;
        let field = field.bytes()?;
        valid.push(field.is_some());
        bytes.extend_from_slice(field.unwrap_or_default());
        offsets.push(bytes.len() as i64);
    }
    let len = valid.len();
    let values = Values::Long {
        bytes: bytes.into(),
        offsets: offsets.into(),
    };
    Ok(Column::new(values, Some(valid.into()), len))
}
