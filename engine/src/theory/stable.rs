//! Stable Bloom filters: the stable point, the decrements that keep a bound, and what is missed at a gap (paper 004, sections 3 and 4).
//!
//! All is for streams in which every cell is equally likely to be set, as in the paper; for others the FPR is lower. Max is the value of a set
//! cell, K the cells of a key, P the cells lowered for each arrival, m the number of cells.

use super::counts::{binomial_at_least, binomial_terms};

/// The share of zero cells that the filter converges to (theorem 3): (1 / (1 + 1 / (P (1/K - 1/m))))^Max.
///
/// Simulations agree within 0.005.
///
/// # Examples
/// ```
/// let zeros = echoless::theory::stable::stable_zeros(4.0, 1, 2, 1 << 20);
/// assert!((zeros - 0.667).abs() < 0.001);
/// ```
#[must_use]
pub fn stable_zeros(decrements: f64, max: u32, hashes: u32, cells: u64) -> f64 {
    let spread = 1.0 / f64::from(hashes) - 1.0 / cells as f64;
    let once = 1.0 / (1.0 + 1.0 / (decrements * spread));
    once.powf(f64::from(max))
}

/// The share of zero cells after so many arrivals from an empty start (theorem 1, equations 1 to 5): from 1 it falls to [`stable_zeros`], and what
/// is left to fall shrinks at least as fast as (1 - K/m)^arrivals (corollary 2, equation 6).
///
/// Simulations agree within 0.005.
///
/// # Examples
/// ```
/// use echoless::theory::stable::{stable_zeros, zeros_after};
/// let cells = 1 << 20;
/// assert_eq!(zeros_after(0, 4.0, 1, 2, cells), 1.0);
/// // One arrival for every ten cells: not yet stable.
/// assert!((zeros_after(cells / 10, 4.0, 1, 2, cells) - 0.850).abs() < 0.001);
/// assert!((zeros_after(10 * cells, 4.0, 1, 2, cells) - stable_zeros(4.0, 1, 2, cells)).abs() < 1e-6);
/// ```
#[must_use]
pub fn zeros_after(arrivals: u64, decrements: f64, max: u32, hashes: u32, cells: u64) -> f64 {
    Cell::of(decrements, max, hashes, cells).zero_after(arrivals)
}

/// One cell: what an arrival does to it.
///
/// Looking back from now, the first arrival that set the cell decides: the cell is zero if Max lowerings are met before it. That sums the series of
/// theorem 1 exactly.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cell {
    /// The probability that an arrival sets it: K/m, or what the keys that have the cell make of it. Above 0, or `lowered` is.
    pub set: f64,
    /// The probability that an arrival lowers it and does not set it.
    pub lowered: f64,
    /// Max: what it is set to.
    pub max: u32,
}

impl Cell {
    /// Any cell of a filter whose cells are all alike.
    #[must_use]
    pub fn of(decrements: f64, max: u32, hashes: u32, cells: u64) -> Self {
        let set = f64::from(hashes) / cells as f64;
        let lowered = (1.0 - set) * decrements / cells as f64;
        Self { set, lowered, max }
    }

    /// How many of the arrivals that change the cell lower it.
    fn lowering_share(&self) -> f64 {
        self.lowered / (self.lowered + self.set)
    }

    /// The probability that it is zero after so many arrivals, if it was zero before them (theorem 1).
    #[must_use]
    pub fn zero_after(&self, arrivals: u64) -> f64 {
        let lowering = self.lowering_share();
        let changed = (self.lowered + self.set).min(1.0);
        // Not zero: the setting is met after j < Max lowerings, so j + 1 arrivals changed the cell at least.
        let (mut taken, mut weight, mut fewer) = (0.0, 1.0 - lowering, 0.0);
        let mut terms = binomial_terms(arrivals, changed);
        for lowerings in 0..u64::from(self.max) {
            let at_least = if changed < 1.0 {
                fewer += terms.next().unwrap_or(0.0);
                (1.0 - fewer).max(0.0)
            } else {
                f64::from(lowerings < arrivals)
            };
            let term = weight * at_least;
            taken += term;
            if term < 1e-17 * taken {
                break;
            }
            weight *= lowering;
        }
        (1.0 - taken).clamp(0.0, 1.0)
    }

    /// The probability that it is zero so many arrivals after it was set (equations 9 to 12): (a / (a + b))^Max P(Binomial(arrivals, a + b) >= Max), b
    /// being `set` and a `lowered`.
    #[must_use]
    pub fn zero_since_set(&self, arrivals: u64) -> f64 {
        let changed = (self.lowered + self.set).min(1.0);
        self.lowering_share().powf(f64::from(self.max))
            * binomial_at_least(self.max, arrivals, changed)
    }
}

/// FPS, the FPR at the stable point and the bound before it (equation 8): (1 - zeros)^K.
///
/// # Examples
/// ```
/// use echoless::theory::stable::stable_point_fpr;
/// // The P = 4 of the paper breaks its bound of 10 %; 5 keeps it.
/// assert!((stable_point_fpr(4.0, 1, 2, 1 << 20) - 0.111).abs() < 0.001);
/// assert!(stable_point_fpr(5.0, 1, 2, 1 << 20) < 0.1);
/// ```
#[must_use]
pub fn stable_point_fpr(decrements: f64, max: u32, hashes: u32, cells: u64) -> f64 {
    (1.0 - stable_zeros(decrements, max, hashes, cells)).powi(hashes as i32)
}

/// P for a given FPS (equation 17), not rounded: rounding up keeps the bound.
///
/// # Examples
/// ```
/// let decrements = echoless::theory::stable::decrements_for(0.1, 1, 2, 1 << 20);
/// assert!((decrements - 4.325).abs() < 0.001);
/// ```
#[must_use]
pub fn decrements_for(fps: f64, max: u32, hashes: u32, cells: u64) -> f64 {
    let spread = 1.0 / f64::from(hashes) - 1.0 / cells as f64;
    let zeros = 1.0 - fps.powf(1.0 / f64::from(hashes));
    1.0 / ((zeros.powf(-1.0 / f64::from(max)) - 1.0) * spread)
}

/// The probability that a duplicate is missed `gap` arrivals after the last arrival of its key (equations 9 to 14).
///
/// Each of the key's cells is as [`Cell::zero_since_set`] has it. Simulations agree within 0.01.
///
/// # Examples
/// ```
/// use echoless::theory::stable::fnr_at_gap;
/// let cells = 1 << 20;
/// assert_eq!(fnr_at_gap(0, 4.0, 1, 2, cells), 0.0);
/// // Far back, a duplicate is found as often as a key never seen.
/// let far = fnr_at_gap(1 << 40, 4.0, 1, 2, cells);
/// let fps = echoless::theory::stable::stable_point_fpr(4.0, 1, 2, cells);
/// assert!((1.0 - far - fps).abs() < 1e-6);
/// ```
#[must_use]
pub fn fnr_at_gap(gap: u64, decrements: f64, max: u32, hashes: u32, cells: u64) -> f64 {
    let zero = Cell::of(decrements, max, hashes, cells).zero_since_set(gap);
    1.0 - (1.0 - zero).powi(hashes as i32)
}

/// The K of 1 to 10 that misses least `gap` arrivals back while FPS is kept, by trial as in section 4 of the paper, which finds that the gap and the
/// memory hardly matter.
///
/// # Examples
/// ```
/// use echoless::theory::stable::best_hashes;
/// assert_eq!(best_hashes(0.1, 1, 1000, 1 << 20), 2);
/// ```
#[must_use]
pub fn best_hashes(fps: f64, max: u32, gap: u64, cells: u64) -> u32 {
    let fnr = |hashes: u32| {
        let decrements = decrements_for(fps, max, hashes, cells);
        fnr_at_gap(gap, decrements, max, hashes, cells)
    };
    (1..=10)
        .min_by(|left, right| fnr(*left).total_cmp(&fnr(*right)))
        .unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filters::Filter;
    use crate::filters::scattered::cells::{Decrement, Lowering, StableSpec, Update};
    use crate::theory::trial::{fnr_at_gap as measured_fnr_at_gap, fresh_keys, probed_fpr};

    fn spec(cell_bits: u32, hashes: u32, decrements: u64, decrement: Decrement) -> StableSpec {
        StableSpec {
            hashes,
            cell_bits,
            lowering: Lowering::Cells(decrements),
            update: Update::Every,
            decrement,
            reach: 1.0,
        }
    }

    #[test]
    fn the_stable_point_is_that_of_the_filter() {
        for decrement in [Decrement::Consecutive, Decrement::Independent] {
            for (bits, hashes, decrements) in [(1, 2, 4), (2, 3, 12), (3, 2, 20)] {
                let bytes = 12_000;
                let filter = spec(bits, hashes, decrements, decrement).build(bytes, 1);
                let mut filter = filter.expect("valid");
                for key in fresh_keys(400_000) {
                    filter.observe_one(key);
                }
                let cells = bytes * 8 / u64::from(bits);
                let max = (1 << bits) - 1;
                let zeros = stable_zeros(decrements as f64, max, hashes, cells);
                assert!(
                    (filter.zeros() - zeros).abs() < 0.005,
                    "{bits} bits: {zeros}"
                );
                let fps = stable_point_fpr(decrements as f64, max, hashes, cells);
                let fpr = probed_fpr(&filter, 200_000);
                assert!((fpr - fps).abs() < 0.005, "{bits} bits: {fpr} for {fps}");
            }
        }
    }

    #[test]
    fn the_zeros_fall_as_computed() {
        for decrement in [Decrement::Consecutive, Decrement::Independent] {
            for (bits, hashes, decrements) in [(1, 2, 4), (2, 3, 12), (3, 2, 20), (4, 1, 1)] {
                let bytes = 24_000;
                let filter = spec(bits, hashes, decrements, decrement).build(bytes, 1);
                let mut filter = filter.expect("valid");
                let (cells, max) = (bytes * 8 / u64::from(bits), (1 << bits) - 1);
                for (key, arrivals) in fresh_keys(4 * cells).zip(1..) {
                    filter.observe_one(key);
                    if [cells / 20, cells / 4, cells, 2 * cells, 4 * cells].contains(&arrivals) {
                        let zeros = zeros_after(arrivals, decrements as f64, max, hashes, cells);
                        assert!(
                            (filter.zeros() - zeros).abs() < 0.005,
                            "{bits} bits, {arrivals} arrivals: {} for {zeros}",
                            filter.zeros()
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn the_convergence_is_that_of_the_paper() {
        let (cells, hashes, decrements) = (300_u64, 2, 5.0);
        for max in [1_u32, 3, 15] {
            let p = decrements / cells as f64;
            let k = f64::from(hashes) / cells as f64;
            let zeros = |arrivals| zeros_after(arrivals, decrements, max, hashes, cells);
            // Equation 1, and the step of equation 6, term by term.
            let tail = |trials: u64| binomial_at_least(max, trials, p);
            let mut expected = 1.0;
            for arrivals in 1..3000 {
                let set_first = k * (1.0 - k).powi(arrivals as i32 - 1);
                expected += set_first * (tail(arrivals - 1) - 1.0);
                assert!(
                    (zeros(arrivals) - expected).abs() < 1e-11,
                    "{max} {arrivals}"
                );
                let left = expected - stable_zeros(decrements, max, hashes, cells);
                assert!(
                    left < (1.0 - k).powi(arrivals as i32) + 1e-9,
                    "{max} {arrivals}"
                );
            }
        }
    }

    #[test]
    fn a_cell_that_every_arrival_changes_is_as_computed() {
        let cell = Cell {
            set: 0.25,
            lowered: 0.75,
            max: 2,
        };
        let expected = [1.0, 0.75, 0.75 * 0.75, 0.75 * 0.75];
        for (arrivals, expected) in (0..).zip(expected) {
            assert!((cell.zero_after(arrivals) - expected).abs() < 1e-12);
        }
        assert_eq!(cell.zero_since_set(1), 0.0);
        assert_eq!(cell.zero_since_set(2), 0.75 * 0.75);
    }

    #[test]
    fn decrements_from_a_bound_keep_it() {
        for fps in [0.2, 0.1, 0.01, 0.001] {
            for max in [1, 3, 7, 15] {
                for hashes in 1..=10 {
                    let exact = decrements_for(fps, max, hashes, 1 << 20);
                    let back = stable_point_fpr(exact, max, hashes, 1 << 20);
                    assert!(
                        (back / fps - 1.0).abs() < 1e-9,
                        "{fps} {max} {hashes}: {back}"
                    );
                    assert!(stable_point_fpr(exact.ceil(), max, hashes, 1 << 20) <= fps);
                }
            }
        }
    }

    #[test]
    fn duplicates_are_missed_as_often_as_computed() {
        for (bits, hashes, decrements) in [(1, 2, 4), (2, 2, 8)] {
            let bytes = 4000;
            let (cells, max) = (bytes * 8 / u64::from(bits), (1 << bits) - 1);
            for gap in [100, 1000, 10_000, 100_000] {
                let filter = spec(bits, hashes, decrements, Decrement::Independent).build(bytes, 5);
                let measured = measured_fnr_at_gap(&mut filter.expect("valid"), gap, 60_000);
                let expected = fnr_at_gap(gap, decrements as f64, max, hashes, cells);
                assert!(
                    (measured - expected).abs() < 0.01,
                    "{bits} bits, gap {gap}: {measured} for {expected}"
                );
            }
        }
    }

    #[test]
    fn the_best_number_of_cells_is_that_of_the_paper() {
        for gap in [100, 5000] {
            for (fps, max, least, most) in [
                (0.2, 1, 1, 2),
                (0.1, 1, 2, 2),
                (0.1, 3, 2, 3),
                (0.01, 3, 4, 5),
            ] {
                let best = best_hashes(fps, max, gap, 100_000);
                assert!(
                    (least..=most).contains(&best),
                    "{fps}, Max {max}, gap {gap}: {best}"
                );
            }
        }
    }

    #[test]
    fn the_sum_of_the_paper_is_the_closed_form() {
        // Equations 9 to 12, term by term.
        let (cells, hashes, decrements, max, gap) = (300.0, 2.0, 5.0, 3_u32, 400_u64);
        let (p, k): (f64, f64) = (decrements / cells, hashes / cells);
        let tail = |trials: u64| binomial_at_least(max, trials, p);
        let sum: f64 = (u64::from(max)..gap)
            .map(|l| tail(l) * (1.0 - k).powi(l as i32) * k)
            .sum();
        let zero = sum + tail(gap) * (1.0 - k).powi(gap as i32);
        let expected = 1.0 - (1.0 - zero).powi(2);
        assert!((fnr_at_gap(gap, 5.0, max, 2, 300) - expected).abs() < 1e-12);
    }
}
