//! What the C interface costs beside the same calls of the Rust library:
//! `cargo bench -p echoless-capi`.
//!
//! Each comparison alternates between the two sides and reports the median of the ratios of the
//! pairs, so that other work on the machine meets both.

#![allow(unsafe_code)] // calls of the C interface

use std::ffi::{c_int, c_void};
use std::hint::black_box;
use std::ptr;
use std::time::Instant;

use echoless::{Batch, Filter, FilterSpec, KeyHash, KeyHasher};
use echoless_c::argument::{
    Count, Handle, Hashing, Instance, Kind, OptionalNumber, Text, Verdicts,
};
use echoless_c::exports;
use echoless_c::keys::{Keys, PacketHandle, PacketOptions};
use echoless_c::types::{
    echoless_form, echoless_handle, echoless_keys, echoless_packet, echoless_slice,
};

const PAIRS: usize = 401;
const BATCH: usize = 1024;
/// The pairs before those that count.
const WARM_UP: usize = 20;
/// The batches of a side before the other one has its turn.
const ROUNDS: usize = 32;
/// The batches of keys with bytes; they come again after as many rounds.
const CYCLE: usize = 64;

type Observe = unsafe extern "C" fn(Instance, Keys, Verdicts, OptionalNumber) -> c_int;

/// A filter behind the interface. The function is a pointer that the compiler does not know, as in
/// a C program.
struct Interface {
    filter: *mut echoless_handle,
    observe: Observe,
}

impl Interface {
    fn new(spec: &FilterSpec) -> Self {
        let text = std::ffi::CString::new(spec.to_string()).unwrap();
        let mut filter = ptr::null_mut();
        // SAFETY: the text ends with a NUL; there is memory for the handle.
        let status = unsafe {
            let (spec, hashing) = (Text(text.as_ptr()), Hashing(ptr::null()));
            exports::new(Kind(1), spec, hashing, Count(1), Handle(&raw mut filter))
        };
        assert_eq!(status, 0);
        let observe = black_box(exports::observe as Observe);
        Self { filter, observe }
    }

    #[inline(always)]
    fn observe(&self, keys: echoless_keys, duplicates: &mut [u64]) {
        debug_assert!(duplicates.len() * 64 >= keys.count);
        // SAFETY: all keys below are slices that live longer; the mask is large enough.
        let status = unsafe {
            let (words, count) = (
                Verdicts(duplicates.as_mut_ptr()),
                OptionalNumber(ptr::null_mut()),
            );
            (self.observe)(Instance(self.filter), Keys(keys), words, count)
        };
        assert_eq!(status, 0);
    }
}

fn keys<T>(form: echoless_form, data: &[T], extra: *const c_void) -> echoless_keys {
    echoless_keys {
        form: form as u32,
        width: 0,
        stride: 0,
        count: data.len(),
        data: data.as_ptr().cast(),
        extra,
        ticks: ptr::null(),
    }
}

/// The median of the ratios of the times of `left` and `right`, and the median time of a round of
/// `right`, in nanoseconds. Each gets the number of its round and `BATCH` values, which `make`
/// makes before the time of the pair begins.
fn compare<T: Clone + Default>(
    mut make: impl FnMut(usize, &mut [T]),
    mut left: impl FnMut(usize, &[T]),
    mut right: impl FnMut(usize, &[T]),
) -> (f64, f64) {
    let mut values = vec![T::default(); ROUNDS * BATCH];
    let (mut ratios, mut times) = (Vec::new(), Vec::new());
    for pair in 0..PAIRS + WARM_UP {
        let first = pair * ROUNDS;
        for (round, values) in (first..).zip(values.chunks_mut(BATCH)) {
            make(round, values);
        }
        let time = |run: &mut dyn FnMut(usize, &[T])| {
            let start = Instant::now();
            for (round, values) in (first..).zip(values.chunks(BATCH)) {
                run(round, values);
            }
            start.elapsed().as_secs_f64() * 1e9 / ROUNDS as f64
        };
        let (left, right) = if pair % 2 == 0 {
            let first = time(&mut left);
            (first, time(&mut right))
        } else {
            let first = time(&mut right);
            (time(&mut left), first)
        };
        if pair >= WARM_UP {
            ratios.push(left / right);
            times.push(right);
        }
    }
    let median = |values: &mut Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    (median(&mut ratios), median(&mut times))
}

fn main() {
    // `cargo test --benches` only builds and starts this.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    for memory in ["1MiB", "64MiB"] {
        let spec: FilterSpec = format!("fingerprint:fpr=1e-8,memory={memory}")
            .parse()
            .unwrap();
        compare_hashes(memory, &spec);
        compare_slices(memory, &spec);
        compare_bursts(memory, &spec);
    }
}

/// The hasher of both sides, which the compiler does not know, as in a program with a seed.
fn hasher() -> KeyHasher {
    black_box(KeyHasher::seeded(0))
}

/// Hashes, of which half are new in each round.
fn compare_hashes(memory: &str, spec: &FilterSpec) {
    let (mut filter, interface) = (spec.build_lines().unwrap(), Interface::new(spec));
    let hasher = hasher();
    let mut masks = [[0; BATCH / 64]; 2];
    let [left, right] = &mut masks;
    let (ratio, time) = compare(
        |round, hashes: &mut [KeyHash]| {
            for (index, hash) in hashes.iter_mut().enumerate() {
                let id = if index % 2 == 0 {
                    round * BATCH + index
                } else {
                    index
                };
                *hash = hasher.hash_u64(id as u64);
            }
        },
        |_, hashes| interface.observe(keys(echoless_form::Hashes, hashes, ptr::null()), left),
        |_, hashes| filter.observe_batch(Batch::new(hashes), right),
    );
    println!("{memory}: {BATCH} hashes: {ratio:.3} of the Rust call, {time:.0} ns");
}

/// The batch of a round, of `CYCLE` ones.
fn batch<T>(values: &[T], round: usize) -> &[T] {
    let from = round % CYCLE * BATCH;
    &values[from..from + BATCH]
}

/// Keys of 16 bytes by pointer and length.
fn compare_slices(memory: &str, spec: &FilterSpec) {
    let (mut filter, interface) = (spec.build_lines().unwrap(), Interface::new(spec));
    let hasher = hasher();
    let bytes: Vec<[u8; 16]> = (0..(CYCLE * BATCH) as u128)
        .map(u128::to_le_bytes)
        .collect();
    let slices: Vec<echoless_slice> = bytes
        .iter()
        .map(|key| echoless_slice {
            data: key.as_ptr(),
            length: key.len(),
        })
        .collect();
    let texts: Vec<&[u8]> = bytes.iter().map(<[u8; 16]>::as_slice).collect();
    let mut buffer = vec![KeyHash::default(); BATCH];
    let mut masks = [[0; BATCH / 64]; 2];
    let [left, right] = &mut masks;
    let (ratio, time) = compare(
        |_, _: &mut [()]| (),
        |round, _| {
            let slices = batch(&slices, round);
            interface.observe(keys(echoless_form::Slices, slices, ptr::null()), left);
        },
        |round, _| {
            for (hash, text) in buffer.iter_mut().zip(batch(&texts, round)) {
                *hash = hasher.hash(text);
            }
            filter.observe_batch(Batch::new(&buffer), right);
        },
    );
    println!("{memory}: {BATCH} keys of 16 bytes: {ratio:.3} of the Rust calls, {time:.0} ns");
}

/// Packets of 64 bytes: 32 bursts of 32 beside a batch of 1,024.
fn compare_bursts(memory: &str, spec: &FilterSpec) {
    let mut reader: *mut echoless_handle = ptr::null_mut();
    // SAFETY: NULL stands for the defaults; there is memory for the handle.
    let status =
        unsafe { exports::packet_keys(PacketOptions(ptr::null()), PacketHandle(&raw mut reader)) };
    assert_eq!(status, 0);
    let frames: Vec<[u8; 64]> = (0..(CYCLE * BATCH) as u32)
        .map(|id| {
            let mut frame = [0; 64];
            frame[12] = 8;
            frame[14] = 0x45;
            frame[17] = 50;
            (frame[22], frame[23]) = (64, 17);
            frame[26..30].copy_from_slice(&id.to_be_bytes());
            frame[39] = 30;
            frame
        })
        .collect();
    let packets: Vec<echoless_packet> = frames
        .iter()
        .map(|frame| echoless_packet {
            data: frame.as_ptr(),
            captured: 64,
            length: 64,
        })
        .collect();
    let [bursts, batches] = [Interface::new(spec), Interface::new(spec)];
    let extra = reader.cast::<c_void>().cast_const();
    let mut masks = [[0; BATCH / 64]; 2];
    let [left, right] = &mut masks;
    let (ratio, time) = compare(
        |_, _: &mut [()]| (),
        |round, _| {
            for burst in batch(&packets, round).chunks(32) {
                bursts.observe(keys(echoless_form::Packets, burst, extra), left);
            }
        },
        |round, _| {
            let all = batch(&packets, round);
            batches.observe(keys(echoless_form::Packets, all, extra), right);
        },
    );
    let each = time / BATCH as f64;
    println!(
        "{memory}: bursts of 32 packets of 64 bytes: {ratio:.3} of a batch of {BATCH}, {each:.1} ns a packet"
    );
}
