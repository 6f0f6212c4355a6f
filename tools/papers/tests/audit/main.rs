//! What filters of the papers and audits report about the errors of a stream, against an exact
//! oracle.

#[path = "../../../audit/tests/audit/bounds.rs"]
mod bounds;
#[path = "../../../../engine/tests/testing/streams.rs"]
mod streams;
#[path = "../../../audit/tests/audit/window_bounds.rs"]
mod window_bounds;

use echoless::FilterSpec;

/// Filters whose errors are counted; the memory follows. Those with fingerprints of 8 bits and of
/// one bit have many false duplicates.
pub(crate) const FILTERS: [&str; 4] = [
    "bloom:k=4,form=line",
    "rlbsbf:k=2,form=line",
    "sbf:form=line",
    "cuckoo:slots=4,bits=8",
];

/// Filters with a window; the memory follows.
pub(crate) const WINDOWS: [&str; 4] = [
    "tbf:window=2000",
    "gbf:window=2000",
    "apbf:window=2000",
    "apbf:window=2000,k=4,l=3",
];

/// Filters that do not renew keys, with memory in which from few to many keys are mistaken.
pub(crate) const UNRENEWED: [(&str, u64); 3] = [
    ("apbf:window=10000", 8 << 10),
    ("tbf:window=10000", 16 << 10),
    ("gbf:window=10000", 16 << 10),
];

/// Filters that observe a real log again and again.
pub(crate) const ON_A_LOG: [&str; 1] = ["apbf:window=9000"];

fn parse(text: &str) -> FilterSpec {
    echoless_papers::parse(text).expect("valid")
}
