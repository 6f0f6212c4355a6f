//! Poisson counts: how many keys fall on one line, row or cell when keys are spread at random.

/// The probability of exactly `count` for a Poisson variable of this mean.
#[must_use]
pub fn probability(mean: f64, count: u64) -> f64 {
    if count == 0 {
        return (-mean).exp();
    }
    let count = count as f64;
    (count * mean.ln() - mean - ln_factorial(count)).exp()
}

/// The probability of `least` or more for a Poisson variable of this mean.
///
/// The tail is summed term by term, so that a tiny one keeps its digits.
#[must_use]
pub fn at_least(mean: f64, least: u64) -> f64 {
    mean_of(mean, |count| f64::from(count >= least))
}

/// The mean of `min(count, cap)` for a Poisson count of this mean.
///
/// # Examples
/// ```
/// use echoless::theory::poisson::mean_capped;
/// // Few keys a row: nearly all of them find a slot. Many: every row is full.
/// assert!((mean_capped(0.5, 64) - 0.5).abs() < 1e-12);
/// assert!((mean_capped(500.0, 8) - 8.0).abs() < 1e-12);
/// ```
#[must_use]
pub fn mean_capped(mean: f64, cap: u32) -> f64 {
    let mut term = (-mean).exp();
    let mut shortfall = 0.0;
    for count in 0..cap {
        shortfall += term * f64::from(cap - count);
        term *= mean / f64::from(count + 1);
    }
    f64::from(cap) - shortfall
}

/// The mean of `value` over a Poisson count of this mean.
///
/// `value` is 0 to 1, tends to 1, does not fall as the count rises, and is log-concave where it is
/// not 0, so that the terms rise to one peak and fall. No term cancels another: a tiny result is as
/// exact as a large one.
pub fn mean_of(mean: f64, value: impl Fn(u64) -> f64) -> f64 {
    if !mean.is_finite() {
        return mean.clamp(0.0, 1.0);
    }
    // Eight deviations below the mean is one case in 10^15.
    let first = (mean - 8.0 * mean.sqrt()).floor().max(0.0) as u64;
    if value(first) == 1.0 {
        return 1.0;
    }
    let mut weight = probability(mean, first);
    let mut sum = 0.0;
    let mut count = first;
    loop {
        let term = weight * value(count);
        sum += term;
        // Past the mean the weights fall. The sum ends where they underflow, or where a term is
        // less than the rounding of the sum.
        let past = count as f64 > mean;
        if past && (weight == 0.0 || sum > 0.0 && term < 1e-17 * sum) {
            return f64::min(sum, 1.0);
        }
        count += 1;
        weight *= mean / count as f64;
    }
}

/// ln(n!): exact below 16, then by Stirling's series.
fn ln_factorial(n: f64) -> f64 {
    if n < 16.0 {
        return (2..=n as u32).map(|factor| f64::from(factor).ln()).sum();
    }
    let tau = 2.0 * std::f64::consts::PI;
    n * n.ln() - n + 0.5 * (tau * n).ln() + 1.0 / (12.0 * n) - 1.0 / (360.0 * n.powi(3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_match_the_generating_function() {
        for mean in [0.0, 1e-9, 0.3, 1.0, 17.0, 100.0, 2000.0, 1e6] {
            // 1 - q^count has a closed form.
            let value = |count: u64| -(-0.001 * count as f64).exp_m1();
            let expected = -(-mean * -(-0.001_f64).exp_m1()).exp_m1();
            let computed = mean_of(mean, value);
            let error = (computed - expected).abs();
            assert!(
                error <= 1e-9 * expected,
                "{mean}: {computed}, expected {expected}"
            );
        }
    }

    #[test]
    fn tails_match_known_values() {
        assert!((at_least(1.0, 1) - (1.0 - (-1_f64).exp())).abs() < 1e-12);
        assert!((at_least(2.0, 3) - 0.323_323_583_816_936).abs() < 1e-12);
        assert_eq!(at_least(0.0, 1), 0.0);
        assert_eq!((at_least(1.0, 0), probability(0.0, 0)), (1.0, 1.0));
        for mean in [1e19, f64::MAX, f64::INFINITY] {
            assert_eq!(at_least(mean, 65), 1.0, "{mean}");
        }
        // A tail far above the mean: the first term is nearly all of it.
        let tail = at_least(0.01, 20);
        let first = (-0.01_f64).exp() * 0.01_f64.powi(20) / 2_432_902_008_176_640_000.0;
        assert!(
            (tail / first - 1.0).abs() < 1e-3,
            "{tail}, expected {first}"
        );
    }

    #[test]
    fn tails_are_what_the_lower_terms_leave() {
        for mean in [0.1, 1.0, 7.5, 64.0, 200.0] {
            for least in [1, 4, 8, 64, 300] {
                let below: f64 = (0..least).map(|count| probability(mean, count)).sum();
                let tail = at_least(mean, least);
                assert!((tail + below - 1.0).abs() < 1e-9, "{mean} {least}: {tail}");
            }
        }
    }

    #[test]
    fn capped_means_match_known_values() {
        assert!((mean_capped(0.5, 64) - 0.5).abs() < 1e-12);
        assert!((mean_capped(500.0, 8) - 8.0).abs() < 1e-12);
        assert!((mean_capped(1.0, 1) - (1.0 - (-1_f64).exp())).abs() < 1e-12);
    }

    #[test]
    fn factorials_match_the_product() {
        assert_eq!(ln_factorial(0.0), 0.0);
        let exact: f64 = (1..=20).map(|factor| f64::from(factor).ln()).sum();
        assert!((ln_factorial(20.0) - exact).abs() < 1e-9);
    }
}
