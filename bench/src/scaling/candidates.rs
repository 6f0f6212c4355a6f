//! The forms under test: each takes batches of keys, on one thread or several, and checks what came out.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use echoless::assembly::pin_thread;
use echoless::{
    Engine, Filter, FingerprintLines, FingerprintSpec, Mesh, Node, Pinning, SharedFilter,
    SharedLayout, SharedSpec, SlotWidth, Verdicts,
};

use crate::clock::process_seconds;
use crate::streams::{BATCH, Stream, StreamKind};
use crate::table::Failure;

/// How long the keys of a measurement took.
pub(super) struct Timing {
    pub(super) wall: f64,
    pub(super) cpu: f64,
}

/// One form under test: takes so many batches, and checks what came out.
pub(super) struct Candidate {
    pub(super) name: &'static str,
    pub(super) form: String,
    pub(super) stream: StreamKind,
    pub(super) threads: usize,
    pub(super) run: Box<dyn FnMut(u64) -> Result<Timing, Failure>>,
    pub(super) walls: Vec<f64>,
    pub(super) cpus: Vec<f64>,
}

/// Runs one closure on each thread at the same time, from a common start, each on a core of its own while there are enough.
///
/// The threads look at the clock themselves: the one that set them off may find no core free to look at it. The time runs from the first
/// start to the last end.
fn on_threads<T: Send>(jobs: Vec<T>, run: impl Fn(usize, T) + Sync) -> Result<Timing, Failure> {
    let cores = Pinning::Spread.cores(jobs.len())?;
    let barrier = Barrier::new(jobs.len());
    let times: Vec<(Instant, f64, Instant)> = thread::scope(|scope| {
        let start = |(index, (job, core))| {
            let (run, barrier) = (&run, &barrier);
            scope.spawn(move || {
                let pinned = pin_thread(core);
                // Before the failure, which the others would wait for.
                barrier.wait();
                assert!(pinned, "core {core:?} is refused");
                let (start, cpu) = (Instant::now(), process_seconds());
                run(index, job);
                (start, cpu, Instant::now())
            })
        };
        let threads: Vec<_> = jobs.into_iter().zip(cores).enumerate().map(start).collect();
        let ends = threads.into_iter().map(thread::ScopedJoinHandle::join);
        ends.collect::<Result<_, _>>()
            .map_err(|_| "a thread panicked")
    })?;
    let cpu = process_seconds();
    let start = times.iter().map(|(start, _, _)| *start).min();
    let end = times.iter().map(|(_, _, end)| *end).max();
    let (Some(start), Some(end)) = (start, end) else {
        return Err("no thread to measure".into());
    };
    let before = times.iter().map(|(_, cpu, _)| *cpu).fold(cpu, f64::min);
    Ok(Timing {
        wall: (end - start).as_secs_f64(),
        cpu: cpu - before,
    })
}

fn spec(mebibytes: u64) -> FingerprintSpec {
    FingerprintSpec::new(mebibytes << 20).slot_width(SlotWidth::Bits16)
}

/// Fails unless a filter says that it saw all keys, and called no more of the distinct ones duplicates than it expects itself.
fn check(filters: &[FingerprintLines], batches: u64) -> Result<(), Failure> {
    let report = FingerprintLines::report_of(filters);
    let keys = batches * BATCH as u64;
    let (mistaken, expected) = (
        report.observed - report.fresh,
        report.expected_false_duplicates,
    );
    let tolerance = 6.0 * expected.sqrt() + expected * 0.01 + 3.0;
    if report.observed != keys || (mistaken as f64 - expected).abs() > tolerance {
        let observed = report.observed;
        return Err(format!(
            "{observed} of {keys} keys seen, {mistaken} false duplicates, {expected:.1} expected"
        )
        .into());
    }
    Ok(())
}

/// Fails unless as many of the distinct keys were called duplicates as false positive rates between these two allow.
fn check_rate(duplicates: u64, keys: u64, before: f64, after: f64) -> Result<(), Failure> {
    let count = |rate: f64| rate * keys as f64;
    let (low, high) = (count(before.min(after)), count(before.max(after)));
    // The rate is that of the mean word, and a word that ages moves about it.
    let low = low * 0.9 - 6.0 * low.sqrt() - 3.0;
    let high = high * 1.1 + 6.0 * high.sqrt() + 3.0;
    if (low..=high).contains(&(duplicates as f64)) {
        return Ok(());
    }
    Err(format!(
        "{duplicates} of {keys} distinct keys were duplicates; {low:.0} to {high:.0} may be"
    )
    .into())
}

pub(super) fn inline(mebibytes: u64) -> Result<Candidate, Failure> {
    let mut filter = Some(spec(mebibytes).build()?);
    let mut stream = Some(Stream::new(StreamKind::Distinct, 0));
    let mut seen = 0;
    Ok(Candidate::new(
        "inline",
        "fingerprint 32 x 16, fifo",
        StreamKind::Distinct,
        1,
        move |batches| {
            let job = filter
                .as_mut()
                .zip(stream.as_mut())
                .ok_or("the filter is gone")?;
            let timing = on_threads(vec![job], |_, (filter, stream)| {
                let mut verdicts = Verdicts::new();
                for _ in 0..batches {
                    filter.observe(stream.batch(), &mut verdicts);
                }
            })?;
            seen += batches;
            check(filter.as_slice(), seen)?;
            Ok(timing)
        },
    ))
}

pub(super) fn engine(mebibytes: u64, workers: usize) -> Result<Candidate, Failure> {
    let mut filter = Some(spec(mebibytes).build_partitions(workers)?);
    let mut stream = Stream::new(StreamKind::Distinct, 0);
    let mut seen = 0;
    Ok(Candidate::new(
        "engine",
        format!("caller and {workers} workers"),
        StreamKind::Distinct,
        workers + 1,
        move |batches| {
            let whole = filter.take().ok_or("the filter is gone")?;
            // The caller has the first core.
            let cores = Pinning::Spread.cores(workers + 1)?;
            let cores: Option<Vec<usize>> = cores[1..].iter().copied().collect();
            let pinning = cores.map_or(Pinning::Unpinned, Pinning::Cores);
            let (engine, mut ports) = Engine::builder(whole).pinning(pinning).build()?;
            let job = (&mut stream, ports.remove(0));
            let timing = on_threads(vec![job], |_, (stream, mut port)| {
                let mut verdicts = Verdicts::new();
                for _ in 0..batches {
                    port.submit(stream.batch()).expect("the worker lives");
                    if port.in_flight() > 4 {
                        port.drain(&mut verdicts).expect("the worker lives");
                    }
                }
                while port.drain(&mut verdicts).expect("the worker lives") {}
            })?;
            let whole = engine.shutdown()?;
            seen += batches;
            check(whole.filters(), seen)?;
            filter = Some(whole);
            Ok(timing)
        },
    ))
}

pub(super) fn mesh(mebibytes: u64, threads: usize) -> Result<Candidate, Failure> {
    let mut filter = Some(spec(mebibytes).build_partitions(threads)?);
    let mut streams: Vec<Stream> = (0..threads as u64)
        .map(|number| Stream::new(StreamKind::Distinct, number))
        .collect();
    let mut seen = 0;
    Ok(Candidate::new(
        "mesh",
        format!("{threads} nodes"),
        StreamKind::Distinct,
        threads,
        move |batches| {
            let whole = filter.take().ok_or("the filter is gone")?;
            let partitioning = whole.partitioning().clone();
            let nodes = Mesh::builder(whole).build()?;
            let done = std::sync::Mutex::new(Vec::new());
            let jobs: Vec<(Node<FingerprintLines>, &mut Stream)> =
                nodes.into_iter().zip(&mut streams).collect();
            let timing = on_threads(jobs, |index, (mut node, stream)| {
                let mut verdicts = Verdicts::new();
                for number in (index as u64..batches).step_by(threads) {
                    node.submit(number, stream.batch()).expect("the peers live");
                    if node.in_flight() > 2 {
                        node.drain(&mut verdicts).expect("the peers live");
                    }
                }
                while node.drain(&mut verdicts).expect("the peers live") {}
                let part = node.finish().expect("the peers live");
                done.lock().expect("no panic").push((index, part));
            })?;
            let mut parts = done.into_inner().expect("no panic");
            parts.sort_by_key(|(index, _)| *index);
            let parts = parts.into_iter().map(|(_, part)| part).collect();
            let whole = echoless::Partitioned::new(partitioning, parts)?;
            seen += batches;
            check(whole.filters(), seen)?;
            filter = Some(whole);
            Ok(timing)
        },
    ))
}

pub(super) fn shared(
    mebibytes: u64,
    form: SharedLayout,
    kind: StreamKind,
    threads: usize,
) -> Result<Candidate, Failure> {
    let filter: SharedFilter = SharedSpec::new(mebibytes << 20).layout(form).build()?;
    let mut fresh = 0;
    let mut streams: Vec<Stream> = (0..threads as u64)
        .map(|number| Stream::new(kind, number))
        .collect();
    Ok(Candidate::new(
        "shared",
        format!("{form:?}"),
        kind,
        threads,
        move |batches| {
            let before = filter.expected_fpr();
            let (duplicates, forgotten) = (AtomicU64::new(0), AtomicU64::new(0));
            let timing = on_threads(streams.iter_mut().collect(), |_, stream: &mut Stream| {
                let mut verdicts = Verdicts::new();
                let mut heard = 0;
                for _ in 0..batches / threads as u64 {
                    filter.observe(stream.batch(), &mut verdicts);
                    heard += verdicts.count_duplicates();
                }
                duplicates.fetch_add(heard, Ordering::Relaxed);
                // What was just recorded is held, but for keys that others of the same words have pushed out since.
                stream.go_back(BATCH as u64);
                let held = stream.batch().iter().filter(|key| filter.contains(**key));
                forgotten.fetch_add((BATCH - held.count()) as u64, Ordering::Relaxed);
            })?;
            let forgotten = forgotten.into_inner();
            if forgotten > (threads * BATCH / 100) as u64 {
                return Err(format!("{forgotten} of {} keys are not held", threads * BATCH).into());
            }
            let keys = batches / threads as u64 * threads as u64 * BATCH as u64;
            let heard = duplicates.into_inner();
            match kind {
                StreamKind::Distinct => {
                    check_rate(heard, keys, before, filter.expected_fpr())?;
                }
                // Of all threads and rounds, one hears Fresh once.
                StreamKind::Hot => {
                    fresh += keys - heard;
                    if fresh != 1 {
                        return Err(format!("the hot key was fresh {fresh} times").into());
                    }
                }
                StreamKind::Zipf => {}
            }
            Ok(timing)
        },
    ))
}

impl Candidate {
    fn new(
        name: &'static str,
        form: impl Into<String>,
        stream: StreamKind,
        threads: usize,
        run: impl FnMut(u64) -> Result<Timing, Failure> + 'static,
    ) -> Self {
        Self {
            name,
            form: form.into(),
            stream,
            threads,
            run: Box::new(run),
            walls: Vec::new(),
            cpus: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::check_rate;

    #[test]
    fn duplicates_beyond_the_false_positive_rates_are_a_failure() {
        for (duplicates, fine) in [(0, false), (150, true), (300, true), (500, false)] {
            assert_eq!(
                check_rate(duplicates, 1_000_000, 2e-4, 3e-4).is_ok(),
                fine,
                "{duplicates}"
            );
        }
    }
}
