//! The clock of a windowed stream: the largest event time so far, or the number of the record.
//!
//! A filter judges a batch of keys at one tick, so a chunk is cut into batches where its clock
//! moves:
//!
//! ```text
//! clock before the chunk: 5
//! ticks of the records   4  5  7  6  7  9  2
//! steps (reading)        4  5  7        9        the running maximum, from this chunk alone
//! clock                  5  5  7  7  7  9  9     max(clock before, running maximum)
//! batches                |5 5|7  7  7 |9  9 |
//! numbers in the stream   41   42      43        if 41 batches come before
//! ```
//!
//! The batches of a mesh are numbered without gaps over all threads, so a chunk needs two things
//! from all chunks before it: the clock and the number of batches. Everything else follows from the
//! chunk itself. So reading a chunk, in parallel, leaves its steps behind; then the chunks pass
//! [`StreamClock::place`] in the order of the stream, which searches the steps for the first one
//! beyond the clock, counts the rest, and hands clock and number on. It reads the few steps of a
//! chunk, not its records, and waits for nothing but the same step of the chunk before. Cutting the
//! chunk into batches and searching it for late records follow in parallel again ([`cut`]).
//!
//! No thread can wait forever: a thread fills the next chunk, reads it, and waits only for chunks
//! that were filled before; it serves its partition meanwhile. The batches are the same on any
//! number of threads.
//!
//! Dates without a year and times of day are read as positions in a year or day, and the years or
//! days follow from all records before: [`place`](StreamClock::place) turns positions into ticks,
//! record by record, before anything else ([`recurring`](super::recurring)).
//!
//! A chunk that is judged while nothing is under way is placed without a number, and its batches
//! get none: the nodes of a mesh do not get them.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::recurring::place_positions;
use crate::config::{ClockSource, Late, WindowConfig};
use crate::locks::lock;
use crate::records::chunk::{Chunk, ClockStep, NO_TIME, TickBatch};
use crate::records::fault::Problem;
use crate::time::recurring::Unroller;

/// The clock and the number of batches, up to some chunk of the stream.
#[derive(Debug, Default)]
pub(super) struct StreamClock {
    /// The first tick of the stream and the largest so far.
    range: Option<(i64, i64)>,
    records: u64,
    batches: u64,
    /// Determines the years or the days, where times leave them out.
    unroller: Option<Unroller>,
}

impl StreamClock {
    /// Places the next chunk of the stream, which is read: notes its clock and the number of its
    /// first batch, and counts its records and batches. Returns the number of records before it.
    pub(super) fn place(&mut self, window: &WindowConfig, chunk: &mut Chunk) -> u64 {
        if let ClockSource::Field(time) = &window.clock
            && let Some(period) = time.format.period()
        {
            let unroller = || Unroller::new(period, time.first_year);
            let unroller = self.unroller.get_or_insert_with(unroller);
            place_positions(unroller, window, chunk);
        }
        let records = self.records;
        self.records += chunk.own_records() as u64;
        chunk.clock.first_batch = self.batches;
        chunk.clock.before = self.range.map(|(_, latest)| latest);
        self.batches += if window.clock.is_time() {
            let (head, steps) = steps_beyond(
                chunk.clock.before,
                &chunk.keys.steps,
                chunk.keys.hashes.len(),
            );
            if let (Some(first), Some(last)) = (steps.first(), steps.last()) {
                self.range = Some((self.range.map_or(first.tick, |(first, _)| first), last.tick));
            }
            u64::from(head > 0 || steps.is_empty()) + steps.len() as u64
        } else if matches!(window.clock, ClockSource::Keys) {
            1
        } else {
            let last = self.records.max(records + 1) - 1;
            last / window.resolution - records / window.resolution + 1
        };
        chunk.clock.first_tick = self.range.map_or(NO_TIME, |(first, _)| first);
        chunk.clock.after = self.range.map(|(_, latest)| latest);
        records
    }
}

/// The number of key hashes before the clock moves for the first time, and the steps at which it
/// moves.
fn steps_beyond(clock: Option<i64>, steps: &[ClockStep], hashes: usize) -> (usize, &[ClockStep]) {
    let reached = steps.partition_point(|step| Some(step.tick) <= clock);
    let steps = &steps[reached..];
    (steps.first().map_or(hashes, |step| step.from), steps)
}

/// Cuts a placed chunk, which has `records` records before it, into its batches, and treats its
/// late records as configured.
pub(super) fn cut(window: &WindowConfig, records: u64, chunk: &mut Chunk) {
    chunk.clock.batches.clear();
    match &window.clock {
        ClockSource::Records => return cut_by_records(window.resolution, records, chunk),
        ClockSource::Keys => return chunk.one_batch(chunk.clock.first_batch),
        ClockSource::Field(_) | ClockSource::Packets => {}
    }
    let (keys, clock) = (&chunk.keys, &mut chunk.clock);
    let (head, steps) = steps_beyond(clock.before, &keys.steps, keys.hashes.len());
    // The filter's clock starts at 0, and no event time does: ticks count from the first, as 1.
    let first_tick = clock.first_tick;
    let since_first = |tick: i64| (tick.wrapping_sub(first_tick) as u64).saturating_add(1);
    if head > 0 || steps.is_empty() {
        clock.batches.push(TickBatch {
            // Records before the first time are as old as the first record with one.
            tick: clock.before.map_or(1, since_first),
            end: head,
        });
    }
    let ends = steps.iter().skip(1).map(|step| step.from);
    for (step, end) in steps.iter().zip(ends.chain([keys.hashes.len()])) {
        let tick = since_first(step.tick);
        clock.batches.push(TickBatch { tick, end });
    }
    treat_late(window, chunk);
}

/// Cuts a chunk where the number of the record, divided by the length of a tick, changes.
fn cut_by_records(resolution: u64, before: u64, chunk: &mut Chunk) {
    let records = chunk.own_records();
    let renumbered;
    let unkeyed = if records == chunk.records() {
        &chunk.keys.unkeyed
    } else {
        renumbered = chunk.unkeyed_own_records();
        &renumbered
    };
    let end = before + (records as u64).max(1);
    let mut from = before;
    while from < end {
        let tick = from / resolution + 1;
        // Overflows only at the end of a stream of 2^64 records.
        from = tick.saturating_mul(resolution).min(end);
        let record = (from - before) as usize;
        let unkeyed = unkeyed.partition_point(|unkeyed| *unkeyed < record);
        chunk.clock.batches.push(TickBatch {
            tick,
            end: record.min(records) - unkeyed,
        });
    }
}

/// Counts the records that are later than the window and the lateness allow, and takes them out or
/// rejects the first.
///
/// By default they pass without a verdict. Judged at the clock, they would all share one instant,
/// however far apart they are: of files in the wrong order, equal keys hours apart would be dropped
/// as if they were inside one window.
fn treat_late(window: &WindowConfig, chunk: &mut Chunk) {
    let is_late = |clock: i64, tick: i64| {
        tick != NO_TIME && clock.wrapping_sub(tick) as u64 > window.late_after
    };
    // Few chunks have late records. Search for them only if the earliest tick is late by the last
    // clock.
    let times = chunk.keys.ticks.iter().filter(|tick| **tick != NO_TIME);
    let (Some(clock), Some(earliest)) = (chunk.clock.after, times.min()) else {
        return;
    };
    if !is_late(clock, *earliest) {
        return;
    }
    let mut clock = chunk.clock.before.unwrap_or(NO_TIME);
    let late = chunk.keys.ticks.iter().enumerate().filter(|(_, tick)| {
        clock = clock.max(**tick);
        is_late(clock, **tick)
    });
    let late: Vec<usize> = late.map(|(hash, _)| hash).collect();
    chunk.clock.late = late.len() as u64;
    let first = chunk.keys.ticks.iter().position(|tick| *tick != NO_TIME);
    chunk.clock.begins_late = !late.is_empty() && first == late.first().copied();
    match (window.late, late.first()) {
        (Late::Judge, _) | (_, None) => {}
        (Late::Pass, _) => chunk.remove_hashes(&late),
        (Late::Reject, _) if window.rejects => chunk.reject(&late, Problem::Late),
        (Late::Reject, Some(first)) => chunk.fail_at(*first, Problem::Late),
    }
}

/// The clock that several threads pass on from chunk to chunk.
#[derive(Debug)]
pub(super) struct ClockOrder {
    /// The number of the next chunk to place.
    next: AtomicU64,
    clock: Mutex<StreamClock>,
}

impl ClockOrder {
    pub(super) fn new() -> Self {
        Self {
            next: AtomicU64::new(0),
            clock: Mutex::new(StreamClock::default()),
        }
    }

    /// Whether all chunks before this one are placed.
    pub(super) fn is_next(&self, number: u64) -> bool {
        // Acquire: pairs with the Release in `place`. The mutex orders the clock itself.
        self.next.load(Ordering::Acquire) == number
    }

    /// [Places](StreamClock::place) the next chunk. The caller must wake the thread of the one
    /// after it.
    pub(super) fn place(&self, number: u64, window: &WindowConfig, chunk: &mut Chunk) -> u64 {
        // Never blocks: only the thread with the next chunk locks.
        let mut clock = lock(&self.clock);
        let records = clock.place(window, chunk);
        drop(clock);
        // Release: pairs with the Acquire in `is_next`.
        self.next.store(number + 1, Ordering::Release);
        records
    }

    /// [Places](StreamClock::place) a chunk without a number, while all chunks with one are placed
    /// and no other comes. Its batches get no numbers either.
    pub(super) fn place_alone(&self, window: &WindowConfig, chunk: &mut Chunk) -> u64 {
        let mut clock = lock(&self.clock);
        let batches = clock.batches;
        let records = clock.place(window, chunk);
        clock.batches = batches;
        records
    }
}

#[cfg(test)]
mod tests {
    use echoless::KeyHash;
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::time::span::Span;

    fn window(span: Span, timed: bool, late_after: u64, late: Late) -> WindowConfig {
        WindowConfig::for_tests(span, timed, late_after, late)
    }

    /// A chunk of records with these ticks, as reading leaves it behind; `None` is a record without
    /// a key.
    fn chunk(ticks: &[Option<i64>]) -> Chunk {
        let mut chunk = Chunk::default();
        let mut latest = NO_TIME;
        for (record, tick) in ticks.iter().enumerate() {
            let Some(tick) = *tick else {
                chunk.keys.unkeyed.push(record);
                continue;
            };
            if tick > latest {
                latest = tick;
                let from = chunk.keys.hashes.len();
                chunk.keys.steps.push(ClockStep { from, tick });
            }
            chunk.keys.hashes.push(KeyHash::from_uniform(tick as u64));
            chunk.keys.ticks.push(tick);
        }
        chunk
    }

    /// Passes a stream in chunks of these lengths, those of a multiple of three records without a
    /// number. Returns the tick of every key and the late count.
    fn pass(window: &WindowConfig, stream: &[Option<i64>], lengths: &[usize]) -> (Vec<u64>, u64) {
        let clock = ClockOrder::new();
        let (mut ticks, mut late, mut number, mut chunks) = (Vec::new(), 0, 0, 0);
        let mut rest = stream;
        for length in lengths.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (records, after) = rest.split_at((*length).min(rest.len()));
            rest = after;
            let mut chunk = chunk(records);
            let is_numbered = records.len() % 3 != 0;
            let before = if is_numbered {
                assert!(clock.is_next(chunks));
                chunks += 1;
                clock.place(chunks - 1, window, &mut chunk)
            } else {
                clock.place_alone(window, &mut chunk)
            };
            cut(window, before, &mut chunk);
            // Batches are numbered without gaps, and cover the keys.
            if is_numbered {
                assert_eq!(chunk.clock.first_batch, number);
                number += chunk.clock.batches.len() as u64;
            }
            assert_eq!(clock.clock.lock().unwrap().batches, number);
            assert_eq!(
                chunk.clock.batches.last().map(|batch| batch.end),
                Some(chunk.keys.hashes.len())
            );
            for (tick, keys) in chunk.batches() {
                ticks.extend(keys.iter().map(|_| tick));
            }
            late += chunk.clock.late;
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
