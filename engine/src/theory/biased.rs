//! The fill of bit filters that clear bits as they set them: BSBF, BSBFSD, RLBSBF, and RSBF as tabled.
//!
//! An arrival that was never seen is taken for a duplicate with probability p^k, p being the fill. Otherwise it sets the bit of a filter if that is
//! zero, and the policy clears a set bit of it with probability rho: p for BSBF, p/k for BSBFSD, p^2 for RLBSBF, 0 for Bloom. So, per fresh
//! arrival and with s bits in a filter, dp = ((1 - p) - (1 - p^k) rho) / s: paper 000's dynamics in closed form, of which its claim that the fill of
//! BSBF and RLBSBF tends to 1 for k >= 2 turns out false.

use crate::filters::scattered::bits::{Ageing, Reservoir};

/// rho: the probability that a fresh-reported arrival clears a set bit of a given filter; `None` for RSBF, whose rate depends on the time.
fn clearing(ageing: Ageing, hashes: u32, fill: f64) -> Option<f64> {
    match ageing {
        Ageing::Never => Some(0.0),
        Ageing::EachFilter => Some(fill),
        Ageing::OneFilter => Some(fill / f64::from(hashes)),
        Ageing::ByFill => Some(fill * fill),
        Ageing::Reservoir(_) => None,
    }
}

/// The fill that an endless stream of fresh keys leads to; `None` for RSBF as described, whose phases have no closed form here.
///
/// The FPR tends to its k-th power. Simulations agree within 0.01.
///
/// # Examples
/// ```
/// use echoless::filters::scattered::bits::Ageing;
/// use echoless::theory::biased::fixed_point;
/// let fill = fixed_point(Ageing::EachFilter, 2).unwrap();
/// assert!((fill - 0.618).abs() < 0.001 && (fill.powi(2) - 0.382).abs() < 0.001);
/// assert_eq!(fixed_point(Ageing::OneFilter, 2), Some(1.0));
/// ```
#[must_use]
pub fn fixed_point(ageing: Ageing, hashes: u32) -> Option<f64> {
    if ageing == Ageing::Reservoir(Reservoir::Tabled) {
        return Some(0.5);
    }
    // Divided by 1 - p, the balance is 1 = (1 + p + ... + p^(k-1)) rho, whose right side grows with p.
    let excess = |fill: f64| {
        let powers: f64 = (0..hashes as i32).map(|power| fill.powi(power)).sum();
        clearing(ageing, hashes, fill).map(|rho| powers * rho - 1.0)
    };
    if excess(1.0)? <= 1e-12 {
        return Some(1.0);
    }
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if excess(middle)? < 0.0 {
            low = middle;
        } else {
            high = middle;
        }
    }
    Some(f64::midpoint(low, high))
}

/// The fill after `arrivals` fresh keys, each filter being `size` bits; `None` for RSBF as described.
///
/// By integration of the dynamics above (for RSBF as tabled, in closed form). Simulations agree within 0.01.
///
/// # Examples
/// ```
/// use echoless::filters::scattered::bits::Ageing;
/// use echoless::theory::biased::fill_after;
/// // A Bloom filter fills like 1 - e^(-n/s) as long as nothing is mistaken for a duplicate.
/// let fill = fill_after(Ageing::Never, 8, 1_000_000, 100_000).unwrap();
/// assert!((fill - 0.0952).abs() < 0.001);
/// ```
#[must_use]
pub fn fill_after(ageing: Ageing, hashes: u32, size: u64, arrivals: u64) -> Option<f64> {
    let time = arrivals as f64 / size as f64;
    if ageing == Ageing::Reservoir(Reservoir::Tabled) {
        // Before i = s every arrival swaps bits; after it, the share s/i: the distance to 1/2 falls like e^(-2t), then like 1/t^2.
        let distance = 0.5 * (-2.0 * time.min(1.0)).exp();
        return Some(0.5 - distance / time.max(1.0).powi(2));
    }
    let slope = |fill: f64| {
        let reported = 1.0 - fill.powi(hashes as i32);
        clearing(ageing, hashes, fill).map(|rho| match ageing {
            // A Bloom filter sets the bits of all arrivals: those mistaken for duplicates have nothing to set.
            Ageing::Never => 1.0 - fill,
            _ => (1.0 - fill) - reported * rho,
        })
    };
    // Past 1000 fillings the fixed point is reached, or 1 within a thousandth.
    const STEPS: u32 = 20_000;
    let step = time.min(1000.0) / f64::from(STEPS);
    let mut fill = 0.0;
    for _ in 0..STEPS {
        let first = slope(fill)?;
        let second = slope(fill + step * first / 2.0)?;
        fill += step * second;
    }
    Some(fill)
}

/// The k that paper 000 takes for RSBF from a bound on the FPR: the mean of 1 and ln(FPR) / ln(1 - 1/e), rounded (equation 6.1). Its tables use
/// k = 2 all the same.
///
/// # Examples
/// ```
/// assert_eq!(echoless::theory::biased::reservoir_hashes(0.1), 3);
/// ```
#[must_use]
pub fn reservoir_hashes(fpr: f64) -> u32 {
    let exact = fpr.ln() / (1.0 - (-1.0_f64).exp()).ln();
    f64::midpoint(1.0, exact).round().max(1.0) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filters::Filter;
    use crate::filters::scattered::bits::BitsSpec;
    use crate::theory::trial::fresh_keys;

    const ALL: [Ageing; 5] = [
        Ageing::Never,
        Ageing::EachFilter,
        Ageing::OneFilter,
        Ageing::ByFill,
        Ageing::Reservoir(Reservoir::Tabled),
    ];

    #[test]
    fn the_fixed_points_are_the_known_ones() {
        let known = [
            (Ageing::EachFilter, 2, 0.618),
            (Ageing::EachFilter, 3, 0.544),
            (Ageing::ByFill, 2, 0.755),
            (Ageing::ByFill, 3, 0.682),
            (Ageing::OneFilter, 3, 1.0),
            (Ageing::Never, 4, 1.0),
        ];
        for (ageing, hashes, expected) in known {
            let fill = fixed_point(ageing, hashes).expect("a closed form");
            assert!(
                (fill - expected).abs() < 0.001,
                "{ageing:?} {hashes}: {fill}"
            );
        }
        let described = Ageing::Reservoir(Reservoir::Described { threshold: 0.03 });
        assert_eq!(fixed_point(described, 2), None);
        assert_eq!(fill_after(described, 2, 100, 100), None);
    }

    #[test]
    fn the_fill_of_the_filter_follows_the_dynamics() {
        for ageing in ALL {
            for hashes in [1, 2, 3] {
                let size = 40_000;
                let spec = BitsSpec { hashes, ageing };
                let bytes = u64::from(hashes) * size / 8;
                let mut filter = spec.build(bytes, 3).expect("valid");
                let mut arrivals = 0;
                for (key, arrival) in fresh_keys(20 * size).zip(1..) {
                    filter.observe_one(key);
                    arrivals = arrival;
                    if [size / 4, size, 4 * size].contains(&arrivals) {
                        let expected = fill_after(ageing, hashes, size, arrivals).expect("closed");
                        let fill = filter.fill();
                        assert!(
                            (fill - expected).abs() < 0.01,
                            "{ageing:?} k {hashes} at {arrivals}: {fill} for {expected}"
                        );
                    }
                }
                let expected = fixed_point(ageing, hashes).expect("closed");
                let end = fill_after(ageing, hashes, size, arrivals).expect("closed");
                // A fill that tends to 1 does so too slowly to wait for.
                assert!(
                    expected == 1.0 || (end - expected).abs() < 0.01,
                    "{ageing:?} k {hashes}: {end}"
                );
                assert!((filter.fill() - end).abs() < 0.01, "{ageing:?} k {hashes}");
            }
        }
    }
}
