//! The tools, and how their programs are found.
//!
//! To add a tool, change this file only: push it in [`catalogue`], and add its name to the test. A
//! tool that is a Rust crate also goes into [`install`].

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::Failure;

/// A tool that copies the first of equal lines, or one to compare with.
#[derive(Debug, Clone)]
pub(super) struct Tool {
    pub(super) name: &'static str,
    /// The path of the program; `None` if it was not found.
    pub(super) program: Option<PathBuf>,
    pub(super) arguments: Vec<String>,
    /// Whether the name of the input is the last argument; else it reads standard input.
    pub(super) takes_file: bool,
    /// The rank among the exact tools, whose output is the reference; the lowest that ran is used.
    /// `None` if the tool is not exact. 0 if it keeps the order of the lines.
    pub(super) reference: Option<u32>,
    /// The tool writes no lines: it shows what reading them costs.
    pub(super) counts_only: bool,
}

impl Tool {
    /// The command line, without its input.
    pub(super) fn command_line(&self) -> String {
        let words: Vec<&str> = [self.name]
            .into_iter()
            .chain(self.arguments.iter().map(String::as_str))
            .collect();
        words.join(" ")
    }

    /// The command for this input, and the file for its standard input, if it reads that.
    pub(super) fn command<'a>(
        &self,
        program: &Path,
        input: &'a Path,
        folder: &Path,
    ) -> (Command, Option<&'a Path>) {
        let mut command = Command::new(program);
        command.args(&self.arguments);
        // Compare bytes, not letters of a language. Temporary files of the tool stay in the folder
        // that is removed afterwards.
        command.env("LC_ALL", "C").env("TMPDIR", folder);
        if self.takes_file {
            command.arg(input);
            (command, None)
        } else {
            (command, Some(input))
        }
    }
}

/// All tools. Ours comes first, once for each combination of memory and number of threads, and then
/// once more without errors.
pub(super) fn catalogue(
    echoless: &Path,
    memory: &[String],
    threads: &[String],
    installed: &Path,
) -> Vec<Tool> {
    let found = |name: &'static str, arguments: &[&str]| Tool {
        name,
        program: find(name, installed),
        arguments: arguments.iter().map(|text| (*text).to_owned()).collect(),
        takes_file: true,
        reference: None,
        counts_only: false,
    };
    let awk = |name| Tool {
        reference: Some(0),
        ..found(name, &["!seen[$0]++"])
    };
    let ours = |more: &'static [&str], memory: &str, threads: &str| Tool {
        program: Some(echoless.to_owned()),
        ..found(
            "echoless",
            &[
                &["dedup", "--quiet", "--memory", memory, "--threads", threads],
                more,
            ]
            .concat(),
        )
    };
    let mut tools = Vec::new();
    for more in [&[][..], &["--exact"]] {
        for memory in memory {
            tools.extend(threads.iter().map(|threads| ours(more, memory, threads)));
        }
    }
    tools.push(Tool {
        reference: Some(1),
        ..found("sort", &["-u"])
    });
    let mut awks: Vec<Tool> = ["mawk", "gawk"].into_iter().map(awk).collect();
    if awks.iter().all(|tool| tool.program.is_none()) {
        awks.push(awk("awk"));
    }
    tools.append(&mut awks);
    tools.push(Tool {
        takes_file: false,
        ..found("huniq", &[])
    });
    tools.push(found("runiq", &[]));
    tools.push(Tool {
        counts_only: true,
        ..found("wc", &["-l"])
    });
    tools
}

/// The program of this name, in the folder of installed tools or on the search path.
pub(crate) fn find(name: &str, installed: &Path) -> Option<PathBuf> {
    let name = format!("{name}{}", env::consts::EXE_SUFFIX);
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(installed.to_owned()).chain(env::split_paths(&path));
    folders
        .map(|folder| folder.join(&name))
        .find(|path| path.is_file())
}

/// Our command, which lies beside the running program. Builds it if it is missing.
///
/// # Errors
/// If it cannot be built.
pub(crate) fn echoless() -> Result<PathBuf, Failure> {
    let name = format!("echoless{}", env::consts::EXE_SUFFIX);
    let beside = env::current_exe()?.with_file_name(name);
    if !beside.is_file() {
        cargo(&["build", "--profile", "dist", "-p", "echoless-cli"])?;
    }
    if beside.is_file() {
        return Ok(beside);
    }
    Err(format!(
        "{} is missing: run this with --profile dist",
        beside.display()
    )
    .into())
}

/// The folder for installed tools: `tools` in the build folder.
///
/// # Errors
/// If the system does not report the path of this program.
pub(super) fn installed() -> Result<PathBuf, Failure> {
    let program = env::current_exe()?;
    let build = program.ancestors().nth(2).unwrap_or(&program);
    Ok(build.join("tools"))
}

/// Installs the tools that are Rust crates.
///
/// # Errors
/// If one of them cannot be installed.
pub(super) fn install(root: &Path) -> Result<(), Failure> {
    let root = root.to_string_lossy();
    cargo(&["install", "--locked", "--root", &root, "huniq", "runiq"])
}

fn cargo(arguments: &[&str]) -> Result<(), Failure> {
    let status = Command::new("cargo").args(arguments).status()?;
    status
        .success()
        .then_some(())
        .ok_or_else(|| format!("cargo {}: {status}", arguments.join(" ")).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_tools_are_listed_without_a_program() {
        let nowhere = Path::new("/nowhere");
        assert!(find("sort", nowhere).is_some());
        assert!(find("no-such-tool-anywhere", nowhere).is_none());
        let memory = ["1MiB", "2MiB"].map(str::to_owned);
        let threads = ["1", "3"].map(str::to_owned);
        let tools = catalogue(Path::new("/made/echoless"), &memory, &threads, nowhere);
        let (ours, others) = tools.split_at(8);
        let all = [("1MiB", 1), ("1MiB", 3), ("2MiB", 1), ("2MiB", 3)];
        let expected = ["", " --exact"].map(|more| {
            all.map(|(memory, threads)| {
                format!("echoless dedup --quiet --memory {memory} --threads {threads}{more}")
            })
        });
        let lines: Vec<String> = ours.iter().map(Tool::command_line).collect();
        assert_eq!(lines, expected.as_flattened());
        let names: Vec<&str> = others.iter().map(|tool| tool.name).collect();
        assert!(names.starts_with(&["sort", "mawk", "gawk"]));
        assert!(names.ends_with(&["huniq", "runiq", "wc"]));
    }
}
