//! The row of horizontal slices.

use super::filter::{Chooser, Horizontal};
use crate::adapters::slices::path::MOST_SLICES;
use echoless::extend::{AdapterRow, Built, Head, Layers, Named, OptionRow, check_available, names};
use echoless::spec::Facts;
use echoless::{BuildError, SpecError};

/// The first of the [`KeyHash::remix`](echoless::KeyHash::remix) streams that choose the slice of a
/// key, one stream for each level of nested horizontal slices. No filter draws positions from them,
/// so the keys of a slice are spread over it as all keys are over a filter.
const SLICE_STREAMS: u64 = 0x736c_6963_6573_0000;

/// The verdict on a key whose slice has failed (paper 001, section 3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FailedKeys {
    /// Duplicate: more false positives, no false negatives.
    Duplicate,
    /// Fresh: false negatives, no more false positives.
    Fresh,
}

/// The names of the policies.
const FAILED: [(&str, FailedKeys); 2] = [
    ("duplicate", FailedKeys::Duplicate),
    ("fresh", FailedKeys::Fresh),
];

/// The name in text.
pub(crate) const NAME: &str = "horizontal";

const OPTIONS: &[OptionRow] = &[
    // At most one for each line in the line form.
    OptionRow::whole("slices", 1, MOST_SLICES as u64, 8),
    OptionRow::choice("failed", &names(&FAILED)),
];

/// Horizontal slices.
///
/// The slices of a line filter are ranges of its lines ([`Partitioning`](echoless::Partitioning)), and
/// its verdicts are those of the undivided filter while no slice has failed. For all other filters,
/// S filters of M/S bytes are built, and a hash that is independent of their positions chooses
/// among them.
pub(crate) static ROW: AdapterRow = AdapterRow {
    head: Head {
        name: NAME,
        options: |_| OPTIONS,
        complete: Named::as_given,
    },
    build,
    check_lines: Some(check_lines),
    facts: |named, inner| {
        let count = named.small("slices");
        let whole = inner.facts();
        // Each key is judged by one slice. Slices with a hash of their own fill unevenly, and have
        // no formula.
        let slice = if cuts_lines(inner) {
            whole
        } else {
            let slice = inner.part(count, 0).facts();
            Facts {
                rate_model: None,
                most_memory: whole.most_memory.saturating_mul(count.into()),
                ..slice
            }
        };
        Facts {
            cache_lines: slice.cache_lines,
            rate_model: slice.rate_model,
            // While no slice has failed.
            fpr_limit: slice.fpr_limit,
            most_memory: slice.most_memory,
            memory_unit: whole.memory_unit,
            window: whole.window,
            renews_keys: whole.renews_keys,
            forgets_by_time: false,
            settles: whole.settles,
            power_of_two_rows: whole.power_of_two_rows,
        }
    },
};

/// Checks the number of slices of a line filter.
pub(crate) fn check_lines(slices: &Named, lines: u64) -> Result<(), SpecError> {
    let count = slices.whole("slices");
    if count > lines {
        let allowed = format!("1 to {lines} (one line each)");
        return Err(SpecError::new("slices", count.to_string(), allowed));
    }
    Ok(())
}

/// S', the pieces of a vertical slice that these slices lie in.
///
/// # Errors
/// [`SpecError`] if they have a policy of their own.
pub(crate) fn pieces(slices: &Named) -> Result<u32, SpecError> {
    if slices.choice("failed", &FAILED) != FailedKeys::Duplicate {
        let allowed = "duplicate inside vertical slices, whose own policy decides";
        return Err(SpecError::new("failed", "fresh", allowed));
    }
    Ok(slices.small("slices"))
}

/// Whether the slices are ranges of the lines of one filter.
fn cuts_lines(inner: Layers<'_>) -> bool {
    inner.has_partitions() && inner.split().is_none()
}

fn build(named: &Named, inner: Layers<'_>) -> Result<Built, BuildError> {
    let count = named.small("slices");
    let (chooser, slices) = if cuts_lines(inner) {
        check_lines(named, inner.plan()?.buckets())?;
        let (partitioning, slices) = inner.partitions(count as usize)?.into_parts();
        let slices = slices.into_iter().map(|slice| Built::Plain(slice));
        (Chooser::Lines(partitioning), slices.collect())
    } else {
        // Each slice alone could fit where all of them do not.
        check_available(inner.memory)?;
        let slices = (0..count).map(|index| build_slice(inner, count, index));
        let chooser = Chooser::Hash {
            stream: SLICE_STREAMS + inner.count_of(NAME),
            count: u64::from(count),
        };
        (chooser, slices.collect::<Result<_, _>>()?)
    };
    let policy = named.choice("failed", &FAILED);
    let filter = Horizontal::new(slices, chooser, policy);
    Ok(Built::Sliced(Box::new(filter)))
}

/// Builds one of `count` slices. An error about its memory states that it is that of a slice.
fn build_slice(inner: Layers<'_>, count: u32, index: u32) -> Result<Built, BuildError> {
    inner
        .part(count, index)
        .build()
        .map_err(|error| match error {
            BuildError::Spec(error) if error.field == "memory" => {
                let allowed = format!("enough for {count} slices, each {}", error.allowed);
                SpecError::new("memory", format!("{} B", inner.memory), allowed).into()
            }
            error => error,
        })
}
