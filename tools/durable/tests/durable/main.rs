//! Tests of storages and journals.

mod crashes;
mod damage;
mod digests;
mod files;
mod journals;
mod power_cuts;
mod program;
mod replaced_files;
mod simulated;
mod sinks;
mod storages;
mod support;
