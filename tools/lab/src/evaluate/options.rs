//! The options of a measurement.

/// The options of [`evaluate`](super::evaluate): a default for each, and a setter.
///
/// # Examples
/// ```
/// use echoless_lab::evaluate::EvalOptions;
/// let options = EvalOptions::default().points(10).window(5000);
/// assert_eq!((options.seed, options.points, options.window), (1, 10, Some(5000)));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct EvalOptions {
    /// Seed of the draws of the stream and of the key hash; 1 by default. The random choices of a
    /// filter are seeded by its specification.
    pub seed: u64,
    /// Number of points at which the state of each filter is recorded, 1 to the number of records;
    /// 1 by default. They divide the stream evenly, and the last one is its end.
    pub points: u64,
    /// Also count misses by age; off by default. The oracle then takes four bytes for each key of
    /// the universe instead of one bit.
    pub ages: bool,
    /// A key is a duplicate only if its last arrival is at most this many arrivals ago; unlimited
    /// by default.
    pub window: Option<u64>,
}

impl Default for EvalOptions {
    fn default() -> Self {
        Self {
            seed: 1,
            points: 1,
            ages: false,
            window: None,
        }
    }
}

impl EvalOptions {
    /// Sets the [seed](Self#structfield.seed).
    #[must_use]
    pub const fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Sets the [number of points](Self#structfield.points).
    #[must_use]
    pub const fn points(mut self, points: u64) -> Self {
        self.points = points;
        self
    }

    /// Turns the [count by age](Self#structfield.ages) on or off.
    #[must_use]
    pub const fn ages(mut self, ages: bool) -> Self {
        self.ages = ages;
        self
    }

    /// Sets the [window](Self#structfield.window), in arrivals; `None` removes it.
    #[must_use]
    pub fn window(mut self, window: impl Into<Option<u64>>) -> Self {
        self.window = window.into();
        self
    }
}
