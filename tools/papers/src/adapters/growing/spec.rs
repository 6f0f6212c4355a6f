//! The row of growing filters: the rate of each filter, its threshold and its size.

use super::Growing;
use echoless::extend::{
    AdapterRow, Allowed, Built, FilterRow, Head, Layers, Named, OptionRow, Value, names,
};
use echoless::spec::Facts;
use echoless::{BuildError, SpecError};

/// The most filters at a time: every fresh key probes all of them.
const MOST_FILTERS: u64 = 1024;

/// The number of filters that fill the memory, unless the size of one is given.
const FILTERS: u64 = 8;

/// The condition on which a filter is full (paper 001, section 5). m is the number of its cells, k
/// that of a key's cells, p the rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Threshold {
    /// More than z = m p^(1/k) set cells.
    Density,
    /// More than n = -(m/k) ln(1 - p^(1/k)) keys inserted since it was opened. With a window keys
    /// leave a filter uncounted, so a filter is opened earlier than by density.
    Cardinality,
}

const THRESHOLDS: [(&str, Threshold); 2] = [
    ("density", Threshold::Density),
    ("cardinality", Threshold::Cardinality),
];

const OPTIONS: &[OptionRow] = &[
    // p: the FPR at which a filter is full. With j filters a key that was never seen is reported as
    // a duplicate with a probability of at most about j p.
    OptionRow::new("fpr", Allowed::Rate).or(Value::Decimal(0.01)),
    OptionRow::choice("threshold", &names(&THRESHOLDS)),
    // The memory of one filter; an eighth of the whole if it is not given.
    OptionRow::new("step", Allowed::Size),
];

/// Growing filters: Bloom filters, or timing Bloom filters for a window. Then the number of filters
/// follows the number of keys in the window (paper 001, section 5).
pub(crate) static ROW: AdapterRow = AdapterRow {
    head: Head {
        name: "growing",
        options: |_| OPTIONS,
        complete: Named::as_given,
    },
    build: |named, inner| Ok(Built::Plain(Box::new(build(named, inner)?))),
    check_lines: None,
    facts: |named, inner| {
        let (size, most) = filters_in(named, inner.memory);
        let one = Layers {
            memory: size,
            ..inner
        };
        let one = one.facts();
        Facts {
            // Those of every filter, once there are as many as fit in the memory.
            cache_lines: most.max(1) as f64 * one.cache_lines,
            rate_model: None,
            // The thresholds bound the rate of a filter by its fill, not on any stream.
            fpr_limit: None,
            most_memory: match named.given("step") {
                None => one.most_memory.saturating_mul(FILTERS),
                Some(step) => step.saturating_mul(MOST_FILTERS),
            },
            memory_unit: one.memory_unit,
            window: one.window,
            // A duplicate changes no cell.
            renews_keys: false,
            forgets_by_time: false,
            // It drops its oldest filter.
            settles: true,
            power_of_two_rows: one.power_of_two_rows,
        }
    },
};

/// The memory of one filter of the whole, in bytes, and how many filters fit.
fn filters_in(named: &Named, memory: u64) -> (u64, u64) {
    let size = named.given("step").unwrap_or(memory / FILTERS);
    (size, memory.checked_div(size).unwrap_or(0))
}

fn build(named: &Named, inner: Layers<'_>) -> Result<Growing, BuildError> {
    if inner.memory == 0 {
        return Err(SpecError::new("memory", "0 B", "at least 1 B, for one filter").into());
    }
    let (size, most) = filters_in(named, inner.memory);
    if !(1..=MOST_FILTERS).contains(&most) {
        let least = inner.memory.div_ceil(MOST_FILTERS).max(1);
        let allowed = format!("{least} B to {} B, the memory", inner.memory);
        return Err(SpecError::new("step", format!("{size} B"), allowed).into());
    }
    let one = Layers {
        memory: size,
        ..inner
    };
    let first = one.cell_table(named.name())?;
    let kind = inner.kind;
    let open = move || FilterRow::of(&kind).cells?(&kind, size).ok();
    Growing::new(
        named.decimal("fpr").expect("a default"),
        named.choice("threshold", &THRESHOLDS),
        first,
        Box::new(open),
        most as usize,
        one.facts().window,
    )
}
