//! Settings of the criterion benches. They are many, so each is short; recorded numbers come from
//! the benchmark program instead.

use std::time::Duration;

use criterion::{BenchmarkGroup, Criterion, measurement::WallTime};

/// A group of short measurements.
pub(crate) fn group<'a>(criterion: &'a mut Criterion, name: &str) -> BenchmarkGroup<'a, WallTime> {
    let mut group = criterion.benchmark_group(name);
    group
        .sample_size(20)
        .warm_up_time(Duration::from_millis(100))
        .measurement_time(Duration::from_millis(300));
    group
}
