//! Lines of text above charts, in one drawing.

use plotters::prelude::*;

use super::definition::Chart;
use super::svg::{ChartError, DrawingError, LETTER_WIDTH};

// All lengths are in pixels.
const MARGIN: u32 = 12;
const LINE_HEIGHT: u32 = 20;

/// These lines, and below them the charts, one under the other, as an SVG document.
///
/// # Errors
/// If the drawing library fails; the error names the first line.
///
/// # Examples
/// ```
/// use echoless_lab::chart::{Axis, Chart, Scale, Series, page};
/// let chart = Chart {
///     title: "Speed by size".into(),
///     x: Axis::new("memory, MiB", Scale::Log2),
///     y: Axis::new("million keys per second", Scale::Linear),
///     series: vec![Series::line("fifo", vec![(1.0, 500.0), (64.0, 200.0)])],
/// };
/// let svg = page(&["two filters & more".into()], &[chart.clone(), chart])?;
/// assert!(svg.contains("two filters &amp; more"));
/// assert_eq!(svg.matches("Speed by size").count(), 2);
/// # Ok::<(), echoless_lab::chart::ChartError>(())
/// ```
pub fn page(lines: &[String], charts: &[Chart]) -> Result<String, ChartError> {
    let mut svg = String::new();
    draw(&mut svg, lines, charts).map_err(|error| {
        let title = lines.first().map_or("", String::as_str);
        ChartError::new(title, error.as_ref())
    })?;
    Ok(svg)
}

fn draw(svg: &mut String, lines: &[String], charts: &[Chart]) -> Result<(), DrawingError> {
    let text_height = 2 * MARGIN + lines.len() as u32 * LINE_HEIGHT;
    let letters = lines.iter().map(|line| line.chars().count() as u32);
    let text_width = 2 * MARGIN + letters.max().unwrap_or(0) * LETTER_WIDTH;
    let sizes = || charts.iter().map(Chart::size);
    let width = sizes().map(|(width, _)| width).fold(text_width, u32::max);
    let height = text_height + sizes().map(|(_, height)| height).sum::<u32>();
    let root = SVGBackend::with_string(svg, (width, height)).into_drawing_area();
    root.fill(&WHITE)?;
    for (line, number) in lines.iter().zip(0..) {
        let at = (MARGIN as i32, (MARGIN + number * LINE_HEIGHT) as i32);
        root.draw(&Text::new(line.as_str(), at, ("sans-serif", 15)))?;
    }
    let (_, mut rest) = root.split_vertically(text_height);
    for chart in charts {
        let (area, below) = rest.split_vertically(chart.size().1);
        chart.draw_on(&area)?;
        rest = below;
    }
    root.present()?;
    Ok(())
}
