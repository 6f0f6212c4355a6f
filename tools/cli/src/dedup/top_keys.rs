//! `--top-keys`: the keys with the most duplicates, and how many, from a table of fixed size.
//!
//! The table is Space-Saving (Metwally, Agrawal, El Abbadi: Efficient Computation of Frequent and
//! Top-k Elements in Data Streams, 2005). A key that has no entry while the table is full takes the
//! entry with the lowest count, and counts on from there:
//!
//! ```text
//! high   a 9   b 7   c 2
//! low      9     7     2      d comes: it has 1 duplicate at least, and 3 at most
//!
//! high   a 9   b 7   d 3
//! low      9     7     1      c has 2 at most, as any key without an entry
//! ```
//!
//! So the number of duplicates of a key is between its two counts, and at most the lowest `high` if
//! it has no entry. Until an entry is taken, all counts are exact. The table follows the verdicts
//! in the order of the stream, so it does not depend on the number of threads.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::hash::{BuildHasherDefault, Hasher};

use echoless::KeyHash;
use echoless_records::chunk::Chunk;
use echoless_records::failure::Failure;
use echoless_records::field_list::FieldList;
use echoless_records::field_set::{FieldBytes, FieldOrder, KeyFields, Selected};
use echoless_records::format::Format;
use echoless_records::keys::SharedFormat;
use serde::Serialize;

use super::observers::Observer;
use super::outputs::{Lines, Outputs};
use super::reports::fields::Fields;
use super::reports::stats::RunCounts;
use crate::config::RecordConfig;

/// The entries for each key that is listed, and the fewest entries: more make the counts of those
/// at the top more exact.
const ENTRIES_PER_KEY: usize = 10;
const FEWEST_ENTRIES: usize = 10_000;

/// The most bytes of a key that are shown.
const SHOWN_BYTES: usize = 256;

/// Counts the duplicates of keys.
#[derive(Debug)]
pub(super) struct TopKeys {
    /// The number of keys that are listed.
    listed: usize,
    table: CountTable<KeyText>,
    format: SharedFormat,
    key: Option<FieldList>,
    /// The fields of the key and their order, once the header is read, and the number of the names
    /// that they are chosen by.
    fields: Option<(KeyFields, FieldOrder)>,
    names: u32,
}

/// A key as text: its fields, or the whole record.
#[derive(Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct KeyText {
    fields: Vec<String>,
    is_cut: bool,
}

/// A line of the file.
#[derive(Debug, Serialize)]
struct Line<'a> {
    duplicates_low: u64,
    duplicates_high: u64,
    key: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    cut: Option<bool>,
}

impl TopKeys {
    /// A table for a list of so many keys of these records.
    pub(super) fn new(records: &RecordConfig, listed: usize) -> Self {
        let entries = listed.saturating_mul(ENTRIES_PER_KEY).max(FEWEST_ENTRIES);
        Self {
            listed,
            table: CountTable::new(entries),
            format: records.reading.format.clone(),
            key: records.reading.key.clone(),
            fields: None,
            names: 0,
        }
    }

    /// Counts the duplicates of the next chunk. Fails if a field of the key is not in the header.
    fn observe(&mut self, chunk: &Chunk) -> Result<(), Failure> {
        let names = chunk.header.field_names.as_ref();
        let number = names.map_or(0, |names| names.number);
        if let Some(key) = &self.key
            && (self.fields.is_none() || number != self.names)
        {
            self.fields = match names.filter(|_| number > 0) {
                // A chunk of which no record was judged.
                Some(names) => key.resolve_as(names),
                None => {
                    let first = names.map_or(&[][..], |names| &names.first);
                    Some((key.resolve(first)?, FieldOrder::default()))
                }
            };
            self.names = number;
        }
        for key in chunk.verdicts.of_keys.duplicates() {
            let text = || key_text(&*self.format, self.fields.as_ref(), chunk, key);
            self.table.add(chunk.keys.hashes[key], text);
        }
        Ok(())
    }

    /// The most duplicates that a key can have which is not listed; 0 if all with duplicates are.
    fn unlisted_high(&self) -> u64 {
        let mut counts: Vec<u64> = self.table.entries.iter().map(|entry| entry.high).collect();
        let without_entry = self.table.most_without_entry;
        if counts.len() <= self.listed {
            return without_entry;
        }
        // Descending: the first of those that are not listed.
        let (_, unlisted, _) = counts.select_nth_unstable_by(self.listed, |a, b| b.cmp(a));
        without_entry.max(*unlisted)
    }

    /// The keys with the most duplicates first.
    fn lines(&self) -> Lines {
        let mut entries: Vec<&Entry<KeyText>> = self.table.entries.iter().collect();
        entries.sort_unstable_by(|a, b| {
            (b.high, b.low, &a.text, a.hash).cmp(&(a.high, a.low, &b.text, b.hash))
        });
        let mut lines = Lines::default();
        for entry in entries.into_iter().take(self.listed) {
            lines.push_json(&Line {
                duplicates_low: entry.low,
                duplicates_high: entry.high,
                key: &entry.text.fields,
                cut: entry.text.is_cut.then_some(true),
            });
        }
        lines
    }
}

impl Observer for TopKeys {
    fn on_chunk(&mut self, chunk: &mut Chunk, _: &mut RunCounts) -> Result<(), Failure> {
        self.observe(chunk)
    }

    fn finish(&mut self, outputs: &mut Outputs) -> Result<(), Failure> {
        outputs.write_top_keys(&self.lines())
    }

    fn stats(&self, _: &RunCounts, fields: &mut Fields) {
        fields.add("unlisted_duplicates_high", self.unlisted_high());
    }
}

/// The text of the key with this hash of the chunk.
fn key_text(
    format: &dyn Format,
    fields: Option<&(KeyFields, FieldOrder)>,
    chunk: &Chunk,
    hash: usize,
) -> KeyText {
    let record = chunk.record_of(hash);
    let content = &chunk.bytes.buffer[chunk.record_start(record)..chunk.layout.ends[record]];
    let content = format.content(content);
    let mut text = KeyText::default();
    match fields {
        None => text.push(content),
        Some((KeyFields { set, picked }, order)) => {
            let mut chosen = Selected::default();
            // With `--missing empty`, the record may lack some of them.
            let _ = format.select(set, content, &mut chosen);
            let fields = &mut chosen.fields;
            if let Some(picked) = picked {
                let _ = picked.clone().pick(fields, true);
            }
            fields.resize(fields.len().max(order.fields()), FieldBytes::Absent);
            order.apply(fields);
            let shown = format.facts().shown;
            (chosen.values(content)).for_each(|field| text.push(&shown(field)));
        }
    }
    text
}

impl KeyText {
    /// Appends a field, as far as there is room.
    fn push(&mut self, field: &[u8]) {
        if self.is_cut {
            return;
        }
        let used: usize = self.fields.iter().map(String::len).sum();
        let room = SHOWN_BYTES.saturating_sub(used);
        self.is_cut = field.len() > room;
        let mut shown = &field[..field.len().min(room)];
        // Not inside a character.
        if let Err(error) = std::str::from_utf8(shown)
            && self.is_cut
            && error.error_len().is_none()
        {
            shown = &shown[..error.valid_up_to()];
        }
        let mut text = String::new();
        for part in shown.utf8_chunks() {
            text.push_str(part.valid());
            for byte in part.invalid() {
                let _ = write!(text, "\\x{byte:02x}");
            }
        }
        self.fields.push(text);
    }
}

/// The table: a heap with the lowest `high` at its root.
///
/// Entries stay where they are, so that a move in the heap changes two numbers and no map: beyond
/// the table, every duplicate makes about as many moves as the heap has levels.
#[derive(Debug)]
struct CountTable<T> {
    most: usize,
    entries: Vec<Entry<T>>,
    /// The indices of the entries.
    heap: Vec<u32>,
    /// The index of the entry of a key.
    indices: HashMap<u64, u32, BuildHasherDefault<KeyAsHash>>,
    /// The highest count that an entry had when another key took it.
    most_without_entry: u64,
}

#[derive(Debug)]
struct Entry<T> {
    hash: u64,
    low: u64,
    high: u64,
    /// Where in the heap its index is.
    place: u32,
    text: T,
}

/// Passes a key through: it is a hash.
#[derive(Debug, Default)]
struct KeyAsHash(u64);

impl Hasher for KeyAsHash {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, hash: u64) {
        // The map takes its buckets from the low bits and a tag from the high ones.
        self.0 = hash.rotate_left(32);
    }
}

impl<T> CountTable<T> {
    /// A table of at most so many entries, one at least.
    fn new(most: usize) -> Self {
        Self {
            most: most.min(u32::MAX as usize),
            entries: Vec::new(),
            heap: Vec::new(),
            indices: HashMap::default(),
            most_without_entry: 0,
        }
    }

    /// Counts a duplicate. `text` makes the text of its key if that has no entry yet.
    fn add(&mut self, hash: KeyHash, text: impl FnOnce() -> T) {
        let hash = hash.get();
        if let Some(index) = self.indices.get(&hash) {
            let entry = &mut self.entries[*index as usize];
            entry.low += 1;
            entry.high += 1;
            let place = entry.place as usize;
            return self.lower(place);
        }
        if self.entries.len() < self.most {
            let index = self.entries.len() as u32;
            self.entries.push(Entry {
                hash,
                low: 1,
                high: 1,
                place: index,
                text: text(),
            });
            self.heap.push(index);
            self.indices.insert(hash, index);
            // It is among the lowest.
            return self.raise(index as usize);
        }
        let index = self.heap[0];
        let lowest = &mut self.entries[index as usize];
        self.indices.remove(&lowest.hash);
        self.most_without_entry = self.most_without_entry.max(lowest.high);
        *lowest = Entry {
            hash,
            low: 1,
            high: lowest.high + 1,
            place: 0,
            text: text(),
        };
        self.indices.insert(hash, index);
        self.lower(0);
    }

    /// The count of the entry at this place of the heap.
    fn high(&self, place: usize) -> u64 {
        self.entries[self.heap[place] as usize].high
    }

    /// Moves an entry towards the root, until none above it is higher.
    fn raise(&mut self, mut place: usize) {
        while place > 0 && self.high((place - 1) / 2) > self.high(place) {
            self.swap(place, (place - 1) / 2);
            place = (place - 1) / 2;
        }
    }

    /// Moves an entry away from the root, until none below it is lower.
    fn lower(&mut self, mut place: usize) {
        loop {
            let below = [2 * place + 1, 2 * place + 2].into_iter();
            let below = below.filter(|below| *below < self.heap.len());
            let Some(lowest) = below.min_by_key(|below| self.high(*below)) else {
                return;
            };
            if self.high(lowest) >= self.high(place) {
                return;
            }
            self.swap(place, lowest);
            place = lowest;
        }
    }

    fn swap(&mut self, one: usize, other: usize) {
        self.heap.swap(one, other);
        for place in [one, other] {
            self.entries[self.heap[place] as usize].place = place as u32;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn counts_are_between_their_bounds_and_exact_until_the_table_is_full(
            keys in vec(0_u64..60, 0..600),
            skew in 1_u32..4,
            most in 1_usize..70,
        ) {
            let mut table = CountTable::new(most);
            let mut counts = HashMap::new();
            for key in &keys {
                // Low keys are more frequent.
                let key = key.pow(skew) / 60_u64.pow(skew - 1);
                *counts.entry(key).or_insert(0_u64) += 1;
                table.add(KeyHash::from_uniform(key), || key);
            }
            let lowest = table.entries.iter().map(|entry| entry.high).min().unwrap_or(0);
            for (key, count) in &counts {
                match table.indices.get(key).map(|index| &table.entries[*index as usize]) {
                    Some(entry) => {
                        prop_assert_eq!(entry.text, *key);
                        prop_assert!((entry.low..=entry.high).contains(count));
                        prop_assert!(entry.high - entry.low <= lowest);
                        prop_assert!(counts.len() > most || entry.low == entry.high);
                    }
                    None => prop_assert!(*count <= table.most_without_entry),
                }
            }
            prop_assert!(table.most_without_entry <= lowest);
            // Every duplicate is counted once.
            let sum: u64 = table.entries.iter().map(|entry| entry.high).sum();
            prop_assert_eq!(sum, keys.len() as u64);
            prop_assert_eq!(table.entries.len(), counts.len().min(most));
            prop_assert!(counts.len() > most || table.most_without_entry == 0);
        }
    }

    #[test]
    fn keys_are_shown_as_text_and_cut_between_characters() {
        let shown = |fields: &[&[u8]]| {
            let mut text = KeyText::default();
            for field in fields {
                text.push(field);
            }
            (text.fields, text.is_cut)
        };
        assert_eq!(
            shown(&[b"a\t\xff", "\u{e4}".as_bytes(), b""]),
            (
                vec!["a\t\\xff".into(), "\u{e4}".into(), String::new()],
                false
            )
        );
        let long = "\u{e4}".repeat(SHOWN_BYTES);
        let (fields, is_cut) = shown(&[b"a", long.as_bytes(), b"b"]);
        assert_eq!(
            fields,
            ["a".to_owned(), "\u{e4}".repeat(SHOWN_BYTES / 2 - 1)]
        );
        assert!(is_cut);
        let exact = "a".repeat(SHOWN_BYTES);
        assert_eq!(
            shown(&[exact.as_bytes(), b""]),
            (vec![exact, String::new()], false)
        );
    }
}
