//! What more threads bring: one inline thread against an engine, a mesh and the shared filter.

use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use clap::Args;
use echoless::assembly::pin_thread;
use echoless::{
    Engine, Filter, FingerprintLines, FingerprintSpec, Mesh, Node, Pinning, SharedFilter,
    SharedForm, SharedSpec, SlotWidth, Verdicts,
};

use crate::clock::{median, process_seconds};
use crate::streams::{BATCH, Stream, StreamKind};
use crate::table::{Cell, Failure, Outputs, Table};

/// The options of `scaling`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The sizes of the filters, in MiB.
    #[arg(long, value_delimiter = ',', default_value = "64,512")]
    sizes: Vec<u64>,
    /// The numbers of threads of mesh and shared filter.
    #[arg(long, value_delimiter = ',', default_value = "1,2")]
    threads: Vec<usize>,
    /// Keys for each measurement, in millions.
    #[arg(long, default_value_t = 40)]
    keys: u64,
    /// Measurements of each form; the median counts.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    #[command(flatten)]
    outputs: Outputs,
}

/// How long the keys of a measurement took.
struct Timing {
    wall: f64,
    cpu: f64,
}

/// One form under test: takes so many batches, and checks what came out.
struct Contestant {
    name: &'static str,
    form: String,
    stream: StreamKind,
    threads: usize,
    run: Box<dyn FnMut(u64) -> Result<Timing, Failure>>,
    walls: Vec<f64>,
    cpus: Vec<f64>,
}

/// Runs one closure on each thread at the same time, from a common start, each on a core of its own while there are enough.
fn on_threads<T: Send>(jobs: Vec<T>, run: impl Fn(usize, T) + Sync) -> Result<Timing, Failure> {
    let cores = Pinning::Spread.cores(jobs.len())?;
    let barrier = Barrier::new(jobs.len() + 1);
    let mut start = (Instant::now(), 0.0);
    thread::scope(|scope| {
        for (index, (job, core)) in jobs.into_iter().zip(cores).enumerate() {
            let (run, barrier) = (&run, &barrier);
            scope.spawn(move || {
                pin_thread(core);
                barrier.wait();
                run(index, job);
            });
        }
        barrier.wait();
        start = (Instant::now(), process_seconds());
    });
    Ok(Timing {
        wall: start.0.elapsed().as_secs_f64(),
        cpu: process_seconds() - start.1,
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

fn inline(mebibytes: u64) -> Result<Contestant, Failure> {
    let mut filter = Some(spec(mebibytes).build()?);
    let mut stream = Some(Stream::new(StreamKind::Distinct, 0));
    let mut seen = 0;
    Ok(Contestant::new(
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

fn engine(mebibytes: u64) -> Result<Contestant, Failure> {
    let mut filter = Some(spec(mebibytes).build_partitions(1)?);
    let mut stream = Stream::new(StreamKind::Distinct, 0);
    let mut seen = 0;
    Ok(Contestant::new(
        "engine",
        "caller and 1 worker",
        StreamKind::Distinct,
        2,
        move |batches| {
            let whole = filter.take().ok_or("the filter is gone")?;
            let cores = Pinning::Spread.cores(2)?;
            let worker = cores[1].map_or(Pinning::None, |core| Pinning::Cores(vec![core]));
            let (engine, mut ports) = Engine::builder(whole).pinning(worker).start()?;
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

fn mesh(mebibytes: u64, threads: usize) -> Result<Contestant, Failure> {
    let mut filter = Some(spec(mebibytes).build_partitions(threads)?);
    let mut streams: Vec<Stream> = (0..threads as u64)
        .map(|number| Stream::new(StreamKind::Distinct, number))
        .collect();
    let mut seen = 0;
    Ok(Contestant::new(
        "mesh",
        format!("{threads} nodes"),
        StreamKind::Distinct,
        threads,
        move |batches| {
            let whole = filter.take().ok_or("the filter is gone")?;
            let partitioning = whole.partitioning().clone();
            let nodes = Mesh::new().nodes(whole)?;
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

fn shared(
    mebibytes: u64,
    form: SharedForm,
    kind: StreamKind,
    threads: usize,
) -> Result<Contestant, Failure> {
    let filter: SharedFilter = SharedSpec::new(mebibytes << 20, form).build()?;
    let mut streams: Vec<Stream> = (0..threads as u64)
        .map(|number| Stream::new(kind, number))
        .collect();
    Ok(Contestant::new(
        "shared",
        format!("{form:?}"),
        kind,
        threads,
        move |batches| {
            let last = std::sync::Mutex::new(Vec::new());
            let timing = on_threads(streams.iter_mut().collect(), |_, stream: &mut Stream| {
                let mut verdicts = Verdicts::new();
                for _ in 0..batches / threads as u64 {
                    filter.observe(stream.batch(), &mut verdicts);
                }
                // A batch that was just recorded is held, but for keys that others of the same words have pushed out since.
                let keys = stream.batch().to_vec();
                filter.observe(&keys, &mut verdicts);
                last.lock()
                    .expect("no panic")
                    .push(keys.iter().filter(|key| filter.contains(**key)).count());
            })?;
            for held in last.into_inner().expect("no panic") {
                if held < BATCH * 99 / 100 {
                    return Err(format!("{held} of {BATCH} keys are held").into());
                }
            }
            Ok(timing)
        },
    ))
}

impl Contestant {
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

/// Measures and prints the table.
///
/// # Errors
/// If the memory is not there, a count is wrong, or an output cannot be written.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let mut table = Table::new(&[
        "name",
        "form",
        "stream",
        "threads",
        "memory_mib",
        "keys_per_second",
        "ratio_to_inline",
        "ratio_to_one_thread",
        "cpu_ns_per_key",
        "kind",
    ]);
    for size in &arguments.sizes {
        measure_size(arguments, *size, &mut table)?;
    }
    table.publish(&arguments.outputs)
}

fn measure_size(arguments: &Arguments, mebibytes: u64, table: &mut Table) -> Result<(), Failure> {
    let mut contestants = vec![inline(mebibytes)?, engine(mebibytes)?];
    for threads in &arguments.threads {
        contestants.push(mesh(mebibytes, *threads)?);
    }
    for form in [
        SharedForm::Row4x16,
        SharedForm::Bloom { k: 4 },
        SharedForm::Ageing { k: 2 },
    ] {
        for kind in [StreamKind::Distinct, StreamKind::Zipf, StreamKind::Hot] {
            // One form shows what skew does; the others differ in the operation only.
            if kind != StreamKind::Distinct && form != SharedForm::Row4x16 {
                continue;
            }
            for threads in &arguments.threads {
                contestants.push(shared(mebibytes, form, kind, *threads)?);
            }
        }
    }
    let batches = (arguments.keys * 1_000_000)
        .div_ceil(BATCH as u64)
        .next_multiple_of(64);
    // The first round touches every page; it does not count.
    for round in 0..=arguments.rounds {
        for contestant in &mut contestants {
            let timing = (contestant.run)(batches)?;
            if round > 0 {
                let keys = (batches * BATCH as u64) as f64;
                contestant.walls.push(timing.wall / keys);
                contestant.cpus.push(timing.cpu / keys);
            }
        }
    }
    let wall = |contestant: &Contestant| median(contestant.walls.clone());
    let inline = wall(&contestants[0]);
    for contestant in &contestants {
        let seconds = wall(contestant);
        let single = contestants.iter().find(|other| {
            other.threads == 1
                && (other.name, &other.form, other.stream)
                    == (contestant.name, &contestant.form, contestant.stream)
                || other.name == "mesh" && contestant.name == "mesh" && other.threads == 1
        });
        let gain = single.map(|single| wall(single) / seconds);
        let row = |threads: usize, seconds: f64, gain: Option<f64>, cpu: Cell, kind: &str| {
            vec![
                contestant.name.into(),
                contestant.form.clone().into(),
                contestant.stream.name().into(),
                (threads as u64).into(),
                mebibytes.into(),
                (1.0 / seconds).into(),
                (inline / seconds).into(),
                gain.into(),
                cpu,
                kind.into(),
            ]
        };
        let cpu = median(contestant.cpus.clone()) * 1e9;
        table.push(row(
            contestant.threads,
            seconds,
            gain,
            cpu.into(),
            "measured",
        ));
        if let (Some(single), true) = (single, contestant.threads > 1) {
            for cores in [8, 32, 128] {
                let gain = predicted_gain(wall(single) / seconds, contestant.threads, cores);
                let seconds = wall(single) / gain;
                table.push(row(cores, seconds, Some(gain), Cell::Nothing, "prediction"));
            }
        }
    }
    Ok(())
}

/// Amdahl's law through the two measured points: the universal scalability law without its coherence term, which two points cannot
/// give and which forms that share nothing do not have. Memory bandwidth, which more cores share, is not in it: an upper bound.
fn predicted_gain(gain: f64, threads: usize, cores: usize) -> f64 {
    let serial = ((threads as f64 / gain - 1.0) / (threads as f64 - 1.0)).max(0.0);
    cores as f64 / (1.0 + serial * (cores as f64 - 1.0))
}

#[cfg(test)]
mod tests {
    use super::predicted_gain;

    #[test]
    fn predictions_go_through_the_measured_point() {
        assert!((predicted_gain(1.8, 2, 2) - 1.8).abs() < 1e-12);
        assert_eq!(predicted_gain(2.0, 2, 32), 32.0);
        assert!(predicted_gain(1.0, 2, 128) - 1.0 < 1e-12);
        // A gain above the number of threads is noise, not a law.
        assert_eq!(predicted_gain(2.1, 2, 8), 8.0);
    }
}
