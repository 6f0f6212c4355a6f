//! Runs a program, and returns the resources that the system reports for it.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};
use std::time::Instant;

use wait4::Wait4;

use crate::clock::median_of;
use crate::failure::Failure;
use crate::table::Cell;

/// The resources of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Usage {
    /// CPU time of all threads, in user and kernel mode.
    pub(crate) cpu_seconds: f64,
    /// The part of it in kernel mode.
    pub(crate) system_seconds: f64,
    pub(crate) wall_seconds: f64,
    /// The maximum of the resident memory. It starts at that of this process, which the child
    /// inherits.
    pub(crate) peak_bytes: u64,
}

/// What some runs of one program used; none if it could not be run.
#[derive(Debug, Default)]
pub(crate) struct Usages(pub(crate) Vec<Usage>);

impl Usages {
    /// The median of a value; `None` without runs.
    pub(crate) fn median(&self, value: fn(&Usage) -> f64) -> Option<f64> {
        (!self.0.is_empty()).then(|| median_of(&self.0, value))
    }

    /// The medians as cells: CPU time, the part in kernel mode, wall-clock time, and memory in MiB.
    pub(crate) fn cells(&self) -> [Cell; 4] {
        [
            self.median(|usage| usage.cpu_seconds).into(),
            self.median(|usage| usage.system_seconds).into(),
            self.median(|usage| usage.wall_seconds).into(),
            self.median(|usage| usage.peak_bytes as f64 / 2f64.powi(20))
                .into(),
        ]
    }
}

/// Runs the command with these files as standard input and output, or the null device without one.
///
/// # Errors
/// If a file cannot be opened, the program cannot be started, or it fails.
pub(crate) fn run(
    command: &mut Command,
    input: Option<&Path>,
    output: Option<&Path>,
) -> Result<Usage, Failure> {
    let stdin = match input {
        Some(path) => File::open(path).map_err(|error| named(path, error))?.into(),
        None => Stdio::null(),
    };
    run_with(command.stdin(stdin), output, |_, _| Ok(()))
}

/// As [`run`], with a pipe as standard input, which gets what `write` writes to it and then ends.
/// `write` also gets the process ID.
///
/// # Errors
/// As [`run`], and if the pipe cannot be written.
pub(crate) fn run_with_pipe(
    command: &mut Command,
    output: Option<&Path>,
    write: impl FnOnce(&mut ChildStdin, u32) -> io::Result<()>,
) -> Result<Usage, Failure> {
    run_with(command.stdin(Stdio::piped()), output, |pipe, pid| {
        pipe.map_or(Ok(()), |mut pipe| write(&mut pipe, pid))
    })
}

fn run_with(
    command: &mut Command,
    output: Option<&Path>,
    write: impl FnOnce(Option<ChildStdin>, u32) -> io::Result<()>,
) -> Result<Usage, Failure> {
    let stdout = match output {
        Some(path) => File::create(path)
            .map_err(|error| named(path, error))?
            .into(),
        None => Stdio::null(),
    };
    command.stdout(stdout).stderr(Stdio::null());
    let program = PathBuf::from(command.get_program());
    let start = Instant::now();
    let mut child = command.spawn().map_err(|error| named(&program, error))?;
    let written = write(child.stdin.take(), child.id());
    let used = child.wait4().map_err(|error| named(&program, error))?;
    let wall_seconds = start.elapsed().as_secs_f64();
    if !used.status.success() {
        return Err(format!("{}: {}", program.display(), used.status).into());
    }
    written.map_err(|error| named(&program, error))?;
    Ok(Usage {
        cpu_seconds: (used.rusage.utime + used.rusage.stime).as_secs_f64(),
        system_seconds: used.rusage.stime.as_secs_f64(),
        wall_seconds,
        peak_bytes: used.rusage.maxrss,
    })
}

fn named(path: &Path, error: io::Error) -> String {
    format!("{}: {error}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_become_standard_input_and_output() {
        let folder = tempfile::tempdir().unwrap();
        let (input, output) = (folder.path().join("in"), folder.path().join("out"));
        std::fs::write(&input, "b\na\nb\n").unwrap();
        let usage = run(Command::new("sort").arg("-u"), Some(&input), Some(&output)).unwrap();
        assert_eq!(std::fs::read_to_string(&output).unwrap(), "a\nb\n");
        assert!(usage.peak_bytes > 100_000, "{usage:?}");
        assert!(usage.wall_seconds > 0.0 && usage.cpu_seconds >= 0.0);
    }

    #[test]
    fn a_pipe_gets_what_is_written_to_it() {
        use std::io::Write;
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("out");
        let write = |pipe: &mut ChildStdin, _| {
            pipe.write_all(b"b\na\n")?;
            pipe.write_all(b"b\n")
        };
        run_with_pipe(Command::new("sort").arg("-u"), Some(&output), write).unwrap();
        assert_eq!(std::fs::read_to_string(&output).unwrap(), "a\nb\n");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_cpu_time_of_a_program_is_known_while_it_runs() {
        let mut seconds = f64::NAN;
        let usage = run_with_pipe(&mut Command::new("cat"), None, |pipe, pid| {
            // The pipe holds less, so most of it is copied when this returns.
            io::Write::write_all(pipe, &vec![0; 8 << 20])?;
            seconds = crate::clock::seconds_of(pid)?;
            Ok(())
        })
        .unwrap();
        // `wait4` rounds to the ticks of some systems.
        let all = usage.cpu_seconds + 0.01;
        assert!(seconds > 0.0 && seconds <= all, "{seconds} of {all}");
        // Process IDs of Linux are below 2^22.
        assert!(crate::clock::seconds_of(1 << 22).is_err());
        assert!(crate::clock::seconds_of(u32::MAX).is_err());
    }

    #[test]
    fn failures_name_the_program() {
        let error = run(&mut Command::new("false"), None, None).unwrap_err();
        assert!(error.to_string().starts_with("false: exit status"));
        let error = run(&mut Command::new("/nowhere/tool"), None, None).unwrap_err();
        assert!(error.to_string().starts_with("/nowhere/tool: "));
    }
}
