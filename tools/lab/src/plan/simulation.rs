//! Short simulations: stream and memory are scaled down together.
//!
//! The rates of a filter of M bits on N records from a universe of U keys depend on N/M and U/M
//! alone, up to noise, so a scaled run predicts the full one. A recorded sample is scaled by
//! leaving out keys: all records of a random part of its keys, in so much less memory. Rates are
//! not shown where that changes how often keys repeat, as a few keys with many of the records do,
//! nor for a stream that is longer than a sample whose keys become fewer.
//!
//! Filters whose number of rows is a power of two leave up to half of the memory unused. They leave
//! the same part in a half, a quarter and so on of it, so generated streams of known length are
//! scaled by powers of two; in others, the rates of such filters are not shown.
//!
//! ```text
//!             a stream of known length            an endless one, with a window W
//! scaled      N, U and M                          W, U and M
//! counted     all records, from an empty filter   the second half, once the filter is full
//! repeated    with other seeds, if it is short    no
//! ```

use std::num::NonZeroUsize;

use echoless::spec::TrackedFraction;
use echoless::{FilterSpec, SpecError};

use super::budget::ENOUGH_BYTES;
use super::grid::scaled;
use super::interval::Interval;
use super::prediction::Prediction;
use super::request::PlanRequest;
use crate::error::LabError;
use crate::evaluate::{EvalOptions, Evaluation, evaluate};
use crate::oracle::Score;
use crate::parallel;
use crate::stream::Stream;

/// The smallest simulated memory in bytes. In less, some filters of the grid have too few cells for
/// the scaling to hold.
const LEAST_MEMORY: u64 = 8 << 10;

/// The simulated windows are multiples of this many records. A shorter window, or another one, has
/// the granules of its filters rounded to whole records, and the scaling does not hold.
const WINDOW_UNIT: u64 = 320;

/// How far the records of a key in a part of a sample may be from those in the sample, in standard
/// deviations of an even stream. A few keys with many of the records are in the part or not, and
/// then its rates are not those of the sample.
const ALIKE: f64 = 4.0;

/// The least number of windows in a simulation.
const WINDOWS: u64 = 16;

/// The most runs of a short stream.
const MOST_RUNS: u64 = 256;

/// Specifications in one pass over the stream, which share its draws and its oracle. Passes run on
/// different threads.
const GROUP: usize = 8;

/// The most memory of the exact oracle of a pass, in bytes, and of the filters of a pass beyond the
/// memory of the request.
const SPARE_BYTES: u64 = 32 << 20;

/// The points of an endless simulation at which its scores are recorded.
const QUARTERS: u64 = 4;

/// A scaled-down stream and the scale of the memory that goes with it.
#[derive(Debug)]
pub(super) struct Simulation<'a> {
    request: &'a PlanRequest,
    stream: Stream,
    /// The distances of the request divided by those of the simulation.
    scale: f64,
    /// The simulated memory in bytes.
    memory: u64,
    /// Whether the memory is less than the scale makes it.
    capped: bool,
    /// Whether the memory is that of the request or was halved, so that filters with a power of two
    /// of rows use the same part of it; or it was capped, and more than enough for any part.
    halved: bool,
    /// The window of the oracle.
    window: Option<u64>,
    runs: u64,
    /// Whether the simulation is long enough: it covers the stream at its scale, or the window.
    covers: bool,
    seed: u64,
}

/// What a simulation counts of one filter.
#[derive(Debug, Clone, Copy)]
struct Measured {
    score: Score,
    /// Whether the rates will stay as they are, if the stream goes on.
    steady: bool,
}

impl<'a> Simulation<'a> {
    /// A simulation of at most `records` records. It does not cover the stream if
    /// so few records would need less than [`LEAST_MEMORY`], or a window that is too short.
    pub(super) fn new(request: &'a PlanRequest, records: u64, seed: u64) -> Result<Self, LabError> {
        match (request.window, request.stream.is_recorded()) {
            (None, false) => Self::generated(request, records, seed),
            (None, true) => {
                let whole = request.records as f64 / request.stream.records() as f64;
                Self::thinned(request, whole, records, seed)
            }
            (Some(window), false) => Self::endless(request, window, records, seed),
            // An endless stream has no length to scale: a sample is a piece of it.
            (Some(_), true) => Self::thinned(request, 1.0, records, seed),
        }
    }

    /// A generated stream of known length.
    fn generated(request: &'a PlanRequest, most: u64, seed: u64) -> Result<Self, LabError> {
        let (memory, stream) = (request.memory, &request.stream);
        let ratio = stream.universe() as f64 / stream.records() as f64;
        let most = most.min(most_records(ratio / 8.0));
        let records = stream.records();
        let halvings = (0..u64::BITS)
            .take_while(|halvings| memory >> halvings >= LEAST_MEMORY)
            .find(|halvings| records >> halvings <= most)
            .unwrap_or_else(|| (memory / LEAST_MEMORY).checked_ilog2().unwrap_or(0));
        // Memory comes in whole cache lines.
        let rounded = (memory >> halvings) / 64 * 64;
        let scale = match halvings {
            0 => 1.0,
            _ => memory as f64 / rounded as f64,
        };
        let whole = (stream.records() as f64 / scale).round().max(1.0) as u64;
        let universe = (stream.universe() as f64 / scale).round().max(1.0) as u64;
        let len = whole.min(most);
        Ok(Self {
            // Rounding the memory can lengthen the stream by some records.
            covers: len + len / 64 >= whole,
            halved: true,
            ..Self::scaled(request, Stream::uniform(len, universe)?, scale, seed)
        })
    }

    /// A generated stream without end.
    fn endless(
        request: &'a PlanRequest,
        window: u64,
        most: u64,
        seed: u64,
    ) -> Result<Self, LabError> {
        let stream = &request.stream;
        let shortest = (most / WINDOWS / WINDOW_UNIT).max(1) * WINDOW_UNIT;
        let scale = (window as f64 / shortest as f64).max(1.0);
        let universe = (stream.universe() as f64 / scale).round().max(1.0) as u64;
        let most = most.min(most_records(4.0 * universe as f64 / most as f64));
        let simulation = Self::scaled(request, Stream::uniform(most, universe)?, scale, seed);
        let covers = simulation.window.unwrap_or(0) <= most / WINDOWS;
        Ok(Self {
            covers,
            ..simulation
        })
    }

    /// A recorded stream, in the memory of the request divided by `whole`.
    fn thinned(
        request: &'a PlanRequest,
        whole: f64,
        most: u64,
        seed: u64,
    ) -> Result<Self, LabError> {
        let stream = &request.stream;
        let records = stream.records() as f64;
        let mut least = LEAST_MEMORY as f64 * whole / request.memory as f64;
        if let Some(window) = request.window {
            least = least.max(WINDOW_UNIT as f64 / window as f64);
        }
        // A random part has some records more or less, and one of more than `most` is cut.
        let fraction = match most as f64 / records {
            all if all >= 1.0 => 1.0,
            part => (0.9 * part).max(least).min(1.0),
        };
        // If a few keys have all the records, none of them may be left.
        let thin = stream.thinned(fraction, seed);
        let thin = thin.unwrap_or_else(|_| stream.clone());
        // Frequent keys may be in the part or not, so its fraction of the records, which distances
        // are scaled with, is not that of the keys, which fill the memory.
        let scale = whole * records / thin.records() as f64;
        let of_keys = whole * stream.universe() as f64 / thin.universe() as f64;
        let by_chance = ALIKE / (thin.universe() as f64).sqrt();
        let is_alike = (scale / of_keys - 1.0).abs() <= by_chance;
        // A stream of another length has as many times the distinct keys only if the sample gains
        // them evenly.
        let is_scaled = whole == 1.0 || stream.gains_keys_evenly();
        let (part, covers) = thin.first(most);
        let simulation = Self::with_scales(request, part, scale, of_keys, seed);
        let window = simulation.window.unwrap_or(0);
        let least = LEAST_MEMORY.min(request.memory) / 2;
        let fits = simulation.stream.records() / 2 >= window && simulation.memory >= least;
        Ok(Self {
            covers: covers && fits && is_alike && is_scaled,
            ..simulation
        })
    }

    /// This stream in the memory and with the window of the request at this scale.
    fn scaled(request: &'a PlanRequest, stream: Stream, scale: f64, seed: u64) -> Self {
        Self::with_scales(request, stream, scale, scale, seed)
    }

    /// This stream with the window of the request at this scale, and the memory at that of the
    /// keys.
    fn with_scales(
        request: &'a PlanRequest,
        stream: Stream,
        scale: f64,
        of_keys: f64,
        seed: u64,
    ) -> Self {
        let scaled = |count: u64, scale: f64| (count as f64 / scale).round().max(1.0) as u64;
        let window = request.window.map(|window| scaled(window, scale));
        let memory = scaled(request.memory, of_keys);
        let enough = ENOUGH_BYTES * window.unwrap_or(stream.records());
        let most = enough.max(LEAST_MEMORY).min(request.memory);
        Self {
            request,
            stream,
            scale,
            memory: memory.min(most),
            capped: memory > most,
            halved: of_keys == 1.0,
            window,
            runs: 1,
            covers: true,
            seed,
        }
    }

    /// Runs a short stream with several seeds, up to `records` records in all.
    pub(super) fn repeated(mut self, records: u64) -> Self {
        if self.window.is_none() && !self.request.stream.is_recorded() {
            self.runs = (records / self.stream.records()).clamp(1, MOST_RUNS);
        }
        self
    }

    /// The number of records of all runs.
    pub(super) const fn records(&self) -> u64 {
        self.stream.records() * self.runs
    }

    fn options(&self, run: u64) -> EvalOptions {
        let options = EvalOptions::default().seed(self.seed.wrapping_add(run << 32));
        match self.window {
            None => options,
            Some(window) => {
                let points = QUARTERS.min(self.stream.records());
                options.window(window).points(points)
            }
        }
    }

    /// The filter in the scaled memory; the window of a decaying filter is scaled with it.
    fn spec(&self, spec: &FilterSpec) -> Result<FilterSpec, SpecError> {
        let scaled = scaled(spec, self.scale)?.memory(self.memory);
        Ok(scaled.seed(spec.seed ^ self.seed))
    }

    /// The prediction for each filter; `None` if it cannot be built in the scaled memory.
    pub(super) fn predict(
        &self,
        specs: &[FilterSpec],
        progress: &(dyn Fn(u64) + Sync),
    ) -> Result<Vec<Option<Prediction>>, LabError> {
        let scaled = specs.iter().map(|spec| self.spec(spec));
        let scaled = scaled.collect::<Result<Vec<FilterSpec>, _>>()?;
        let buildable: Vec<bool> = scaled.iter().map(|spec| spec.build().is_ok()).collect();
        let to_run: Vec<FilterSpec> = scaled
            .into_iter()
            .zip(&buildable)
            .filter_map(|(spec, buildable)| buildable.then_some(spec))
            .collect();
        let (threads, group) = self.threads_and_group();
        let passes: Vec<(&[FilterSpec], u64)> = to_run
            .chunks(group)
            .flat_map(|group| (0..self.runs).map(move |run| (group, run)))
            .collect();
        let passed = parallel::map(&passes, threads, |(group, run)| {
            let evaluations = evaluate(group, &self.stream, &self.options(*run), progress)?;
            Ok::<_, LabError>(evaluations.iter().map(|it| self.measure(it)).collect())
        })?;
        let mut measured = passed.chunks(self.runs as usize).flat_map(sum);
        Ok(specs
            .iter()
            .zip(buildable)
            .map(|(spec, buildable)| {
                let measured = buildable.then(|| measured.next()).flatten()?;
                Some(self.prediction(spec, measured))
            })
            .collect())
    }

    /// The number of threads, and of filters in a pass, with which all filters that exist at the
    /// same time take little more memory than the one of the request.
    fn threads_and_group(&self) -> (NonZeroUsize, usize) {
        let fit = |spare: u64| {
            let filters = self.request.memory.saturating_add(spare) / self.memory.max(1);
            usize::try_from(filters).unwrap_or(usize::MAX).max(1)
        };
        let threads = self.request.threads;
        let of_thread = fit(SPARE_BYTES.saturating_mul(threads.get() as u64)) / threads.get();
        match NonZeroUsize::new(of_thread) {
            Some(filters) => (threads, filters.get().min(GROUP)),
            None => (NonZeroUsize::MIN, 1),
        }
    }

    fn measure(&self, evaluation: &Evaluation) -> Measured {
        let steady = Measured {
            score: evaluation.score,
            steady: true,
        };
        let (Some(_), [.., half, third, last]) = (self.window, &evaluation.points[..]) else {
            return steady;
        };
        let rises =
            |rate: fn(&Score) -> Interval| rate(&last.recent).low > rate(&third.recent).high;
        // A filter that expires keys has been through several windows. Another one was full if
        // more fresh keys than any filter can hold, one for every two bits, arrived before.
        let bits = 8 * evaluation.memory_bytes;
        let full = evaluation.spec.facts().window.is_some() || half.total.distinct >= bits / 2;
        Measured {
            score: last.total.since(&half.total),
            steady: full && !rises(fpr) && !rises(fnr),
        }
    }

    fn prediction(&self, spec: &FilterSpec, measured: Measured) -> Prediction {
        // The limit holds in the memory of the request, not in the scaled one. It is about keys
        // that were never seen, so it does not hold for keys whose window is over.
        let limit = match self.window {
            None => spec.facts().fpr_limit,
            Some(_) => None,
        };
        let mut prediction = Prediction::counted(&measured.score, limit);
        if never_misses(spec, self.request.window) {
            prediction.fnr = Interval::exact(0.0);
            prediction.expected.fnr = 0.0;
        }
        // Where a filter forgets too late, less memory is no worse.
        let expires = self.window.is_none() || spec.facts().window.is_some();
        let uses_same_part = self.halved || !spec.facts().power_of_two_rows;
        if self.covers && measured.steady && (expires || !self.capped) && uses_same_part {
            prediction
        } else {
            prediction.not_shown()
        }
    }

    /// The fraction of arrivals that are fresh.
    pub(super) fn fresh_fraction(&self) -> Result<f64, LabError> {
        // Only the counts of the oracle are used, so the smallest filter will do.
        let smallest = echoless_papers::parse("bloom:k=1,memory=64B")?;
        let evaluation = evaluate(&[smallest], &self.stream, &self.options(0), &|_| ())?;
        let score = evaluation[0].score;
        Ok(score.distinct as f64 / score.arrivals() as f64)
    }
}

/// Whether the filter finds every duplicate in the window, by its construction: it forgets a key
/// only once the window since its last arrival is over.
fn never_misses(spec: &FilterSpec, window: Option<u64>) -> bool {
    let facts = spec.facts();
    let (own, asked) = (facts.window.map(|own| own.ticks), window);
    facts.forgets_by_time
        && facts.renews_keys
        && spec.tracked == TrackedFraction::ALL
        && own.is_some_and(|own| asked.is_some_and(|asked| own >= asked))
}

/// The most records of a stream whose dense oracle takes so many bytes for each.
fn most_records(dense_bytes: f64) -> u64 {
    // A sparse oracle takes about so much.
    const SPARSE_BYTES: f64 = 64.0;
    let most = SPARE_BYTES as f64 / dense_bytes.min(SPARSE_BYTES);
    most as u64
}

fn fpr(score: &Score) -> Interval {
    Interval::counted(score.false_positives, score.distinct)
}

fn fnr(score: &Score) -> Interval {
    Interval::counted(score.false_negatives, score.duplicates)
}

/// The sum of the runs of a group, for each of its filters.
fn sum(runs: &[Vec<Measured>]) -> Vec<Measured> {
    let Some((first, others)) = runs.split_first() else {
        return Vec::new();
    };
    let mut total = first.clone();
    for run in others {
        for (total, run) in total.iter_mut().zip(run) {
            total.score = total.score.plus(&run.score);
            total.steady &= run.steady;
        }
    }
    total
}

#[cfg(test)]
mod tests {
    use echoless::{KeyHash, KeyHasher};

    use super::*;

    /// Records of `hot` keys with this part of all, among keys that arrive twice in a span.
    fn hot(records: u64, hot: u64, part: f64, seed: u64) -> Vec<KeyHash> {
        let hasher = KeyHasher::seeded(seed);
        let draw = |number: u64, stream: u64| hasher.hash_u64(number << 3 | stream).get();
        let key = |number: u64| {
            if draw(number, 0) as f64 / 2_f64.powi(64) < part {
                return draw(number, 1) % hot;
            }
            hot + if number > 3000 && draw(number, 2) % 2 == 0 {
                number - 1 - draw(number, 3) % 3000
            } else {
                number
            }
        };
        (0..records)
            .map(|number| KeyHasher::seeded(1).hash_u64(key(number)))
            .collect()
    }

    /// How many of 20 parts of a sample, of a tenth of its records, are taken for the stream.
    fn covering(sample: Stream, records: u64) -> usize {
        let most = sample.records() / 10;
        let request = PlanRequest::new(sample, 1 << 20).records(records);
        let covers = |seed: &u64| Simulation::new(&request, most, *seed).unwrap().covers;
        (0..20).filter(covers).count()
    }

    #[test]
    fn parts_of_samples_with_few_hot_keys_are_not_shown() {
        let sample = |keys, part| Stream::recorded(hot(60_000, keys, part, 5)).unwrap();
        assert!(covering(sample(1, 0.0), 60_000) >= 16);
        for (keys, part) in [(1, 0.5), (1, 0.2), (3, 0.3)] {
            assert_eq!(
                covering(sample(keys, part), 60_000),
                0,
                "{keys} keys, {part}"
            );
        }
    }

    #[test]
    fn streams_longer_than_a_sample_are_shown_if_it_gains_keys_evenly() {
        let even = Stream::recorded(hot(60_000, 1, 0.0, 5)).unwrap();
        assert!(covering(even, 600_000) >= 16);
        // Most keys of this universe arrive in the sample; ten times as many do not exist.
        let draw = |number| KeyHasher::seeded(3).hash_u64(number).get() % 60_000;
        let key = |number| KeyHasher::seeded(1).hash_u64(draw(number));
        let few = Stream::recorded((0..60_000).map(key)).unwrap();
        assert!(covering(few.clone(), 60_000) >= 16);
        assert_eq!(covering(few, 600_000), 0);
    }
}
