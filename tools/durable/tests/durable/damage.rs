//! Journals whose bytes have changed.

use std::path::Path;
use std::sync::Arc;

use crate::simulated::SimulatedStorage;
use echoless::filters::lines::Progress;
use echoless::state::{Header, StateWriter};
use echoless_durable::storage::Storage;
use echoless_durable::{Journal, export, import};
use proptest::prelude::*;

use crate::program::{Expected, FOLDER, OUTPUT, Program, hasher};
use crate::support::read;

/// A journal of one segment, and the length of the segment after each commit.
struct Sample {
    program: Program,
    expected: Vec<Expected>,
    bytes: Vec<u8>,
    output: Vec<u8>,
    ends: Vec<usize>,
}

const SEGMENT: &str = "journal/segment-0000000001";

impl Sample {
    fn new(spec: &str) -> Self {
        Self::with_more(spec, 0)
    }

    /// With so many bytes in each commit beside the position.
    fn with_more(spec: &str, bytes: usize) -> Self {
        let mut program = Program::new(spec);
        program.more_bytes = bytes;
        let all = program.batches[..5].to_vec();
        let storage = SimulatedStorage::new();
        let mut ends = Vec::new();
        for count in 0..=all.len() {
            program.batches = all[..count].to_vec();
            program.run_simulated(&storage).0.unwrap();
            ends.push(storage.size(Path::new(SEGMENT)).unwrap() as usize);
        }
        Self {
            expected: program.expected(),
            bytes: read(&storage, SEGMENT),
            output: read(&storage, OUTPUT),
            program,
            ends,
        }
    }

    /// Opens a journal of other bytes. Returns the batches that were recovered.
    fn open(&self, bytes: &[u8]) -> Result<usize, String> {
        let storage = with_segment(bytes);
        storage
            .create(Path::new(OUTPUT))
            .unwrap()
            .write_all(&self.output)
            .unwrap();
        self.program.check(&storage, &self.expected, 0)
    }
}

fn with_segment(bytes: &[u8]) -> SimulatedStorage {
    let storage = SimulatedStorage::new();
    storage.create_folder(Path::new(FOLDER)).unwrap();
    storage
        .create(Path::new(SEGMENT))
        .unwrap()
        .write_all(bytes)
        .unwrap();
    storage
}

#[test]
fn every_flipped_bit_is_rejected_or_costs_the_last_commit_alone() {
    for (spec, more_bytes) in [
        ("fingerprint:memory=1KiB", 0),
        ("stamped:window=30,memory=1KiB", 0),
        // The commits behind the first one are patches.
        ("fingerprint:memory=1KiB", 400),
    ] {
        let sample = Sample::with_more(spec, more_bytes);
        if more_bytes > 0 {
            let patched = sample.ends[5] - sample.ends[1];
            assert!(patched < 4 * more_bytes, "{patched} bytes");
        }
        let count = sample.ends.len() - 1;
        let (mut rejected, mut recovered) = (0, 0);
        for at in 0..sample.bytes.len() {
            for bit in 0..8 {
                let mut bytes = sample.bytes.clone();
                bytes[at] ^= 1 << bit;
                match sample.open(&bytes) {
                    // Behind the last commit but one it could be a torn write.
                    Ok(batches) => {
                        assert!(at >= sample.ends[count - 1], "bit {bit} of byte {at}");
                        assert_eq!(batches, count - 1);
                        recovered += 1;
                    }
                    Err(error) => {
                        assert!(
                            at < sample.ends[count - 1],
                            "bit {bit} of byte {at}: {error}"
                        );
                        assert!(error.starts_with(SEGMENT), "{error}");
                        let is_named = ["header", "block of lines", "at byte"]
                            .iter()
                            .any(|name| error.contains(name));
                        let is_prelude = at < 12;
                        assert!(is_named || is_prelude, "bit {bit} of byte {at}: {error}");
                        rejected += 1;
                    }
                }
            }
        }
        assert_eq!(rejected, 8 * sample.ends[count - 1]);
        assert_eq!(recovered, 8 * (sample.bytes.len() - sample.ends[count - 1]));
    }
}

#[test]
fn a_truncated_segment_has_the_commits_that_are_whole() {
    for more_bytes in [0, 400] {
        let sample = Sample::with_more("fingerprint:memory=1KiB", more_bytes);
        for size in 0..=sample.bytes.len() {
            let whole = sample.ends.iter().filter(|end| **end <= size).count();
            let result = sample.open(&sample.bytes[..size]);
            match whole.checked_sub(1) {
                Some(batches) => assert_eq!(result, Ok(batches), "{size} bytes"),
                // A segment gets its name when it has a commit.
                None => assert!(result.unwrap_err().starts_with(SEGMENT), "{size} bytes"),
            }
        }
    }
}

#[test]
fn a_damaged_tail_is_reported_when_it_is_cut() {
    let sample = Sample::new("fingerprint:memory=1KiB");
    let size = sample.bytes.len();
    let storage = with_segment(&sample.bytes[..size - 1]);
    let cut = sample.program.open(Arc::new(storage)).unwrap().cut.unwrap();
    let end = sample.ends[sample.ends.len() - 2];
    assert_eq!(
        (cut.path.to_str(), cut.bytes),
        (Some(SEGMENT), (size - 1 - end) as u64)
    );
    assert!(cut.torn.unwrap().contains("the commit at byte"));
}

/// Sections that look like the beginnings of long commits, which take minutes to hash one by one.
#[test]
fn a_tail_that_is_full_of_beginnings_of_commits_is_read_in_little_time() {
    let sample = Sample::new("fingerprint:memory=1KiB");
    let tail_bytes: usize = 4 << 20;
    // A kind, the half of the tail as length, and all before the number that follows the last one.
    let head = [4_u32.to_le_bytes(), (tail_bytes as u32 / 2).to_le_bytes()].concat();
    let number = (sample.ends.len() as u64 + 1).to_le_bytes();
    let numbered = [&head[..], &[0; 32], &number, &[0; 8]].concat();
    for (beginning, is_cut) in [(&head, true), (&numbered, false)] {
        let mut bytes = [&sample.bytes[..], &[5, 0, 0, 0, 0, 0, 0, 0], &[b'x'; 8]].concat();
        bytes.extend(beginning.iter().cycle().take(tail_bytes));
        let opened = sample.open(&bytes);
        if is_cut {
            assert_eq!(opened, Ok(sample.ends.len() - 1));
        } else {
            // None of them was found to be no commit, so nothing is cut.
            assert!(opened.unwrap_err().starts_with(SEGMENT));
        }
    }
}

#[test]
fn numbers_that_no_journal_comes_to_are_rejected() {
    let sample = Sample::new("fingerprint:memory=1KiB");
    let hasher = hasher();
    let header = Header::new(&sample.program.spec, &hasher).unwrap();
    let open = |segment: u64, number: u64, observed: u64| {
        let header = header.clone().segment(segment).starts_empty(true);
        let mut writer = StateWriter::new(Vec::new(), &header).unwrap();
        let progress = Progress {
            observed,
            ..Progress::default()
        };
        for number in [number, number.wrapping_add(1)] {
            let bytes = [&number.to_le_bytes()[..], b"caller"].concat();
            writer.append_commit(progress, &bytes).unwrap();
        }
        let storage = SimulatedStorage::new();
        storage.create_folder(Path::new(FOLDER)).unwrap();
        let path = Path::new(FOLDER).join(format!("segment-{segment:010}"));
        let mut file = storage.create(&path).unwrap();
        file.write_all(&writer.into_output()).unwrap();
        let opened = Journal::open(
            Arc::new(storage),
            Path::new(FOLDER),
            &sample.program.spec,
            &hasher,
            1,
        );
        let mut opened = opened.map_err(|error| error.to_string())?;
        opened.journal.commit(progress, b"one more").unwrap();
        Ok::<_, String>(opened.commit.unwrap().bytes)
    };
    let high = u64::MAX >> 3;
    assert_eq!(open(high, 1 << 50, high), Ok(b"caller".to_vec()));
    for (segment, number, observed, reason) in [
        (
            u64::MAX,
            1,
            0,
            "its number is greater than that of any journal",
        ),
        (1, u64::MAX, 0, "it has a commit without a number"),
        (1, u64::MAX - 1, 0, "it has a commit without a number"),
        (
            1,
            1,
            u64::MAX,
            "it counts more keys than any filter observes",
        ),
    ] {
        let error = open(segment, number, observed).unwrap_err();
        assert!(error.ends_with(reason), "{error}");
    }
}

#[test]
fn a_journal_whose_segments_are_missing_does_not_begin_anew() {
    let sample = Sample::new("fingerprint:memory=1KiB");
    let (program, storage) = (&sample.program, Arc::new(with_segment(&sample.bytes)));
    drop(program.open(storage.clone()).unwrap());
    let (folder, state) = (Path::new(FOLDER), Path::new("state"));
    let mut exported = Vec::new();
    export(&*storage, folder, state, &mut exported).unwrap();
    storage.create(state).unwrap().write_all(&exported).unwrap();
    storage.remove(Path::new(SEGMENT)).unwrap();
    let error = program.open(storage.clone()).unwrap_err().to_string();
    let expected = "it had segments, which are missing: remove its file lock to begin anew";
    assert_eq!(error, format!("{FOLDER}: {expected}"));
    assert_eq!(storage.list(folder).unwrap(), ["lock"]);
    // A state takes their place.
    import(&*storage, state, folder).unwrap();
    let opened = program.open(storage.clone()).unwrap();
    assert!(opened.commit.is_some());
    drop(opened);
    storage.remove(Path::new(SEGMENT)).unwrap();
    storage.remove(&folder.join("lock")).unwrap();
    assert!(program.open(storage).unwrap().commit.is_none());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_bytes_are_opened_or_rejected(
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        kept in 0_usize..2000,
        is_inside: bool,
    ) {
        let sample = Sample::new("fingerprint:memory=1KiB");
        let kept = kept.min(sample.bytes.len());
        let mut changed = sample.bytes[..kept].to_vec();
        changed.extend(bytes);
        if is_inside && changed.len() < sample.bytes.len() {
            changed.extend(&sample.bytes[changed.len()..]);
        }
        if let Ok(batches) = sample.open(&changed) {
            // What is whole was written.
            prop_assert!(sample.ends[batches] <= kept.max(changed.len()));
        }
    }
}
