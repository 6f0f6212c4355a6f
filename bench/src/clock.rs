//! Time as the benchmarks measure it: CPU time where one thread works, so that a busy neighbour weighs less.

use rustix::time::{ClockId, clock_gettime};

/// The CPU time that the calling thread has used, in seconds.
#[must_use]
pub fn thread_seconds() -> f64 {
    seconds(ClockId::ThreadCPUTime)
}

/// The CPU time that all threads of this process have used, in seconds.
#[must_use]
pub fn process_seconds() -> f64 {
    seconds(ClockId::ProcessCPUTime)
}

fn seconds(clock: ClockId) -> f64 {
    let time = clock_gettime(clock);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// The middle of the values; of an even number the upper one.
///
/// # Panics
/// If there are none.
#[must_use]
pub fn median(mut values: Vec<f64>) -> f64 {
    assert!(!values.is_empty(), "a median of nothing");
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
