//! The paper lab: the printed tables, run again.

mod arguments;
mod oracle;
mod run;
mod streams;
mod tables;

pub(crate) use arguments::Arguments;
pub(crate) use run::run;
