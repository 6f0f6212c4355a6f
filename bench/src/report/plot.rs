//! A plot of series of points as SVG: axes with units, and the legend beside the data, never on it.

use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};
use plotters::prelude::*;

use crate::table::Failure;

/// What an axis shows.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Axis {
    /// The quantity, with its unit.
    pub(super) label: String,
    pub(super) scale: Scale,
}

/// How values become places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scale {
    /// From zero.
    Linear,
    /// Decades, as for rates; what is 0 lies on the low edge.
    Decades,
    /// Doublings, as for sizes and threads.
    Doublings,
}

/// How the points of a series are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Drawn {
    /// Joined by a line.
    Line,
    /// On their own.
    Points,
}

/// Points under one name.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Series {
    pub(super) name: String,
    pub(super) drawn: Drawn,
    pub(super) points: Vec<(f64, f64)>,
    /// Points that were not measured: hollow, and joined to the last measured one by a thin line.
    pub(super) predicted: Vec<(f64, f64)>,
}

impl Series {
    fn all(&self) -> impl Iterator<Item = &(f64, f64)> {
        self.points.iter().chain(&self.predicted)
    }
}

/// A plot.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Plot {
    pub(super) title: String,
    pub(super) x: Axis,
    pub(super) y: Axis,
    pub(super) series: Vec<Series>,
}

const WIDTH: u32 = 1040;
const LEGEND_WIDTH: u32 = 330;
const LEGEND_LINE: u32 = 22;
const LEAST_HEIGHT: u32 = 480;

/// Colours that people with any colour vision observe apart (Okabe and Ito), without yellow, which white drowns.
const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(230, 159, 0),
    RGBColor(60, 60, 60),
];

/// The values of an axis: a range, and how its marks fall.
#[derive(Debug, Clone, PartialEq)]
struct Marks {
    scale: Scale,
    low: f64,
    high: f64,
}

impl Marks {
    /// The range that holds all of `values`, rounded outwards to whole marks.
    fn over(scale: Scale, values: impl Iterator<Item = f64>) -> Self {
        let values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
        let highest = values.iter().copied().fold(0.0, f64::max);
        let positive = values.iter().copied().filter(|value| *value > 0.0);
        let lowest = positive.fold(f64::INFINITY, f64::min);
        let has_zero = values.iter().any(|value| *value <= 0.0);
        let (low, high) = match scale {
            _ if highest <= 0.0 => (scale.place(1.0), scale.place(1.0) + 1.0),
            Scale::Linear => (0.0, highest * 1.08),
            Scale::Decades | Scale::Doublings => {
                // The edge is for zeros alone.
                let low = scale.place(lowest).floor() - if has_zero { 1.0 } else { 0.0 };
                let high = scale.place(highest).ceil();
                (low, if high > low { high } else { low + 1.0 })
            }
        };
        Self { scale, low, high }
    }

    /// Where a value lies between `low` and `high`.
    fn place(&self, value: f64) -> f64 {
        if self.scale != Scale::Linear && value <= 0.0 {
            return self.low;
        }
        self.scale.place(value)
    }

    fn text(&self, place: f64) -> String {
        match self.scale {
            Scale::Linear => significant(place),
            Scale::Doublings => significant(place.exp2()),
            Scale::Decades if (-2.0..=4.0).contains(&place) => significant(10f64.powf(place)),
            Scale::Decades => format!("1e{place:.0}"),
        }
    }
}

impl Scale {
    fn place(self, value: f64) -> f64 {
        match self {
            Self::Linear => value,
            Self::Decades => value.log10(),
            Self::Doublings => value.log2(),
        }
    }
}

/// A number without the noise of binary fractions.
fn significant(value: f64) -> String {
    let text = format!("{value:.3}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0" } else { text }.to_owned()
}

impl Ranged for Marks {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, place: &f64, limit: (i32, i32)) -> i32 {
        let share = (place - self.low) / (self.high - self.low);
        limit.0 + (share * f64::from(limit.1 - limit.0)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        let span = self.high - self.low;
        let most = hint.max_num_points().clamp(2, 12) as f64;
        let step = if self.scale == Scale::Linear {
            let rough = span / most;
            let decade = 10f64.powf(rough.log10().floor());
            let steps = [1.0, 2.0, 5.0, 10.0].map(|step| step * decade);
            steps
                .into_iter()
                .find(|step| *step >= rough)
                .unwrap_or(rough)
        } else {
            (span / most).ceil().max(1.0)
        };
        let count = (span / step + 1e-9) as u32;
        (0..=count)
            .map(|index| self.low + f64::from(index) * step)
            .collect()
    }

    fn range(&self) -> std::ops::Range<f64> {
        self.low..self.high
    }
}

/// The look of a series: colours repeat only with another mark.
#[derive(Debug, Clone, Copy)]
struct Look {
    colour: RGBColor,
    mark: usize,
}

impl Look {
    fn of(index: usize) -> Self {
        Self {
            colour: COLOURS[index % COLOURS.len()],
            mark: index / COLOURS.len() % 3,
        }
    }

    /// Draws the mark of this look at a place in pixels.
    fn draw(self, area: &Area, place: (i32, i32)) -> Result<(), Failure> {
        let drawn = match self.mark {
            0 => area.draw(&Circle::new(place, 5, self.colour.filled())),
            1 => area.draw(&TriangleMarker::new(place, 6, self.colour.filled())),
            _ => area.draw(&Cross::new(place, 4, self.colour.stroke_width(2))),
        };
        Ok(drawn?)
    }
}

/// The whole drawing, in pixels.
type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

impl Plot {
    /// The plot as an SVG document.
    ///
    /// # Errors
    /// If there is nothing to draw, or the backend fails.
    pub(super) fn svg(&self) -> Result<String, Failure> {
        let points = || self.series.iter().flat_map(Series::all);
        if points().next().is_none() {
            return Err(format!("{}: no points", self.title).into());
        }
        let mut svg = String::new();
        self.draw(
            &mut svg,
            Marks::over(self.x.scale, points().map(|point| point.0)),
            Marks::over(self.y.scale, points().map(|point| point.1)),
        )
        .map_err(|error| format!("{}: {error}", self.title))?;
        Ok(svg)
    }

    fn draw(&self, svg: &mut String, x: Marks, y: Marks) -> Result<(), Failure> {
        let height = LEAST_HEIGHT.max(self.series.len() as u32 * LEGEND_LINE + 80);
        let root = SVGBackend::with_string(svg, (WIDTH, height)).into_drawing_area();
        let places = self.draw_chart(&root, &x, &y)?;
        let left = (WIDTH - LEGEND_WIDTH) as i32;
        for (index, (series, places)) in self.series.iter().zip(places).enumerate() {
            let look = Look::of(index);
            for place in places {
                look.draw(&root, place)?;
            }
            let line = 52 + index as i32 * LEGEND_LINE as i32;
            look.draw(&root, (left + 10, line))?;
            let place = (left + 24, line - 7);
            let text = Text::new(series.name.clone(), place, ("sans-serif", 14));
            root.draw(&text)?;
        }
        root.present()?;
        Ok(())
    }

    /// Draws axes and lines; gives the places of the points of each series, in pixels.
    fn draw_chart(
        &self,
        root: &Area,
        x: &Marks,
        y: &Marks,
    ) -> Result<Vec<Vec<(i32, i32)>>, Failure> {
        root.fill(&WHITE)?;
        let (area, _) = root.split_horizontally(WIDTH - LEGEND_WIDTH);
        let mut chart = ChartBuilder::on(&area)
            .caption(&self.title, ("sans-serif", 18))
            .margin(12)
            .x_label_area_size(48)
            .y_label_area_size(72)
            .build_cartesian_2d(x.clone(), y.clone())?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .label_style(("sans-serif", 13))
            .axis_desc_style(("sans-serif", 15))
            .x_desc(&self.x.label)
            .y_desc(&self.y.label)
            .x_label_formatter(&|place| x.text(*place))
            .y_label_formatter(&|place| y.text(*place))
            .draw()?;
        let mut all = Vec::new();
        for (index, series) in self.series.iter().enumerate() {
            let colour = Look::of(index).colour;
            let place = |point: &(f64, f64)| (x.place(point.0), y.place(point.1));
            let places: Vec<(f64, f64)> = series.points.iter().map(place).collect();
            if series.drawn == Drawn::Line {
                let line = places.iter().copied();
                chart.draw_series(LineSeries::new(line, colour.stroke_width(2)))?;
            }
            let predicted = || series.predicted.iter().map(place);
            if !series.predicted.is_empty() {
                let line = places.last().copied().into_iter().chain(predicted());
                chart.draw_series(LineSeries::new(line, colour.stroke_width(1)))?;
                let hollow = |place| Circle::new(place, 4, colour.stroke_width(1));
                chart.draw_series(predicted().map(hollow))?;
            }
            let pixels = places.iter().map(|place| chart.backend_coord(place));
            all.push(pixels.collect());
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(label: &str, scale: Scale) -> Axis {
        Axis {
            label: label.into(),
            scale,
        }
    }

    fn plot(points: Vec<(f64, f64)>) -> Plot {
        Plot {
            title: "speed by size".into(),
            x: axis("memory, MiB", Scale::Doublings),
            y: axis("false positive rate", Scale::Decades),
            series: vec![Series {
                name: "lines & <words>".into(),
                drawn: Drawn::Line,
                points,
                predicted: Vec::new(),
            }],
        }
    }

    #[test]
    fn a_plot_holds_its_names_units_and_points() {
        let svg = plot(vec![(1.0, 1e-4), (64.0, 1e-3), (512.0, 0.0)])
            .svg()
            .unwrap();
        for text in [
            "speed by size",
            "memory, MiB",
            "false positive rate",
            "lines &amp; &lt;words&gt;",
            "512",
            "1e-4",
        ] {
            assert!(svg.contains(text), "{text}");
        }
        // Three points and the one in the legend.
        assert_eq!(svg.matches("<circle").count(), 4);
        let lines = svg.lines().filter(|line| line.contains("<polyline"));
        let of_series = lines.filter(|line| line.contains("#0072B2"));
        assert_eq!(of_series.count(), 1);
    }

    #[test]
    fn predictions_are_hollow_and_have_no_legend_of_their_own() {
        let mut plot = plot(vec![(1.0, 1.0), (2.0, 2.0)]);
        plot.series[0].predicted = vec![(8.0, 8.0), (32.0, 32.0)];
        let svg = plot.svg().unwrap();
        let circles = || svg.lines().filter(|line| line.starts_with("<circle"));
        let hollow = circles().filter(|line| line.contains("fill=\"none\""));
        assert_eq!((circles().count(), hollow.count()), (2 + 1 + 2, 2));
    }

    #[test]
    fn marks_are_round_and_hold_all_values() {
        let decades = Marks::over(Scale::Decades, [3e-4, 0.02, 0.0].into_iter());
        assert_eq!((decades.low, decades.high), (-5.0, -1.0));
        assert_eq!(decades.place(0.0), -5.0);
        assert_eq!(decades.text(-4.0), "1e-4");
        assert_eq!(decades.text(-1.0), "0.1");
        let doublings = Marks::over(Scale::Doublings, [1.0, 512.0].into_iter());
        assert_eq!((doublings.low, doublings.high), (0.0, 9.0));
        assert_eq!(doublings.text(9.0), "512");
        let linear = Marks::over(Scale::Linear, [250.0].into_iter());
        assert_eq!(
            linear.key_points(6),
            [0.0, 50.0, 100.0, 150.0, 200.0, 250.0]
        );
        assert_eq!(linear.text(250.0), "250");
        // One value, or only zeros, still make an axis.
        for values in [vec![4.0], vec![0.0], vec![]] {
            for scale in [Scale::Linear, Scale::Decades, Scale::Doublings] {
                let marks = Marks::over(scale, values.iter().copied());
                assert!(marks.low < marks.high, "{values:?} {marks:?}");
            }
        }
    }

    #[test]
    fn nothing_to_draw_is_an_error() {
        let error = plot(Vec::new()).svg().unwrap_err();
        assert_eq!(error.to_string(), "speed by size: no points");
    }
}
