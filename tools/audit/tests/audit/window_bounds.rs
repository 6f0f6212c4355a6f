//! The bounds of the audit of a window hold on at least 95 of 100 streams.
//!
//! A filter that does not renew its keys mistakes a key again and again, so the streams of the
//! second test have few keys that make up much of them. `AUDIT_STREAMS=1000 cargo test --release -p
//! echoless-audit --test audit window_bounds -- --nocapture` runs more of them.

use std::collections::HashMap;
use std::env;
use std::fs;
use std::path::Path;

use echoless::{Filter, FilterSpec, KeyHasher};
use echoless_audit::{Estimate, Moment, WindowAudit};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use crate::bounds::holds;
use crate::streams::{Shape, Stream};
use crate::{ON_A_LOG, UNRENEWED, WINDOWS, parse};

/// What a filter with a window reported on a stream, and the truth.
#[derive(Debug)]
struct Run {
    missed: (Estimate, u64),
    mistaken: (Estimate, u64),
    duplicates: u64,
    /// Whether the bounds of the false negative rate hold.
    rate_holds: bool,
}

impl Run {
    /// Each tick has so many keys.
    fn new(spec: &FilterSpec, seed: u64, keys: &[u64], keys_per_tick: u64) -> Self {
        let refresh = spec.facts().renews_keys;
        let window = spec.facts().window.unwrap();
        let mut filter = spec.build().unwrap();
        let mut audit = WindowAudit::new(window, refresh);
        let hasher = KeyHasher::seeded(seed);
        let mut recorded: HashMap<u64, u64> = HashMap::new();
        let (mut missed, mut mistaken, mut inside_window) = (0, 0, 0);
        for (index, key) in (0..).zip(keys) {
            let tick = index / keys_per_tick;
            filter.advance_to(tick);
            let hash = hasher.hash_u64(*key);
            let verdict = filter.observe_one(hash);
            let duplicate = verdict.is_duplicate();
            let number = index;
            audit.observe(hash, || Moment { tick, number }, verdict);
            let age = recorded.get(key).map(|then| tick - then);
            let inside = age.is_some_and(|age| age <= window.ticks);
            let over = age.is_none_or(|age| age >= window.ticks + window.granule);
            inside_window += u64::from(inside);
            missed += u64::from(inside && !duplicate);
            mistaken += u64::from(over && duplicate);
            if refresh || !duplicate {
                recorded.insert(*key, tick);
            }
        }
        let errors = audit.estimates(Some(&filter.report()));
        let fnr = missed as f64 / inside_window.max(1) as f64;
        Self {
            missed: (errors.missed_duplicates, missed),
            mistaken: (errors.false_duplicates, mistaken),
            duplicates: errors.duplicates,
            // There is no rate if there can have been no duplicate.
            rate_holds: errors.fnr().map_or(inside_window == 0, |rate| {
                rate.low <= fnr + 1e-9 && fnr <= rate.high + 1e-9
            }),
        }
    }
}

/// How many streams of a kind the bounds held on.
#[derive(Debug, Default)]
struct Held {
    streams: u64,
    missed: u64,
    mistaken: u64,
    rate: u64,
    /// The streams of which most duplicates can be false ones, though few were found.
    useless: u64,
}

impl Held {
    fn add(&mut self, run: &Run) {
        let says_nothing = |errors: Estimate| errors.low * 10 < errors.high;
        self.streams += 1;
        self.missed += u64::from(holds(run.missed.0, run.missed.1));
        self.mistaken += u64::from(holds(run.mistaken.0, run.mistaken.1));
        self.rate += u64::from(run.rate_holds);
        let wide = says_nothing(run.mistaken.0) && run.mistaken.0.high * 2 > run.duplicates;
        self.useless += u64::from(wide);
    }

    fn check(&self, name: &str) {
        println!("{name}: {self:?}");
        for held in [self.missed, self.mistaken, self.rate] {
            assert!(held * 100 >= self.streams * 95, "{name}: {self:?}");
        }
    }
}

/// The keys of stream `number`: uniform, skewed, new ones with a few hot ones, or repeated after a
/// gap.
fn keys(number: u64) -> Vec<u64> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(number);
    let size = 500 << (number / 4 % 6);
    (0..60_000)
        .map(|index| {
            let (first, second) = (random.next_u64(), random.next_u64());
            match number % 4 {
                0 => first % size,
                // A random bound makes small keys more frequent.
                1 => first % (second % (4 * size) + 1),
                2 if index % (2 + number) == 0 => index % 7,
                3 if index % 3 == 0 && index > size => index - size,
                2 | 3 => index + (1 << 40),
                4.. => unreachable!("a remainder of 4"),
            }
        })
        .collect()
}

#[test]
fn bounds_hold_on_at_least_95_of_100_streams() {
    for filter in WINDOWS {
        let mut held = Held::default();
        for number in 0..100 {
            // From a few lines on, or from one page on.
            let least = if filter.contains("dense=true") {
                4096
            } else {
                256
            };
            let memory = least << (number % 5);
            let spec = parse(&format!("{filter},memory={memory}B"));
            held.add(&Run::new(&spec, number, &keys(number), 1 + number % 9));
        }
        held.check(filter);
    }
}

/// The keys of the streams below. The windows have so many that 1 in 16 keys is in the sample.
const LENGTH: usize = 120_000;

/// The keys of the stream of a shape with this number.
type Keys = fn(u64) -> Vec<u64>;

/// The shapes of streams, each of whose numbers has a stream of its own.
const SHAPES: [(&str, Keys); 5] = [
    ("hot keys", hot_keys),
    ("hot for a while", hot_for_a_while),
    ("sessions", |number| {
        let shape = Shape::sessions(200 << (number % 6));
        Stream::new(number, shape).take(LENGTH).collect()
    }),
    ("a log, repeated", repeated_log),
    ("Zipf", |number| {
        let shape = Shape::zipf(20_000, 0.7 + (number % 7) as f64 / 10.0);
        Stream::new(number, shape).take(LENGTH).collect()
    }),
];

/// Up to 30 keys that make up 2 to 66 % of the stream, among new ones.
fn hot_keys(number: u64) -> Vec<u64> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(number);
    let (hot, part) = (1 + number * 7 % 30, 2 + number * 16 % 65);
    let mut keys = Vec::with_capacity(LENGTH);
    for index in 0..LENGTH as u64 {
        keys.push(if random.next_u64() % 100 < part {
            random.next_u64() % hot
        } else {
            index + (1 << 40)
        });
    }
    keys
}

/// The same, with other hot keys every few thousand keys.
fn hot_for_a_while(number: u64) -> Vec<u64> {
    let while_hot = 3000 << (number % 3);
    let keys = hot_keys(number).into_iter().zip(0_u64..);
    keys.map(|(key, index)| match key {
        ..30 => key + index / while_hot * 30,
        30.. => key,
    })
    .collect()
}

/// Pages and clients of a log of 10,000 to 20,000 records, again and again.
fn repeated_log(number: u64) -> Vec<u64> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(number);
    let shape = Shape::zipf(3000, 1.0);
    let length = 10_000 + number % 5 * 2500;
    let log: Vec<u64> = (Stream::new(number, shape).take(length as usize))
        .map(|page| match random.next_u64() % 10 {
            0..7 => page | random.next_u64() << 16,
            _ => page,
        })
        .collect();
    log.into_iter().cycle().take(LENGTH).collect()
}

/// How many streams of a shape there are.
fn streams() -> u64 {
    env::var("AUDIT_STREAMS").map_or(8, |streams| streams.parse().unwrap())
}

#[test]
fn bounds_hold_if_few_keys_are_mistaken_again_and_again() {
    for (shape, keys) in SHAPES {
        let streams: Vec<(u64, Vec<u64>)> = (0..streams())
            .map(|number| (number, keys(number)))
            .collect();
        for (filter, memory) in UNRENEWED {
            let mut held = Held::default();
            for (number, keys) in &streams {
                let memory = (memory << (number / 2 % 4)).next_multiple_of(4096);
                let spec = parse(&format!("{filter},memory={memory}B"));
                let run = Run::new(&spec, *number, keys, 1);
                held.add(&run);
            }
            held.check(&format!("{shape}, {filter}"));
        }
    }
}

/// The log of a web server, if it is beside the repository.
pub(crate) fn log() -> Option<Vec<u8>> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let path = workspace.join("../shared/data/apache_access.log");
    let log = fs::read(&path).ok();
    if log.is_none() {
        eprintln!("skipped: {} is missing", path.display());
    }
    log
}

#[test]
fn bounds_hold_on_a_real_log_that_is_repeated() {
    let Some(log) = log() else { return };
    let hasher = KeyHasher::seeded(0);
    // The first field is the client, the seventh the page.
    let keys: Vec<u64> = (log.split(|byte| *byte == b'\n'))
        .filter_map(|line| {
            let mut fields = line.split(|byte| *byte == b' ');
            let (client, page) = (fields.next()?, fields.nth(5)?);
            Some(hasher.hash(client).get() ^ hasher.hash(page).get())
        })
        .collect();
    let keys: Vec<u64> = keys.iter().cycle().take(20 * keys.len()).copied().collect();
    for filter in ON_A_LOG {
        let mut held = Held::default();
        for seed in 0..streams() {
            let memory = 8192 << (seed % 4);
            let spec = parse(&format!("{filter},memory={memory}B"));
            let run = Run::new(&spec, seed, &keys, 1);
            held.add(&run);
        }
        held.check(filter);
    }
}
