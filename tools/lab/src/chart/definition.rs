//! What a chart shows, independent of how it is drawn.

use super::scale::Scale;

/// A chart of one or several series.
#[derive(Debug, Clone, PartialEq)]
pub struct Chart {
    /// The line above the data.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The series, in the order of the legend.
    pub series: Vec<Series>,
}

/// One axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// The quantity and its unit.
    pub label: String,
    /// How values map to positions.
    pub scale: Scale,
}

/// Points under one name.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// The text in the legend.
    pub name: String,
    /// How the points are drawn.
    pub style: Style,
    /// A line joins them in this order.
    pub points: Vec<(f64, f64)>,
}

/// How the points of a series are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// A line through all points, with marks on some of them.
    Line,
    /// A mark for each point.
    Points,
}

impl Chart {
    /// Whether no series has a point. Such a chart has axes and a legend only.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.points().next().is_none()
    }

    /// All points of all series.
    pub fn points(&self) -> impl Iterator<Item = (f64, f64)> {
        let series = self.series.iter();
        series.flat_map(|series| series.points.iter().copied())
    }
}

impl Axis {
    /// An axis with this label, which names the quantity and its unit.
    #[must_use]
    pub fn new(label: impl Into<String>, scale: Scale) -> Self {
        Self {
            label: label.into(),
            scale,
        }
    }
}

impl Series {
    /// Points joined by a line.
    #[must_use]
    pub fn line(name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self::new(name, Style::Line, points)
    }

    /// Points that no line joins.
    #[must_use]
    pub fn points(name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self::new(name, Style::Points, points)
    }

    /// Points in this style.
    #[must_use]
    pub fn new(name: impl Into<String>, style: Style, points: Vec<(f64, f64)>) -> Self {
        Self {
            name: name.into(),
            style,
            points,
        }
    }
}
