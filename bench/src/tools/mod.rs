//! The command against the tools that a user would pick instead, on files made for it: time, memory, and whether the output is right.
//!
//! A missing tool is a row that says so. What comes out is compared with what an exact tool
//! made of the same input: byte for byte where order is kept, else as a collection of lines.

mod catalogue;
mod child;
mod digest;
mod measure;

pub use measure::{Arguments, run};
