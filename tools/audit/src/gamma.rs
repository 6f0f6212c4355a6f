//! The gamma distribution: exact bounds of the mean of a Poisson count are its quantiles.

/// From this shape on, [`quantile`] uses the approximation of Wilson and Hilferty. Its relative
/// error there is below 1e-6.
const LARGE_SHAPE: f64 = 1e4;

/// The value below which a gamma variable of this shape, with scale 1, lies with `probability`.
///
/// Relative error below 1e-6.
pub(crate) fn quantile(shape: f64, probability: f64) -> f64 {
    let wide = 12.0 * shape.sqrt() + 40.0;
    let (mut low, mut high) = ((shape - wide).max(0.0), shape + wide);
    if shape >= LARGE_SHAPE {
        let ninth = 1.0 / (9.0 * shape);
        return shape * (1.0 - ninth + normal_quantile(probability) * ninth.sqrt()).powi(3);
    }
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if below(shape, middle) < probability {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

/// The probability that a gamma variable of this shape is below `value`.
fn below(shape: f64, value: f64) -> f64 {
    if value <= 0.0 {
        return 0.0;
    }
    let factor = (shape * value.ln() - value - ln_gamma(shape)).exp();
    if value < shape + 1.0 {
        // The series of the lower incomplete gamma function.
        let (mut term, mut sum) = (1.0 / shape, 1.0 / shape);
        let mut next = shape;
        while term > sum * 1e-16 {
            next += 1.0;
            term *= value / next;
            sum += term;
        }
        return sum * factor;
    }
    // The continued fraction of the upper one, by Lentz's method.
    let mut partial = value + 1.0 - shape;
    let mut ratio_above = f64::MAX;
    let mut ratio_below = 1.0 / partial;
    let mut fraction = ratio_below;
    for step in 1..100_000 {
        let step = f64::from(step);
        let numerator = -step * (step - shape);
        partial += 2.0;
        ratio_below = 1.0 / away_from_zero(numerator * ratio_below + partial);
        ratio_above = away_from_zero(partial + numerator / ratio_above);
        let change = ratio_below * ratio_above;
        fraction *= change;
        if (change - 1.0).abs() < 1e-15 {
            break;
        }
    }
    1.0 - factor * fraction
}

fn away_from_zero(value: f64) -> f64 {
    if value.abs() < f64::MIN_POSITIVE {
        f64::MIN_POSITIVE
    } else {
        value
    }
}

/// ln of the gamma function, by recursion up to 16 and Stirling's series.
fn ln_gamma(value: f64) -> f64 {
    let (mut value, mut shift) = (value, 0.0);
    while value < 16.0 {
        shift += value.ln();
        value += 1.0;
    }
    let tau = 2.0 * std::f64::consts::PI;
    let series = 1.0 / (12.0 * value) - 1.0 / (360.0 * value.powi(3));
    (value - 0.5) * value.ln() - value + 0.5 * tau.ln() + series - shift
}

/// The quantile of the normal distribution: formula 26.2.23 of Abramowitz and Stegun (1964), error
/// below 4.5e-4, and one step of Newton's method on the gamma series of [`below`].
fn normal_quantile(probability: f64) -> f64 {
    let tail = probability.min(1.0 - probability);
    let root = (-2.0 * tail.ln()).sqrt();
    let top = 2.515_517 + root * (0.802_853 + root * 0.010_328);
    let bottom = 1.0 + root * (1.432_788 + root * (0.189_269 + root * 0.001_308));
    let mut distance = root - top / bottom;
    // The tail beyond a distance is half of the upper gamma function of shape 1/2.
    let error = (1.0 - below(0.5, distance * distance / 2.0)) / 2.0 - tail;
    let density = (-distance * distance / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
    distance += error / density;
    if probability < 0.5 {
        -distance
    } else {
        distance
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_the_exact_bounds_of_poisson_counts() {
        // The bounds of Garwood (1936) for 0, 1, 10 and 100 events.
        for (events, low, high) in [
            (0.0, None, 3.688_879_454),
            (1.0, Some(0.025_317_808), 5.571_643_391),
            (10.0, Some(4.795_389), 18.390_356),
            (100.0, Some(81.363_991), 121.626_794),
        ] {
            let close = |computed: f64, expected: f64| {
                assert!(
                    (computed / expected - 1.0).abs() < 1e-6,
                    "{computed}, {expected}"
                );
            };
            close(quantile(events + 1.0, 0.975), high);
            if let Some(low) = low {
                close(quantile(events, 0.025), low);
            }
        }
    }

    #[test]
    fn the_approximation_continues_the_exact_quantile() {
        for probability in [0.025, 0.5, 0.975] {
            let exact = quantile(LARGE_SHAPE * (1.0 - 1e-12), probability);
            let approximate = quantile(LARGE_SHAPE, probability);
            let error = (approximate / exact - 1.0).abs();
            assert!(error < 1e-6, "{approximate} instead of {exact}");
        }
        assert!((normal_quantile(0.975) - 1.959_963_985).abs() < 1e-6);
        assert!((normal_quantile(0.025) + 1.959_963_985).abs() < 1e-6);
    }

    #[test]
    fn quantiles_of_small_shapes_are_small() {
        assert!(quantile(0.01, 0.025) < 1e-9);
        // Shape 1 is the exponential distribution.
        assert!((quantile(1.0, 0.5) - 2_f64.ln()).abs() < 1e-9);
    }
}
