//! The formulas of [`echoless_papers::theory`] against simulations of the filters they describe.

mod biased;
mod bloom;
mod buffers;
mod generations;
mod rows;
mod slices;
mod stable;
mod trial;
mod windows;
