//! The papers' figures as SVG: rates and fill over the stream, misses by age, and the frontier of
//! the two rates.

use std::fs;
use std::path::{Path, PathBuf};

use crate::chart::{Axis, Chart, Scale, Series, Style};
use crate::error::LabError;
use crate::evaluate::{Evaluation, Point};

/// Draws the figures of these evaluations into `folder`, which must exist, and returns the files:
/// `fpr.svg`, `fnr.svg`, `fill.svg`, `fnr_by_age.svg` (only of evaluations with ages) and
/// `frontier.svg`. The legend names each filter by its specification.
///
/// # Errors
/// [`LabError::Figure`] if a file cannot be written.
pub fn draw(evaluations: &[Evaluation], folder: &Path) -> Result<Vec<PathBuf>, LabError> {
    let mut written = Vec::new();
    for (file, chart) in figures(evaluations) {
        let path = folder.join(file);
        let failure = |reason: String| LabError::Figure {
            path: path.display().to_string(),
            reason,
        };
        let svg = chart.svg().map_err(|error| failure(error.to_string()))?;
        fs::write(&path, svg).map_err(|error| failure(error.to_string()))?;
        written.push(path);
    }
    Ok(written)
}

/// Each figure with the name of its file.
fn figures(evaluations: &[Evaluation]) -> Vec<(&'static str, Chart)> {
    let some = |count: u64, rate: f64| (count > 0).then_some(rate);
    let over_stream = |title: &str, label: &str, value: &dyn Fn(&Point) -> Option<f64>| Chart {
        title: title.into(),
        x: Axis::new("records", Scale::Linear),
        y: Axis::new(label, Scale::Linear),
        series: series(evaluations, Style::Line, |evaluation| {
            let points = evaluation.points.iter();
            points
                .filter_map(|point| Some((point.records as f64, 100.0 * value(point)?)))
                .collect()
        }),
    };
    let fpr = over_stream(
        "False positive rate over the stream",
        "FPR of the last records (%)",
        &|point| some(point.recent.distinct, point.recent.fpr()),
    );
    let fnr = over_stream(
        "False negative rate over the stream",
        "FNR of the last records (%)",
        &|point| some(point.recent.duplicates, point.recent.fnr()),
    );
    let fill = over_stream("Fill over the stream", "fill (%)", &|point| point.fill);
    let mut figures = vec![("fpr.svg", fpr), ("fnr.svg", fnr), ("fill.svg", fill)];
    if evaluations
        .iter()
        .any(|evaluation| !evaluation.ages.is_empty())
    {
        figures.push(("fnr_by_age.svg", by_age(evaluations)));
    }
    figures.push(("frontier.svg", frontier(evaluations)));
    figures
}

fn by_age(evaluations: &[Evaluation]) -> Chart {
    Chart {
        title: "False negative rate by the age of the duplicate".into(),
        x: Axis::new("records since the key last arrived", Scale::Log2),
        y: Axis::new("FNR (%)", Scale::Linear),
        series: series(evaluations, Style::Line, |evaluation| {
            let bins = evaluation.ages.iter();
            bins.map(|bin| (bin.from as f64, 100.0 * bin.fnr()))
                .collect()
        }),
    }
}

fn frontier(evaluations: &[Evaluation]) -> Chart {
    Chart {
        title: "Both rates over the whole stream".into(),
        x: Axis::new("FNR (%)", Scale::Linear),
        y: Axis::new("FPR (%)", Scale::Linear),
        series: series(evaluations, Style::Points, |evaluation| {
            let score = evaluation.score;
            vec![(100.0 * score.fnr(), 100.0 * score.fpr())]
        }),
    }
}

/// One series for each filter.
fn series(
    evaluations: &[Evaluation],
    style: Style,
    points: impl Fn(&Evaluation) -> Vec<(f64, f64)>,
) -> Vec<Series> {
    let one = |evaluation: &Evaluation| {
        let name = evaluation.spec.to_string();
        Series::new(name, style, points(evaluation))
    };
    evaluations.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluate::{EvalOptions, evaluate};
    use crate::stream::Stream;

    const SPECS: [&str; 2] = ["bloom:k=2,memory=4KiB", "rlbsbf:k=2,memory=4KiB"];

    fn evaluations(ages: bool) -> Vec<Evaluation> {
        let specs = SPECS.map(|text| text.parse().unwrap());
        let stream = Stream::with_distinct_fraction(20_000, 0.6).unwrap();
        let options = EvalOptions::default().points(20).ages(ages);
        evaluate(&specs, &stream, &options, &|_| ()).unwrap()
    }

    #[test]
    fn every_figure_has_a_labelled_curve_for_each_filter() {
        let folder = tempfile::tempdir().unwrap();
        for (ages, figures) in [(false, 4), (true, 5)] {
            let files = draw(&evaluations(ages), folder.path()).unwrap();
            assert_eq!(files.len(), figures);
            for file in files {
                let svg = std::fs::read_to_string(&file).unwrap();
                for label in SPECS {
                    assert!(svg.contains(label), "{}: {label}", file.display());
                }
                // The colours of the first two series, in the data and not in the legend only.
                for colour in ["#0072B2", "#D55E00"] {
                    assert!(svg.matches(colour).count() >= 2, "{}", file.display());
                }
                assert!(svg.ends_with("</svg>\n"), "{}", file.display());
            }
        }
    }

    #[test]
    fn a_missing_folder_is_named() {
        let error = draw(&evaluations(false), Path::new("/no/such/folder")).unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with("/no/such/folder/fpr.svg: "), "{text}");
    }
}
