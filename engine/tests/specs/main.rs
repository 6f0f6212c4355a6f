//! Specifications and saved states: text and files preserve them, and a specification that cannot
//! be built is rejected with field, value and range.

use echoless::FilterSpec;

#[path = "../testing/arrivals.rs"]
mod arrivals;
mod page;
mod state;
mod state_errors;
mod state_format;
mod state_sections;
mod state_shared;

/// The page of filters, and the text before its table.
pub(crate) const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/FILTERS.md");
pub(crate) const START: &str = "\
`name:key=value,key=value` names a filter. Every filter also takes `memory` (a size such as
`64MiB`), `form`, `seed` (a whole number) and `tracked` (a number above 0, up to 1). An option
without a default replaces another one, or is computed from the others. With some values of other
options, or in little memory, fewer values are accepted; the error then states which.

The default filter is `fingerprint:fpr=1e-8,replacement=lru` with a memory such as `memory=64MiB`:
one of `rowlru`, `qqht` and `qqhtd` in lines, with the narrowest slots that keep the rate of false
positives `fpr`. `replacement` is `lru`, `fifo` or `qqhtd`, and `bits` (8, 16, 32 or 64) may replace
`fpr`; its memory is not optional. With `dense=true` a key has two lines of a page, and with
`window=600` it is forgotten after so many ticks (`lru` or `fifo`, 16 to 64 bits).

`qqht`, `rowlru` and `qqhtd` need `form=line`: without it they are the small fingerprints of a
paper, which have false positives in percent. These and the other filters of the papers are in the
crate `echoless-papers`.
";

/// Every filter, with options that differ from the defaults.
pub(crate) const EXAMPLES: [&str; 11] = [
    "qqht:slots=32,bits=16,rows=packed,form=line",
    "qqhtd:slots=16,bits=32,rows=packed,form=line",
    "rowlru:slots=8,bits=64,rows=packed,form=line",
    "clocked:window=600,refresh=true,bits=16,dense=false",
    "clocked:window=600,refresh=true,bits=32,dense=true",
    "clocked:window=9223372036854775807,refresh=false,bits=64,dense=false",
    "stamped:window=1,refresh=false,bits=32",
    "stamped:window=86400000,refresh=true,bits=64",
    "stamped:window=600,refresh=false,bits=64,skew=3000",
    "dense:replacement=lru,bits=16",
    "dense:replacement=fifo,bits=64",
];

/// One specification of each line form, and of the other widths of windows.
pub(crate) const SAVED: &[&str] = &[
    "qqht:form=line",
    "rowlru:form=line",
    "qqhtd:form=line",
    "clocked:form=line",
    "stamped:form=line",
    "dense:form=line",
    "clocked:window=1000,bits=16",
    "clocked:window=1000,dense=true",
    "stamped:window=90000,bits=32",
];

/// Specifications, and whether the filter draws from its seed.
pub(crate) const SEEDS: [(&str, bool); 1] = [("fingerprint:fpr=1e-8,memory=512B", false)];

pub(crate) fn parse(text: &str) -> FilterSpec {
    text.parse()
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}
