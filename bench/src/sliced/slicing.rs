//! The ways to slice a filter, and their names in text.

/// Which slices a filter is cut into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Slicing {
    Horizontal,
    Vertical,
    /// Horizontal slices, each cut vertically.
    HorizontalVertical,
    /// Vertical slices, each cut horizontally.
    VerticalHorizontal,
}

/// The vertical slices of a diced filter: one for each of the four bits of a key.
pub(super) const DICE: u64 = 4;

impl Slicing {
    pub(super) const ALL: [Self; 4] = [
        Self::Horizontal,
        Self::Vertical,
        Self::HorizontalVertical,
        Self::VerticalHorizontal,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Horizontal => "horizontal",
            Self::Vertical => "vertical",
            Self::HorizontalVertical => "h-v",
            Self::VerticalHorizontal => "v-h",
        }
    }

    /// Whether a filter can be cut into so many slices in all.
    pub(super) const fn divides(self, slices: u64) -> bool {
        match self {
            Self::Horizontal | Self::Vertical => true,
            Self::HorizontalVertical | Self::VerticalHorizontal => slices.is_multiple_of(DICE),
        }
    }

    /// The adapters that cut a filter into so many slices in all.
    pub(super) fn adapters(self, slices: u64) -> String {
        let other = slices / DICE;
        match self {
            Self::Horizontal => format!("horizontal:slices={slices}"),
            Self::Vertical => format!("vertical:slices={slices}"),
            Self::HorizontalVertical => {
                format!("horizontal:slices={other}/vertical:slices={DICE}")
            }
            Self::VerticalHorizontal => {
                format!("vertical:slices={DICE}/horizontal:slices={other}")
            }
        }
    }
}
