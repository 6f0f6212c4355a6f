//! What a filter costs to run: cache lines touched, and nanoseconds measured.

use std::time::Instant;

use echoless::filters::scattered::bits::Ageing;
use echoless::filters::scattered::cells::Decrement;
use echoless::spec::{FilterKind, Form};
use echoless::{BuildError, FilterSpec, KeyHash, KeyHasher, Verdicts};

/// The cache lines that a fresh key touches at most, as the filters' documentation has it. (Keys that are not tracked touch none.)
///
/// # Examples
/// ```
/// use echoless_lab::plan::lines_touched;
/// assert_eq!(lines_touched(&"rlbsbf:k=2,memory=1MiB".parse()?), 4.0);
/// assert_eq!(lines_touched(&"bloom:k=3,memory=1MiB,tracked=0.5".parse()?), 3.0);
/// # Ok::<(), echoless::SpecError>(())
/// ```
#[must_use]
pub fn lines_touched(spec: &FilterSpec) -> f64 {
    if spec.form() == Form::Scattered {
        scattered_lines(spec)
    } else {
        1.0
    }
}

fn scattered_lines(spec: &FilterSpec) -> f64 {
    match spec.kind() {
        FilterKind::Bits(bits) => f64::from(match bits.ageing {
            Ageing::Never => bits.hashes,
            Ageing::OneFilter => bits.hashes + 1,
            _ => 2 * bits.hashes,
        }),
        FilterKind::Stable(stable) => {
            let lowered = match stable.decrement {
                Decrement::Independent => stable_decrements(spec).unwrap_or(1) as f64,
                _ => 1.0,
            };
            f64::from(stable.hashes) + lowered
        }
        FilterKind::FingerprintStable(stable) => f64::from(stable.hashes) * (1.0 + stable.eviction),
        FilterKind::Decaying(decaying) => {
            let hashes = decaying.hashes_in(spec.memory().unwrap_or(0));
            hashes.map_or(0.0, f64::from)
        }
        FilterKind::Cuckoo(cuckoo) => 2.0 + f64::from(cuckoo.kicks),
        FilterKind::Generations(generations) => 2.0 * f64::from(generations.hashes),
        FilterKind::Buffer(_) => 8.0,
        // Rows that cross a line touch two; most do not.
        FilterKind::Rows(_) => 1.0,
        _ => 1.0,
    }
}

/// P of a stable Bloom filter in scattered form, as its specification and memory decide it; `None` for other filters or without memory.
pub(super) fn stable_decrements(spec: &FilterSpec) -> Option<u64> {
    let FilterKind::Stable(stable) = spec.kind() else {
        return None;
    };
    let cells = spec.memory()? * 8 / u64::from(stable.cell_bits);
    let max = (1 << stable.cell_bits) - 1;
    stable.lowering.decrements(stable.hashes, max, cells).ok()
}

/// Measures the filter in its full memory on distinct keys: nanoseconds a key on this machine, as busy as it is.
///
/// # Errors
/// [`BuildError`] if it cannot be built.
pub fn nanoseconds_per_key(spec: &FilterSpec) -> Result<f64, BuildError> {
    const KEYS: u64 = 1 << 18;
    let mut filter = spec.build()?;
    let hasher = KeyHasher::seeded(spec.seed());
    let mut verdicts = Verdicts::new();
    let mut numbers = [0; 1024];
    let mut keys = [KeyHash(0); 1024];
    let mut seconds = 0.0;
    // The first half fetches the memory from the system; the second is timed.
    for first in (0..2 * KEYS).step_by(numbers.len()) {
        for (number, value) in numbers.iter_mut().zip(first..) {
            *number = value;
        }
        hasher.hash_u64s(&numbers, &mut keys);
        let begin = Instant::now();
        filter.observe(&keys, &mut verdicts);
        if first >= KEYS {
            seconds += begin.elapsed().as_secs_f64();
        }
    }
    Ok(seconds * 1e9 / KEYS as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_those_of_the_documentation() {
        for (text, lines) in [
            ("bloom:k=4", 4.0),
            ("bsbf:k=3", 6.0),
            ("bsbfsd:k=3", 4.0),
            ("rsbf:k=2", 4.0),
            ("sbf:k=2", 3.0),
            ("sbf:k=2,p=4,decrement=independent", 6.0),
            ("fpsbf:k=2,xi=0.5", 3.0),
            ("bdbf:window=1000,k=3", 3.0),
            ("bdbf:window=100000", 8.0),
            ("qht", 1.0),
            ("cuckoo:kicks=3", 5.0),
            ("a2:k=4", 8.0),
            ("lru", 8.0),
        ] {
            let spec: FilterSpec = text.parse().unwrap();
            let spec = spec.with_memory(1 << 20);
            assert_eq!(lines_touched(&spec), lines, "{text}");
        }
    }

    #[test]
    fn the_decrements_are_those_of_the_filter() {
        for text in ["sbf:k=2,fps=0.1", "sbf:k=3,d=2,fps=0.02", "sbf:k=2,p=4"] {
            let spec: FilterSpec = text.parse().unwrap();
            let spec = spec.with_memory(1 << 16);
            let FilterKind::Stable(stable) = spec.kind() else {
                panic!("{text}");
            };
            let filter = stable.build(1 << 16, 0).unwrap();
            assert_eq!(
                stable_decrements(&spec),
                Some(filter.decrements()),
                "{text}"
            );
        }
        assert_eq!(stable_decrements(&"qht".parse().unwrap()), None);
    }
}
