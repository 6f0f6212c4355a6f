//! The clock of a timed line filter: a tick of the caller in units that the lines can hold.
//!
//! Lines have few bits for a time, so their times wrap around. A wrap without a window is an
//! **era**:
//!
//! ```text
//! units   0           E          2E          3E        times in lines: b bits
//!         |-- era 0 --|-- era 1 --|-- era 2 --|         E = 2^b - window - 1
//!                     ^ expire    ^ expire
//! ```
//!
//! From the first tick of an era on, a line forgets what had expired at that tick before anything
//! reads it, however late the clock reaches the era: the bytes of a line depend on the keys that
//! select it, their ticks, and the era of the clock, and not on the ticks of other keys. A
//! time in a line therefore lies in the current era or one window before it, which is less than a
//! wrap ago, and its distance from the clock modulo the wrap is its true age. This holds for a
//! clock that jumps over many eras, too: the age at the clock before the jump is still exact, and
//! the jump is added to it in 64 bits.
//!
//! This is the price of full lines: a time of the last visit, too long to wrap, would take the
//! place of a key in every line. An era of stamps is at least 14 windows long, so it costs at most
//! a pass over the memory every 14 windows, in steps ([`expiry`](super::expiry)). An era of clocked
//! lines has nearly 2^28 units, more than most streams see.

use crate::filters::units::Units;

/// The current unit, and when lines must expire.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    /// The units that it counts.
    pub units: Units,
    /// The number of the current unit.
    pub now: u64,
    /// The units of an era.
    era: u64,
    /// The first tick of the next unit: an earlier one needs no division.
    next: u64,
    /// The first tick of the next era; `u64::MAX` if no tick is in it.
    next_era: u64,
}

impl Clock {
    /// A clock at tick 0, for lines that keep times of `time_bits` bits.
    pub const fn new(units: Units, time_bits: u32) -> Self {
        Self::comparing(units, time_bits, 0)
    }

    /// As [`new`](Self::new), for lines whose times are compared with one that is up to `beyond`
    /// units later than the clock.
    pub const fn comparing(units: Units, time_bits: u32, beyond: u64) -> Self {
        debug_assert!(units.alive + beyond < 1 << (time_bits - 1));
        let era = (1 << time_bits) - units.alive - beyond - 1;
        Self {
            units,
            now: 0,
            era,
            next: units.first_tick(1),
            next_era: units.first_tick(era),
        }
    }

    /// Moves to a later tick. If it is in a new era, returns the units from the clock before to the
    /// first unit of that era.
    pub const fn advance_to(&mut self, tick: u64) -> Option<u64> {
        let before = self.now;
        self.follow(tick);
        // At the last of all ticks no era follows, and the clock may stand there already.
        if tick < self.next_era || self.now == before {
            return None;
        }
        let era = self.now / self.era;
        let next = era.saturating_add(1).saturating_mul(self.era);
        self.next_era = self.units.first_tick(next);
        let first = era * self.era;
        if first > before {
            Some(first - before)
        } else {
            None
        }
    }

    /// Moves to a later tick, which must be in the [same era](Self::next_era).
    #[inline(always)]
    pub const fn follow(&mut self, tick: u64) {
        if tick >= self.next {
            self.now = self.units.number(tick);
            self.next = self.units.first_tick(self.now.saturating_add(1));
        }
    }

    /// The first tick of the next era; `u64::MAX` if no tick is in it.
    pub const fn next_era(&self) -> u64 {
        self.next_era
    }

    /// The first tick of the current unit.
    pub const fn tick(&self) -> u64 {
        self.units.first_tick(self.now)
    }

    /// Moves the clock back to 0.
    pub const fn restart(&mut self) {
        self.now = 0;
        self.next = self.units.first_tick(1);
        self.next_era = self.units.first_tick(self.era);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Units of 10 ticks, 5 of which are the window; eras of 10 units.
    fn clock() -> Clock {
        Clock::new(Units::new(50, 5), 4)
    }

    #[test]
    fn the_clock_reports_eras_and_never_goes_back() {
        let mut clock = clock();
        assert_eq!(clock.advance_to(99), None);
        assert_eq!(clock.now, 9);
        assert_eq!(clock.advance_to(100), Some(1));
        assert_eq!(clock.advance_to(12), None);
        assert_eq!(clock.now, 10);
        assert_eq!(clock.advance_to(u64::MAX), Some(u64::MAX / 100 * 10 - 10));
        assert_eq!(clock.advance_to(u64::MAX), None);
        clock.restart();
        assert_eq!((clock.now, clock.advance_to(99)), (0, None));
    }

    #[test]
    fn an_era_ends_where_the_next_one_is_reported() {
        let mut clock = clock();
        assert_eq!(clock.next_era(), 100);
        clock.follow(99);
        assert_eq!((clock.now, clock.next_era()), (9, 100));
        clock.follow(60);
        assert_eq!(clock.now, 9);
        assert_eq!(clock.advance_to(100), Some(1));
        assert_eq!(clock.next_era(), 200);
        clock.advance_to(u64::MAX);
        assert_eq!((clock.now, clock.next_era()), (u64::MAX / 10, u64::MAX));
        clock.restart();
        clock.follow(10);
        assert_eq!((clock.now, clock.next_era()), (1, 100));
    }
}
