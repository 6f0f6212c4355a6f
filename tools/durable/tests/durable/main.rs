//! Tests of storages.

mod simulated;
mod storages;
mod support;
