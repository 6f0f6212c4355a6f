//! The options of records: as typed, and checked.

mod arguments;
mod checked;
mod format;

pub use arguments::{RecordArgs, accept_hyphens, headed};
pub use checked::{CheckedRecords, RecordUse};
pub use format::meaning_of_format;
