//! What a filter in order would do on more cores than this machine has: a simulation of the
//! command's chunks, with costs that are measured here.
//!
//! ```text
//!   fill in turns | read in parallel | judge in turns at each partition | deliver in turns
//! ```
//!
//! A thread takes a chunk through all stages, as the command's threads do. Stages in turns are
//! passed in the order of the chunks, and each costs a handoff from core to core. All times are
//! constant and the memory's bandwidth is not bounded, so this is an upper bound; a stage in turns
//! bounds it for any number of cores.

use std::sync::atomic::{AtomicU64, Ordering};

use super::threads::on_threads;
use crate::failure::Failure;
use crate::table::{Cell, Table};

/// The numbers of cores to simulate.
const CORES: [usize; 6] = [1, 2, 8, 16, 64, 128];

/// The lengths of a chunk, in records. A record of 100 bytes makes a MiB of the second.
const CHUNK_RECORDS: [u64; 3] = [1 << 11, 10_486, 1 << 16];

/// The chunks of a simulated run.
const CHUNKS: usize = 1 << 12;

/// The records for each core and partition, as the command divides its filter.
const THREADS_PER_PARTITION: usize = 4;

/// The seconds of the stages.
#[derive(Debug, Clone, Copy)]
struct Costs {
    /// For each record: its part of what is read of a chunk in its turn, then copying the record into
    /// the chunk, and finding and hashing its key.
    fill: f64,
    read: f64,
    judge: f64,
    deliver: f64,
    /// For each turn: until another core sees that it has it.
    handoff: f64,
}

/// What a thread of the command spends on a line of 100 bytes without `judge` and `handoff`, in
/// nanoseconds: `echoless dedup -m 64MiB -o /dev/null` with 20 million of them, timed in the turns of
/// two threads, and the rest of the CPU time of one thread (Xeon with AVX-512, other programs running,
/// 2026-11-27). The audit is most of `DELIVER_NS`.
const FILL_NS: f64 = 1.0;
const READ_NS: f64 = 31.0;
const DELIVER_NS: f64 = 4.5;

/// Simulates each number of cores and length of a chunk; a key takes `judge` seconds in the filter.
pub(super) fn simulate(judge: f64, mebibytes: u64, table: &mut Table) -> Result<(), Failure> {
    let costs = Costs {
        fill: FILL_NS * 1e-9,
        read: READ_NS * 1e-9,
        judge,
        deliver: DELIVER_NS * 1e-9,
        handoff: handoff_seconds()?,
    };
    for records in CHUNK_RECORDS {
        let alone = seconds_of_record(costs, 1, records);
        for cores in CORES {
            let seconds = seconds_of_record(costs, cores, records);
            let variant = format!("chunks of {records} lines");
            table.push(vec![
                "command in order".into(),
                variant.into(),
                "".into(),
                (cores as u64).into(),
                mebibytes.into(),
                (1.0 / seconds).into(),
                Cell::Nothing,
                (alone / seconds).into(),
                Cell::Nothing,
                "simulated".into(),
            ]);
        }
    }
    Ok(())
}

/// The seconds between the end of a turn and its beginning on another core.
fn handoff_seconds() -> Result<f64, Failure> {
    const TURNS: u64 = 1 << 16;
    let turn = AtomicU64::new(0);
    let timing = on_threads(vec![0, 1], |_, parity| {
        for number in (0..TURNS).filter(|number| number % 2 == parity) {
            while turn.load(Ordering::Acquire) != number {
                std::hint::spin_loop();
            }
            turn.store(number + 1, Ordering::Release);
        }
    })?;
    Ok(timing.wall / TURNS as f64)
}

/// The seconds of a record in the steady state.
fn seconds_of_record(costs: Costs, cores: usize, records: u64) -> f64 {
    let partitions = cores.div_ceil(THREADS_PER_PARTITION);
    let of_chunk = |seconds: f64| seconds * records as f64;
    let handoff = if cores > 1 { costs.handoff } else { 0.0 };
    // When each thread is free, and when each stage in turns was left.
    let mut free = vec![0.0_f64; cores];
    let mut filled = 0.0_f64;
    let mut judged = vec![0.0_f64; partitions];
    let mut delivered = 0.0_f64;
    let mut middle = 0.0;
    for chunk in 0..CHUNKS {
        if chunk == CHUNKS / 2 {
            middle = delivered;
        }
        // The thread that has been free for longest; it has waited longest for the turn.
        let thread = (0..cores)
            .min_by(|one, other| free[*one].total_cmp(&free[*other]))
            .unwrap_or(0);
        filled = free[thread].max(filled + handoff) + of_chunk(costs.fill);
        let mut now = filled + of_chunk(costs.read);
        for left in &mut judged {
            now = now.max(*left + handoff) + of_chunk(costs.judge) / partitions as f64;
            *left = now;
        }
        delivered = now.max(delivered + handoff) + of_chunk(costs.deliver);
        free[thread] = delivered;
    }
    (delivered - middle) / of_chunk((CHUNKS - CHUNKS / 2) as f64)
}

#[cfg(test)]
mod tests {
    use super::{Costs, seconds_of_record};

    const COSTS: Costs = Costs {
        fill: 1.0,
        read: 7.0,
        judge: 1.5,
        deliver: 0.5,
        handoff: 0.0,
    };

    fn is_about(seconds: f64, expected: f64) -> bool {
        (seconds / expected - 1.0).abs() < 0.01
    }

    #[test]
    fn cores_share_the_work_until_a_stage_in_turns_is_busy() {
        assert!(is_about(seconds_of_record(COSTS, 1, 100), 10.0));
        assert!(is_about(seconds_of_record(COSTS, 2, 100), 5.0));
        // Two partitions judge in half the time each, so the turn to fill is what all wait for.
        assert!(is_about(seconds_of_record(COSTS, 128, 100), 1.0));
        let costs = Costs { fill: 0.1, ..COSTS };
        // One partition serves four cores, and judges a record at a time.
        let costs = Costs {
            judge: 5.0,
            ..costs
        };
        assert!(is_about(seconds_of_record(costs, 4, 100), 5.0));
    }

    #[test]
    fn short_chunks_pay_for_their_handoffs() {
        let costs = Costs {
            handoff: 10.0,
            ..COSTS
        };
        // A handoff for each turn to fill.
        assert!(is_about(seconds_of_record(costs, 128, 10), 2.0));
        assert!(is_about(seconds_of_record(costs, 128, 10_000), 1.001));
    }
}
