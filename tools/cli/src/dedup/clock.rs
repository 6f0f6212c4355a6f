//! The clock of a windowed stream: the largest event time so far, or the number of the record.
//!
//! A filter judges each key at its tick, the clock at this key:
//!
//! ```text
//! clock before the chunk: 5
//! times of the records   4  5  7  6  7  9  2
//! steps (reading)        4  5  7        9        the running maximum, from this chunk alone
//! clock                  5  5  7  7  7  9  9     max(clock before, running maximum)
//! ```
//!
//! The first needs something from all chunks before it: their clock, or the number of their
//! records. Everything else follows from the chunk itself. So reading a chunk, in parallel, leaves
//! its steps behind; then the chunks pass [`StreamClock::place`] in the order of the stream, which
//! reads the last step and hands the clock on. It waits for nothing but the same step of the chunk
//! before. Giving each key its tick and searching for late records follow in parallel again
//! ([`set_ticks`]).
//!
//! No thread can wait forever: a thread fills the next chunk, reads it, and waits only for chunks
//! that were filled before. The ticks are the same on any number of threads.
//!
//! With `--max-advance`, times that are too far ahead of the clock are taken from their records
//! there, too.
//!
//! Dates without a year and times of day are read as positions in a year or day, and the years or
//! days follow from all records before: [`place`](StreamClock::place) turns positions into times,
//! record by record, before anything else.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use echoless_records::chunk::{Chunk, ChunkKeys, ClockStep, NO_TIME};
use echoless_records::failure::lock;
use echoless_records::fault::{Fate, Fault, FaultPolicy, Missing, Problem};
use echoless_records::time::recurring::Unroller;
use echoless_stream::{AheadRun, Clock, MaxAdvance, is_late, tick_since};
use serde::{Deserialize, Serialize};

use crate::config::{ClockSource, Late, WindowConfig};

/// The clock up to some chunk of the stream.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(super) struct StreamClock {
    /// The first time of the stream and the largest so far.
    range: Option<(i64, i64)>,
    records: u64,
    /// Determines the years or the days, where times leave them out.
    unroller: Option<Unroller>,
    /// The records in a row that are too far ahead.
    #[serde(default)]
    ahead: AheadRun,
}

impl StreamClock {
    /// Places the next chunk of the stream, which is read: notes its clock, and counts its records.
    /// Returns the number of records before it.
    fn place(&mut self, window: &WindowConfig, chunk: &mut Chunk) -> u64 {
        if let ClockSource::Field(time) = &window.clock
            && let Some(period) = time.format.period()
        {
            let unroller = || Unroller::new(period, time.first_year);
            let unroller = self.unroller.get_or_insert_with(unroller);
            place_positions(unroller, window, chunk);
        }
        if let Some(advance) = window.max_advance {
            self.bound_advance(advance, window, chunk);
        }
        let records = self.records;
        self.records += chunk.own_records() as u64;
        chunk.clock.before = self.range.map(|(_, latest)| latest);
        if window.clock.is_time() {
            let (_, steps) = steps_beyond(chunk.clock.before, &chunk.keys);
            if let (Some(first), Some(last)) = (steps.first(), steps.last()) {
                self.range = Some((self.range.map_or(first.time, |(first, _)| first), last.time));
            }
        }
        chunk.clock.first = self.range.map_or(NO_TIME, |(first, _)| first);
        chunk.clock.after = self.range.map(|(_, latest)| latest);
        chunk.clock.unroller = self.unroller;
        chunk.clock.ahead_run = self.ahead;
        records
    }

    /// Takes the times from the records of the next chunk that are too far ahead, which are then
    /// treated as those without one.
    fn bound_advance(&mut self, advance: MaxAdvance, window: &WindowConfig, chunk: &mut Chunk) {
        let mut clock = Clock {
            latest: self.range.map(|(_, latest)| latest),
            ahead: self.ahead,
        };
        let (_, steps) = steps_beyond(clock.latest, &chunk.keys);
        // A record that is too far ahead is a step in any case.
        let mut before = clock.latest.or(advance.now);
        let mut is_ahead = |step: &ClockStep| {
            let before = before.replace(step.time);
            before.is_some_and(|before| is_late(step.time, before, advance.most))
        };
        if self.ahead.records == 0 && !steps.iter().any(&mut is_ahead) {
            return;
        }
        let faults = window.faults();
        let mut ahead = Vec::new();
        for (hash, time) in chunk.keys.times.iter_mut().enumerate() {
            if *time == NO_TIME {
                continue;
            }
            let run = clock.ahead;
            if let Some(admitted) = clock.admit(*time, Some(advance)) {
                *time = admitted;
                continue;
            }
            let of_system = clock.latest.is_none();
            *time = NO_TIME;
            ahead.push((hash, Problem::Ahead { of_system }));
            if faults.ends_run(Problem::Ahead { of_system }) {
                // A run that goes on here judges the record again.
                clock.ahead = run;
                break;
            }
            chunk.clock.ahead += 1;
        }
        self.ahead = clock.ahead;
        treat_untimed(faults, chunk, &ahead);
    }

    /// Moves to the end of the next chunk of the stream, which another clock has
    /// [placed](Self::place).
    pub(super) fn pass(&mut self, chunk: &Chunk) {
        self.range = chunk.clock.after.map(|after| (chunk.clock.first, after));
        self.records += chunk.own_records() as u64;
        self.unroller = chunk.clock.unroller;
        self.ahead = chunk.clock.ahead_run;
    }

    /// The tick of the clock; `None` if it has not moved, or the filter counts its keys itself.
    pub(super) fn tick(&self, window: &WindowConfig) -> Option<u64> {
        match &window.clock {
            ClockSource::Records => {
                let before = self.records.checked_sub(1)?;
                Some(before / window.resolution + 1)
            }
            ClockSource::Keys => None,
            ClockSource::Field(_) | ClockSource::Packets => {
                self.range.map(|(first, latest)| tick_since(first, latest))
            }
        }
    }
}

/// The number of key hashes before the clock moves for the first time, and the steps at which it
/// moves.
fn steps_beyond(clock: Option<i64>, keys: &ChunkKeys) -> (usize, &[ClockStep]) {
    let reached = keys.steps.partition_point(|step| Some(step.time) <= clock);
    let steps = &keys.steps[reached..];
    let head = steps.first().map_or(keys.hashes.len(), |step| step.from);
    (head, steps)
}

/// Gives each key of a placed chunk, which has `records` records before it, its tick, and treats
/// its late records as configured.
pub(super) fn set_ticks(window: &WindowConfig, records: u64, chunk: &mut Chunk) {
    match &window.clock {
        ClockSource::Records => return count_ticks(window.resolution, records, chunk),
        ClockSource::Keys => return,
        ClockSource::Field(_) | ClockSource::Packets => {}
    }
    let (keys, clock) = (&chunk.keys, &mut chunk.clock);
    let (head, steps) = steps_beyond(clock.before, keys);
    // Records before the first time are as old as the first record with one: ticks that count from
    // 1970, as in Kafka and Flink, would make them older than any window.
    let before = clock.before.map_or(1, |time| tick_since(clock.first, time));
    clock.ticks.resize(head, before);
    let ends = steps.iter().skip(1).map(|step| step.from);
    for (step, end) in steps.iter().zip(ends.chain([keys.hashes.len()])) {
        clock.ticks.resize(end, tick_since(clock.first, step.time));
    }
    treat_late(window, chunk);
}

/// Sets the ticks where they are the number of the record, divided by the length of a tick.
fn count_ticks(resolution: u64, before: u64, chunk: &mut Chunk) {
    let records = chunk.own_records();
    let unkeyed = chunk.unkeyed.own_numbers();
    let end = before + records as u64;
    let mut from = before;
    while from < end {
        let tick = from / resolution + 1;
        // Overflows only at the end of a stream of 2^64 records.
        from = tick.saturating_mul(resolution).min(end);
        let record = (from - before) as usize;
        let unkeyed = unkeyed.partition_point(|unkeyed| *unkeyed < record);
        chunk.clock.ticks.resize(record - unkeyed, tick);
    }
}

/// Counts the records that are later than the window and the lateness allow, and takes them out or
/// rejects the first.
///
/// By default they pass without a verdict; [`is_late`] says why.
fn treat_late(window: &WindowConfig, chunk: &mut Chunk) {
    let is_late =
        |clock: i64, time: i64| time != NO_TIME && is_late(clock, time, window.late_after);
    // Few chunks have late records. Search for them only if the earliest time is late by the last
    // clock.
    let times = chunk.keys.times.iter().filter(|time| **time != NO_TIME);
    let (Some(clock), Some(earliest)) = (chunk.clock.after, times.min()) else {
        return;
    };
    if !is_late(clock, *earliest) {
        return;
    }
    let mut clock = chunk.clock.before.unwrap_or(NO_TIME);
    let late = chunk.keys.times.iter().enumerate().filter(|(_, time)| {
        clock = clock.max(**time);
        is_late(clock, **time)
    });
    let late: Vec<usize> = late.map(|(hash, _)| hash).collect();
    chunk.clock.late = late.len() as u64;
    let first = chunk.keys.times.iter().position(|time| *time != NO_TIME);
    chunk.clock.begins_late = !late.is_empty() && first == late.first().copied();
    match (window.late, late.first()) {
        (Late::Judge, _) | (_, None) => {}
        (Late::Pass, _) => chunk.remove_hashes(&late),
        (Late::Reject, _) if window.rejects => chunk.reject(&late, Problem::Late),
        (Late::Reject, Some(first)) => chunk.fail_at(*first, Problem::Late),
    }
}

/// The clock that threads pass on from chunk to chunk.
#[derive(Debug)]
pub(super) struct ClockOrder {
    /// The number of the next chunk to place.
    next: AtomicU64,
    clock: Mutex<StreamClock>,
}

impl ClockOrder {
    /// The clock of a stream from here on.
    pub(super) fn from(clock: StreamClock) -> Self {
        Self {
            next: AtomicU64::new(0),
            clock: Mutex::new(clock),
        }
    }

    /// Whether all chunks before this one are placed.
    pub(super) fn is_next(&self, number: u64) -> bool {
        // Acquire: pairs with the Release in `place`. The mutex orders the clock itself.
        self.next.load(Ordering::Acquire) == number
    }

    /// Notes the clock of the next chunk of the stream, which is read, and moves it on. A chunk
    /// that a worker passes alone has no number. The caller must wake the thread of the next chunk.
    /// Returns the number of records before this one.
    pub(super) fn place(
        &self,
        number: Option<u64>,
        window: &WindowConfig,
        chunk: &mut Chunk,
    ) -> u64 {
        // Never blocks: only the thread with the next chunk locks.
        let records = lock(&self.clock).place(window, chunk);
        if let Some(number) = number {
            // Release: pairs with the Acquire in `is_next`.
            self.next.store(number + 1, Ordering::Release);
        }
        records
    }

    /// The tick of the clock behind all chunks; `None` if it has not moved, or the filter counts
    /// its keys itself.
    pub(super) fn tick(&self, window: &WindowConfig) -> Option<u64> {
        lock(&self.clock).tick(window)
    }
}

/// Replaces the positions of the next chunk of the stream by times, and treats the records whose
/// position has none as those without a time.
fn place_positions(unroller: &mut Unroller, window: &WindowConfig, chunk: &mut Chunk) {
    let faults = window.faults();
    let mut unplaced = Vec::new();
    for (hash, time) in chunk.keys.times.iter_mut().enumerate() {
        if *time == NO_TIME {
            continue;
        }
        match unroller.place(*time) {
            // A tick is at most `i64::MAX` long.
            Ok(placed) => *time = placed.div_euclid(window.resolution as i64),
            Err(reason) => {
                *time = NO_TIME;
                unplaced.push((hash, Problem::Unplaced(reason)));
                if faults.ends_run(Problem::Unplaced(reason)) {
                    break;
                }
            }
        }
    }
    treat_untimed(faults, chunk, &unplaced);
}

/// Treats the records with these key hashes, ascending, which have lost their times to a problem, as
/// those without a time.
fn treat_untimed(faults: FaultPolicy, chunk: &mut Chunk, untimed: &[(usize, Problem)]) {
    // With `Missing::Empty` they are judged at the clock.
    if faults.missing != Missing::Empty {
        let (mut passed, mut rejected) = (Vec::new(), Vec::new());
        for &(hash, problem) in untimed {
            match faults.fate(problem) {
                Fate::Passed | Fate::Comment => passed.push(hash),
                Fate::Rejected(problem) => rejected.push(Fault {
                    record: chunk.record_of(hash),
                    problem,
                }),
                Fate::EndsRun(problem) => chunk.fail_at(hash, problem),
            }
        }
        // All of them have one fate, so neither moves the indices of the other.
        if !rejected.is_empty() {
            chunk.reject_records(&rejected);
        }
        if !passed.is_empty() {
            chunk.remove_hashes(&passed);
        }
    }
    chunk.keys.find_steps();
}

#[cfg(test)]
mod tests {
    use echoless::KeyHash;
    use echoless_stream::Span;
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn window(span: Span, timed: bool, late_after: u64, late: Late) -> WindowConfig {
        WindowConfig::for_tests(span, timed, late_after, late)
    }

    /// A chunk of records with these times, as reading leaves it behind; `None` is a record without
    /// a key.
    fn chunk(times: &[Option<i64>]) -> Chunk {
        let mut chunk = Chunk::default();
        let mut latest = NO_TIME;
        for (record, time) in times.iter().enumerate() {
            let Some(time) = *time else {
                chunk.unkeyed.all.push(record);
                continue;
            };
            if time > latest {
                latest = time;
                let from = chunk.keys.hashes.len();
                chunk.keys.steps.push(ClockStep { from, time });
            }
            chunk.keys.hashes.push(KeyHash::from_uniform(time as u64));
            chunk.keys.times.push(time);
        }
        chunk
    }

    /// Passes a stream in chunks of these lengths, those of a multiple of three records without a
    /// number. Returns the tick of every key and the late count.
    fn pass(window: &WindowConfig, stream: &[Option<i64>], lengths: &[usize]) -> (Vec<u64>, u64) {
        let clock = ClockOrder::from(StreamClock::default());
        let (mut ticks, mut late, mut chunks) = (Vec::new(), 0, 0);
        let (mut rest, mut has_times) = (stream, false);
        for length in lengths.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (records, after) = rest.split_at((*length).min(rest.len()));
            rest = after;
            let mut chunk = chunk(records);
            let number = (records.len() % 3 != 0).then_some(chunks);
            if let Some(number) = number {
                assert!(clock.is_next(number));
                chunks += 1;
            }
            let before = clock.place(number, window, &mut chunk);
            // Behind the bound of `--max-advance`: a time that is too far ahead is none.
            has_times |= chunk.keys.times.iter().any(|time| *time != NO_TIME);
            set_ticks(window, before, &mut chunk);
            assert_eq!(chunk.clock.ticks.len(), chunk.keys.hashes.len());
            ticks.append(&mut chunk.clock.ticks);
            late += chunk.clock.late;
        }
        assert!(ticks.is_sorted());
        let last = clock.tick(window);
        if window.clock.is_time() {
            assert_eq!(last, ticks.last().copied().filter(|_| has_times));
        } else {
            let records = stream.len() as u64;
            assert_eq!(
                last,
                records
                    .checked_sub(1)
                    .map(|last| last / window.resolution + 1)
            );
        }
        (ticks, late)
    }

    fn records() -> impl Strategy<Value = Vec<Option<i64>>> {
        let tick = prop_oneof![
            1 => Just(None),
            1 => Just(Some(NO_TIME)),
            8 => (-50_i64..50).prop_map(Some),
            2 => (i64::MIN + 1..=i64::MAX).prop_map(Some),
        ];
        vec(tick, 0..120)
    }

    proptest! {
        #[test]
        fn the_clock_is_the_running_maximum_however_the_stream_is_cut(
            stream in records(),
            lengths in vec(1_usize..30, 1..8),
        ) {
            let window = window(Span::Time(1), true, 20, Late::Judge);
            let keyed: Vec<i64> = stream.iter().flatten().copied().collect();
            let first = keyed.iter().find(|tick| **tick != NO_TIME);
            let mut latest = NO_TIME;
            let mut late = 0;
            let mut expected = Vec::new();
            for tick in &keyed {
                latest = latest.max(*tick);
                let age = i128::from(latest) - i128::from(*tick);
                late += u64::from(*tick != NO_TIME && age > 20);
                expected.push(match first {
                    Some(first) if latest != NO_TIME => {
                        let since = i128::from(latest) - i128::from(*first) + 1;
                        u64::try_from(since).unwrap_or(u64::MAX)
                    }
                    // Before the first time, records are as old as the first with one.
                    _ => 1,
                });
            }
            prop_assert_eq!(pass(&window, &stream, &lengths), (expected, late));
        }

        #[test]
        fn late_records_are_taken_out_without_moving_the_others(
            stream in records(),
            lengths in vec(1_usize..30, 1..8),
        ) {
            let judged = window(Span::Time(1), true, 20, Late::Judge);
            let passed = window(Span::Time(1), true, 20, Late::Pass);
            let (all, late) = pass(&judged, &stream, &lengths);
            let (kept, also_late) = pass(&passed, &stream, &lengths);
            prop_assert_eq!(late, also_late);
            prop_assert_eq!(kept.len() as u64 + late, all.len() as u64);
        }

        #[test]
        fn times_too_far_ahead_do_not_move_the_clock_however_the_stream_is_cut(
            stream in records(),
            pause in prop_oneof![Just(None), (0_i64..500).prop_map(Some)],
            lengths in vec(1_usize..300, 1..8),
        ) {
            let plain = window(Span::Time(1), true, 20, Late::Judge);
            let advance = MaxAdvance { most: 10, now: Some(0) };
            let bounded = WindowConfig {
                max_advance: Some(advance),
                missing: Missing::Empty,
                ..plain.clone()
            };
            // Longer than a run that moves the clock.
            let longest = AheadRun::LONGEST as usize + 200;
            let pause = pause.into_iter().flat_map(|time| vec![Some(time); longest]);
            let stream: Vec<_> = stream.into_iter().chain(pause).collect();
            let (mut ahead, mut clock) = (AheadRun::default(), None);
            let admitted = stream.iter().map(|time| match *time {
                None | Some(NO_TIME) => *time,
                Some(time) => {
                    let admitted = ahead.admit(clock.or(advance.now), time, advance.most);
                    clock = clock.max(admitted);
                    Some(admitted.unwrap_or(NO_TIME))
                }
            });
            let admitted: Vec<_> = admitted.collect();
            let expected = pass(&plain, &admitted, &lengths);
            prop_assert_eq!(pass(&bounded, &stream, &lengths), expected);
        }

        #[test]
        fn counted_ticks_are_those_of_the_record_number(
            stream in records(),
            lengths in vec(1_usize..30, 1..8),
            resolution in 1_u64..10,
        ) {
            let window = window(Span::Records(resolution * 2000), false, 0, Late::Judge);
            let numbers = (0_u64..).zip(&stream).filter(|(_, tick)| tick.is_some());
            let expected: Vec<u64> =
                numbers.map(|(number, _)| number / window.resolution + 1).collect();
            prop_assert_eq!(pass(&window, &stream, &lengths).0, expected);
        }
    }
}
