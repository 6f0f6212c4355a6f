//! Windows in ticks: vectors of times, of generations and of slices, that are never cleaned
//! incrementally and never wrap around.

use std::collections::{HashMap, VecDeque};

use echoless::{FilterSpec, KeyHash};
use proptest::prelude::*;

use crate::arrivals::{Arrival, arrivals, observe};
use crate::harness::{hash_counts, position};

/// A filter with a window as its source describes it.
trait TimedModel {
    /// Moves to a unit of the clock that is not earlier.
    fn advance(&mut self, unit: u64);
    /// Whether the key is a duplicate.
    fn contains(&self, key: KeyHash) -> bool;
    fn record(&mut self, key: KeyHash);
    /// The occupied and all cells of the report.
    fn cells(&self) -> (u64, u64);
}

/// A window cut into whole units.
#[derive(Debug, Clone, Copy)]
struct Cut {
    window: u64,
    /// The ticks of a unit.
    unit: u64,
    /// The units that a key outlives.
    alive: u64,
}

impl Cut {
    /// Into at most so many units.
    fn new(window: u64, most: u64) -> Self {
        let unit = window.div_ceil(most);
        let alive = window.div_ceil(unit);
        Self {
            window,
            unit,
            alive,
        }
    }
}

/// The unit in which each timer was set.
struct Timers {
    set_in: Vec<Option<u64>>,
    hashes: usize,
    equal: usize,
    alive: u64,
    now: u64,
}

impl Timers {
    fn age(&self, timer: usize) -> Option<u64> {
        let age = self.set_in[timer].map(|unit| self.now - unit);
        age.filter(|age| *age <= self.alive)
    }

    fn timers(&self, key: KeyHash) -> Vec<usize> {
        let len = self.set_in.len();
        (0..self.hashes)
            .map(|hash| position(key, hash, len))
            .collect()
    }
}

impl TimedModel for Timers {
    fn advance(&mut self, unit: u64) {
        self.now = unit;
    }

    fn contains(&self, key: KeyHash) -> bool {
        let mut counts = HashMap::new();
        for timer in self.timers(key) {
            match self.age(timer) {
                Some(age) => *counts.entry(age).or_insert(0) += 1,
                None => return false,
            }
        }
        counts.values().any(|count| *count >= self.equal)
    }

    fn record(&mut self, key: KeyHash) {
        for timer in self.timers(key) {
            self.set_in[timer] = Some(self.now);
        }
    }

    fn cells(&self) -> (u64, u64) {
        let len = self.set_in.len();
        let live = (0..len).filter(|timer| self.age(*timer).is_some());
        (live.count() as u64, len as u64)
    }
}

/// A Bloom filter for every unit that recorded a key.
struct Generations {
    blooms: HashMap<u64, Vec<bool>>,
    len: usize,
    hashes: usize,
    alive: u64,
    now: u64,
}

impl TimedModel for Generations {
    fn advance(&mut self, unit: u64) {
        self.now = unit;
        let alive = self.alive;
        self.blooms.retain(|other, _| unit - other <= alive);
    }

    fn contains(&self, key: KeyHash) -> bool {
        let holds =
            |bloom: &Vec<bool>| (0..self.hashes).all(|hash| bloom[position(key, hash, self.len)]);
        self.blooms.values().any(holds)
    }

    fn record(&mut self, key: KeyHash) {
        let empty = || vec![false; self.len];
        let bloom = self.blooms.entry(self.now).or_insert_with(empty);
        for hash in 0..self.hashes {
            bloom[position(key, hash, self.len)] = true;
        }
    }

    fn cells(&self) -> (u64, u64) {
        let ones = self.blooms.values().flatten().filter(|bit| **bit);
        (ones.count() as u64, self.len as u64 * (self.alive + 1))
    }
}

/// Slices, newest first, each with the number of its hash.
struct Slices {
    slices: VecDeque<(usize, Vec<bool>)>,
    hashes: usize,
    now: u64,
}

impl TimedModel for Slices {
    fn advance(&mut self, unit: u64) {
        // More shifts than slices change nothing but their order, and all are empty.
        for _ in 0..(unit - self.now).min(self.slices.len() as u64) {
            let (hash, mut slice) = self.slices.pop_back().expect("slices");
            slice.fill(false);
            self.slices.push_front((hash, slice));
        }
        self.now = unit;
    }

    fn contains(&self, key: KeyHash) -> bool {
        let set = |(hash, slice): &(usize, Vec<bool>)| slice[position(key, *hash, slice.len())];
        let bits: Vec<bool> = self.slices.iter().map(set).collect();
        bits.windows(self.hashes)
            .any(|run| run.iter().all(|set| *set))
    }

    fn record(&mut self, key: KeyHash) {
        for (hash, slice) in self.slices.iter_mut().take(self.hashes) {
            let bit = position(key, *hash, slice.len());
            slice[bit] = true;
        }
    }

    fn cells(&self) -> (u64, u64) {
        let bits = self.slices.iter().flat_map(|(_, slice)| slice);
        let ones = bits.clone().filter(|bit| **bit).count();
        (ones as u64, bits.count() as u64)
    }
}

/// Both return the same verdicts, hold the same keys and count the same cells, and the filter
/// returns the same verdicts again once cleared.
fn agree(
    text: &str,
    model: &mut dyn TimedModel,
    cut: Cut,
    refresh: bool,
    stream: &[Arrival],
) -> Result<(), TestCaseError> {
    let spec: FilterSpec = echoless_papers::parse(text).expect("a valid text");
    let mut filter = spec.build().expect("a valid specification");
    prop_assert!(
        Some(filter.memory_bytes()) <= spec.memory,
        "{} takes more memory",
        text
    );
    let window = spec.facts().window.expect("timed");
    let granule = (cut.alive + 1) * cut.unit - cut.window;
    prop_assert_eq!((window.ticks, window.granule), (cut.window, granule));
    let verdicts = observe(&mut *filter, stream);
    let mut clock = 0;
    for (index, (arrival, duplicate)) in stream.iter().zip(&verdicts).enumerate() {
        clock = clock.max(arrival.tick);
        model.advance(clock / cut.unit);
        let expected = model.contains(arrival.key);
        prop_assert_eq!(*duplicate, expected, "{} at {}", text, index);
        if refresh || !expected {
            model.record(arrival.key);
        }
    }
    for arrival in stream {
        prop_assert_eq!(
            filter.contains(arrival.key),
            model.contains(arrival.key),
            "{}",
            text
        );
    }
    let cells = filter.report().tally.cells.expect("counted");
    prop_assert_eq!((cells.occupied, cells.total), model.cells(), "{}", text);
    filter.clear();
    prop_assert_eq!(
        observe(&mut *filter, stream),
        verdicts,
        "{} once cleared",
        text
    );
    Ok(())
}

fn streams(cut: Cut, wrap: u64) -> impl Strategy<Value = Vec<Arrival>> {
    arrivals(cut.window, cut.unit * wrap, 1..=300, 1200)
}

fn windows() -> impl Strategy<Value = u64> {
    prop_oneof![3 => 1_u64..40, 1 => 1000_u64..5000, 1 => Just(1_u64 << 40)]
}

/// The cells of so many bits: a word is kept free.
pub(crate) fn cells_in(memory: usize, bits: usize) -> usize {
    (memory / 8 - 1) * 64 / bits
}

proptest! {
    #[test]
    fn timers_agree_with_their_model(
        (bits, window, cut, stream) in (2_u32..14, windows()).prop_flat_map(|(bits, window)| {
            let cut = Cut::new(window, 3 * (1 << bits) / 4 - 1);
            let wrap = (1 << bits) - 1;
            (Just(bits), Just(window), Just(cut), streams(cut, wrap))
        }),
        hashes in hash_counts(),
        equal in 1_usize..65,
        memory in 16_usize..600,
        refresh: bool,
    ) {
        let equal = if equal <= 20 { equal.min(hashes) } else { 1 };
        // Room for k timers.
        let memory = memory + 8 + hashes * 2;
        let mut model = Timers {
            set_in: vec![None; cells_in(memory, bits as usize)],
            hashes,
            equal,
            alive: cut.alive,
            now: 0,
        };
        let text = format!(
            "tbf:window={window},k={hashes},equal={equal},refresh={refresh},bits={bits},\
             memory={memory}"
        );
        agree(&text, &mut model, cut, refresh, &stream)?;
    }

    #[test]
    fn timers_of_ticks_agree_with_their_model(
        (window, stream) in (1_u64..3000).prop_flat_map(|window| {
            let cut = Cut::new(window, window);
            (Just(window), streams(cut, window + 1))
        }),
        memory in 40_usize..600,
        refresh: bool,
    ) {
        // The fewest bits that leave a quarter of the stamps for the slack.
        let bits = (2..).find(|bits| 4 * (window + 1) <= 3 * (1 << bits)).expect("some");
        let mut model = Timers {
            set_in: vec![None; cells_in(memory, bits)],
            hashes: 4,
            equal: 1,
            alive: window,
            now: 0,
        };
        let text = format!("tbf:window={window},refresh={refresh},memory={memory}");
        agree(&text, &mut model, Cut::new(window, window), refresh, &stream)?;
    }

    #[test]
    fn a_jumping_window_agrees_with_its_model(
        (most, window, cut, stream) in (1_u64..31, windows()).prop_flat_map(|(most, window)| {
            let cut = Cut::new(window, most);
            (Just(most), Just(window), Just(cut), streams(cut, cut.alive + 2))
        }),
        hashes in hash_counts(),
        memory in 16_usize..600,
        refresh: bool,
    ) {
        // Room for k cells.
        let memory = memory + 8 + hashes * 4;
        let mut model = Generations {
            blooms: HashMap::new(),
            len: cells_in(memory, cut.alive as usize + 2),
            hashes,
            alive: cut.alive,
            now: 0,
        };
        let text = format!(
            "gbf:window={window},k={hashes},q={most},refresh={refresh},memory={memory}"
        );
        agree(&text, &mut model, cut, refresh, &stream)?;
    }

    #[test]
    fn age_partitioned_slices_agree_with_their_model(
        (most, window, cut, stream) in (1_u64..31, windows()).prop_flat_map(|(most, window)| {
            let cut = Cut::new(window, most);
            (Just(most), Just(window), Just(cut), streams(cut, cut.alive + 3))
        }),
        hashes in 1_usize..20,
        memory in 500_usize..1200,
        refresh: bool,
    ) {
        let count = hashes + cut.alive as usize;
        let bits = (memory / 8 - count) * 64 / count;
        let mut model = Slices {
            slices: (0..count).map(|hash| (hash, vec![false; bits])).collect(),
            hashes,
            now: 0,
        };
        let text = format!(
            "apbf:window={window},k={hashes},l={most},refresh={refresh},memory={memory}"
        );
        agree(&text, &mut model, cut, refresh, &stream)?;
    }
}
