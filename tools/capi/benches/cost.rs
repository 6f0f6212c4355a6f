//! What the C interface costs beside the same calls of the Rust library:
//! `cargo bench -p echoless-capi`.
//!
//! Each comparison alternates between the two sides and reports the median of the ratios of the
//! pairs, so that other work on the machine meets both.

#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::hint::black_box;
use std::ptr;
use std::time::Instant;

use echoless::{Batch, Filter, FilterSpec, KeyHash, KeyHasher};
use echoless_c::filter::{echoless_filter, echoless_filter_new, echoless_filter_observe};
use echoless_c::keys::{
    echoless_form, echoless_keys, echoless_packet, echoless_packet_keys, echoless_packet_keys_new,
    echoless_slice,
};

const PAIRS: usize = 401;
const BATCH: usize = 1024;
/// The batches of a side before the other one has its turn.
const ROUNDS: u64 = 32;

type Observe =
    unsafe extern "C" fn(*mut echoless_filter, echoless_keys, *mut u64, *mut u64) -> c_int;

/// A filter behind the interface. The function is a pointer that the compiler does not know, as in
/// a C program.
struct Interface {
    filter: *mut echoless_filter,
    observe: Observe,
}

impl Interface {
    fn new(spec: &FilterSpec) -> Self {
        let text = std::ffi::CString::new(spec.to_string()).unwrap();
        let mut filter = ptr::null_mut();
        // SAFETY: the text ends with a NUL; there is memory for the handle.
        let status = unsafe { echoless_filter_new(text.as_ptr(), ptr::null(), &raw mut filter) };
        assert_eq!(status, 0);
        let observe = black_box(echoless_filter_observe as Observe);
        Self { filter, observe }
    }

    #[inline(always)]
    fn observe(&self, keys: echoless_keys, duplicates: &mut [u64]) {
        debug_assert!(duplicates.len() * 64 >= keys.count);
        // SAFETY: all keys below are slices that live longer; the mask is large enough.
        let status =
            unsafe { (self.observe)(self.filter, keys, duplicates.as_mut_ptr(), ptr::null_mut()) };
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
/// `right`, in nanoseconds. Each gets the number of its round.
fn compare(mut left: impl FnMut(u64), mut right: impl FnMut(u64)) -> (f64, f64) {
    let time = |run: &mut dyn FnMut(u64), pair: usize| {
        let start = Instant::now();
        for round in 0..ROUNDS {
            run(pair as u64 * ROUNDS + round);
        }
        start.elapsed().as_secs_f64() * 1e9 / ROUNDS as f64
    };
    let (mut ratios, mut times) = (Vec::new(), Vec::new());
    for pair in 0..PAIRS + 20 {
        let (first, second) = if pair % 2 == 0 {
            let first = time(&mut left, pair);
            (first, time(&mut right, pair))
        } else {
            let second = time(&mut right, pair);
            (time(&mut left, pair), second)
        };
        // The first pairs warm up.
        if pair >= 20 {
            ratios.push(first / second);
            times.push(second);
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
        let hasher = KeyHasher::seeded(0);

        // Hashes. Half of them are new in each round.
        let fill = |hashes: &mut [KeyHash], round: u64| {
            for (hash, index) in hashes.iter_mut().zip(0..) {
                let id = if index % 2 == 0 {
                    round * BATCH as u64 + index
                } else {
                    index
                };
                *hash = hasher.hash_u64(id);
            }
        };
        let (mut ours, interface) = (spec.build_lines().unwrap(), Interface::new(&spec));
        let mut hashes = vec![KeyHash::default(); BATCH];
        let mut others = hashes.clone();
        let mut masks = [[0; BATCH / 64]; 2];
        let [left, right] = &mut masks;
        let (ratio, time) = compare(
            |round| {
                fill(&mut hashes, round);
                interface.observe(keys(echoless_form::Hashes, &hashes, ptr::null()), left);
            },
            |round| {
                fill(&mut others, round);
                ours.observe_batch(Batch::new(&others), right);
            },
        );
        let (_, filling) = compare(
            |_| (),
            |round| fill(black_box(&mut vec![KeyHash::default(); BATCH]), round),
        );
        println!(
            "{memory}: {BATCH} hashes: {ratio:.3} of the Rust call, {time:.0} ns with {filling:.0} ns for making them"
        );

        // Keys of 16 bytes by pointer and length.
        let (mut ours, interface) = (spec.build_lines().unwrap(), Interface::new(&spec));
        let bytes: Vec<[u8; 16]> = (0..BATCH as u128 * 64).map(u128::to_le_bytes).collect();
        let slices: Vec<echoless_slice> = bytes
            .iter()
            .map(|key| echoless_slice {
                data: key.as_ptr(),
                length: key.len(),
            })
            .collect();
        let texts: Vec<&[u8]> = bytes.iter().map(<[u8; 16]>::as_slice).collect();
        let range = |round: u64| {
            let from = (round as usize % 64) * BATCH;
            from..from + BATCH
        };
        let mut buffer = vec![KeyHash::default(); BATCH];
        let (ratio, time) = compare(
            |round| {
                let slices = &slices[range(round)];
                interface.observe(keys(echoless_form::Slices, slices, ptr::null()), left);
            },
            |round| {
                for (hash, text) in buffer.iter_mut().zip(&texts[range(round)]) {
                    *hash = hasher.hash(text);
                }
                ours.observe_batch(Batch::new(&buffer), right);
            },
        );
        println!("{memory}: {BATCH} keys of 16 bytes: {ratio:.3} of the Rust calls, {time:.0} ns");

        // Packets of 64 bytes: 32 bursts of 32 beside a batch of 1,024.
        let mut reader: *mut echoless_packet_keys = ptr::null_mut();
        // SAFETY: NULL stands for the defaults; there is memory for the handle.
        let status = unsafe { echoless_packet_keys_new(ptr::null(), &raw mut reader) };
        assert_eq!(status, 0);
        let frames: Vec<[u8; 64]> = (0..BATCH as u32 * 64)
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
        let [bursts, batches] = [Interface::new(&spec), Interface::new(&spec)];
        let extra = reader.cast::<c_void>().cast_const();
        let (ratio, time) = compare(
            |round| {
                for burst in packets[range(round)].chunks(32) {
                    bursts.observe(keys(echoless_form::Packets, burst, extra), left);
                }
            },
            |round| {
                let all = &packets[range(round)];
                batches.observe(keys(echoless_form::Packets, all, extra), right);
            },
        );
        let each = time / BATCH as f64;
        println!(
            "{memory}: bursts of 32 packets of 64 bytes: {ratio:.3} of a batch of {BATCH}, {each:.1} ns a packet"
        );
    }
}
