//! How evenly the slices share the load (figures 5(b), 5(c) and 8).
//!
//! **The paper:** fairness (sum x)^2 / (S sum x^2) falls with the number of slices for horizontal
//! ones under skew, and much less for vertical ones; the largest share stays far above 1/S for
//! horizontal slices, and vertical ones are close to it.
//!
//! **Here:** the same shapes. The paper has no formula. Let Q be the probability that two arrivals
//! are of one event. With each event in one of S slices the expected sum of squares is
//! N^2 (Q (1 - 1/S) + 1/S), so fairness is about 1 / (1 + (S - 1) Q). Vertical slices are k
//! groups of S/k, in each of which an event has one slice: 1 / (1 + (S/k - 1) Q). The largest
//! share is at least that of the slice of the most frequent event, with share q:
//! q + (1 - q)/S, or (q + (1 - q) k/S)/k for vertical slices. It is a bound, so it
//! is shown and not compared; the paper's optimum, 1/S, is in the column of printed formulas.
//!
//! **Differences:** in the paper's vertical filter the k bits of a key can lie in one slice; here
//! each has a range of its own, which is fairer, as k slices always share an event. The slices of
//! diced v-h filters (4 vertical ones of S/4 pieces) have the load of as many vertical ones.

use echoless::{FilterSpec, Verdicts};
use echoless_papers::theory::slices::{fairness, largest_fraction};

use super::arguments::{Arguments, Part};
use super::inputs::{Input, cells_for};
use super::rows::{Row, of_settings};
use super::slicing::{DICE, Slicing};
use crate::failure::Failure;

const HASHES: u64 = DICE;

/// Multiples of k, so that each bit of a key has as many slices.
const SLICES: [u64; 7] = [4, 8, 20, 40, 60, 80, 100];

/// Those whose slices count their own loads down to the last piece.
const SLICINGS: [Slicing; 3] = [
    Slicing::Horizontal,
    Slicing::Vertical,
    Slicing::VerticalHorizontal,
];

struct Setting<'a> {
    input: &'a Input,
    slicing: Slicing,
    slices: u64,
    spec: FilterSpec,
}

impl Setting<'_> {
    /// The slices among which one slice is chosen for an event, and how often that is done.
    fn choices(&self) -> (f64, f64) {
        let slices = self.slices as f64;
        match self.slicing {
            Slicing::Horizontal => (slices, 1.0),
            Slicing::Vertical | Slicing::VerticalHorizontal => {
                (slices / HASHES as f64, HASHES as f64)
            }
            // Each horizontal slice has the load of its events, k times.
            Slicing::HorizontalVertical => (slices / HASHES as f64, 1.0),
        }
    }

    fn rows(&self, seeds: std::ops::Range<u64>) -> Result<[Row; 2], Failure> {
        let runs = (seeds.end - seeds.start) as f64;
        let (mut evenness, mut largest) = (0.0, 0.0);
        for seed in seeds {
            let mut filter = self.spec.build()?;
            filter.observe(&self.input.keys(seed), &mut Verdicts::new());
            let slices = filter.slices().ok_or("no slices")?;
            evenness += fairness(slices.loads()) / runs;
            largest += largest_fraction(slices.loads()) / runs;
        }
        let input = self.input;
        let (slices, groups) = self.choices();
        let expected = 1.0 / (1.0 + (slices - 1.0) * input.skew());
        let most = input.counts.iter().max().copied().unwrap_or(0) as f64 / input.arrivals();
        let hottest = (most + (1.0 - most) / slices) / groups;
        let row = |figure, measure, measured| Row {
            part: Part::Fairness,
            figure,
            stream: input.name,
            setting: "all arrivals".into(),
            series: self.slicing.name().into(),
            x_name: "slices",
            x: self.slices as f64,
            measure,
            measured,
            formula: None,
            printed: None,
            trials: None,
        };
        let (b, c) = if input.is_drawn {
            ("8", "8")
        } else {
            ("5(b)", "5(c)")
        };
        Ok([
            row(b, "fairness", evenness).checked(expected, input.arrivals()),
            row(c, "largest_share", largest)
                .formula(hottest)
                .printed(1.0 / self.slices as f64),
        ])
    }
}

/// Fairness and largest share for each way to slice and each stream.
pub(super) fn rows(arguments: &Arguments, inputs: &[Input]) -> Result<Vec<Row>, Failure> {
    let mut settings = Vec::new();
    for input in inputs {
        // The loads do not depend on the size.
        let bytes = cells_for(input.distinct.len() as u64, HASHES as u32, 0.05) as u64 / 8;
        for slicing in SLICINGS {
            for slices in SLICES {
                let adapters = slicing.adapters(slices);
                settings.push(Setting {
                    input,
                    slicing,
                    slices,
                    spec: format!("{adapters}/bloom:k={HASHES},memory={bytes}B").parse()?,
                });
            }
        }
    }
    of_settings(&settings, arguments.threads, |setting| {
        setting.rows(arguments.few_seeds())
    })
}
