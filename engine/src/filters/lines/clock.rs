//! The clock of a timed line filter: a tick of the caller in units that the lines can hold.
//!
//! Lines have few bits for a time, so their times wrap around. Two halves of the wrap are two
//! **eras**:
//!
//! ```text
//! units   0            2^b           2^(b+1)       3 * 2^b
//!         |--- era 0 ---|--- era 1 ---|--- era 2 ---|      times in lines: b + 1 bits
//!                       ^ sweep       ^ sweep
//! ```
//!
//! On the first tick of an era, every line forgets what has expired. A time in a line therefore
//! lies in the current era or one window before it, which is less than a wrap ago, and its distance
//! from the clock modulo the wrap is its true age. This holds for a clock that jumps over many
//! eras, too: at the sweep, the age at the clock before the jump is still exact, and the jump is
//! added to it in 64 bits.
//!
//! The sweep is the price of full lines: a time of the last visit, too long to wrap, would take the
//! place of a key in every line. An era of stamps is at least eight windows long, so it costs at
//! most a pass over the memory every eight windows; where few lines hold keys, it passes over those
//! alone (`touched`). An era of clocked lines has 2^27 units, more than most streams see.

use std::mem;

use crate::filters::units::Units;

/// The current unit, and when lines must be swept.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock {
    pub(super) units: Units,
    /// The number of the current unit.
    pub(super) now: u64,
    /// An era has 2^this units.
    era_bits: u32,
}

impl Clock {
    /// A clock at tick 0, for lines that keep times of `time_bits` bits.
    pub(super) const fn new(units: Units, time_bits: u32) -> Self {
        debug_assert!(units.alive < 1 << (time_bits - 1));
        Self {
            units,
            now: 0,
            era_bits: time_bits - 1,
        }
    }

    /// Moves to a later tick. Returns the units that passed if this is a new era.
    pub(super) const fn advance_to(&mut self, tick: u64) -> Option<u64> {
        let now = self.units.number(tick);
        if now <= self.now {
            return None;
        }
        let before = mem::replace(&mut self.now, now);
        if now >> self.era_bits == before >> self.era_bits {
            None
        } else {
            Some(now - before)
        }
    }

    pub(super) const fn restart(&mut self) {
        self.now = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_reports_eras_and_never_goes_back() {
        let mut clock = Clock::new(Units::new(50, 5), 4);
        assert_eq!(clock.advance_to(79), None);
        assert_eq!(clock.now, 7);
        assert_eq!(clock.advance_to(80), Some(1));
        assert_eq!(clock.advance_to(12), None);
        assert_eq!(clock.now, 8);
        assert_eq!(clock.advance_to(u64::MAX), Some(u64::MAX / 10 - 8));
        clock.restart();
        assert_eq!(clock.now, 0);
    }
}
