//! CPU time and medians. Benchmarks of one thread measure its CPU time, which a busy neighbour
//! affects less than wall time.

use std::io;

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

/// CPU seconds of all threads of a running process so far, by its ID.
///
/// # Errors
/// If no such process runs, or on other systems than Linux.
pub fn seconds_of(pid: u32) -> io::Result<f64> {
    #[cfg(target_os = "linux")]
    {
        use std::time::Duration;

        use nix::{time::clock_getcpuclockid, unistd::Pid};

        let pid = i32::try_from(pid).map_err(io::Error::other)?;
        let time = clock_getcpuclockid(Pid::from_raw(pid))?.now()?;
        Ok(Duration::from(time).as_secs_f64())
    }
    #[cfg(not(target_os = "linux"))]
    {
        let reason = format!("the CPU time of process {pid} can be read on Linux only");
        Err(io::Error::new(io::ErrorKind::Unsupported, reason))
    }
}

/// The [`median`] of one part of all measurements.
///
/// # Panics
/// As [`median`].
#[must_use]
pub fn median_of<M>(measurements: &[M], part: impl Fn(&M) -> f64) -> f64 {
    median(measurements.iter().map(part).collect())
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
