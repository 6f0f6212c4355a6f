//! Ordered filters that are saved while threads observe: the state is that of a run that ended at
//! the cut, and a save that fails leaves nothing behind.

use std::io::{self, Write};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use echoless::assembly::SaveError;
use echoless::filters::lines::{LineRange, Progress};
use echoless::memory::Line;
use echoless::state::{StateError, StateReader, restore_parts};
use echoless::{
    Batch, ExchangeError, Filter, FilterSpec, KeyHash, KeyHasher, LineFilter, OrderedFilter,
    Partitioned, Tally, Verdicts, report_of,
};
use proptest::prelude::*;

use crate::breakable::{Breakable, breakable};

type Lines = Box<dyn LineFilter>;

fn hasher() -> KeyHasher {
    KeyHasher::seeded(0)
}

fn parse(text: &str) -> FilterSpec {
    text.parse().unwrap()
}

fn build(spec: &FilterSpec, parts: usize) -> OrderedFilter<Lines> {
    OrderedFilter::builder(spec.build_line_partitions(parts).unwrap()).build()
}

/// Filters of which duplicates change lines, and others; with a clock, and without one. Several
/// blocks each.
fn specs() -> impl Strategy<Value = FilterSpec> {
    prop::sample::select(vec![
        "rowlru:slots=16,bits=32,form=line,memory=3MiB",
        "qqht:slots=16,bits=32,form=line,memory=3MiB",
        "qqhtd:slots=64,bits=8,form=line,memory=8KiB",
        "dense:memory=1200KiB",
        "clocked:window=300,memory=2500KiB",
        "clocked:window=300,dense=true,refresh=false,memory=64KiB",
        "stamped:window=300,refresh=false,memory=1200KiB",
        "stamped:window=90000,bits=32,memory=256KiB",
    ])
    .prop_map(parse)
}

/// Batches with ticks, some of which are late, and long jumps of the clock now and then.
fn batches(seed: u64, count: usize, keys: u64) -> Vec<(Vec<u64>, Vec<KeyHash>)> {
    let mut clock = seed % 1000;
    let random = |number: u64| KeyHash::from_uniform(seed ^ number).remix(3);
    (0..count as u64)
        .map(|batch| {
            let length = 1 + random(batch << 20) % 60;
            let arrivals = (0..length).map(|index| {
                let random = random((batch << 20) | (index + 1));
                clock += random % 3;
                if random % 4001 == 0 {
                    clock += 1_300_000;
                }
                let late = if random % 7 == 0 { random % 400 } else { 0 };
                (
                    clock.saturating_sub(late),
                    hasher().hash_u64(random >> 32 & keys),
                )
            });
            arrivals.unzip()
        })
        .collect()
}

fn lines(filters: &[Lines]) -> Vec<Line> {
    let mut all = Vec::new();
    for filter in filters {
        let from = all.len();
        all.resize(from + filter.lines().len(), Line::EMPTY);
        filter.copy_lines(0, &mut all[from..]);
    }
    all
}

fn progress(filters: &[Lines]) -> Progress {
    let tally = report_of(filters).tally;
    Progress {
        observed: tally.observed.unwrap(),
        fresh: tally.fresh.unwrap(),
        evictions: tally.evictions.unwrap_or(0),
        tick: filters[0].progress().tick,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn a_filter_is_saved_while_threads_observe(
        spec in specs(), seed: u64, parts in 1_usize..5, after in 1_usize..5, threads in 1_usize..4,
        count in 1_usize..250, keys in 0_u32..13,
    ) {
        let has_clock = spec.facts().window.is_some();
        let most = spec.most_partitions() as usize;
        let [parts, after] = [parts, after].map(|count| count.min(most));
        let batches = batches(seed, count, (1 << keys) - 1);
        let filter = build(&spec, parts);
        let input = Mutex::new(0);
        let verdicts_of = Mutex::new(vec![Vec::new(); batches.len()]);
        let run = || {
            let (mut handle, mut verdicts) = (filter.handle(), Verdicts::new());
            loop {
                let mut next = input.lock().unwrap();
                let number = *next;
                let Some((ticks, keys)) = batches.get(number) else { return };
                *next += 1;
                let ticket = handle.ticket();
                drop(next);
                let batch = match has_clock {
                    true => Batch::at_each(keys, ticks),
                    false => Batch::new(keys),
                };
                ticket.observe(batch, &mut verdicts).unwrap();
                verdicts_of.lock().unwrap()[number] = verdicts.to_bools();
            }
        };
        let mut file = Vec::new();
        thread::scope(|scope| {
            let threads: Vec<_> = (0..threads).map(|_| scope.spawn(run)).collect();
            let saved = filter.save(&spec, &hasher(), &mut file, |saver| {
                let next = input.lock().unwrap();
                Ok((saver.ticket(), next.to_le_bytes().to_vec()))
            });
            saved.unwrap();
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        });

        let saved = StateReader::open(&file[..]).unwrap();
        saved.check(&spec, &hasher()).unwrap();
        let restored = restore_parts([saved], after).unwrap();
        let cut = usize::from_le_bytes(restored.bytes.concat().try_into().unwrap());
        let mut whole = [spec.build_lines().unwrap()];
        let mut observe = |filters: &mut Partitioned<Lines>, from: usize, end: usize| {
            for (number, (ticks, keys)) in batches.iter().enumerate().take(end).skip(from) {
                let mut verdicts = Verdicts::new();
                let mut clocks = ticks.clone();
                if has_clock {
                    whole[0].observe_at(keys, ticks, &mut verdicts);
                } else {
                    clocks.fill(0);
                    whole[0].observe(keys, &mut verdicts);
                }
                let expected = &verdicts_of.lock().unwrap()[number];
                assert_eq!(&verdicts.to_bools(), expected);
                if from == 0 {
                    continue;
                }
                for ((tick, key), expected) in clocks.iter().zip(keys).zip(expected) {
                    filters.filters_mut().iter_mut().for_each(|part| part.advance_to(*tick));
                    let owner = filters.partitioning().partition_of(*key);
                    let verdict = filters.filters_mut()[owner].observe_one(*key);
                    assert_eq!(verdict.is_duplicate(), *expected);
                }
            }
            (lines(&whole), progress(&whole))
        };
        let mut filters = restored.filter;
        if cut > 0 {
            let (lines_at_cut, progress_at_cut) = observe(&mut filters, 0, cut);
            prop_assert_eq!(progress_at_cut, restored.progress);
            prop_assert_eq!(progress_at_cut, progress(filters.filters()));
            prop_assert!(lines(filters.filters()) == lines_at_cut, "{}", spec);
            let (lines_at_end, progress_at_end) = observe(&mut filters, cut, batches.len());
            prop_assert_eq!(progress_at_end, progress(filters.filters()));
            prop_assert!(lines(filters.filters()) == lines_at_end, "{}", spec);
            // The filter itself has gone on.
            let (_, own) = filter.shutdown().unwrap().into_parts();
            prop_assert!(lines(&own) == lines_at_end, "{}", spec);
        }
    }
}

/// Fails after so many bytes, with an error or a panic. Meanwhile, batches come.
struct Broken<'a> {
    left: usize,
    panics: bool,
    meanwhile: &'a dyn Fn(),
}

impl Write for Broken<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (self.meanwhile)();
        match self.left.checked_sub(bytes.len()) {
            Some(left) => self.left = left,
            None if self.panics => resume_unwind(Box::new("unplugged")),
            None => return Err(io::Error::other("unplugged")),
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn small() -> FilterSpec {
    parse("rowlru:form=line,memory=4KiB")
}

/// The bytes of a state of two partitions.
fn saved<F: LineFilter>(filter: &OrderedFilter<F>) -> Result<Vec<u8>, SaveError> {
    let mut file = Vec::new();
    let cut = filter.save(&small(), &hasher(), &mut file, |saver| {
        Ok((saver.ticket(), Vec::new()))
    });
    cut.map(|()| file)
}

#[test]
fn a_writer_that_fails_leaves_a_filter_that_can_be_saved() {
    let filter = build(&small(), 2);
    let number = AtomicUsize::new(0);
    let meanwhile = || {
        let keys: Vec<KeyHash> = (0..50)
            .map(|_| hasher().hash_u64(number.fetch_add(1, Ordering::Relaxed) as u64))
            .collect();
        filter
            .handle()
            .observe(&keys, &mut Verdicts::new())
            .unwrap();
    };
    meanwhile();
    let length = saved(&filter).unwrap().len() + 1000;
    for panics in [false, true] {
        for left in (0..length).step_by(97) {
            let output = Broken {
                left,
                panics,
                meanwhile: &meanwhile,
            };
            let save = || {
                filter.save(&small(), &hasher(), output, |saver| {
                    Ok((saver.ticket(), Vec::new()))
                })
            };
            match catch_unwind(AssertUnwindSafe(save)) {
                Ok(Err(SaveError::State(StateError::Io(error)))) => {
                    assert_eq!(error.to_string(), "unplugged");
                }
                Ok(other) => assert!(!panics || other.is_ok(), "{other:?}"),
                Err(_) => assert!(panics),
            }
        }
    }
    let file = saved(&filter).unwrap();
    let restored = StateReader::open(&file[..]).unwrap().restore().unwrap();
    let own = filter.shutdown().unwrap();
    assert_eq!(lines(&[restored.filter]), lines(own.filters()));
}

#[test]
fn a_cut_that_panics_or_fails_blocks_no_thread() {
    let filter = build(&small(), 2);
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        filter.save(&small(), &hasher(), Vec::new(), |saver| {
            let _ticket = saver.ticket();
            resume_unwind(Box::new("no position"))
        })
    }));
    assert!(panicked.is_err());
    // Too many bytes of the caller.
    let error = filter.save(&small(), &hasher(), Vec::new(), |saver| {
        Ok((
            saver.ticket(),
            vec![0; echoless::state::MOST_COMMIT_BYTES + 1],
        ))
    });
    assert!(
        matches!(error, Err(SaveError::State(StateError::Build(_)))),
        "{error:?}"
    );
    let keys = [1, 2].map(|key| hasher().hash_u64(key));
    filter
        .handle()
        .observe(&keys, &mut Verdicts::new())
        .unwrap();
    assert!(saved(&filter).is_ok());
}

/// Keys that come while an output hangs have a limit. The save ends with it, and nothing else does.
#[test]
fn keys_beyond_the_limit_end_the_save_and_no_batch() {
    for (most, fails) in [(0, true), (199, true), (1 << 20, false)] {
        let partitions = small().build_line_partitions(2).unwrap();
        let filter = OrderedFilter::builder(partitions).saver_keys(most).build();
        let number = AtomicUsize::new(0);
        let meanwhile = || {
            let next = || hasher().hash_u64(number.fetch_add(1, Ordering::Relaxed) as u64);
            let keys: Vec<KeyHash> = (0..500).map(|_| next()).collect();
            let mut verdicts = Verdicts::new();
            filter.handle().observe(&keys, &mut verdicts).unwrap();
            assert!(verdicts.count_duplicates() < 10);
        };
        let output = Broken {
            left: 1 << 20,
            panics: false,
            meanwhile: &meanwhile,
        };
        let result = filter.save(&small(), &hasher(), output, |saver| {
            Ok((saver.ticket(), Vec::new()))
        });
        match result {
            Err(SaveError::Keys(limit)) => assert!(fails && limit == most, "{limit}"),
            other => assert!(!fails && other.is_ok(), "{other:?}"),
        }
        meanwhile();
        // The next save is as good as any.
        let file = saved(&filter).unwrap();
        let restored = StateReader::open(&file[..]).unwrap().restore().unwrap();
        let own = filter.shutdown().unwrap();
        assert_eq!(lines(&[restored.filter]), lines(own.filters()));
    }
}

#[test]
fn filters_of_another_specification_are_not_saved() {
    for other in ["rowlru:form=line,memory=8KiB", "qqht:form=line,memory=4KiB"] {
        let filter = build(&parse(other), 2);
        let error = saved(&filter).unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with("invalid partitions="), "{text}");
        assert!(filter.handle().ticket().report().is_ok());
    }
}

/// During a save, `with` is called once.
fn saved_with<F: LineFilter>(
    filter: &OrderedFilter<F>,
    with: impl FnOnce(),
) -> Result<(), SaveError> {
    filter.save(&small(), &hasher(), Vec::new(), |saver| {
        with();
        Ok((saver.ticket(), Vec::new()))
    })
}

#[test]
fn a_second_save_ends_and_neither_it_nor_a_report_ends_the_first() {
    let filter = build(&small(), 3);
    saved_with(&filter, || {
        filter.handle().ticket().report().unwrap();
    })
    .unwrap();
    let error = saved_with(&filter, || {
        let error = saved(&filter).unwrap_err();
        assert!(matches!(error, SaveError::Busy), "{error:?}");
    });
    assert!(error.is_ok());
    saved(&filter).unwrap();
}

#[test]
fn partitions_in_the_wrong_place_are_not_saved() {
    let (_, mut filters) = small().build_line_partitions(2).unwrap().into_parts();
    let partitioning = echoless::Partitioning::new(64, 2).unwrap();
    // The lines of partition 0 in both places: keys of partition 1 panic.
    filters[1] = small().build_line_partition(0, 2).unwrap();
    let wrong = Partitioned::new(partitioning, filters).unwrap();
    let filter = OrderedFilter::builder(wrong).build();
    let error = saved(&filter).unwrap_err();
    assert!(
        matches!(error, SaveError::State(StateError::Build(_))),
        "{error}"
    );
}

const BAD: KeyHash = KeyHash::from_uniform(u64::MAX);

impl LineFilter for Breakable<Lines> {
    fn lines(&self) -> &[Line] {
        self.inner.lines()
    }

    fn finish_expiry(&mut self) {
        self.inner.finish_expiry();
    }

    fn range(&self) -> LineRange {
        self.inner.range()
    }

    fn bucket_lines(&self) -> u64 {
        self.inner.bucket_lines()
    }

    fn progress(&self) -> Progress {
        self.inner.progress()
    }

    fn counters(&self) -> Tally {
        self.inner.counters()
    }

    fn count_lines(&self, lines: Range<usize>) -> Tally {
        self.inner.count_lines(lines)
    }

    fn parameters(&self) -> String {
        self.inner.parameters()
    }

    fn duplicates_change_lines(&self) -> bool {
        self.inner.duplicates_change_lines()
    }

    fn next_era(&self) -> u64 {
        self.inner.next_era()
    }

    fn copy_lines(&self, first: usize, into: &mut [Line]) {
        self.inner.copy_lines(first, into);
    }

    fn load_lines(&mut self, first: usize, lines: &[Line]) {
        self.inner.load_lines(first, lines);
    }

    fn clear_lines(&mut self, lines: Range<usize>) {
        self.inner.clear_lines(lines);
    }

    fn set_counts(&mut self, counts: Progress) {
        self.inner.set_counts(counts);
    }
}

/// A partition that is lost before the save, and one that is lost between its copy and the cut,
/// whether or not it is replaced.
#[test]
fn a_partition_that_is_lost_ends_the_save() {
    for replaced in [false, true] {
        let (filter, switches) = breakable(small().build_line_partitions(2).unwrap());
        let filter = OrderedFilter::builder(filter).build();
        let upper = || Breakable {
            inner: small().build_line_partition(1, 2).unwrap(),
            switch: Arc::clone(&switches[1]),
        };
        let lose = || {
            switches[1].store(true, Ordering::Relaxed);
            let lost = filter.handle().observe(&[BAD], &mut Verdicts::new());
            lost.unwrap_err();
        };
        let assert_lost = |error: SaveError| {
            let is_lost = matches!(error, SaveError::Exchange(ExchangeError::Panicked(1)));
            assert!(is_lost, "{error}");
        };
        lose();
        assert_lost(saved(&filter).unwrap_err());
        assert!(filter.handle().ticket().report().is_err());
        filter.replace(1, upper()).unwrap();
        let error = saved_with(&filter, || {
            lose();
            if replaced {
                filter.replace(1, upper()).unwrap();
                let observed = filter.handle().observe(&[BAD], &mut Verdicts::new());
                observed.unwrap();
            }
        });
        assert_lost(error.unwrap_err());
        if !replaced {
            filter.replace(1, upper()).unwrap();
        }
        let mut file = Vec::new();
        let saved = filter.save(&small(), &hasher(), &mut file, |saver| {
            Ok((saver.ticket(), Vec::new()))
        });
        saved.unwrap();
        assert!(StateReader::open(&file[..]).unwrap().restore().is_ok());
    }
}

#[test]
fn reports_of_a_filter_in_use_are_those_of_the_whole() {
    let spec = parse("dense:memory=64KiB");
    let mut whole = spec.build_lines().unwrap();
    let filter = build(&spec, 4);
    let keys: Vec<KeyHash> = (0..30_000)
        .map(|key| hasher().hash_u64(key % 20_000))
        .collect();
    let mut verdicts = Verdicts::new();
    whole.observe(&keys, &mut verdicts);
    filter.handle().observe(&keys, &mut verdicts).unwrap();
    let mut report = filter.handle().ticket().report().unwrap();
    let mut expected = whole.report();
    report.look_ahead = None;
    expected.look_ahead = None;
    assert_eq!(report, expected);
    filter.shutdown().unwrap();
}
