//! A line service over TCP on the loopback: the workers of an engine, the shared filter, and one
//! filter behind a lock, at the same load.
//!
//! Each client sends a request of some lines and waits for the answers before the next one. Clients
//! and service share the threads of one runtime, so the throughput counts both; what they have in
//! common is the same for all filters.

use std::net::Ipv4Addr;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use clap::Args;
use echoless::transport::Wait;
use echoless::{
    Engine, ExchangeError, Filter, FingerprintSpec, KeyHash, KeyHasher, SharedSpec, Verdicts,
};
use echoless_tokio::{AsyncFilter, serve_lines};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::clock::{median_of, process_seconds};
use crate::failure::Failure;
use crate::machine::SIZES_MIB;
use crate::table::{Outputs, Table};
use crate::turns::measure_in_turn;

/// The options of `service`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Connections at the same time.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    connections: u64,
    /// Lines of each request.
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u64).range(1..=1000))]
    keys: u64,
    /// Requests of each connection in a measurement.
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    requests: u64,
    /// Size of the filters, in MiB.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u64).range(SIZES_MIB))]
    size: u64,
    /// Threads of the runtime.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=1024))]
    threads: u64,
    /// Measurements of each filter; the table has the median, and the longest poll of all.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=1000))]
    rounds: u64,
    #[command(flatten)]
    outputs: Outputs,
}

/// The filter of the lines.
#[derive(Clone, Copy)]
enum Candidate {
    Locked,
    Shared,
    Engine,
}

impl Candidate {
    const ALL: [Self; 3] = [Self::Locked, Self::Shared, Self::Engine];

    const fn name(self) -> &'static str {
        match self {
            Self::Locked => "filter behind a lock",
            Self::Shared => "shared filter",
            Self::Engine => "engine, 1 worker",
        }
    }
}

/// A filter behind a lock, as services without an engine have it.
#[derive(Clone)]
struct Locked(Arc<Mutex<Box<dyn Filter>>>);

impl AsyncFilter for Locked {
    async fn observe_async(
        &mut self,
        keys: &[KeyHash],
        verdicts: &mut Verdicts,
    ) -> Result<(), ExchangeError> {
        let mut filter = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        filter.observe(keys, verdicts);
        Ok(())
    }
}

/// What a measurement found.
struct Timing {
    wall: f64,
    cpu: f64,
    longest_poll: f64,
}

/// Measures and prints the table.
///
/// # Errors
/// If a filter or socket is not available, or answers are missing.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let bytes = arguments.size << 20;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(arguments.threads as usize)
        .enable_all()
        .build()?;
    let locked = Locked(Arc::new(Mutex::new(FingerprintSpec::new(bytes).build()?)));
    let shared = Arc::new(SharedSpec::new(bytes).build()?);
    let filter = FingerprintSpec::new(bytes).build_partitions(1)?;
    // The worker shares the cores with the threads of the runtime.
    let (engine, _) = Engine::builder(filter)
        .ring_depth(4)
        .wait(Wait::Shared)
        .build()?;
    let attacher = engine.attacher();
    let mut candidates = Candidate::ALL;
    let mut first = 0;
    let timings = measure_in_turn(&mut candidates, arguments.rounds, |candidate| {
        let load = Load {
            connections: arguments.connections,
            keys: arguments.keys,
            requests: arguments.requests,
            first,
        };
        first += load.lines();
        match candidate {
            Candidate::Locked => runtime.block_on(load.measure(|| Ok(locked.clone()))),
            Candidate::Shared => runtime.block_on(load.measure(|| Ok(Arc::clone(&shared)))),
            Candidate::Engine => runtime.block_on(load.measure(|| Ok(attacher.attach()?))),
        }
    })?;
    engine.shutdown()?;
    let mut table = Table::new(&[
        "filter",
        "connections",
        "lines_of_request",
        "threads",
        "lines_per_second",
        "cpu_ns_per_line",
        "longest_poll_ms",
    ]);
    let lines = (arguments.connections * arguments.keys * arguments.requests) as f64;
    for (candidate, timings) in candidates.into_iter().zip(timings) {
        let longest = timings.iter().map(|timing| timing.longest_poll);
        table.push(vec![
            candidate.name().into(),
            arguments.connections.into(),
            arguments.keys.into(),
            arguments.threads.into(),
            (lines / median_of(&timings, |timing| timing.wall)).into(),
            (median_of(&timings, |timing| timing.cpu) / lines * 1e9).into(),
            (longest.fold(0.0, f64::max) * 1e3).into(),
        ]);
    }
    table.publish(&arguments.outputs)
}

/// The requests of all connections in one measurement. All lines of a run are distinct.
#[derive(Clone, Copy)]
struct Load {
    connections: u64,
    keys: u64,
    requests: u64,
    /// The number of the first line.
    first: u64,
}

impl Load {
    fn lines(&self) -> u64 {
        self.connections * self.keys * self.requests
    }

    async fn measure<F: AsyncFilter + 'static>(
        self,
        filter: impl Fn() -> Result<F, Failure>,
    ) -> Result<Timing, Failure> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let longest = Arc::new(AtomicU64::new(0));
        let mut services = JoinSet::new();
        let mut clients = JoinSet::new();
        for client in 0..self.connections {
            let connection = TcpStream::connect(address).await?;
            let (accepted, _) = listener.accept().await?;
            accepted.set_nodelay(true)?;
            connection.set_nodelay(true)?;
            let filter = filter()?;
            let service = async move {
                let hasher = KeyHasher::seeded(0);
                let never = std::future::pending();
                serve_lines(accepted, filter, &hasher, never).await
            };
            services.spawn(Timed {
                future: Box::pin(service),
                longest: Arc::clone(&longest),
            });
            clients.spawn(self.client(client, connection));
        }
        let (start, cpu) = (Instant::now(), process_seconds());
        let mut fresh = 0;
        while let Some(client) = clients.join_next().await {
            fresh += client??;
        }
        let timing = Timing {
            wall: start.elapsed().as_secs_f64(),
            cpu: process_seconds() - cpu,
            longest_poll: Duration::from_nanos(longest.load(Ordering::Relaxed)).as_secs_f64(),
        };
        while let Some(service) = services.join_next().await {
            service??;
        }
        // The lines are distinct; the shared filter has the highest rate of false positives.
        if fresh.abs_diff(self.lines()) > 1 + self.lines() / 1000 {
            return Err(format!("{fresh} of {} distinct lines were fresh", self.lines()).into());
        }
        Ok(timing)
    }

    /// Sends the requests of one client; returns the number of `fresh` answers.
    async fn client(self, client: u64, mut connection: TcpStream) -> std::io::Result<u64> {
        let (mut request, mut answers) = (Vec::new(), vec![0; 16 << 10]);
        let mut fresh = 0;
        for number in 0..self.requests {
            request.clear();
            let first = self.first + (client * self.requests + number) * self.keys;
            for line in first..first + self.keys {
                request.extend_from_slice(format!("call {line}\n").as_bytes());
            }
            connection.write_all(&request).await?;
            let mut answered = 0;
            while answered < self.keys {
                let count = connection.read(&mut answers).await?;
                if count == 0 {
                    return Err(std::io::ErrorKind::UnexpectedEof.into());
                }
                for byte in &answers[..count] {
                    answered += u64::from(*byte == b'\n');
                    fresh += u64::from(*byte == b'f');
                }
            }
        }
        Ok(fresh)
    }
}

/// A task whose longest poll is measured, time without the core included.
struct Timed<F> {
    future: Pin<Box<F>>,
    longest: Arc<AtomicU64>,
}

impl<F: Future> Future for Timed<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let start = Instant::now();
        let result = self.future.as_mut().poll(context);
        let nanoseconds = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.longest.fetch_max(nanoseconds, Ordering::Relaxed);
        result
    }
}
