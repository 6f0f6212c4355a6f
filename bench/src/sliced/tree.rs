//! Bloom trees: hits and accesses of each level, and top-down testing (table 1 and figure 12).
//!
//! **The paper:** in two levels, a dense tree finds most duplicates at the leaves and a sparse one
//! at the root; a sparse tree has more accesses, because a fresh event is tested and set in each
//! level. In five levels the dense tree resolves most arrivals at the lower levels. Top-down
//! testing to level 2 removes nearly all of the false positives that it can.
//!
//! **Here:** the same shapes on all streams: a dense tree finds more at the leaves and has fewer
//! accesses than a sparse one. The paper has no formulas for this; those of
//! [`theory::tree`](echoless_papers::theory::tree) hold for producers drawn independently of the events.
//! The access log has more hits at the leaves than they expect, by its locality. The false
//! positives of top-down testing follow [`sparse_fpr`](echoless_papers::theory::tree::sparse_fpr).
//!
//! **Differences:** the paper does not state how many nodes its trees have. Here two levels have 16
//! leaves, and five have three children for each node, 81 leaves. Producers are dealt to the leaves
//! in turn. Level 0 is the root.

use echoless::{Filter, FilterSpec, Verdict};
use echoless_papers::theory::{bloom, tree};
use echoless_papers::{BloomTree, TreeMode, TreeSpec};

use super::arguments::{Arguments, Part};
use super::inputs::{Input, cells_for};
use super::rows::{Row, mean_while_filling, of_settings};
use crate::failure::Failure;

const HASHES: u32 = 4;
/// The trees of table 1 and of figure 12: levels, and children of a node.
const SHAPES: [(u32, u32); 2] = [(2, 16), (5, 3)];
/// The rate of a node with all events, for hits and accesses. The formulas leave false positives
/// out.
const LOW_RATE: f64 = 0.001;
/// The same for top-down testing.
const HIGH_RATE: f64 = 0.08;
const MODES: [(&str, TreeMode); 2] = [("sparse", TreeMode::Sparse), ("dense", TreeMode::Dense)];

#[derive(Clone, Copy)]
struct Setting<'a> {
    input: &'a Input,
    levels: u32,
    fanout: u32,
    name: &'static str,
    mode: TreeMode,
    /// The level of top-down testing, if that is measured.
    topdown: Option<u32>,
}

/// Hits and accesses of a level, for each arrival.
#[derive(Debug, Clone, Copy, Default)]
struct Level {
    hits: f64,
    accesses: f64,
}

impl Setting<'_> {
    /// The bytes of a node that holds all events at this rate.
    fn bytes(&self, rate: f64) -> u64 {
        let cells = cells_for(self.input.distinct.len() as u64, HASHES, rate);
        (cells / 8.0).ceil() as u64
    }

    /// Runs a new tree over the stream. Returns it, and the false positives.
    fn run(&self, bytes: u64, seed: u64) -> Result<(BloomTree<Box<dyn Filter>>, u64), Failure> {
        let spec = TreeSpec::new(self.levels, self.fanout)
            .mode(self.mode)
            .topdown(self.topdown.unwrap_or(0));
        let node: FilterSpec =
            echoless_papers::parse(&format!("bloom:k={HASHES},memory={bytes}B"))?;
        let mut tree = BloomTree::new(spec, |_level| node.build())?;
        let hashes = self.input.hashes(seed);
        let mut seen = vec![false; hashes.len()];
        let mut wrong = 0;
        for (event, producer) in self.input.events.iter().zip(&self.input.producers) {
            let event = *event as usize;
            let verdict = tree.observe_from(*producer as usize, hashes[event]);
            let is_repeat = std::mem::replace(&mut seen[event], true);
            if is_repeat && verdict == Verdict::Fresh {
                return Err(format!("{} tree: missed a duplicate", self.name).into());
            }
            wrong += u64::from(!is_repeat && verdict == Verdict::Duplicate);
        }
        Ok((tree, wrong))
    }

    /// The expected hits and accesses of a level for each arrival, if producers are drawn uniformly
    /// and independently of the events.
    fn expected(&self, level: u32) -> Level {
        let (levels, fanout, arrivals) = (self.levels, self.fanout, self.input.arrivals());
        let counts = || self.input.counts.iter().copied().filter(|count| *count > 0);
        let distinct = self.input.distinct.len() as f64;
        if self.mode == TreeMode::Sparse {
            return Level {
                hits: (1.0 - distinct / arrivals) * tree::hit(levels, fanout, level, 1),
                accesses: tree::sparse_accesses(levels, fanout, level, distinct / arrivals),
            };
        }
        let accesses =
            |count: u64| count as f64 * tree::dense_accesses(levels, fanout, level, count);
        // Every arrival before has left a copy.
        let hits = |count: u64| {
            let repeats = (1..count).map(|copies| tree::hit(levels, fanout, level, copies));
            repeats.sum::<f64>()
        };
        Level {
            hits: counts().map(hits).sum::<f64>() / arrivals,
            accesses: counts().map(accesses).sum::<f64>() / arrivals,
        }
    }

    fn row(&self, figure: &'static str, x_name: &'static str, x: u32) -> Row {
        Row {
            part: Part::Tree,
            figure,
            stream: self.input.name,
            setting: format!("{} levels", self.levels),
            series: self.name.into(),
            x_name,
            x: f64::from(x),
            measure: "",
            measured: 0.0,
            formula: None,
            printed: None,
            trials: None,
        }
    }

    /// Hits and accesses of all levels.
    fn level_rows(&self, seed: u64) -> Result<Vec<Row>, Failure> {
        let (tree, _) = self.run(self.bytes(LOW_RATE), seed)?;
        let arrivals = self.input.arrivals();
        let (hits_figure, accesses_figure) = if self.levels == 2 {
            ("table 1", "table 1")
        } else {
            ("12(a)", "12(b)")
        };
        let mut rows = Vec::new();
        for (level, counts) in (0..).zip(tree.counts()) {
            let expected = self.expected(level);
            for (figure, measure, count, formula) in [
                (hits_figure, "hits", counts.hits, expected.hits),
                (
                    accesses_figure,
                    "accesses",
                    counts.accesses,
                    expected.accesses,
                ),
            ] {
                let row = Row {
                    measure,
                    measured: count as f64 / arrivals,
                    ..self.row(figure, "level", level)
                };
                rows.push(if self.input.is_drawn {
                    row.checked(formula, arrivals)
                } else {
                    row.formula(formula)
                });
            }
        }
        Ok(rows)
    }

    /// The false positives with top-down testing to a level.
    fn topdown_row(&self, topdown: u32, seeds: std::ops::Range<u64>) -> Result<Row, Failure> {
        let bytes = self.bytes(HIGH_RATE);
        let distinct = self.input.distinct.len() as u64;
        let trials = (seeds.end - seeds.start) as f64 * distinct as f64;
        let (mut wrong, mut cells) = (0, 0);
        for seed in seeds {
            let (tree, more) = self.run(bytes, seed)?;
            wrong += more;
            let root = tree.nodes()[0].tally();
            cells = root.cells.map_or(0, |cells| cells.total);
        }
        let row = Row {
            measure: "fpr",
            measured: wrong as f64 / trials,
            ..self.row("12(c)", "topdown", topdown)
        };
        let nodes = u64::from(self.fanout.pow(topdown));
        let single = || mean_while_filling(distinct, |keys| bloom::fpr(HASHES, keys, cells));
        let sparse = || {
            let rate = |keys| tree::sparse_fpr(HASHES, keys, cells, nodes);
            mean_while_filling(distinct, rate)
        };
        Ok(if topdown == 0 {
            row.checked(single(), trials)
        } else if self.mode == TreeMode::Dense {
            // A node of a dense tree holds as many events as the order of the arrivals decides.
            row
        } else if self.input.is_drawn {
            row.checked(sparse(), trials)
        } else {
            // Producers of the log are not spread evenly.
            row.formula(sparse())
        })
    }
}

/// Hits and accesses of both trees, and the false positives of the deeper one.
pub(super) fn rows(arguments: &Arguments, inputs: &[Input]) -> Result<Vec<Row>, Failure> {
    let mut settings = Vec::new();
    for input in inputs {
        for (levels, fanout) in SHAPES {
            for (name, mode) in MODES {
                let setting = Setting {
                    input,
                    levels,
                    fanout,
                    name,
                    mode,
                    topdown: None,
                };
                settings.push(setting);
                let depths = if levels == 5 { 0..levels } else { 0..0 };
                settings.extend(depths.map(|level| Setting {
                    topdown: Some(level),
                    ..setting
                }));
            }
        }
    }
    of_settings(&settings, arguments.threads, |setting| {
        match setting.topdown {
            None => setting.level_rows(arguments.seed),
            Some(level) => setting
                .topdown_row(level, arguments.few_seeds())
                .map(|row| vec![row]),
        }
    })
}
