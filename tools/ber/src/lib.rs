//! Call records in BER (ITU-T X.690), as the nodes of mobile networks write them (3GPP TS 32.298),
//! for duplicate detection.
//!
//! Bytes flow one way: [`RecordScan`] finds where records end, or [`ContainerScan`] if they are
//! inside of other elements, and a [`Selector`] finds the values of a key in a record. [`ts32297`]
//! has the headers of the files in which records are transferred (3GPP TS 32.297), a [`Profile`]
//! gives names to tags, and [`synth`] writes records. The crate does not depend on the engine,
//! reads no files and keeps no records.
//!
//! # Examples
//! ```
//! use echoless_ber::record_ends;
//!
//! // Two records with filler between them, the second one of indefinite length.
//! let mut ends = Vec::new();
//! record_ends(b"\xa0\x03\x80\x01\x07\xff\xff\xff\xa1\x80\x80\x01\x07\0\0", 0, &mut ends);
//! assert_eq!(ends, [8, 15]);
//! ```

mod canonical;
mod container;
mod element;
mod error;
mod fields;
mod framing;
mod path;
mod profile;
mod select;
pub mod synth;
pub mod ts32297;
mod walk;

pub use container::{ContainerScan, Piece, PieceKind, container_of};
pub use element::{END_OF_CONTENTS, INDEFINITE_LENGTH, MAX_DEPTH, Tag, length_in};
pub use error::Invalid;
pub use fields::FieldError;
pub use framing::{Lack, RecordScan, element, record_ends};
pub use path::{PathError, TagPath};
pub use profile::{Profile, RecordType, TS32298, TS32298_TEXT};
pub use select::{Location, MAX_FIELDS, Selector};
