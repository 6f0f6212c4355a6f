//! How long a filter with a window remembers a key.

/// The window of a filter, in ticks of the caller's clock.
///
/// At an age of `ticks` or less a key is remembered, unless its line was full and it was evicted.
/// At an age of `ticks + granule` or more it is forgotten. In between, it depends on where in a
/// granule the key was recorded.
///
/// The age counts from the tick at which the key was last seen, or last recorded as fresh in a
/// filter that does not renew keys.
///
/// # Examples
/// ```
/// use echoless::{Filter, FilterSpec, KeyHasher, Verdict, Window};
/// let key = KeyHasher::seeded(0).hash_u64(1);
/// let spec: FilterSpec = "clocked:window=600,memory=1MiB".parse()?;
/// assert_eq!(spec.facts().window, Some(Window::new(600, 120)));
/// let mut filter = spec.build()?;
/// assert_eq!(filter.observe_one(key), Verdict::Fresh);
/// filter.advance_to(600);
/// assert_eq!(filter.observe_one(key), Verdict::Duplicate);
/// // It was seen at 600.
/// filter.advance_to(600 + 600 + 120);
/// assert_eq!(filter.observe_one(key), Verdict::Fresh);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Window {
    /// The greatest age at which every key is remembered.
    pub ticks: u64,
    /// How much longer a key may be remembered: at most `granule - 1` ticks. At least 1.
    pub granule: u64,
}

impl Window {
    /// A window of `ticks` ticks and the granule of the filter.
    #[must_use]
    pub const fn new(ticks: u64, granule: u64) -> Self {
        Self { ticks, granule }
    }
}
