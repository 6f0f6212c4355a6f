//! The streams: uniform and Zipf draws like the paper's synthetic ones, and an access log like its
//! first real one.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::Path;

use echoless::{KeyHash, KeyHasher};
use echoless_lab::stream::Stream;
use echoless_papers::theory::bloom::cardinality_threshold;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::failure::Failure;

/// The arrivals of a synthetic stream, as in the paper.
pub(super) const ARRIVALS: u64 = 100_000;

/// The distinct events of a synthetic stream, as in the paper: the universes that give about so
/// many.
const UNIFORM_UNIVERSE: u64 = 5700;
const ZIPF_UNIVERSE: u64 = 6000;

/// The paper does not state the number of its producers.
const PRODUCERS: u64 = 10_000;

/// A stream of events from producers. Events and producers are numbered from 0.
#[derive(Debug)]
pub(super) struct Input {
    pub(super) name: &'static str,
    /// The event of each arrival.
    pub(super) events: Vec<u64>,
    /// The producer of each arrival.
    pub(super) producers: Vec<u64>,
    /// The number of arrivals of each event.
    pub(super) counts: Vec<u64>,
    /// The distinct events, in the order of their first arrival.
    pub(super) distinct: Vec<u64>,
    /// Whether events and producers are drawn independently, as the formulas assume.
    pub(super) is_drawn: bool,
}

impl Input {
    fn new(name: &'static str, events: Vec<u64>, producers: Vec<u64>, is_drawn: bool) -> Self {
        let universe = events.iter().max().map_or(0, |most| most + 1);
        let mut counts = vec![0; universe as usize];
        let mut distinct = Vec::new();
        for event in &events {
            let count = &mut counts[*event as usize];
            if *count == 0 {
                distinct.push(*event);
            }
            *count += 1;
        }
        Self {
            name,
            events,
            producers,
            counts,
            distinct,
            is_drawn,
        }
    }

    pub(super) fn drawn(name: &'static str, stream: &Stream, seed: u64) -> Self {
        let mut events = vec![0; stream.records() as usize];
        stream.draws(seed).fill(&mut events);
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed ^ 0x70_726f_6475_6365);
        let producers = events.iter().map(|_| random.random_range(0..PRODUCERS));
        let producers = producers.collect();
        Self::new(name, events, producers, true)
    }

    /// The requests of an access log: clients and paths, numbered in the order of their first
    /// arrival.
    fn logged(text: &str) -> Result<Self, Failure> {
        fn number<'a>(numbers: &mut HashMap<&'a str, u64>, name: &'a str) -> u64 {
            let next = numbers.len() as u64;
            match numbers.entry(name) {
                Entry::Occupied(entry) => *entry.get(),
                Entry::Vacant(entry) => *entry.insert(next),
            }
        }
        let (mut clients, mut paths) = (HashMap::new(), HashMap::new());
        let (mut events, mut producers) = (Vec::new(), Vec::new());
        for (index, line) in text.lines().enumerate() {
            let mut words = line.split(' ');
            let (Some(client), Some(path)) = (words.next(), words.nth(5)) else {
                return Err(format!("line {}: expected at least 7 words", index + 1).into());
            };
            producers.push(number(&mut clients, client));
            events.push(number(&mut paths, path));
        }
        if events.is_empty() {
            return Err("expected at least one request, found none".into());
        }
        Ok(Self::new("access log", events, producers, false))
    }

    /// The hash of every event number, by index, in a run.
    pub(super) fn hashes(&self, seed: u64) -> Vec<KeyHash> {
        hashes(0..self.counts.len() as u64, seed)
    }

    /// The events of all arrivals as hashes.
    pub(super) fn keys(&self, seed: u64) -> Vec<KeyHash> {
        let hashes = self.hashes(seed);
        let keys = self.events.iter().map(|event| hashes[*event as usize]);
        keys.collect()
    }

    /// The number of arrivals.
    pub(super) fn arrivals(&self) -> f64 {
        self.events.len() as f64
    }

    /// The sum of the squared shares of the events: the probability that two arrivals drawn at
    /// random are of one event.
    pub(super) fn skew(&self) -> f64 {
        let squares = self.counts.iter().map(|count| (*count as f64).powi(2));
        squares.sum::<f64>() / self.arrivals().powi(2)
    }
}

/// The hashes of numbers. Numbers from 2^32 on are events of no stream.
pub(super) fn hashes(numbers: impl Iterator<Item = u64>, seed: u64) -> Vec<KeyHash> {
    let hasher = KeyHasher::seeded(seed);
    numbers.map(|number| hasher.hash_u64(number)).collect()
}

/// The first of the numbers that no stream has.
pub(super) const UNSEEN: u64 = 1 << 32;

/// All streams. The log is skipped, with a message, if it is absent.
pub(super) fn inputs(log: &Path, seed: u64) -> Result<Vec<Input>, Failure> {
    let mut inputs = vec![
        Input::drawn(
            "uniform",
            &Stream::uniform(ARRIVALS, UNIFORM_UNIVERSE)?,
            seed,
        ),
        Input::drawn("zipf", &Stream::zipf(ARRIVALS, ZIPF_UNIVERSE, 1.0)?, seed),
    ];
    if log.exists() {
        let named = |error: &dyn std::fmt::Display| format!("{}: {error}", log.display());
        let text = std::fs::read_to_string(log).map_err(|error| named(&error))?;
        inputs.push(Input::logged(&text).map_err(|error| named(&error))?);
    } else {
        eprintln!("skipped: {} is absent", log.display());
    }
    Ok(inputs)
}

/// The cells, k for each key, in which `keys` keys have this FPR.
pub(super) fn cells_for(keys: u64, hashes: u32, fpr: f64) -> f64 {
    keys as f64 / cardinality_threshold(1, hashes, fpr)
}

#[cfg(test)]
mod tests {
    use echoless_papers::theory::bloom;

    use super::*;

    #[test]
    fn requests_are_numbered_by_client_and_path() {
        let line = |client: &str, path: &str| {
            format!("{client} - - [17/May/2015:10:05:03 +0000] \"GET {path} HTTP/1.1\" 200 5\n")
        };
        let text = line("a", "/x") + &line("b", "/x") + &line("a", "/y");
        let input = Input::logged(&text).unwrap();
        assert_eq!(input.events, [0, 0, 1]);
        assert_eq!(input.producers, [0, 1, 0]);
        assert_eq!(input.counts, [2, 1]);
        assert_eq!(input.distinct, [0, 1]);
        assert!((input.skew() - 5.0 / 9.0).abs() < 1e-12);
        let error = Input::logged("a b\n").unwrap_err().to_string();
        assert_eq!(error, "line 1: expected at least 7 words");
        assert!(Input::logged("").is_err());
    }

    #[test]
    fn streams_have_about_the_distinct_events_of_the_paper() {
        let inputs = inputs(Path::new("no such log"), 1).unwrap();
        let names: Vec<&str> = inputs.iter().map(|input| input.name).collect();
        assert_eq!(names, ["uniform", "zipf"]);
        for input in &inputs {
            let distinct = input.distinct.len();
            assert!((5600..5800).contains(&distinct), "{distinct} distinct");
            assert_eq!(input.counts.iter().sum::<u64>(), ARRIVALS);
            assert_eq!(input.keys(3), input.keys(3));
            assert_ne!(input.keys(3), input.keys(4));
        }
    }

    #[test]
    fn cells_hold_their_keys_at_the_rate() {
        let cells = cells_for(5700, 4, 0.05);
        assert!((bloom::fpr(4, 5700, cells as u64) - 0.05).abs() < 1e-4);
    }
}
