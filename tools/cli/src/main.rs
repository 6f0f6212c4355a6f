//! The `echoless` command; see the library of this package.

use std::process::ExitCode;

fn main() -> ExitCode {
    echoless_cli::main()
}
