//! Saved states: a filter that was saved and restored, in any number of partitions, goes on as if
//! nothing had happened, and bytes that are no such state are rejected.

use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use echoless::filters::lines::LineFilter;
use echoless::state::{StateError, StateReader, restore_parts};
use echoless::{Filter, FilterSpec, KeyHash, KeyHasher, report_of};
use proptest::prelude::*;

use crate::arrivals::{Arrival, arrivals, observe};
use crate::{SAVED, SEEDS, parse};

/// Two pages of lines, which at most two partitions divide in dense filters.
const MEMORY: u64 = 8 << 10;

/// One specification of each line form, and of the other widths of windows.
pub(crate) fn specs() -> Vec<FilterSpec> {
    let specs = SAVED.iter().copied().map(parse);
    specs.map(|spec| spec.memory(MEMORY).seed(5)).collect()
}

/// The hasher of all keys.
pub(crate) fn hasher() -> KeyHasher {
    KeyHasher::seeded(0)
}

pub(crate) type Parts = Vec<Box<dyn LineFilter>>;

pub(crate) fn build(spec: &FilterSpec, count: usize) -> Parts {
    spec.build_line_partitions(count).unwrap().into_parts().1
}

/// The verdicts of partitions, each of which gets only the ticks of its own keys.
fn observe_parts(parts: &mut Parts, stream: &[Arrival]) -> Vec<bool> {
    let pages = parts[0].range().total / parts[0].bucket_lines();
    let partitioning = echoless::Partitioning::new(pages, parts.len()).unwrap();
    let one = |arrival: &Arrival| {
        let owner = &mut parts[partitioning.partition_of(arrival.key)];
        owner.advance_to(arrival.tick);
        owner.observe_one(arrival.key).is_duplicate()
    };
    stream.iter().map(one).collect()
}

pub(crate) fn save(spec: &FilterSpec, parts: &mut Parts) -> Vec<u8> {
    let mut bytes = Vec::new();
    spec.save(parts, &hasher(), b"of the caller", &mut bytes)
        .unwrap();
    bytes
}

pub(crate) fn restore(bytes: &[u8], count: usize) -> Parts {
    let saved = StateReader::open(bytes).unwrap();
    let restored = restore_parts([saved], count).unwrap();
    assert_eq!(restored.bytes, [b"of the caller"]);
    restored.filter.into_parts().1
}

/// The sum over partitions.
pub(crate) fn counts(parts: &Parts) -> [u64; 3] {
    parts.iter().fold([0; 3], |sum, part| {
        let progress = part.progress();
        [
            sum[0] + progress.observed,
            sum[1] + progress.fresh,
            sum[2] + progress.evictions,
        ]
    })
}

proptest! {
    #[test]
    fn a_restored_filter_goes_on_as_if_nothing_had_happened(
        stream in arrivals(1000, 1 << 16, 1..=3000, 1500),
        spec in prop::sample::select(specs()),
        cut in 0.0_f64..1.0,
        before in 1_usize..=5,
        after in 1_usize..=5,
    ) {
        let most = spec.most_partitions() as usize;
        let [before, after] = [before, after].map(|count| count.min(most));
        // A partition gets the clock from its own keys, so the clock of the stream must not go
        // back.
        let mut clock = 0;
        let stream: Vec<Arrival> = stream
            .into_iter()
            .map(|arrival| {
                clock = clock.max(arrival.tick);
                Arrival { tick: clock, ..arrival }
            })
            .collect();
        let (first, rest) = stream.split_at((stream.len() as f64 * cut) as usize);
        let mut whole = build(&spec, 1);
        let mut parts = build(&spec, before);
        prop_assert_eq!(observe(&mut *whole[0], first), observe_parts(&mut parts, first));

        let bytes = save(&spec, &mut parts);
        let mut parts = restore(&bytes, after);
        prop_assert_eq!(counts(&whole), counts(&parts));
        prop_assert_eq!(&save(&spec, &mut parts), &bytes, "saved again");
        prop_assert_eq!(&save(&spec, &mut whole), &bytes, "whole");
        prop_assert_eq!(observe(&mut *whole[0], rest), observe_parts(&mut parts, rest));
        prop_assert_eq!(counts(&whole), counts(&parts));
    }
}

proptest! {
    /// Partitions and states are cut at different lines.
    #[test]
    fn parts_of_lines_are_restored_together(
        stream in arrivals(1000, 1 << 16, 1..=3000, 1500),
        spec in prop::sample::select(specs()),
        cuts in prop::collection::btree_set(1_u64..128, 0..4),
        before in 1_usize..=5,
        after in 1_usize..=5,
        first in 0_usize..4,
    ) {
        let most = spec.most_partitions() as usize;
        let [before, after] = [before, after].map(|count| count.min(most));
        let bucket = 128 / spec.most_partitions();
        let mut parts = build(&spec, before);
        observe_parts(&mut parts, &stream);
        let expected = save(&spec, &mut parts);

        let mut cuts: Vec<u64> = cuts.iter().map(|line| line / bucket * bucket).collect();
        cuts.extend([0, 128]);
        cuts.sort_unstable();
        cuts.dedup();
        let mut files = Vec::new();
        for lines in cuts.windows(2) {
            let mut file = Vec::new();
            let lines = lines[0]..lines[1];
            let bytes = [lines.start as u8];
            spec.save_part(&mut parts, lines, &hasher(), &bytes, &mut file).unwrap();
            files.push(file);
        }
        let count = files.len();
        files.rotate_left(first % count);
        let parts = files.iter().map(|file| StateReader::open(&file[..]).unwrap());
        let restored = restore_parts(parts, after).unwrap();
        let bytes: Vec<u8> = cuts[..count].iter().map(|line| *line as u8).collect();
        prop_assert_eq!(restored.bytes.concat(), bytes);
        let mut restored = restored.filter.into_parts().1;
        prop_assert_eq!(&save(&spec, &mut restored), &expected);

        // Without one of them, or with one twice, it is not the whole.
        if count > 1 {
            let parts = files[1..].iter().map(|file| StateReader::open(&file[..]).unwrap());
            let error = restore_parts(parts, after).unwrap_err().to_string();
            prop_assert!(error.contains("it has no lines"), "{}", error);
        }
        let twice = files.iter().chain(&files[..1]);
        let parts = twice.map(|file| StateReader::open(&file[..]).unwrap());
        let error = restore_parts(parts, after).unwrap_err().to_string();
        prop_assert!(error.ends_with("are in two parts"), "{}", error);
    }
}

/// A small filter with some keys, as bytes.
pub(crate) fn saved_bytes(spec: &FilterSpec) -> Vec<u8> {
    let mut filter = spec.build_lines().unwrap();
    for key in 0..100 {
        filter.observe_one(hasher().hash_u64(key));
    }
    save(spec, &mut vec![filter])
}

#[test]
fn filters_that_are_not_the_whole_are_not_saved() {
    let spec = parse("qqht:form=line").memory(MEMORY);
    let mut parts = build(&spec, 3);
    parts.swap(1, 2);
    let error = spec
        .save(&mut parts, &hasher(), b"", Vec::new())
        .unwrap_err();
    let text = "invalid partitions=those from line 86 of 128: expected all partitions in their \
                order, the next from line 43 of 128";
    assert_eq!(error.to_string(), text);
    parts.swap(1, 2);
    parts.pop();
    let error = spec
        .save(&mut parts, &hasher(), b"", Vec::new())
        .unwrap_err();
    let text = "invalid partitions=lines 0..86: expected partitions that hold lines 0..128";
    assert_eq!(error.to_string(), text);
    let error = parse("qqht:slots=4")
        .save(&mut parts, &hasher(), b"", Vec::new())
        .unwrap_err();
    assert!(matches!(error, StateError::Build(_)), "{error}");
}

/// What `save` accepts, `check` accepts with the same specification and with that of the filter.
#[test]
fn a_seed_matters_where_a_filter_draws() {
    for (text, draws) in SEEDS {
        let (spec, other) = (parse(text), parse(text).seed(9));
        let mut bytes = Vec::new();
        let saved = other.save(&mut build(&spec, 1), &hasher(), b"", &mut bytes);
        assert_eq!(saved.is_err(), draws, "{text}");
        let bytes = saved_bytes(&spec);
        for (spec, rejected) in [(&spec, false), (&other, draws)] {
            let checked = StateReader::open(&bytes[..])
                .unwrap()
                .check(spec, &hasher());
            assert_eq!(checked.is_err(), rejected, "{spec}");
        }
    }
}

#[test]
fn filters_of_another_specification_are_not_saved() {
    let specs = specs();
    for (index, spec) in specs.iter().enumerate() {
        let other = &specs[(index + 1) % specs.len()];
        let saved = spec.save(&mut build(other, 1), &hasher(), b"", Vec::new());
        let error = saved.expect_err(&format!("{other} as {spec}"));
        let text = format!(
            "invalid partitions=those of another specification: expected filters of {spec}"
        );
        assert_eq!(error.to_string(), text, "{other}");
    }
    for (one, other) in [
        ("stamped:window=600", "stamped:window=601"),
        ("dense:replacement=fifo", "dense:replacement=lru"),
        ("clocked:window=600", "clocked:window=600,dense=true"),
        (
            "rowlru:slots=16,bits=32,form=line",
            "rowlru:slots=32,bits=16,form=line",
        ),
    ] {
        let [one, other] = [one, other].map(|text| parse(text).memory(MEMORY));
        let mut parts = build(&other, 1);
        parts[0].advance_to(1 << 30);
        assert!(
            one.save(&mut parts, &hasher(), b"", Vec::new()).is_err(),
            "{one}"
        );
        assert!(
            other.save(&mut parts, &hasher(), b"", Vec::new()).is_ok(),
            "{other}"
        );
    }
}

#[test]
fn specifications_without_bare_lines_are_not_saved() {
    let mut parts = build(&parse("qqht:form=line").memory(MEMORY), 1);
    for (text, field) in [
        ("qqht:form=line,tracked=0.5,memory=8KiB", "tracked"),
        // The default slots of the scattered form do not exist in lines.
        ("rowlru:memory=8KiB", "slots"),
    ] {
        let error = parse(text)
            .save(&mut parts, &hasher(), b"", Vec::new())
            .unwrap_err();
        let expected = format!("invalid {field}=");
        assert!(error.to_string().starts_with(&expected), "{text}: {error}");
    }
}

/// Reads a byte at a time, and fails at the end, but not behind a whole state.
struct Slow<'a>(&'a [u8], bool);

impl Read for Slow<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let Some((first, rest)) = self.0.split_first() else {
            return if self.1 {
                Ok(0)
            } else {
                Err(io::Error::other("unplugged"))
            };
        };
        bytes[0] = *first;
        self.0 = rest;
        Ok(1)
    }
}

/// Accepts so many bytes.
struct Full(usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self
            .0
            .checked_sub(bytes.len())
            .ok_or(ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn failures_of_files_are_told_from_damage() {
    let spec = parse("rowlru:form=line,memory=512B");
    let bytes = saved_bytes(&spec);
    StateReader::open(Slow(&bytes, true))
        .unwrap()
        .restore()
        .unwrap();
    for length in [0, 10, 60, 200, bytes.len() - 1] {
        let read = StateReader::open(Slow(&bytes[..length], false)).and_then(StateReader::restore);
        let error = read.unwrap_err();
        assert_eq!(
            error.to_string(),
            "cannot read or write the saved state: unplugged"
        );
        let mut filter = [spec.build_lines().unwrap()];
        for key in 0..100 {
            filter[0].observe_one(hasher().hash_u64(key));
        }
        let error = spec
            .save(&mut filter, &hasher(), b"of the caller", Full(length))
            .unwrap_err();
        assert!(matches!(error, StateError::Io(_)), "{length}: {error}");
    }
    for count in [0, 9] {
        let saved = StateReader::open(&bytes[..]).unwrap();
        let error = restore_parts([saved], count).unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("invalid partitions={count}:")),
            "{error}"
        );
    }
}

#[test]
fn the_report_of_restored_partitions_is_that_of_the_whole() {
    let spec = parse("dense:bits=32").memory(MEMORY);
    let mut filter = spec.build_lines().unwrap();
    for key in 0..5000 {
        filter.observe_one(hasher().hash_u64(key));
    }
    let whole = report_of(std::slice::from_ref(&filter));
    let mut bytes = Vec::new();
    spec.save(&mut [filter], &hasher(), b"of the caller", &mut bytes)
        .unwrap();
    let parts = restore(&bytes, 2);
    let report = report_of(&parts);
    assert_eq!(report, whole);
    assert!(report.tally.evictions > Some(0));
}

#[test]
fn one_partition_alone_is_that_of_all() {
    for spec in specs() {
        let all = spec.build_partitions(2).unwrap().into_parts().1;
        for (index, part) in all.iter().enumerate() {
            let alone = spec.build_line_partition(index, 2).unwrap();
            assert_eq!(alone.memory_bytes(), part.memory_bytes(), "{spec}");
            assert_eq!(alone.range().first, index as u64 * 64, "{spec}");
            assert_eq!(
                (alone.range().total, alone.lines().len()),
                (128, 64),
                "{spec}"
            );
        }
        let error = spec.build_line_partition(2, 2).unwrap_err();
        assert_eq!(error.to_string(), "invalid partition=2: expected 0 to 1");
        let error = spec.build_line_partition(0, 0).unwrap_err().to_string();
        assert!(
            error.starts_with("invalid partitions=0: expected 1 to "),
            "{error}"
        );
    }
    // A partition that was built alone has its range, too: keys of the other one panic.
    let spec = parse("rowlru:form=line").memory(MEMORY);
    let mut upper = spec.build_line_partition(1, 2).unwrap();
    upper.observe_one(KeyHash::from_uniform(u64::MAX));
    let lower = KeyHash::from_uniform(0);
    assert!(catch_unwind(AssertUnwindSafe(|| upper.observe_one(lower))).is_err());
}

/// The states of every line form after the same keys. If one changes, so must the version of the
/// format, or older states would be misread: `UPDATE_STATES=1 cargo test --test specs`
/// writes them anew.
#[test]
fn states_of_every_line_form_are_as_they_were() {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/specs/states"));
    let mut names = Vec::new();
    for spec in specs() {
        let spec = spec.memory(4 << 10);
        let mut filter = build(&spec, 1);
        for number in 0..3000 {
            filter[0].advance_to(number);
            filter[0].observe_one(hasher().hash_u64(number % 1250));
        }
        let bytes = save(&spec, &mut filter);
        let count = names.iter().filter(|name| *name == spec.name()).count();
        names.push(spec.name().to_owned());
        let path = folder.join(format!("{}-{count}.state", spec.name()));
        if std::env::var_os("UPDATE_STATES").is_some() {
            fs::create_dir_all(&folder).unwrap();
            fs::write(&path, &bytes).unwrap();
        }
        let found = fs::read(&path).unwrap();
        assert!(
            found == bytes,
            "{spec} is not {}: see `state_format.rs`",
            path.display()
        );
        let restored = restore(&found, 1);
        assert_eq!(restored[0].lines(), filter[0].lines(), "{spec}");
        assert_eq!(counts(&restored), counts(&filter), "{spec}");
        assert_eq!(restored[0].progress(), filter[0].progress(), "{spec}");
    }
    let files = fs::read_dir(folder).unwrap().count();
    assert_eq!(files, names.len(), "a state of no line form");
}
