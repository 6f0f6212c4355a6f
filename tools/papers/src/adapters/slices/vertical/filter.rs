//! The table of cells in vertical slices.

use std::ops::Range;

use super::{MissingCells, Probing, VerticalSpec};
use crate::adapters::slices::cut::Cut;
use crate::adapters::slices::path::{check_index, wrong_depth};
use echoless::extend::{CellTable, SliceCounts, Sliced, SlicedFilter};
use echoless::{Batch, Filter, KeyHash, Report, SpecError, Tally, Window};

/// A piece that a key has cells in.
#[derive(Debug, Clone, Copy)]
struct Stop {
    piece: usize,
    /// The cells of the key in this piece, as a set of their indices.
    cells: u64,
}

/// A table of cells in vertical slices. Cache lines touched per key: up to k.
#[derive(Debug)]
pub(super) struct Vertical {
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
    pub(super) fn new(
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
}

impl SlicedFilter for Vertical {
    fn slices(&self) -> &dyn Sliced {
        self
    }

    fn slices_mut(&mut self) -> &mut dyn Sliced {
        self
    }
}
