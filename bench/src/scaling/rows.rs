//! The columns of the table, which all parts share.

use crate::table::Cell;

pub(super) const COLUMNS: [&str; 10] = [
    "name",
    "variant",
    "stream",
    "threads",
    "memory_mib",
    "keys_per_second",
    "ratio_to_inline",
    "ratio_to_one_thread",
    "cpu_ns_per_key",
    "kind",
];

/// The row of a cost that does not depend on the size of the filter: `wall` and `cpu` are seconds
/// for each key, and `wall` is `None` where the stream sets the speed.
pub(super) fn cost_row(
    name: &str,
    variant: String,
    stream: &str,
    threads: u64,
    wall: Option<f64>,
    cpu: f64,
) -> Vec<Cell> {
    vec![
        name.into(),
        variant.into(),
        stream.into(),
        threads.into(),
        Cell::Nothing,
        wall.map(|seconds| 1.0 / seconds).into(),
        Cell::Nothing,
        Cell::Nothing,
        (cpu * 1e9).into(),
        "measured".into(),
    ]
}
