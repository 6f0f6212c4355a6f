//! The candidates: each observes batches of keys on one thread or several, and checks its verdicts.

use std::sync::atomic::{AtomicU64, Ordering};

use echoless::{
    Engine, Filter, FingerprintSpec, LineFilter, OrderedFilter, Partitioned, Pinning, Replacement,
    SharedFilter, SharedLayout, SharedSpec, SlotWidth, Verdicts, report_of,
};

use super::threads::{Timing, on_threads};
use crate::check;
use crate::failure::Failure;
use crate::streams::{Stream, StreamKind};

/// A filter with its threads.
pub(super) struct Candidate {
    pub(super) name: &'static str,
    pub(super) variant: String,
    pub(super) stream: StreamKind,
    pub(super) threads: usize,
    /// Observes this many batches and checks the verdicts.
    pub(super) run: Box<dyn FnMut(u64) -> Result<Timing, Failure>>,
}

/// A filter in partitions.
type Whole = Partitioned<Box<dyn LineFilter>>;

pub(super) fn spec(mebibytes: u64) -> FingerprintSpec {
    with_layout(FingerprintSpec::new(mebibytes << 20))
}

/// The slots that all filters here have but the shared ones.
fn with_layout(spec: FingerprintSpec) -> FingerprintSpec {
    spec.slot_width(SlotWidth::Bits16)
        .replacement(Replacement::Fifo)
}

/// Fails unless the filters report that they observed all keys, and as many duplicates among these
/// distinct keys as they expect themselves.
pub(super) fn check_report(filters: &[Box<dyn LineFilter>], keys: u64) -> Result<(), Failure> {
    let report = report_of(filters);
    let observed = report.tally.observed.unwrap_or(0);
    let duplicates = observed - report.tally.fresh.unwrap_or(0);
    if observed != keys {
        return Err(format!("{observed} keys observed, expected {keys}").into());
    }
    let expected = report.expected_false_duplicates.unwrap_or(0.0);
    check::false_duplicates(duplicates, keys, expected)
}

/// Fails unless the duplicates among these distinct keys agree with a false positive rate between
/// these two.
fn check_rate(duplicates: u64, keys: u64, before: f64, after: f64) -> Result<(), Failure> {
    let count = |rate: f64| rate * keys as f64;
    let (low, high) = (count(before.min(after)), count(before.max(after)));
    // The rates are those of the mean word; an ageing word fluctuates around them.
    let low = low * 0.9 - 6.0 * low.sqrt() - 3.0;
    let high = high * 1.1 + 6.0 * high.sqrt() + 3.0;
    if (low..=high).contains(&(duplicates as f64)) {
        return Ok(());
    }
    Err(format!(
        "{duplicates} of {keys} distinct keys are duplicates, expected {low:.0} to {high:.0}"
    )
    .into())
}

/// A stream for each thread, with batches of so many keys.
fn streams_of(kind: StreamKind, threads: usize, batch: usize) -> Vec<Stream> {
    (0..threads as u64)
        .map(|number| Stream::with_batches(kind, number, batch))
        .collect()
}

pub(super) fn inline(mebibytes: u64, batch: usize) -> Result<Candidate, Failure> {
    let mut filter = spec(mebibytes).build()?;
    let mut stream = Stream::with_batches(StreamKind::Distinct, 0, batch);
    let mut seen = 0;
    Ok(Candidate::new(
        "inline",
        "fingerprint 32 x 16, fifo",
        StreamKind::Distinct,
        1,
        move |batches| {
            let input = (&mut filter, &mut stream);
            let timing = on_threads(vec![input], |_, (filter, stream)| {
                let mut verdicts = Verdicts::new();
                for _ in 0..batches {
                    filter.observe(stream.batch(), &mut verdicts);
                }
            })?;
            seen += batches * batch as u64;
            check_report(std::slice::from_ref(&filter), seen)?;
            Ok(timing)
        },
    ))
}

/// A filter for each thread, together of this size, which share nothing: the most that the cores
/// can do at this time. Those of a cloud machine may be two threads of one physical core.
pub(super) fn separate(mebibytes: u64, threads: usize, batch: usize) -> Result<Candidate, Failure> {
    let spec = FingerprintSpec::new((mebibytes << 20) / threads as u64);
    let mut filters = (0..threads)
        .map(|_| with_layout(spec).build())
        .collect::<Result<Vec<_>, _>>()?;
    let mut streams = streams_of(StreamKind::Distinct, threads, batch);
    let mut seen = 0;
    Ok(Candidate::new(
        "separate",
        format!("{threads} filters"),
        StreamKind::Distinct,
        threads,
        move |batches| {
            let inputs = filters.iter_mut().zip(&mut streams).collect();
            let timing = on_threads(inputs, |index, (filter, stream)| {
                let mut verdicts = Verdicts::new();
                for _ in (index as u64..batches).step_by(threads) {
                    filter.observe(stream.batch(), &mut verdicts);
                }
            })?;
            seen += batches * batch as u64;
            check_report(&filters, seen)?;
            Ok(timing)
        },
    ))
}

/// A filter that each run takes apart, and puts together again: `pass` places its partitions on
/// threads and passes this many batches through them.
fn partitioned(
    name: &'static str,
    variant: String,
    threads: usize,
    whole: Whole,
    batch: usize,
    mut pass: impl FnMut(Whole, u64) -> Result<(Whole, Timing), Failure> + 'static,
) -> Candidate {
    let mut filter = Some(whole);
    let mut seen = 0;
    let run = move |batches| {
        let whole = filter
            .take()
            .ok_or("an earlier run failed and lost the filter")?;
        let (whole, timing) = pass(whole, batches)?;
        seen += batches * batch as u64;
        check_report(whole.filters(), seen)?;
        filter = Some(whole);
        Ok(timing)
    };
    Candidate::new(name, variant, StreamKind::Distinct, threads, run)
}

pub(super) fn engine(mebibytes: u64, workers: usize, batch: usize) -> Result<Candidate, Failure> {
    let mut stream = Stream::with_batches(StreamKind::Distinct, 0, batch);
    Ok(partitioned(
        "engine",
        format!("caller and {workers} workers"),
        workers + 1,
        spec(mebibytes).build_partitions(workers)?,
        batch,
        move |whole, batches| {
            // The caller has the first core.
            let cores = Pinning::Spread.cores(workers + 1)?;
            let cores: Option<Vec<usize>> = cores[1..].iter().copied().collect();
            let pinning = cores.map_or(Pinning::Unpinned, Pinning::Cores);
            let (engine, mut ports) = Engine::builder(whole).pinning(pinning).build()?;
            let input = (&mut stream, ports.remove(0));
            let timing = on_threads(vec![input], |_, (stream, mut port)| {
                let mut verdicts = Verdicts::new();
                for _ in 0..batches {
                    port.submit(stream.batch()).expect("the worker runs");
                    if port.in_flight() > 4 {
                        port.drain(&mut verdicts).expect("the worker runs");
                    }
                }
                while port.drain(&mut verdicts).expect("the worker runs") {}
            })?;
            let whole = engine.shutdown()?;
            Ok((whole, timing))
        },
    ))
}

pub(super) fn ordered(mebibytes: u64, threads: usize, batch: usize) -> Result<Candidate, Failure> {
    let mut streams = streams_of(StreamKind::Distinct, threads, batch);
    Ok(partitioned(
        "ordered",
        format!("{threads} partitions"),
        threads,
        spec(mebibytes).build_partitions(threads)?,
        batch,
        move |whole, batches| {
            let shared = OrderedFilter::builder(whole).build();
            let inputs: Vec<_> = streams
                .iter_mut()
                .map(|stream| (shared.handle(), stream))
                .collect();
            let timing = on_threads(inputs, |index, (mut handle, stream)| {
                let mut verdicts = Verdicts::new();
                for _ in (index as u64..batches).step_by(threads) {
                    let observed = handle.observe(stream.batch(), &mut verdicts);
                    observed.expect("no filter panics");
                }
            })?;
            let whole = shared.shutdown()?;
            Ok((whole, timing))
        },
    ))
}

pub(super) fn shared(
    mebibytes: u64,
    layout: SharedLayout,
    kind: StreamKind,
    threads: usize,
    batch: usize,
) -> Result<Candidate, Failure> {
    let filter: SharedFilter = SharedSpec::new(mebibytes << 20).layout(layout).build()?;
    let mut fresh = 0;
    let mut streams = streams_of(kind, threads, batch);
    Ok(Candidate::new(
        "shared",
        format!("{layout:?}"),
        kind,
        threads,
        move |batches| {
            let rate = || filter.report().expected_fpr.unwrap_or(0.0);
            let before = rate();
            let (duplicates, forgotten) = (AtomicU64::new(0), AtomicU64::new(0));
            let timing = on_threads(streams.iter_mut().collect(), |_, stream: &mut Stream| {
                let mut verdicts = Verdicts::new();
                let mut found = 0;
                for _ in 0..batches / threads as u64 {
                    filter.observe(stream.batch(), &mut verdicts);
                    found += verdicts.count_duplicates();
                }
                duplicates.fetch_add(found, Ordering::Relaxed);
                // The filter holds the last batch, except for keys that later ones of the same
                // words have evicted.
                stream.rewind(batch as u64);
                let held = stream.batch().iter().filter(|key| filter.contains(**key));
                forgotten.fetch_add((batch - held.count()) as u64, Ordering::Relaxed);
            })?;
            let forgotten = forgotten.into_inner();
            if forgotten > (threads * batch / 100) as u64 {
                return Err(format!(
                    "{forgotten} of the last {} keys are missing, expected at most 1 %",
                    threads * batch
                )
                .into());
            }
            let keys = batches / threads as u64 * threads as u64 * batch as u64;
            let duplicates = duplicates.into_inner();
            match kind {
                StreamKind::Distinct => {
                    check_rate(duplicates, keys, before, rate())?;
                }
                // Over all threads and rounds, exactly one verdict is Fresh.
                StreamKind::Hot => {
                    fresh += keys - duplicates;
                    if fresh != 1 {
                        return Err(
                            format!("the hot key was fresh {fresh} times, expected once").into(),
                        );
                    }
                }
                StreamKind::Zipf | StreamKind::Repeats { .. } => {}
            }
            Ok(timing)
        },
    ))
}

impl Candidate {
    fn new(
        name: &'static str,
        variant: impl Into<String>,
        stream: StreamKind,
        threads: usize,
        run: impl FnMut(u64) -> Result<Timing, Failure> + 'static,
    ) -> Self {
        Self {
            name,
            variant: variant.into(),
            stream,
            threads,
            run: Box::new(run),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::check_rate;

    #[test]
    fn duplicates_beyond_the_false_positive_rates_are_rejected() {
        for (duplicates, allowed) in [(0, false), (150, true), (300, true), (500, false)] {
            assert_eq!(
                check_rate(duplicates, 1_000_000, 2e-4, 3e-4).is_ok(),
                allowed,
                "{duplicates}"
            );
        }
    }
}
