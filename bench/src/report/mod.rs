//! x
use crate::table::Failure;
use clap::Args;
/// x
#[derive(Debug, Args)]
pub struct Arguments {}
/// x
pub fn run(_: &Arguments) -> Result<(), Failure> {
    Ok(())
}
