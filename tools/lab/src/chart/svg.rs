//! Draws a chart as an SVG document.
//!
//! ```text
//! |<------ DATA_WIDTH ------>|<-- legend -->|
//! +--------------------------+--------------+
//! |          title           | o  name      |
//! |  |                       | ^  name      |
//! |  |   data                | x  name      |
//! |  +-------------------    |              |
//! |          label           |              |
//! +--------------------------+--------------+
//! ```

use plotters::coord::Shift;
use plotters::prelude::*;
use thiserror::Error;

use super::definition::{Chart, Style};
use super::scale::AxisRange;

/// A chart that cannot be drawn.
#[derive(Debug, Error)]
#[error("{title}: {reason}")]
pub struct ChartError {
    title: String,
    reason: String,
}

impl ChartError {
    pub(super) fn new(title: &str, reason: &dyn std::error::Error) -> Self {
        Self {
            title: title.to_owned(),
            reason: reason.to_string(),
        }
    }
}

// All lengths are in pixels.
const DATA_WIDTH: u32 = 720;
const LEAST_HEIGHT: u32 = 480;
const LEGEND_LINE: u32 = 22;
/// Space above the first line of the legend, which puts it beside the top of the data.
const LEGEND_TOP: u32 = 52;
/// A generous mean for a letter of the legend: the library cannot measure text without fonts.
pub(super) const LETTER_WIDTH: u32 = 8;

/// A line has about this many marks: enough to identify it, and few enough to see the line.
const MARKS_ON_A_LINE: usize = 16;

/// The palette of Okabe and Ito, which people with any colour vision can distinguish. Its yellow
/// is left out, as it is too pale on white.
const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(230, 159, 0),
    RGBColor(60, 60, 60),
];

pub(super) type DrawingError = Box<dyn std::error::Error>;

/// The whole drawing, in pixels.
pub(super) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Colour and shape of the marks of a series. A colour recurs only with another shape.
#[derive(Debug, Clone, Copy)]
struct Mark {
    colour: RGBColor,
    shape: usize,
}

impl Mark {
    fn of_series(index: usize) -> Self {
        Self {
            colour: COLOURS[index % COLOURS.len()],
            shape: index / COLOURS.len() % 3,
        }
    }

    fn draw(self, area: &Area, pixel: (i32, i32)) -> Result<(), DrawingError> {
        let drawn = match self.shape {
            0 => area.draw(&Circle::new(pixel, 5, self.colour.filled())),
            1 => area.draw(&TriangleMarker::new(pixel, 6, self.colour.filled())),
            _ => area.draw(&Cross::new(pixel, 4, self.colour.stroke_width(2))),
        };
        Ok(drawn?)
    }
}

impl Chart {
    /// The chart as an SVG document. Its width depends on the longest name in the legend.
    ///
    /// # Errors
    /// If the drawing library fails; the error names the chart.
    pub fn svg(&self) -> Result<String, ChartError> {
        let mut svg = String::new();
        self.draw(&mut svg)
            .map_err(|error| ChartError::new(&self.title, error.as_ref()))?;
        Ok(svg)
    }

    fn draw(&self, svg: &mut String) -> Result<(), DrawingError> {
        let root = SVGBackend::with_string(svg, self.size()).into_drawing_area();
        root.fill(&WHITE)?;
        self.draw_on(&root)?;
        root.present()?;
        Ok(())
    }

    /// Width and height in pixels.
    pub(super) fn size(&self) -> (u32, u32) {
        let height = LEAST_HEIGHT.max(self.series.len() as u32 * LEGEND_LINE + 80);
        let names = self.series.iter().map(|series| series.name.chars().count());
        let legend_width = 40 + names.max().unwrap_or(0) as u32 * LETTER_WIDTH;
        (DATA_WIDTH + legend_width, height)
    }

    /// Draws on a white area of this size or more.
    pub(super) fn draw_on(&self, root: &Area<'_>) -> Result<(), DrawingError> {
        let marks = self.draw_data(root)?;
        for (index, (series, pixels)) in self.series.iter().zip(marks).enumerate() {
            let mark = Mark::of_series(index);
            for pixel in pixels {
                mark.draw(root, pixel)?;
            }
            let line = (LEGEND_TOP + index as u32 * LEGEND_LINE) as i32;
            let left = DATA_WIDTH as i32;
            mark.draw(root, (left + 10, line))?;
            let name = series.name.as_str();
            root.draw(&Text::new(name, (left + 24, line - 7), ("sans-serif", 14)))?;
        }
        Ok(())
    }

    /// Draws axes and lines. Returns the pixels of the marks of each series, which are drawn last,
    /// above all lines.
    fn draw_data(&self, root: &Area<'_>) -> Result<Vec<Vec<(i32, i32)>>, DrawingError> {
        let x = AxisRange::over(self.x.scale, self.points().map(|point| point.0));
        let y = AxisRange::over(self.y.scale, self.points().map(|point| point.1));
        let (area, _) = root.split_horizontally(DATA_WIDTH);
        let mut chart = ChartBuilder::on(&area)
            .caption(&self.title, ("sans-serif", 16))
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
            .x_label_formatter(&|position| x.label(*position))
            .y_label_formatter(&|position| y.label(*position))
            .draw()?;
        let position = |point: &(f64, f64)| (x.position(point.0), y.position(point.1));
        let mut marks = Vec::new();
        for (index, series) in self.series.iter().enumerate() {
            let colour = Mark::of_series(index).colour;
            let measured: Vec<(f64, f64)> = series.points.iter().map(position).collect();
            let mut step = 1;
            if series.style == Style::Line {
                let line = measured.iter().copied();
                chart.draw_series(LineSeries::new(line, colour.stroke_width(2)))?;
                step = measured.len().div_ceil(MARKS_ON_A_LINE).max(1);
            }
            let marked = measured.iter().step_by(step);
            let pixels = marked.map(|at| chart.backend_coord(at));
            // Those of the whole drawing, of which the area may be a part.
            let (left, top) = root.get_base_pixel();
            marks.push(pixels.map(|(x, y)| (x - left, y - top)).collect());
        }
        Ok(marks)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Axis, Scale, Series};
    use super::*;

    fn chart(points: Vec<(f64, f64)>) -> Chart {
        Chart {
            title: "speed by size".into(),
            x: Axis::new("memory, MiB", Scale::Log2),
            y: Axis::new("false positive rate", Scale::Log10),
            series: vec![Series::line("lines & <words>", points)],
        }
    }

    /// The circles of a document.
    fn circles(svg: &str) -> usize {
        svg.lines()
            .filter(|line| line.starts_with("<circle"))
            .count()
    }

    #[test]
    fn a_chart_has_its_names_units_and_points() {
        let points = vec![(1.0, 1e-4), (64.0, 1e-3), (512.0, 0.0)];
        let svg = chart(points).svg().unwrap();
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
        assert_eq!(circles(&svg), 4);
        let lines = svg.lines().filter(|line| line.contains("<polyline"));
        let of_series = lines.filter(|line| line.contains("#0072B2"));
        assert_eq!(of_series.count(), 1);
    }

    #[test]
    fn long_lines_have_few_marks_and_point_series_have_all() {
        let points: Vec<(f64, f64)> = (1..=100).map(|at| (f64::from(at), 1.0)).collect();
        let mut chart = chart(points);
        // Every seventh point, and the legend.
        assert_eq!(circles(&chart.svg().unwrap()), 15 + 1);
        chart.series[0].style = Style::Points;
        assert_eq!(circles(&chart.svg().unwrap()), 100 + 1);
    }

    #[test]
    fn a_chart_without_points_has_axes_and_a_legend() {
        let chart = chart(Vec::new());
        assert!(chart.is_empty());
        let svg = chart.svg().unwrap();
        assert!(svg.contains("memory, MiB") && svg.contains("lines &amp; &lt;words&gt;"));
        assert_eq!(circles(&svg), 1);
    }
}
