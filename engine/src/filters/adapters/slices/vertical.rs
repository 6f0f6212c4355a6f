//! Vertical slices: ranges of one table of cells, of which a key probes up to k (paper 001,
//! definition 2), and its heuristic for failed slices.

use super::cut::Cut;
use super::horizontal::{FailedKeys, HorizontalSpec};
use super::sliced::{MOST_SLICES, SliceCounts, Sliced, check_index, wrong_depth};
use crate::error::{BuildError, SpecError};
use crate::filters::Filter;
use crate::filters::adapters::AdapterSpec;
use crate::filters::adapters::adapter::AdapterKind;
use crate::filters::adapters::layers::Layers;
use crate::filters::cells::CellTable;
use crate::filters::filter::observe_each;
use crate::hash::KeyHash;
use crate::limits::{MOST_HASHES, within};
use crate::options::{Options, name_of, one_of};
use crate::report::Tally;
use crate::theory::RateModel;

/// The verdict on a key some of whose cells lie in failed slices (paper 001, section 3.2).
///
/// A key whose cells are all live is a duplicate if and only if all of them are set, except with
/// [`Hybrid`](Self::Hybrid).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum MissingCells {
    /// Missing cells count as set: a duplicate if all live cells are set.
    #[default]
    Set,
    /// A key with a missing cell is fresh.
    Fresh,
    /// The paper's heuristic, as published: a duplicate if at least `least` live cells are set. It
    /// ignores that a live cell that is not set proves a key fresh, so with `least` below k the FPR
    /// is higher than without failures, even if no slice has failed.
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Probing {
    /// All at once: a request to each slice, and an answer from each.
    #[default]
    Parallel,
    /// In turn, each slice passing the request on; the one at which the verdict is certain, as at
    /// the first cell that is not set, answers.
    Pipelined,
}

const PROBINGS: [(&str, Probing); 2] = [
    ("parallel", Probing::Parallel),
    ("pipelined", Probing::Pipelined),
];

const FAILED: [&str; 4] = ["duplicate", "fresh", "hybrid", "repaired"];

/// The parameters of vertical slices.
///
/// While no slice has failed, the verdicts are those of the table itself, except with
/// [`MissingCells::Hybrid`]. The bits of a key in a [Bloom filter](crate::spec::BitsSpec) lie in k
/// ranges of M/k bits, one in each.
///
/// # Examples
/// ```
/// use echoless::{Filter, FilterSpec, KeyHash, Verdict};
/// let spec: FilterSpec = "vertical:slices=40,failed=repaired,least=3/bloom:k=8,memory=1KiB".parse()?;
/// let mut filter = spec.build()?;
/// assert_eq!(filter.observe_one(KeyHash(17)), Verdict::Fresh);
/// // Any five slices can fail, as long as three bits of the key are left.
/// for slice in 0..5 {
///     filter.slices_mut().unwrap().fail(&[slice])?;
/// }
/// assert_eq!(filter.observe_one(KeyHash(17)), Verdict::Duplicate);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct VerticalSpec {
    /// S: the number of slices (1 to 65536, and at most one for each cell).
    pub slices: u32,
    /// The verdict on keys with cells in failed slices.
    pub failed: MissingCells,
    /// How slices are probed.
    pub probing: Probing,
}

impl VerticalSpec {
    /// `slices` slices, probed in parallel; missing cells count as set.
    #[must_use]
    pub const fn new(slices: u32) -> Self {
        Self {
            slices,
            failed: MissingCells::Set,
            probing: Probing::Parallel,
        }
    }

    /// The verdict on keys with cells in failed slices.
    #[must_use]
    pub const fn failed(mut self, failed: MissingCells) -> Self {
        self.failed = failed;
        self
    }

    /// How slices are probed.
    #[must_use]
    pub const fn probing(mut self, probing: Probing) -> Self {
        self.probing = probing;
        self
    }

    /// S' and the table: the pieces of a slice if a horizontal adapter lies in between, else 1.
    fn pieces(inner: Layers<'_>) -> Result<(u32, Layers<'_>), SpecError> {
        match inner.split() {
            Some((AdapterSpec::Horizontal(pieces), table)) => {
                if pieces.failed != FailedKeys::Duplicate {
                    let allowed = "duplicate inside vertical slices, whose own policy decides";
                    return Err(SpecError::new("failed", "fresh", allowed));
                }
                let HorizontalSpec { slices, .. } = *pieces;
                Ok((within("slices", slices, 1..=MOST_SLICES)?, table))
            }
            Some(_) | None => Ok((1, inner)),
        }
    }

    /// Whether the verdicts are those of the table while no slice has failed.
    fn is_exact(self, inner: Layers<'_>) -> bool {
        !matches!(self.failed, MissingCells::Hybrid { .. }) && inner.split().is_none()
    }
}

impl AdapterKind for VerticalSpec {
    const NAME: &'static str = "vertical";

    fn parse(options: &mut Options) -> Result<Self, SpecError> {
        let slices = options.integer("slices", 8, 1..=MOST_SLICES)?;
        let name = options.take("failed").unwrap_or_else(|| FAILED[0].into());
        let least = |options: &mut Options| options.integer("least", 1, 1..=MOST_HASHES);
        let failed = match name.as_str() {
            "duplicate" => MissingCells::Set,
            "fresh" => MissingCells::Fresh,
            "hybrid" => MissingCells::Hybrid {
                least: least(options)?,
            },
            "repaired" => MissingCells::Repaired {
                least: least(options)?,
            },
            _ => return Err(SpecError::new("failed", name, one_of(&FAILED))),
        };
        Ok(Self {
            slices,
            failed,
            probing: options.choice("probe", &PROBINGS)?,
        })
    }

    fn options(&self) -> Vec<(&'static str, String)> {
        let (failed, least) = match self.failed {
            MissingCells::Set => (FAILED[0], None),
            MissingCells::Fresh => (FAILED[1], None),
            MissingCells::Hybrid { least } => (FAILED[2], Some(least)),
            MissingCells::Repaired { least } => (FAILED[3], Some(least)),
        };
        let mut options = vec![
            ("slices", self.slices.to_string()),
            ("failed", failed.to_owned()),
        ];
        options.extend(least.map(|least| ("least", least.to_string())));
        options.push(("probe", name_of(&PROBINGS, &self.probing)));
        options
    }

    fn build(&self, inner: Layers<'_>) -> Result<Box<dyn Filter>, BuildError> {
        within("slices", self.slices, 1..=MOST_SLICES)?;
        let (pieces, table) = Self::pieces(inner)?;
        let table = table.cell_table(Self::NAME)?;
        let parts = u64::from(self.slices) * u64::from(pieces);
        if parts > table.len() {
            let allowed = format!("1 to {} (one cell in each piece)", table.len());
            let asked = if pieces == 1 {
                parts.to_string()
            } else {
                format!("{} of {pieces} pieces", self.slices)
            };
            return Err(SpecError::new("slices", asked, allowed).into());
        }
        match self.failed {
            MissingCells::Set | MissingCells::Fresh => {}
            MissingCells::Hybrid { least } | MissingCells::Repaired { least } => {
                within("least", least, 1..=table.hashes() as u32)?;
            }
        }
        let cut = Cut::new(table.len(), self.slices, pieces);
        Ok(Box::new(Vertical::new(table, cut, *self)))
    }

    fn cache_lines(&self, inner: Layers<'_>) -> f64 {
        inner.kind.cache_lines(inner.form, inner.memory)
    }

    fn rate_model(&self, inner: Layers<'_>) -> Option<RateModel> {
        self.is_exact(inner).then(|| inner.rate_model()).flatten()
    }

    fn fpr_limit(&self, inner: Layers<'_>) -> Option<f64> {
        self.is_exact(inner).then(|| inner.fpr_limit()).flatten()
    }

    fn most_memory(&self, inner: Layers<'_>) -> u64 {
        inner.kind.most_memory()
    }
}

/// A piece that a key has cells in.
#[derive(Debug, Clone, Copy)]
struct Stop {
    piece: usize,
    /// The cells of the key in this piece, as a set of their indices.
    cells: u64,
}

/// A table of cells in vertical slices. Cache lines touched per key: up to k.
#[derive(Debug)]
pub(crate) struct Vertical {
    table: Box<dyn CellTable>,
    cut: Cut,
    spec: VerticalSpec,
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
    fn new(table: Box<dyn CellTable>, cut: Cut, spec: VerticalSpec) -> Self {
        let pieces = cut.slices() * cut.pieces();
        Self {
            table,
            cut,
            spec,
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
        // Producers know which slices have failed, and ask none if that decides the key.
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
    fn pieces(&self, path: &[usize]) -> Result<std::ops::Range<usize>, SpecError> {
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
    fn observe_words(&mut self, keys: &[KeyHash], duplicates: &mut [u64]) {
        observe_each(keys, duplicates, |key| self.observe_key(key));
    }

    fn advance_to(&mut self, tick: u64) {
        self.table.advance_to(tick);
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

    fn slices(&self) -> Option<&dyn Sliced> {
        Some(self)
    }

    fn slices_mut(&mut self) -> Option<&mut dyn Sliced> {
        Some(self)
    }
}
