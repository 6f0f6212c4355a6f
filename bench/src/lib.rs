//! Benchmarks of echoless: its speed against the machine's limit and against other structures, and
//! its error rates against the published ones.
//!
//! Every benchmark is also a test: it declares which counts it expects, and fails on others.

mod check;
pub mod clock;
pub mod cluster;
pub mod durable;
pub mod failure;
pub mod formats;
pub mod limit;
#[cfg(target_os = "linux")]
pub mod live;
pub mod machine;
pub mod paper;
pub mod peers;
pub mod record;
pub mod report;
pub mod scaling;
pub mod service;
pub mod sliced;
pub mod streams;
pub mod table;
pub mod tools;
mod turns;
pub mod windows;
