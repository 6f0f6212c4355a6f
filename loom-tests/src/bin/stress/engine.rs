//! Engines: over all ports together, each key is fresh once, also if ports are dropped, filters
//! panic or the engine ends.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use echoless::assembly::EngineBuilder;
use echoless::transport::Wait;
use echoless::{Attacher, Engine, ExchangeError, KeyHash, Port, Verdicts};

use crate::filter::{Exact, Keys};
use crate::random::Random;

/// What one client heard of a key.
#[derive(Debug, Clone, Copy, Default)]
struct Heard {
    fresh: u64,
    known: u64,
    /// Submitted in batches whose verdicts were not taken.
    unheard: u64,
}

/// What a client heard of all keys.
type Log = HashMap<KeyHash, Heard>;

/// What the clients of a scenario submit.
#[derive(Debug, Clone, Copy)]
struct Load {
    universe: usize,
    longest: usize,
    batches: usize,
}

fn builder(random: &mut Random, workers: usize) -> EngineBuilder<Exact> {
    let wait = if random.once_in(2) {
        Wait::Shared
    } else {
        Wait::Dedicated
    };
    Engine::builder(Exact::partitions(workers))
        .ports(random.below(3))
        .ring_depth(1 << random.below(5))
        .wait(wait)
}

fn load(random: &mut Random) -> Load {
    Load {
        universe: 1 + random.below(3000),
        longest: 1 + random.below(300),
        batches: 1 + random.below(40),
    }
}

/// Adds the verdicts of a batch that are known, and returns the keys that have none.
fn note(log: &mut Log, keys: &[KeyHash], verdicts: &Verdicts) -> Vec<KeyHash> {
    assert_eq!(keys.len(), verdicts.len());
    let mut unknown = Vec::new();
    for (index, key) in keys.iter().enumerate() {
        if verdicts.is_unknown(index) {
            unknown.push(*key);
            continue;
        }
        let heard = log.entry(*key).or_default();
        heard.known += 1;
        heard.fresh += u64::from(!verdicts.is_duplicate(index));
    }
    unknown
}

/// Ports that attach, submit some batches and are dropped, some with batches in flight, until the
/// engine ends.
///
/// # Errors
/// [`ExchangeError`] once the engine has ended.
fn come_and_go(
    attacher: &Attacher,
    mut first: Option<Port>,
    load: Load,
    random: &mut Random,
    log: &mut Log,
) -> Result<(), ExchangeError> {
    let mut left = load.batches;
    while left > 0 {
        let mut port = match first.take() {
            Some(port) => port,
            None => attacher.attach().expect("memory for small rings"),
        };
        let mut in_flight = Vec::new();
        let mut end = Ok(());
        for _ in 0..1 + random.below(left.min(8)) {
            left -= 1;
            let length = random.below(load.longest);
            let keys = random.keys(length, load.universe);
            end = port.submit(&keys);
            if end.is_err() {
                break; // it was not sent
            }
            in_flight.push(keys);
        }
        let dropped_early = random.once_in(3) && !in_flight.is_empty();
        let heard = if dropped_early {
            random.below(in_flight.len())
        } else {
            in_flight.len()
        };
        let mut verdicts = Verdicts::new();
        for (number, keys) in in_flight.iter().enumerate() {
            let drained = if number < heard {
                port.drain(&mut verdicts)
            } else {
                Ok(false)
            };
            end = end.and(drained.map(|_| ()));
            let unheard =
                if drained == Ok(true) || drained.is_err() && port.take_partial(&mut verdicts) {
                    note(log, keys, &verdicts)
                } else {
                    keys.clone()
                };
            for key in unheard {
                log.entry(key).or_default().unheard += 1;
            }
        }
        end?;
    }
    Ok(())
}

/// Checks the verdicts of all clients, and what the filters hold.
fn check(logs: Vec<Log>, held: Option<&[Keys]>) {
    let mut total = Log::new();
    for (key, heard) in logs.into_iter().flatten() {
        let sum = total.entry(key).or_default();
        sum.fresh += heard.fresh;
        sum.known += heard.known;
        sum.unheard += heard.unheard;
    }
    for (key, heard) in total {
        assert!(heard.fresh <= 1, "{key:?}: {heard:?}");
        if heard.known > 0 && heard.unheard == 0 {
            assert_eq!(heard.fresh, 1, "{key:?}: {heard:?}");
        }
        if let Some(held) = held.filter(|_| heard.known > 0) {
            let is_held = held.iter().any(|keys| keys.lock().unwrap().contains(&key));
            assert!(is_held, "{key:?}: {heard:?}");
        }
    }
}

/// The sets of the partitions.
fn sets(parts: &[Exact]) -> Vec<Keys> {
    parts.iter().map(|part| Arc::clone(&part.keys)).collect()
}

/// Runs each client on a thread, and `meanwhile` on this one. Returns what the clients return.
fn run_clients<T: Send, M>(
    clients: Vec<impl FnOnce() -> T + Send>,
    meanwhile: impl FnOnce() -> M,
) -> (Vec<T>, M) {
    thread::scope(|scope| {
        let threads: Vec<_> = clients
            .into_iter()
            .map(|client| scope.spawn(client))
            .collect();
        let outcome = meanwhile();
        let returned = threads.into_iter().map(|thread| thread.join().unwrap());
        (returned.collect(), outcome)
    })
}

/// A client whose ports come and go. It returns its log and how it ended.
type Client = Box<dyn FnOnce() -> (Log, Result<(), ExchangeError>) + Send>;

/// A drawn engine, and its clients.
fn engine_and_clients(random: &mut Random) -> (Engine<Exact>, Vec<Client>) {
    let workers = 1 + random.below(4);
    let (engine, ports) = builder(random, workers).build().expect("small rings");
    let load = load(random);
    let mut ports = ports.into_iter();
    let clients = (0..1 + random.below(4))
        .map(|_| {
            let (attacher, first, mut random) = (engine.attacher(), ports.next(), random.split());
            let client = move || {
                let mut log = Log::new();
                let end = come_and_go(&attacher, first, load, &mut random, &mut log);
                (log, end)
            };
            Box::new(client) as Client
        })
        .collect();
    (engine, clients)
}

pub(crate) fn ports_come_and_go(random: &mut Random) {
    let (engine, clients) = engine_and_clients(random);
    let (ended, ()) = run_clients(clients, || ());
    assert!(ended.iter().all(|(_, end)| end.is_ok()));
    let parts = engine.shutdown().expect("no filter panics");
    let logs = ended.into_iter().map(|(log, _)| log).collect();
    check(logs, Some(&sets(parts.filters())));
}

/// The engine is shut down or dropped while its clients go on.
pub(crate) fn it_ends_early(random: &mut Random) {
    let (engine, clients) = engine_and_clients(random);
    let (ended, held) = run_clients(clients, || {
        for _ in 0..random.below(2000) {
            thread::yield_now();
        }
        if random.once_in(2) {
            drop(engine);
            return None;
        }
        let parts = engine.shutdown().expect("no filter panics");
        Some(sets(parts.filters()))
    });
    for (_, end) in &ended {
        assert!(
            matches!(end, Ok(()) | Err(ExchangeError::Disconnected(_))),
            "{end:?}"
        );
    }
    // A batch that ended with an error, and was taken partially, has keys that are not known.
    let logs = ended.into_iter().map(|(log, _)| log).collect();
    check(logs, held.as_deref());
}

/// Partitions whose filters panic again and again, and keep their keys.
struct Losses {
    engine: Engine<Exact>,
    sets: Vec<Keys>,
    left: AtomicUsize,
}

impl Losses {
    /// Replaces a lost partition, unless another client has replaced it.
    fn replace(&self, partition: usize, random: &mut Random) {
        let left = self
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                left.checked_sub(1)
            });
        let filter = Exact {
            keys: Arc::clone(&self.sets[partition]),
            passes_left: left.ok().map(|_| random.below(10)),
        };
        drop(self.engine.replace(partition, filter));
    }

    /// A client that submits batches, and again what is unknown of them.
    fn retry(&self, load: Load, random: &mut Random) -> Log {
        let mut log = Log::new();
        let mut port = self.engine.attach().expect("memory for small rings");
        let mut verdicts = Verdicts::new();
        for _ in 0..load.batches {
            if random.once_in(5) {
                port = self.engine.attach().expect("memory for small rings");
            }
            let length = random.below(load.longest);
            let mut keys = random.keys(length, load.universe);
            while !keys.is_empty() {
                let observed = port.observe(&keys, &mut verdicts);
                if observed.is_ok() || port.take_partial(&mut verdicts) {
                    keys = note(&mut log, &keys, &verdicts);
                }
                match observed {
                    Err(ExchangeError::Panicked(partition)) => self.replace(partition, random),
                    other => other.expect("only filters fail"),
                }
            }
        }
        log
    }
}

/// Filters panic again and again; clients replace them, and submit again what is unknown.
pub(crate) fn filters_panic(random: &mut Random) {
    let mut parts = Exact::partitions(1 + random.below(4));
    for part in parts.filters_mut() {
        part.passes_left = Some(random.below(10));
    }
    let sets = sets(parts.filters());
    let builder = Engine::builder(parts)
        .ports(0)
        .ring_depth(1 << random.below(4));
    let (engine, _) = builder.build().expect("small rings");
    let losses = Losses {
        engine,
        sets,
        left: AtomicUsize::new(random.below(30)),
    };
    let load = load(random);
    let clients = (0..1 + random.below(3))
        .map(|_| {
            let (losses, mut random) = (&losses, random.split());
            move || losses.retry(load, &mut random)
        })
        .collect();
    let (logs, ()) = run_clients(clients, || ());
    check(logs, Some(&losses.sets));
}
