//! The time of a record: in one field, or in several that are joined, such as a date and a time of
//! day.

use super::fault::{Excerpt, Problem};
use super::field_set::{FieldSet, MissingField};
use crate::field_set::FieldBytes;
use crate::time::format::TimeReader;

/// Reads the time of a record.
#[derive(Debug, Clone)]
pub(super) struct TimeExtractor {
    pub(super) reader: TimeReader,
    /// The number of its first field, from 0.
    pub(super) number: usize,
    pub(super) place: TimePlace,
}

/// How the fields of the time are found.
#[derive(Debug, Clone)]
pub(super) enum TimePlace {
    /// In one pass with the fields of the key, of which it is number `rank`; `in_key` if the key
    /// includes it.
    Joint { rank: usize, in_key: bool },
    /// In a pass of its own: the key is the whole record, or has an open range.
    Apart(FieldSet),
    /// In a pass of their own: the time is in several fields.
    Several(JoinedFields),
}

/// Several fields whose texts make up one, with a blank between them.
#[derive(Debug, Clone)]
pub(super) struct JoinedFields {
    pub(super) set: FieldSet,
    /// For each of the fields, in the order in which they are joined, which one of the set it is.
    ranks: Vec<usize>,
    text: Vec<u8>,
}

impl JoinedFields {
    /// Joins the fields with these numbers, from 0.
    pub(super) fn new(numbers: &[usize]) -> Self {
        let set = FieldSet::of(numbers);
        let rank = |number: &usize| set.count_from(0) - set.count_from(*number);
        Self {
            ranks: numbers.iter().map(rank).collect(),
            set,
            text: Vec::new(),
        }
    }

    /// The tick in the fields, `chosen` as far as the record has them. `number` is the first of
    /// them.
    pub(super) fn read_tick(
        &mut self,
        reader: &mut TimeReader,
        number: usize,
        chosen: &[FieldBytes],
        (content, scratch): (&[u8], &[u8]),
        lacking: Option<MissingField>,
    ) -> Result<i64, Problem> {
        if let Some(lacking) = lacking {
            return Err(Problem::LacksTime(lacking));
        }
        self.text.clear();
        for (index, rank) in self.ranks.iter().enumerate() {
            if index > 0 {
                self.text.push(b' ');
            }
            let field = chosen[*rank].bytes(content, scratch);
            self.text.extend_from_slice(field.trim_ascii());
        }
        let tick = reader.tick(&self.text);
        tick.ok_or_else(|| no_time(reader, number, self.ranks.len() - 1, &self.text))
    }
}

/// The selected field, unless the record lacks it.
#[inline]
pub(super) fn present(field: Option<&FieldBytes>) -> Option<FieldBytes> {
    field.copied().filter(|field| *field != FieldBytes::Absent)
}

/// The tick in the selected field with this number, `found` unless the record lacks it.
#[inline]
pub(super) fn read_tick(
    reader: &mut TimeReader,
    number: usize,
    found: Option<FieldBytes>,
    content: &[u8],
    scratch: &[u8],
    lacking: Option<MissingField>,
) -> Result<i64, Problem> {
    match found {
        Some(field) => {
            let text = field.bytes(content, scratch);
            let tick = reader.tick(text);
            tick.ok_or_else(|| no_time(reader, number, 0, text))
        }
        None => Err(Problem::LacksTime(MissingField {
            field: number,
            fields: lacking.map_or(0, |lacking| lacking.fields),
        })),
    }
}

/// Out of line: it would copy the excerpt on the path of every record.
#[cold]
#[inline(never)]
fn no_time(reader: &TimeReader, field: usize, joined: usize, text: &[u8]) -> Problem {
    let value = Excerpt::new(text);
    Problem::NoTime {
        field,
        joined,
        out_of_range: reader.is_out_of_range(text),
        value,
    }
}
