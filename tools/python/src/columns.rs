//! Columns of keys: one column is a key, several are the fields of one.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Int8Type, Int16Type, Int32Type, Time32MillisecondType, Time32SecondType, UInt8Type,
    UInt16Type, UInt32Type,
};
use arrow_array::{Array, ArrayRef, make_array};
use arrow_buffer::{ArrowNativeType, Buffer, NullBuffer, ScalarBuffer};
use arrow_schema::{DataType, TimeUnit};
use echoless::{KeyHash, KeyHasher};
use echoless_foreign::{Fixed, Keys, Packed};
use pyo3::{PyErr, PyResult};

use crate::errors::{invalid, raise, reserve, wrong_type};
use crate::keys::Hashed;
use crate::numbers::{Meaning, WIDE};

/// The values of a column in one piece of memory.
#[derive(Clone)]
pub(crate) enum Values {
    /// Numbers of 64 bits, negative ones in two's complement, and what they count.
    Numbers {
        numbers: ScalarBuffer<u64>,
        meaning: Meaning,
    },
    /// Bytes of one width; with `trim` without the zero bytes at their end.
    Fixed {
        bytes: Buffer,
        width: usize,
        trim: bool,
    },
    Short {
        bytes: Buffer,
        offsets: ScalarBuffer<i32>,
    },
    Long {
        bytes: Buffer,
        offsets: ScalarBuffer<i64>,
    },
    /// Texts of up to 12 bytes, or where longer ones are: see [`view`].
    View {
        views: ScalarBuffer<u128>,
        buffers: Arc<[Buffer]>,
    },
    /// The value of row `i` is that of row `indices[i]` of another column.
    Dictionary {
        indices: ScalarBuffer<u64>,
        values: Arc<Column>,
    },
}

/// A column in one piece.
#[derive(Clone)]
pub(crate) struct Column {
    values: Values,
    nulls: Option<NullBuffer>,
    len: usize,
}

/// Keys in one piece of memory.
pub(crate) enum Piece {
    Hashed(Hashed),
    /// Without nulls.
    Column(Column),
    /// A key is a row of these columns, and a null a missing field.
    Rows(Vec<Column>),
}

const ALLOWED: &str =
    "integers, dates, times, strings, binary, dictionaries of them, or structs of them";

impl Column {
    pub(crate) const fn new(values: Values, nulls: Option<NullBuffer>, len: usize) -> Self {
        Self { values, nulls, len }
    }

    /// The column of an Arrow array of a [checked](check_type) type, in its memory unless it has
    /// integers of less than 64 bits.
    pub(crate) fn of_arrow(array: &ArrayRef) -> PyResult<Self> {
        let (data, len) = (array.to_data(), array.len());
        let numbers = |meaning| Values::Numbers {
            numbers: ScalarBuffer::new(data.buffers()[0].clone(), data.offset(), len),
            meaning,
        };
        macro_rules! widened {
            ($type:ty, $meaning:expr) => {{
                let values = array.as_primitive::<$type>().values();
                let numbers = values
                    .iter()
                    .map(|value| i64::from(*value) as u64)
                    .collect();
                Values::Numbers {
                    numbers,
                    meaning: $meaning,
                }
            }};
        }
        let second = nanoseconds(TimeUnit::Second);
        let values = match array.data_type() {
            DataType::UInt64 => numbers(Meaning::Unsigned),
            DataType::Int64 => numbers(Meaning::Signed),
            DataType::Time64(unit) => numbers(Meaning::OfDay(nanoseconds(*unit))),
            DataType::Time32(TimeUnit::Second) => {
                widened!(Time32SecondType, Meaning::OfDay(second))
            }
            DataType::Time32(unit) => {
                widened!(Time32MillisecondType, Meaning::OfDay(nanoseconds(*unit)))
            }
            DataType::Duration(unit) => numbers(Meaning::Duration(nanoseconds(*unit))),
            DataType::Timestamp(unit, _) => numbers(Meaning::Instant(nanoseconds(*unit))),
            DataType::Date64 => numbers(Meaning::Instant(second / 1000)),
            DataType::Date32 => widened!(Date32Type, Meaning::Instant(86_400 * second)),
            DataType::Int8 => widened!(Int8Type, Meaning::Signed),
            DataType::Int16 => widened!(Int16Type, Meaning::Signed),
            DataType::Int32 => widened!(Int32Type, Meaning::Signed),
            DataType::UInt8 => widened!(UInt8Type, Meaning::Unsigned),
            DataType::UInt16 => widened!(UInt16Type, Meaning::Unsigned),
            DataType::UInt32 => widened!(UInt32Type, Meaning::Unsigned),
            DataType::Utf8 | DataType::Binary => {
                let (bytes, offsets) = packed(data.buffers(), data.offset(), len)?;
                Values::Short { bytes, offsets }
            }
            DataType::LargeUtf8 | DataType::LargeBinary => {
                let (bytes, offsets) = packed(data.buffers(), data.offset(), len)?;
                Values::Long { bytes, offsets }
            }
            DataType::Utf8View | DataType::BinaryView => {
                let (views, buffers) = data.buffers().split_at(1);
                Values::View {
                    views: ScalarBuffer::new(views[0].clone(), data.offset(), len),
                    buffers: buffers.into(),
                }
            }
            DataType::FixedSizeBinary(width) => {
                let width = *width as usize;
                let bytes = &data.buffers()[0];
                let bytes = bytes.slice_with_length(data.offset() * width, len * width);
                Values::Fixed {
                    bytes,
                    width,
                    trim: false,
                }
            }
            DataType::Dictionary(..) => {
                let dictionary = array.as_any_dictionary();
                let indices = Self::of_arrow(&make_array(dictionary.keys().to_data()))?;
                let Values::Numbers { numbers, .. } = indices.values else {
                    unreachable!("the type was checked");
                };
                Values::Dictionary {
                    // A copy, which stays as it is checked.
                    indices: numbers.to_vec().into(),
                    values: Arc::new(Self::of_arrow(dictionary.values())?),
                }
            }
            // No value is there, so they are of any type. A length takes no memory elsewhere.
            DataType::Null => {
                let mut numbers = Vec::new();
                reserve(&mut numbers, len)?;
                numbers.resize(len, 0);
                Values::Numbers {
                    numbers: numbers.into(),
                    meaning: Meaning::Signed,
                }
            }
            other => return Err(no_key(other)),
        };
        // The nulls of a dictionary are among its rows or its values.
        let column = Self::new(values, array.logical_nulls(), len);
        column.check()?;
        Ok(column)
    }

    /// Checks the views and indices of values that are there.
    fn check(&self) -> PyResult<()> {
        let is_null = |row| self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
        let mut rows = 0..self.len;
        let wrong = match &self.values {
            Values::View { views, buffers } => rows
                .find(|row| !is_null(*row) && view(views, buffers, *row).is_none())
                .map(|row| ("view", row, "one of bytes in its buffers".to_owned())),
            Values::Dictionary { indices, values } => {
                let count = values.len as u64;
                rows.find(|row| !is_null(*row) && indices[*row] >= count)
                    .map(|row| {
                        (
                            "index",
                            row,
                            format!("0 to before {count}, as the dictionary"),
                        )
                    })
            }
            _ => None,
        };
        match wrong {
            Some((name, row, allowed)) => Err(invalid(name, format!("that of row {row}"), allowed)),
            None => Ok(()),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The numbers, and what they count.
    pub(crate) fn numbers(&self) -> Option<(&[u64], Meaning)> {
        match &self.values {
            Values::Numbers { numbers, meaning } => Some((numbers, *meaning)),
            _ => None,
        }
    }

    /// The number of the first null.
    pub(crate) fn first_null(&self) -> Option<usize> {
        let nulls = self.nulls.as_ref()?;
        (0..self.len).find(|row| nulls.is_null(*row))
    }

    /// Some of the rows, in the same memory.
    fn slice(&self, from: usize, len: usize) -> Self {
        let values = match &self.values {
            Values::Numbers { numbers, meaning } => Values::Numbers {
                numbers: numbers.slice(from, len),
                meaning: *meaning,
            },
            Values::Fixed { bytes, width, trim } => Values::Fixed {
                bytes: bytes.slice_with_length(from * width, len * width),
                width: *width,
                trim: *trim,
            },
            Values::Short { bytes, offsets } => Values::Short {
                bytes: bytes.clone(),
                offsets: offsets.slice(from, len + 1),
            },
            Values::Long { bytes, offsets } => Values::Long {
                bytes: bytes.clone(),
                offsets: offsets.slice(from, len + 1),
            },
            Values::View { views, buffers } => Values::View {
                views: views.slice(from, len),
                buffers: Arc::clone(buffers),
            },
            Values::Dictionary { indices, values } => Values::Dictionary {
                indices: indices.slice(from, len),
                values: Arc::clone(values),
            },
        };
        let nulls = self.nulls.as_ref().map(|nulls| nulls.slice(from, len));
        Self::new(values, nulls, len)
    }

    /// The value of a row as a field of a key, which may be in `wide`; see [`Meaning::field`].
    fn field<'a>(&'a self, row: usize, wide: &'a mut [u8; WIDE]) -> Option<&'a [u8]> {
        if self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            return None;
        }
        Some(match &self.values {
            Values::Numbers { numbers, meaning } => meaning.field(numbers[row], wide),
            Values::Fixed { bytes, width, trim } => {
                let value = &bytes[row * width..(row + 1) * width];
                if *trim { trimmed(value) } else { value }
            }
            Values::Short { bytes, offsets } => {
                between(bytes, offsets[row] as usize, offsets[row + 1] as usize)
            }
            Values::Long { bytes, offsets } => {
                between(bytes, offsets[row] as usize, offsets[row + 1] as usize)
            }
            Values::View { views, buffers } => view(views, buffers, row).unwrap_or_default(),
            Values::Dictionary { indices, values } => {
                return values.field(indices[row] as usize, wide);
            }
        })
    }

    /// Hashes values as keys.
    fn hash(&self, hasher: &KeyHasher, from: usize, hashes: &mut [KeyHash]) {
        let to = from + hashes.len();
        match &self.values {
            Values::Numbers { numbers, meaning } => {
                meaning.hash(hasher, &numbers[from..to], hashes);
            }
            Values::Fixed {
                bytes,
                width,
                trim: false,
            } => {
                let fixed = Fixed::new(bytes, *width, *width, self.len);
                fixed.expect("as many bytes").hash(hasher, from, hashes);
            }
            Values::Fixed { trim: true, .. }
            | Values::Short { .. }
            | Values::Long { .. }
            | Values::View { .. } => {
                let wide = &mut [0; WIDE];
                for (row, hash) in (from..to).zip(hashes) {
                    let value = self.field(row, wide).unwrap_or_default();
                    *hash = hasher.hash(value);
                }
            }
            Values::Dictionary { indices, values } => {
                for (index, hash) in indices[from..to].iter().zip(hashes) {
                    values.hash(hasher, *index as usize, std::slice::from_mut(hash));
                }
            }
        }
    }
}

/// The bytes of a range that was checked. Memory that a program changes meanwhile gives another
/// key.
fn between(bytes: &[u8], from: usize, to: usize) -> &[u8] {
    bytes.get(from..to).unwrap_or_default()
}

/// The bytes of a view, unless they are outside of the buffers.
///
/// ```text
///   length 4 bytes | up to 12 bytes                        if they are no more
///   length 4 bytes | 4 bytes of them | buffer 4 | offset 4 bytes
/// ```
fn view<'a>(views: &'a ScalarBuffer<u128>, buffers: &'a [Buffer], row: usize) -> Option<&'a [u8]> {
    let memory = &views.inner()[row * 16..row * 16 + 16];
    let [length, _, buffer, offset] =
        [0, 4, 8, 12].map(|at| u32::from_le_bytes([0, 1, 2, 3].map(|byte| memory[at + byte])));
    let length = length as usize;
    if length <= 12 {
        return Some(&memory[4..4 + length]);
    }
    let start = offset as usize;
    buffers.get(buffer as usize)?.get(start..start + length)
}

// A field is the memory of a number.
#[cfg(target_endian = "big")]
compile_error!("the fields of keys are little-endian");

impl Keys for Piece {
    fn len(&self) -> usize {
        match self {
            Self::Hashed(keys) => keys.len(),
            Self::Column(column) => column.len,
            Self::Rows(columns) => columns.first().map_or(0, |column| column.len),
        }
    }

    fn hash(&self, hasher: &KeyHasher, from: usize, hashes: &mut [KeyHash]) {
        match self {
            Self::Hashed(keys) => keys.hash(hasher, from, hashes),
            Self::Column(column) => column.hash(hasher, from, hashes),
            Self::Rows(columns) => {
                let mut wide = vec![[0; WIDE]; columns.len()];
                for (row, hash) in (from..).zip(hashes) {
                    let fields = columns.iter().zip(&mut wide);
                    let fields = fields.map(|(column, wide)| column.field(row, wide));
                    *hash = hasher.hash_fields(fields);
                }
            }
        }
    }
}

/// Checks that values of a type can be keys, or the fields of keys.
pub(crate) fn check_type(data_type: &DataType) -> PyResult<()> {
    match data_type {
        DataType::Struct(fields) => fields.iter().try_for_each(|field| match field.data_type() {
            DataType::Struct(_) => Err(no_key(field.data_type())),
            other => check_type(other),
        }),
        DataType::Dictionary(_, values) => match &**values {
            DataType::Dictionary(..) | DataType::Struct(_) => Err(no_key(data_type)),
            values => check_type(values),
        },
        DataType::FixedSizeBinary(1..)
        | DataType::UInt64
        | DataType::Int64
        | DataType::Time64(_)
        | DataType::Time32(_)
        | DataType::Duration(_)
        | DataType::Timestamp(..)
        | DataType::Date64
        | DataType::Date32
        | DataType::Int8
        | DataType::Int16
        | DataType::Int32
        | DataType::UInt8
        | DataType::UInt16
        | DataType::UInt32
        | DataType::Utf8
        | DataType::Binary
        | DataType::LargeUtf8
        | DataType::LargeBinary
        | DataType::Utf8View
        | DataType::BinaryView
        | DataType::Null => Ok(()),
        other => Err(no_key(other)),
    }
}

fn no_key(data_type: &DataType) -> PyErr {
    wrong_type("keys", format!("Arrow {data_type}"), ALLOWED)
}

/// The pieces of a column of keys, or of rows if it is one of structs.
pub(crate) fn pieces_of_arrow(arrays: &[ArrayRef]) -> PyResult<Vec<Piece>> {
    let mut start = 0;
    let mut pieces = Vec::with_capacity(arrays.len());
    for array in arrays {
        let piece = match array.as_struct_opt() {
            Some(fields) => {
                if let Some(row) = array.nulls().and_then(first_null) {
                    return Err(null("a row", start + row));
                }
                if fields.num_columns() == 0 {
                    return Err(invalid("keys", "struct without fields", "1 field or more"));
                }
                let columns = fields.columns().iter().map(Column::of_arrow);
                Piece::Rows(columns.collect::<PyResult<_>>()?)
            }
            None => piece_of_column(Column::of_arrow(array)?, start)?,
        };
        start += piece.len();
        pieces.push(piece);
    }
    Ok(pieces)
}

/// A column whose values are the keys, from row number `start` on.
pub(crate) fn piece_of_column(column: Column, start: usize) -> PyResult<Piece> {
    match column.first_null() {
        Some(row) => Err(null("null", start + row)),
        None => Ok(Piece::Column(column)),
    }
}

fn first_null(nulls: &NullBuffer) -> Option<usize> {
    nulls.iter().position(|valid| !valid)
}

fn null(what: &str, row: usize) -> PyErr {
    let allowed = "no nulls, or a list of columns ([column]), in which a null is a missing field";
    let what = if what == "null" {
        "null".to_owned()
    } else {
        format!("null as {what}")
    };
    invalid("keys", format!("{what} at row {row}"), allowed)
}

/// The rows of columns that may be in pieces of different lengths.
pub(crate) fn rows(columns: &[Vec<Column>]) -> PyResult<Vec<Piece>> {
    let lens = columns
        .iter()
        .map(|pieces| pieces.iter().map(Column::len).sum());
    let lens: Vec<usize> = lens.collect();
    if lens.is_empty() {
        return Err(invalid("keys", "frame without columns", "1 column or more"));
    }
    if let Some(len) = lens.iter().find(|len| **len != lens[0]) {
        return Err(invalid(
            "keys",
            format!("columns of {} and {len} rows", lens[0]),
            "equal lengths",
        ));
    }
    // The next piece of each column, and the rows of it that are used.
    let mut next = vec![(0, 0); columns.len()];
    let mut pieces = Vec::new();
    let mut left = lens[0];
    while left > 0 {
        let mut len = left;
        for ((piece, used), pieces) in next.iter_mut().zip(columns) {
            while pieces[*piece].len == *used {
                (*piece, *used) = (*piece + 1, 0);
            }
            len = len.min(pieces[*piece].len - *used);
        }
        let parts = next.iter_mut().zip(columns).map(|((piece, used), pieces)| {
            let part = pieces[*piece].slice(*used, len);
            *used += len;
            part
        });
        pieces.push(Piece::Rows(parts.collect()));
        left -= len;
    }
    Ok(pieces)
}

/// The bytes and the offsets of a column of strings, which are checked here, once.
fn packed<O>(buffers: &[Buffer], offset: usize, len: usize) -> PyResult<(Buffer, ScalarBuffer<O>)>
where
    O: ArrowNativeType + Copy + TryInto<usize>,
{
    // An empty column may have no offsets.
    let offsets = if len == 0 {
        ScalarBuffer::from(vec![O::default()])
    } else {
        ScalarBuffer::new(buffers[0].clone(), offset, len + 1)
    };
    Packed::new(&buffers[1], &offsets[..]).map_err(raise)?;
    Ok((buffers[1].clone(), offsets))
}

fn trimmed(value: &[u8]) -> &[u8] {
    let end = value.iter().rposition(|byte| *byte != 0);
    &value[..end.map_or(0, |end| end + 1)]
}

const fn nanoseconds(unit: TimeUnit) -> u64 {
    match unit {
        TimeUnit::Second => 1_000_000_000,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond => 1_000,
        TimeUnit::Nanosecond => 1,
    }
}
