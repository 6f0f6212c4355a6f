//! The paper lab: the printed tables, run again.

mod arguments;
mod oracle;
mod run;
mod streams;
mod tables;

pub use arguments::Arguments;
pub use run::run;
pub use tables::Paper;
