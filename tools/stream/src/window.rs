//! Windows in ticks.

/// The least number of ticks in a window whose ticks are longer than one unit.
///
/// A batch of keys is judged at one tick, so short ticks make short batches; long ticks make the
/// granule long. The length is 1, 2 or 5 times a power of ten, so a window has 2000 to 4999 ticks
/// and less than a two-thousandth is lost at its edge.
const LEAST_TICKS: u64 = 2000;

/// With a skew, what is remembered has at most so many times the ticks of a window: fewer than 2^20,
/// which is what the stamps of a filter hold.
const MOST_WINDOWS: u64 = 200;

/// The length of a tick of a window this long: the longest of 1, 2 or 5 times a power of ten that is
/// at most a 2000th of it, and 1 at least.
#[must_use]
pub const fn resolution(length: u64) -> u64 {
    let longest = length / LEAST_TICKS;
    let mut power = 1_u64;
    while power <= longest / 10 {
        power *= 10;
    }
    match longest / power {
        0..2 => power,
        2..5 => power * 2,
        _ => power * 5,
    }
}

/// The shortest tick with which a span has at most `most` ticks: 1, 2 or 5 times a power of ten.
///
/// # Panics
/// If `most` is 0.
#[must_use]
pub(crate) const fn resolution_of_at_most(length: u64, most: u64) -> u64 {
    let shortest = length.div_ceil(most);
    let mut power = 1_u64;
    loop {
        // A span has at most 2^64 units, so the products cannot overflow before they are long
        // enough.
        if power >= shortest {
            return power;
        } else if power * 2 >= shortest {
            return power * 2;
        } else if power * 5 >= shortest {
            return power * 5;
        }
        power *= 10;
    }
}

/// A window in ticks. Times that are its length apart are at most `ticks` ticks apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// The length of a tick, in the unit of times.
    pub resolution: u64,
    /// The window, rounded up.
    pub ticks: u64,
    /// A record that is so many ticks older than the clock is in time; an older one is late.
    pub late_after: u64,
    /// How far keys may be ahead of the watermark; 0 if the clock is the latest time.
    pub skew: u64,
}

impl Window {
    /// A window of this length, whose records are late from this age beyond it on, and may be so far
    /// ahead of a watermark.
    #[must_use]
    pub const fn new(length: u64, lateness: u64, skew: u64) -> Self {
        let remembered = match skew {
            0 => 0,
            _ => length.saturating_add(lateness).saturating_add(skew),
        };
        let shortest = remembered / MOST_WINDOWS;
        let longer = if shortest > length { shortest } else { length };
        Self::of_resolution(length, lateness, skew, resolution(longer))
    }

    /// As [`new`](Self::new), with ticks of this length.
    #[must_use]
    pub const fn of_resolution(length: u64, lateness: u64, skew: u64, resolution: u64) -> Self {
        Self {
            resolution,
            ticks: length.div_ceil(resolution),
            late_after: length.saturating_add(lateness).div_ceil(resolution),
            skew: skew.div_ceil(resolution),
        }
    }

    /// How long keys must be remembered beyond the window, in ticks: late ones, too, are judged at
    /// their own times if there is a skew.
    #[must_use]
    pub const fn remembered_beyond(&self) -> u64 {
        match self.skew {
            0 => 0,
            skew => skew + self.late_after - self.ticks,
        }
    }
}
