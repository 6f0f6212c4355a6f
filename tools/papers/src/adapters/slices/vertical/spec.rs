//! The row of vertical slices, and the heuristics for keys with cells in failed ones.

use super::filter::Vertical;
use crate::adapters::slices::cut::Cut;
use crate::adapters::slices::horizontal;
use crate::adapters::slices::path::MOST_SLICES;
use echoless::extend::{
    AdapterRow, Built, Head, Layers, MOST_HASHES, Named, OptionRow, names, within,
};
use echoless::spec::Facts;
use echoless::{BuildError, SpecError};

/// The verdict on a key some of whose cells lie in failed slices (paper 001, section 3.2).
///
/// A key whose cells are all live is a duplicate if and only if all of them are set, except with
/// [`Hybrid`](Self::Hybrid).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MissingCells {
    /// Missing cells count as set: a duplicate if all live cells are set.
    Set,
    /// A key with a missing cell is fresh.
    Fresh,
    /// The paper's heuristic, as published: a duplicate if at least `least` live cells are set. It
    /// ignores that a live cell that is not set proves a key fresh, so with `least` below k the FPR
    /// is higher than without failures, even if no slice has failed; keys taken for duplicates are
    /// not recorded.
    Hybrid {
        /// x, 1 to k.
        least: u32,
    },
    /// The heuristic without that flaw: a duplicate if all live cells are set and there are at
    /// least `least` of them.
    Repaired {
        /// x, 1 to k.
        least: u32,
    },
}

/// How the slices of a key are probed (paper 001, section 3.2). The verdicts are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Probing {
    /// All at once: a request to each slice, and an answer from each.
    Parallel,
    /// In turn, each slice passing the request on; the one at which the verdict is certain, as at
    /// the first cell that is not set, answers.
    Pipelined,
}

const PROBINGS: [(&str, Probing); 2] = [
    ("parallel", Probing::Parallel),
    ("pipelined", Probing::Pipelined),
];

const FAILED: &[&str] = &["duplicate", "fresh", "hybrid", "repaired"];

const OPTIONS: &[OptionRow] = &[
    // At most one for each cell.
    OptionRow::whole("slices", 1, MOST_SLICES as u64, 8),
    OptionRow::choice("failed", FAILED),
    OptionRow::whole("least", 1, MOST_HASHES as u64, 1).beside("failed", &["hybrid", "repaired"]),
    OptionRow::choice("probe", &names(&PROBINGS)),
];

/// The parameters of vertical slices.
///
/// While no slice has failed, the verdicts are those of the table itself, except with
/// [`MissingCells::Hybrid`]. The bits of a key in a Bloom filter lie in k ranges of M/k bits, one
/// in each; the timers of a key of `tbf` lie anywhere in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct VerticalSpec {
    /// The verdict on keys with cells in failed slices.
    pub(super) failed: MissingCells,
    /// How slices are probed.
    pub(super) probing: Probing,
}

impl VerticalSpec {
    fn of(named: &Named) -> Self {
        let least = named.given("least").map_or(0, |least| least as u32);
        Self {
            failed: match named.choice_name("failed") {
                "duplicate" => MissingCells::Set,
                "fresh" => MissingCells::Fresh,
                "hybrid" => MissingCells::Hybrid { least },
                _ => MissingCells::Repaired { least },
            },
            probing: named.choice("probe", &PROBINGS),
        }
    }
}

/// Vertical slices.
pub(crate) static ROW: AdapterRow = AdapterRow {
    head: Head {
        name: "vertical",
        options: |_| OPTIONS,
        complete: Named::as_given,
    },
    build,
    check_lines: None,
    facts: |named, inner| {
        let table = Layers {
            adapters: &[],
            ..inner
        };
        let table = table.facts();
        // The verdicts are those of the table while no slice has failed.
        let hybrid = matches!(VerticalSpec::of(named).failed, MissingCells::Hybrid { .. });
        let is_exact = !hybrid && inner.split().is_none();
        Facts {
            cache_lines: table.cache_lines,
            rate_model: table.rate_model.filter(|_| is_exact),
            fpr_limit: table.fpr_limit.filter(|_| is_exact),
            most_memory: table.most_memory,
            memory_unit: table.memory_unit,
            window: table.window,
            // A duplicate changes no cell.
            renews_keys: false,
            forgets_by_time: false,
            settles: inner.facts().settles,
            power_of_two_rows: table.power_of_two_rows,
        }
    },
};

/// S' and the table: the pieces of a slice if a horizontal adapter lies in between, else 1.
fn pieces(inner: Layers<'_>) -> Result<(u32, Layers<'_>), SpecError> {
    match inner.split() {
        Some((slices, table)) if slices.name() == horizontal::NAME => {
            Ok((horizontal::pieces(slices)?, table))
        }
        _ => Ok((1, inner)),
    }
}

fn build(named: &Named, inner: Layers<'_>) -> Result<Built, BuildError> {
    let slices = named.small("slices");
    let (pieces, table) = pieces(inner)?;
    let table = table.cell_table(named.name())?;
    let parts = u64::from(slices) * u64::from(pieces);
    if parts > table.cell_count() {
        let allowed = format!("1 to {} (one cell in each piece)", table.cell_count());
        let asked = if pieces == 1 {
            parts.to_string()
        } else {
            format!("{slices} of {pieces} pieces")
        };
        return Err(SpecError::new("slices", asked, allowed).into());
    }
    if let Some(least) = named.given("least") {
        within("least", least, 1..=table.hashes() as u64)?;
    }
    let cut = Cut::new(table.cell_count(), slices, pieces);
    let (spec, window) = (VerticalSpec::of(named), inner.facts().window);
    let filter = Vertical::new(table, cut, spec, window);
    Ok(Built::Sliced(Box::new(filter)))
}
