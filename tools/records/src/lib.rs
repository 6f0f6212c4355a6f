//! From bytes to key hashes: where records end, which bytes of a record are its key, and what is
//! wrong with a faulty one. It has the files and the compression below that, and the options that
//! define records.
//!
//! Imports point down:
//!
//! ```text
//! feed, input, header, position, tag      an input as chunks, and messages about their records
//! formats                                 the record formats, by their names
//! keys                                    from the records of a chunk to key hashes
//! chunk                                   whole records of an input, and the results of each stage
//! format                                  what a record format has to define
//! json, split, quoting, terminators       where records, values and fields end
//! field_list, field_set, compared, fault  which fields, in which form, and what can be wrong
//! compression, files, signals, failure    the bytes of files, and how a run ends
//! ```
//!
//! # How to add a record format
//!
//! 1. Write `formats/NAME.rs`: a type that implements [`Format`](format::Format), with its
//!    [`FormatFacts`](format::FormatFacts), and [`ChunkFormat`](keys::ChunkFormat), and a constant
//!    with its constructor: a `FormatName` for `--format`, or a `FormatOption` for a flag of its
//!    own. Binary records need less: a `BinaryFraming`.
//! 2. In `formats/mod.rs`, add the `mod` line and the constant to `NAMES` or to `OPTIONS`.
//! 3. Add records of it to the samples in `formats/tests.rs`, which fail without them, and a case
//!    to `tests/mutations/cases.rs` and to `tests/cli/arrivals.rs` of `tools/cli`.
//!
//! Nothing else names a format. The command line, its conflicts and `--help` are made from the
//! lists, and the tests of `format.rs` and `formats/tests.rs` run over them. The building blocks
//! are `terminators` (records that end at a byte), `quoting` (RFC 4180), `split` (fields), `binary`
//! (byte ranges, no terminators), `pieces` (records inside of something else) and `json`. Scan a
//! chunk in one call and keep branches out of the loops: `read` is compiled once per format for
//! that purpose.

mod binary;
mod byte_ranges;
pub mod chunk;
mod comments;
mod compared;
pub mod compression;
pub mod count;
pub mod delimiter;
mod event_time;
pub mod failure;
pub mod fault;
pub mod feed;
pub mod field_list;
pub mod field_set;
pub mod files;
pub mod format;
mod formats;
mod header;
mod input;
mod json;
pub mod keys;
pub mod number;
pub mod options;
pub mod partial;
pub mod position;
pub mod progress;
mod quoting;
pub mod reading;
pub mod restart;
pub mod signals;
pub mod spec_file;
pub mod split;
pub mod tag;
pub mod terminators;
mod text_form;
mod text_start;
pub mod time;
pub mod writing;
