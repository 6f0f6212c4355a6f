//! The time that a filter takes per key, measured on this machine.

use std::time::Instant;

use echoless::{BuildError, FilterSpec, KeyHash, KeyHasher, Verdicts};

/// Measures the filter in its full memory on distinct keys, on one thread: nanoseconds per key.
/// Other load on the machine slows it down.
///
/// # Errors
/// [`BuildError`] if the filter cannot be built.
pub fn nanoseconds_per_key(spec: &FilterSpec) -> Result<f64, BuildError> {
    const KEYS: u64 = 1 << 18;
    let mut filter = spec.build()?;
    let hasher = KeyHasher::seeded(spec.seed);
    let mut verdicts = Verdicts::new();
    let mut numbers = [0; 1024];
    let mut keys = [KeyHash::from_uniform(0); 1024];
    let mut seconds = 0.0;
    // The first half is not timed: its writes make the system provide the pages.
    for first in (0..2 * KEYS).step_by(numbers.len()) {
        for (number, value) in numbers.iter_mut().zip(first..) {
            *number = value;
        }
        hasher.hash_u64s(&numbers, &mut keys);
        let begin = Instant::now();
        // The number of the record is the time of a filter with a window.
        filter.advance_to(first);
        filter.observe(&keys, &mut verdicts);
        if first >= KEYS {
            seconds += begin.elapsed().as_secs_f64();
        }
    }
    Ok(seconds * 1e9 / KEYS as f64)
}
