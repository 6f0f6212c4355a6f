//! Slices probed and messages sent for each arrival, with and without pipelining (figure 7(c)).
//!
//! **The paper:** pipelining reduces the slices accessed in a lookup, the more so the fewer
//! duplicates there are, because the first unset bit ends it; without pipelining the mean is at
//! most k.
//!
//! **Here:** the same shape, at 20, 50 and 80 % duplicates. The paper has no formula. With d =
//! min(S, k) slices for each key, k/d bits in each, and fill p, a lookup of a fresh event probes
//! 1 + p^(k/d) + p^(2k/d) + ... slices, d terms, and a duplicate all d. Messages count requests,
//! answers and the settings of fresh events, which the paper's figure leaves out: 2d for a parallel
//! lookup, one more than the slices probed for a pipelined one, d for setting.
//!
//! **Differences:** the k bits of a key lie in k different slices here if there are as many, so the
//! parallel mean is exactly min(S, k); in the paper's filter bits can share a slice, and its mean
//! approaches k from below: S (1 - (1 - 1/S)^k), in the column of printed formulas, although the
//! paper states only the bound k.

use echoless::{FilterSpec, Verdicts};
use echoless_lab::stream::Stream;
use echoless_papers::theory::bloom;

use super::arguments::{Arguments, Part};
use super::inputs::{ARRIVALS, Input, cells_for};
use super::rows::{Row, mean_while_filling, of_settings};
use crate::failure::Failure;

const HASHES: u32 = 4;
const RATE: f64 = 0.05;

/// Divisors and multiples of k: no slice holds a part of a key's range.
const SLICES: [u32; 9] = [1, 2, 4, 8, 20, 40, 60, 80, 100];

/// The streams of the paper, by the percentage of duplicates.
const DUPLICATES: [u32; 3] = [20, 50, 80];

#[derive(Debug, Clone, Copy, PartialEq)]
enum Lookup {
    Horizontal,
    Parallel,
    Pipelined,
}

impl Lookup {
    const ALL: [Self; 3] = [Self::Horizontal, Self::Parallel, Self::Pipelined];

    const fn series(self) -> &'static str {
        match self {
            Self::Horizontal => "horizontal",
            Self::Parallel => "vertical, parallel",
            Self::Pipelined => "vertical, pipelined",
        }
    }

    fn adapter(self, slices: u32) -> String {
        match self {
            Self::Horizontal => format!("horizontal:slices={slices}"),
            Self::Parallel => format!("vertical:slices={slices},probe=parallel"),
            Self::Pipelined => format!("vertical:slices={slices},probe=pipelined"),
        }
    }
}

struct Setting<'a> {
    input: &'a Input,
    duplicates: u32,
    lookup: Lookup,
    slices: u32,
    spec: FilterSpec,
}

impl Setting<'_> {
    /// The expected slices and messages for each arrival, in a filter of these cells.
    fn formulas(&self, cells: u64) -> (f64, f64) {
        let distinct = self.input.distinct.len() as u64;
        let first = distinct as f64 / self.input.arrivals();
        let slices = self.slices.min(HASHES);
        let bits = HASHES / slices;
        let all = f64::from(slices);
        // Of the first arrivals, those that are reported as fresh.
        let fpr = mean_while_filling(distinct, |keys| bloom::fpr(HASHES, keys, cells));
        let set = first * (1.0 - fpr) * all;
        match self.lookup {
            Lookup::Horizontal => (1.0, 2.0),
            Lookup::Parallel => (all, 2.0 * all + set),
            Lookup::Pipelined => {
                let fresh = mean_while_filling(distinct, |keys| {
                    let passed = bloom::fill(HASHES, keys, cells).powi(bits as i32);
                    (0..slices).map(|probe| passed.powi(probe as i32)).sum()
                });
                let probed = first * fresh + (1.0 - first) * all;
                (probed, probed + 1.0 + set)
            }
        }
    }

    fn rows(&self, seed: u64) -> Result<[Row; 2], Failure> {
        let mut filter = self.spec.build()?;
        filter.observe(&self.input.keys(seed), &mut Verdicts::new());
        let cells = filter.tally().cells.ok_or("no cells")?.total;
        let counts = filter.slices().ok_or("no slices")?.counts();
        let (probed, messages) = self.formulas(cells);
        let arrivals = counts.observed as f64;
        let row = |measure, count: u64| Row {
            part: Part::Messages,
            figure: "7(c)",
            stream: self.input.name,
            setting: format!("{} % duplicates", self.duplicates),
            series: self.lookup.series().into(),
            x_name: "slices",
            x: f64::from(self.slices),
            measure,
            measured: count as f64 / arrivals,
            formula: None,
            printed: None,
            trials: None,
        };
        let mut probes = row("slices_probed", counts.probed).checked(probed, arrivals);
        if self.lookup == Lookup::Parallel {
            let slices = f64::from(self.slices);
            let missed = (1.0 - 1.0 / slices).powi(HASHES as i32);
            probes = probes.printed(slices * (1.0 - missed));
        }
        let sent = row("messages", counts.messages).checked(messages, arrivals);
        Ok([probes, sent])
    }
}

/// Slices and messages for each way to look up, by the number of slices.
pub(super) fn rows(arguments: &Arguments, _inputs: &[Input]) -> Result<Vec<Row>, Failure> {
    let streams = DUPLICATES.iter().map(|duplicates| {
        let distinct = 1.0 - f64::from(*duplicates) / 100.0;
        let stream = Stream::with_distinct_fraction(ARRIVALS, distinct)?;
        Ok((
            *duplicates,
            Input::drawn("uniform", &stream, arguments.seed),
        ))
    });
    let streams = streams.collect::<Result<Vec<(u32, Input)>, Failure>>()?;
    let mut settings = Vec::new();
    for (duplicates, input) in &streams {
        let bytes = cells_for(input.distinct.len() as u64, HASHES, RATE) as u64 / 8;
        for lookup in Lookup::ALL {
            for slices in SLICES {
                let adapter = lookup.adapter(slices);
                settings.push(Setting {
                    input,
                    duplicates: *duplicates,
                    lookup,
                    slices,
                    spec: format!("{adapter}/bloom:k={HASHES},memory={bytes}B").parse()?,
                });
            }
        }
    }
    of_settings(&settings, arguments.threads, |setting| {
        setting.rows(arguments.seed)
    })
}
