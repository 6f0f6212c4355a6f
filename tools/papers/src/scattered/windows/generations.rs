//! The parameters of windows that are cut into generations.

use echoless::extend::{Named, Units};

/// The parameters of a window in generations, except the memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WindowSpec {
    /// W: the window in ticks, 1 to 2^63 - 1.
    pub(super) window: u64,
    /// k: the bits of a key in its generation, or the slices that a key is recorded in (1 to 64).
    pub(super) hashes: u32,
    /// Q or l: the most generations that the window is cut into.
    pub(super) generations: u32,
    /// Whether a duplicate is recorded again, in the newest generation.
    pub(super) refresh: bool,
}

impl WindowSpec {
    pub(super) fn of(named: &Named, generations: &str) -> Self {
        Self {
            window: named.whole("window"),
            hashes: named.small("k"),
            generations: named.small(generations),
            refresh: named.flag("refresh"),
        }
    }

    pub(super) fn units(self) -> Units {
        Units::new(self.window, u64::from(self.generations))
    }
}
