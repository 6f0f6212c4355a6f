//! The fields that make up the key, as sets of numbers, and their selection from a record.

use std::fmt;
use std::iter::repeat_n;
use std::ops::RangeInclusive;

/// Where the value of a field is: in the record, or, if it is not one piece of it, in the scratch
/// memory. A missing field has no bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldBytes {
    /// A piece of the record.
    Record {
        /// Its first byte.
        start: usize,
        /// The byte behind its last one.
        end: usize,
    },
    /// A piece of the scratch memory.
    Scratch {
        /// Its first byte.
        start: usize,
        /// The byte behind its last one.
        end: usize,
    },
    /// The record has no such field.
    Absent,
}

impl FieldBytes {
    /// The value of the field.
    #[inline]
    pub fn bytes<'a>(&self, record: &'a [u8], scratch: &'a [u8]) -> &'a [u8] {
        match *self {
            Self::Record { start, end } => &record[start..end],
            Self::Scratch { start, end } => &scratch[start..end],
            Self::Absent => &[],
        }
    }
}

/// The fields that are selected of a record.
#[derive(Debug, Clone, Default)]
pub struct Selected {
    /// Where their values are.
    pub fields: Vec<FieldBytes>,
    /// The bytes of those that are not one piece of the record.
    pub scratch: Vec<u8>,
}

impl Selected {
    /// The values of the fields of a record with this content.
    #[inline]
    pub fn values<'a>(&'a self, content: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
        let fields = self.fields.iter();
        fields.map(move |field| field.bytes(content, &self.scratch))
    }
}

/// The fields of the key: numbers from 0, in disjoint ascending ranges, so that one pass over the
/// record finds them.
///
/// The order in which the user listed them is dropped: it does not affect which keys are equal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldSet {
    ranges: Vec<RangeInclusive<usize>>,
    /// The number of fields a record must have. Merging an open range with others loses it, so it
    /// is stored.
    required: usize,
}

impl FieldSet {
    /// Every field.
    pub(super) fn all() -> Self {
        Self {
            ranges: vec![0..=usize::MAX],
            required: 0,
        }
    }

    /// The fields in these ranges, which may overlap.
    pub(super) fn new(ranges: Vec<RangeInclusive<usize>>) -> Self {
        Self::without(ranges, Vec::new())
    }

    /// The fields in the `included` ranges, all if there are none, without the `excluded` ones. A
    /// record need not have all fields to have all but some.
    pub(super) fn without(
        included: Vec<RangeInclusive<usize>>,
        mut excluded: Vec<RangeInclusive<usize>>,
    ) -> Self {
        excluded.sort_by_key(|range| *range.start());
        let all = [0..=usize::MAX];
        let whole: &[_] = if included.is_empty() { &all } else { &included };
        let rest = whole.iter().flat_map(|range| subtract(range, &excluded));
        let mut ranges: Vec<RangeInclusive<usize>> = rest.collect();
        ranges.sort_by_key(|range| *range.start());
        let highest = included.iter().filter_map(|range| match *range.end() {
            usize::MAX => {
                let is_excluded = excluded.iter().any(|other| other.contains(range.start()));
                (!is_excluded).then_some(*range.start())
            }
            _ => Some(*subtract(range, &excluded).last()?.end()),
        });
        let required = highest.max().map_or(0, |highest| highest + 1);
        let mut disjoint: Vec<RangeInclusive<usize>> = Vec::new();
        for range in ranges {
            match disjoint.last_mut() {
                Some(last) if *range.start() <= last.end().saturating_add(1) => {
                    *last = *last.start()..=*last.end().max(range.end());
                }
                _ => disjoint.push(range),
            }
        }
        Self {
            ranges: disjoint,
            required,
        }
    }

    /// The fields with these numbers, from 0.
    pub(super) fn of(numbers: &[usize]) -> Self {
        Self::new(numbers.iter().map(|number| *number..=*number).collect())
    }

    /// The fields with these numbers, from 0, all different, and how they are put into this order
    /// once they are selected.
    pub(super) fn in_order(numbers: &[usize]) -> (Self, FieldOrder) {
        let set = Self::of(numbers);
        let rank = |number: &usize| set.count_from(0) - set.count_from(*number);
        let ranks: Vec<usize> = numbers.iter().map(rank).collect();
        let order = FieldOrder {
            ranks: if ranks.is_sorted() { Vec::new() } else { ranks },
        };
        (set, order)
    }

    /// The set with the field `more`, the rank of that field in it, and whether it was in the set
    /// before. `None` if the set has an open range: `required` would then cover the field too, and
    /// no longer be the number of fields that the key alone requires.
    pub(crate) fn with(&self, more: usize) -> Option<(Self, usize, bool)> {
        if self.ranges.iter().any(|range| *range.end() == usize::MAX) {
            return None;
        }
        let contained = self.ranges.iter().any(|range| range.contains(&more));
        let mut ranges = self.ranges.clone();
        ranges.push(more..=more);
        let set = Self::new(ranges);
        let rank = set.count_from(0) - set.count_from(more);
        Some((set, rank, contained))
    }

    /// Passes those of a record's `fields` that are in the set to `take`. Fails if the record ends
    /// before the last of them.
    #[inline]
    pub(crate) fn select<F>(
        &self,
        mut fields: impl Iterator<Item = F>,
        mut take: impl FnMut(F),
    ) -> Result<(), MissingField> {
        let mut next = 0;
        for range in &self.ranges {
            while next <= *range.end() {
                match fields.next() {
                    Some(field) if next >= *range.start() => take(field),
                    Some(_) => {}
                    // Only the fields of open ranges may be absent.
                    None if next >= self.required => return Ok(()),
                    None => {
                        return Err(MissingField {
                            field: next.max(*range.start()),
                            fields: next,
                        });
                    }
                }
                next += 1;
            }
        }
        Ok(())
    }

    /// The number of fields that a record must have.
    #[inline]
    pub(super) const fn required(&self) -> usize {
        self.required
    }

    /// Whether the set has no field.
    pub(super) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Whether the set has the field with this number, from 0.
    pub(crate) fn contains(&self, field: usize) -> bool {
        self.ranges.iter().any(|range| range.contains(&field))
    }

    /// Whether the set has every field below this number.
    pub(crate) fn contains_all(&self, fields: usize) -> bool {
        let first = self.ranges.first();
        fields == 0 || first.is_some_and(|range| *range.start() == 0 && *range.end() >= fields - 1)
    }

    /// Removes from `chosen`, which has all of `fields` fields, those that are not in the set.
    #[inline]
    pub(crate) fn retain<T>(&self, fields: usize, chosen: &mut Vec<T>) {
        // The options mostly select all fields.
        if !self.contains_all(fields) {
            let mut field = 0..;
            chosen.retain(|_| field.next().is_some_and(|field| self.contains(field)));
        }
    }

    /// The number of fields in the set from number `field` on. Of an open range only the fields
    /// that a record must have count.
    pub(crate) fn count_from(&self, field: usize) -> usize {
        self.ranges
            .iter()
            .filter(|range| *range.end() >= field)
            .map(|range| match (*range.start().max(&field), *range.end()) {
                (start, usize::MAX) => self.required.saturating_sub(start),
                (start, end) => end - start + 1,
            })
            .sum()
    }
}

/// The parts of a range that are in none of the `excluded` ones, which are sorted by their starts.
fn subtract(
    range: &RangeInclusive<usize>,
    excluded: &[RangeInclusive<usize>],
) -> Vec<RangeInclusive<usize>> {
    let mut rest = Vec::new();
    let (mut start, end) = (*range.start(), *range.end());
    for gap in excluded {
        if *gap.end() < start {
            continue;
        }
        if *gap.start() > end {
            break;
        }
        if *gap.start() > start {
            rest.push(start..=*gap.start() - 1);
        }
        if *gap.end() >= end {
            return rest;
        }
        start = *gap.end() + 1;
    }
    rest.push(start..=end);
    rest
}

/// The fields of the key, and which of them are compared where only a whole record tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyFields {
    /// The fields that are read.
    pub set: FieldSet,
    /// Those of the set, which then is all fields, that are compared.
    pub picked: Option<PickedFields>,
}

/// An order of the fields of a set other than that of the record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldOrder {
    /// For each field, which one of the set it is; empty in the order of the record.
    ranks: Vec<usize>,
}

impl FieldOrder {
    /// Whether it is that of the record.
    pub(crate) fn is_of_record(&self) -> bool {
        self.ranks.is_empty()
    }

    /// The number of fields that it needs.
    pub fn fields(&self) -> usize {
        self.ranks.len()
    }

    /// Puts the fields of a set into this order.
    pub fn apply<T: Copy>(&self, fields: &mut Vec<T>) {
        if !self.is_of_record() {
            *fields = self.ranks.iter().map(|rank| fields[*rank]).collect();
        }
    }
}

/// A field of a record, counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Position {
    /// 0 is the first field.
    FromStart(usize),
    /// 0 is the last field.
    FromEnd(usize),
}

impl fmt::Display for Position {
    /// As it is typed, where 1 and -1 are the first field and the last.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FromStart(number) => write!(f, "{}", number + 1),
            Self::FromEnd(number) => write!(f, "-{}", number + 1),
        }
    }
}

/// The first field and the last; the latter is `None` in an open range.
pub(crate) type PickedRange = (Position, Option<Position>);

/// Fields of which some are counted from the end of the record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PickedFields {
    /// Without any, all fields.
    included: Vec<PickedRange>,
    excluded: Vec<PickedRange>,
    /// Whether each field of the current record is compared.
    compared: Vec<bool>,
}

impl PickedFields {
    pub(super) fn new(included: Vec<PickedRange>, excluded: Vec<PickedRange>) -> Self {
        Self {
            included,
            excluded,
            compared: Vec::new(),
        }
    }

    /// Removes the fields that are not compared from `fields`, which has all of a record. With
    /// `may_lack`, a missing field is [`FieldBytes::Absent`]: in front of them if it is counted
    /// from the end, else behind them.
    ///
    /// # Errors
    /// The first position that the record lacks. A range is missing if its first field or its last
    /// one is, or if they cross.
    pub fn pick(&mut self, fields: &mut Vec<FieldBytes>, may_lack: bool) -> Result<(), Position> {
        let number = fields.len();
        self.compared.clear();
        self.compared.resize(number, self.included.is_empty());
        let (mut in_front, mut behind) = (Vec::new(), Vec::new());
        for range in &self.included {
            match located(*range, number) {
                Ok(found) => self.compared[found].fill(true),
                Err(position) if !may_lack => return Err(position),
                Err(_) => {
                    if let Some(found) = located_part(*range, number) {
                        self.compared[found].fill(true);
                    }
                    in_front.extend(lacking_in_front(*range, number));
                    behind.extend(lacking_behind(*range, number));
                }
            }
        }
        for range in &self.excluded {
            if let Some(found) = located_part(*range, number) {
                self.compared[found].fill(false);
            }
        }
        let mut compared = self.compared.iter();
        fields.retain(|_| compared.next() == Some(&true));
        if in_front.is_empty() && behind.is_empty() {
            return Ok(());
        }
        let absent = |ranges| repeat_n(FieldBytes::Absent, count_in(ranges));
        fields.splice(..0, absent(in_front));
        fields.extend(absent(behind));
        Ok(())
    }
}

/// The numbers from the end, all beyond the first field, of the fields of a range that a record
/// with this number of fields lacks.
fn lacking_in_front((first, last): PickedRange, number: usize) -> Option<RangeInclusive<usize>> {
    let Position::FromEnd(farthest) = first else {
        return None;
    };
    let nearest = match last {
        Some(Position::FromEnd(nearest)) => nearest.max(number),
        Some(Position::FromStart(_)) | None => number,
    };
    (nearest <= farthest).then_some(nearest..=farthest)
}

/// The numbers of those behind the last field. Of a range without such a last field, only the first
/// one must be there.
fn lacking_behind(range: PickedRange, number: usize) -> Option<RangeInclusive<usize>> {
    let (first, last) = match range {
        (Position::FromStart(first), Some(Position::FromStart(last))) => (first, last),
        (Position::FromStart(first), Some(Position::FromEnd(_)) | None) => (first, first),
        // A range has its lower field first, so it ends in the record.
        (Position::FromEnd(_), _) => return None,
    };
    let first = first.max(number);
    (first <= last).then_some(first..=last)
}

/// How many numbers are in any of these ranges.
fn count_in(mut ranges: Vec<RangeInclusive<usize>>) -> usize {
    ranges.sort_unstable_by_key(|range| *range.start());
    let (mut count, mut next) = (0, 0);
    for range in ranges {
        let end = *range.end() + 1;
        count += end.saturating_sub(next.max(*range.start()));
        next = next.max(end);
    }
    count
}

/// The numbers of a range in a record with this number of fields.
fn located(range: PickedRange, number: usize) -> Result<RangeInclusive<usize>, Position> {
    let number_of = |position| match position {
        Position::FromStart(at) if at < number => Ok(at),
        Position::FromEnd(at) if at < number => Ok(number - 1 - at),
        Position::FromStart(_) | Position::FromEnd(_) => Err(position),
    };
    let first = number_of(range.0)?;
    match range.1 {
        None => Ok(first..=number - 1),
        Some(last) => match number_of(last)? {
            last if last >= first => Ok(first..=last),
            _ => Err(last),
        },
    }
}

/// The numbers of the fields of a range that a record with this number of fields has.
fn located_part(range: PickedRange, number: usize) -> Option<RangeInclusive<usize>> {
    let first = match range.0 {
        Position::FromStart(at) => at,
        Position::FromEnd(at) => number.saturating_sub(at + 1),
    };
    let last = match range.1 {
        None => number.checked_sub(1)?,
        Some(Position::FromStart(at)) => at.min(number.checked_sub(1)?),
        Some(Position::FromEnd(at)) => number.checked_sub(at + 1)?,
    };
    (first <= last).then_some(first..=last)
}

/// A record lacks a field of the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MissingField {
    /// The number of the first such field, from 0.
    pub(crate) field: usize,
    /// The number of fields of the record.
    pub(crate) fields: usize,
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::super::field_list::FieldList;
    use super::*;

    fn set(text: &str) -> FieldSet {
        let fields = FieldList::parse(text, false).unwrap().resolve(&[]).unwrap();
        assert_eq!(fields.picked, None, "{text}");
        fields.set
    }

    fn chosen(text: &str, fields: usize) -> Result<Vec<usize>, MissingField> {
        let mut taken = Vec::new();
        set(text)
            .select(1..=fields, |field| taken.push(field))
            .map(|()| taken)
    }

    #[test]
    fn numbers_ranges_and_open_ranges() {
        assert_eq!(chosen("2", 3), Ok(vec![2]));
        assert_eq!(chosen("2,5-7", 9), Ok(vec![2, 5, 6, 7]));
        assert_eq!(chosen("3-", 5), Ok(vec![3, 4, 5]));
        assert_eq!(chosen("3-", 3), Ok(vec![3]));
        assert_eq!(chosen("1,3-,2", 4), Ok(vec![1, 2, 3, 4]));
    }

    #[test]
    fn one_more_field_has_a_rank() {
        for (text, more, rank, contained) in [
            ("1-3", 2, 1, true),
            ("1-3", 4, 3, false),
            ("3,5-6", 1, 0, false),
            ("3,5-6", 4, 1, false),
            ("3,5-6", 9, 3, false),
            ("3,5-6", 6, 2, true),
        ] {
            let (set, found, was_in) = set(text).with(more - 1).unwrap();
            assert_eq!((found, was_in), (rank, contained), "{text} with {more}");
            let mut taken = Vec::new();
            set.select(1..=9, |field| taken.push(field)).unwrap();
            assert_eq!(taken[rank], more, "{text} with {more}");
        }
        assert_eq!(set("2-").with(0), None);
    }

    #[test]
    fn order_and_overlap_do_not_matter() {
        assert_eq!(set("7,1,5-6"), set("1,5-7"));
        assert_eq!(set("2-4,3-6"), set("2-6"));
    }

    #[test]
    fn a_short_record_reports_the_missing_field() {
        let lacks = |field, fields| Err(MissingField { field, fields });
        assert_eq!(chosen("2,5-7", 5), lacks(5, 5));
        assert_eq!(chosen("9", 5), lacks(8, 5));
        assert_eq!(chosen("4-", 3), lacks(3, 3));
        assert_eq!(set("2,5-7").count_from(5), 2);
        assert_eq!(set("2,5-7").count_from(0), 4);
        assert_eq!(set("3-").count_from(2), 1);
        assert_eq!(set("2,3-").count_from(1), 2);
    }

    #[test]
    fn all_fields_but_some() {
        for (text, fields, expected) in [
            ("!3", 5, &[1, 2, 4, 5][..]),
            ("!3", 2, &[1, 2]),
            ("!3", 3, &[1, 2]),
            ("!3,!5", 6, &[1, 2, 4, 6]),
            ("!2-4", 6, &[1, 5, 6]),
            ("!4-", 6, &[1, 2, 3]),
            ("!1", 1, &[]),
            ("!1,!1-2", 4, &[3, 4]),
            ("2-5,!3", 6, &[2, 4, 5]),
            ("3-,!5", 6, &[3, 4, 6]),
            ("3-,!5", 3, &[3]),
        ] {
            assert_eq!(chosen(text, fields).as_deref(), Ok(expected), "{text}");
        }
        // What is not excluded stays required if it is listed.
        let lacks = |field, fields| Err(MissingField { field, fields });
        assert_eq!(chosen("2-5,!3", 4), lacks(4, 4));
        assert_eq!(chosen("2-5,!5", 4), Ok(vec![2, 3, 4]));
        assert_eq!(chosen("3-,!5", 2), lacks(2, 2));
    }

    /// The numbers, from 1, of the fields of a record that are picked; 0 is a missing one.
    fn picked(text: &str, fields: usize, may_lack: bool) -> Result<Vec<usize>, String> {
        let list = FieldList::parse(text, false).unwrap();
        let mut picked = list.resolve(&[]).unwrap().picked.unwrap();
        let field = |at| FieldBytes::Record { start: at, end: at };
        let mut found: Vec<FieldBytes> = (1..=fields).map(field).collect();
        (picked.pick(&mut found, may_lack)).map_err(|position| position.to_string())?;
        Ok(numbers(&found))
    }

    fn numbers(fields: &[FieldBytes]) -> Vec<usize> {
        let number = |field: &FieldBytes| match field {
            FieldBytes::Record { start, .. } => *start,
            FieldBytes::Scratch { .. } | FieldBytes::Absent => 0,
        };
        fields.iter().map(number).collect()
    }

    #[test]
    fn fields_are_counted_from_the_end() {
        for (text, fields, expected) in [
            ("-1", 3, Ok(vec![3])),
            ("-1", 1, Ok(vec![1])),
            ("-1", 0, Err("-1")),
            ("-2", 1, Err("-2")),
            ("1,-1", 3, Ok(vec![1, 3])),
            ("1,-1", 1, Ok(vec![1])),
            ("-3-", 5, Ok(vec![3, 4, 5])),
            ("-3--2", 5, Ok(vec![3, 4])),
            ("2--2", 5, Ok(vec![2, 3, 4])),
            ("2--2", 3, Ok(vec![2])),
            ("2--2", 2, Err("-2")),
            ("!-1", 3, Ok(vec![1, 2])),
            ("!-1", 0, Ok(vec![])),
            ("!-2-", 1, Ok(vec![])),
            ("!2,!-1", 4, Ok(vec![1, 3])),
            ("2-,!-1", 4, Ok(vec![2, 3])),
            ("-2,4", 3, Err("4")),
        ] {
            let expected = expected.map_err(str::to_owned);
            assert_eq!(picked(text, fields, false), expected, "{text} of {fields}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        /// A model that asks for each field whether an item names it.
        #[test]
        fn picked_fields_equal_the_model(
            included in vec((-4_i64..5, prop::option::of(-4_i64..5)), 0..4),
            excluded in vec((-4_i64..5, prop::option::of(-4_i64..5)), 0..3),
            fields in 0_usize..7,
        ) {
            let text = |(first, last): &(i64, Option<i64>)| match last {
                None => format!("{first}-"),
                Some(last) if last == first => format!("{first}"),
                Some(last) => format!("{first}-{last}"),
            };
            let items = included.iter().map(text);
            let without = excluded.iter().map(|range| format!("!{}", text(range)));
            let typed: Vec<String> = items.chain(without).collect();
            let Ok(list) = FieldList::parse(&typed.join(","), false) else {
                return Ok(());
            };
            let Ok(KeyFields { set, picked }) = list.resolve(&[]) else {
                return Ok(());
            };
            let number = |at: i64| if at < 0 { fields as i64 + 1 + at } else { at };
            let has = |ranges: &[(i64, Option<i64>)], field: i64| {
                let last = |end: Option<i64>| end.map_or(fields as i64, number);
                ranges.iter().any(|(first, end)| (number(*first)..=last(*end)).contains(&field))
            };
            let expected: Vec<usize> = (1..=fields as i64)
                .filter(|field| included.is_empty() || has(&included, *field))
                .filter(|field| !has(&excluded, *field))
                .map(|field| field as usize)
                .collect();
            // As if there were empty fields on both sides of the record.
            let with_lacking: Vec<usize> = (-9..=15)
                .filter(|at| {
                    included.iter().any(|(first, end)| {
                        let first_at = number(*first);
                        let last = match end {
                            Some(end) if *end > 0 => *end,
                            _ if *first > fields as i64 => first_at,
                            end => end.map_or(fields as i64, number),
                        };
                        (first_at..=last).contains(at)
                    }) || (included.is_empty() && (1..=fields as i64).contains(at))
                })
                .map(|at| if (1..=fields as i64).contains(&at) { at } else { 0 })
                .filter(|field| *field == 0 || !has(&excluded, *field))
                .map(|field| field as usize)
                .collect();
            if let Some(mut picked) = picked.clone() {
                let mut found = (1..=fields).map(|at| FieldBytes::Record { start: at, end: at }).collect();
                prop_assert!(picked.pick(&mut found, true).is_ok());
                prop_assert_eq!(numbers(&found), with_lacking, "{:?} of {}", typed, fields);
            }
            let mut found = Vec::new();
            let fields_of_record = (1..=fields).map(|at| FieldBytes::Record { start: at, end: at });
            let selected = set.select(fields_of_record, |field| found.push(field));
            let complete = match picked {
                None => selected.is_ok(),
                Some(mut picked) => picked.pick(&mut found, false).is_ok(),
            };
            if complete {
                prop_assert_eq!(numbers(&found), expected, "{:?}", typed);
            }
        }
    }

    #[test]
    fn ranges_that_meet_still_require_all_their_fields() {
        let cases = [
            ("2-5,4-", 5),
            ("4-,2-5", 5),
            ("2,3-", 3),
            ("2-,1-3", 3),
            ("2-", 2),
        ];
        for (text, required) in cases {
            let lacking = MissingField {
                field: required - 1,
                fields: required - 1,
            };
            assert_eq!(chosen(text, required - 1), Err(lacking), "{text}");
            assert!(chosen(text, required).is_ok(), "{text}");
        }
    }
}
