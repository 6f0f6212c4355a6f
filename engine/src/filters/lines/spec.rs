//! From a published filter's own specification to its line form, whole or in partitions.

use super::ageing::{
    ByFill, COUNTED_LINE_BITS, Counted, EachFilter, LineAgeing, MOST_ARRIVALS, Never, OneFilter,
};
use super::bits::BitRule;
use super::filter::{LineFilter, LineForm, Rule};
use super::fingerprint_stable::FingerprintStableRule;
use super::layout::{BitLayout, Fixed, Ranges, WholeWords};
use super::random::Salt;
use super::row::RowRule;
use super::stable::StableRule;
use crate::error::{BuildError, SpecError};
use crate::filters::lines::fingerprint::{
    FingerprintLines, FingerprintSpec, Replacement, SlotWidth,
};
use crate::filters::scattered::bits::{Ageing, BitsSpec, Reservoir};
use crate::filters::scattered::cells::{FingerprintStableSpec, StableSpec};
use crate::filters::scattered::checks::{MOST_HASHES, within};
use crate::filters::scattered::rows::{Fingerprint, OnHit, RowEncoding, RowSpec, Victim};
use crate::kernels::isa::{DetectedKernel, Kernel};
use crate::kernels::{LINE_BITS, LineRange};
use crate::memory::{LINE_BYTES, LineArray, check_available};
use crate::partition::{Partitioned, Partitioning};

/// A published filter that has a line form.
///
/// On the AVX2 and AVX-512 kernels all of them load, test and change a line in vectors, but for what is said of each.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum LineKind {
    /// Bloom (Bloom 1970), and RSBF, BSBF, BSBFSD, RLBSBF (paper 000, section 3): k filters of 512/k bits in a line.
    ///
    /// RSBF counts the arrivals of a line in 16 of its bits, which leaves 496. It tells 65,280 of them apart; from there on the i of its s/i stays
    /// there, so that `as=tabled` goes on to insert one arrival in 65,280/s, where the paper's insertions get ever fewer.
    Bits(BitsSpec),
    /// SBF (paper 004, algorithm 1) with cells of 1, 2, 4 or 8 bits, 504 bits of them and a count of 8 bits. The K cells of a key lie in K ranges of
    /// the line. P follows from an FPR bound as for a filter of one line's cells, which each line is; the FPR measured keeps within 3 % of
    /// the bound for all d and for K up to 31. Independent decrements are done cell by cell.
    Stable(StableSpec),
    /// FP-SBF (paper 003, algorithm 2) with cells of 8 or 16 bits, counter and fingerprint together; without vectors.
    FingerprintStable(FingerprintStableSpec),
    /// QHT and QHTD (paper 002, sections 3 and 5), and as [`FingerprintLines`] QQHT, QQHTD and row-LRU: rows of 64 x 8, 32 x 16, 16 x 32 or 8 x 64
    /// bits. A QHTD counts its arrivals in one slot of each line, which leaves 63, 31, 15 or 7.
    Row(RowSpec),
}

/// The specification of the line form of a filter. One cache line is touched for each key.
///
/// # Examples
/// ```
/// use echoless::filters::lines::{LineKind, LineSpec};
/// use echoless::filters::scattered::bits::{Ageing, BitsSpec};
/// use echoless::{Filter, KeyHash, Verdict};
/// let rlbsbf = BitsSpec { hashes: 2, ageing: Ageing::ByFill };
/// let mut filter = LineSpec::new(LineKind::Bits(rlbsbf), 1 << 20).build()?;
/// assert_eq!(filter.observe_one(KeyHash(17)), Verdict::Fresh);
/// assert_eq!(filter.observe_one(KeyHash(17)), Verdict::Duplicate);
/// # Ok::<(), echoless::BuildError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LineSpec {
    kind: LineKind,
    memory_bytes: u64,
    seed: u64,
    kernel: Option<Kernel>,
}

/// Positions in a line are independent of the line among up to so many.
const MOST_LINES: u64 = 1 << 32;

impl LineSpec {
    /// The filter in `memory_bytes`, rounded down to whole lines of 64 bytes; its seed is 0.
    #[must_use]
    pub const fn new(kind: LineKind, memory_bytes: u64) -> Self {
        Self {
            kind,
            memory_bytes,
            seed: 0,
            kernel: None,
        }
    }

    /// Its random choices drawn from this seed, the key hash and the line.
    #[must_use]
    pub const fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Forces a kernel, for tests and benchmarks; the fastest one otherwise.
    #[must_use]
    pub const fn kernel(mut self, kernel: Kernel) -> Self {
        self.kernel = Some(kernel);
        self
    }

    /// Builds the filter.
    ///
    /// # Errors
    /// [`BuildError`] if the memory holds no line or more than 2^32, a value is outside its range, or the machine refuses the memory.
    pub fn build(&self) -> Result<Box<dyn LineForm>, BuildError> {
        let total = self.lines()?;
        self.build_range(LineRange { total, first: 0 }, total)
    }

    /// Builds the filter as `count` partitions, each a contiguous range of its lines, for one owner each.
    ///
    /// The partition that [`Partitioning::partition_of`] names for a key judges it exactly as the whole filter would.
    ///
    /// # Errors
    /// [`BuildError`] as in [`build`](Self::build), or if there are fewer lines than partitions, or none.
    pub fn build_partitions(
        &self,
        count: usize,
    ) -> Result<Partitioned<Box<dyn LineForm>>, BuildError> {
        let total = self.lines()?;
        // Each partition alone might still fit.
        check_available(total * LINE_BYTES)?;
        let partitioning = Partitioning::new(total, count)?;
        let filters = (0..count)
            .map(|index| {
                let lines = partitioning.lines_of(index);
                let first = lines.start;
                self.build_range(LineRange { total, first }, lines.end - first)
            })
            .collect::<Result<_, BuildError>>()?;
        Ok(Partitioned::new(partitioning, filters)?)
    }

    /// The same filter as [`FingerprintLines`], which report more of themselves; `None` if it is none of them.
    ///
    /// # Examples
    /// ```
    /// use echoless::{FilterSpec, SlotWidth};
    /// let fingerprints = |text: &str| {
    ///     let spec: FilterSpec = text.parse().unwrap();
    ///     spec.line_spec().unwrap().fingerprints()
    /// };
    /// let shape = fingerprints("rowlru:form=line,memory=1MiB").unwrap().geometry()?;
    /// assert_eq!(shape.width, SlotWidth::Bits16);
    /// assert_eq!(fingerprints("bloom:form=line,memory=1MiB"), None);
    /// # Ok::<(), echoless::SpecError>(())
    /// ```
    #[must_use]
    pub fn fingerprints(&self) -> Option<FingerprintSpec> {
        let LineKind::Row(row) = self.kind else {
            return None;
        };
        self.lines().ok()?;
        let spec = FingerprintSpec::new(self.memory_bytes)
            .slot_width(row_width(row).ok()?)
            .replacement(queue_policy(row)?);
        Some(match self.kernel {
            Some(kernel) => spec.kernel(kernel),
            None => spec,
        })
    }

    fn lines(&self) -> Result<u64, SpecError> {
        let lines = self.memory_bytes / LINE_BYTES;
        if (1..=MOST_LINES).contains(&lines) {
            return Ok(lines);
        }
        let allowed = "64 B (one line) to 256 GiB (2^32 lines)";
        Err(SpecError::new(
            "memory",
            format!("{} B", self.memory_bytes),
            allowed,
        ))
    }

    fn build_range(&self, range: LineRange, lines: u64) -> Result<Box<dyn LineForm>, BuildError> {
        let kernel = self
            .kernel
            .map_or(Ok(DetectedKernel::best()), Kernel::grant)?;
        let allocation = LineAllocation {
            range,
            lines,
            kernel,
        };
        let salt = Salt::from_seed(self.seed);
        match self.kind {
            LineKind::Bits(spec) => build_bits(spec, salt, allocation),
            LineKind::Stable(spec) => match spec.cell_bits {
                1 => build_stable::<1>(spec, salt, allocation),
                2 => build_stable::<2>(spec, salt, allocation),
                4 => build_stable::<4>(spec, salt, allocation),
                8 => build_stable::<8>(spec, salt, allocation),
                bits => Err(
                    SpecError::new("d", bits.to_string(), "1, 2, 4 or 8 in the line form").into(),
                ),
            },
            LineKind::FingerprintStable(spec) => match (spec.counter_bits, spec.fingerprint_bits) {
                (1..=7, bits) if spec.counter_bits + bits == 8 => {
                    allocation.filter(FingerprintStableRule::<8>::new(spec, salt)?)
                }
                (1..=15, bits) if spec.counter_bits + bits == 16 => {
                    allocation.filter(FingerprintStableRule::<16>::new(spec, salt)?)
                }
                (counter, bits) => Err(SpecError::new(
                    "c + f",
                    format!("{counter} + {bits} bits"),
                    "8 or 16 bits in the line form, with at least 1 bit each",
                )
                .into()),
            },
            LineKind::Row(spec) => build_row(spec, salt, allocation),
        }
    }
}

/// Where a filter is built: the lines it owns and the kernel it runs on.
#[derive(Clone, Copy)]
struct LineAllocation {
    range: LineRange,
    lines: u64,
    kernel: DetectedKernel,
}

impl LineAllocation {
    fn filter(self, rule: impl Rule) -> Result<Box<dyn LineForm>, BuildError> {
        let lines = LineArray::zeroed(self.lines)?;
        Ok(Box::new(LineFilter::new(
            lines,
            self.range,
            rule,
            self.kernel,
        )))
    }

    fn queue(
        self,
        width: SlotWidth,
        replacement: Replacement,
    ) -> Result<Box<dyn LineForm>, BuildError> {
        let lines = LineArray::zeroed(self.lines)?;
        let (range, kernel) = (self.range, self.kernel);
        let filter = FingerprintLines::new(lines, range, width, replacement, kernel);
        Ok(Box::new(filter))
    }
}

fn build_bits(
    spec: BitsSpec,
    salt: Salt,
    allocation: LineAllocation,
) -> Result<Box<dyn LineForm>, BuildError> {
    let hashes = within("k", spec.hashes, 1..=MOST_HASHES)?;
    match spec.ageing {
        Ageing::Never => age_bits(hashes, Never, salt, allocation),
        Ageing::EachFilter => age_bits(hashes, EachFilter, salt, allocation),
        Ageing::OneFilter => age_bits(hashes, OneFilter, salt, allocation),
        Ageing::ByFill => age_bits(hashes, ByFill, salt, allocation),
        Ageing::Reservoir(process) => count_bits(hashes, process, salt, allocation),
    }
}

fn age_bits(
    hashes: u32,
    ageing: impl LineAgeing,
    salt: Salt,
    allocation: LineAllocation,
) -> Result<Box<dyn LineForm>, BuildError> {
    match hashes {
        1 => place_bits(WholeWords::<1>, ageing, salt, allocation),
        2 => place_bits(WholeWords::<2>, ageing, salt, allocation),
        3 => place_bits(
            Ranges::in_bits(Fixed::<3>, LINE_BITS),
            ageing,
            salt,
            allocation,
        ),
        4 => place_bits(WholeWords::<4>, ageing, salt, allocation),
        6 => place_bits(
            Ranges::in_bits(Fixed::<6>, LINE_BITS),
            ageing,
            salt,
            allocation,
        ),
        8 => place_bits(WholeWords::<8>, ageing, salt, allocation),
        _ => place_bits(Ranges::in_bits(hashes, LINE_BITS), ageing, salt, allocation),
    }
}

fn count_bits(
    hashes: u32,
    process: Reservoir,
    salt: Salt,
    allocation: LineAllocation,
) -> Result<Box<dyn LineForm>, BuildError> {
    let layout = Ranges::in_bits(hashes, COUNTED_LINE_BITS);
    if let Reservoir::Described { threshold } = process {
        // Below it the third phase would never begin, for the count of arrivals is full before.
        let least = f64::from(COUNTED_LINE_BITS / hashes) / MOST_ARRIVALS as f64;
        if !(threshold == 0.0 || (least..=1.0).contains(&threshold)) {
            let allowed = format!("0, or {least:.2e} to 1 in the line form");
            return Err(SpecError::new("pstar", threshold.to_string(), allowed).into());
        }
    }
    match hashes {
        2 => {
            let layout = Ranges::in_bits(Fixed::<2>, COUNTED_LINE_BITS);
            place_bits(layout, Counted(process), salt, allocation)
        }
        _ => place_bits(layout, Counted(process), salt, allocation),
    }
}

fn place_bits(
    layout: impl BitLayout,
    ageing: impl LineAgeing,
    salt: Salt,
    allocation: LineAllocation,
) -> Result<Box<dyn LineForm>, BuildError> {
    allocation.filter(BitRule {
        layout,
        ageing,
        salt,
    })
}

fn build_stable<const D: u32>(
    spec: StableSpec,
    salt: Salt,
    allocation: LineAllocation,
) -> Result<Box<dyn LineForm>, BuildError> {
    match spec.hashes {
        2 => allocation.filter(StableRule::<D, _>::new(spec, Fixed::<2>, salt)?),
        3 => allocation.filter(StableRule::<D, _>::new(spec, Fixed::<3>, salt)?),
        hashes => allocation.filter(StableRule::<D, _>::new(spec, hashes, salt)?),
    }
}

fn build_row(
    spec: RowSpec,
    salt: Salt,
    allocation: LineAllocation,
) -> Result<Box<dyn LineForm>, BuildError> {
    let width = row_width(spec)?;
    if let Some(replacement) = queue_policy(spec) {
        return allocation.queue(width, replacement);
    }
    if spec.on_hit == OnHit::MoveToFront {
        let allowed = "keep or insert again (rows with random victims have no front)";
        return Err(SpecError::new("on hit", "move to front", allowed).into());
    }
    if spec.on_hit == OnHit::InsertAgain {
        build_random_row::<true>(width, salt, allocation)
    } else {
        build_random_row::<false>(width, salt, allocation)
    }
}

/// The width of the slots of a row that fills a line.
fn row_width(spec: RowSpec) -> Result<SlotWidth, SpecError> {
    let Fingerprint::Nonzero { bits } = spec.fingerprint else {
        let allowed = "nonzero in the line form";
        return Err(SpecError::new("fingerprint", "counted", allowed));
    };
    if spec.form == RowEncoding::Sorted {
        return Err(SpecError::new("rows", "sorted", "packed in the line form"));
    }
    // QHTD lines count their arrivals in place of one slot.
    let counted = (spec.victim, spec.on_hit) == (Victim::Random, OnHit::InsertAgain);
    let slots = |width: SlotWidth| width.slots() - u32::from(counted);
    let fitting = SlotWidth::ALL
        .into_iter()
        .find(|width| (slots(*width), width.bits()) == (spec.slots, bits));
    fitting.ok_or_else(|| {
        let asked = format!("{} of {bits} bits", spec.slots);
        let [a, b, c, d] = SlotWidth::ALL.map(slots);
        let allowed = format!("{a} of 8 bits, {b} of 16, {c} of 32 or {d} of 64 in the line form");
        SpecError::new("slots", asked, allowed)
    })
}

/// How a row ages that is a queue; `None` if its victims are random.
const fn queue_policy(spec: RowSpec) -> Option<Replacement> {
    match (spec.victim, spec.on_hit) {
        (Victim::Oldest, OnHit::Keep) => Some(Replacement::Fifo),
        (Victim::Oldest, OnHit::InsertAgain) => Some(Replacement::Qqhtd),
        (Victim::Oldest, OnHit::MoveToFront) => Some(Replacement::Lru),
        (Victim::Random, _) => None,
    }
}

fn build_random_row<const AGAIN: bool>(
    width: SlotWidth,
    salt: Salt,
    allocation: LineAllocation,
) -> Result<Box<dyn LineForm>, BuildError> {
    match width {
        SlotWidth::Bits8 => allocation.filter(RowRule::<u8, AGAIN>::new(salt)),
        SlotWidth::Bits16 => allocation.filter(RowRule::<u16, AGAIN>::new(salt)),
        SlotWidth::Bits32 => allocation.filter(RowRule::<u32, AGAIN>::new(salt)),
        SlotWidth::Bits64 => allocation.filter(RowRule::<u64, AGAIN>::new(salt)),
    }
}
