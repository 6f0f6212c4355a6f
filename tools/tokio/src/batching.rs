//! How a stream of records is cut into batches.

use std::time::Duration;

/// How records are collected to batches. A batch is submitted once it is full, or its oldest record
/// has waited for the delay, or the stream has ended.
///
/// Large batches cost less for each record: those of 64 records and more share messages.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use echoless_tokio::Batching;
/// let batching = Batching::default().records(4096).delay(Duration::from_millis(20));
/// assert_eq!(batching, Batching::default().delay(Duration::from_millis(20)).records(4096));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Batching {
    pub(crate) records: usize,
    pub(crate) delay: Duration,
    pub(crate) in_flight: usize,
}

impl Default for Batching {
    /// Batches of at most 1,024 records and 5 milliseconds, 4 of them in flight.
    fn default() -> Self {
        Self {
            records: 1024,
            delay: Duration::from_millis(5),
            in_flight: 4,
        }
    }
}

impl Batching {
    /// At most so many records in a batch.
    ///
    /// # Panics
    /// If `records` is 0, or 2^31 or more: a [port](echoless::Port) takes no larger batches.
    #[must_use]
    pub const fn records(mut self, records: usize) -> Self {
        let allowed = records > 0 && records < 1 << 31;
        assert!(allowed, "invalid records: expected 1 to 2147483647");
        self.records = records;
        self
    }

    /// How long the first record of a batch waits for others, in the resolution of timers, a
    /// millisecond. With [`Duration::ZERO`], what the stream has at once is a batch; with
    /// [`Duration::MAX`], a batch waits until it is full or the stream ends.
    #[must_use]
    pub const fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// How many batches may be in flight before the stream is not read further. With `records` it
    /// bounds the memory: another batch is collected meanwhile, and another one is given out.
    ///
    /// # Panics
    /// If `batches` is 0.
    #[must_use]
    pub const fn in_flight(mut self, batches: usize) -> Self {
        assert!(batches > 0, "invalid batches: expected 1 or more");
        self.in_flight = batches;
        self
    }
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;

    use super::Batching;

    #[test]
    fn batches_have_no_more_records_than_a_port_takes() {
        for (records, allowed) in [
            (0, false),
            (1, true),
            ((1 << 31) - 1, true),
            (1 << 31, false),
        ] {
            let batching = catch_unwind(|| Batching::default().records(records));
            assert_eq!(batching.is_ok(), allowed, "{records}");
        }
    }
}
