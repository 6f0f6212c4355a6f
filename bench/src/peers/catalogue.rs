//! Every structure that is measured, sized for the same memory and the same keys.
//!
//! To add a peer, change this file only: write a function that returns its candidates, list it in
//! [`PEERS`], and add its name to the test below. (Its crate goes into `Cargo.toml`.) A candidate
//! wraps three calls of the crate in [`Calls`] and declares the highest error rates that its own
//! mathematics allows; the benchmark fails if it exceeds them. [`filling_up`] has the properties
//! that most peers share, and `rates` the formulas of Bloom filters.

use std::collections::HashSet;
use std::hash::{BuildHasher, Hasher, RandomState};

use cuckoofilter::CuckooFilter;
use dashmap::DashSet;
use echoless::KeyHash;
use fastbloom::{AtomicBloomFilter, BloomFilter};
use growable_bloom_filter::GrowableBloom;
use qht::{QQuotientHashTableD, QuotientHashTable};

use super::candidate::{Ages, Budget, Calls, Candidate, Peer, filling_up};
use super::ours::ours;
use super::rates;

/// The candidates of one structure, in the given memory. None if it does not fit.
type Candidates = fn(Budget) -> Vec<Candidate>;

/// Every structure, in the order of the table.
const PEERS: &[Candidates] = &[
    ours,
    fastbloom,
    fastbloom_atomic,
    split_block,
    cuckoo,
    quotient,
    growable,
    quotient_tables,
    std_set,
    ahash_set,
    foldhash_set,
    dash_set,
];

/// The candidates of all structures, ours first.
#[must_use]
pub fn catalogue(budget: Budget) -> Vec<Candidate> {
    PEERS
        .iter()
        .flat_map(|candidates| candidates(budget))
        .collect()
}

/// The plain filter with its best number of hashes first; then, for each candidate of ours, with
/// the most hashes at which it is not more accurate than ours.
fn fastbloom(budget: Budget) -> Vec<Candidate> {
    let (bits, keys) = (budget.bits(), budget.keys as f64);
    let rates = ours(budget).into_iter().map(|ours| ours.max_fpr);
    let mut hashes: Vec<u32> = rates
        .map(|rate| rates::bloom_hashes_for(rate, bits, keys))
        .chain([rates::bloom_best_hashes(bits, keys)])
        .collect();
    hashes.sort_unstable();
    hashes.dedup();
    let with_hashes = |hashes| {
        bloom(format!("{hashes} hashes"), budget, hashes, move || Calls {
            state: BloomFilter::with_num_bits(budget.bits() as usize).hashes(hashes),
            insert: |filter: &mut BloomFilter, hash| filter.insert_hash(hash),
            holds: |filter: &BloomFilter, hash| filter.contains_hash(hash),
            memory: |filter: &BloomFilter| Some(filter.num_bits() as u64 / 8),
        })
    };
    hashes.into_iter().rev().map(with_hashes).collect()
}

fn fastbloom_atomic(budget: Budget) -> Vec<Candidate> {
    let hashes = rates::bloom_best_hashes(budget.bits(), budget.keys as f64);
    let variant = format!("atomic, {hashes} hashes");
    vec![bloom(variant, budget, hashes, move || Calls {
        state: AtomicBloomFilter::with_num_bits(budget.bits() as usize).hashes(hashes),
        insert: |filter: &mut AtomicBloomFilter, hash| filter.insert_hash(hash),
        holds: |filter: &AtomicBloomFilter, hash| filter.contains_hash(hash),
        memory: |filter: &AtomicBloomFilter| Some(filter.num_bits() as u64 / 8),
    })]
}

fn bloom<P: Peer + 'static>(
    variant: String,
    budget: Budget,
    hashes: u32,
    build: impl Fn() -> P + 'static,
) -> Candidate {
    Candidate {
        name: "fastbloom",
        variant,
        max_fpr: rates::bloom(budget.bits(), budget.keys as f64, hashes),
        ..filling_up(move || Ok(build()))
    }
}

fn split_block(budget: Budget) -> Vec<Candidate> {
    // A key sets one bit in each of the eight words of 32 bits of its block.
    let keys_per_block = budget.keys as f64 * 32.0 / budget.bytes as f64;
    let word_is_set = |count: f64| 1.0 - (31.0 / 32.0f64).powf(count);
    vec![Candidate {
        name: "sbbf-rs",
        variant: "8 hashes in 256 bits".into(),
        max_fpr: rates::over_blocks(keys_per_block, |count| word_is_set(count).powi(8)),
        ..filling_up(move || {
            Ok(Calls {
                state: sbbf_rs_safe::Filter::new(8, budget.bytes as usize),
                insert: |filter: &mut sbbf_rs_safe::Filter, hash| filter.insert_hash(hash),
                holds: |filter: &sbbf_rs_safe::Filter, hash| filter.contains_hash(hash),
                memory: |filter: &sbbf_rs_safe::Filter| Some(filter.as_bytes().len() as u64),
            })
        })
    }]
}

/// None if the largest power of two that fits in the memory is too small for the keys.
fn cuckoo(budget: Budget) -> Vec<Candidate> {
    let slots = 1u64 << budget.bytes.max(1).ilog2();
    // Insertion fails above a fill of 95 %.
    if budget.keys > slots / 20 * 19 {
        return Vec::new();
    }
    vec![Candidate {
        name: "cuckoofilter",
        variant: "4 x 8".into(),
        // Two buckets of four slots, 255 values.
        max_fpr: 8.0 / 255.0,
        ..filling_up(move || {
            Ok(Calls {
                state: CuckooFilter::<GivenHash>::with_capacity(slots as usize),
                // A key that finds no slot is lost, and counts as missed when it recurs.
                insert: |filter: &mut CuckooFilter<GivenHash>, hash| {
                    matches!(filter.test_and_add(&hash), Ok(false))
                },
                holds: |filter: &CuckooFilter<GivenHash>, hash| filter.contains(&hash),
                memory: |filter: &CuckooFilter<GivenHash>| Some(filter.memory_usage() as u64),
            })
        })
    }]
}

/// The most accurate filter that fits; its number of slots is a power of two. None if none fits.
fn quotient(budget: Budget) -> Vec<Candidate> {
    let keys = budget.keys;
    let specs = (1..=32)
        .rev()
        .filter_map(|bits| qfilter::filter_specs(keys, 0.5f64.powi(bits)).ok())
        .find(|specs| specs.memory_bytes_max as u64 <= budget.bytes);
    let with_rate = |rate: f64| Candidate {
        name: "qfilter",
        variant: format!("rate 2^{}", rate.log2()),
        max_fpr: rate,
        ..filling_up(move || {
            Ok(Calls {
                state: qfilter::Filter::new(keys, rate)?,
                insert: |filter: &mut qfilter::Filter, hash| {
                    matches!(filter.insert_fingerprint(false, hash), Ok(false))
                },
                holds: |filter: &qfilter::Filter, hash| filter.contains_fingerprint(hash),
                memory: |filter: &qfilter::Filter| Some(filter.memory_usage() as u64),
            })
        })
    };
    let rate = specs.map(|specs| specs.max_error_ratio);
    rate.map(with_rate).into_iter().collect()
}

fn growable(budget: Budget) -> Vec<Candidate> {
    const FPR: f64 = 1e-3;
    vec![Candidate {
        name: "growable-bloom-filter",
        variant: format!("rate {FPR}"),
        hashing: "xxh3",
        ages: Ages::Grows,
        max_fpr: FPR,
        ..filling_up(move || {
            Ok(Calls {
                state: GrowableBloom::new(FPR, budget.keys as usize),
                insert: |filter: &mut GrowableBloom, hash| !filter.insert(hash),
                holds: |filter: &GrowableBloom, hash| filter.contains(hash),
                memory: |_: &GrowableBloom| None,
            })
        })
    }]
}

/// Slots of a cell of the `qht` crate, and the bits of each: the widest it has.
const QHT_SLOTS: usize = 4;
const QHT_BITS: usize = 8;

fn quotient_tables(budget: Budget) -> Vec<Candidate> {
    let bits = budget.bytes as usize * 8;
    vec![
        quotient_table("qhtc", budget, move || {
            QuotientHashTable::new(bits, QHT_SLOTS, QHT_BITS)
        }),
        quotient_table("qqhtdc", budget, move || {
            QQuotientHashTableD::new(bits, QHT_SLOTS, QHT_BITS)
        }),
    ]
}

fn quotient_table<T: qht::Filter + 'static>(
    variant: &str,
    budget: Budget,
    build: impl Fn() -> T + 'static,
) -> Candidate {
    Candidate {
        name: "qht",
        variant: format!("{variant} {QHT_SLOTS} x {QHT_BITS}"),
        hashing: "siphash 1-3, twice",
        ages: Ages::Forgets,
        max_fpr: QHT_SLOTS as f64 / 255.0,
        max_fnr: 0.05,
        ..filling_up(move || {
            Ok(Calls {
                state: build(),
                insert: |table: &mut T, hash| table.insert(hash),
                holds: |table: &T, hash| table.lookup(hash),
                memory: move |_: &T| Some(budget.bytes),
            })
        })
    }
}

fn std_set(budget: Budget) -> Vec<Candidate> {
    vec![set("std", "siphash 1-3", budget, RandomState::new)]
}

fn ahash_set(budget: Budget) -> Vec<Candidate> {
    let hasher = || ahash::RandomState::with_seeds(1, 2, 3, 4);
    vec![set("ahash", "ahash", budget, hasher)]
}

fn foldhash_set(budget: Budget) -> Vec<Candidate> {
    let hasher = foldhash::fast::RandomState::default;
    vec![set("foldhash", "foldhash", budget, hasher)]
}

fn set<S: BuildHasher + 'static>(
    name: &'static str,
    hashing: &'static str,
    budget: Budget,
    hasher: impl Fn() -> S + 'static,
) -> Candidate {
    Candidate {
        name,
        variant: "HashSet<u64>".into(),
        hashing,
        ages: Ages::Grows,
        ..filling_up(move || {
            Ok(Calls {
                state: HashSet::with_capacity_and_hasher(budget.keys as usize, hasher()),
                insert: |set: &mut HashSet<u64, S>, hash| !set.insert(hash),
                holds: |set: &HashSet<u64, S>, hash| set.contains(&hash),
                memory: |set: &HashSet<u64, S>| Some(table_bytes(set.capacity())),
            })
        })
    }
}

fn dash_set(budget: Budget) -> Vec<Candidate> {
    vec![Candidate {
        name: "dashmap",
        variant: "DashSet<u64>".into(),
        hashing: "siphash 1-3",
        ages: Ages::Grows,
        ..filling_up(move || {
            Ok(Calls {
                state: DashSet::with_capacity(budget.keys as usize),
                insert: |set: &mut DashSet<u64>, hash| !set.insert(hash),
                holds: |set: &DashSet<u64>, hash| set.contains(&hash),
                memory: |set: &DashSet<u64>| Some(table_bytes(set.capacity())),
            })
        })
    }]
}

/// The bytes of a Swiss table of this capacity: 7 of 8 buckets are used, each a word and a control
/// byte.
fn table_bytes(capacity: usize) -> u64 {
    capacity as u64 * 8 / 7 * 9
}

/// Passes a `u64` through unchanged, and mixes the few bytes that a cuckoo filter hashes besides.
#[derive(Default)]
struct GivenHash(u64);

impl Hasher for GivenHash {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = KeyHash::from_uniform(self.0 ^ u64::from(*byte)).remix(1);
        }
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_peer_has_a_candidate() {
        let budget = Budget {
            bytes: 1 << 18,
            keys: 139_810,
        };
        for candidates in PEERS {
            assert!(!candidates(budget).is_empty());
        }
        let mut names: Vec<&str> = catalogue(budget)
            .iter()
            .map(|candidate| candidate.name)
            .collect();
        names.dedup();
        let expected = "echoless fastbloom sbbf-rs cuckoofilter qfilter growable-bloom-filter qht \
                        std ahash foldhash dashmap";
        assert_eq!(names, expected.split_whitespace().collect::<Vec<_>>());
    }
}
