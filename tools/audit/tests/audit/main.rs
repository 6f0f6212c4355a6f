//! What audits report about the errors of a stream, against an exact oracle.

mod bounds;
mod real_data;
mod restart;
#[path = "../../../../engine/tests/testing/streams.rs"]
mod streams;
mod window_bounds;

use echoless::FilterSpec;

/// Filters whose errors are counted; the memory follows. Those with fingerprints of 8 bits and of
/// one bit have many false duplicates.
pub(crate) const FILTERS: [&str; 9] = [
    "rowlru:slots=16,bits=32,form=line",
    "rowlru:slots=32,bits=16,form=line",
    "rowlru:slots=64,bits=8,form=line",
    "qqht:slots=16,bits=32,form=line",
    "qqht:slots=64,bits=8,form=line",
    "qqhtd:slots=16,bits=32,form=line",
    "qqhtd:slots=64,bits=8,form=line",
    "rowlru:slots=16,bits=32,form=line,tracked=0.5",
    "dense:bits=16",
];

/// Filters with a window; the memory follows.
pub(crate) const WINDOWS: [&str; 5] = [
    "clocked:window=2000,refresh=true,bits=32",
    "clocked:window=2000,refresh=false,bits=16",
    "clocked:window=2000,refresh=false,bits=32,dense=true",
    "stamped:window=2000,refresh=true,bits=64",
    "stamped:window=2000,refresh=false,bits=32",
];

/// Filters that do not renew keys, with memory in which from few to many keys are mistaken.
pub(crate) const UNRENEWED: [(&str, u64); 3] = [
    ("clocked:window=10000,refresh=false,bits=16", 16 << 10),
    (
        "clocked:window=10000,refresh=false,bits=16,dense=true",
        12 << 10,
    ),
    ("clocked:window=10000,refresh=false,bits=32", 64 << 10),
];

/// Filters that observe a real log again and again.
pub(crate) const ON_A_LOG: [&str; 3] = [
    "clocked:window=2000,refresh=false,bits=16",
    "clocked:window=9000,refresh=false,bits=16",
    "clocked:window=30000,refresh=false,bits=16",
];

fn parse(text: &str) -> FilterSpec {
    text.parse().expect("valid")
}
