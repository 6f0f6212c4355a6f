//! Binomial counts: single terms and tails.

/// P(Binomial(trials, probability) = 0), = 1, = 2 and so on, without end; `probability` is below 1.
pub fn terms(trials: u64, probability: f64) -> impl Iterator<Item = f64> {
    // The first terms underflow once trials * probability passes 745 (e^-745 is the least f64).
    // Below e^-600 the recurrence runs on logarithms, until a term is large enough.
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
pub fn at_least(least: u32, trials: u64, probability: f64) -> f64 {
    if probability >= 1.0 {
        return f64::from(trials >= u64::from(least));
    }
    let below: f64 = terms(trials, probability).take(least as usize).sum();
    (1.0 - below).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_and_tails_match_known_values() {
        let computed: Vec<f64> = terms(4, 0.5).take(7).collect();
        for (term, expected) in computed.iter().zip([1.0, 4.0, 6.0, 4.0, 1.0, 0.0, 0.0]) {
            assert!((term * 16.0 - expected).abs() < 1e-12, "{computed:?}");
        }
        assert!((at_least(3, 4, 0.5) - 5.0 / 16.0).abs() < 1e-12);
        assert_eq!(at_least(3, 2, 0.5), 0.0);
        assert_eq!(at_least(2, 2, 1.0), 1.0);
        // The normal limit, where the first terms underflow.
        let half = at_least(10_000, 1_000_000, 0.01);
        assert!((half - 0.5).abs() < 0.005, "{half}");
    }
}
