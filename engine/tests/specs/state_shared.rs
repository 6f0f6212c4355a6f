//! Saved states of shared filters: they go on as if nothing had happened, and are rejected as those
//! of filters in lines are.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use echoless::filters::lines::Progress;
use echoless::memory::Line;
use echoless::state::{Header, StateError, StateReader, StateWriter, restore_parts};
use echoless::{
    Batch, KeyHash, KeyHasher, Report, SharedFilter, SharedLayout, SharedSpec, Verdicts,
};
use proptest::prelude::*;

use crate::parse;
use crate::state::{hasher, saved_bytes};
use crate::state_format::{assert_damage_is_found, header};

const LAYOUTS: [SharedLayout; 8] = [
    SharedLayout::Row4x16,
    SharedLayout::Row2x32,
    SharedLayout::Stamped {
        window: 20,
        refresh: true,
    },
    SharedLayout::Stamped {
        window: 1000,
        refresh: false,
    },
    SharedLayout::Bloom { k: 1 },
    SharedLayout::Bloom { k: 4 },
    SharedLayout::Ageing { k: 2 },
    SharedLayout::Ageing { k: 10 },
];

fn spec(text: &str) -> SharedSpec {
    text.parse().unwrap()
}

fn observe(filter: &SharedFilter, keys: &[KeyHash]) -> Vec<u64> {
    let mut verdicts = Verdicts::new();
    filter.observe(keys, &mut verdicts);
    verdicts.words().to_vec()
}

/// The same, with ticks from `start` on.
fn observe_over(filter: &SharedFilter, keys: &[KeyHash], start: u64) -> Vec<u64> {
    let mut verdicts = Verdicts::new();
    let ticks: Vec<u64> = (start..).take(keys.len()).collect();
    filter.observe(Batch::at_each(keys, &ticks), &mut verdicts);
    verdicts.words().to_vec()
}

fn save(filter: &SharedFilter) -> Vec<u8> {
    let mut bytes = Vec::new();
    filter
        .save(&hasher(), b"of the caller", &mut bytes)
        .unwrap();
    bytes
}

fn load(bytes: &[u8]) -> Result<SharedFilter, StateError> {
    let saved = StateReader::open(bytes)?.limit_memory(4 << 20)?;
    saved.restore_shared().map(|restored| restored.filter)
}

fn error_of(bytes: &[u8]) -> String {
    load(bytes).unwrap_err().to_string()
}

/// Without what depends on the speed of the machine.
fn report(filter: &SharedFilter) -> Report {
    let mut report = filter.report();
    report.look_ahead = None;
    report
}

/// A filter of 8 lines with some keys.
fn small() -> Vec<u8> {
    let filter = spec("row2x32:memory=512B").build().unwrap();
    let keys: Vec<KeyHash> = (0..100).map(|key| hasher().hash_u64(key)).collect();
    observe(&filter, &keys);
    save(&filter)
}

proptest! {
    #[test]
    fn a_restored_filter_goes_on_as_if_nothing_had_happened(
        layout in prop::sample::select(&LAYOUTS[..]),
        memory in prop_oneof![64_u64..2000, (1_u64 << 20)..(2 << 20) + 500],
        keys in prop::collection::vec(0_u64..1500, 0..3000),
        cut in 0.0_f64..1.0,
        start in prop_oneof![Just(0_u64), 0_u64..1 << 40],
    ) {
        let spec = SharedSpec::new(memory).layout(layout);
        let filter = spec.build().unwrap();
        let keys: Vec<KeyHash> = keys.iter().map(|key| hasher().hash_u64(*key)).collect();
        let (first, rest) = keys.split_at((keys.len() as f64 * cut) as usize);
        filter.advance_to(start);
        observe_over(&filter, first, start);
        let bytes = save(&filter);

        let saved = StateReader::open(&bytes[..]).unwrap();
        saved.check(&spec, &hasher()).unwrap();
        let restored = saved.restore_shared().unwrap();
        prop_assert_eq!(restored.bytes, b"of the caller");
        prop_assert_eq!(Some(restored.progress.fresh), filter.report().tally.fresh);
        let restored = restored.filter;
        prop_assert_eq!(report(&restored), report(&filter));
        prop_assert_eq!(&save(&restored), &bytes, "saved again");
        prop_assert_eq!(restored.tick(), filter.tick());
        let start = start + first.len() as u64;
        prop_assert_eq!(observe_over(&restored, rest, start), observe_over(&filter, rest, start));
        prop_assert_eq!(report(&restored), report(&filter));
        prop_assert_eq!(save(&restored), save(&filter));
    }
}

/// Threads observe during all of a save. The state has all keys from before it, and of the later
/// ones those that threads had observed when their word was copied.
#[test]
fn a_filter_is_saved_while_threads_observe() {
    for layout in LAYOUTS {
        let spec = SharedSpec::new(3 << 20).layout(layout);
        let filter = spec.build().unwrap();
        let keys: Vec<KeyHash> = (0..3000).map(|key| hasher().hash_u64(key)).collect();
        let (before, during) = keys.split_at(1000);
        observe(&filter, before);
        let ends = AtomicBool::new(false);
        let bytes = thread::scope(|scope| {
            let users: Vec<_> = during
                .chunks(1000)
                .map(|keys| {
                    let (filter, ends) = (&filter, &ends);
                    scope.spawn(move || {
                        while !ends.load(Ordering::Relaxed) {
                            observe(filter, keys);
                        }
                    })
                })
                .collect();
            let bytes: Vec<_> = (0..20).map(|_| save(&filter)).collect();
            ends.store(true, Ordering::Relaxed);
            users.into_iter().for_each(|user| user.join().unwrap());
            bytes
        });
        for bytes in &bytes {
            let restored = load(bytes).unwrap();
            let found = before.iter().filter(|key| restored.contains(**key));
            // Ageing forgets some.
            assert!(found.count() >= 990, "{layout:?}");
            let fresh = restored.report().tally.fresh;
            assert!(fresh >= Some(990), "{layout:?}: {fresh:?}");
            if let SharedLayout::Bloom { .. } = layout {
                assert!(fresh <= Some(3000), "{layout:?}: {fresh:?}");
            }
        }
        // At the end all keys are there.
        let last = load(&save(&filter)).unwrap();
        assert_eq!(report(&last), report(&filter));
        let kept = |filter: &SharedFilter| keys.iter().filter(|key| filter.contains(**key)).count();
        assert_eq!(kept(&last), kept(&filter));
    }
}

/// A thread records a key at each tick during all saves. A state is that of one tick, and has no key
/// whose window was over then.
#[test]
fn a_filter_is_saved_while_its_clock_moves() {
    const WINDOW: u64 = 40;
    let filter = spec("stamped:window=40,memory=64KiB").build().unwrap();
    let ends = AtomicBool::new(false);
    let key = |tick| hasher().hash_u64(tick);
    thread::scope(|scope| {
        let _ends = EndsOthers(&ends);
        let observe = || {
            let mut tick = 0;
            while !ends.load(Ordering::Relaxed) {
                tick += 1;
                filter.observe_batch(Batch::at(&[key(tick)], tick), &mut [0]);
            }
        };
        scope.spawn(observe);
        for _ in 0..20 {
            let before = filter.tick();
            let bytes = save(&filter);
            let after = filter.tick();
            let restored = load(&bytes).unwrap();
            let tick = restored.tick();
            assert!((before..=after).contains(&tick));
            assert_eq!(save(&restored), bytes, "{tick}");
            // Over more than a wrap of the stamps.
            let ticks = tick.saturating_sub(5000)..tick.saturating_sub(WINDOW);
            let held = ticks.filter(|tick| restored.contains(key(*tick)));
            assert_eq!(held.count(), 0, "{tick}");
        }
    });
}

/// Ends the loops of other threads, also if a test fails: else it would wait for them forever.
struct EndsOthers<'a>(&'a AtomicBool);

impl Drop for EndsOthers<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Nearly every key evicts another one.
#[test]
fn a_state_counts_no_more_evictions_than_keys_while_threads_observe() {
    for round in 0..100 {
        let name = ["stamped:window=40,", "row4x16:"][round % 2];
        let filter = spec(&format!("{name}memory=64B"));
        let filter = filter.build().unwrap();
        let ends = AtomicBool::new(false);
        thread::scope(|scope| {
            let _ends = EndsOthers(&ends);
            scope.spawn(|| {
                for key in (0..).take_while(|_| !ends.load(Ordering::Relaxed)) {
                    filter.observe_one(hasher().hash_u64(key));
                }
            });
            for _ in 0..50 {
                let tally = filter.report().tally;
                assert!(tally.evictions <= tally.fresh, "{tally:?}");
                load(&save(&filter)).unwrap();
            }
        });
    }
}

/// Observes keys when the first bytes come.
struct Observing<'a> {
    filter: &'a SharedFilter,
    keys: Vec<KeyHash>,
    written: Vec<u8>,
}

impl io::Write for Observing<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // The first lines were copied before.
        observe(self.filter, &std::mem::take(&mut self.keys));
        self.written.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn keys_that_a_state_of_rows_lacks_are_no_evicted_ones() {
    for layout in ["row4x16", "row2x32"] {
        let filter = spec(&format!("{layout}:memory=3MiB")).build().unwrap();
        let keys: Vec<KeyHash> = (0..90_000).map(|key| hasher().hash_u64(key)).collect();
        let (before, during) = keys.split_at(30_000);
        observe(&filter, before);
        let mut output = Observing {
            filter: &filter,
            keys: during.to_vec(),
            written: Vec::new(),
        };
        filter.save(&hasher(), b"", &mut output).unwrap();
        let evicted = filter.report().tally.evictions;
        let restored = load(&output.written).unwrap();
        let found = keys.iter().filter(|key| restored.contains(**key)).count() as u64;
        assert!((30_000..90_000).contains(&found), "{found}");
        let tally = restored.report().tally;
        assert_eq!(tally.evictions, evicted, "{layout}");
        // Some keys are found by the fingerprints of others.
        let fresh = tally.fresh.unwrap() - evicted.unwrap();
        assert!(fresh <= found && fresh + 100 > found, "{fresh} of {found}");
    }
}

#[test]
fn what_threads_recorded_before_a_save_stays_recorded() {
    let filter = Arc::new(spec("bloom:k=4,memory=1MiB").build().unwrap());
    let keys: Vec<KeyHash> = (0..40_000).map(|key| hasher().hash_u64(key)).collect();
    let threads: Vec<_> = keys
        .chunks(10_000)
        .map(|keys| {
            let (filter, keys) = (Arc::clone(&filter), keys.to_vec());
            std::thread::spawn(move || observe(&filter, &keys))
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    let bytes = save(&filter);
    let restored = load(&bytes).unwrap();
    assert!(keys.iter().all(|key| restored.contains(*key)));
    assert_eq!(restored.report().tally.fresh, filter.report().tally.fresh);
}

#[test]
fn empty_blocks_take_a_few_bytes() {
    let filter = spec("row4x16:memory=4MiB").build().unwrap();
    // A key of the first line, and one of the last.
    for key in [7, u64::MAX] {
        filter.observe_one(KeyHash::from_uniform(key));
    }
    let bytes = save(&filter);
    assert!((2 << 20..(2 << 20) + 400).contains(&bytes.len()));
    let restored = load(&bytes).unwrap();
    assert!(restored.contains(KeyHash::from_uniform(u64::MAX)));
    assert_eq!(report(&restored), report(&filter));
}

#[test]
fn every_flipped_bit_is_found_and_a_state_that_ends_early() {
    let bytes = small();
    assert_damage_is_found(&bytes, |bytes| load(bytes).map(drop));
    let mut damaged = bytes.clone();
    let at = bytes.len() - 100;
    damaged[at] ^= 1;
    let text = "cannot read the saved state: block of lines 0 to 7: its checksum is wrong";
    assert_eq!(error_of(&damaged), text);
    let longer = [&bytes[..], b"more"].concat();
    let text = "cannot read the saved state: bytes follow its end, from byte ";
    assert!(error_of(&longer).starts_with(text));
}

#[test]
fn other_filters_and_hashers_are_rejected_with_what_differs() {
    let bytes = small();
    let saved = StateReader::open(&bytes[..]).unwrap();
    assert_eq!(*saved.spec(), (&spec("row2x32:memory=512B")).into());
    // As much memory as the filter takes.
    saved.check(&spec("row2x32:memory=575"), &hasher()).unwrap();
    for (other, text) in [
        ("row2x32:memory=1KiB", "memory=512B: expected memory=1KiB"),
        (
            "row4x16:memory=1KiB",
            "layout=row2x32: expected layout=row4x16",
        ),
        (
            "bloom:k=4,memory=512B",
            "layout=row2x32: expected layout=bloom",
        ),
    ] {
        let error = saved.check(&spec(other), &hasher()).unwrap_err();
        assert!(matches!(error, StateError::Mismatch { .. }), "{error:?}");
        assert_eq!(error.to_string(), format!("invalid state with {text}"));
    }
    let bloom = spec("bloom:k=4,memory=512B").build().unwrap();
    let bloom = save(&bloom);
    let bloom = StateReader::open(&bloom[..]).unwrap();
    let error = bloom.check(&spec("bloom:k=5,memory=512B"), &hasher());
    let text = "invalid state with k=4: expected k=5";
    assert_eq!(error.unwrap_err().to_string(), text);
    for other in [KeyHasher::seeded(1), KeyHasher::keyed([0; 16])] {
        let error = saved.check(&spec("row2x32:memory=512B"), &other);
        let text = format!(
            "invalid state with key hasher=wyhash {:016x}: expected key hasher={} {:016x}",
            hasher().id(),
            other.algorithm(),
            other.id()
        );
        assert_eq!(error.unwrap_err().to_string(), text);
    }
}

#[test]
fn a_shared_filter_is_no_filter_in_lines() {
    let (shared, lines) = (small(), saved_bytes(&parse("qqht:form=line,memory=512B")));
    let is_shared = "invalid state with a shared filter: expected a filter in lines";
    let is_in_lines = "invalid state with a filter in lines: expected a shared filter";
    let [saved, other] = [&shared, &lines].map(|bytes| StateReader::open(&bytes[..]).unwrap());
    let errors = [
        (
            saved.check(&parse("qqht:form=line,memory=512B"), &hasher()),
            is_shared,
        ),
        (saved.spec().lines().map(drop), is_shared),
        (saved.restore().map(drop), is_shared),
        (
            other.check(&spec("bloom:k=4,memory=512B"), &hasher()),
            is_in_lines,
        ),
        (other.restore_shared().map(drop), is_in_lines),
    ];
    for (result, text) in errors {
        let error = result.unwrap_err();
        assert!(matches!(error, StateError::Mismatch { .. }), "{error:?}");
        assert_eq!(error.to_string(), text);
    }
    let saved = StateReader::open(&shared[..]).unwrap();
    let error = restore_parts([saved], 2).unwrap_err().to_string();
    assert_eq!(error, is_shared);
}

#[test]
fn a_limit_of_memory_holds_before_a_filter_is_built() {
    // As much as no machine has.
    let header = Header::new(&spec("row4x16:memory=64TiB"), &hasher()).unwrap();
    let bytes = StateWriter::new(Vec::new(), &header).unwrap().into_output();
    let text = "invalid memory=65536GiB: expected a state of at most 4MiB";
    assert_eq!(error_of(&bytes).replace("64TiB", "65536GiB"), text);
    let saved = StateReader::open(&bytes[..]).unwrap();
    assert!(matches!(saved.restore_shared(), Err(StateError::Build(_))));
}

type Write<'a> = dyn Fn(&mut StateWriter<Vec<u8>>) -> Result<(), StateError> + 'a;

#[test]
fn other_sections_than_those_of_a_save_are_rejected() {
    let header = Header::new(&spec("bloom:k=4,memory=512B"), &hasher()).unwrap();
    let lines = [Line([3; 8]); 8];
    let error = |write: &Write| {
        let mut writer = StateWriter::new(Vec::new(), &header).unwrap();
        write(&mut writer).unwrap();
        let error = error_of(&writer.end().unwrap());
        let text = error.strip_prefix("cannot read the saved state: ");
        text.unwrap().to_owned()
    };
    let commit = |writer: &mut StateWriter<_>| writer.append_commit(Progress::default(), b"");
    let order = "the state of a shared filter: expected blocks of all lines in their order, and no \
                 keys";
    let ticks = "the state of a shared filter: expected blocks and a commit of one tick";
    for (write, text) in [
        (
            &(|writer: &mut StateWriter<_>| {
                writer.append_block(0, 0, &lines)?;
                writer.append_keys(Batch::new(&[KeyHash::from_uniform(1)]), 0)
            }) as &Write,
            order,
        ),
        (
            &|writer| {
                writer.append_block(0, 0, &lines)?;
                writer.append_block(0, 0, &lines)
            },
            order,
        ),
        (&|writer| writer.append_block(1, 0, &lines[1..]), order),
        (
            &|writer| {
                writer.append_block(0, 0, &lines[1..])?;
                commit(writer)
            },
            "it has no lines 7 to 7",
        ),
        (
            &|writer| writer.append_block(0, 0, &lines),
            "it has no commit",
        ),
        (
            &|writer| {
                writer.append_block(0, 1, &lines)?;
                commit(writer)
            },
            ticks,
        ),
        (
            &|writer| {
                writer.append_block(0, 0, &lines[..4])?;
                writer.append_block(4, 1, &lines[4..])?;
                commit(writer)
            },
            ticks,
        ),
    ] {
        assert_eq!(error(write), text);
    }
    let last = error(&|writer| {
        writer.append_block(0, 0, &lines)?;
        commit(writer)?;
        commit(writer)
    });
    assert!(last.ends_with("it follows the commit"), "{last}");
}

#[test]
fn headers_that_contradict_themselves_are_rejected() {
    let open = |lines: u64, first: u64, count: u64, flags: u32, spec: &str| {
        let bytes = header(lines, first, count, flags, spec);
        let error = StateReader::open(&bytes[..]).err()?.to_string();
        let text = error.strip_prefix("cannot read the saved state: the header: ");
        Some(text.unwrap().to_owned())
    };
    let spec = "bloom:k=4,memory=512B";
    assert_eq!(open(8, 0, 8, 2, spec), None);
    for ([lines, first, count, flags], text) in [
        ([9, 0, 9, 2], "9 lines, and its specification has 8"),
        ([8, 0, 4, 2], "4 lines from line 0 of 8 are no part"),
        ([8, 1, 7, 2], "7 lines from line 1 of 8 are no part"),
        ([8, 0, 8, 3], "flags 0x3 are not known"),
        ([8, 0, 8, 4], "flags 0x4 are not known"),
    ] {
        let error = open(lines, first, count, flags as u32, spec);
        assert_eq!(error.as_deref(), Some(text));
    }
    for (spec, text) in [
        ("bloom:k=0,memory=512B", "invalid k=0: expected 1 to 10"),
        (
            "qht:form=line,memory=512B",
            "invalid layout=qht: expected one of row4x16, row2x32, bloom, ageing, stamped",
        ),
    ] {
        let error = open(8, 0, 8, 2, spec).unwrap();
        assert_eq!(error, format!("its specification is not known: {text}"));
    }
}

/// As those of filters in lines: `UPDATE_STATES=1 cargo test -p echoless --test specs` writes them
/// anew, which needs another version of the format.
#[test]
fn states_of_every_layout_are_as_they_were() {
    let folder = PathBuf::from(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/specs/shared_states"
    ));
    for (name, options) in [
        ("row4x16", ""),
        ("row2x32", ""),
        ("bloom", ""),
        ("ageing", ""),
        ("stamped", "window=100,"),
    ] {
        let filter = spec(&format!("{name}:{options}memory=1KiB"))
            .build()
            .unwrap();
        for number in 0..1000 {
            filter.advance_to(number / 3);
            filter.observe_one(hasher().hash_u64(number % 400));
        }
        let bytes = save(&filter);
        let path = folder.join(format!("{name}.state"));
        if std::env::var_os("UPDATE_STATES").is_some() {
            fs::create_dir_all(&folder).unwrap();
            fs::write(&path, &bytes).unwrap();
        }
        let found = fs::read(&path).unwrap();
        assert!(found == bytes, "{name} is not {}", path.display());
        let restored = load(&found).unwrap();
        assert_eq!(report(&restored), report(&filter), "{name}");
        assert_eq!(save(&restored), found, "{name}");
    }
    assert_eq!(fs::read_dir(folder).unwrap().count(), 5);
}
