//! Stable Bloom filters: the stable point, the decrements that keep a bound, and what is missed at
//! a gap (paper 004, sections 3 and 4).
//!
//! Everything is for streams in which every cell is equally likely to be set, as in the paper; for
//! others the FPR is lower. Max is the value of a set cell, K the number of cells of a key, P the
//! number of cells decremented for each arrival, m the number of cells.

use echoless::extend::binomial;

/// The fraction of zero cells that the filter converges to (theorem 3):
/// (1 / (1 + 1 / (P (1/K - 1/m))))^Max.
///
/// Simulations agree within 0.005.
///
/// # Examples
/// ```
/// let zeros = echoless_papers::theory::stable::stable_zeros(4.0, 1, 2, 1 << 20);
/// assert!((zeros - 0.667).abs() < 0.001);
/// ```
#[must_use]
pub fn stable_zeros(decrements: f64, max: u32, hashes: u32, cells: u64) -> f64 {
    let once = 1.0 / (1.0 + 1.0 / (decrements * spread(hashes, cells)));
    once.powf(f64::from(max))
}

/// 1/K - 1/m, the factor of P in theorem 3 and equation 17.
fn spread(hashes: u32, cells: u64) -> f64 {
    1.0 / f64::from(hashes) - 1.0 / cells as f64
}

/// The fraction of zero cells after `arrivals` from an empty start (theorem 1, equations 1 to 5).
///
/// It falls from 1 to [`stable_zeros`]; the distance shrinks at least as fast as (1 - K/m)^arrivals
/// (corollary 2, equation 6). Simulations agree within 0.005.
///
/// # Examples
/// ```
/// use echoless_papers::theory::stable::{stable_zeros, zeros_after};
/// let cells = 1 << 20;
/// assert_eq!(zeros_after(0, 4.0, 1, 2, cells), 1.0);
/// // One arrival for every ten cells: not yet stable.
/// assert!((zeros_after(cells / 10, 4.0, 1, 2, cells) - 0.850).abs() < 0.001);
/// let stable = stable_zeros(4.0, 1, 2, cells);
/// assert!((zeros_after(10 * cells, 4.0, 1, 2, cells) - stable).abs() < 1e-6);
/// ```
#[must_use]
pub fn zeros_after(arrivals: u64, decrements: f64, max: u32, hashes: u32, cells: u64) -> f64 {
    Cell::new(decrements, max, hashes, cells).zero_after(arrivals)
}

/// One cell: the effect of an arrival on it.
///
/// Seen backwards from now, the last arrival that set the cell decides: the cell is zero if at
/// least Max arrivals decremented it since. Summed over that arrival, this is the series of theorem
/// 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cell {
    /// The probability that an arrival sets the cell: K/m, or the rate of the keys that map to it.
    /// Not both this and `decremented` are 0.
    pub set: f64,
    /// The probability that an arrival decrements the cell and does not set it.
    pub decremented: f64,
    /// Max: the value of a set cell.
    pub max: u32,
}

impl Cell {
    /// A cell of a filter whose `cells` are all equally likely to be set.
    #[must_use]
    pub fn new(decrements: f64, max: u32, hashes: u32, cells: u64) -> Self {
        let set = f64::from(hashes) / cells as f64;
        let decremented = (1.0 - set) * decrements / cells as f64;
        Self {
            set,
            decremented,
            max,
        }
    }

    /// The fraction of the arrivals that change the cell which decrement it.
    fn decremented_fraction(&self) -> f64 {
        self.decremented / (self.decremented + self.set)
    }

    /// The probability that an arrival changes the cell.
    fn changed(&self) -> f64 {
        (self.decremented + self.set).min(1.0)
    }

    /// The probability that the cell is zero after `arrivals`, if it was zero before them
    /// (theorem 1).
    #[must_use]
    pub fn zero_after(&self, arrivals: u64) -> f64 {
        let decremented = self.decremented_fraction();
        let changed = self.changed();
        // The cell is not zero if it was set and then decremented j < Max times, so if at least j +
        // 1 arrivals changed it, of which the last j decremented it and the one before set it.
        let (mut nonzero, mut weight, mut fewer) = (0.0, 1.0 - decremented, 0.0);
        let mut terms = binomial::terms(arrivals, changed);
        for decrements in 0..u64::from(self.max) {
            let at_least = if changed < 1.0 {
                fewer += terms.next().unwrap_or(0.0);
                (1.0 - fewer).max(0.0)
            } else {
                f64::from(decrements < arrivals)
            };
            let term = weight * at_least;
            nonzero += term;
            // The terms only shrink: the rest is below the rounding of the sum.
            if term < 1e-17 * nonzero {
                break;
            }
            weight *= decremented;
        }
        (1.0 - nonzero).clamp(0.0, 1.0)
    }

    /// The probability that the cell is zero `arrivals` after it was set (equations 9 to 12):
    /// (a / (a + b))^Max P(Binomial(arrivals, a + b) >= Max), a being `decremented` and b `set`.
    #[must_use]
    pub fn zero_since_set(&self, arrivals: u64) -> f64 {
        let all_decremented = self.decremented_fraction().powf(f64::from(self.max));
        all_decremented * binomial::at_least(self.max, arrivals, self.changed())
    }
}

/// FPS, the FPR at the stable point, which bounds the FPR before it (equation 8): (1 - zeros)^K.
///
/// # Examples
/// ```
/// use echoless_papers::theory::stable::stable_point_fpr;
/// // The P = 4 of the paper exceeds its bound of 10 %; 5 keeps it.
/// assert!((stable_point_fpr(4.0, 1, 2, 1 << 20) - 0.111).abs() < 0.001);
/// assert!(stable_point_fpr(5.0, 1, 2, 1 << 20) < 0.1);
/// ```
#[must_use]
pub fn stable_point_fpr(decrements: f64, max: u32, hashes: u32, cells: u64) -> f64 {
    (1.0 - stable_zeros(decrements, max, hashes, cells)).powi(hashes as i32)
}

/// P for a given FPS (equation 17), not rounded; rounding up keeps the bound.
///
/// # Examples
/// ```
/// let decrements = echoless_papers::theory::stable::decrements_for(0.1, 1, 2, 1 << 20);
/// assert!((decrements - 4.325).abs() < 0.001);
/// ```
#[must_use]
pub fn decrements_for(fps: f64, max: u32, hashes: u32, cells: u64) -> f64 {
    let zeros = 1.0 - fps.powf(1.0 / f64::from(hashes));
    1.0 / ((zeros.powf(-1.0 / f64::from(max)) - 1.0) * spread(hashes, cells))
}

/// The probability that a duplicate is missed `gap` arrivals after the last arrival of its key
/// (equations 9 to 14).
///
/// Each of the key's cells is zero with the probability [`Cell::zero_since_set`]. Simulations agree
/// within 0.01.
///
/// # Examples
/// ```
/// use echoless_papers::theory::stable::fnr_at_gap;
/// let cells = 1 << 20;
/// assert_eq!(fnr_at_gap(0, 4.0, 1, 2, cells), 0.0);
/// // Far back, a duplicate is found as often as an unseen key.
/// let far = fnr_at_gap(1 << 40, 4.0, 1, 2, cells);
/// let fps = echoless_papers::theory::stable::stable_point_fpr(4.0, 1, 2, cells);
/// assert!((1.0 - far - fps).abs() < 1e-6);
/// ```
#[must_use]
pub fn fnr_at_gap(gap: u64, decrements: f64, max: u32, hashes: u32, cells: u64) -> f64 {
    let zero = Cell::new(decrements, max, hashes, cells).zero_since_set(gap);
    1.0 - (1.0 - zero).powi(hashes as i32)
}

/// The K of 1 to 10 that misses the fewest duplicates `gap` arrivals back while FPS is kept, by
/// trial as in section 4 of the paper, which finds that gap and memory hardly matter.
///
/// # Examples
/// ```
/// use echoless_papers::theory::stable::best_hashes;
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

    #[test]
    fn the_convergence_is_that_of_the_paper() {
        let (cells, hashes, decrements) = (300_u64, 2, 5.0);
        for max in [1_u32, 3, 15] {
            let p = decrements / cells as f64;
            let k = f64::from(hashes) / cells as f64;
            let zeros = |arrivals| zeros_after(arrivals, decrements, max, hashes, cells);
            // Equation 1, and the step of equation 6, term by term.
            let tail = |trials: u64| binomial::at_least(max, trials, p);
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
            decremented: 0.75,
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
        let tail = |trials: u64| binomial::at_least(max, trials, p);
        let sum: f64 = (u64::from(max)..gap)
            .map(|l| tail(l) * (1.0 - k).powi(l as i32) * k)
            .sum();
        let zero = sum + tail(gap) * (1.0 - k).powi(gap as i32);
        let expected = 1.0 - (1.0 - zero).powi(2);
        assert!((fnr_at_gap(gap, 5.0, max, 2, 300) - expected).abs() < 1e-12);
    }
}
