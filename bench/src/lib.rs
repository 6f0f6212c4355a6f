//! The truth about echoless: how fast it is against what the machine can do, and whether its rates are the published ones.
//!
//! Every benchmark is also a test: it declares what it must count and fails if it counts anything else.

pub mod clock;
pub mod limit;
pub mod machine;
pub mod paper;
pub mod peers;
pub mod record;
pub mod report;
pub mod scaling;
pub mod streams;
pub mod table;
pub mod tools;
