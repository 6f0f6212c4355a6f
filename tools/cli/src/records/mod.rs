//! From bytes to key hashes: where records end, which bytes of a record are its key, and what is
//! wrong with a faulty one.
//!
//! # How to add a record format
//!
//! 1. Write `formats/NAME.rs`: a type that implements [`Format`](format::Format), with its
//!    [`FormatFacts`](format::FormatFacts), and a constant with its constructor: a
//!    [`FormatName`](format::FormatName) for `--format`, or a
//!    [`FormatOption`](format::FormatOption) for a flag of its own. Binary records need less: a
//!    [`BinaryFraming`](binary::BinaryFraming).
//! 2. In `formats/mod.rs`, add the `mod` line and the constant to [`NAMES`](formats::NAMES) or to
//!    [`OPTIONS`](formats::OPTIONS).
//! 3. Add records of it to the samples in `formats/tests.rs`, which fail without them, and a case
//!    to `tests/mutations/cases.rs` and to `tests/cli/arrivals.rs`.
//!
//! Nothing else names a format. The command line, its conflicts and `--help` are made from the
//! lists, and the tests of `format.rs` and `formats/tests.rs` run over them. The building blocks
//! are [`terminators`] (records that end at a byte), [`quoting`] (RFC 4180), [`split`] (fields),
//! [`binary`] (byte ranges, no terminators) and [`json`]. Scan a chunk in one call and keep
//! branches out of the loops: `read` is compiled once per format for that purpose.

mod binary;
pub(crate) mod byte_ranges;
pub(crate) mod chunk;
pub(crate) mod comments;
pub(crate) mod compared;
pub(crate) mod count;
pub(crate) mod delimiter;
mod event_time;
pub(crate) mod excerpt;
pub(crate) mod fault;
pub(crate) mod feed;
pub(crate) mod field_list;
pub(crate) mod field_set;
pub(crate) mod format;
pub(crate) mod formats;
pub(crate) mod header;
mod input;
mod json;
pub(crate) mod keys;
pub(crate) mod position;
pub(crate) mod quoting;
pub(crate) mod reading;
pub(crate) mod restart;
pub(crate) mod split;
pub(crate) mod tag;
pub(crate) mod terminators;
pub(crate) mod text_form;
pub(crate) mod text_start;
