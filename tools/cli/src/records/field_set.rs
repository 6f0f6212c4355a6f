//! The fields that make up the key, as sets of numbers, and their selection from a record.

use std::ops::RangeInclusive;

/// The fields of the key: numbers from 0, in disjoint ascending ranges, so that one pass over the
/// record finds them.
///
/// The order in which the user listed them is dropped: it does not affect which keys are equal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FieldSet {
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
    pub(super) fn new(mut ranges: Vec<RangeInclusive<usize>>) -> Self {
        ranges.sort_by_key(|range| *range.start());
        let highest = ranges.iter().map(|range| match *range.end() {
            usize::MAX => *range.start(),
            end => end,
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

    /// Passes those of a record's `fields` that are in the set to `take`.
    ///
    /// # Errors
    /// [`MissingField`] if the record ends before the last of them.
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
                    None if *range.end() == usize::MAX && next >= self.required => return Ok(()),
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

/// A record lacks a field of the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MissingField {
    /// The number of the first such field, from 0.
    pub(crate) field: usize,
    /// The number of fields of the record.
    pub(crate) fields: usize,
}

#[cfg(test)]
mod tests {
    use super::super::field_list::FieldList;
    use super::*;

    fn set(text: &str) -> FieldSet {
        FieldList::parse(text, false).unwrap().resolve(&[]).unwrap()
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
