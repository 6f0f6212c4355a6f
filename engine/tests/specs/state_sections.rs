//! Sections one by one: keys after blocks lead to the filter that observed them.

use std::ops::Range;

use echoless::filters::lines::LineFilter;
use echoless::memory::Line;
use echoless::state::{Header, Mark, Replay, Section, StateError, StateReader, StateWriter};
use echoless::{Batch, Filter, FilterSpec, KeyHash, Verdicts};
use proptest::prelude::*;

use crate::arrivals::{Arrival, arrivals, key_hash};
use crate::state::{build, hasher, specs};
use crate::{EXAMPLES, parse};

/// Every line form, with options that change what a duplicate does.
fn all_specs() -> Vec<FilterSpec> {
    let more = [
        "dense:replacement=fifo",
        "clocked:window=1000,refresh=false",
        "clocked:window=1000,refresh=false,dense=true",
        "stamped:window=1000,refresh=false,bits=32",
    ];
    let examples = EXAMPLES.map(parse).into_iter();
    let examples = examples.filter(|spec| spec.memory(8 << 10).build_lines().is_ok());
    let specs = specs().into_iter().chain(more.map(parse)).chain(examples);
    specs.map(|spec| spec.memory(8 << 10)).collect()
}

/// What a filter must log of a batch: its keys and their ticks.
fn logged(
    filter: &dyn LineFilter,
    keys: &[KeyHash],
    ticks: &[u64],
    verdicts: &Verdicts,
) -> (Vec<KeyHash>, Vec<u64>) {
    let is_logged = |at: &usize| filter.duplicates_change_lines() || !verdicts.is_duplicate(*at);
    // A duplicate that is left out has moved the clock for the late keys behind it.
    let clock = |at: usize| ticks[..=at].iter().copied().max().unwrap_or(0);
    (0..keys.len())
        .filter(is_logged)
        .map(|at| (keys[at], clock(at)))
        .unzip()
}

fn finished(filters: &[Box<dyn LineFilter>]) -> Vec<Line> {
    let mut lines = Vec::new();
    for filter in filters {
        let from = lines.len();
        lines.resize(from + filter.lines().len(), Line::EMPTY);
        filter.copy_lines(0, &mut lines[from..]);
    }
    lines
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    /// A filter that copies its blocks one by one while it observes, and logs the keys in between,
    /// as far as it must.
    #[test]
    fn blocks_and_keys_lead_to_the_filter_that_observed_them(
        stream in arrivals(1000, 1 << 16, 1..=2000, 1000),
        spec in prop::sample::select(all_specs()),
        batch in 1_usize..90,
        every in 1_usize..4,
        lines in 1_usize..130,
        starts_empty: bool,
        count in 1_usize..=4,
    ) {
        let mut stream = stream;
        if spec.to_string().contains("skew") {
            at_the_clock(&mut stream);
        }
        let mut filter = spec.build_lines().unwrap();
        let bucket = filter.bucket_lines() as usize;
        let lines = lines.next_multiple_of(bucket);
        let header = Header::new(&spec, &hasher()).unwrap().starts_empty(starts_empty);
        let mut writer = StateWriter::new(Vec::new(), &header).unwrap();
        let mut next = 0;
        let mut verdicts = Verdicts::new();
        let (before, rest) = stream.split_at(stream.len() * 3 / 4);
        for (number, batch) in before.chunks(batch).enumerate() {
            let (keys, ticks): (Vec<KeyHash>, Vec<u64>) =
                batch.iter().map(|arrival| (arrival.key, arrival.tick)).unzip();
            filter.observe_at(&keys, &ticks, &mut verdicts);
            // The keys before the first block change lines that it will overwrite.
            if starts_empty || next > 0 {
                let (keys, ticks) = logged(&*filter, &keys, &ticks, &verdicts);
                writer.append_keys(Batch::at_each(&keys, &ticks), ticks_after(batch)).unwrap();
            }
            if number % every == 0 && next < 128 {
                next += append(&mut writer, &*filter, next, lines);
            }
        }
        while next < 128 {
            next += append(&mut writer, &*filter, next, lines);
        }
        writer.append_commit(filter.progress(), b"at the end").unwrap();
        let file = writer.into_output();

        let mut reader = StateReader::open(&file[..]).unwrap();
        let count = count.min(spec.most_partitions() as usize);
        let mut replay = Replay::new(reader.header(), count).unwrap();
        while let Some(section) = reader.read_section().unwrap() {
            replay.apply(&section).unwrap();
        }
        prop_assert_eq!(replay.progress(), Some(filter.progress()));
        let mut copied = vec![Line::EMPTY; 128];
        filter.copy_lines(0, &mut copied);
        prop_assert!(finished(replay.filters()) == copied, "{}", spec);

        let mut parts = replay.into_partitioned().unwrap();
        for arrival in rest {
            let owner = parts.partitioning().partition_of(arrival.key);
            for part in parts.filters_mut() {
                part.advance_to(arrival.tick);
            }
            filter.advance_to(arrival.tick);
            let verdict = parts.filters_mut()[owner].observe_one(arrival.key);
            prop_assert_eq!(verdict, filter.observe_one(arrival.key), "{}", spec);
        }
    }
}

/// The keys of sections are judged at the clock, also where the filter would judge late ones at
/// their own ticks.
fn at_the_clock(stream: &mut [Arrival]) {
    let mut clock = 0;
    for arrival in stream {
        clock = arrival.tick.max(clock);
        arrival.tick = clock;
    }
}

/// The clock after a batch; one without a clock ignores it.
fn ticks_after(batch: &[Arrival]) -> u64 {
    batch.iter().map(|arrival| arrival.tick).max().unwrap_or(0)
}

fn append(
    writer: &mut StateWriter<Vec<u8>>,
    filter: &dyn LineFilter,
    first: usize,
    count: usize,
) -> usize {
    let mut lines = vec![Line::EMPTY; count.min(128 - first)];
    filter.copy_lines(first, &mut lines);
    writer
        .append_block(first as u64, filter.progress().tick, &lines)
        .unwrap();
    lines.len()
}

/// A duplicate changes a line of exactly those filters that say so.
#[test]
fn duplicates_change_lines_or_not() {
    for spec in all_specs() {
        let mut filter = spec.build_lines().unwrap();
        let changes = filter.duplicates_change_lines();
        let mut changed = false;
        for number in 0..4000 {
            filter.advance_to(number);
            let before = filter.lines().to_vec();
            let verdict = filter.observe_one(key_hash(number * 7 % 600));
            changed |= verdict.is_duplicate() && filter.lines() != before;
        }
        // The clock word of a clocked line is brought up to date, in a window of short units.
        let may_change = changes && spec.name() == "clocked";
        assert!(
            changed == changes || may_change,
            "{spec}: duplicates change lines: {changes}; one of this stream did: {changed}"
        );
    }
}

/// A journal in several files: what was written after the last whole commit is cut off, and it
/// goes on from there.
#[test]
fn a_torn_file_goes_on_behind_its_last_commit() {
    let spec = parse("rowlru:form=line,memory=1KiB");
    let header = Header::new(&spec, &hasher()).unwrap().starts_empty(true);
    let keys = |range: Range<u64>| -> Vec<KeyHash> { range.map(key_hash).collect() };
    let write = |writer: &mut StateWriter<Vec<u8>>, range: Range<u64>| {
        writer
            .append_keys(Batch::new(&keys(range.clone())), 0)
            .unwrap();
        let bytes = range.end.to_le_bytes();
        writer
            .append_commit(echoless::filters::lines::Progress::default(), &bytes)
            .unwrap();
    };
    let mut writer = StateWriter::new(Vec::new(), &header).unwrap();
    write(&mut writer, 0..40);
    let first = writer.mark();
    write(&mut writer, 40..90);
    let (second, file) = (writer.mark(), writer.into_output());
    assert_eq!(second.position, file.len() as u64);
    for length in first.position as usize..=file.len() {
        let mut reader = StateReader::open(&file[..length]).unwrap();
        let mut committed: Option<(Mark, u64)> = None;
        loop {
            match reader.read_section() {
                Ok(Some(Section::Commit(commit))) => {
                    let read = u64::from_le_bytes(commit.bytes.try_into().unwrap());
                    committed = Some((reader.mark(), read));
                }
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(error) => {
                    assert!(matches!(error, StateError::Truncated { .. }), "{error}");
                    break;
                }
            }
        }
        let whole = length == file.len();
        let expected = if whole { (second, 90) } else { (first, 40) };
        assert_eq!(committed, Some(expected), "{length} bytes");
    }
    // Resumed, the file is the same as if it had never been torn.
    let cut = file[..first.position as usize].to_vec();
    let mut writer = StateWriter::resume(cut, first);
    write(&mut writer, 40..90);
    assert_eq!(writer.mark().position, file.len() as u64);
    assert_eq!(writer.into_output(), file);
}

/// Many keys take several sections, and their ticks one run if they are equal.
#[test]
fn long_batches_are_divided() {
    let spec = parse("stamped:window=1000,memory=64KiB");
    let header = Header::new(&spec, &hasher()).unwrap().starts_empty(true);
    let keys: Vec<KeyHash> = (0..70_000).map(key_hash).collect();
    let ticks: Vec<u64> = (0..70_000).map(|number| number / 1000).collect();
    let mut writer = StateWriter::new(Vec::new(), &header).unwrap();
    writer
        .append_keys(Batch::at_each(&keys, &ticks), 5000)
        .unwrap();
    let file = writer.into_output();
    assert!(file.len() < 70_000 * 8 + 3000);
    let mut reader = StateReader::open(&file[..]).unwrap();
    let (mut read, mut clocks, mut lengths) = (Vec::new(), Vec::new(), Vec::new());
    while let Some(section) = reader.read_section().unwrap() {
        let Section::Keys(keys) = section else {
            panic!("{section:?}")
        };
        let ticks = keys.ticks().flat_map(|(tick, count)| vec![tick; count]);
        read.extend(keys.keys().zip(ticks));
        clocks.push(keys.clock());
        lengths.push(keys.len());
    }
    assert_eq!(lengths, [32_768, 32_768, 4464]);
    assert_eq!(clocks, [0, 0, 5000]);
    assert_eq!(read, keys.into_iter().zip(ticks).collect::<Vec<_>>());
}

/// Blocks without keys have no bytes, and their memory is not touched. Block by block, so that
/// empty ones follow full ones.
#[cfg(target_os = "linux")]
#[test]
fn empty_blocks_take_neither_bytes_nor_memory() {
    // On small pages, of which most machines have some for each huge one.
    let megabytes = 512;
    let spec = parse("rowlru:form=line").memory(megabytes << 20);
    let header = Header::new(&spec, &hasher()).unwrap();
    let mut writer = StateWriter::new(Vec::new(), &header).unwrap();
    let mut lines = vec![Line::EMPTY; 16_384];
    for block in 0..megabytes {
        lines[0].0[0] = u64::from(block == 5);
        writer.append_block(block * 16_384, 0, &lines).unwrap();
    }
    writer
        .append_commit(echoless::filters::lines::Progress::default(), b"")
        .unwrap();
    let file = writer.end().unwrap();
    assert!(
        file.len() < (1 << 20) + 36 * 512 + 300,
        "{} bytes",
        file.len()
    );

    let resident = || -> u64 {
        let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
        pages.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4
    };
    let before = resident();
    let saved = echoless::state::StateReader::open(&file[..]).unwrap();
    let filter = saved.restore().unwrap().filter;
    // Other tests run beside this one.
    let added = resident().saturating_sub(before);
    assert!(added < megabytes * 1024 / 2, "{added} KiB");
    assert_eq!(filter.lines()[5 * 16_384].0[0], 1);
}

/// A state that was written while keys came, of which later blocks are empty, empties lines.
#[test]
fn empty_blocks_overwrite_keys() {
    let spec = parse("rowlru:form=line,memory=1KiB");
    let header = Header::new(&spec, &hasher()).unwrap();
    let mut writer = StateWriter::new(Vec::new(), &header).unwrap();
    let keys: Vec<KeyHash> = (0..500).map(key_hash).collect();
    let empty = [Line::EMPTY; 16];
    writer.append_keys(Batch::new(&keys), 0).unwrap();
    writer.append_block(0, 0, &empty).unwrap();
    let file = writer.into_output();
    let mut reader = StateReader::open(&file[..]).unwrap();
    let mut replay = Replay::new(reader.header(), 3).unwrap();
    for filled in [true, false] {
        let section = reader.read_section().unwrap().unwrap();
        replay.apply(&section).unwrap();
        assert_eq!(finished(replay.filters()) != empty, filled);
    }
}

/// A key of a dense filter would go by lines that are still to come.
#[test]
fn blocks_are_whole_buckets() {
    let header = Header::new(&parse("dense:memory=8KiB"), &hasher()).unwrap();
    for (first, count) in [(0, 63), (1, 127), (32, 64)] {
        let mut writer = StateWriter::new(Vec::new(), &header).unwrap();
        writer
            .append_block(first, 0, &[Line::EMPTY; 128][..count])
            .unwrap();
        let file = writer.into_output();
        let mut reader = StateReader::open(&file[..]).unwrap();
        let error = reader.read_section().unwrap_err().to_string();
        let last = first + count as u64 - 1;
        let text = format!("block of lines {first} to {last}: no whole buckets of 64 lines");
        assert_eq!(error, format!("cannot read the saved state: {text}"));
    }
}

#[test]
fn a_part_takes_no_keys_of_others() {
    let spec = parse("rowlru:form=line,memory=1KiB");
    let header = Header::new(&spec, &hasher()).unwrap().part(8..16);
    assert!(Replay::new(&header, 2).is_err());
    let mut replay = Replay::new(&header, 1).unwrap();
    let mut writer = StateWriter::new(Vec::new(), &header).unwrap();
    writer
        .append_keys(Batch::new(&[KeyHash::from_uniform(u64::MAX)]), 0)
        .unwrap();
    writer
        .append_keys(Batch::new(&[KeyHash::from_uniform(0)]), 0)
        .unwrap();
    let file = writer.into_output();
    let mut reader = StateReader::open(&file[..]).unwrap();
    replay
        .apply(&reader.read_section().unwrap().unwrap())
        .unwrap();
    let error = replay
        .apply(&reader.read_section().unwrap().unwrap())
        .unwrap_err();
    let text = "cannot read the saved state: keys: a key of line 0, which is of another part";
    assert_eq!(error.to_string(), text);
    assert_eq!(build(&spec, 2)[1].range(), replay.filters()[0].range());
    assert!(replay.into_partitioned().is_none());
}
