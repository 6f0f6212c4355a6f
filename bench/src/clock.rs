//! CPU time and medians. Benchmarks of one thread measure its CPU time, which a busy neighbour
//! affects less than wall time.

use rustix::time::{ClockId, clock_gettime};

/// CPU seconds of the calling thread.
#[must_use]
pub fn thread_seconds() -> f64 {
    seconds(ClockId::ThreadCPUTime)
}

/// CPU seconds of all threads of this process.
#[must_use]
pub fn process_seconds() -> f64 {
    seconds(ClockId::ProcessCPUTime)
}

fn seconds(clock: ClockId) -> f64 {
    let time = clock_gettime(clock);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// The median of the values; of an even number, the upper of the middle two.
///
/// # Panics
/// If there are no values.
#[must_use]
pub fn median(mut values: Vec<f64>) -> f64 {
    assert!(!values.is_empty(), "a median of no values");
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
