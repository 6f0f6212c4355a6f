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
    assert_eq!(producer.push_batch([0]), Err(PushError::Full));
}

/// Pushes one item in place, as a port does with a message.
fn push(producer: &mut Producer<u64>) {
    let mut slot = producer.vacant().expect("room");
    *slot = black_box(7);
    slot.publish();
    producer.notify();
}

/// Pops one item in place, as a partition server does.
fn pop(consumer: &mut Consumer<u64>) -> u64 {
    let item = *consumer.peek(0).expect("an item");
    consumer.release(1);
    item
}

fn one_item(criterion: &mut Criterion) {
    let mut group = common::group(criterion, "ring/one item");
    group.throughput(Throughput::Elements(1));
    let (mut producer, mut consumer) = new_ring();
    group.bench_function("through an empty ring", |bencher| {
        bencher.iter(|| {
            push(&mut producer);
            pop(&mut consumer)
        });
    });
    group.bench_function("rejected: empty", |bencher| {
        bencher.iter(|| assert_eq!(consumer.peek(0).err(), Some(PopError::Empty)));
    });
    fill(&mut producer);
    group.bench_function("through a full ring", |bencher| {
        bencher.iter(|| {
            let item = pop(&mut consumer);
            push(&mut producer);
            item
        });
    });
    group.bench_function("rejected: full", |bencher| {
        bencher.iter(|| assert!(producer.vacant().is_err()));
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
