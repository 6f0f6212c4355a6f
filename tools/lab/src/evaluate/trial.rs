//! One filter on its way through the stream.

use std::time::{Duration, Instant};

use echoless::{BuildError, Filter, FilterSpec, KeyHash};

use super::evaluation::{AgeBin, Evaluation, Point};
use crate::oracle::{Score, Truth};

/// Keys handed to a filter at once.
const BATCH: usize = 1024;

/// One bin for each power of two that a 32-bit age can reach.
const BINS: usize = 32;

/// A filter and what it answered so far.
pub(super) struct Trial {
    spec: FilterSpec,
    filter: Box<dyn Filter>,
    score: Score,
    /// Duplicates and those missed, by the binary logarithm of their age.
    ages: [(u64, u64); BINS],
    points: Vec<Point>,
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

    /// Shows the filter a block and compares its answers with the truth.
    pub(super) fn observe(&mut self, hashes: &[KeyHash], truths: &[Truth]) {
        self.verdicts.resize(hashes.len().div_ceil(64), 0);
        let begin = Instant::now();
        let verdicts = self.verdicts.chunks_mut(BATCH / 64);
        for (hashes, verdicts) in hashes.chunks(BATCH).zip(verdicts) {
            self.filter.observe_words(hashes, verdicts);
        }
        self.time += begin.elapsed();
        for (index, truth) in truths.iter().enumerate() {
            let answer = self.verdicts[index / 64] >> (index % 64) & 1 == 1;
            self.score.count(truth.is_duplicate(), answer);
            if let Truth::Duplicate { age: Some(age) } = truth {
                let (duplicates, missed) = &mut self.ages[age.ilog2() as usize];
                *duplicates += 1;
                *missed += u64::from(!answer);
            }
        }
    }

    /// Notes how things are after so many records.
    pub(super) fn note(&mut self, records: u64) {
        let before = self.points.last().map_or(Score::default(), |at| at.total);
        self.points.push(Point {
            records,
            recent: self.score.since(&before),
            total: self.score,
            load: self.filter.report().fill(),
        });
    }

    pub(super) fn finish(self) -> Evaluation {
        let ages = self.ages.iter().enumerate();
        let seen = ages.filter(|(_, (duplicates, _))| *duplicates > 0);
        Evaluation {
            spec: self.spec,
            score: self.score,
            ages: seen
                .map(|(bin, (duplicates, missed))| AgeBin {
                    from: 1 << bin,
                    below: 2 << bin,
                    duplicates: *duplicates,
                    missed: *missed,
                })
                .collect(),
            memory_bytes: self.filter.memory_bytes(),
            load: self.points.last().and_then(|point| point.load),
            points: self.points,
            nanoseconds_per_key: self.time.as_nanos() as f64 / self.score.arrivals().max(1) as f64,
        }
    }
}
