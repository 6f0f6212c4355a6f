//! The papers' figures as SVG: rates and load over the stream, misses by age, and the frontier of the two rates.

use std::path::{Path, PathBuf};

use plotters::coord::Shift;
use plotters::prelude::*;

use crate::error::LabError;
use crate::evaluate::Evaluation;

const WIDTH: u32 = 960;
/// Of the curves; the legend comes below.
const HEIGHT: u32 = 560;
const LEGEND_ROW: u32 = 20;
const MARGIN: u32 = 16;
const FONT: (&str, u32) = ("sans-serif", 16);

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

type DrawingError = Box<dyn std::error::Error>;

/// One figure, before its curves.
struct Figure {
    file: &'static str,
    title: &'static str,
    x: &'static str,
    y: &'static str,
    /// Whether the horizontal axis shows powers of two.
    ages: bool,
    /// Whether the points are marks that no line joins.
    marks: bool,
}

const FPR: Figure = Figure {
    file: "fpr.svg",
    title: "False positive rate over the stream",
    x: "records",
    y: "FPR of the last records (%)",
    ages: false,
    marks: false,
};

const FNR: Figure = Figure {
    file: "fnr.svg",
    title: "False negative rate over the stream",
    y: "FNR of the last records (%)",
    ..FPR
};

const LOAD: Figure = Figure {
    file: "load.svg",
    title: "Load over the stream",
    y: "cells taken (%)",
    ..FPR
};

const AGES: Figure = Figure {
    file: "fnr_by_age.svg",
    title: "False negative rate by the age of the duplicate",
    x: "records since the key arrived last",
    y: "FNR (%)",
    ages: true,
    marks: false,
};

const FRONTIER: Figure = Figure {
    file: "frontier.svg",
    title: "Both rates over the whole stream",
    x: "FNR (%)",
    y: "FPR (%)",
    ages: false,
    marks: true,
};

/// The points of one filter.
struct Series {
    label: String,
    points: Vec<(f64, f64)>,
}

/// Draws the figures of these evaluations into `folder`, which exists: `fpr.svg`, `fnr.svg`, `load.svg`, `fnr_by_age.svg` (if ages were asked for) and
/// `frontier.svg`. Each curve carries its specification as its label. Gives the files written.
///
/// # Errors
/// [`LabError::Figure`] if a file cannot be written.
pub fn draw(evaluations: &[Evaluation], folder: &Path) -> Result<Vec<PathBuf>, LabError> {
    let over_stream = |value: &dyn Fn(&crate::evaluate::Point) -> Option<f64>| {
        series(evaluations, |evaluation| {
            let points = evaluation.points.iter();
            points
                .filter_map(|point| Some((point.records as f64, 100.0 * value(point)?)))
                .collect()
        })
    };
    let some = |count: u64, rate: f64| (count > 0).then_some(rate);
    let mut figures = vec![
        (
            FPR,
            over_stream(&|point| some(point.recent.distinct, point.recent.fpr())),
        ),
        (
            FNR,
            over_stream(&|point| some(point.recent.duplicates, point.recent.fnr())),
        ),
        (LOAD, over_stream(&|point| point.fill)),
    ];
    if evaluations
        .iter()
        .any(|evaluation| !evaluation.ages.is_empty())
    {
        let by_age = series(evaluations, |evaluation| {
            let bins = evaluation.ages.iter();
            bins.map(|bin| ((bin.from as f64).log2(), 100.0 * bin.fnr()))
                .collect()
        });
        figures.push((AGES, by_age));
    }
    let rates = series(evaluations, |evaluation| {
        let score = evaluation.score;
        vec![(100.0 * score.fnr(), 100.0 * score.fpr())]
    });
    figures.push((FRONTIER, rates));
    let mut written = Vec::new();
    for (figure, series) in figures {
        let path = folder.join(figure.file);
        figure.draw(&path, &series)?;
        written.push(path);
    }
    Ok(written)
}

fn series(
    evaluations: &[Evaluation],
    points: impl Fn(&Evaluation) -> Vec<(f64, f64)>,
) -> Vec<Series> {
    evaluations
        .iter()
        .map(|evaluation| Series {
            label: evaluation.spec.to_string(),
            points: points(evaluation),
        })
        .collect()
}

impl Figure {
    fn draw(&self, path: &Path, series: &[Series]) -> Result<(), LabError> {
        let legend = LEGEND_ROW * series.len() as u32 + MARGIN;
        let area = SVGBackend::new(path, (WIDTH, HEIGHT + legend)).into_drawing_area();
        let (above, below) = area.split_vertically(HEIGHT);
        area.fill(&WHITE)
            .map_err(Into::into)
            .and_then(|()| self.draw_curves(&above, series))
            .and_then(|()| draw_legend(&below, series))
            .and_then(|()| area.present().map_err(Into::into))
            .map_err(|error| LabError::Figure {
                path: path.display().to_string(),
                reason: error.to_string(),
            })
    }

    fn draw_curves(&self, area: &Area<'_>, series: &[Series]) -> Result<(), DrawingError> {
        let points = || series.iter().flat_map(|series| &series.points);
        // A little room, so that neither curves nor marks touch the frame.
        let end = |highest: f64| if highest > 0.0 { 1.05 * highest } else { 1.0 };
        let right = points().map(|point| point.0).fold(0.0, f64::max);
        let right = if self.marks {
            end(right)
        } else {
            right.max(1.0)
        };
        let top = end(points().map(|point| point.1).fold(0.0, f64::max));
        let mut chart = ChartBuilder::on(area)
            .caption(self.title, ("sans-serif", 24))
            .margin(MARGIN)
            .margin_right(3 * MARGIN)
            .x_label_area_size(48)
            .y_label_area_size(72)
            .build_cartesian_2d(0.0..right, 0.0..top)?;
        let across = |value: &f64| {
            if self.ages {
                format!("2^{value}")
            } else {
                short(*value)
            }
        };
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .x_desc(self.x)
            .y_desc(self.y)
            .label_style(FONT)
            .x_label_formatter(&across)
            .y_label_formatter(&|value| short(*value))
            .draw()?;
        for (index, series) in series.iter().enumerate() {
            let color = Palette99::pick(index);
            let points = series.points.iter().copied();
            if self.marks {
                chart.draw_series(points.map(|point| Circle::new(point, 5, color.filled())))?;
            } else {
                chart.draw_series(LineSeries::new(points, color.stroke_width(2)))?;
            }
        }
        Ok(())
    }
}

/// A row for each filter, below the curves, where it hides none of them.
fn draw_legend(area: &Area<'_>, series: &[Series]) -> Result<(), DrawingError> {
    for (index, series) in series.iter().enumerate() {
        let (left, top) = (5 * MARGIN as i32, (LEGEND_ROW as usize * index) as i32);
        let color = Palette99::pick(index);
        area.draw(&Rectangle::new(
            [(left, top + 6), (left + 16, top + 10)],
            color.filled(),
        ))?;
        let label = series.label.as_str();
        area.draw(&Text::new(label, (left + 24, top), FONT))?;
    }
    Ok(())
}

/// A number on an axis: 400k instead of 400000.
fn short(value: f64) -> String {
    let units = [(1e9, "G"), (1e6, "M"), (1e3, "k")];
    match units.iter().find(|(unit, _)| value >= *unit) {
        Some((unit, name)) => format!("{}{name}", rounded(value / unit)),
        None => rounded(value),
    }
}

/// Without the digits that binary fractions add.
fn rounded(value: f64) -> String {
    format!("{}", (value * 1e6).round() / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluate::{EvalOptions, evaluate};
    use crate::stream::Stream;

    fn evaluations(ages: bool) -> Vec<Evaluation> {
        let specs = ["bloom:k=2,memory=4KiB", "rlbsbf:k=2,memory=4KiB"];
        let specs = specs.map(|text| text.parse().unwrap());
        let stream = Stream::with_distinct_share(20_000, 0.6).unwrap();
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
                for label in ["bloom:k=2,memory=4KiB", "rlbsbf:k=2,memory=4KiB"] {
                    assert!(svg.contains(label), "{}: {label}", file.display());
                }
                let curves = svg.matches("<polyline").count() + svg.matches("<circle").count();
                assert!(curves >= 2, "{}", file.display());
                assert!(svg.ends_with("</svg>\n"), "{}", file.display());
            }
        }
    }

    #[test]
    fn numbers_on_axes_are_short() {
        let shown = [0.0, 0.1 + 0.2, 50.0, 999.0, 400_000.0, 2.5e6, 1e9].map(short);
        assert_eq!(shown, ["0", "0.3", "50", "999", "400k", "2.5M", "1G"]);
    }

    #[test]
    fn a_folder_that_is_not_there_is_named() {
        let error = draw(&evaluations(false), Path::new("/no/such/folder")).unwrap_err();
        assert!(
            error.to_string().starts_with("/no/such/folder/fpr.svg: "),
            "{error}"
        );
    }
}
