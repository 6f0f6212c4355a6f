//! The row of dense lines: the width of a slot and the replacement policy.

use super::rule::DenseRule;
use crate::error::BuildError;
use crate::filters::Form;
use crate::filters::lines::{LineAllocation, LineFilter};
use crate::filters::replacement::{Fifo, Lru, ReplacementPolicy};
use crate::filters::row::{Facts, FilterRow, Head, MOST_SCATTERED, Named, OptionRow};
use crate::kernels::PAGE_LINES;
use crate::memory::LINE_BYTES;
use crate::options::names;
use crate::theory::dense::DenseGeometry;

/// The bytes of a page.
const PAGE_BYTES: u64 = PAGE_LINES as u64 * LINE_BYTES;

/// Builds dense lines with slots of so many bits.
type Build = fn(u64, LineAllocation) -> Result<Box<dyn LineFilter>, BuildError>;

/// The policies that dense lines exist for; the first is the default.
const POLICIES: [(&str, Build); 2] = [(Lru::NAME, build::<Lru>), (Fifo::NAME, build::<Fifo>)];

const OPTIONS: &[OptionRow] = &[
    OptionRow::choice("replacement", &names(&POLICIES)),
    OptionRow::listed("bits", &[16, 32, 64], 32),
];

/// A filter that keeps a key in one of two lines of its page: the form of
/// [`FingerprintSpec`](crate::FingerprintSpec) that remembers most keys in its memory.
///
/// The memory is rounded down to whole pages of 4 KiB, and partitions are ranges of pages. Cache
/// lines touched per key: 2, both in one page.
///
/// Source: lines are rows of quotient hash tables (paper 002, section 3); a choice of two for each
/// key is that of Azar, Broder, Karlin, Upfal: Balanced Allocations, 1994.
pub(in crate::filters) static ROWS: [FilterRow; 1] = [FilterRow {
    head: Head {
        name: "dense",
        options: |_| OPTIONS,
        complete: Named::as_given,
    },
    default_form: Form::Line,
    scattered: None,
    cells: None,
    lines: Some(|named, allocation| {
        named.choice("replacement", &POLICIES)(named.whole("bits"), allocation)
    }),
    facts: |named, _, memory| {
        let lines = memory / PAGE_BYTES * PAGE_LINES as u64;
        let geometry = DenseGeometry::new(lines, named.small("bits"));
        Facts {
            cache_lines: 2.0,
            rate_model: None,
            fpr_limit: geometry.ok().map(DenseGeometry::full_fpr),
            most_memory: MOST_SCATTERED,
            memory_unit: PAGE_BYTES,
            window: None,
            renews_keys: false,
            forgets_by_time: false,
            settles: true,
            power_of_two_rows: false,
        }
    },
}];

fn build<P: ReplacementPolicy>(
    bits: u64,
    allocation: LineAllocation,
) -> Result<Box<dyn LineFilter>, BuildError> {
    let lines = allocation.total_lines();
    match bits {
        16 => allocation.build(DenseRule::<u16, P>::new(lines)),
        32 => allocation.build(DenseRule::<u32, P>::new(lines)),
        _ => allocation.build(DenseRule::<u64, P>::new(lines)),
    }
}
