//! Threads that pass chunks beside each other: their loop and the order of their chunks, what they
//! do with a chunk, and how they share the filter.

mod chunk_order;
#[cfg(test)]
mod chunk_order_tests;
mod chunk_size;
pub(super) mod locked_filter;
pub(super) mod parallel;
pub(super) mod pinning;
mod stages;
pub(super) mod thread_count;
pub(super) mod worker;
mod worker_loop;
