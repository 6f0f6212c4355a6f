//! The units that a filter with a window counts time in, and the window that it promises with them.

use super::row::OptionRow;
use crate::report::Window;

/// The units of a clock, and how many of them a key stays alive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Units {
    /// The ticks of a unit.
    ticks: u64,
    /// A key is alive while the number of its unit is at most this far below the current one.
    pub alive: u64,
    /// The requested window, in ticks.
    window: u64,
}

/// The longest window: with it, no sum of ticks overflows.
pub const LONGEST_WINDOW: u64 = u64::MAX >> 1;

/// The window without an option, as that of `bdbf`: about a million ticks.
pub const DEFAULT_WINDOW: u64 = 1 << 20;

/// The option of a window in ticks.
pub const WINDOW: OptionRow = OptionRow::whole("window", 1, LONGEST_WINDOW, DEFAULT_WINDOW);

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
    pub const fn new(window: u64, most: u64) -> Self {
        debug_assert!(window >= 1 && window <= LONGEST_WINDOW && most >= 1);
        let ticks = window.div_ceil(most);
        Self {
            ticks,
            alive: window.div_ceil(ticks),
            window,
        }
    }

    /// The same units, of which fewer make up a shorter window.
    pub const fn with_window(self, window: u64) -> Self {
        Self {
            alive: window.div_ceil(self.ticks),
            window,
            ..self
        }
    }

    /// The number of the unit that a tick lies in.
    #[inline(always)]
    pub const fn number(self, tick: u64) -> u64 {
        // Most units are one tick, and a predicted branch takes less time than a division.
        if self.ticks == 1 {
            tick
        } else {
            tick / self.ticks
        }
    }

    /// The first tick of the unit with this number; `u64::MAX` if there is none.
    #[inline(always)]
    pub const fn first_tick(self, number: u64) -> u64 {
        number.saturating_mul(self.ticks)
    }

    /// How much of its unit is over at a tick, scaled to 0 up to `whole` (excluded).
    pub const fn elapsed(self, tick: u64, whole: u64) -> u64 {
        let ticks = (tick % self.ticks) as u128;
        (ticks * whole as u128 / self.ticks as u128) as u64
    }

    /// The window, and how much longer than it a key may be remembered.
    pub const fn window(self) -> Window {
        Window::new(self.window, (self.alive + 1) * self.ticks - self.window)
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
            most in prop_oneof![1_u64..8, Just(1 << 12), Just(1 << 20)],
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
    fn the_elapsed_part_of_a_unit_is_scaled_without_overflow() {
        let units = Units::new(50, 5);
        let elapsed = [20, 21, 25, 29, 30].map(|tick| units.elapsed(tick, 100));
        assert_eq!(elapsed, [0, 10, 50, 90, 0]);
        assert_eq!(Units::new(7, 7).elapsed(u64::MAX, u64::MAX), 0);
        let long = Units::new(LONGEST_WINDOW, 1);
        assert_eq!(long.elapsed(LONGEST_WINDOW - 1, u64::MAX), u64::MAX - 3);
    }
}
