//! Shell completions and manual pages, generated from the definitions of the command line.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use clap::CommandFactory;
use clap_complete::Shell;
use clap_mangen::Man;
use echoless::SpecError;
use echoless_records::failure::Failure;
use echoless_records::files::write_stdout;

use crate::args::Args;

/// Writes the completions of a shell.
pub(crate) fn completions(shell: Shell) -> Result<ExitCode, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "echoless", &mut script);
    write_stdout(&script)?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the manual page of a subcommand, or of the command as a whole.
pub(crate) fn page(subcommand: Option<&str>) -> Result<ExitCode, Failure> {
    let mut command = Args::command();
    command.build();
    if let Some(name) = subcommand {
        let Some(found) = command.find_subcommand(name).cloned() else {
            let names: Vec<&str> = command
                .get_subcommands()
                .map(clap::Command::get_name)
                .collect();
            return Err(SpecError::new("command", name, names.join(", ")).into());
        };
        command = found;
    }
    let mut page = Vec::new();
    Man::new(command)
        .render(&mut page)
        .map_err(Failure::writing_stdout)?;
    write_stdout(&page)?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the pages of the command and of every subcommand, also of subcommands of these, as files
/// of `folder`, which is created if necessary.
pub(crate) fn pages(folder: &Path) -> Result<ExitCode, Failure> {
    fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(Args::command(), folder))
        .map_err(Failure::file(folder.display().to_string()))?;
    Ok(ExitCode::SUCCESS)
}
