//! Specifications: text and files preserve them, and a specification that cannot be built is
//! rejected with field, value and range. States of the filters in lines.

#[path = "../../../../engine/tests/testing/arrivals.rs"]
mod arrivals;
mod forms;
#[path = "../../../../engine/tests/specs/page.rs"]
mod page;
mod rejections;
#[path = "../../../../engine/tests/specs/state.rs"]
mod state;
mod text;

use echoless::FilterSpec;

/// The page of filters, and the text before its table.
pub(crate) const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/FILTERS.md");
pub(crate) const START: &str = "\
`name:key=value,key=value` names a filter; adapters stand before it, each followed by `/`. Every
filter also takes `memory` (a size such as `64MiB`), `form`, `seed` (a whole number) and `tracked`
(a number above 0, up to 1). An option without a default replaces another one, or is computed from
the others. In one of the forms, with some values of other options, or in little memory, fewer
values are accepted; the error then states which.

The default filter is `fingerprint:fpr=1e-8,replacement=lru` with a memory such as `memory=64MiB`:
one of `rowlru`, `qqht` and `qqhtd` in lines, with the narrowest slots that keep the rate of false
positives `fpr`. Without `form=line` these three are the small fingerprints of the paper, which have
false positives in percent. `replacement` is `lru`, `fifo` or `qqhtd`, and `bits` (8, 16, 32 or 64)
may replace `fpr`; its memory is not optional. With `dense=true` a key has two lines of a page, and
with `window=600` it is forgotten after so many ticks (`lru` or `fifo`, 16 to 64 bits).
";

/// Every filter, with options that differ from the defaults.
pub(crate) const EXAMPLES: [&str; 47] = [
    "bloom:k=7",
    "rsbf:k=3,as=described,pstar=0.05",
    "rsbf:k=2,as=tabled",
    "bsbf:k=1",
    "bsbfsd:k=5",
    "rlbsbf:k=64",
    "sbf:k=2,d=1,p=4,update=every,decrement=consecutive,reach=0.5",
    "sbf:k=3,d=3,fps=0.05,update=distinct,decrement=independent,reach=1",
    "fpsbf:k=3,c=2,f=6,xi=0.25,refill=xor",
    "fpsbf:k=2,c=1,f=8,xi=1,refill=overwrite",
    "fpsbf:k=2,c=3,f=4,xi=0,refill=repaired",
    "bdbf:window=500",
    "bdbf:window=500,k=3,c=5",
    "sqf:slots=1,r=2,kept=1,rows=packed",
    "qht:slots=4,bits=4,rows=sorted",
    "qhtd:slots=2,bits=8,rows=packed",
    "qqht:slots=8,bits=16,rows=packed",
    "qqhtd:slots=8,bits=16,rows=packed",
    "rowlru:slots=16,bits=32,rows=packed",
    "cuckoo:slots=4,bits=12,kicks=8,rows=packed",
    "a2:k=5,rotate=fill",
    "a2:k=5,rotate=count",
    "dbuf:k=3,rotate=count",
    "lru:charge=full",
    "lru:charge=hash",
    "fpbuffer:charge=hash32,q=0.001",
    "fpbuffer:charge=full,q=0.001",
    "bloom:k=4,form=line",
    "rsbf:k=2,as=described,pstar=0.03,form=line",
    "sbf:k=3,d=4,fps=0.05,update=every,decrement=consecutive,reach=1,form=line",
    "fpsbf:k=3,c=2,f=14,xi=0.25,refill=repaired,form=line",
    "rowlru:slots=8,bits=64,rows=packed,form=line",
    "tbf:window=600,k=4,equal=1,refresh=false",
    "tbf:window=9223372036854775807,k=5,equal=3,refresh=true,bits=8",
    "tbf:window=1,k=64,equal=64,refresh=true,bits=2",
    "gbf:window=600,k=3,q=30,refresh=false",
    "gbf:window=1,k=3,q=1,refresh=true",
    "apbf:window=600,k=10,l=7,refresh=false",
    "apbf:window=9223372036854775807,k=1,l=63,refresh=true",
    "clocked:window=600,refresh=true,bits=16,dense=false",
    "clocked:window=600,refresh=true,bits=32,dense=true",
    "clocked:window=9223372036854775807,refresh=false,bits=64,dense=false",
    "stamped:window=1,refresh=false,bits=32",
    "stamped:window=86400000,refresh=true,bits=64",
    "stamped:window=600,refresh=false,bits=64,skew=3000",
    "dense:replacement=lru,bits=16",
    "dense:replacement=fifo,bits=64",
];

/// The filters that have a line form.
pub(crate) const LINE_NAMES: [&str; 15] = [
    "bloom", "rsbf", "bsbf", "bsbfsd", "rlbsbf", "sbf", "fpsbf", "qht", "qhtd", "qqht", "rowlru",
    "qqhtd", "clocked", "stamped", "dense",
];

/// One specification of each line form.
pub(crate) const SAVED: &[&str] = &[
    "bloom:form=line",
    "rsbf:form=line",
    "bsbf:form=line",
    "bsbfsd:form=line",
    "rlbsbf:form=line",
    "sbf:form=line",
    "fpsbf:form=line",
    "qht:form=line",
    "qhtd:form=line",
];

/// Specifications, and whether the filter draws from its seed.
pub(crate) const SEEDS: [(&str, bool); 1] = [("rlbsbf:k=2,form=line,memory=512B", true)];

pub(crate) fn parse(text: &str) -> FilterSpec {
    echoless_papers::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}
