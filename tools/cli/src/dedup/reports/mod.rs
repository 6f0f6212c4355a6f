//! What a run tells about itself: its statistics, the summary for people, the progress line, and
//! the reports on a run that goes on.

mod busiest;
pub(super) mod ending;
pub(super) mod fields;
pub(super) mod monitor;
pub(super) mod stats;
pub(super) mod summary;
