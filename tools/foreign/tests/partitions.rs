//! Partitions of tasks against the undivided filter, while they are saved and move.

use std::ops::Range;

use echoless::{KeyHash, KeyHasher, Partitioning};
use echoless_foreign::{Code, Filter, Hashes, Partitions, ReportFields, TimeRules, fate};
use echoless_stream::{TaskClock, Window};
use proptest::collection::vec;
use proptest::prelude::*;

const SPEC: &str = "fingerprint:fpr=1e-8,memory=64KiB";
const COUNT: usize = 16;

fn hasher() -> KeyHasher {
    KeyHasher::seeded(7)
}

fn open(spec: &str, owned: Range<usize>) -> Partitions {
    Partitions::open(spec, hasher(), COUNT, owned).unwrap()
}

fn keys(ids: &[u64]) -> Vec<KeyHash> {
    ids.iter().map(|id| hasher().hash_u64(*id)).collect()
}

fn words(keys: usize) -> Vec<u64> {
    vec![u64::MAX; keys.div_ceil(64)]
}

fn saved(partitions: &mut Partitions, partition: usize) -> Vec<u8> {
    let mut part = Vec::new();
    partitions.save(partition, &mut part).unwrap();
    part
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// With windows there are no ticks here, so that all clocks are equal.
    #[test]
    fn verdicts_are_those_of_the_undivided_filter(
        batches in vec(vec(0..30_000_u64, 0..3000), 1..8),
        filter in prop::sample::select(vec![
            SPEC,
            "stamped:window=1000,memory=64KiB",
            "clocked:window=1000,memory=64KiB",
            "dense:replacement=fifo,memory=64KiB",
        ]),
        moved in any::<prop::sample::Index>(),
    ) {
        let mut whole = Filter::new(filter, hasher()).unwrap();
        let mut tasks = open(filter, 0..COUNT);
        let moved = moved.index(batches.len());
        for (number, ids) in batches.iter().enumerate() {
            if number == moved {
                // All partitions move to another task.
                let mut next = open(filter, 0..COUNT);
                for partition in 0..COUNT {
                    let part = saved(&mut tasks, partition);
                    next.load(partition, &part[..]).unwrap();
                    prop_assert_eq!(saved(&mut next, partition), part);
                }
                tasks = next;
            }
            let keys = keys(ids);
            let [mut expected, mut found] = [words(ids.len()), words(ids.len())];
            let count = whole.observe(&Hashes(&keys), None, &mut expected).unwrap();
            prop_assert_eq!(tasks.observe(&Hashes(&keys), None, &mut found).unwrap(), count);
            prop_assert_eq!(found, expected);
        }
        let fields = |report| {
            let fields = ReportFields::from(&report);
            (fields.observed, fields.fresh, fields.evictions, fields.fill.to_bits())
        };
        prop_assert_eq!(fields(tasks.report()), fields(whole.report()));
        prop_assert_eq!(tasks.memory_bytes(), whole.memory_bytes());
    }

    #[test]
    fn an_even_division_is_that_of_the_engine(hash: u64, count in 1..70_usize, share in 1..70_u64) {
        let partitioning = Partitioning::new(share * count as u64, count).unwrap();
        for hash in [hash, 0, u64::MAX] {
            let key = KeyHash::from_uniform(hash);
            prop_assert_eq!(Partitions::partition_of(key, count), partitioning.partition_of(key));
        }
        for index in 1..count {
            // The lowest hash of a partition, and the one before.
            let start = ((index as u128) << 64).div_ceil(count as u128) as u64;
            for hash in [start - 1, start] {
                let key = KeyHash::from_uniform(hash);
                let owner = partitioning.partition_of(key);
                prop_assert_eq!(Partitions::partition_of(key, count), owner);
            }
        }
    }

    /// A snapshot that is saved later, or never, is the state at its call.
    #[test]
    fn a_snapshot_is_the_state_at_its_call(
        batches in vec(vec(0..3000_u64, 0..500), 4..12),
        spec in prop::sample::select(vec![SPEC, "clocked:window=700,memory=64KiB"]),
        steps in 1..2000_u64,
    ) {
        let mut task = open(spec, 0..COUNT);
        let mut snapshots = Vec::new();
        let mut tick = 0;
        for ids in &batches {
            let expected: Vec<Vec<u8>> =
                (0..COUNT).map(|partition| saved(&mut task, partition)).collect();
            snapshots.push((task.snapshot(), expected));
            let ticks: Vec<u64> = ids.iter().map(|id| tick + id % steps).collect();
            tick += steps;
            let keys = keys(ids);
            task.observe(&Hashes(&keys), Some(&ticks), &mut words(ids.len())).unwrap();
            // The oldest is saved in between.
            if snapshots.len() == 3 {
                let (snapshot, expected) = snapshots.remove(0);
                for (partition, expected) in expected.iter().enumerate().rev() {
                    let mut part = Vec::new();
                    snapshot.save(partition, &mut part).unwrap();
                    prop_assert_eq!(&part, expected);
                    prop_assert!(snapshot.save(partition, &mut part).is_err());
                }
            }
        }
    }
}

/// The rules of a window, where late records and those beyond the skew are judged or not.
fn rules(skew: u64, judged: u8, failing: u8) -> TimeRules {
    TimeRules {
        window: Window::new(1000, 100, skew),
        max_advance: Some(50_000),
        judged,
        failing,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// One call for a batch is one call for each record at the tick of its clock, over restarts.
    #[test]
    fn records_are_judged_at_the_clocks_of_their_partitions(
        batches in vec(vec((0..40_u64, -1..4000_i64), 0..200), 1..6),
        skew in prop::sample::select(vec![0_u64, 700]),
        judged in prop::sample::select(vec![0, fate::LATE, fate::BEYOND_SKEW, fate::LATE | fate::BEYOND_SKEW]),
    ) {
        let rules = rules(skew, judged, 0);
        let Window { ticks, .. } = rules.window;
        let spec = match skew {
            0 => format!("clocked:window={ticks},memory=64KiB"),
            _ => {
                let skew = rules.window.remembered_beyond();
                format!("stamped:window={ticks},skew={skew},memory=64KiB")
            }
        };
        let (mut tasks, mut single) = (open(&spec, 0..COUNT), open(&spec, 0..COUNT));
        tasks.set_time_rules(rules);
        let judges_beyond_skew = judged & fate::BEYOND_SKEW != 0;
        let mut clock = TaskClock::new(COUNT, rules.window, rules.max_advance, judges_beyond_skew);
        for (number, records) in batches.iter().enumerate() {
            let ids: Vec<u64> = records.iter().map(|(id, _)| *id).collect();
            let mut times: Vec<i64> = records.iter().map(|(_, time)| *time).collect();
            if let Some(time) = times.get_mut(7) {
                *time += 1_000_000;
            }
            let keys = keys(&ids);
            let mut fates = vec![0; ids.len()];
            let found = tasks.judge(&Hashes(&keys), &times, 2000, &mut fates).unwrap();
            let expected = keys.iter().zip(&times).map(|(key, time)| {
                if *time < 0 {
                    return fate::UNJUDGED;
                }
                let place = clock.place(Partitions::partition_of(*key, COUNT), *time, 2000);
                let mut expected = 0;
                for (is_set, bit) in [
                    (place.is_late, fate::LATE),
                    (place.is_beyond_skew, fate::BEYOND_SKEW),
                    (place.is_too_far_ahead, fate::TOO_FAR_AHEAD),
                ] {
                    expected |= if is_set { bit } else { 0 };
                }
                if expected & !judged != 0 {
                    return expected | fate::UNJUDGED;
                }
                let mut word = [0];
                let ticks = [place.tick];
                let duplicate = single.observe(&Hashes(&[*key]), Some(&ticks), &mut word);
                expected | duplicate.unwrap() as u8
            });
            let expected: Vec<u8> = expected.collect();
            prop_assert_eq!(&fates, &expected);
            let duplicates = fates.iter().filter(|fate| *fate & fate::DUPLICATE != 0);
            prop_assert_eq!(found, duplicates.count() as u64);
            tasks.set_watermark(number as i64 * 500, 2000);
            clock.set_watermark(number as i64 * 500, 2000);
            let mut clocks = clock.latest().to_vec();
            clocks.push(clock.watermark());
            prop_assert_eq!(tasks.clocks(), clocks);
        }
    }
}

/// As records without a key, which come to any task.
#[test]
fn records_that_are_not_judged_need_no_owned_partition() {
    let all = keys(&(0..64).collect::<Vec<_>>());
    let is_owned = |key: &&KeyHash| Partitions::partition_of(**key, COUNT) < COUNT / 2;
    let (owned, others): (Vec<KeyHash>, Vec<KeyHash>) = all.iter().partition(is_owned);
    for has_rules in [false, true] {
        let mut task = open("clocked:window=600,memory=64KiB", 0..COUNT / 2);
        if has_rules {
            task.set_time_rules(rules(0, 0, 0));
        }
        let mut fates = [0; 3];
        let batch = [owned[0], others[0], owned[0]];
        let found = task.judge(&Hashes(&batch), &[5_000, -1, 5_000], 0, &mut fates);
        assert_eq!(found.unwrap(), 1);
        assert_eq!(fates, [0, fate::UNJUDGED, fate::DUPLICATE]);
        let wrong = task.judge(&Hashes(&batch), &[5_000; 3], 0, &mut fates);
        assert_eq!(wrong.unwrap_err().code, Code::InvalidArgument);
    }
}

#[test]
fn records_that_fail_say_what_is_wrong_with_their_time() {
    for (skew, failing, time, text) in [
        (
            0,
            fate::LATE,
            8_899,
            "late: the clock of its key group is at 10000",
        ),
        (
            600,
            fate::BEYOND_SKEW,
            10_601,
            "more than the skew, 600 ms, beyond the watermark at 10000",
        ),
        (
            0,
            fate::TOO_FAR_AHEAD,
            60_001,
            "too far ahead: more than maxAdvance, 50000 ms, beyond the clock at 10000",
        ),
    ] {
        let mut task = open("stamped:window=1000,skew=2000,memory=64KiB", 0..COUNT);
        task.set_time_rules(rules(skew, 0, failing));
        task.set_watermark(10_000, 0);
        let keys = keys(&[1, 1]);
        let mut fates = [0; 2];
        let times = [10_000, time];
        let failure = task
            .judge(&Hashes(&keys), &times, 0, &mut fates)
            .unwrap_err();
        assert_eq!(
            failure.text,
            format!("a record of event time {time} is {text}")
        );
    }
    let mut task = open(SPEC, 0..COUNT);
    let failure = task
        .judge(&Hashes(&keys(&[1])), &[], 0, &mut [0])
        .unwrap_err();
    assert_eq!(failure.code, Code::InvalidArgument);
    // Without rules, only what has no time is not judged.
    let mut fates = [0; 3];
    let keys = keys(&[1, 1, 1]);
    assert_eq!(
        task.judge(&Hashes(&keys), &[0, -1, 0], 0, &mut fates)
            .unwrap(),
        1
    );
    assert_eq!(fates, [0, fate::UNJUDGED, fate::DUPLICATE]);
}

#[test]
fn partitions_that_do_not_fit_are_rejected() {
    let open = |spec, count, owned| Partitions::open(spec, hasher(), count, owned).unwrap_err();
    for (count, owned) in [(16, 4..4), (16, 15..17), (0, 0..1)] {
        assert_eq!(open(SPEC, count, owned).code, Code::InvalidSpec);
    }
    let failure = open(SPEC, 100, 0..100);
    assert_eq!(
        failure.text,
        "invalid memory=65536B: expected a multiple of 6400 bytes, so that 100 partitions are \
         equal: 64000B or 70400B"
    );
    let mut task = Partitions::open("fingerprint:fpr=1e-8,memory=70400B", hasher(), 100, 3..5);
    let task = task.as_mut().unwrap();
    let key = KeyHash::from_uniform(u64::MAX / 100 * 5 + 100);
    let failure = task.observe(&Hashes(&[key]), None, &mut [0]).unwrap_err();
    assert_eq!(
        failure.text,
        "invalid partition=5 of key 0: expected one of 3 to 4 of 100"
    );
    assert_eq!(task.report().tally.observed, Some(0));
}

/// All keys are in the last 64 of 1024 lines, so a report that has them has read all lines.
/// Without a window, no report reads any.
#[test]
fn a_report_in_slices_reads_so_many_lines_in_a_call() {
    let text = |report| format!("{:?}", ReportFields::from(&report));
    for spec in [
        "clocked:window=9,memory=64KiB",
        "clocked:window=9,dense=true,memory=64KiB",
    ] {
        // A call reads 128 lines, which are two pages and two partitions.
        let mut task = open(spec, 0..COUNT);
        for ids in [0..300, 300..400] {
            let keys = keys(&ids.collect::<Vec<_>>());
            let last = |key: &KeyHash| KeyHash::from_uniform(15 << 60 | key.get() >> 4);
            let keys: Vec<KeyHash> = keys.iter().map(last).collect();
            let before = task.report().fill();
            task.observe(&Hashes(&keys), None, &mut words(keys.len()))
                .unwrap();
            assert_ne!(task.report().fill(), before);
            for _ in 0..7 {
                let report = task.report_in_slices(100);
                assert_eq!(report.tally.observed, task.report().tally.observed);
                assert_eq!(report.fill(), before);
            }
            assert_eq!(text(task.report_in_slices(100)), text(task.report()));
        }
    }
    let mut task = open(SPEC, 0..COUNT);
    let keys = keys(&(0..5000).collect::<Vec<_>>());
    task.observe(&Hashes(&keys), None, &mut words(5000))
        .unwrap();
    assert_eq!(text(task.report_in_slices(0)), text(task.report()));
}
