//! Files that survive power cuts: the storage that a journal of a filter writes to.
//!
//! [`storage`] has the few operations with files and folders that durable state needs, and says
//! when each of them is durable. [`simulated`] is a storage in memory that lists what can be left of
//! the files after a power cut at any time, and lets operations fail.

pub mod simulated;
pub mod storage;
