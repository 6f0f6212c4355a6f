//! The fields of a record: the values on paths, found in one [walk](crate::walk).
//!
//! Values are compared by their content; `canonical.rs` defines in which form. A path that occurs
//! several times names all of these values, in their order. A field is the lengths and contents of
//! them, so `ab` and `a`, `b` differ, and no value differs from an empty one.

use std::ops::Range;

use crate::canonical::read_element;
use crate::element::Tag;
use crate::error::Invalid;
use crate::fields::{FieldError, FieldSpec, TypeFields, type_fields};
use crate::profile::Profile;
use crate::walk::{All, First, TagNode};

/// The most fields of one selection: a word has a bit for each.
pub const MAX_FIELDS: usize = 64;

/// Where the bytes of a field are, in the words of the caller.
pub trait Location: Copy {
    /// The record has no such value.
    const ABSENT: Self;

    /// The bytes of the record in this range.
    fn in_record(range: Range<usize>) -> Self;

    /// The bytes of the scratch memory in this range.
    fn in_scratch(range: Range<usize>) -> Self;

    /// Whether there is no value.
    fn is_absent(&self) -> bool;
}

/// Finds fields in records, by the type of the record.
///
/// # Examples
/// ```
/// use std::ops::Range;
///
/// use echoless_ber::{Location, Selector};
///
/// #[derive(Clone, Copy)]
/// enum Bytes {
///     Absent,
///     Record(usize, usize),
///     Scratch(usize, usize),
/// }
///
/// impl Location for Bytes {
///     const ABSENT: Self = Self::Absent;
///
///     fn in_record(range: Range<usize>) -> Self {
///         Self::Record(range.start, range.end)
///     }
///
///     fn in_scratch(range: Range<usize>) -> Self {
///         Self::Scratch(range.start, range.end)
///     }
///
///     fn is_absent(&self) -> bool {
///         matches!(self, Self::Absent)
///     }
/// }
///
/// // [0] { [0] 07, [3] { [1] "x" } }, and the same with an indefinite length.
/// let definite = b"\xa0\x08\x80\x01\x07\xa3\x03\x81\x01x";
/// let indefinite = b"\xa0\x80\x80\x01\x07\xa3\x80\x81\x01x\0\0\0\0";
/// let selector = Selector::new(None, Some("0xA3"), None)?;
/// let mut found = Vec::new();
/// for record in [&definite[..], indefinite] {
///     let (mut scratch, mut fields) = (Vec::new(), vec![Bytes::Absent; selector.fields()]);
///     assert_eq!(selector.select(record, &mut scratch, &mut fields)?, None);
///     found.push(match fields[0] {
///         Bytes::Absent => Vec::new(),
///         Bytes::Record(start, end) => record[start..end].to_vec(),
///         Bytes::Scratch(start, end) => scratch[start..end].to_vec(),
///     });
/// }
/// // The length of the content, and the content.
/// assert_eq!(found[0], b"\x03\x81\x01x");
/// assert_eq!(found[0], found[1]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Selector {
    /// The fields of the types that a profile names.
    types: Vec<(Tag, Selection)>,
    /// The fields of every other record.
    other: Selection,
    /// What messages call each field.
    names: Vec<String>,
    /// The number of fields of the key.
    keys: usize,
}

/// The fields of one type of record.
#[derive(Debug, Clone)]
struct Selection {
    root: TagNode,
    /// The fields that a record must have, as bits.
    required: u64,
    /// The fields whose content alone is found, as bits.
    content_only: u64,
}

impl Selection {
    fn new(fields: &[Option<FieldSpec>], keys: usize) -> Self {
        let mut selection = Self {
            root: TagNode::default(),
            required: 0,
            content_only: 0,
        };
        for (field, spec) in fields.iter().enumerate() {
            let bit = 1 << field;
            if field >= keys {
                selection.content_only |= bit;
            }
            let Some(spec) = spec else {
                continue;
            };
            if !spec.optional {
                selection.required |= bit;
            }
            if let Some(path) = &spec.path {
                selection.root.add(&path.tags, field);
            }
        }
        selection
    }

    fn select<P: Location>(
        &self,
        content: &[u8],
        at: usize,
        among: u64,
        scratch: &mut Vec<u8>,
        found: &mut [P],
    ) -> Result<Option<usize>, Invalid> {
        let mut first = First {
            found,
            scratch,
            content_only: self.content_only,
            repeated: 0,
        };
        self.root.walk(content, at, 1, &mut first)?;
        let mut repeated = first.repeated & !self.content_only;
        while repeated != 0 {
            let field = repeated.trailing_zeros() as usize;
            repeated &= repeated - 1;
            let start = scratch.len();
            self.root
                .walk(content, at, 1, &mut All { field, scratch })?;
            found[field] = P::in_scratch(start..scratch.len());
        }
        let mut required = self.required & among;
        while required != 0 {
            let field = required.trailing_zeros() as usize;
            required &= required - 1;
            if found[field].is_absent() {
                return Ok(Some(field));
            }
        }
        Ok(None)
    }
}

impl Selector {
    /// The fields of `key`, a list of paths and names of the profile, and after them the field
    /// `time`, of which only the content of the first value is found. Without a `key`, the fields
    /// are those of the profile's own keys.
    ///
    /// # Errors
    /// [`FieldError`] if an item is neither a path nor a name, or there are more than
    /// [`MAX_FIELDS`].
    pub fn new(
        profile: Option<&Profile>,
        key: Option<&str>,
        time: Option<&str>,
    ) -> Result<Self, FieldError> {
        let TypeFields {
            names,
            keys,
            types,
            other,
        } = type_fields(profile, key, time)?;
        Ok(Self {
            types: types
                .into_iter()
                .map(|(tag, fields)| (tag, Selection::new(&fields, keys)))
                .collect(),
            other: Selection::new(&other, keys),
            names,
            keys,
        })
    }

    /// The number of fields, the time included.
    pub fn fields(&self) -> usize {
        self.names.len()
    }

    /// The number of fields of the key.
    pub fn keys(&self) -> usize {
        self.keys
    }

    /// What messages call a field.
    ///
    /// # Panics
    /// If there is no such field.
    pub fn name(&self, field: usize) -> &str {
        &self.names[field]
    }

    /// Finds the fields of a record, which is one element. `found` has [`fields`](Self::fields)
    /// places, all absent; values that are not one piece of the record are appended to `scratch`.
    /// Returns the first required field that the record lacks.
    ///
    /// # Errors
    /// [`Invalid`] if an element that is read is no BER, or bytes follow the record.
    ///
    /// # Panics
    /// If `found` has fewer places.
    #[inline]
    pub fn select<P: Location>(
        &self,
        record: &[u8],
        scratch: &mut Vec<u8>,
        found: &mut [P],
    ) -> Result<Option<usize>, Invalid> {
        self.select_among(record, u64::MAX, scratch, found)
    }

    /// [`select`](Self::select) that returns the first required field of those whose bits are set
    /// in `among`.
    ///
    /// # Errors
    /// As [`select`](Self::select).
    ///
    /// # Panics
    /// As [`select`](Self::select).
    #[inline]
    pub fn select_among<P: Location>(
        &self,
        record: &[u8],
        among: u64,
        scratch: &mut Vec<u8>,
        found: &mut [P],
    ) -> Result<Option<usize>, Invalid> {
        let element = read_element(record, 0, 0)?;
        if element.end != record.len() {
            return Err(Invalid {
                at: element.end,
                problem: "bytes follow the value of the record",
            });
        }
        let tag = element.header.tag;
        let mut types = self.types.iter();
        let selection = types
            .find(|(of, _)| *of == tag)
            .map_or(&self.other, |(_, selection)| selection);
        if !element.header.constructed {
            return Ok(first_of(selection.required & among));
        }
        let content = &record[..element.content_end];
        selection.select(content, element.header.content, among, scratch, found)
    }

    /// The first required field of those whose bits are set in `among`: what a record without an
    /// element lacks, as filler alone.
    #[inline]
    pub fn first_required(&self, among: u64) -> Option<usize> {
        first_of(self.other.required & among)
    }
}

/// The first of these fields, which are bits.
#[inline]
fn first_of(fields: u64) -> Option<usize> {
    (fields != 0).then_some(fields.trailing_zeros() as usize)
}
