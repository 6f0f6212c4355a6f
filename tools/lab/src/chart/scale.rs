//! Scales: how values map to positions on an axis, which range holds them, where the ticks are.

use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};

/// How values map to positions on an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// From zero.
    Linear,
    /// Powers of ten, as for rates. Zeros lie on the low edge.
    Log10,
    /// Powers of two, as for sizes and threads. Zeros lie on the low edge.
    Log2,
}

impl Scale {
    fn position(self, value: f64) -> f64 {
        match self {
            Self::Linear => value,
            Self::Log10 => value.log10(),
            Self::Log2 => value.log2(),
        }
    }
}

/// The range of an axis, as positions: on a logarithmic scale, exponents.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct AxisRange {
    scale: Scale,
    low: f64,
    high: f64,
}

impl AxisRange {
    /// The range that holds all of `values`; on a logarithmic scale its ends are whole powers.
    pub(super) fn over(scale: Scale, values: impl Iterator<Item = f64>) -> Self {
        let values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
        let highest = values.iter().copied().fold(0.0, f64::max);
        let positive = values.iter().copied().filter(|value| *value > 0.0);
        let lowest = positive.fold(f64::INFINITY, f64::min);
        let has_zero = values.iter().any(|value| *value <= 0.0);
        let (low, high) = match scale {
            // Only zeros, or no values at all: an axis of length one.
            _ if highest <= 0.0 => (0.0, 1.0),
            // Room between the marks and the frame.
            Scale::Linear => (0.0, highest * 1.05),
            Scale::Log10 | Scale::Log2 => {
                // Zeros get the edge to themselves, one power below the lowest value.
                let low = scale.position(lowest).floor() - if has_zero { 1.0 } else { 0.0 };
                let high = scale.position(highest).ceil();
                (low, if high > low { high } else { low + 1.0 })
            }
        };
        Self { scale, low, high }
    }

    /// The position of a value, between both ends.
    pub(super) fn position(&self, value: f64) -> f64 {
        if self.scale != Scale::Linear && value <= 0.0 {
            return self.low;
        }
        self.scale.position(value)
    }

    /// The label of the tick at a position.
    pub(super) fn label(&self, position: f64) -> String {
        match self.scale {
            Scale::Linear => short(position),
            Scale::Log2 if position > 13.0 => format!("2^{position}"),
            Scale::Log2 => short(position.exp2()),
            Scale::Log10 if (-2.0..=4.0).contains(&position) => short(10f64.powf(position)),
            Scale::Log10 => format!("1e{position:.0}"),
        }
    }
}

/// A number in few characters: `400k` for 400000. Four digits stay, as `1200` reads better.
fn short(value: f64) -> String {
    let units = [(1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k")];
    match units.iter().find(|(least, _, _)| value >= *least) {
        Some((_, unit, name)) => format!("{}{name}", rounded(value / unit)),
        None => rounded(value),
    }
}

/// Without the trailing digits that binary fractions add.
fn rounded(value: f64) -> String {
    format!("{}", (value * 1e6).round() / 1e6)
}

impl Ranged for AxisRange {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, position: &f64, limit: (i32, i32)) -> i32 {
        let fraction = (position - self.low) / (self.high - self.low);
        limit.0 + (fraction * f64::from(limit.1 - limit.0)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        let span = self.high - self.low;
        let most = hint.max_num_points().clamp(2, 12) as f64;
        let step = if self.scale == Scale::Linear {
            // 1, 2 or 5 times a power of ten.
            let rough = span / most;
            let decade = 10f64.powf(rough.log10().floor());
            let steps = [1.0, 2.0, 5.0, 10.0].map(|step| step * decade);
            let wide_enough = steps.into_iter().find(|step| *step >= rough);
            wide_enough.unwrap_or(rough)
        } else {
            (span / most).ceil().max(1.0)
        };
        let count = (span / step + 1e-9) as u32;
        let ticks = (0..=count).map(|index| self.low + f64::from(index) * step);
        ticks.collect()
    }

    fn range(&self) -> std::ops::Range<f64> {
        self.low..self.high
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_hold_all_values_and_end_on_whole_powers() {
        let log10 = AxisRange::over(Scale::Log10, [3e-4, 0.02, 0.0].into_iter());
        assert_eq!((log10.low, log10.high), (-5.0, -1.0));
        assert_eq!(log10.position(0.0), -5.0);
        assert_eq!(log10.label(-4.0), "1e-4");
        assert_eq!(log10.label(-1.0), "0.1");
        let log2 = AxisRange::over(Scale::Log2, [1.0, 512.0].into_iter());
        assert_eq!((log2.low, log2.high), (0.0, 9.0));
        assert_eq!(log2.label(9.0), "512");
        assert_eq!(log2.label(20.0), "2^20");
        let linear = AxisRange::over(Scale::Linear, [250.0].into_iter());
        let ticks = linear.key_points(6);
        assert_eq!(ticks, [0.0, 50.0, 100.0, 150.0, 200.0, 250.0]);
        assert_eq!(linear.label(250.0), "250");
    }

    #[test]
    fn one_value_and_only_zeros_still_make_a_range() {
        for values in [vec![4.0], vec![0.0], vec![]] {
            for scale in [Scale::Linear, Scale::Log10, Scale::Log2] {
                let range = AxisRange::over(scale, values.iter().copied());
                assert!(range.low < range.high, "{values:?} {range:?}");
            }
        }
    }

    #[test]
    fn numbers_on_axes_are_short() {
        let values = [0.0, 0.1 + 0.2, 50.0, 999.0, 1200.0, 400_000.0, 2.5e6, 1e9];
        let expected = ["0", "0.3", "50", "999", "1200", "400k", "2.5M", "1G"];
        assert_eq!(values.map(short), expected);
    }
}
