//! One filter during a measurement: it takes the stream block by block and counts its errors.

use std::slice;
use std::time::{Duration, Instant};

use echoless::{Batch, BuildError, Filter, FilterSpec, KeyHash};

use super::evaluation::{AgeBin, Evaluation, Point};
use crate::oracle::{Score, Truth};

/// Keys in one call of a filter: a multiple of 64, so that batches fill whole words of verdicts.
const BATCH: usize = 1024;

/// One bin for each power of two that a 32-bit age can reach.
const BINS: usize = 32;

/// A filter and the counts of its verdicts so far.
pub(super) struct Trial {
    spec: FilterSpec,
    filter: Box<dyn Filter>,
    /// The number of the last record, which is the time of the stream, if the filter has a window.
    clock: Option<u64>,
    /// A key that arrives again after less than this may be reported as a duplicate, though its
    /// window is over: the filter promises its window to a granule. 0 if the oracle has no window,
    /// or another one.
    promised: u64,
    score: Score,
    /// Duplicates and misses, by the binary logarithm of the age.
    ages: [(u64, u64); BINS],
    points: Vec<Point>,
    /// Wall-clock time inside the filter.
    time: Duration,
    verdicts: Vec<u64>,
}

impl Trial {
    /// A filter that is compared with an oracle of this window.
    pub(super) fn new(spec: &FilterSpec, window: Option<u64>) -> Result<Self, BuildError> {
        let promised = spec.facts().window.filter(|own| Some(own.ticks) == window);
        Ok(Self {
            spec: *spec,
            filter: spec.build()?,
            clock: spec.facts().window.map(|_| 0),
            promised: promised.map_or(0, |own| own.ticks + own.granule),
            score: Score::default(),
            ages: [(0, 0); BINS],
            points: Vec::new(),
            time: Duration::ZERO,
            verdicts: Vec::new(),
        })
    }

    /// Runs the filter on a block and compares its verdicts with the exact ones.
    pub(super) fn observe(&mut self, hashes: &[KeyHash], truths: &[Truth]) {
        self.verdicts.resize(hashes.len().div_ceil(64), 0);
        // Only the filter is timed, not the comparison below.
        let begin = Instant::now();
        match self.clock {
            None => self.observe_batches(hashes),
            Some(clock) => self.observe_ticks(clock, hashes),
        }
        self.time += begin.elapsed();
        for (index, truth) in truths.iter().enumerate() {
            let duplicate = self.verdicts[index / 64] >> (index % 64) & 1 == 1;
            let in_granule =
                matches!(truth, Truth::Expired { age } if u64::from(*age) < self.promised);
            let answer = duplicate && !in_granule;
            self.score.count(truth.is_duplicate(), answer);
            if let Truth::Duplicate { age: Some(age) } = truth {
                let (duplicates, missed) = &mut self.ages[age.ilog2() as usize];
                *duplicates += 1;
                *missed += u64::from(!duplicate);
            }
        }
    }

    fn observe_batches(&mut self, hashes: &[KeyHash]) {
        let verdicts = self.verdicts.chunks_mut(BATCH / 64);
        for (hashes, verdicts) in hashes.chunks(BATCH).zip(verdicts) {
            self.filter.observe_batch(hashes.into(), verdicts);
        }
    }

    /// A batch is judged at one tick, and every record is a tick of its own.
    fn observe_ticks(&mut self, clock: u64, hashes: &[KeyHash]) {
        self.verdicts.fill(0);
        for (index, hash) in hashes.iter().enumerate() {
            let batch = Batch::at(slice::from_ref(hash), clock + 1 + index as u64);
            let mut verdict = [0];
            self.filter.observe_batch(batch, &mut verdict);
            self.verdicts[index / 64] |= verdict[0] << (index % 64);
        }
        self.clock = Some(clock + hashes.len() as u64);
    }

    /// Records a point after `records` records.
    pub(super) fn record_point(&mut self, records: u64) {
        let before = self
            .points
            .last()
            .map_or(Score::default(), |point| point.total);
        self.points.push(Point {
            records,
            recent: self.score.since(&before),
            total: self.score,
            fill: self.filter.report().fill(),
        });
    }

    /// The results, after a stream with so many distinct keys.
    pub(super) fn finish(self, distinct_keys: u64) -> Evaluation {
        let ages = self.ages.iter().enumerate();
        let occurring = ages.filter(|(_, (duplicates, _))| *duplicates > 0);
        Evaluation {
            spec: self.spec,
            score: self.score,
            distinct_keys,
            ages: occurring
                .map(|(bin, (duplicates, missed))| AgeBin {
                    from: 1 << bin,
                    below: 2 << bin,
                    duplicates: *duplicates,
                    missed: *missed,
                })
                .collect(),
            memory_bytes: self.filter.memory_bytes(),
            fill: self.points.last().and_then(|point| point.fill),
            points: self.points,
            nanoseconds_per_key: self.time.as_nanos() as f64 / self.score.arrivals().max(1) as f64,
        }
    }
}
