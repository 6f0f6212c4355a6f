//! The ages at which filters say that they begin to miss duplicates, against an exact oracle.

mod ages;
mod marks;
#[path = "../testing/streams.rs"]
#[expect(dead_code, reason = "tests of audits need the rest")]
mod streams;
mod window_ages;
