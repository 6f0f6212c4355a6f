//! A run: feed, filter and delivery.

use std::ops::ControlFlow;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError, TryLockError};
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

use echoless::transport::Wait;
use echoless::{
    BuildError, ExchangeError, Filter, LineFilter, OrderedFilter, Partitioned, Partitioning,
    Report, Verdicts,
};
use echoless_metrics::{Endpoint, Fields, Served};
use echoless_records::failure::{self, Failure, catch_panics, lock};
use echoless_records::files::Source;
use echoless_records::signals::{Requests, Stop};

use super::backwards::{NoFilter, Versions, find_first_fault};
use super::delivery::Delivery;
use super::exact::{ExactRun, Suspects};
use super::feed::{Direction, StreamEnd};
use super::outputs::stats_file;
use super::reports::monitor;
use super::reports::stats::Setup;
use super::seen_files::SeenFiles;
use super::state::Restart;
use super::threads::pinning::cores;
use super::threads::{division, parallel};
use crate::config::{Content, DedupConfig, Keep, StateConfig, core_count};
use crate::packets::header::StreamHeader;

/// The most bytes of memory for each byte of the inputs of which a run leaves little untouched: a
/// record of 100 bytes touches a page of 4 KiB.
const TOUCHED_BYTES: u64 = 4;

/// The bytes of memory that are worth a thread which provides them.
const LEAST_SHARE: u64 = 16 << 20;

/// Runs `echoless dedup`. `explain` completes the failure of a run.
pub(crate) fn run(
    mut config: DedupConfig,
    explain: impl Fn(Failure) -> Failure,
) -> Result<ExitCode, Failure> {
    let began = Instant::now();
    // First: until it is caught, the signal would end the process.
    let requests = Requests::catch().map_err(Failure::file("signals"))?;
    let prepared = prepare(&mut config);
    let run = prepared.and_then(|prepared| prepared.start(&config, began));
    let run = run.map_err(|failure| {
        let failure = explain(failure);
        stats_file::write_failed(&config, &failure, began);
        failure
    })?;
    run.pass(&config, requests, explain)
}

/// The filter of a run without a state, which its threads share.
pub(super) type AnyFilter = OrderedFilter<Box<dyn Filter>>;

/// The filter of a run, which its threads share.
enum RunFilter {
    /// Without a state.
    Any(AnyFilter),
    /// With one.
    Lines(OrderedFilter<Box<dyn LineFilter>>),
}

/// The partitions of that filter, before its threads share them.
enum RunParts {
    Any(Partitioned<Box<dyn Filter>>),
    Lines(Partitioned<Box<dyn LineFilter>>),
}

impl RunParts {
    /// The memory of all partitions, in bytes.
    fn memory_bytes(&self) -> u64 {
        match self {
            Self::Any(parts) => memory_of(parts),
            Self::Lines(parts) => memory_of(parts),
        }
    }

    /// The filter that so many threads share. Its memory is provided first if the run will need it.
    fn share(self, config: &DedupConfig, threads: usize) -> RunFilter {
        match self {
            Self::Any(parts) => {
                let least = memory_of(&parts) / TOUCHED_BYTES;
                let shares = worthwhile_shares(&parts, threads);
                if shares > 1 && config.plain_bytes.is_some_and(|plain| plain >= least) {
                    provide_memory(&parts, shares);
                }
                RunFilter::Any(share(parts, threads))
            }
            // It was read, or is empty and kept for many runs.
            Self::Lines(parts) => RunFilter::Lines(share(parts, threads)),
        }
    }
}

/// A run whose filter is built and whose outputs are open.
struct Run<'a> {
    filter: RunFilter,
    /// The core of each thread, if it is pinned.
    cores: Vec<Option<usize>>,
    delivery: Delivery<'a>,
    endpoint: Option<Endpoint>,
}

/// A run whose inputs are known, before its outputs are opened.
struct PreparedRun {
    parts: RunParts,
    cores: Vec<Option<usize>>,
    seen: Option<SeenFiles>,
    /// The state that the run goes on with.
    restart: Option<(StateConfig, Restart)>,
    /// Where metrics can be asked for.
    endpoint: Option<Endpoint>,
}

impl PreparedRun {
    /// Opens the outputs.
    fn start(self, config: &DedupConfig, began: Instant) -> Result<Run<'_>, Failure> {
        let Self { parts, cores, .. } = self;
        let setup = Setup {
            began,
            threads: cores.len(),
            filter_bytes: parts.memory_bytes(),
        };
        let mut delivery = Delivery::open(config, setup, self.seen)?;
        if let Some((state, restart)) = self.restart {
            delivery = delivery.go_on(&state, restart)?;
        }
        Ok(Run {
            filter: parts.share(config, cores.len()),
            cores,
            delivery,
            endpoint: self.endpoint,
        })
    }
}

/// Checks the inputs, and builds the filter.
fn prepare(config: &mut DedupConfig) -> Result<PreparedRun, Failure> {
    let (followed, others) = match &config.sources[..] {
        [others @ .., followed] if config.follow => (Some(followed), others),
        others => (None, others),
    };
    others.iter().try_for_each(Source::check)?;
    // Without its folder, nothing can be waited for.
    if let Some(followed) = followed.filter(|followed| !followed.is_to_come()) {
        followed.check()?;
    }
    let endpoint = config.run.metrics.map(|address| {
        Endpoint::bind(address).map_err(Failure::file(format!("--metrics {address}")))
    });
    let endpoint = endpoint.transpose()?;
    config.known_states.load(&config.run)?;
    let seen = skip_seen(config)?;
    if let Some(rereading) = &mut config.rereading {
        rereading.spool(&mut config.sources)?;
        config.input_bytes = Source::total_len(&config.sources);
    }
    if let Content::Packets(_) = &config.content {
        config.stream_header = StreamHeader::of_files(&config.sources)?;
    }
    let worthwhile = division::worthwhile_threads(config.plain_bytes);
    let useful = division::useful_threads(config.plain_bytes);
    let mut threads = config.run.threads.count(useful, worthwhile);
    let mut cores = cores(config.run.pin, threads)?;
    if threads > division::CHEAP_THREADS {
        // The number of compressed bytes is a poor estimate, so as many as are cheap start in any
        // case.
        let busy = division::useful_threads(division::bytes_if_ended(&config.sources));
        threads = threads.min(
            usize::try_from(busy)
                .unwrap_or(threads)
                .max(division::CHEAP_THREADS),
        );
    }
    cores.truncate(threads);
    let (parts, restart) = match config.state.clone() {
        None => (RunParts::Any(build_filter(config, threads)?), None),
        Some(state) => {
            let partitions = division::partitions(&config.filter, threads, core_count());
            let (restart, parts) = Restart::open(config, &state, partitions)?;
            (RunParts::Lines(parts), Some((state, restart)))
        }
    };
    if let Content::Packets(packets) = &config.content
        && let Some(live) = &packets.live
    {
        // Packets do not wait for it: a ring may be full before 256 MiB are there.
        if let RunParts::Any(parts) = &parts {
            provide_memory(parts, worthwhile_shares(parts, threads).max(1));
        }
        // Last: its buffer is not read yet.
        live.open(config.run.quiet)?;
    }
    Ok(PreparedRun {
        parts,
        cores,
        seen,
        restart,
        endpoint,
    })
}

/// The memory of all partitions, in bytes.
fn memory_of<F: Filter>(parts: &Partitioned<F>) -> u64 {
    parts.filters().iter().map(Filter::memory_bytes).sum()
}

impl Run<'_> {
    /// Passes the stream and reports on it.
    fn pass(
        self,
        config: &DedupConfig,
        (requests, stop): (Requests, Stop),
        explain: impl Fn(Failure) -> Failure,
    ) -> Result<ExitCode, Failure> {
        let Self {
            mut filter,
            cores,
            delivery,
            endpoint,
        } = self;
        let delivery = Mutex::new(delivery);
        let end = catch_panics(|| {
            thread::scope(|scope| {
                // Dropped with the end of the stream, also if that panics.
                let _stop = stop;
                monitor::start(scope, config.run.stats_every, &delivery, requests)?;
                if config.keep != Keep::First || config.exact.is_some() {
                    // One filter takes the place of another meanwhile.
                    let _served = serve(endpoint, scope, config, &delivery, Report::default)?;
                    return pass_again(config, &mut filter, &cores, &delivery);
                }
                match &filter {
                    RunFilter::Any(filter) => {
                        let reports = || report(filter);
                        let _served = serve(endpoint, scope, config, &delivery, reports)?;
                        parallel::pass(config, Direction::Forwards, filter, &cores, &delivery)
                    }
                    RunFilter::Lines(filter) => {
                        let reports = || report(filter);
                        let _served = serve(endpoint, scope, config, &delivery, reports)?;
                        parallel::pass(config, Direction::Forwards, filter, &cores, &delivery)
                    }
                }
            })
        });
        let delivery = delivery
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        delivery.conclude(end, explain, || match &filter {
            RunFilter::Any(filter) => report(filter),
            RunFilter::Lines(filter) => report(filter),
        })
    }
}

/// Serves the statistics of the run so far, if that is requested, until what is returned is dropped.
///
/// The filter reports, which reads its memory while no key passes, at most a hundredth of the time;
/// in between, its last report is shown.
fn serve<'scope, 'env: 'scope>(
    endpoint: Option<Endpoint>,
    scope: &'scope Scope<'scope, 'env>,
    config: &DedupConfig,
    delivery: &'env Mutex<Delivery<'_>>,
    report: impl Fn() -> Report + Send + 'scope,
) -> Result<Option<Served>, Failure> {
    let Some(endpoint) = endpoint else {
        return Ok(None);
    };
    if !config.run.quiet {
        let address = endpoint.address();
        failure::warn(&format!("metrics at http://{address}/metrics"));
    }
    let (mut last, mut due) = (Report::default(), Instant::now());
    let mut fields = Fields::default();
    let served = endpoint.serve(scope, move || {
        let now = Instant::now();
        if due <= now {
            // Not while the delivery is locked: batches in front may wait for that.
            last = report();
            due = now + 100 * now.elapsed();
        }
        // While an output takes nothing more, what was there before is shown.
        for _ in 0..200 {
            match delivery.try_lock() {
                Ok(mut delivery) => fields = delivery.fields_so_far(last),
                Err(TryLockError::WouldBlock) => {
                    thread::sleep(Duration::from_millis(1));
                    continue;
                }
                Err(TryLockError::Poisoned(_)) => {}
            }
            break;
        }
        fields.clone()
    });
    served.map(Some).map_err(Failure::file("a thread"))
}

/// Removes the inputs that an earlier run has read, if that is requested. Returns the list of those
/// that are read.
fn skip_seen(config: &mut DedupConfig) -> Result<Option<SeenFiles>, Failure> {
    let Some(path) = &config.run.skip_seen_files else {
        return Ok(None);
    };
    let mut seen = SeenFiles::open(path)?;
    let mut inputs = config.sources.split_off(config.known);
    let (skipped, skipped_bytes) = seen.remove_seen(&mut inputs, config.run.quiet)?;
    config.sources.append(&mut inputs);
    for length in [&mut config.input_bytes, &mut config.plain_bytes] {
        *length = length.map(|bytes| bytes.saturating_sub(skipped_bytes));
    }
    config.skipped = Some(skipped);
    Ok(Some(seen))
}

/// The filter for so many threads, in partitions. A window of packets is one.
fn build_filter(
    config: &DedupConfig,
    threads: usize,
) -> Result<Partitioned<Box<dyn Filter>>, BuildError> {
    match &config.content {
        Content::Records(_) => match division::partitions(&config.filter, threads, core_count()) {
            1 => Ok(whole(config.filter.build()?)),
            partitions => config.filter.build_partitions(partitions),
        },
        Content::Packets(packets) => Ok(whole(packets.windows.build()?)),
    }
}

/// How many threads are worth providing the memory, at most so many.
fn worthwhile_shares(parts: &Partitioned<Box<dyn Filter>>, threads: usize) -> usize {
    threads.min((memory_of(parts) / LEAST_SHARE) as usize)
}

/// Has each of so many threads provide a share of the memory: the first keys would find most of it
/// missing, a page at a time, and in the turn of a partition.
fn provide_memory(parts: &Partitioned<Box<dyn Filter>>, shares: usize) {
    thread::scope(|scope| {
        for share in 0..shares {
            let provide = move || {
                let filters = parts.filters().iter();
                filters.for_each(|filter| filter.provide_memory(share, shares));
            };
            // It is a hint: without threads, the run fails where it needs them.
            let _ = thread::Builder::new().spawn_scoped(scope, provide);
        }
    });
}

/// A filter in one partition.
pub(super) fn whole(filter: Box<dyn Filter>) -> Partitioned<Box<dyn Filter>> {
    let one = Partitioning::new(1, 1).and_then(|one| Partitioned::new(one, vec![filter]));
    one.expect("a filter for one partition")
}

/// The partitions of a filter for so many threads in turns.
pub(super) fn share<F: Filter>(parts: Partitioned<F>, threads: usize) -> OrderedFilter<F> {
    OrderedFilter::builder(parts)
        .wait(Wait::auto(threads))
        .build()
}

/// The report of the filter behind all tickets. A run that lost a partition has none.
fn report<F: Filter>(filter: &OrderedFilter<F>) -> Report {
    let mut handle = filter.handle();
    handle.ticket().report().unwrap_or_default()
}

/// Passes a stream that is read several times. Leaves the filter that judged last.
fn pass_again(
    config: &DedupConfig,
    filter: &mut RunFilter,
    cores: &[Option<usize>],
    delivery: &Mutex<Delivery<'_>>,
) -> Result<StreamEnd, Failure> {
    let versions = Versions::of(&config.sources);
    let mut exact = match config.exact {
        None => None,
        Some(shape) => {
            let mut suspects = Suspects::new(shape)?;
            let found = match filter {
                RunFilter::Any(filter) => {
                    let finds = (&*filter, suspects);
                    ExactRun::find(config, shape, finds, cores, delivery, &versions)
                }
                RunFilter::Lines(filter) => {
                    count_lines(filter, &mut suspects)?;
                    let finds = (&*filter, suspects);
                    ExactRun::find(config, shape, finds, cores, delivery, &versions)
                }
            };
            *filter = RunFilter::Any(no_filter(cores.len()));
            match found? {
                ControlFlow::Break(end) => return Ok(end),
                ControlFlow::Continue(found) => Some(found),
            }
        }
    };
    let RunFilter::Any(filter) = filter else {
        unreachable!("an exact run has the only state that is read several times");
    };
    let mut judge = |direction, filter: &mut AnyFilter| match &mut exact {
        Some(exact) => exact.pass(config, direction, filter, cores, delivery),
        None => parallel::pass(config, direction, filter, cores, delivery),
    };
    let end = match config.keep {
        Keep::First => judge(Direction::Forwards, filter)?,
        Keep::Last | Keep::None => {
            let judged = judge(Direction::Backwards, filter)?;
            if lock(delivery).has_fault() {
                return find_first_fault(config);
            }
            if judged.signal.is_some() {
                return Ok(judged);
            }
            lock(delivery).begin_writing(&report(filter));
            if config.keep == Keep::Last {
                let none = no_filter(cores.len());
                parallel::pass(config, Direction::Forwards, &none, cores, delivery)?
            } else {
                // Before another one is built: they share the memory.
                *filter = no_filter(cores.len());
                if config.exact.is_none() {
                    *filter = share(build_filter(config, cores.len())?, cores.len());
                }
                judge(Direction::Forwards, filter)?
            }
        }
    };
    versions.check(&config.sources)?;
    if end.signal.is_none() {
        exact.map_or(Ok(()), ExactRun::end)?;
    }
    Ok(end)
}

/// Takes the keys that the filter of a state has already.
fn count_lines(
    filter: &OrderedFilter<Box<dyn LineFilter>>,
    suspects: &mut Suspects,
) -> Result<(), Failure> {
    let mut handle = filter.handle();
    handle
        .ticket()
        .observe_then(&[], &mut Verdicts::new(), |_, part| {
            suspects.count_lines(part.held().start, part.lines());
        })?;
    // A batch without keys misses no partition.
    match filter.lost().first() {
        Some((index, _)) => Err(ExchangeError::Panicked(*index).into()),
        None => Ok(()),
    }
}

/// A filter that remembers nothing.
pub(super) fn no_filter(threads: usize) -> AnyFilter {
    share(whole(Box::new(NoFilter)), threads)
}
