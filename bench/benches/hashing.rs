//! Time of hashing: batches of fixed-width keys on every kernel, against wyhash one key at a time;
//! flow keys of five fields; and keys of any length, against other fast hashes.

mod common;

use std::collections::HashSet;
use std::hint::black_box;

use criterion::measurement::WallTime;
use criterion::{
    BenchmarkGroup, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main,
};
use echoless::{Kernel, KeyHash, KeyHasher};
use rapidhash::v3::{RapidSecrets, rapidhash_v3_seeded};
use wyhash::final3::{make_secret, wyhash};
use xxhash_rust::xxh3::xxh3_64_with_seed;

const KEYS: usize = 1024;

fn fixed(criterion: &mut Criterion) {
    let keys: Vec<u128> = (0..KEYS as u128)
        .map(|key| key.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835))
        .collect();
    let bytes: Vec<[u8; 16]> = keys.iter().map(|key| key.to_le_bytes()).collect();
    let words: Vec<u64> = keys.iter().map(|key| *key as u64).collect();
    let mut hashes = vec![KeyHash::from_uniform(0); KEYS];
    let seeded = KeyHasher::seeded(1);
    let keyed = KeyHasher::keyed([1; 16]);

    let mut group = common::group(criterion, "hashing/16 bytes");
    group.throughput(Throughput::Elements(KEYS as u64));
    for kernel in Kernel::ALL
        .iter()
        .copied()
        .filter(|kernel| kernel.is_available())
    {
        let hasher = seeded.clone().with_kernel(kernel).expect("it is available");
        hasher.hash_u128s(&keys, &mut hashes);
        assert_eq!(hashes[KEYS - 1], seeded.hash_u128(keys[KEYS - 1]));
        group.bench_function(BenchmarkId::new("batch", kernel), |bencher| {
            bencher.iter(|| hasher.hash_u128s(black_box(&keys), &mut hashes));
        });
    }
    let secret = make_secret(0);
    group.bench_function("wyhash, one at a time", |bencher| {
        bencher.iter(|| {
            for (key, hash) in black_box(&bytes).iter().zip(&mut hashes) {
                *hash = KeyHash::from_uniform(wyhash(key, 1, secret));
            }
        });
    });
    for (name, hasher) in [("seeded", &seeded), ("keyed", &keyed)] {
        group.bench_function(BenchmarkId::new("bytes, one at a time", name), |bencher| {
            bencher.iter(|| {
                for (key, hash) in black_box(&bytes).iter().zip(&mut hashes) {
                    *hash = hasher.hash(key);
                }
            });
        });
    }
    group.bench_function("batch of 8 bytes", |bencher| {
        bencher.iter(|| seeded.hash_u64s(black_box(&words), &mut hashes));
    });
    group.finish();
}

/// The five fields of a flow, 13 bytes: as one byte string, as fields, and packed into an integer.
fn flows(criterion: &mut Criterion) {
    let packed: Vec<u128> = (0..KEYS as u128)
        .map(|flow| flow.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835) >> 24)
        .collect();
    let bytes: Vec<[u8; 13]> = packed
        .iter()
        .map(|flow| *flow.to_le_bytes().first_chunk().expect("13 of 16 bytes"))
        .collect();
    let hasher = KeyHasher::seeded(1);
    let mut hashes = vec![KeyHash::from_uniform(0); KEYS];
    let mut group = common::group(criterion, "hashing/flows of 13 bytes");
    group.throughput(Throughput::Elements(KEYS as u64));
    group.bench_function("batch of 128-bit integers", |bencher| {
        bencher.iter(|| hasher.hash_u128s(black_box(&packed), &mut hashes));
    });
    group.bench_function("batch of bytes", |bencher| {
        bencher.iter(|| hasher.hash_all(black_box(&bytes), &mut hashes));
    });
    group.bench_function("fields, one flow at a time", |bencher| {
        bencher.iter(|| {
            for (flow, hash) in black_box(&bytes).iter().zip(&mut hashes) {
                // Addresses, ports, protocol.
                let fields = [
                    &flow[..4],
                    &flow[4..8],
                    &flow[8..10],
                    &flow[10..12],
                    &flow[12..],
                ];
                *hash = hasher.hash_parts(fields);
            }
        });
    });
    group.finish();
}

/// Measures a hash function on the keys of `bytes` that begin at each of the first 64 offsets of
/// `text`. Some are unaligned, as fields are.
fn measure(
    group: &mut BenchmarkGroup<'_, WallTime>,
    name: &str,
    text: &[u8],
    bytes: usize,
    hash: impl Fn(&[u8]) -> u64,
) {
    let hashes = || (0..64).map(|offset| hash(black_box(&text[offset..offset + bytes])));
    assert_eq!(hashes().collect::<HashSet<u64>>().len(), 64);
    group.bench_function(name, |bencher| {
        bencher.iter(|| hashes().fold(0, |sum, hash| sum ^ hash));
    });
}

fn any_length(criterion: &mut Criterion) {
    let seeded = KeyHasher::seeded(1);
    let secret = make_secret(0);
    let secrets = RapidSecrets::seed(1);
    for bytes in [8, 16, 32, 64, 256, 1024, 4096] {
        let text: Vec<u8> = (0..bytes + 64)
            .map(|offset| (offset * 31 % 251) as u8)
            .collect();
        let mut group = common::group(criterion, &format!("hashing/{bytes} bytes, any length"));
        group.throughput(Throughput::Bytes(64 * bytes as u64));
        measure(&mut group, "echoless", &text, bytes, |key| {
            seeded.hash(key).get()
        });
        measure(&mut group, "wyhash", &text, bytes, |key| {
            wyhash(key, 1, secret)
        });
        measure(&mut group, "rapidhash", &text, bytes, |key| {
            rapidhash_v3_seeded(key, &secrets)
        });
        measure(&mut group, "xxh3", &text, bytes, |key| {
            xxh3_64_with_seed(key, 1)
        });
        group.finish();
    }
}

criterion_group!(benches, fixed, flows, any_length);
criterion_main!(benches);
