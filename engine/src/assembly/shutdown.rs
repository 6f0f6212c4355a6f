//! The error of an engine or an ordered filter that was shut down with lost partitions, and the
//! partitions that survive.

use std::error::Error;
use std::fmt;

use crate::partition::{Partitioned, Partitioning};

/// Some partitions of an [`Engine`](crate::Engine) or an [`OrderedFilter`](crate::OrderedFilter)
/// are lost, and the error returns the others; or it was shut down before.
///
/// # Examples
/// ```
/// use echoless::Filter;
/// use echoless::assembly::ShutdownError;
/// fn report_survivors<F: Filter>(error: &ShutdownError<F>) {
///     for (partition, panic) in &error.lost {
///         eprintln!("partition {partition} is lost: {panic}");
///     }
///     for (partition, filter) in &error.survivors {
///         eprintln!("partition {partition} reports {:?}", filter.report());
///     }
/// }
/// ```
#[non_exhaustive]
pub struct ShutdownError<F> {
    /// The number and the filter of each partition that is not lost, in ascending order.
    pub survivors: Vec<(usize, F)>,
    /// The number of each partition that was lost and not replaced, and the message of the panic,
    /// in ascending order.
    pub lost: Vec<(usize, String)>,
    /// It was shut down before, and that call has all partitions: there are none here.
    pub repeated: bool,
}

impl<F> ShutdownError<F> {
    /// The whole filter if no partition is lost, else the error.
    pub(super) fn or_whole(
        survivors: Vec<(usize, F)>,
        lost: Vec<(usize, String)>,
        partitioning: Partitioning,
    ) -> Result<Partitioned<F>, Self> {
        if !lost.is_empty() {
            return Err(Self {
                survivors,
                lost,
                repeated: false,
            });
        }
        let filters = survivors.into_iter().map(|(_, filter)| filter).collect();
        Ok(Partitioned::new(partitioning, filters).expect("a filter for each partition"))
    }

    /// That of a second shutdown.
    pub(super) const fn repeated() -> Self {
        Self {
            survivors: Vec::new(),
            lost: Vec::new(),
            repeated: true,
        }
    }
}

impl<F> fmt::Debug for ShutdownError<F> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let survivors: Vec<usize> = self.survivors.iter().map(|(index, _)| *index).collect();
        out.debug_struct("ShutdownError")
            .field("survivors", &survivors)
            .field("lost", &self.lost)
            .field("repeated", &self.repeated)
            .finish()
    }
}

impl<F> fmt::Display for ShutdownError<F> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.repeated {
            return out.write_str("it was shut down before");
        }
        for (position, (index, message)) in self.lost.iter().enumerate() {
            let separator = if position == 0 { "" } else { "; " };
            write!(
                out,
                "{separator}partition {index} is lost: its owner panicked ({message})"
            )?;
        }
        Ok(())
    }
}

impl<F> Error for ShutdownError<F> {}
