//! The cost of sweeping, as far as planners must know it.

use crate::filters::Workload;

/// Whether a planner tries filters that clear expired cells as time passes: in the time of a
/// window they sweep their whole memory. With more than 512 bits for each record of the window, the
/// sweeps would take nearly all time, and filters of one line have room for every key.
pub(super) fn is_worth_sweeping(workload: &Workload) -> bool {
    workload.memory_bytes / 64 <= workload.span
}
