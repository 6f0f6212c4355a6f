//! Adapters around filters: their text, and their verdicts against plain models written from
//! paper 001.

mod growing;
mod harness;
mod horizontal;
mod text;
mod vertical;
mod windows;
