//! Sums over Poisson and binomial counts, which the formulas of several families come down to.

/// The mean of `value` over a Poisson count of this mean. `value` is 0 to 1, does not fall as the count rises, and is log-concave where it is not 0, so
/// that the terms rise to one peak and fall.
///
/// No term cancels another: the smallest of results is as exact as the largest.
pub(super) fn poisson_mean(mean: f64, value: impl Fn(u64) -> f64) -> f64 {
    // Eight deviations below the mean is one case in 10^15.
    let first = (mean - 8.0 * mean.sqrt()).floor().max(0.0) as u64;
    if value(first) == 1.0 {
        return 1.0;
    }
    let mut probability = poisson_probability(mean, first);
    let mut sum = 0.0;
    let mut count = first;
    loop {
        let term = probability * value(count);
        sum += term;
        let past = count as f64 > mean;
        if past && (probability == 0.0 || sum > 0.0 && term < 1e-17 * sum) {
            return f64::min(sum, 1.0);
        }
        count += 1;
        probability *= mean / count as f64;
    }
}

fn poisson_probability(mean: f64, count: u64) -> f64 {
    if count == 0 {
        return (-mean).exp();
    }
    let count = count as f64;
    (count * mean.ln() - mean - ln_factorial(count)).exp()
}

/// ln(n!), by Stirling's series past the first few.
fn ln_factorial(n: f64) -> f64 {
    if n < 16.0 {
        return (2..=n as u32).map(|factor| f64::from(factor).ln()).sum();
    }
    let turn = 2.0 * std::f64::consts::PI;
    n * n.ln() - n + 0.5 * (turn * n).ln() + 1.0 / (12.0 * n) - 1.0 / (360.0 * n.powi(3))
}

/// P(Binomial(trials, probability) = 0), = 1, = 2 and so on, without end; `probability` is below 1.
pub(super) fn binomial_terms(trials: u64, probability: f64) -> impl Iterator<Item = f64> {
    // The first terms underflow once trials * probability passes 745; they go on in logarithms until one does not.
    const SMALL: f64 = -600.0;
    let odds = probability / (1.0 - probability);
    let mut logarithm = trials as f64 * (-probability).ln_1p();
    let mut term = logarithm.exp();
    (0_u64..).map(move |successes| {
        let current = term;
        let left = trials.saturating_sub(successes) as f64;
        let growth = odds * left / (successes + 1) as f64;
        if logarithm < SMALL {
            logarithm += growth.ln();
            term = logarithm.exp();
        } else {
            term *= growth;
        }
        current
    })
}

/// P(Binomial(trials, probability) >= least).
pub(super) fn binomial_at_least(least: u32, trials: u64, probability: f64) -> f64 {
    if probability >= 1.0 {
        return f64::from(trials >= u64::from(least));
    }
    let below: f64 = binomial_terms(trials, probability)
        .take(least as usize)
        .sum();
    (1.0 - below).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn poisson_means_are_known_ones() {
        for mean in [0.0, 1e-9, 0.3, 1.0, 17.0, 100.0, 2000.0, 1e6] {
            // 1 - q^count, by the generating function.
            let value = |count: u64| -(-0.001 * count as f64).exp_m1();
            let expected = -(-mean * -(-0.001_f64).exp_m1()).exp_m1();
            let computed = poisson_mean(mean, value);
            let error = (computed - expected).abs();
            assert!(
                error <= 1e-9 * expected,
                "{mean}: {computed} for {expected}"
            );
        }
        assert_eq!(poisson_mean(1e19, |count| f64::from(count > 64)), 1.0);
        // A tail far above the mean: the first term is nearly all of it.
        let tail = poisson_mean(0.01, |count| f64::from(count >= 20));
        let first = (-0.01_f64).exp() * 0.01_f64.powi(20) / 2_432_902_008_176_640_000.0;
        assert!((tail / first - 1.0).abs() < 1e-3, "{tail} for {first}");
    }

    #[test]
    fn binomial_sums_are_known_ones() {
        let terms: Vec<f64> = binomial_terms(4, 0.5).take(7).collect();
        for (term, expected) in terms.iter().zip([1.0, 4.0, 6.0, 4.0, 1.0, 0.0, 0.0]) {
            assert!((term * 16.0 - expected).abs() < 1e-12, "{terms:?}");
        }
        assert!((binomial_at_least(3, 4, 0.5) - 5.0 / 16.0).abs() < 1e-12);
        assert_eq!(binomial_at_least(3, 2, 0.5), 0.0);
        assert_eq!(binomial_at_least(2, 2, 1.0), 1.0);
        // The normal limit, where the first terms underflow.
        let half = binomial_at_least(10_000, 1_000_000, 0.01);
        assert!((half - 0.5).abs() < 0.005, "{half}");
    }

    #[test]
    fn factorials() {
        assert_eq!(ln_factorial(0.0), 0.0);
        let exact: f64 = (1..=20).map(|factor| f64::from(factor).ln()).sum();
        assert!((ln_factorial(20.0) - exact).abs() < 1e-9);
    }
}
