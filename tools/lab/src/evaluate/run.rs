//! The pass over the stream: every block goes through every filter.

use echoless::{FilterSpec, SpecError};

use super::block::Blocks;
use super::evaluation::Evaluation;
use super::options::EvalOptions;
use super::trial::Trial;
use crate::error::LabError;
use crate::oracle::Oracle;
use crate::stream::Stream;

/// Runs all filters over the stream in one pass and compares every verdict with the exact one.
///
/// `progress` is called with the number of records done since its last call. Equal specifications,
/// streams and seeds give equal scores; only the times differ.
///
/// The clock of a filter with a window in ticks is the number of the record: each record is a tick
/// and a batch of its own. So these filters take more time per key here than with larger batches.
///
/// # Errors
/// [`LabError`] if [`EvalOptions::points`] is 0 or more than the stream has records, if a filter
/// cannot be built, or if the exact oracle cannot be allocated.
///
/// # Examples
/// ```
/// use echoless_lab::evaluate::{EvalOptions, evaluate};
/// use echoless_lab::stream::Stream;
/// let stream = Stream::with_distinct_fraction(50_000, 0.5)?;
/// let options = EvalOptions::default().points(10).ages(true);
/// let specs = [echoless_papers::parse("qqht:slots=4,bits=12,memory=8KiB")?];
/// let evaluation = evaluate(&specs, &stream, &options, &|_| ())?.remove(0);
/// assert_eq!(evaluation.score.arrivals(), 50_000);
/// assert_eq!(evaluation.points.len(), 10);
/// // A row that is a queue evicts by age: recent keys are found, old ones are missed.
/// assert!(evaluation.ages[0].fnr() < 0.01);
/// assert!(evaluation.ages.last().unwrap().fnr() > 0.9);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn evaluate(
    specs: &[FilterSpec],
    stream: &Stream,
    options: &EvalOptions,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Vec<Evaluation>, LabError> {
    let (points, records) = (options.points, stream.records());
    if !(1..=records).contains(&points) {
        let allowed = format!("1 to {records}, the number of records");
        return Err(SpecError::new("points", points.to_string(), allowed).into());
    }
    let trials = specs.iter().map(|spec| {
        Trial::new(spec, options.window).map_err(|source| LabError::Filter {
            spec: Box::new(*spec),
            source,
        })
    });
    let mut trials = trials.collect::<Result<Vec<_>, _>>()?;
    let oracle = if options.ages || options.window.is_some() {
        Oracle::with_ages(stream, options.window)
    } else {
        Oracle::new(stream)
    };
    let oracle = oracle.map_err(LabError::Oracle)?;
    let mut blocks = Blocks::new(stream, oracle, options.seed);
    let mut done = 0;
    for point in 1..=points {
        let end = u128::from(records) * u128::from(point) / u128::from(points);
        while done < end as u64 {
            let (hashes, truths) = blocks.next(end as u64 - done);
            for trial in &mut trials {
                trial.observe(hashes, truths);
            }
            let len = hashes.len() as u64;
            done += len;
            progress(len);
        }
        for trial in &mut trials {
            trial.record_point(done);
        }
    }
    let distinct = blocks.distinct_keys();
    let evaluations = trials.into_iter().map(|trial| trial.finish(distinct));
    Ok(evaluations.collect())
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    use echoless::{KeyHasher, Verdict};

    use super::*;
    use crate::oracle::Score;

    /// The plain model: one key at a time, exact verdicts from a map.
    fn model(
        spec: &FilterSpec,
        stream: &Stream,
        options: &EvalOptions,
    ) -> (Score, HashMap<u32, u64>) {
        let mut filter = spec.build().unwrap();
        let hasher = KeyHasher::seeded(options.seed);
        let mut keys = vec![0; stream.records() as usize];
        stream.draws(options.seed).fill(&mut keys);
        let mut last = HashMap::new();
        let mut score = Score::default();
        let mut missed = HashMap::new();
        for (arrival, key) in (0_u64..).zip(keys) {
            let age = last.insert(key, arrival).map(|last| arrival - last);
            filter.advance_to(arrival + 1);
            let mut answer = filter.observe_one(hasher.hash_u64(key)) == Verdict::Duplicate;
            if let (Some(age), Some(window), Some(own)) = (age, options.window, spec.facts().window)
                && own.ticks == window
                && age > window
                && age < window + own.granule
            {
                answer = false;
            }
            let age = age.filter(|age| options.window.is_none_or(|window| *age <= window));
            score.count(age.is_some(), answer);
            if let Some(age) = age {
                *missed.entry(age.ilog2()).or_default() += u64::from(!answer);
            }
        }
        (score, missed)
    }

    #[test]
    fn scores_match_a_plain_model() {
        let specs: Vec<FilterSpec> = [
            "bloom:k=3,memory=1KiB",
            "rlbsbf:k=2,memory=2KiB,seed=3",
            "sbf:k=2,d=2,fps=0.05,memory=2KiB",
            "rowlru:slots=4,bits=8,memory=1KiB,tracked=0.7",
            "lru:memory=4KiB",
            "clocked:window=500,memory=4KiB",
            "stamped:window=300,refresh=false,memory=4KiB",
            "clocked:window=503,memory=64KiB",
            "gbf:window=500,q=3,refresh=true,memory=64KiB",
        ]
        .map(|text| echoless_papers::parse(text).unwrap())
        .to_vec();
        for stream in [
            Stream::with_distinct_fraction(70_000, 0.4).unwrap(),
            Stream::zipf(40_000, 5000, 1.1).unwrap(),
        ] {
            for window in [None, Some(500)] {
                let options = EvalOptions::default().seed(9).points(7).ages(true);
                let options = options.window(window);
                let evaluations = evaluate(&specs, &stream, &options, &|_| ()).unwrap();
                for (spec, evaluation) in specs.iter().zip(&evaluations) {
                    let (score, missed) = model(spec, &stream, &options);
                    assert_eq!(evaluation.score, score, "{spec} on {stream}");
                    assert_eq!(evaluation.ages.len(), missed.len(), "{spec} on {stream}");
                    for bin in &evaluation.ages {
                        assert_eq!(bin.missed, missed[&bin.from.ilog2()], "{spec}: {bin:?}");
                        assert_eq!(bin.below, 2 * bin.from);
                    }
                    let duplicates: u64 = evaluation.ages.iter().map(|bin| bin.duplicates).sum();
                    assert_eq!(duplicates, score.duplicates);
                }
            }
        }
    }

    #[test]
    fn a_filter_with_the_window_of_the_oracle_is_exact() {
        let stream = Stream::zipf(200_000, 20_000, 0.9).unwrap();
        // The granule of the second is 140 records: a key that it remembers so much longer is no
        // error. (With 16 bits in place of 64, other keys would be.)
        let specs = ["stamped:window=700", "clocked:window=700,bits=64"];
        let specs =
            specs.map(|text| echoless_papers::parse(&format!("{text},memory=256KiB")).unwrap());
        let options = EvalOptions::default().window(700);
        let evaluations = evaluate(&specs, &stream, &options, &|_| ()).unwrap();
        for evaluation in &evaluations {
            let score = evaluation.score;
            assert!(
                score.duplicates > 50_000 && score.distinct > 50_000,
                "{score:?}"
            );
            assert_eq!((score.false_positives, score.false_negatives), (0, 0));
        }
        let evaluation = &evaluations[0];
        // A key that is fresh again in a later window is one distinct key of the stream.
        let without = evaluate(&specs, &stream, &EvalOptions::default(), &|_| ()).unwrap();
        assert_eq!(evaluation.distinct_keys, without[0].score.distinct);
        assert_eq!(evaluation.bits_per_key(), without[0].bits_per_key());
    }

    #[test]
    fn points_that_do_not_divide_the_stream_are_rejected() {
        let stream = Stream::uniform(20, 10).unwrap();
        let specs = [echoless_papers::parse("bloom:k=1,memory=1KiB").unwrap()];
        for (points, accepted) in [(0, false), (1, true), (20, true), (21, false)] {
            let result = evaluate(
                &specs,
                &stream,
                &EvalOptions::default().points(points),
                &|_| (),
            );
            let error = result.map(|_| ()).map_err(|error| error.to_string());
            let expected =
                format!("invalid points={points}: expected 1 to 20, the number of records");
            assert_eq!(error, if accepted { Ok(()) } else { Err(expected) });
        }
    }

    #[test]
    fn points_divide_the_stream_and_add_up() {
        let stream = Stream::with_distinct_fraction(100_003, 0.5).unwrap();
        let spec = echoless_papers::parse("bsbf:k=2,memory=4KiB").unwrap();
        let options = EvalOptions::default().points(10);
        let reported = AtomicU64::new(0);
        let progress = |records| {
            reported.fetch_add(records, Relaxed);
        };
        let evaluation = evaluate(&[spec], &stream, &options, &progress)
            .unwrap()
            .remove(0);
        assert_eq!(reported.load(Relaxed), 100_003);
        assert!(evaluation.ages.is_empty());
        let points = &evaluation.points;
        assert_eq!(points.len(), 10);
        assert_eq!(points[9].records, 100_003);
        assert_eq!(points[9].total, evaluation.score);
        assert_eq!(points[9].fill, evaluation.fill);
        let recent: u64 = points.iter().map(|point| point.recent.arrivals()).sum();
        assert_eq!(recent, 100_003);
        assert!(points.iter().zip(1..).all(|(point, number)| {
            point.records == 100_003 * number / 10 && point.total.arrivals() == point.records
        }));
        // The fill of BSBF rises to its fixed point.
        let fills: Vec<f64> = points.iter().filter_map(|point| point.fill).collect();
        assert!(fills[0] > 0.05 && fills.is_sorted() && (fills[9] - 0.5).abs() < 0.15);
        assert_eq!(evaluation.memory_bytes / 4096, 1);
        let bits = evaluation.bits_per_key() * evaluation.score.distinct as f64;
        assert!((bits - evaluation.memory_bytes as f64 * 8.0).abs() < 1e-6);
    }

    #[test]
    fn impossible_filters_and_streams_are_rejected() {
        let stream = Stream::with_distinct_fraction(1000, 0.5).unwrap();
        let spec: FilterSpec = echoless_papers::parse("sqf:r=2,kept=3,memory=1KiB").unwrap();
        let run = |spec, stream: &Stream, ages| {
            let options = EvalOptions::default().ages(ages);
            evaluate(&[spec], stream, &options, &|_| ())
                .err()
                .map(|error| error.to_string())
        };
        let error = run(spec, &stream, false).unwrap();
        assert!(
            error.ends_with("memory=1KiB: invalid kept=3: expected 1 to 2"),
            "{error}"
        );
        let spec = echoless_papers::parse("bloom:k=1,memory=1KiB").unwrap();
        let long = Stream::uniform(1 << 33, 100).unwrap();
        let error = run(spec, &long, true).unwrap();
        assert!(
            error.starts_with("the exact oracle: invalid records=8589934592"),
            "{error}"
        );
        // A large universe needs no large oracle.
        let wide = Stream::uniform(100, u64::MAX).unwrap();
        assert_eq!(run(spec, &wide, false), None);
    }
}
