//! A chart of a few named values as bars, each with its figure at its end.

use plotters::prelude::*;

use super::svg::ChartError;

/// Named values, drawn as horizontal bars from the least to the greatest.
///
/// # Examples
/// ```
/// use echoless_lab::chart::Bars;
/// let bars = Bars {
///     title: "2 GB of lines, seconds".into(),
///     bars: vec![("sort -u".into(), 12.0), ("ours".into(), 0.5)],
///     highlighted: "ours".into(),
/// };
/// assert!(bars.svg()?.contains("12"));
/// # Ok::<(), echoless_lab::chart::ChartError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Bars {
    /// The line above the bars, with the unit of the values.
    pub title: String,
    /// Names and values, 0 or more.
    pub bars: Vec<(String, f64)>,
    /// The name of the bar that stands out.
    pub highlighted: String,
}

// All lengths are in pixels.
const NAME_WIDTH: i32 = 130;
const LONGEST_BAR: i32 = 420;
const FIGURE_WIDTH: i32 = 90;
const TITLE_HEIGHT: i32 = 34;
const LINE_HEIGHT: i32 = 26;
const BAR_HEIGHT: i32 = 16;
/// Of a bar that would be too short to see.
const SHORTEST_BAR: i32 = 1;

const COLOUR: RGBColor = RGBColor(150, 150, 150);
const HIGHLIGHT: RGBColor = RGBColor(0, 114, 178);

impl Bars {
    /// The chart as an SVG document.
    ///
    /// # Errors
    /// If the drawing library fails; the error names the chart.
    pub fn svg(&self) -> Result<String, ChartError> {
        let mut svg = String::new();
        self.draw(&mut svg)
            .map_err(|error| ChartError::new(&self.title, error.as_ref()))?;
        Ok(svg)
    }

    fn draw(&self, svg: &mut String) -> Result<(), Box<dyn std::error::Error>> {
        let mut bars: Vec<&(String, f64)> = self.bars.iter().collect();
        bars.sort_by(|one, other| one.1.total_cmp(&other.1));
        let greatest = bars.last().map_or(0.0, |bar| bar.1);
        let width = NAME_WIDTH + LONGEST_BAR + FIGURE_WIDTH;
        let height = TITLE_HEIGHT + LINE_HEIGHT * bars.len() as i32;
        let root = SVGBackend::with_string(svg, (width as u32, height as u32)).into_drawing_area();
        root.fill(&WHITE)?;
        let text = |size: i32| ("sans-serif", size);
        root.draw(&Text::new(self.title.as_str(), (8, 8), text(15)))?;
        for ((name, value), line) in bars.into_iter().zip(0..) {
            let top = TITLE_HEIGHT + line * LINE_HEIGHT;
            let length = (value / greatest * f64::from(LONGEST_BAR)).round() as i32;
            let end = NAME_WIDTH + length.max(SHORTEST_BAR);
            let colour = match *name == self.highlighted {
                true => HIGHLIGHT,
                false => COLOUR,
            };
            let corners = [(NAME_WIDTH, top), (end, top + BAR_HEIGHT)];
            root.draw(&Rectangle::new(corners, colour.filled()))?;
            root.draw(&Text::new(name.as_str(), (8, top), text(14)))?;
            root.draw(&Text::new(figure(*value), (end + 6, top), text(14)))?;
        }
        root.present()?;
        Ok(())
    }
}

/// A value in two or three digits, without an exponent.
fn figure(value: f64) -> String {
    match value {
        0.0..1.0 => format!("{value:.2}"),
        1.0..10.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_ordered_and_as_long_as_their_values() {
        let bars = Bars {
            title: "seconds & more".into(),
            bars: vec![
                ("slow".into(), 40.0),
                ("ours".into(), 0.5),
                ("half".into(), 20.0),
            ],
            highlighted: "ours".into(),
        };
        let svg = bars.svg().unwrap();
        assert!(svg.contains("seconds &amp; more"));
        let at = |text: &str| {
            let found: Vec<usize> = svg.match_indices(text).map(|found| found.0).collect();
            assert_eq!(found.len(), 1, "{text}");
            found[0]
        };
        assert!(at("\nours") < at("\nhalf") && at("\nhalf") < at("\nslow"));
        assert!(at("\n0.50") < at("\n20\n") && at("\n20\n") < at("\n40\n"));
        let widths: Vec<u32> = (svg.lines().filter(|line| line.starts_with("<rect")))
            .filter_map(|line| {
                line.split("width=\"")
                    .nth(1)?
                    .split('"')
                    .next()?
                    .parse()
                    .ok()
            })
            .collect();
        // The first one is the background.
        assert_eq!(widths[1..], [5, 210, 420]);
        assert_eq!(svg.matches("#0072B2").count(), 1);
    }

    #[test]
    fn no_bars_and_only_zeros_can_be_drawn() {
        for bars in [vec![], vec![("a".into(), 0.0)]] {
            let bars = Bars {
                title: "none".into(),
                bars,
                highlighted: String::new(),
            };
            assert!(bars.svg().unwrap().starts_with("<svg"));
        }
    }
}
