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
//! place of a key in every line. An era of stamps is at least eight windows long, and one of
//! clocked lines 2^27 units, so few streams are long enough to see the second sweep.

use std::mem;

use crate::window::Window;

/// The units of a clock, and how many of them a key stays alive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Units {
    /// The ticks of a unit.
    ticks: u64,
    /// A key is alive while the number of its unit is at most this far below the current one.
    pub(super) alive: u64,
    /// The window that was asked for, in ticks.
    window: u64,
}

/// The longest window: with it, no sum of ticks overflows.
pub(super) const LONGEST_WINDOW: u64 = u64::MAX >> 1;

impl Units {
    /// The shortest units of which at most `most` make up the window.
    ///
    /// Let `u` be the ticks of a unit and `a = alive = ceil(window / u)`. A key of tick `t` is
    /// alive at tick `t + d` if and only if `(t + d) / u - t / u <= a`, in whole numbers.
    ///
    /// - It is alive for `d <= window`: that difference is at most `ceil(d / u)`, because `d` ticks
    ///   cross a unit border at most every `u` ticks, the first one after 1 tick.
    /// - It is dead for `d >= (a + 1) * u`: so many ticks cross `a + 1` borders wherever they
    ///   begin.
    ///
    /// So the granule is `(a + 1) * u - window`. That is `u` if `u` divides the window, else less
    /// than `2 * u`: the key's own unit, which is partly over, and the rounding of the window to
    /// whole units.
    pub(super) const fn new(window: u64, most: u64) -> Self {
        debug_assert!(window >= 1 && window <= LONGEST_WINDOW && most >= 2);
        let ticks = window.div_ceil(most);
        Self {
            ticks,
            alive: window.div_ceil(ticks),
            window,
        }
    }

    /// The window, and how much longer than it a key may be remembered.
    pub(super) const fn window(self) -> Window {
        Window::new(self.window, (self.alive + 1) * self.ticks - self.window)
    }
}

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
        let now = tick / self.units.ticks;
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
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn keys_live_for_the_window_and_less_than_a_granule_more(
            window in prop_oneof![1_u64..200, 1..=LONGEST_WINDOW],
            most in prop_oneof![Just(5_u64), Just(1 << 12), Just(1 << 20)],
            tick in prop_oneof![0_u64..1000, 0..=u64::MAX >> 2],
            part in 0.0_f64..1.0,
        ) {
            let units = Units::new(window, most);
            let Window { ticks, granule, .. } = units.window();
            prop_assert_eq!(ticks, window);
            prop_assert!(units.alive <= most);
            // In whole units where the window is whole units, else at most one unit more.
            prop_assert!(granule >= units.ticks && granule < 2 * units.ticks);
            let age = |ticks: u64| u128::from(tick) + u128::from(ticks);
            let unit = |tick: u128| tick / u128::from(units.ticks);
            let alive = |ticks: u64| unit(age(ticks)) - unit(u128::from(tick)) <= u128::from(units.alive);
            prop_assert!(alive(window) && alive((window as f64 * part) as u64));
            prop_assert!(!alive(window + granule));
        }
    }

    #[test]
    fn granules_are_a_fifth_of_the_window_or_a_tick() {
        for (window, most, granule) in [
            (1, 5, 1),
            (5, 5, 1),
            (6, 5, 2),
            (600, 5, 120),
            (601, 5, 125),
            (4096, 4096, 1),
            (4097, 4096, 3),
            (1 << 30, 1 << 20, 1 << 10),
        ] {
            assert_eq!(
                Units::new(window, most).window(),
                Window::new(window, granule)
            );
        }
    }

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
