//! Stable Bloom filters: the stable point, the decrements that keep a bound, and a cell over time
//! (paper 004, sections 3 and 4).
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_convergence_is_that_of_the_paper() {
        let (cells, hashes, decrements) = (300_u64, 2, 5.0);
        for max in [1_u32, 3, 15] {
            let p = decrements / cells as f64;
            let k = f64::from(hashes) / cells as f64;
            let cell = Cell::new(decrements, max, hashes, cells);
            let zeros = |arrivals| cell.zero_after(arrivals);
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
    fn the_sum_of_the_paper_is_the_closed_form() {
        // Equations 9 to 12, term by term.
        let (cells, hashes, decrements, max, gap) = (300.0, 2.0, 5.0, 3_u32, 400_u64);
        let (p, k): (f64, f64) = (decrements / cells, hashes / cells);
        let tail = |trials: u64| binomial::at_least(max, trials, p);
        let sum: f64 = (u64::from(max)..gap)
            .map(|l| tail(l) * (1.0 - k).powi(l as i32) * k)
            .sum();
        let zero = sum + tail(gap) * (1.0 - k).powi(gap as i32);
        let cell = Cell::new(5.0, max, 2, 300);
        assert!((cell.zero_since_set(gap) - zero).abs() < 1e-12);
    }
}
