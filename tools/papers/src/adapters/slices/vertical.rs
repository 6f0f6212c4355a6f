//! Vertical slices: ranges of one table of cells, of which a key probes up to k (paper 001,
//! definition 2), and the heuristics for keys with cells in failed ones.

use std::ops::Range;

use super::cut::{Cut, MOST_SLICES, check_index, wrong_depth};
use super::horizontal;
use crate::adapters::cell_table::{CellTable, cell_table};
use echoless::extend::{
    AdapterRow, Head, Layers, MOST_HASHES, Named, OptionRow, SliceCounts, Sliced, names, within,
};
use echoless::spec::Facts;
use echoless::{Batch, BuildError, Filter, KeyHash, Report, SpecError, Tally, Window};

/// A piece that a key has cells in.
#[derive(Debug, Clone, Copy)]
struct Stop {
    piece: usize,
    /// The cells of the key in this piece, as a set of their indices.
    cells: u64,
}

/// A table of cells in vertical slices. Cache lines touched per key: up to k.
#[derive(Debug)]
struct Vertical {
    table: Box<dyn CellTable>,
    cut: Cut,
    spec: VerticalSpec,
    /// How long the cells of a key stay set, if they expire.
    window: Option<Window>,
    /// For each piece, whether it has failed.
    failed: Vec<bool>,
    counts: SliceCounts,
    fresh: u64,
    loads: Vec<u64>,
    route: Route,
}

/// Where the cells of a key lie.
#[derive(Debug, Clone, Default)]
struct Route {
    /// The cells of the key.
    cells: Vec<u64>,
    /// The live pieces, in the order in which the key's hashes reach them.
    stops: Vec<Stop>,
    /// The number of cells in live pieces.
    live: u32,
}

/// What the probes so far decide.
#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    set: u32,
    unset: u32,
}

impl Vertical {
    fn new(
        table: Box<dyn CellTable>,
        cut: Cut,
        spec: VerticalSpec,
        window: Option<Window>,
    ) -> Self {
        let pieces = cut.slices() * cut.pieces();
        Self {
            table,
            cut,
            spec,
            window,
            failed: vec![false; pieces],
            counts: SliceCounts::default(),
            fresh: 0,
            loads: vec![0; pieces],
            route: Route::default(),
        }
    }

    /// Finds the cells of a key and the live pieces that hold them.
    fn find(&self, key: KeyHash, route: &mut Route) {
        route.cells.clear();
        route.stops.clear();
        route.live = 0;
        for index in 0..self.table.hashes() {
            let (piece, cell) = self.cut.locate(key, self.table.position(key, index));
            route.cells.push(cell);
            if self.failed[piece] {
                continue;
            }
            route.live += 1;
            match route.stops.iter_mut().find(|stop| stop.piece == piece) {
                Some(stop) => stop.cells |= 1 << index,
                None => route.stops.push(Stop {
                    piece,
                    cells: 1 << index,
                }),
            }
        }
    }

    /// The verdict, true for a duplicate, if the probes so far decide it. Once every live cell was
    /// probed they do.
    fn decide(&self, live: u32, seen: Seen) -> Option<bool> {
        let left = live - seen.set - seen.unset;
        let hashes = self.table.hashes() as u32;
        let least = match self.spec.failed {
            MissingCells::Hybrid { least } => {
                return if seen.set >= least {
                    Some(true)
                } else {
                    (seen.set + left < least).then_some(false)
                };
            }
            MissingCells::Set => 0,
            MissingCells::Fresh => hashes,
            MissingCells::Repaired { least } => least,
        };
        if live < least || seen.unset > 0 {
            Some(false)
        } else {
            (left == 0).then_some(true)
        }
    }

    /// The probes of one piece.
    fn probe(&self, route: &Route, stop: Stop, seen: &mut Seen) {
        let mut left = stop.cells;
        while left != 0 {
            let cell = route.cells[left.trailing_zeros() as usize];
            let set = self.table.is_set(cell);
            seen.set += u32::from(set);
            seen.unset += u32::from(!set);
            left &= left - 1;
        }
    }

    /// Probes the pieces of a route until the verdict is certain; returns it, and the number of
    /// pieces probed.
    fn verdict(&self, route: &Route) -> (bool, usize) {
        let mut seen = Seen::default();
        // The producers have the list of failed slices: they probe none if that decides the key.
        if let Some(verdict) = self.decide(route.live, seen) {
            return (verdict, 0);
        }
        let mut probed = 0;
        let mut verdict = None;
        for stop in &route.stops {
            self.probe(route, *stop, &mut seen);
            probed += 1;
            verdict = self.decide(route.live, seen);
            if verdict.is_some() && self.spec.probing == Probing::Pipelined {
                break;
            }
        }
        // All live cells were probed, or the verdict is certain.
        (verdict.unwrap_or(false), probed)
    }

    /// Tests one key, then sets its live cells if it is fresh; true means duplicate.
    fn observe_key(&mut self, key: KeyHash) -> bool {
        let mut route = std::mem::take(&mut self.route);
        self.find(key, &mut route);
        let (duplicate, probed) = self.verdict(&route);
        for stop in &route.stops[..probed] {
            self.loads[stop.piece] += 1;
        }
        self.counts.observed += 1;
        self.counts.probed += probed as u64;
        self.counts.unavailable += u64::from((route.live as usize) < self.table.hashes());
        self.counts.messages += match self.spec.probing {
            Probing::Parallel => 2 * probed as u64,
            // The request passes from slice to slice; the last one answers.
            Probing::Pipelined => probed as u64 + u64::from(probed > 0),
        };
        if !duplicate {
            self.fresh += 1;
            self.counts.messages += route.stops.len() as u64;
            for stop in &route.stops {
                let mut left = stop.cells;
                while left != 0 {
                    self.table.set(route.cells[left.trailing_zeros() as usize]);
                    left &= left - 1;
                }
            }
        }
        self.route = route;
        duplicate
    }

    /// The pieces that a path names.
    fn pieces(&self, path: &[usize]) -> Result<Range<usize>, SpecError> {
        let (slices, pieces) = (self.cut.slices(), self.cut.pieces());
        match path {
            [slice] => {
                let first = check_index(path, *slice, slices)? * pieces;
                Ok(first..first + pieces)
            }
            [slice, piece] if pieces > 1 => {
                let first = check_index(path, *slice, slices)? * pieces;
                let piece = first + check_index(path, *piece, pieces)?;
                Ok(piece..piece + 1)
            }
            _ if pieces > 1 => Err(wrong_depth(
                path,
                "the index of a slice, or slice and piece",
            )),
            _ => Err(wrong_depth(path, "the index of a slice")),
        }
    }
}

impl Sliced for Vertical {
    fn slice_count(&self) -> usize {
        self.cut.slices()
    }

    fn fail(&mut self, path: &[usize]) -> Result<(), SpecError> {
        for piece in self.pieces(path)? {
            self.failed[piece] = true;
            self.table.empty(self.cut.range(piece));
        }
        Ok(())
    }

    fn restore(&mut self, path: &[usize]) -> Result<(), SpecError> {
        // The cells were emptied when the piece failed, and none was set since.
        let pieces = self.pieces(path)?;
        self.failed[pieces].fill(false);
        Ok(())
    }

    fn is_failed(&self, path: &[usize]) -> Result<bool, SpecError> {
        Ok(self.failed[self.pieces(path)?].iter().all(|failed| *failed))
    }

    fn counts(&self) -> SliceCounts {
        self.counts
    }

    fn loads(&self) -> &[u64] {
        &self.loads
    }
}

impl Filter for Vertical {
    fn observe_batch(&mut self, batch: Batch<'_>, duplicates: &mut [u64]) {
        batch.observe_runs(duplicates, |tick, batch, duplicates| {
            if let Some(tick) = tick {
                self.table.advance_to(tick);
            }
            batch.observe_each(duplicates, |key| self.observe_key(key));
        });
    }

    fn contains(&self, key: KeyHash) -> bool {
        let mut route = Route::default();
        self.find(key, &mut route);
        self.verdict(&route).0
    }

    /// Restores all slices, too.
    fn clear(&mut self) {
        self.table.restart();
        self.failed.fill(false);
        self.counts = SliceCounts::default();
        self.fresh = 0;
        self.loads.fill(0);
    }

    fn memory_bytes(&self) -> u64 {
        self.table.bytes()
    }

    fn tally(&self) -> Tally {
        Tally {
            observed: Some(self.counts.observed),
            fresh: Some(self.fresh),
            cells: Some(self.table.cells()),
            unavailable: Some(self.counts.unavailable),
            ..Tally::new(self.memory_bytes())
        }
    }

    fn report_on(&self, tally: Tally) -> Report {
        Report {
            window: self.window,
            ..Report::new(tally)
        }
    }

    fn slices(&self) -> Option<&dyn Sliced> {
        Some(self)
    }

    fn slices_mut(&mut self) -> Option<&mut dyn Sliced> {
        Some(self)
    }
}

/// The verdict on a key some of whose cells lie in failed slices (paper 001, section 3.2).
///
/// A key whose cells are all live is a duplicate if and only if all of them are set, except with
/// [`Hybrid`](Self::Hybrid).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MissingCells {
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
enum Probing {
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
struct VerticalSpec {
    /// The verdict on keys with cells in failed slices.
    failed: MissingCells,
    /// How slices are probed.
    probing: Probing,
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
            rate_model: table.rate_model.filter(|_| is_exact),
            fpr_limit: table.fpr_limit.filter(|_| is_exact),
            // A duplicate changes no cell.
            renews_keys: false,
            forgets_by_time: false,
            settles: inner.facts().settles,
            ..table
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

fn build(named: &Named, inner: Layers<'_>) -> Result<Box<dyn Filter>, BuildError> {
    let slices = named.small("slices");
    let (pieces, table) = pieces(inner)?;
    let table = cell_table(table, named.name())?;
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
    Ok(Box::new(filter))
}
