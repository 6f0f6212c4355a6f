//! JSON (RFC 8259) in records of one value: where the members on given paths are, and which values
//! are equal.
//!
//! [`path`] parses the paths of the key, [`scan`] checks a record and finds the values on them in
//! one pass, [`value`] turns each into bytes that are equal exactly if the values are. A parser of
//! whole values would allocate for every member; of most members only the syntax matters here.

pub(super) mod path;
pub(super) mod scan;
pub(super) mod value;
