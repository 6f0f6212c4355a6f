//! The formulas of [`echoless_papers::theory`] against simulations of the filters they describe.

mod bloom;
mod generations;
mod limits;
mod slices;
mod stable;
mod trial;
mod windows;
