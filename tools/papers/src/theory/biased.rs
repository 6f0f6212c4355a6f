//! The fill of bit filters that clear bits as they set them: BSBF, BSBFSD, RLBSBF, and RSBF as
//! tabled (paper 000).
//!
//! p is the fill, k the number of filters, s the bits of one filter. A fresh key is mistaken for a
//! duplicate with probability p^k. Otherwise, in each filter, it sets its bit if that bit is zero,
//! and clears a set bit with probability rho:
//!
//! | algorithm | rho |
//! |---|---|
//! | BSBF | p |
//! | BSBFSD | p / k |
//! | RLBSBF | p^2 |
//!
//! So each fresh arrival changes the fill by dp = ((1 - p) - (1 - p^k) rho) / s. This is the closed
//! form of paper 000's dynamics. The paper claims that the fill of BSBF and RLBSBF tends to 1 for
//! k >= 2; the closed form shows that it does not.
//!
//! RSBF is here as its printed tables compute it: every arrival is inserted with probability
//! min(1, s/i). Its phases as described have no closed form here.

/// The fill that BSBF with `hashes` filters tends to on an endless stream of fresh keys.
///
/// The FPR tends to its k-th power. Simulations agree within 0.01.
///
/// # Examples
/// ```
/// use echoless_papers::theory::biased::bsbf_fill_limit;
/// let fill = bsbf_fill_limit(2);
/// assert!((fill - 0.618).abs() < 0.001 && (fill.powi(2) - 0.382).abs() < 0.001);
/// ```
#[must_use]
pub fn bsbf_fill_limit(hashes: u32) -> f64 {
    fixed_point(hashes, bsbf_clearing)
}

/// The fill that BSBFSD with `hashes` filters tends to on an endless stream of fresh keys.
///
/// Simulations agree within 0.01.
///
/// # Examples
/// ```
/// assert_eq!(echoless_papers::theory::biased::bsbfsd_fill_limit(2), 1.0);
/// ```
#[must_use]
pub fn bsbfsd_fill_limit(hashes: u32) -> f64 {
    fixed_point(hashes, bsbfsd_clearing)
}

/// The fill that RLBSBF with `hashes` filters tends to on an endless stream of fresh keys.
///
/// Simulations agree within 0.01.
///
/// # Examples
/// ```
/// let fill = echoless_papers::theory::biased::rlbsbf_fill_limit(2);
/// assert!((fill - 0.755).abs() < 0.001);
/// ```
#[must_use]
pub fn rlbsbf_fill_limit(hashes: u32) -> f64 {
    fixed_point(hashes, rlbsbf_clearing)
}

/// The fill that RSBF as tabled tends to on an endless stream of fresh keys, for any k.
pub const RSBF_FILL_LIMIT: f64 = 0.5;

/// The fill of BSBF after `arrivals` fresh keys, with `hashes` filters of `size` bits.
///
/// By numerical integration of the dynamics. Simulations agree within 0.01.
///
/// # Examples
/// ```
/// use echoless_papers::theory::biased::{bsbf_fill_after, bsbf_fill_limit};
/// let fill = bsbf_fill_after(2, 1000, 100_000);
/// assert!((fill - bsbf_fill_limit(2)).abs() < 0.001);
/// ```
#[must_use]
pub fn bsbf_fill_after(hashes: u32, size: u64, arrivals: u64) -> f64 {
    integrate(hashes, size, arrivals, bsbf_clearing)
}

/// The fill of BSBFSD after `arrivals` fresh keys, with `hashes` filters of `size` bits.
///
/// By numerical integration of the dynamics. Simulations agree within 0.01.
#[must_use]
pub fn bsbfsd_fill_after(hashes: u32, size: u64, arrivals: u64) -> f64 {
    integrate(hashes, size, arrivals, bsbfsd_clearing)
}

/// The fill of RLBSBF after `arrivals` fresh keys, with `hashes` filters of `size` bits.
///
/// By numerical integration of the dynamics. Simulations agree within 0.01.
#[must_use]
pub fn rlbsbf_fill_after(hashes: u32, size: u64, arrivals: u64) -> f64 {
    integrate(hashes, size, arrivals, rlbsbf_clearing)
}

/// The fill of RSBF as tabled after `arrivals` fresh keys, with filters of `size` bits, for any k.
///
/// Simulations agree within 0.01.
///
/// # Examples
/// ```
/// use echoless_papers::theory::biased::{RSBF_FILL_LIMIT, rsbf_fill_after};
/// assert_eq!(rsbf_fill_after(1000, 0), 0.0);
/// assert!((rsbf_fill_after(1000, 100_000) - RSBF_FILL_LIMIT).abs() < 1e-4);
/// ```
#[must_use]
pub fn rsbf_fill_after(size: u64, arrivals: u64) -> f64 {
    let time = arrivals as f64 / size as f64;
    // Up to arrival i = s every arrival sets a bit and clears one, after it only the fraction s/i:
    // the distance to 1/2 falls like e^(-2t), then like 1/t^2.
    let distance = 0.5 * (-2.0 * time.min(1.0)).exp();
    RSBF_FILL_LIMIT - distance / time.max(1.0).powi(2)
}

/// The k that paper 000 derives for RSBF from a bound on the FPR (equation 6.1): the mean of 1 and
/// ln(FPR) / ln(1 - 1/e), rounded. Its tables use k = 2 instead.
///
/// # Examples
/// ```
/// assert_eq!(echoless_papers::theory::biased::reservoir_hashes(0.1), 3);
/// ```
#[must_use]
pub fn reservoir_hashes(fpr: f64) -> u32 {
    let exact = fpr.ln() / (1.0 - (-1.0_f64).exp()).ln();
    f64::midpoint(1.0, exact).round().max(1.0) as u32
}

/// rho of BSBF: one random bit of each filter is cleared, and it is set with probability p.
fn bsbf_clearing(_hashes: u32, fill: f64) -> f64 {
    fill
}

/// rho of BSBFSD: one random bit of one of the k filters is cleared.
fn bsbfsd_clearing(hashes: u32, fill: f64) -> f64 {
    fill / f64::from(hashes)
}

/// rho of RLBSBF: a random bit of each filter is cleared with probability p.
fn rlbsbf_clearing(_hashes: u32, fill: f64) -> f64 {
    fill * fill
}

/// The fill at which as many bits are set as cleared; 1 if there is none below.
fn fixed_point(hashes: u32, clearing: fn(u32, f64) -> f64) -> f64 {
    // Divided by 1 - p, the balance is 1 = (1 + p + ... + p^(k-1)) rho, whose right side grows with
    // p, so that bisection finds it.
    let excess = |fill: f64| {
        let powers: f64 = (0..hashes as i32).map(|power| fill.powi(power)).sum();
        powers * clearing(hashes, fill) - 1.0
    };
    if excess(1.0) <= 1e-12 {
        return 1.0;
    }
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if excess(middle) < 0.0 {
            low = middle;
        } else {
            high = middle;
        }
    }
    f64::midpoint(low, high)
}

/// Integrates the dynamics from an empty filter, by the midpoint method.
fn integrate(hashes: u32, size: u64, arrivals: u64, clearing: fn(u32, f64) -> f64) -> f64 {
    let slope = |fill: f64| {
        let reported_fresh = 1.0 - fill.powi(hashes as i32);
        (1.0 - fill) - reported_fresh * clearing(hashes, fill)
    };
    // After 1000 arrivals a bit the fill is at its fixed point, or within a thousandth of 1.
    const STEPS: u32 = 20_000;
    let time = arrivals as f64 / size as f64;
    let step = time.min(1000.0) / f64::from(STEPS);
    let mut fill = 0.0;
    for _ in 0..STEPS {
        let middle = fill + step * slope(fill) / 2.0;
        fill += step * slope(middle);
    }
    fill
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_points_match_known_values() {
        let known = [
            (bsbf_fill_limit(2), 0.618),
            (bsbf_fill_limit(3), 0.544),
            (rlbsbf_fill_limit(2), 0.755),
            (rlbsbf_fill_limit(3), 0.682),
            (bsbfsd_fill_limit(3), 1.0),
        ];
        for (fill, expected) in known {
            assert!(
                (fill - expected).abs() < 0.001,
                "{fill}, expected {expected}"
            );
        }
    }
}
