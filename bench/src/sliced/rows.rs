//! The rows of all parts: a measured figure, and the value of its formula.

use std::num::NonZeroUsize;

use echoless_lab::parallel;

use super::arguments::Part;
use crate::failure::Failure;
use crate::table::Table;

/// The errors that a formula must predict before a measured rate is compared with it: their noise
/// is then 2.5 %, a quarter of the tolerance.
const ENOUGH: f64 = 1600.0;

/// The most that a measured figure may be off its formula, relative to it.
const TOLERANCE: f64 = 0.1;

/// A measured figure.
#[derive(Debug, Clone)]
pub(super) struct Row {
    pub(super) part: Part,
    /// The figure or table of the paper.
    pub(super) figure: &'static str,
    pub(super) stream: &'static str,
    /// What is the same in all rows of a plot.
    pub(super) setting: String,
    /// What is measured: the name of a curve.
    pub(super) series: String,
    pub(super) x_name: &'static str,
    pub(super) x: f64,
    pub(super) measure: &'static str,
    pub(super) measured: f64,
    /// The formula of the engine's theory.
    pub(super) formula: Option<f64>,
    /// What the paper states, where it is another formula.
    pub(super) printed: Option<f64>,
    /// The trials behind the measured figure, if it is compared with the formula.
    pub(super) trials: Option<f64>,
}

impl Row {
    /// The value of the formula, without a comparison.
    pub(super) fn formula(mut self, formula: f64) -> Self {
        self.formula = Some(formula);
        self
    }

    /// The value of the formula, which the measured figure must agree with, if `trials` trials are
    /// expected to have enough errors.
    pub(super) fn checked(mut self, formula: f64, trials: f64) -> Self {
        self.formula = Some(formula);
        self.trials = Some(trials);
        self
    }

    /// The value of the formula as printed.
    pub(super) fn printed(mut self, formula: f64) -> Self {
        self.printed = Some(formula);
        self
    }

    /// Whether the measured figure agrees with the formula; `None` if it is not compared.
    fn agrees(&self) -> Option<bool> {
        let formula = self.formula?;
        let expected = self.trials? * formula;
        if formula == 0.0 {
            return Some(self.measured == 0.0);
        }
        (expected >= ENOUGH).then(|| (self.measured / formula - 1.0).abs() <= TOLERANCE)
    }
}

/// The rows of all settings in their order, measured on several threads.
///
/// # Errors
/// As [`parallel::map`].
pub(super) fn of_settings<S: Sync, R: IntoIterator<Item = Row> + Send + Sync>(
    settings: &[S],
    threads: NonZeroUsize,
    rows: impl Fn(&S) -> Result<R, Failure> + Sync,
) -> Result<Vec<Row>, Failure> {
    let rows = parallel::map(settings, threads, |setting| {
        rows(setting).map_err(|error| error.to_string())
    })?;
    Ok(rows.into_iter().flatten().collect())
}

/// The table of all rows.
pub(super) fn table(rows: &[Row]) -> Table {
    let mut table = Table::new(&[
        "part",
        "figure",
        "stream",
        "setting",
        "series",
        "x_name",
        "x",
        "measure",
        "measured",
        "formula",
        "printed_formula",
        "agrees",
    ]);
    for row in rows {
        table.push(vec![
            row.part.name().into(),
            row.figure.into(),
            row.stream.into(),
            row.setting.clone().into(),
            row.series.clone().into(),
            row.x_name.into(),
            (row.x as u64).into(),
            row.measure.into(),
            row.measured.into(),
            row.formula.into(),
            row.printed.into(),
            row.agrees()
                .map(|agrees| if agrees { "yes" } else { "no" })
                .into(),
        ]);
    }
    table
}

/// The number of rows that are compared with their formulas.
///
/// # Errors
/// If one of them disagrees; the error names the first.
pub(super) fn check(rows: &[Row]) -> Result<usize, Failure> {
    let compared = rows.iter().filter(|row| row.agrees().is_some()).count();
    let wrong: Vec<&Row> = rows
        .iter()
        .filter(|row| row.agrees() == Some(false))
        .collect();
    let Some(first) = wrong.first() else {
        return Ok(compared);
    };
    Err(format!(
        "{} of {compared} figures are more than 10 % off their formulas, first: {} {}, {}, {}, \
         {} {}: {} {}, expected {}",
        wrong.len(),
        first.part.name(),
        first.stream,
        first.setting,
        first.series,
        first.x_name,
        first.x,
        first.measure,
        first.measured,
        first.formula.unwrap_or_default(),
    )
    .into())
}

/// The mean of `value` over 0 to `count` keys: of a rate, while a filter takes so many.
pub(super) fn mean_while_filling(count: u64, value: impl Fn(u64) -> f64) -> f64 {
    // The rates are smooth, so the middles of 256 parts are as good as all numbers.
    let parts = count.min(256);
    let middle = |part: u64| ((part as f64 + 0.5) * count as f64 / parts as f64) as u64;
    (0..parts).map(|part| value(middle(part))).sum::<f64>() / parts.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(measured: f64) -> Row {
        Row {
            part: Part::Fpr,
            figure: "5(a)",
            stream: "uniform",
            setting: "Pfp 0.05".into(),
            series: "vertical".into(),
            x_name: "slices",
            x: 8.0,
            measure: "fpr",
            measured,
            formula: None,
            printed: None,
            trials: None,
        }
    }

    #[test]
    fn only_figures_with_enough_errors_are_compared() {
        let rows = [
            row(1.0),
            row(1.0).formula(2.0),
            row(0.02).checked(0.01, 100_000.0),
            row(0.0109).checked(0.01, 200_000.0),
            row(0.0).checked(0.0, 100.0),
        ];
        assert_eq!(check(&rows).unwrap(), 2);
    }

    #[test]
    fn figures_off_their_formula_are_an_error() {
        for wrong in [
            row(0.0111).checked(0.01, 200_000.0),
            row(0.0089).checked(0.01, 200_000.0),
            row(1e-9).checked(0.0, 100.0),
        ] {
            let rows = [wrong, row(0.01).checked(0.01, 200_000.0)];
            let error = check(&rows).unwrap_err().to_string();
            let expected = "1 of 2 figures are more than 10 % off their formulas, first: fpr \
                            uniform, Pfp 0.05, vertical, slices 8: fpr ";
            assert!(error.starts_with(expected), "{error}");
            assert!(table(&rows).aligned().contains(" no\n"));
        }
    }

    #[test]
    fn the_mean_of_a_smooth_rate_needs_few_points() {
        let rate = |keys: u64| (keys as f64).powi(4);
        let exact = (0..10_000).map(rate).sum::<f64>() / 10_000.0;
        let mean = mean_while_filling(10_000, rate);
        assert!((mean / exact - 1.0).abs() < 1e-3, "{mean}, {exact}");
        assert_eq!(mean_while_filling(1, |keys| keys as f64), 0.0);
        assert_eq!(mean_while_filling(0, |_| 1.0), 0.0);
    }
}
