//! The `echoless` command.

fn main() {}
