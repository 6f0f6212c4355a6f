//! What holds for whole groups of filters: chosen keys, statistics of long streams, and windows.

mod adversaries;
#[path = "../../../../engine/tests/testing/arrivals.rs"]
mod arrivals;
mod behaviour;
#[path = "../../../../engine/tests/testing/promises.rs"]
mod promises;
mod windows;
mod wrapped;
