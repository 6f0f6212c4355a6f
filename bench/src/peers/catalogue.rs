//! Every peer, sized for the same memory and the same keys.

use std::collections::HashSet;
use std::hash::{BuildHasher, Hasher, RandomState};

use cuckoofilter::CuckooFilter;
use dashmap::DashSet;
use echoless::{
    FingerprintSpec, Kernel, KeyHash, Replacement, SharedLayout, SharedSpec, SlotWidth, Verdicts,
};
use fastbloom::{AtomicBloomFilter, BloomFilter};
use growable_bloom_filter::GrowableBloom;
use qht::{QQuotientHashTableD, QuotientHashTable};

use super::candidate::{Ages, Calls, Candidate, Peer, Shared};
use super::rates;
use crate::table::Failure;

/// The false positive rate that structures which grow are built for.
const GROWING_FPR: f64 = 1e-3;

/// Slots of a cell of the `qht` crate, and the bits of each: the widest it has.
const QHT_SLOTS: usize = 4;
const QHT_BITS: usize = 8;

/// The peers for `bytes` of memory and `keys` distinct keys, ours first.
#[must_use]
pub fn catalogue(bytes: u64, keys: u64) -> Vec<Candidate> {
    let (bits, count) = (bytes as f64 * 8.0, keys as f64);
    let mut peers = ours(bytes, count);
    let best = rates::bloom_best_hashes(bits, count);
    let mut hashes: Vec<u32> = peers
        .iter()
        .map(|ours| rates::bloom_hashes_for(ours.max_fpr, bits, count))
        .chain([best])
        .collect();
    hashes.sort_unstable();
    hashes.dedup();
    for hashes in hashes.into_iter().rev() {
        peers.push(fastbloom(bytes, count, hashes));
    }
    peers.push(fastbloom_atomic(bytes, count, best));
    peers.push(split_block(bytes, keys));
    peers.extend(cuckoo(bytes, keys));
    peers.extend(quotient(bytes, keys));
    peers.push(growable(keys));
    peers.push(quotient_table(
        "qhtc",
        move || QuotientHashTable::new(bytes as usize * 8, QHT_SLOTS, QHT_BITS),
        bytes,
    ));
    peers.push(quotient_table(
        "qqhtdc",
        move || QQuotientHashTableD::new(bytes as usize * 8, QHT_SLOTS, QHT_BITS),
        bytes,
    ));
    peers.push(set("std", "siphash 1-3", keys, RandomState::new));
    peers.push(set("ahash", "ahash", keys, || {
        ahash::RandomState::with_seeds(1, 2, 3, 4)
    }));
    peers.push(set(
        "foldhash",
        "foldhash",
        keys,
        foldhash::fast::RandomState::default,
    ));
    peers.push(sharded(keys));
    peers
}

fn ours(bytes: u64, keys: f64) -> Vec<Candidate> {
    let lines = [Replacement::Fifo, Replacement::Lru].map(|replacement| {
        let spec = FingerprintSpec::new(bytes)
            .slot_width(SlotWidth::Bits16)
            .replacement(replacement);
        let in_line = |count: f64| count.min(32.0) / 65_536.0;
        Candidate {
            name: "echoless",
            form: format!("fingerprint 32 x 16, {replacement}"),
            kernel: Some(Kernel::best()),
            hashing: "given",
            ages: Ages::Forgets,
            max_fpr: rates::over_blocks(keys * 64.0 / bytes as f64, in_line),
            max_fnr: 1e-4,
            build: Box::new(move || Ok(Box::new(spec.build()?))),
        }
    });
    let words = bytes as f64 / 8.0;
    let row = rates::over_blocks(keys / words, |count| count.min(4.0) / 65_536.0);
    let bloom = rates::blocked_bloom(64.0, words * 64.0, keys, 4);
    let shared = [
        (SharedLayout::Row4x16, "shared row 4 x 16", row, 0.02),
        (
            SharedLayout::Bloom { k: 4 },
            "shared bloom, 4 hashes",
            bloom,
            0.0,
        ),
    ]
    .map(|(form, name, max_fpr, max_fnr)| Candidate {
        name: "echoless",
        form: name.into(),
        kernel: None,
        hashing: "given",
        ages: match form {
            SharedLayout::Bloom { .. } => Ages::FillsUp,
            _ => Ages::Forgets,
        },
        max_fpr,
        max_fnr,
        build: Box::new(move || {
            Ok(Box::new(Shared {
                filter: SharedSpec::new(bytes).layout(form).build()?,
                verdicts: Verdicts::new(),
            }))
        }),
    });
    lines.into_iter().chain(shared).collect()
}

fn fastbloom(bytes: u64, keys: f64, hashes: u32) -> Candidate {
    let bits = bytes * 8;
    Candidate {
        name: "fastbloom",
        form: format!("{hashes} hashes"),
        max_fpr: rates::bloom(bits as f64, keys, hashes),
        ..filling_up(move || {
            Ok(Calls {
                state: BloomFilter::with_num_bits(bits as usize).hashes(hashes),
                insert: |filter: &mut BloomFilter, hash| filter.insert_hash(hash),
                holds: |filter: &BloomFilter, hash| filter.contains_hash(hash),
                memory: |filter: &BloomFilter| Some(filter.num_bits() as u64 / 8),
            })
        })
    }
}

fn fastbloom_atomic(bytes: u64, keys: f64, hashes: u32) -> Candidate {
    let bits = bytes * 8;
    Candidate {
        name: "fastbloom",
        form: format!("atomic, {hashes} hashes"),
        max_fpr: rates::bloom(bits as f64, keys, hashes),
        ..filling_up(move || {
            Ok(Calls {
                state: AtomicBloomFilter::with_num_bits(bits as usize).hashes(hashes),
                insert: |filter: &mut AtomicBloomFilter, hash| filter.insert_hash(hash),
                holds: |filter: &AtomicBloomFilter, hash| filter.contains_hash(hash),
                memory: |filter: &AtomicBloomFilter| Some(filter.num_bits() as u64 / 8),
            })
        })
    }
}

fn split_block(bytes: u64, keys: u64) -> Candidate {
    // A key sets one bit in each of the eight words of 32 bits of its block.
    let keys_per_block = keys as f64 * 32.0 / bytes as f64;
    let word_is_set = |count: f64| 1.0 - (31.0 / 32.0f64).powf(count);
    Candidate {
        name: "sbbf-rs",
        form: "8 hashes in 256 bits".into(),
        max_fpr: rates::over_blocks(keys_per_block, |count| word_is_set(count).powi(8)),
        ..filling_up(move || {
            Ok(Calls {
                state: sbbf_rs_safe::Filter::new(8, bytes as usize),
                insert: |filter: &mut sbbf_rs_safe::Filter, hash| filter.insert_hash(hash),
                holds: |filter: &sbbf_rs_safe::Filter, hash| filter.contains_hash(hash),
                memory: |filter: &sbbf_rs_safe::Filter| Some(filter.as_bytes().len() as u64),
            })
        })
    }
}

/// None if the power of two that fits in the memory is too small for the keys.
fn cuckoo(bytes: u64, keys: u64) -> Option<Candidate> {
    let slots = 1u64 << bytes.checked_ilog2()?;
    (keys <= slots / 20 * 19).then(|| Candidate {
        name: "cuckoofilter",
        form: "4 x 8".into(),
        // Two buckets of four slots, 255 values.
        max_fpr: 8.0 / 255.0,
        ..filling_up(move || {
            Ok(Calls {
                state: CuckooFilter::<GivenHash>::with_capacity(slots as usize),
                // A key that finds no room is lost, and counts as missed when it comes again.
                insert: |filter: &mut CuckooFilter<GivenHash>, hash| {
                    matches!(filter.test_and_add(&hash), Ok(false))
                },
                holds: |filter: &CuckooFilter<GivenHash>, hash| filter.contains(&hash),
                memory: |filter: &CuckooFilter<GivenHash>| Some(filter.memory_usage() as u64),
            })
        })
    })
}

/// The most accurate filter that fits; its slots are a power of two. None if none fits.
fn quotient(bytes: u64, keys: u64) -> Option<Candidate> {
    let specs = (1..=32)
        .rev()
        .filter_map(|bits| qfilter::filter_specs(keys, 0.5f64.powi(bits)).ok())
        .find(|specs| specs.memory_bytes_max as u64 <= bytes)?;
    let rate = specs.max_error_ratio;
    Some(Candidate {
        name: "qfilter",
        form: format!("rate 2^{}", rate.log2()),
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
    })
}

fn growable(keys: u64) -> Candidate {
    Candidate {
        name: "growable-bloom-filter",
        form: format!("rate {GROWING_FPR}"),
        hashing: "xxh3",
        ages: Ages::Grows,
        max_fpr: GROWING_FPR,
        ..filling_up(move || {
            Ok(Calls {
                state: GrowableBloom::new(GROWING_FPR, keys as usize),
                insert: |filter: &mut GrowableBloom, hash| !filter.insert(hash),
                holds: |filter: &GrowableBloom, hash| filter.contains(hash),
                memory: |_: &GrowableBloom| None,
            })
        })
    }
}

fn quotient_table<T: qht::Filter + 'static>(
    form: &'static str,
    build: impl Fn() -> T + 'static,
    bytes: u64,
) -> Candidate {
    Candidate {
        name: "qht",
        form: format!("{form} {QHT_SLOTS} x {QHT_BITS}"),
        hashing: "siphash 1-3, twice",
        ages: Ages::Forgets,
        max_fpr: QHT_SLOTS as f64 / 255.0,
        max_fnr: 0.05,
        ..filling_up(move || {
            Ok(Calls {
                state: build(),
                insert: |table: &mut T, hash| table.insert(hash),
                holds: |table: &T, hash| table.lookup(hash),
                memory: move |_: &T| Some(bytes),
            })
        })
    }
}

fn set<S: BuildHasher + 'static>(
    name: &'static str,
    hashing: &'static str,
    keys: u64,
    hasher: impl Fn() -> S + 'static,
) -> Candidate {
    Candidate {
        name,
        form: "HashSet<u64>".into(),
        hashing,
        ages: Ages::Grows,
        max_fpr: 0.0,
        ..filling_up(move || {
            Ok(Calls {
                state: HashSet::with_capacity_and_hasher(keys as usize, hasher()),
                insert: |set: &mut HashSet<u64, S>, hash| !set.insert(hash),
                holds: |set: &HashSet<u64, S>, hash| set.contains(&hash),
                memory: |set: &HashSet<u64, S>| Some(table_bytes(set.capacity())),
            })
        })
    }
}

fn sharded(keys: u64) -> Candidate {
    Candidate {
        name: "dashmap",
        form: "DashSet<u64>".into(),
        hashing: "siphash 1-3",
        ages: Ages::Grows,
        max_fpr: 0.0,
        ..filling_up(move || {
            Ok(Calls {
                state: DashSet::with_capacity(keys as usize),
                insert: |set: &mut DashSet<u64>, hash| !set.insert(hash),
                holds: |set: &DashSet<u64>, hash| set.contains(&hash),
                memory: |set: &DashSet<u64>| Some(table_bytes(set.capacity())),
            })
        })
    }
}

/// The bytes of a Swiss table of this capacity: 7 of 8 buckets are used, each a word and a control byte.
fn table_bytes(capacity: usize) -> u64 {
    capacity as u64 * 8 / 7 * 9
}

/// What most peers have in common: the hash is used as it is, no repeat is missed, and there is an end.
fn filling_up<P: Peer + 'static>(build: impl Fn() -> Result<P, Failure> + 'static) -> Candidate {
    Candidate {
        name: "",
        form: String::new(),
        kernel: None,
        hashing: "given",
        ages: Ages::FillsUp,
        max_fpr: 0.0,
        max_fnr: 0.0,
        build: Box::new(move || Ok(Box::new(build()?))),
    }
}

/// Hands a `u64` through, and mixes the few bytes that a cuckoo filter hashes besides.
#[derive(Default)]
struct GivenHash(u64);

impl Hasher for GivenHash {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = KeyHash(self.0 ^ u64::from(*byte)).remix(1);
        }
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}
