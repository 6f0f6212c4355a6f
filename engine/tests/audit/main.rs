//! What filters and audits report about the errors of a stream, against an exact oracle.

mod ages;
mod bounds;
mod marks;
mod real_data;
mod restart;
mod streams;
mod window_ages;
mod window_bounds;
