//! Filters with a window in ticks, as published: a key expires on its own a window after it was
//! recorded. The line forms with a window are those of the engine.
//!
//! | filter | a key is recorded in | it expires as | granule of the window W |
//! |---|---|---|---|
//! | `tbf` | k cells of wrapped time stamps | the stamps grow old | a tick, or more |
//! | `gbf` | k bits of the newest of Q+1 Bloom filters | its Bloom filter is emptied | W/Q |
//! | `apbf` | a bit in each of the newest k of k+l slices | the slices move on | W/l |
//!
//! In all of them a key that was recorded at most W ago is never missed, except under the
//! equal-timers heuristic of `tbf`. Fresh keys are recorded and duplicates are not (paper 001 calls
//! it first-test-then-set). A key that was never seen before and is reported as a duplicate is
//! therefore not recorded either, and its next arrival can be reported as fresh. With `refresh`
//! every arrival is recorded, so a key that was **seen** at most W ago is never missed.

mod age_partitioned;
mod generations;
mod jumping;
mod timers;

pub(crate) use age_partitioned::AGE_PARTITIONED;
pub(crate) use jumping::JUMPING;
pub(crate) use timers::{TIMERS, cell_table};
