//! The C interface: `include/echoless.h` is generated from this crate, and has the documentation.
//!
//! A handle is a number in a table, not a pointer, so a handle that was freed, one of another kind
//! and any other number are errors and not crashes. What the library must trust the caller for are
//! the pointers to keys, masks and texts: each type of argument says how much of them is read and
//! written, and [`argument`] checks all that can be checked before a call does anything.
//!
//! Every function returns 0 or the number of a [`Code`](echoless_foreign::Code), and the text of
//! the error stays with the thread until its next error. No panic crosses the boundary.
// The boundary itself: pointers of the caller become slices here, and nowhere else.
#![allow(unsafe_code)]
// The names are those of C.
#![allow(non_camel_case_types)]

pub mod argument;
pub mod exports;
pub mod keys;
pub mod types;
