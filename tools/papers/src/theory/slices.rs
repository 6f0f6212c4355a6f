//! Sliced filters (paper 001, sections 3.2 and 3.3): error rates while slices have failed, and the
//! balance of load.

use echoless::extend::poisson;

/// f failed slices of S. A key needs one horizontal slice, or k vertical ones that fail
/// independently: exact if the keys are spread over all slices, and for a table in which cell i of
/// every key has a range of its own, if the same fraction of each range has failed.
///
/// For diced filters S is the number of all pieces (the paper's equation 7 prints f/S where its
/// text has f/(S S')).
///
/// # Examples
/// ```
/// use echoless_papers::theory::slices::Failures;
/// let failures = Failures::new(8, 40);
/// // A fifth of the keys are taken for duplicates, and 1 % of the others.
/// assert!((failures.horizontal_fpr(0.01) - 0.208).abs() < 1e-12);
/// // In vertical slices such a key needs a failed or set cell eight times.
/// assert!(failures.vertical_fpr(8, 0.5) < 0.02);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Failures {
    fraction: f64,
}

impl Failures {
    /// `failed` of `slices` slices.
    #[must_use]
    pub fn new(failed: u64, slices: u64) -> Self {
        Self {
            fraction: failed as f64 / slices as f64,
        }
    }

    /// f/S.
    #[must_use]
    pub const fn fraction(self) -> f64 {
        self.fraction
    }

    /// The FPR of horizontal slices whose keys count as duplicates: f/S + (1 - f/S) p, p being that
    /// of a slice (equation 5).
    #[must_use]
    pub fn horizontal_fpr(self, fpr: f64) -> f64 {
        self.fraction + self.horizontal_fpr_as_fresh(fpr)
    }

    /// The FPR of horizontal slices whose keys count as fresh: (1 - f/S) p. Their
    /// [FNR](Self::horizontal_fnr) is f/S.
    #[must_use]
    pub fn horizontal_fpr_as_fresh(self, fpr: f64) -> f64 {
        (1.0 - self.fraction) * fpr
    }

    /// The FNR of horizontal slices whose keys count as fresh: f/S. As duplicates it is 0.
    #[must_use]
    pub const fn horizontal_fnr(self) -> f64 {
        self.fraction
    }

    /// The FPR of vertical slices whose missing cells count as set: (f/S + (1 - f/S) fill)^k
    /// (equation 6). The FNR is 0.
    #[must_use]
    pub fn vertical_fpr(self, hashes: u32, fill: f64) -> f64 {
        self.repaired_fpr(hashes, 0, fill)
    }

    /// The FPR of vertical slices where a key with a missing cell is fresh: ((1 - f/S) fill)^k.
    #[must_use]
    pub fn vertical_fpr_as_fresh(self, hashes: u32, fill: f64) -> f64 {
        self.repaired_fpr(hashes, hashes, fill)
    }

    /// The FNR of vertical slices where a key with a missing cell is fresh: 1 - (1 - f/S)^k, which
    /// is the paper's sum of C(k, i) (f/S)^i (1 - f/S)^(k - i) over i from 1 to k.
    #[must_use]
    pub fn vertical_fnr_as_fresh(self, hashes: u32) -> f64 {
        self.hybrid_fnr(hashes, hashes)
    }

    /// The FPR of the paper's heuristic, a duplicate having at least x set live cells: the
    /// probability of x or more successes in k trials, each with q = (1 - f/S) fill.
    ///
    /// The paper prints q^x, which is right for x = k only: it counts no choice of the x cells and
    /// so is too low for all others. `fill` is that of the live slices: the heuristic takes keys
    /// for duplicates, and does not record them, before any slice fails.
    #[must_use]
    pub fn hybrid_fpr(self, hashes: u32, least: u32, fill: f64) -> f64 {
        let set = (1.0 - self.fraction) * fill;
        let term = |set_cells| term(hashes, set_cells, set, 1.0 - set);
        (least..=hashes).map(term).sum()
    }

    /// The FNR of the heuristic, in both forms: the probability that fewer than x cells are live,
    /// the sum of C(k, i) (f/S)^i (1 - f/S)^(k - i) over i from k - x + 1 to k. 1 if x is above k.
    #[must_use]
    pub fn hybrid_fnr(self, hashes: u32, least: u32) -> f64 {
        let term = |failed| term(hashes, failed, self.fraction, 1.0 - self.fraction);
        ((hashes + 1).saturating_sub(least)..=hashes)
            .map(term)
            .sum()
    }

    /// The FPR of the repaired heuristic, a duplicate having all live cells set and at least x of
    /// them: the sum of C(k, i) ((1 - f/S) fill)^i (f/S)^(k - i) over i from x to k.
    ///
    /// With x = 0 it is that of [missing cells that count as set](Self::vertical_fpr), with x = k
    /// that of [keys that are fresh without one](Self::vertical_fpr_as_fresh).
    #[must_use]
    pub fn repaired_fpr(self, hashes: u32, least: u32, fill: f64) -> f64 {
        let set = (1.0 - self.fraction) * fill;
        let term = |live| term(hashes, live, set, self.fraction);
        (least..=hashes).map(term).sum()
    }
}

/// C(n, i) p^i q^(n - i).
fn term(count: u32, successes: u32, success: f64, failure: f64) -> f64 {
    let choices: f64 = (0..successes)
        .map(|index| f64::from(count - index) / f64::from(index + 1))
        .product();
    choices * success.powi(successes as i32) * failure.powi((count - successes) as i32)
}

/// The FPR of horizontal slices once `keys` distinct keys are in S = `slices` Bloom filters of
/// `bits`/S bits, k each in ranges of their own: that of a slice, averaged over the Poisson number
/// of keys in it. It grows with S, because slices fill unevenly.
///
/// The paper's equation 4 takes n/S keys in every slice, which hides this: by it the FPR is that of
/// the undivided filter up to terms of S/m. Simulations agree within 5 %.
///
/// # Examples
/// ```
/// use echoless_papers::theory::{bloom, slices::horizontal_fpr};
/// let whole = bloom::fpr(4, 5000, 40_000);
/// let [few, many] = [10, 100].map(|slices| horizontal_fpr(4, 5000, 40_000, slices));
/// assert!(few < 1.02 * whole && many > 1.05 * whole);
/// ```
#[must_use]
pub fn horizontal_fpr(hashes: u32, keys: u64, bits: u64, slices: u64) -> f64 {
    let ln_unset = (-f64::from(hashes) * slices as f64 / bits as f64).ln_1p();
    poisson::mean_of(keys as f64 / slices as f64, |keys| {
        (-(ln_unset * keys as f64).exp_m1()).powi(hashes as i32)
    })
}

/// The fairness of loads: (sum x)^2 / (S sum x^2), 1 if all are equal and 1/S if one slice has all
/// of it (paper 001, section 7, figure 5). 1 if there is no load.
///
/// # Examples
/// ```
/// use echoless_papers::theory::slices::{fairness, largest_fraction};
/// assert_eq!(fairness(&[5, 5, 5, 5]), 1.0);
/// assert_eq!(fairness(&[0, 8, 0, 0]), 0.25);
/// assert_eq!(largest_fraction(&[1, 2, 1]), 0.5);
/// ```
#[must_use]
pub fn fairness(loads: &[u64]) -> f64 {
    let sum: f64 = loads.iter().map(|load| *load as f64).sum();
    let squares: f64 = loads.iter().map(|load| (*load as f64).powi(2)).sum();
    if squares == 0.0 {
        return 1.0;
    }
    sum.powi(2) / (loads.len() as f64 * squares)
}

/// The fraction of all load that the most loaded slice has; 0 if there is no load.
#[must_use]
pub fn largest_fraction(loads: &[u64]) -> f64 {
    let sum: u64 = loads.iter().sum();
    let largest = loads.iter().max().copied().unwrap_or(0);
    largest as f64 / sum.max(1) as f64
}
