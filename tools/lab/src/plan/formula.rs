//! The error rates over a whole stream of uniform draws, integrated from the formulas of
//! [`echoless::theory`].
//!
//! The stream is N draws from U keys. The n-th distinct key probes a filter that holds n - 1 keys,
//! so the FPR over the stream is a mean over n. The expected number of duplicates whose key last
//! arrived g arrivals before is (N - g) e^(-g/U) / U, so the FNR is a mean over these gaps.

use echoless::FilterSpec;
use echoless::theory::RateModel;
use echoless::theory::poisson;
use echoless_papers::theory::bloom::{fpr, line_fpr};
use echoless_papers::theory::stable::Cell;

use super::goal::EQUAL_HASHES;
use super::prediction::Rates;

/// The error rates of a filter on `records` uniform draws from `universe` keys; `None` if there is
/// no formula for the filter in its form.
///
/// There are formulas for Bloom filters in both forms, and for scattered stable Bloom filters that
/// update on every arrival, with any tracked fraction. Simulations agree within 3 % or 0.1
/// percentage points. The FPR includes fresh keys whose 64-bit hash is that of an earlier key.
///
/// # Examples
/// ```
/// use echoless_lab::plan::uniform_rates;
/// // One hash: the FPR rises as 1 - e^-x, where x is keys per bit. It ends at x = 1.893, after
/// // 15.9 million distinct keys in 2^23 bits, and the FPR of the stream is the mean up to there.
/// let bloom = echoless_papers::parse("bloom:k=1,memory=1MiB")?;
/// let rates = uniform_rates(&bloom, 16e6, 1e9).unwrap();
/// assert!((rates.fpr - (1.0 - (1.0 - (-1.893_f64).exp()) / 1.893)).abs() < 0.001);
/// assert_eq!(rates.fnr, 0.0);
/// assert_eq!(uniform_rates(&echoless_papers::parse("rlbsbf:k=2,memory=1MiB")?, 16e6, 1e9), None);
/// # Ok::<(), echoless::SpecError>(())
/// ```
#[must_use]
pub fn uniform_rates(spec: &FilterSpec, records: f64, universe: f64) -> Option<Rates> {
    // The filter observes the stream of the tracked keys only.
    let tracked = spec.tracked.get();
    let stream = Uniform {
        records: records * tracked,
        universe: universe * tracked,
    };
    let inner = match spec.facts().rate_model? {
        RateModel::Bloom { hashes, bits } => Rates {
            fpr: stream.bloom_fpr(|keys| fpr(hashes, keys, bits)),
            fnr: 0.0,
        },
        RateModel::LineBloom { hashes, bits } => Rates {
            fpr: stream.bloom_fpr(|keys| line_fpr(hashes, keys, bits / 512)),
            fnr: 0.0,
        },
        RateModel::Stable {
            hashes,
            max,
            decrements,
            cells,
        } => stream.stable_rates(hashes, max, decrements as f64, cells as f64),
    };
    // A filter stores hashes, not keys: a fresh key also is a false positive if one of the keys
    // before it has the same hash, and on average half of the distinct keys come before. A
    // stable filter has forgotten some of them, so for it this part is an upper bound; it matters
    // only where the filter is nearly empty, and there it forgets next to nothing.
    let equal_hash = 0.5 * stream.distinct() * EQUAL_HASHES;
    Some(Rates {
        fpr: tracked * (inner.fpr + (1.0 - inner.fpr) * equal_hash),
        fnr: 1.0 - tracked * (1.0 - inner.fnr),
    })
}

/// A stream of N uniform draws from U keys. Both can be fractions, because they are expectations.
#[derive(Debug, Clone, Copy)]
struct Uniform {
    records: f64,
    universe: f64,
}

impl Uniform {
    /// The expected number of distinct keys: U (1 - e^(-N/U)).
    fn distinct(self) -> f64 {
        -self.universe * (-self.records / self.universe).exp_m1()
    }

    /// The FPR over the stream of a filter that never evicts: the mean of `fpr(n)` over the numbers
    /// n of distinct keys that it holds in turn.
    fn bloom_fpr(self, fpr: impl Fn(u64) -> f64) -> f64 {
        mean(|keys| fpr(keys.round() as u64), self.distinct())
    }

    fn stable_rates(self, hashes: u32, max: u32, decrements: f64, cells: f64) -> Rates {
        let cells = StableCells::new(self, hashes, max, decrements, cells);
        let hashes = hashes as i32;
        // The FPR is a mean over arrivals, weighted by the probability that the arrival is fresh.
        let weight = |arrivals: f64| (-arrivals / self.universe).exp();
        let fpr = mean(
            |arrivals| weight(arrivals) * cells.nonzero_after(arrivals).powi(hashes),
            self.records,
        );
        // Integrate over the cube root of the gap, because the integrand changes fastest at short
        // gaps: equal steps of the root are short steps of a short gap. d(gap) = 3 root^2 d(root).
        let root = self.records.cbrt();
        let density = |gap: f64| (self.records - gap) * (-gap / self.universe).exp();
        let over_gaps = |value: &dyn Fn(f64) -> f64| {
            mean(
                |root| {
                    let gap = root.powi(3);
                    3.0 * root * root * density(gap) * value(gap)
                },
                root,
            )
        };
        // A duplicate is found if none of its K cells became zero since its key set them.
        let found = |gap: f64| (1.0 - cells.zero_since_set(gap)).powi(hashes);
        Rates {
            fpr: fpr / mean(weight, self.records),
            fnr: 1.0 - over_gaps(&found) / over_gaps(&|_| 1.0),
        }
    }
}

/// The cells of a stable Bloom filter, grouped by how often they are set. Each group has the
/// fraction of the cells in it.
///
/// How often a cell is set depends on how many keys of the universe map to it: a Poisson number of
/// mean K U / m.
struct StableCells(Vec<(Cell, f64)>);

impl StableCells {
    fn new(stream: Uniform, hashes: u32, max: u32, decrements: f64, cells: f64) -> Self {
        let mean = f64::from(hashes) * stream.universe / cells;
        // Six deviations on both sides of the mean, and 6 for small means. About 25 groups cover
        // this range.
        let spread = 6.0 * mean.sqrt() + 6.0;
        let (low, high) = ((mean - spread).max(0.0).floor(), (mean + spread).ceil());
        let step = ((high - low) / 24.0).ceil().max(1.0);
        let keys = (0..).map(|number| low + step * f64::from(number));
        let weighted: Vec<(f64, f64)> = keys
            .take_while(|keys| *keys <= high)
            .map(|keys| (keys, poisson::probability(mean, keys as u64)))
            .collect();
        // The groups skip numbers of keys, so their weights are normalised.
        let total: f64 = weighted.iter().map(|(_, weight)| weight).sum();
        let cell = |keys: f64| {
            let set = (keys / stream.universe).min(1.0);
            Cell {
                set,
                decremented: (1.0 - set) * decrements / cells,
                max,
            }
        };
        Self(
            weighted
                .into_iter()
                .map(|(keys, weight)| (cell(keys), weight / total))
                .collect(),
        )
    }

    /// The expected fill after `arrivals` at an empty filter.
    fn nonzero_after(&self, arrivals: f64) -> f64 {
        1.0 - self.mean(|cell| cell.zero_after(arrivals.round() as u64))
    }

    /// The fraction of the cells that are zero `gap` arrivals after they were set.
    fn zero_since_set(&self, gap: f64) -> f64 {
        self.mean(|cell| cell.zero_since_set(gap.round() as u64))
    }

    /// The mean of `value` over all cells.
    fn mean(&self, value: impl Fn(&Cell) -> f64) -> f64 {
        let weighted = self.0.iter();
        weighted.map(|(cell, weight)| weight * value(cell)).sum()
    }
}

/// The mean of `value` over 0 to `end`, by Simpson's rule.
fn mean(value: impl Fn(f64) -> f64, end: f64) -> f64 {
    const STEPS: u32 = 128;
    let at = |step: u32| value(end * f64::from(step) / f64::from(STEPS));
    let inner: f64 = (1..STEPS)
        .map(|step| at(step) * if step % 2 == 1 { 4.0 } else { 2.0 })
        .sum();
    (at(0) + inner + at(STEPS)) / (3.0 * f64::from(STEPS))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluate::{EvalOptions, evaluate};
    use crate::stream::Stream;

    #[test]
    fn formulas_agree_with_simulations() {
        let texts = [
            "bloom:k=1",
            "bloom:k=2",
            "bloom:k=4",
            "bloom:k=2,tracked=0.7",
            "bloom:k=1,form=line",
            "bloom:k=3,form=line",
            "bloom:k=4,form=line,tracked=0.9",
            "sbf:k=2,p=4",
            "sbf:k=2,p=4,tracked=0.8",
            "sbf:k=3,d=2,fps=0.05",
            "sbf:k=1,d=3,fps=0.2",
            "sbf:k=2,p=20,decrement=independent",
        ];
        for fraction in [0.15, 0.6, 0.9] {
            for memory in [64 << 10, 256 << 10] {
                let stream = Stream::with_distinct_fraction(1_600_000, fraction).unwrap();
                let specs: Vec<FilterSpec> = texts
                    .iter()
                    .map(|text| echoless_papers::parse(text).unwrap().memory(memory))
                    .collect();
                let measured = evaluate(&specs, &stream, &EvalOptions::default(), &|_| ()).unwrap();
                for (spec, measured) in specs.iter().zip(measured) {
                    let expected = uniform_rates(spec, 1.6e6, stream.universe() as f64).unwrap();
                    let score = measured.score;
                    for (name, expected, measured) in [
                        ("FPR", expected.fpr, score.fpr()),
                        ("FNR", expected.fnr, score.fnr()),
                    ] {
                        let error = (measured - expected).abs();
                        assert!(
                            error <= (0.03 * expected).max(0.001),
                            "{spec} on {stream}: {name} is {measured}, expected {expected}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn no_rate_is_below_that_of_equal_hashes() {
        for text in [
            "bloom:k=24,memory=1GiB",
            "bloom:k=24,form=line,memory=64GiB",
            "sbf:k=3,d=2,fps=0.001,memory=1TiB",
        ] {
            let spec: FilterSpec = echoless_papers::parse(text).unwrap();
            let few = uniform_rates(&spec, 4.0, 4.0).unwrap().fpr;
            assert!((2f64.powi(-64)..1e-19).contains(&few), "{text}: {few}");
            // A million distinct keys: on average 500,000 come before a fresh one.
            let many = uniform_rates(&spec, 1e6, 1e12).unwrap().fpr;
            let expected = 0.5e6 * 2f64.powi(-64);
            assert!((expected * 0.999..1e-12).contains(&many), "{text}: {many}");
        }
    }

    #[test]
    fn filters_without_a_formula_have_no_rates() {
        for text in [
            "bsbf:k=2,memory=1KiB",
            "sbf:k=2,p=4,update=distinct,memory=1KiB",
            "sbf:k=2,p=4,reach=0.5,memory=1KiB",
            "sbf:k=2,p=4,form=line,memory=1KiB",
            "bloom:k=2",
        ] {
            let spec: FilterSpec = echoless_papers::parse(text).unwrap();
            assert_eq!(uniform_rates(&spec, 1e6, 1e6), None, "{text}");
        }
    }

    #[test]
    fn no_row_filter_exceeds_its_fpr_limit() {
        let texts = [
            "qht:slots=2,bits=5",
            "qqht:slots=4,bits=6",
            "rowlru:slots=4,bits=5",
            "cuckoo:slots=4,bits=7",
            "qht:slots=64,bits=8,form=line",
            "qqht:slots=64,bits=8,form=line",
            "rowlru:slots=64,bits=8,form=line",
        ];
        let specs: Vec<FilterSpec> = texts
            .iter()
            .map(|text| echoless_papers::parse(text).unwrap().memory(16 << 10))
            .collect();
        let stream = Stream::with_distinct_fraction(1_600_000, 0.9).unwrap();
        let measured = evaluate(&specs, &stream, &EvalOptions::default(), &|_| ()).unwrap();
        for (spec, measured) in specs.iter().zip(measured) {
            let (limit, fpr) = (spec.facts().fpr_limit.unwrap(), measured.score.fpr());
            // Three standard deviations of a million samples.
            assert!(fpr < limit + 0.0015, "{spec}: {fpr} above {limit}");
            assert!(fpr > 0.9 * limit, "{spec}: {fpr} far below {limit}");
        }
    }

    #[test]
    fn the_fpr_limit_of_wide_slots_in_lines_is_that_of_the_hash() {
        let limit = |text: &str| echoless_papers::parse(text).unwrap().facts().fpr_limit;
        for (memory, bits_left) in [("64B", 64), ("1MiB", 50), ("1GiB", 40)] {
            let text = format!("rowlru:slots=8,bits=64,form=line,memory={memory}");
            assert_eq!(limit(&text), Some(8.0 / 2_f64.powi(bits_left)));
        }
        // Of the 256 values of 8 bits, 1 also stands for 0.
        let narrow = limit("qqht:slots=64,bits=8,form=line,memory=1KiB");
        assert_eq!(narrow, Some(64.0 * 258.0 / 65_536.0));
        assert_eq!(limit("qht:slots=8,bits=16,form=scattered"), None);
    }
}
