//! JSON (RFC 8259) in records of one value: where the values on given paths are, and which values
//! are equal.
//!
//! [`path`] parses the paths of the key, [`find`] finds the values on them by the tokens of
//! [`scan`], [`value`] turns each into bytes that are equal exactly if the values are, with
//! [`number`] for numbers. [`lists`] finds arrays that hold records. [`framing`] finds where values end that are not one in each line. A
//! parser of whole values would allocate for every member; of most members only the syntax matters
//! here.

pub(super) mod find;
pub(super) mod framing;
pub(super) mod lists;
mod number;
pub(super) mod path;
pub(super) mod scan;
#[cfg(test)]
mod tests;
pub(super) mod value;
