//! Time of the ring operations when one thread holds both ends: without the latency between two
//! cores.

mod common;

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use echoless::transport::ring::{self, Consumer, Producer};
use echoless::transport::{PopError, PushError};

const CAPACITY: usize = 1024;

fn new_ring() -> (Producer<u64>, Consumer<u64>) {
    ring::bounded(CAPACITY).expect("a power of two")
}

/// Pushes until the ring is full.
fn fill(producer: &mut Producer<u64>) {
    let count = producer.push_batch(0..CAPACITY as u64);
    assert_eq!(count, Ok(CAPACITY));
    assert_eq!(producer.try_push(0), Err(PushError::Full(0)));
}

fn one_item(criterion: &mut Criterion) {
    let mut group = common::group(criterion, "ring/one item");
    group.throughput(Throughput::Elements(1));
    let (mut producer, mut consumer) = new_ring();
    group.bench_function("through an empty ring", |bencher| {
        bencher.iter(|| {
            producer.try_push(black_box(7)).expect("room");
            consumer.try_pop()
        });
    });
    group.bench_function("rejected: empty", |bencher| {
        bencher.iter(|| assert_eq!(consumer.try_pop(), Err(PopError::Empty)));
    });
    fill(&mut producer);
    group.bench_function("through a full ring", |bencher| {
        bencher.iter(|| {
            let item = consumer.try_pop();
            producer.try_push(black_box(7)).expect("room");
            item
        });
    });
    group.bench_function("rejected: full", |bencher| {
        bencher.iter(|| assert!(producer.try_push(black_box(7)).is_err()));
    });
    group.finish();
}

fn batches(criterion: &mut Criterion) {
    for size in [1, 8, 64, 512] {
        let mut group = common::group(criterion, "ring/batches");
        group.throughput(Throughput::Elements(size));
        let (mut producer, mut consumer) = new_ring();
        let expected = size * (size - 1) / 2;
        group.bench_function(BenchmarkId::from_parameter(size), |bencher| {
            bencher.iter(|| {
                assert_eq!(producer.push_batch(0..black_box(size)), Ok(size as usize));
                assert_eq!(consumer.drain().sum::<u64>(), expected);
            });
        });
        group.finish();
    }
}

criterion_group!(benches, one_item, batches);
criterion_main!(benches);
