//! The interval of a rate that was counted.

use serde::Serialize;

/// The probability, at most, that a rate lies above its interval, and that it lies below.
const DOUBT: f64 = 1e-3;

/// The lowest and the highest rate that a count allows.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interval {
    /// The lower end, 0 to 1.
    pub low: f64,
    /// The upper end, 0 to 1.
    pub high: f64,
}

impl Interval {
    /// All rates: nothing is known.
    pub const ALL: Self = Self {
        low: 0.0,
        high: 1.0,
    };

    /// The interval of one rate, which is known.
    #[must_use]
    pub const fn exact(rate: f64) -> Self {
        Self {
            low: rate,
            high: rate,
        }
    }

    /// The rates of which `errors` errors in `arrivals` arrivals are not too few and not too many:
    /// a rate above the interval has so few errors, or fewer, with a probability of at most 0.001,
    /// and a rate below it so many, or more.
    ///
    /// By the bound of Chernoff and Hoeffding (Hoeffding 1963, theorem 1), for n arrivals of which
    /// the fraction p is wrong: P(fraction <= a) <= e^(-n KL(a || p)) if a <= p, where KL(a || p)
    /// is the divergence of two biased coins. It holds for any counts, without approximation, and
    /// without errors it is exact: the upper end is then 1 - 0.001^(1/n).
    ///
    /// # Examples
    /// ```
    /// use echoless_lab::plan::Interval;
    /// let none = Interval::counted(0, 10_000);
    /// assert_eq!(none.low, 0.0);
    /// assert!((none.high - 6.9e-4).abs() < 1e-5);
    /// let some = Interval::counted(100, 10_000);
    /// assert!((some.low - 0.0067).abs() < 1e-4 && (some.high - 0.0142).abs() < 1e-4);
    /// assert_eq!(Interval::counted(0, 0), Interval::ALL);
    /// ```
    #[must_use]
    pub fn counted(errors: u64, arrivals: u64) -> Self {
        if arrivals == 0 {
            return Self::ALL;
        }
        let fraction = errors as f64 / arrivals as f64;
        let most = -DOUBT.ln() / arrivals as f64;
        // The divergence increases away from the fraction, on both sides.
        let end = |mut inside: f64, mut outside: f64| {
            for _ in 0..60 {
                let middle = 0.5 * (inside + outside);
                if divergence(fraction, middle) <= most {
                    inside = middle;
                } else {
                    outside = middle;
                }
            }
            outside
        };
        Self {
            low: if errors == 0 { 0.0 } else { end(fraction, 0.0) },
            high: if errors >= arrivals {
                1.0
            } else {
                end(fraction, 1.0)
            },
        }
    }

    /// The part of the interval up to `limit`, which the rate is known not to exceed.
    #[must_use]
    pub fn up_to(self, limit: f64) -> Self {
        Self {
            low: self.low.min(limit),
            high: self.high.min(limit),
        }
    }
}

/// KL(a || p) of two biased coins, in nats.
fn divergence(a: f64, p: f64) -> f64 {
    let term = |a: f64, p: f64| if a == 0.0 { 0.0 } else { a * (a / p).ln() };
    term(a, p) + term(1.0 - a, 1.0 - p)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// P(Binomial(n, p) <= most), term by term, as logarithms: the first may underflow.
    fn at_most(most: u64, n: u64, p: f64) -> f64 {
        let mut term = n as f64 * (-p).ln_1p();
        let mut sum = 0.0;
        for successes in 0..=most {
            sum += term.exp();
            term += ((n - successes) as f64 / (successes + 1) as f64 * p / (1.0 - p)).ln();
        }
        sum
    }

    #[test]
    fn rates_outside_the_interval_rarely_give_the_count() {
        for n in [1, 7, 50, 400, 3000] {
            for errors in [0, 1, 2, 5, 9, 10, 33, n / 2, n - 1, n] {
                if errors > n {
                    continue;
                }
                let Interval { low, high } = Interval::counted(errors, n);
                let fraction = errors as f64 / n as f64;
                assert!(low <= fraction && fraction <= high, "{errors} of {n}");
                if high < 1.0 {
                    let few = at_most(errors, n, high);
                    // The bound is not wider than it must be: within a factor of 30.
                    assert!(few <= DOUBT * 1.000_001, "{errors} of {n}: {few}");
                    assert!(few >= DOUBT / 30.0, "{errors} of {n}: {few}");
                }
                if low > 0.0 {
                    let many = 1.0 - at_most(errors - 1, n, low);
                    assert!(many <= DOUBT * 1.000_001, "{errors} of {n}: {many}");
                    assert!(many >= DOUBT / 30.0, "{errors} of {n}: {many}");
                }
            }
        }
    }

    #[test]
    fn long_counts_narrow_the_interval() {
        let width = |errors, n| {
            let interval = Interval::counted(errors, n);
            interval.high - interval.low
        };
        for (errors, n) in [(0, 100), (10, 100), (100, 100)] {
            assert!(width(100 * errors, 100 * n) < 0.15 * width(errors, n));
        }
        assert_eq!(Interval::counted(3, 10).up_to(0.01).high, 0.01);
    }
}
