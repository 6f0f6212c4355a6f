//! False positives by number of slices (figures 5(a), 7(a) and 7(b)).
//!
//! **The paper:** vertical slices keep the rate of the undivided filter at any number of slices;
//! horizontal ones have the more false positives, the more slices there are, for which it gives the
//! uneven slices and the small range of the hashes as reasons.
//!
//! **Here:** the same shape on all streams. Equation 4 takes equally full slices and misses it; the
//! rate averaged over the Poisson number of keys in a slice
//! ([`horizontal_fpr`](echoless_papers::theory::slices::horizontal_fpr)) has it, so unevenness explains
//! all of it. Diced filters: h-v has the rate of its horizontal slices alone, as the paper states.
//! v-h has that of the undivided filter: here each vertical slice chooses a piece with a hash of
//! its own, so a key does not meet k equally overfull pieces.
//!
//! **Differences:** the paper's filter sizes fit its k = 4 and its distinct events only with its
//! misprints corrected (14,300 is 143,000, for about 16,900 events); ours follow from the events of
//! each stream. The rate is that of all first arrivals while the filter fills, as in the paper, and
//! the formula is averaged in the same way. Repeats are always found and change nothing, so only
//! the first of the runs observes them.

use echoless::{Filter, FilterSpec, KeyHash, Verdicts};
use echoless_papers::theory::bloom;
use echoless_papers::theory::slices::horizontal_fpr;

use super::arguments::{Arguments, Part};
use super::inputs::{Input, cells_for};
use super::rows::{Row, mean_while_filling, of_settings};
use super::slicing::{DICE, Slicing};
use crate::failure::Failure;

const HASHES: u32 = DICE as u32;

/// The rates that the paper sizes its filters for.
const RATES: [f64; 3] = [0.02, 0.05, 0.08];

const SLICES: [u64; 9] = [1, 2, 5, 10, 20, 40, 60, 80, 100];

/// What one thread measures.
struct Setting<'a> {
    input: &'a Input,
    rate: f64,
    slicing: Slicing,
    slices: u64,
    spec: FilterSpec,
}

impl<'a> Setting<'a> {
    fn new(input: &'a Input, rate: f64, slicing: Slicing, slices: u64) -> Result<Self, Failure> {
        let adapters = slicing.adapters(slices);
        let cells = cells_for(input.distinct.len() as u64, HASHES, rate);
        let bytes = (cells / 8.0).ceil();
        Ok(Self {
            input,
            rate,
            slicing,
            slices,
            spec: format!("{adapters}/bloom:k={HASHES},memory={bytes}B").parse()?,
        })
    }

    /// The rate of a filter of these cells with so many keys, averaged until it has all of them.
    fn formula(&self, cells: u64) -> f64 {
        let slices = match self.slicing {
            Slicing::Horizontal => self.slices,
            Slicing::HorizontalVertical => self.slices / DICE,
            Slicing::Vertical | Slicing::VerticalHorizontal => 1,
        };
        mean_while_filling(self.input.distinct.len() as u64, |keys| {
            if slices == 1 {
                bloom::fpr(HASHES, keys, cells)
            } else {
                horizontal_fpr(HASHES, keys, cells, slices)
            }
        })
    }

    /// Equations 3 and 4, and those of the diced filters.
    fn printed(&self, cells: u64) -> f64 {
        let slices = match self.slicing {
            Slicing::Vertical => 1.0,
            Slicing::HorizontalVertical => (self.slices / DICE) as f64,
            Slicing::Horizontal | Slicing::VerticalHorizontal => self.slices as f64,
        };
        let k = f64::from(HASHES);
        mean_while_filling(self.input.distinct.len() as u64, |keys| {
            let unset = (1.0 - slices / cells as f64).powf(k * keys as f64 / slices);
            (1.0 - unset).powf(k)
        })
    }

    fn row(&self, seeds: std::ops::Range<u64>) -> Result<Row, Failure> {
        let input = self.input;
        let (mut wrong, mut cells) = (0, 0);
        let trials = (seeds.end - seeds.start) as f64 * input.distinct.len() as f64;
        for (run, seed) in seeds.enumerate() {
            let mut filter = self.spec.build()?;
            let hashes = input.hashes(seed);
            wrong += if run == 0 {
                self.whole_stream(&mut *filter, &input.keys(seed))?
            } else {
                let firsts = input.distinct.iter().map(|event| hashes[*event as usize]);
                let firsts: Vec<KeyHash> = firsts.collect();
                let mut verdicts = Verdicts::new();
                filter.observe(&firsts, &mut verdicts);
                verdicts.count_duplicates()
            };
            cells = filter.tally().cells.map_or(0, |cells| cells.total);
        }
        let row = Row {
            part: Part::Fpr,
            figure: if input.is_drawn { "7(a), 7(b)" } else { "5(a)" },
            stream: input.name,
            setting: format!("Pfp {}", self.rate),
            series: self.slicing.name().into(),
            x_name: "slices",
            x: self.slices as f64,
            measure: "fpr",
            measured: wrong as f64 / trials,
            formula: None,
            printed: None,
            trials: None,
        };
        let row = row.printed(self.printed(cells));
        Ok(row.checked(self.formula(cells), trials))
    }

    /// The false positives among all arrivals.
    fn whole_stream(&self, filter: &mut dyn Filter, keys: &[KeyHash]) -> Result<u64, Failure> {
        let mut verdicts = Verdicts::new();
        filter.observe(keys, &mut verdicts);
        let mut seen = vec![false; self.input.counts.len()];
        let mut wrong = 0;
        for (index, event) in self.input.events.iter().enumerate() {
            let duplicate = verdicts.is_duplicate(index);
            let is_repeat = std::mem::replace(&mut seen[*event as usize], true);
            if is_repeat && !duplicate {
                return Err(format!("{}: missed a duplicate", self.spec).into());
            }
            wrong += u64::from(duplicate && !is_repeat);
        }
        Ok(wrong)
    }
}

/// The rate of each way to slice, for each stream and size.
pub(super) fn rows(arguments: &Arguments, inputs: &[Input]) -> Result<Vec<Row>, Failure> {
    let mut settings = Vec::new();
    for input in inputs {
        for rate in RATES {
            for slicing in Slicing::ALL {
                let slices = SLICES.iter().filter(|slices| slicing.divides(**slices));
                for slices in slices {
                    settings.push(Setting::new(input, rate, slicing, *slices)?);
                }
            }
        }
    }
    of_settings(&settings, arguments.threads, |setting| {
        setting.row(arguments.seeds()).map(|row| [row])
    })
}
