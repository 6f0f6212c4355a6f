//! `echoless state`: what `dedup --state` keeps, shown, checked, and moved as one file.

use std::fmt::Write as _;
use std::io::ErrorKind;
use std::path::Path;
use std::process::ExitCode;

use echoless::spec::format_bytes;
use echoless_durable::storage::RealStorage;
use echoless_durable::{Contents, JournalError, ReplacementFile, export, import, show, verify};
use echoless_records::failure::{Failure, visible_json, without_controls};
use echoless_records::files::{
    Target, check_outside_of_state, check_stdout, standard_output, write_stdout,
};
use echoless_records::number::{decimal_bytes, grouped, short};
use echoless_records::time::calendar::rfc3339;
use serde_json::{Value, json};

use crate::args::{StateAction, StateArgs};
use crate::dedup::SavedRun;

/// Runs `echoless state`.
pub(crate) fn run(args: &StateArgs) -> Result<ExitCode, Failure> {
    let storage = RealStorage;
    match &args.action {
        StateAction::Show { path, json } => {
            let contents = show(&storage, path)?;
            let run = SavedRun::of(path, &contents.caller)?;
            let text = if *json {
                visible_json(&format!("{:#}\n", as_json(&contents, run.as_ref())))
            } else {
                as_text(&contents, run.as_ref())
            };
            write_stdout(text.as_bytes())?;
        }
        StateAction::Verify { path } => {
            let contents = verify(&storage, path)?;
            let run = SavedRun::of(path, &contents.caller)?;
            if let Some(keys) = run.and_then(|run| run.exact) {
                keys.verify(path)?;
            }
        }
        StateAction::Export { folder, output } => {
            export_to(&storage, folder, &Target::from(output.clone()))?;
        }
        StateAction::Import { file, folder } => import(&storage, file, folder)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes a state to a file, which is replaced once the new one is complete, or to standard output.
fn export_to(storage: &RealStorage, folder: &Path, target: &Target) -> Result<(), Failure> {
    let contents = verify(storage, folder)?;
    if SavedRun::of(folder, &contents.caller)?.is_some_and(|run| run.exact.is_some()) {
        return Err(Failure::Usage(format!(
            "invalid state {}: expected one of runs without --exact, whose keys would be missing: \
             copy its folder",
            folder.display()
        )));
    }
    let name = target.name();
    let failed = || Failure::file(name.as_str());
    let Some(path) = target.path() else {
        let output = check_stdout().and_then(|()| standard_output());
        let output = output.map_err(failed())?;
        return match export(storage, folder, Path::new(&name), output) {
            Err(JournalError::Io { error, .. }) if error.kind() == ErrorKind::BrokenPipe => {
                Err(Failure::ReaderGone)
            }
            exported => Ok(exported?),
        };
    };
    check_outside_of_state(folder, path)?;
    let next = ReplacementFile::begin(path).map_err(failed())?;
    export(storage, folder, path, next.file())?;
    next.commit_to_disk().map_err(failed())
}

fn as_json(contents: &Contents, run: Option<&SavedRun>) -> Value {
    let mut value = serde_json::to_value(contents).unwrap_or_default();
    if let Some(contents) = value.as_object_mut() {
        if run.is_some() {
            // It is in `run`, as far as it is text.
            contents.remove("caller");
        }
        contents.insert("run".into(), run.map_or(json!(null), SavedRun::json));
    }
    value
}

fn as_text(contents: &Contents, run: Option<&SavedRun>) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "{name:10} {}", without_controls(&value));
    };
    let is_shared = contents.spec.shared().is_ok();
    let name = if is_shared { "shared" } else { "filter" };
    line(name, contents.spec.to_string());
    if contents.part != (0, contents.lines) {
        let (first, end) = contents.part;
        line(
            "part",
            format!("lines {first} to {end} of {}", contents.lines),
        );
    }
    line("memory", format_bytes(contents.memory_bytes));
    if let Some(fill) = contents.fill {
        line("fill", format!("{:.1} %", 100.0 * fill));
    }
    if let Some(fpr) = contents.expected_fpr {
        line("FPR", short(fpr));
    }
    if let Some(observed) = contents.observed {
        line("observed", format!("{} keys", grouped(observed)));
    }
    line("fresh", format!("{} keys", grouped(contents.fresh)));
    if contents.clock > 0 {
        line("clock", format!("tick {}", contents.clock));
    }
    line(
        "hash",
        format!("{}, id {}", contents.algorithm, contents.hasher),
    );
    let bytes: u64 = contents.files.iter().map(|file| file.bytes).sum();
    let files = contents.files.len();
    let plural = if files == 1 { "" } else { "s" };
    line(
        "on disk",
        format!("{} in {files} file{plural}", decimal_bytes(bytes as f64)),
    );
    if run.is_none() && !contents.caller.is_empty() {
        let bytes = grouped(contents.caller.len() as u64);
        line("data", format!("{bytes} bytes of another program"));
    }
    if let Some(keys) = run.and_then(|run| run.exact.as_ref()) {
        let (what, count, bytes) = keys.on_disk();
        let (count, bytes) = (grouped(count), decimal_bytes(bytes));
        line("exact", format!("{count} {what}, some {bytes} more"));
    }
    if let Some((first, last)) = run.and_then(SavedRun::commit_times) {
        let time = |seconds: u64| {
            let nanoseconds = i64::try_from(seconds).unwrap_or(i64::MAX);
            rfc3339(nanoseconds.saturating_mul(1_000_000_000))
        };
        line(
            "committed",
            format!("first {}, last {}", time(first), time(last)),
        );
    }
    for (option, value) in run.iter().flat_map(|run| &run.options) {
        line(
            "option",
            match value {
                Some(value) => format!("{option}={value}"),
                None => option.clone(),
            },
        );
    }
    for input in run.iter().flat_map(|run| &run.inputs) {
        let name = &input.name;
        let bytes = grouped(input.restart.position.bytes);
        let end = if input.end.is_some() {
            ", to its end"
        } else {
            ""
        };
        line("input", format!("{name}: {bytes} bytes{end}"));
    }
    for (name, bytes) in run.iter().flat_map(|run| run.outputs()) {
        line("output", format!("{name}: {} bytes", grouped(bytes)));
    }
    text
}
