//! Filters with a window in ticks, as published: a key expires on its own a window after it was
//! recorded. The line forms with a window are [`TimedSpec`](crate::spec::TimedSpec).
//!
//! | filter | a key is recorded in | it expires as | granule of the window W |
//! |---|---|---|---|
//! | `tbf` | k cells of wrapped time stamps | the stamps grow old | a tick, or more |
//! | `gbf` | k bits of the newest of Q+1 Bloom filters | its Bloom filter is emptied | W/Q |
//! | `apbf` | a bit in each of the newest k of k+l slices | the slices move on | W/l |
//!
//! In all of them a key that was recorded at most W ago is never missed, except under the
//! equal-timers heuristic of `tbf`. Fresh keys are recorded and duplicates are not (paper 001 calls
//! it first-test-then-set). A key that was never seen before and is reported as a duplicate is
//! therefore not recorded either, and its next arrival can be reported as fresh. With `refresh`
//! every arrival is recorded, so a key that was **seen** at most W ago is never missed.

mod age_partitioned;
mod jumping;
mod timer_spec;
mod timers;

pub use age_partitioned::{AgePartitionedBloom, AgePartitionedSpec};
pub use jumping::{JumpingBloom, JumpingSpec};
pub use timer_spec::TimerSpec;
pub use timers::TimerBloom;

use crate::filters::Workload;

/// Whether a planner tries filters that clear expired cells as time passes: in the time of a
/// window they sweep their whole memory. With more than 512 bits for each record of the window, the
/// sweeps would take nearly all time, and filters of one line have room for every key.
fn is_worth_sweeping(workload: &Workload) -> bool {
    workload.memory_bytes / 64 <= workload.span
}
