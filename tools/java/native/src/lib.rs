//! The native half of the Java package `echoless`: the methods of `echoless.Resource`,
//! `echoless.Partitions` and `echoless.Hasher`.
//!
//! Java holds numbers of a table, so a closed filter is an exception. Arrays are copied, in blocks
//! that stay in the cache: a pinned array would stop the garbage collector, and other threads of
//! Java may write to an array at any time. What copying costs is in `README.md` of the package.
//! Every failure becomes an `EcholessException`, and so does a panic.
// The boundary itself: the names of the methods, and what lies behind references of Java.
#![allow(unsafe_code)]

mod call;
mod keys;
mod methods;
mod streams;
