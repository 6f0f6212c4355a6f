//! From a specification to the lines of a filter: how many there are, how partitions divide them,
//! and the kernel and seed that they are built with.

use std::ops::Range;

use crate::error::{BuildError, SpecError};
use crate::isa::{DetectedKernel, Kernel};
use crate::kernels::LineRange;
use crate::memory::{LINE_BYTES, check_available};
use crate::partition::{Partitioned, Partitioning};

/// The lines that one filter or partition will own, with the kernel and the seed to build it with.
#[derive(Debug, Clone, Copy)]
pub struct LineAllocation {
    /// The first line, and the number of lines of the whole filter.
    pub range: LineRange,
    /// The number of lines of this filter or partition.
    pub lines: u64,
    /// The kernel to run on.
    pub kernel: DetectedKernel,
    /// The seed of the random choices.
    pub seed: u64,
}

/// The size, kernel and seed of a line filter, before it is divided into allocations.
#[derive(Debug, Clone, Copy)]
pub struct LinePlan {
    /// The number of lines of the whole filter, 1 to 2^32: whole buckets.
    pub lines: u64,
    /// The number of lines of a bucket, which no partition divides.
    pub bucket_lines: u64,
    /// The kernel to run on; the best one if `None`.
    pub kernel: Option<Kernel>,
    /// The seed of the random choices.
    pub seed: u64,
}

impl LinePlan {
    /// Builds the filter as `count` partitions, each a contiguous range of its lines.
    ///
    /// # Errors
    /// As for [`range`](Self::range) of all lines, or if `count` is not 1 to the number of buckets.
    pub fn partitions<F>(
        self,
        count: usize,
        build: impl Fn(LineAllocation) -> Result<F, BuildError>,
    ) -> Result<Partitioned<F>, BuildError> {
        // Checked for the whole: each partition alone could fit where all of them do not.
        check_available(self.lines * LINE_BYTES)?;
        let partitioning = self.partitioning(count)?;
        let filters = (0..count)
            .map(|index| build(self.allocation(self.lines_of(&partitioning, index))?))
            .collect::<Result<_, _>>()?;
        Ok(Partitioned::new(partitioning, filters)?)
    }

    /// Builds partition `index` of `count` alone.
    ///
    /// # Errors
    /// As for [`partitions`](Self::partitions), or if `index` is not less than `count`.
    pub fn partition<F>(
        self,
        index: usize,
        count: usize,
        build: impl Fn(LineAllocation) -> Result<F, BuildError>,
    ) -> Result<F, BuildError> {
        let partitioning = self.partitioning(count)?;
        if index >= count {
            let allowed = format!("0 to {}", count - 1);
            return Err(SpecError::new("partition", index.to_string(), allowed).into());
        }
        self.range(self.lines_of(&partitioning, index), build)
    }

    /// Builds a range of whole buckets: all lines, a part of them, or the first bucket, to see
    /// whether the filter can be built, and with which parameters.
    ///
    /// # Errors
    /// [`BuildError`] if this CPU cannot run the kernel, the memory of the range is not available,
    /// or `build` fails.
    pub fn range<F>(
        self,
        lines: Range<u64>,
        build: impl Fn(LineAllocation) -> Result<F, BuildError>,
    ) -> Result<F, BuildError> {
        check_available((lines.end - lines.start) * LINE_BYTES)?;
        build(self.allocation(lines)?)
    }

    /// The lines of one partition: those of its buckets.
    fn lines_of(self, partitioning: &Partitioning, index: usize) -> Range<u64> {
        let buckets = partitioning.buckets_of(index);
        buckets.start * self.bucket_lines..buckets.end * self.bucket_lines
    }

    /// The number of buckets: the most partitions.
    pub const fn buckets(self) -> u64 {
        self.lines / self.bucket_lines
    }

    /// The cut into ranges of buckets: a key's bucket among all is its line over
    /// [`bucket_lines`](Self#structfield.bucket_lines), rounded down.
    fn partitioning(self, count: usize) -> Result<Partitioning, SpecError> {
        let buckets = self.buckets();
        Partitioning::new(buckets, count).map_err(|error| {
            if self.bucket_lines == 1 {
                return error;
            }
            let allowed = format!("1 to {buckets} (one page each)");
            SpecError::new("partitions", count.to_string(), allowed)
        })
    }

    fn allocation(self, lines: Range<u64>) -> Result<LineAllocation, BuildError> {
        Ok(LineAllocation {
            range: LineRange {
                total: self.lines,
                first: lines.start,
            },
            lines: lines.end - lines.start,
            kernel: self
                .kernel
                .map_or(Ok(DetectedKernel::best()), Kernel::detect)?,
            seed: self.seed,
        })
    }
}

impl LineAllocation {
    /// The number of lines of the whole filter.
    pub const fn total_lines(self) -> u64 {
        self.range.total
    }
}

#[cfg(test)]
mod tests {
    use super::super::fingerprint::ClockedRule;
    use super::*;
    use crate::filters::replacement::Lru;
    use crate::filters::units::Units;
    use crate::kernels::MOST_LINES;

    #[test]
    fn more_lines_than_positions_can_name_are_rejected() {
        let build = |lines| {
            let plan = LinePlan {
                lines,
                bucket_lines: 1,
                kernel: None,
                seed: 0,
            };
            let rule = ClockedRule::<u32, Lru>::new(Units::new(100, 5));
            plan.range(0..64, |allocation| allocation.build(rule))
        };
        assert_eq!(build(MOST_LINES).unwrap().lines().len(), 64);
        let error = build(MOST_LINES + 1).unwrap_err();
        let expected = "invalid lines=4294967297: expected 1 to 4294967296";
        assert_eq!(error.to_string(), expected);
    }
}
