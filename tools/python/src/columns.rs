//! Columns of keys: one column is a key, several are the fields of one.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Int8Type, Int16Type, Int32Type, UInt8Type, UInt16Type, UInt32Type,
};
use arrow_array::{Array, ArrayRef, BinaryViewArray};
use arrow_buffer::{ArrowNativeType, Buffer, NullBuffer, ScalarBuffer};
use arrow_schema::{DataType, TimeUnit};
use echoless::{KeyHash, KeyHasher};
use echoless_foreign::{Fixed, Keys, Numbers, Packed};
use pyo3::PyResult;

use crate::errors::{invalid, raise, wrong_type};

/// The values of a column in one piece of memory.
#[derive(Clone)]
pub(crate) enum Values {
    /// Numbers of 64 bits, negative ones in two's complement.
    Numbers {
        numbers: ScalarBuffer<u64>,
        signed: bool,
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
    View(BinaryViewArray),
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
    /// The nanoseconds of one unit, if the values are times.
    unit: Option<u64>,
}

/// Keys in one piece of memory.
pub(crate) enum Piece {
    Hashes(Vec<KeyHash>),
    /// Without nulls.
    Column(Column),
    /// A key is a row of these columns, and a null a missing field.
    Rows(Vec<Column>),
}

const ALLOWED: &str =
    "integers, dates, times, strings, binary, dictionaries of them, or structs of them";

impl Column {
    pub(crate) fn new(
        values: Values,
        nulls: Option<NullBuffer>,
        len: usize,
        unit: Option<u64>,
    ) -> Self {
        Self {
            values,
            nulls,
            len,
            unit,
        }
    }

    /// The column of an Arrow array, in its memory unless it has integers of less than 64 bits.
    pub(crate) fn of_arrow(array: &ArrayRef) -> PyResult<Self> {
        let (data, len) = (array.to_data(), array.len());
        let numbers = |signed| Values::Numbers {
            numbers: ScalarBuffer::new(data.buffers()[0].clone(), data.offset(), len),
            signed,
        };
        macro_rules! widened {
            ($type:ty, $signed:expr) => {{
                let values = array.as_primitive::<$type>().values();
                let numbers = values
                    .iter()
                    .map(|value| i64::from(*value) as u64)
                    .collect();
                Values::Numbers {
                    numbers,
                    signed: $signed,
                }
            }};
        }
        let (values, unit) = match array.data_type() {
            DataType::UInt64 => (numbers(false), None),
            DataType::Int64 | DataType::Time64(_) | DataType::Duration(_) => (numbers(true), None),
            DataType::Timestamp(unit, _) => (numbers(true), Some(nanoseconds(*unit))),
            DataType::Date64 => (numbers(true), Some(1_000_000)),
            DataType::Date32 => (widened!(Date32Type, true), Some(86_400_000_000_000)),
            DataType::Int8 => (widened!(Int8Type, true), None),
            DataType::Int16 => (widened!(Int16Type, true), None),
            DataType::Int32 => (widened!(Int32Type, true), None),
            DataType::UInt8 => (widened!(UInt8Type, false), None),
            DataType::UInt16 => (widened!(UInt16Type, false), None),
            DataType::UInt32 => (widened!(UInt32Type, false), None),
            DataType::Utf8 | DataType::Binary => {
                let (bytes, offsets) = packed(data.buffers(), data.offset(), len)?;
                (Values::Short { bytes, offsets }, None)
            }
            DataType::LargeUtf8 | DataType::LargeBinary => {
                let (bytes, offsets) = packed(data.buffers(), data.offset(), len)?;
                (Values::Long { bytes, offsets }, None)
            }
            DataType::Utf8View => (
                Values::View(array.as_string_view().clone().to_binary_view()),
                None,
            ),
            DataType::BinaryView => (Values::View(array.as_binary_view().clone()), None),
            DataType::FixedSizeBinary(width) => {
                let width = *width as usize;
                let bytes = &data.buffers()[0];
                let bytes = bytes.slice_with_length(data.offset() * width, len * width);
                (
                    Values::Fixed {
                        bytes,
                        width,
                        trim: false,
                    },
                    None,
                )
            }
            DataType::Dictionary(..) => {
                let dictionary = array.as_any_dictionary();
                let values = Arc::new(Self::of_arrow(dictionary.values())?);
                let indices = match values.len {
                    // All rows are nulls, which have no index.
                    0 => vec![0; len],
                    _ => dictionary.normalized_keys(),
                };
                let indices = indices.into_iter().map(|index| index as u64).collect();
                (Values::Dictionary { indices, values }, None)
            }
            other => return Err(wrong_type("keys", format!("Arrow {other}"), ALLOWED)),
        };
        // The nulls of a dictionary are among its rows or its values.
        Ok(Self::new(values, array.logical_nulls(), len, unit))
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The numbers, whether they have a sign, and their unit of time in nanoseconds.
    pub(crate) fn numbers(&self) -> Option<(&[u64], bool, Option<u64>)> {
        match &self.values {
            Values::Numbers { numbers, signed } => Some((numbers, *signed, self.unit)),
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
            Values::Numbers { numbers, signed } => Values::Numbers {
                numbers: numbers.slice(from, len),
                signed: *signed,
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
            Values::View(array) => Values::View(array.slice(from, len)),
            Values::Dictionary { indices, values } => Values::Dictionary {
                indices: indices.slice(from, len),
                values: Arc::clone(values),
            },
        };
        let nulls = self.nulls.as_ref().map(|nulls| nulls.slice(from, len));
        Self::new(values, nulls, len, self.unit)
    }

    /// The value of a row as a field of a key: numbers as 8 bytes, the lowest first.
    fn field(&self, row: usize) -> Option<&[u8]> {
        if self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            return None;
        }
        Some(match &self.values {
            Values::Numbers { numbers, .. } => &numbers.inner()[row * 8..row * 8 + 8],
            Values::Fixed { bytes, width, trim } => {
                let value = &bytes[row * width..(row + 1) * width];
                if *trim { trimmed(value) } else { value }
            }
            Values::Short { bytes, offsets } => {
                &bytes[offsets[row] as usize..offsets[row + 1] as usize]
            }
            Values::Long { bytes, offsets } => {
                &bytes[offsets[row] as usize..offsets[row + 1] as usize]
            }
            Values::View(array) => array.value(row),
            Values::Dictionary { indices, values } => return values.field(indices[row] as usize),
        })
    }

    /// Hashes values as keys.
    fn hash(&self, hasher: &KeyHasher, from: usize, hashes: &mut [KeyHash]) {
        let to = from + hashes.len();
        match &self.values {
            Values::Numbers { numbers, .. } => Numbers(numbers).hash(hasher, from, hashes),
            Values::Fixed {
                bytes,
                width,
                trim: false,
            } => {
                let fixed = Fixed::new(bytes, *width, *width, self.len);
                fixed.expect("as many bytes").hash(hasher, from, hashes);
            }
            Values::Short { bytes, offsets } => {
                let packed = Packed::new(bytes, &offsets[from..=to]);
                packed.expect("checked offsets").hash(hasher, 0, hashes);
            }
            Values::Long { bytes, offsets } => {
                let packed = Packed::new(bytes, &offsets[from..=to]);
                packed.expect("checked offsets").hash(hasher, 0, hashes);
            }
            Values::Fixed { trim: true, .. } | Values::View(_) => {
                for (row, hash) in (from..to).zip(hashes) {
                    *hash = hasher.hash(self.field(row).unwrap_or_default());
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

// A field is the memory of a number.
#[cfg(target_endian = "big")]
compile_error!("the fields of keys are little-endian");

impl Keys for Piece {
    fn len(&self) -> usize {
        match self {
            Self::Hashes(hashes) => hashes.len(),
            Self::Column(column) => column.len,
            Self::Rows(columns) => columns.first().map_or(0, |column| column.len),
        }
    }

    fn hash(&self, hasher: &KeyHasher, from: usize, hashes: &mut [KeyHash]) {
        match self {
            Self::Hashes(known) => hashes.copy_from_slice(&known[from..from + hashes.len()]),
            Self::Column(column) => column.hash(hasher, from, hashes),
            Self::Rows(columns) => {
                for (row, hash) in (from..).zip(hashes) {
                    *hash = hasher.hash_fields(columns.iter().map(|column| column.field(row)));
                }
            }
        }
    }
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

fn null(what: &str, row: usize) -> pyo3::PyErr {
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
