//! Every format with records of it, the tests that all of them pass, and what the lists promise.

use echoless::KeyHasher;
use echoless_ber::synth::Writer;
use proptest::collection::vec;
use proptest::prelude::*;

use super::{NAMES, OPTIONS, lines};
use crate::chunk::Chunk;
use crate::delimiter::Delimiter;
use crate::fault::{BlankLines, Fault, FaultPolicy, Missing};
use crate::field_list::FieldList;
use crate::field_set::FieldSet;
use crate::formats::{ChosenFields, FormatBuild, FormatName, SelectedFormat};
use crate::keys::{KeyExtractor, KeyReader, SharedFormat};

/// The name of the format without an option.
const LF: &str = "lf";

/// What the names of the formats with quotes begin with.
pub(crate) const CSV: &str = "csv";

/// The name of the one with backslashes.
pub(crate) const CSV_BACKSLASH: &str = "csv-backslash";

/// Every format with fields between delimiters, with `,` as delimiter.
pub(crate) fn delimited() -> Vec<(&'static str, SharedFormat)> {
    let comma = Delimiter::default();
    let plain = (LF, lines(&comma).unwrap());
    let options = OPTIONS.iter();
    let built = options.map(|option| (option.long, (option.build)(&comma).unwrap()));
    std::iter::once(plain).chain(built).collect()
}

/// A format, a key of two fields and records that have both.
pub(crate) struct Example {
    pub(crate) name: String,
    pub(crate) format: SharedFormat,
    key: FieldSet,
    record: fn(u32) -> Vec<u8>,
    /// Whether a record ends only where a byte of the next one follows, or nothing.
    needs_next: bool,
}

impl Example {
    fn new(name: &str, selected: SelectedFormat, record: fn(u32) -> Vec<u8>) -> Self {
        Self {
            name: name.into(),
            format: selected.format,
            key: selected.key.unwrap().resolve(&[]).unwrap().set,
            record,
            needs_next: ["ber:", "ber:3gpp", "json:"].contains(&name),
        }
    }

    /// Records whose keys are these numbers, and the end of each.
    fn sample(&self, keys: &[u32]) -> (Vec<u8>, Vec<usize>) {
        let mut bytes = Vec::new();
        let mut ends = Vec::new();
        for key in keys {
            bytes.extend((self.record)(*key));
            ends.push(bytes.len());
        }
        (bytes, ends)
    }

    /// Reads records, whole or not, as one chunk.
    fn read(&self, bytes: &[u8], missing: Missing) -> Chunk {
        let hasher = KeyHasher::seeded(0);
        let faults = FaultPolicy {
            missing,
            blank_lines: BlankLines::Keep,
            rejects: false,
        };
        let extractor = KeyExtractor::new(hasher, Some(self.key.clone()), faults);
        let mut chunk = Chunk::default();
        chunk.bytes.buffer.extend_from_slice(bytes);
        chunk.bytes.filled = bytes.len();
        KeyReader::new(self.format.clone(), extractor).read(&mut chunk);
        chunk
    }
}

/// Every format: those with an option, and those with a name.
pub(crate) fn all() -> Vec<Example> {
    let between = |format| SelectedFormat {
        format,
        key: Some(FieldList::numbered(0..=1)),
        time: None,
        files: Vec::new(),
    };
    let mut all = Vec::new();
    for (name, format) in delimited() {
        let record: fn(u32) -> Vec<u8> = match name {
            "null" => |key| format!("{key},\n{}\0", key % 3).into_bytes(),
            "crlf" => |key| format!("{key},{}\r\n", key % 3).into_bytes(),
            CSV => |key| format!("\"{key}\n\",\"{}\"\"\"\r\n", key % 3).into_bytes(),
            CSV_BACKSLASH => |key| format!("\"{key}\\\"\n\",\\,{}\\\n\r\n", key % 3).into_bytes(),
            LF => |key| format!("{key},{}\n", key % 3).into_bytes(),
            _ => panic!("a sample of --{name} is missing"),
        };
        all.push(Example::new(name, between(format), record));
    }
    for (name, value, key, record) in named_samples() {
        let is_named = |format: &&FormatName| {
            format.name == name && format.value_name.is_none() == value.is_empty()
        };
        let name = NAMES.iter().find(is_named).unwrap();
        let selected = match &name.build {
            FormatBuild::Delimited { option, delimiter } => {
                let delimiter = delimiter.map_or_else(Delimiter::default, Delimiter::Byte);
                between(match option {
                    Some(option) => (option.build)(&delimiter).unwrap(),
                    None => lines(&delimiter).unwrap(),
                })
            }
            FormatBuild::OwnFields(build) => {
                let key = Some(key);
                let fields = ChosenFields {
                    key,
                    ..ChosenFields::default()
                };
                build(value, &fields).unwrap()
            }
        };
        all.push(Example::new(
            &format!("{}:{value}", name.name),
            selected,
            record,
        ));
    }
    all
}

type Sample = (&'static str, &'static str, &'static str, fn(u32) -> Vec<u8>);

/// For each name a value, a key, and the record with the key of this number.
fn named_samples() -> Vec<Sample> {
    /// Up to 200 bytes, so that varints have one byte or two.
    fn payload(key: u32) -> Vec<u8> {
        let mut payload = key.to_be_bytes().to_vec();
        payload.extend((0..=key % 197).map(|byte| byte as u8));
        payload
    }
    fn prefixed(length: fn(usize) -> Vec<u8>, key: u32) -> Vec<u8> {
        let payload = payload(key);
        [length(payload.len()), payload].concat()
    }
    /// Of indefinite length for every other key.
    fn call_record(key: u32, append: fn(&mut Writer<'_>, &[u8], &[u8])) -> Vec<u8> {
        let mut record = Vec::new();
        let content = |fields: &mut Writer<'_>| append(fields, &key.to_be_bytes(), &payload(key));
        if key.is_multiple_of(2) {
            Writer::new(&mut record).constructed(&[0xa0], content);
        } else {
            Writer::new(&mut record).indefinite(&[0xa0], content);
        }
        record
    }
    vec![
        ("lines", "", "", |key| {
            format!("{key},{}\n", key % 3).into_bytes()
        }),
        ("csv", "", "", |key| {
            format!("\"{key}\",{}\n", key % 3).into_bytes()
        }),
        ("tsv", "", "", |key| {
            format!("{key}\t\"{}\n", key % 3).into_bytes()
        }),
        ("jsonl", "", "id,user.name", |key| {
            let name = ["\"x\"", "\"\\u00e9\"", "{\"b\":[1.0,null],\"a\":0}"][key as usize % 3];
            format!("{{\"user\": {{\"name\": {name}}}, \"id\": 1{key}0, \"more\": [true]}}\n")
                .into_bytes()
        }),
        ("json", "", "id", |key| {
            let space = ["", " ", "\t", " \r"][key as usize % 4];
            format!("{{\"id\":\n{key}}}{space}").into_bytes()
        }),
        ("paragraphs", "", "1,2", |key| {
            let blank = ["", "\n", "\r\n"][key as usize % 3];
            format!("{blank}{key}\r\n{}\nmore\n\n", key % 3).into_bytes()
        }),
        ("lines", "3", "1,3", |key| {
            format!("{key}\n\n{}\r\n", key % 3).into_bytes()
        }),
        ("fixed", "7", "0-1,4-", |key| {
            let key = key.to_le_bytes();
            [&key[..2], b"\0\n", &key[2..], b"\xef"].concat()
        }),
        ("prefixed", "u8", "0-1,3-", |key| {
            prefixed(|length| vec![length as u8], key)
        }),
        ("prefixed", "u16be", "0-1,3-", |key| {
            prefixed(|length| (length as u16).to_be_bytes().to_vec(), key)
        }),
        ("prefixed", "u16le", "0-1,3-", |key| {
            prefixed(|length| (length as u16).to_le_bytes().to_vec(), key)
        }),
        ("prefixed", "u32be", "0-1,3-", |key| {
            prefixed(|length| (length as u32).to_be_bytes().to_vec(), key)
        }),
        ("prefixed", "u32le", "0-1,3-", |key| {
            prefixed(|length| (length as u32).to_le_bytes().to_vec(), key)
        }),
        ("prefixed", "varint", "0-1,3-", |key| {
            let varint = |length: usize| match length {
                0..128 => vec![length as u8],
                _ => vec![length as u8 | 0x80, (length >> 7) as u8],
            };
            prefixed(varint, key)
        }),
        ("ber", "", "0x80,0xA3/0x9F21", |key| {
            call_record(key, |fields, key, payload| {
                fields.primitive(&[0x80], key);
                fields.constructed(&[0xa3], |inner| inner.primitive(&[0x9f, 0x21], payload));
            })
        }),
        ("ber", "3gpp", "callReference,servedIMSI", |key| {
            call_record(key, |fields, key, payload| {
                fields.primitive(&[0x9f, 0x20], key);
                fields.primitive(&[0x81], payload);
            })
        }),
    ]
}

#[test]
fn every_name_has_a_sample() {
    // Records inside of something else are tested apart.
    let apart = |format: &&FormatName| format.value_name == Some("container=PATH");
    for format in NAMES.iter().filter(|format| !apart(format)) {
        let has_sample = |(name, value, ..): &Sample| {
            *name == format.name && value.is_empty() == format.value_name.is_none()
        };
        assert!(named_samples().iter().any(has_sample), "{}", format.name);
        for option in format.options {
            assert!(
                OPTIONS.iter().any(|other| other.long == *option),
                "{option}"
            );
        }
    }
}

/// Without these a format has no documentation, and no test of whole runs.
#[test]
fn every_name_is_in_the_guide_and_in_the_tests_of_all_formats() {
    let guide = include_str!("../../../cli/GUIDE.md");
    let arrivals = include_str!("../../../cli/tests/cli/arrivals.rs");
    let mutations = include_str!("../../../cli/tests/mutations/cases.rs");
    for FormatName {
        name,
        value_name,
        build,
        ..
    } in NAMES
    {
        let value = value_name.map_or_else(String::new, |value| format!(":{value}"));
        assert!(
            guide.contains(&format!("`{name}{value}`")),
            "GUIDE.md: {name}"
        );
        let option = match build {
            // Plain lines, which need no option.
            FormatBuild::Delimited {
                option: None,
                delimiter: None,
            } => continue,
            FormatBuild::Delimited {
                option: Some(option),
                ..
            } => format!("--{}", option.long),
            _ => format!("--format {name}"),
        };
        assert!(arrivals.contains(&option), "arrivals.rs: {option}");
        assert!(mutations.contains(&option), "cases.rs: {option}");
    }
}

#[test]
fn delimiters_that_end_or_quote_records_are_rejected() {
    for (name, rejected, accepted) in [
        ("null", &b"\0"[..], &b"\n\r,"[..]),
        ("crlf", b"\n\r", b"\0\";"),
        ("csv", b"\n\r\"", b"\0;\\"),
        ("csv-backslash", b"\n\r\"\\", b"\0;"),
    ] {
        let option = OPTIONS.iter().find(|option| option.long == name).unwrap();
        let is_rejected = |delimiter: &u8| (option.build)(&Delimiter::Byte(*delimiter)).is_err();
        assert!(rejected.iter().all(is_rejected), "{name}");
        assert!(!accepted.iter().any(is_rejected), "{name}");
    }
    assert!(lines(&Delimiter::Byte(b'\n')).is_err());
    assert!(lines(&Delimiter::Byte(b'\r')).is_ok());
}

#[test]
fn implied_options_exist() {
    for option in OPTIONS {
        for implied in option.implies {
            assert!(OPTIONS.iter().any(|other| other.long == *implied));
        }
    }
}

#[test]
fn samples_cut_at_every_byte() {
    for example in all() {
        let (bytes, ends) = example.sample(&[0, 5, 196, 70_000]);
        for cut in 0..=bytes.len() {
            let mut last_end = example.format.last_end();
            let whole = last_end.find(&bytes[..cut], 0).unwrap_or(0);
            let is_passed = |end: &&usize| **end < cut || **end == cut && !example.needs_next;
            let expected = ends.iter().rev().find(is_passed);
            assert_eq!(whole, *expected.unwrap_or(&0), "{}, {cut}", example.name);
            // Text may end without its terminator, but not inside of a quoted field.
            let problem = last_end.problem_at_end();
            if example.format.facts().terminator.is_empty() {
                let is_whole = ends.contains(&cut) || cut == 0;
                assert_eq!(problem.is_some(), !is_whole, "{}, {cut}", example.name);
            }
            let chunk = example.read(&bytes[..whole], Missing::Error);
            assert_eq!(chunk.fault, None, "{}, {cut}", example.name);
            assert_eq!(
                chunk.layout.ends,
                ends[..chunk.layout.ends.len()],
                "{}, {cut}",
                example.name
            );
            assert_eq!(
                chunk.keys.hashes.len(),
                chunk.layout.ends.len(),
                "{}, {cut}",
                example.name
            );
        }
    }
}

#[test]
fn records_have_the_hash_of_their_key_only_if_the_keys_are_equal() {
    for example in all() {
        let keys: Vec<u32> = (0..300).chain(0..300).collect();
        let chunk = example.read(&example.sample(&keys).0, Missing::Error);
        for first in 0..300 {
            assert_eq!(
                chunk.keys.hashes[first],
                chunk.keys.hashes[first + 300],
                "{}",
                example.name
            );
        }
        let mut distinct = chunk.keys.hashes[..300].to_vec();
        distinct.sort_unstable_by_key(|hash| hash.get());
        distinct.dedup();
        assert_eq!(distinct.len(), 300, "{}", example.name);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// A chunk of any bytes has records, one after the other, up to its end or its fault.
    #[test]
    fn mutated_records_are_read_without_panic(
        keys in vec(0u32..1000, 1..6),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
    ) {
        for example in all() {
            let (mut bytes, _) = example.sample(&keys);
            for (at, byte) in &changes {
                let at = at.index(bytes.len());
                bytes[at] = *byte;
            }
            for missing in [Missing::Error, Missing::Skip, Missing::Empty] {
                let chunk = example.read(&bytes, missing);
                prop_assert!(chunk.layout.ends.is_sorted_by(|one, next| one < next), "{}", example.name);
                prop_assert_eq!(chunk.layout.ends.last(), Some(&bytes.len()), "{}", example.name);
                let read = match chunk.fault {
                    Some(Fault { record, .. }) => record,
                    None => chunk.layout.ends.len(),
                };
                prop_assert_eq!(chunk.records(), read, "{}", example.name);
                prop_assert!(missing != Missing::Skip || chunk.fault.is_none());
            }
        }
    }
}
