//! Compares engine and ordered filter with the undivided filter: equal verdicts for any
//! number of threads, and errors instead of hangs.

mod attach;
mod breakable;
mod engine;
mod excess_bits;
mod foreign_panics;
#[cfg(unix)]
mod forked;
mod live;
mod loss;
mod loss_clock;
mod loss_stress;
mod ordered;
mod ordered_save;
mod ordered_tickets;
mod streams;
mod stub;
mod task;
mod verdicts;
