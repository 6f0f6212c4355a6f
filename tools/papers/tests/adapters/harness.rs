//! Shared by the tests: parsing, streams with failures, and a plain Bloom filter.

use echoless::{Filter, FilterSpec, KeyHash, KeyHasher, SpecError, Verdict};
use proptest::prelude::*;

pub(crate) fn parse(text: &str) -> FilterSpec {
    echoless_papers::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

pub(crate) fn build(text: &str) -> Box<dyn Filter> {
    parse(text)
        .build()
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}

pub(crate) fn key(number: u64) -> KeyHash {
    KeyHasher::seeded(9).hash_u64(number)
}

pub(crate) fn is_duplicate(filter: &mut dyn Filter, key: KeyHash) -> bool {
    filter.observe_one(key) == Verdict::Duplicate
}

pub(crate) fn fail(filter: &mut dyn Filter, path: &[usize]) -> Result<(), SpecError> {
    filter.slices_mut().unwrap().fail(path)
}

pub(crate) fn restore(filter: &mut dyn Filter, path: &[usize]) -> Result<(), SpecError> {
    filter.slices_mut().unwrap().restore(path)
}

/// One step of a stream with failures. Slices are taken modulo their number.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Event {
    Key(u64),
    Fail(usize),
    Restore(usize),
}

pub(crate) fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        30 => (0_u64..300).prop_map(Event::Key),
        1 => any::<usize>().prop_map(Event::Fail),
        1 => any::<usize>().prop_map(Event::Restore),
    ];
    prop::collection::vec(event, 0..600)
}

/// k vectors of s bits; bit `index` of a key lies in vector `index`.
#[derive(Clone)]
pub(crate) struct PlainBloom {
    pub(crate) bits: Vec<Vec<bool>>,
}

impl PlainBloom {
    pub(crate) fn new(hashes: usize, bytes: usize) -> Self {
        Self {
            bits: vec![vec![false; bytes * 8 / hashes]; hashes],
        }
    }

    pub(crate) fn position(&self, key: KeyHash, index: usize) -> usize {
        KeyHash::from_uniform(key.remix(index as u64)).line(self.bits[index].len() as u64) as usize
    }

    pub(crate) fn holds(&self, key: KeyHash) -> bool {
        (0..self.bits.len()).all(|index| self.bits[index][self.position(key, index)])
    }

    pub(crate) fn insert(&mut self, key: KeyHash) {
        for index in 0..self.bits.len() {
            let position = self.position(key, index);
            self.bits[index][position] = true;
        }
    }

    pub(crate) fn ones(&self) -> usize {
        self.bits.iter().flatten().filter(|bit| **bit).count()
    }

    pub(crate) fn cells(&self) -> usize {
        self.bits.iter().map(Vec::len).sum()
    }
}
