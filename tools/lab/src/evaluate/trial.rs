//! One filter during a measurement: it takes the stream block by block and counts its errors.

use std::time::{Duration, Instant};

use echoless::{BuildError, Filter, FilterSpec, KeyHash};

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
    score: Score,
    /// Duplicates and misses, by the binary logarithm of the age.
    ages: [(u64, u64); BINS],
    points: Vec<Point>,
    /// Wall-clock time inside the filter.
    time: Duration,
    verdicts: Vec<u64>,
}

impl Trial {
    pub(super) fn new(spec: &FilterSpec) -> Result<Self, BuildError> {
        Ok(Self {
            spec: *spec,
            filter: spec.build()?,
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
        let verdicts = self.verdicts.chunks_mut(BATCH / 64);
        for (hashes, verdicts) in hashes.chunks(BATCH).zip(verdicts) {
            self.filter.observe_words(hashes, verdicts);
        }
        self.time += begin.elapsed();
        for (index, truth) in truths.iter().enumerate() {
            let duplicate = self.verdicts[index / 64] >> (index % 64) & 1 == 1;
            self.score.count(truth.is_duplicate(), duplicate);
            if let Truth::Duplicate { age: Some(age) } = truth {
                let (duplicates, missed) = &mut self.ages[age.ilog2() as usize];
                *duplicates += 1;
                *missed += u64::from(!duplicate);
            }
        }
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

    pub(super) fn finish(self) -> Evaluation {
        let ages = self.ages.iter().enumerate();
        let occurring = ages.filter(|(_, (duplicates, _))| *duplicates > 0);
        Evaluation {
            spec: self.spec,
            score: self.score,
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
