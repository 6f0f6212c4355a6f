//! Which record of each key passes: `--keep` and the options that are short for it.

use std::fs;
use std::path::{Path, PathBuf};

use echoless_records::compression::length::decompress_command;
use echoless_records::failure::Failure;
use echoless_records::files::Source;

use crate::args::{DedupArgs, Keep};

/// The record of each key that passes.
///
/// # Errors
/// [`Failure::Usage`] unless the inputs can be read several times, if that is necessary.
pub(super) fn kept(
    args: &DedupArgs,
    sources: &[Source],
    as_they_are: bool,
) -> Result<Keep, Failure> {
    let (keep, option) = match args.keep {
        _ if args.last => (Keep::Last, "--last"),
        _ if args.unique => (Keep::None, "--unique"),
        _ if args.all_repeated => (Keep::None, "--all-repeated"),
        Some(Keep::Last) => (Keep::Last, "--keep last"),
        Some(Keep::None) => (Keep::None, "--keep none"),
        Some(Keep::First) | None => return Ok(Keep::First),
    };
    if args.window.is_some() {
        let allowed = "no --window beside it, which counts from the records before";
        return Err(Failure::option(option, allowed));
    }
    if args.repeated {
        let allowed = "no --repeated beside it, which is about the first record of a key";
        return Err(Failure::option(option, allowed));
    }
    for source in sources {
        check_rereadable(source, as_they_are)
            .map_err(|allowed| Failure::option(option, allowed))?;
    }
    Ok(keep)
}

/// Checks that an input is a plain regular file. Returns what is expected, and how to get it.
fn check_rereadable(source: &Source, as_they_are: bool) -> Result<(), String> {
    let several = "since it reads them several times";
    let Source::File(path) = source else {
        return Err(format!(
            "names of regular files, {several}, not standard input: write it to a file first, \
             cat > FILE"
        ));
    };
    let name = source.name();
    let quoted = shell_words::quote(&name);
    match fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() && !metadata.is_dir() => Err(format!(
            "regular files, {several}, not {name}: write it to a file first, cat {quoted} > FILE"
        )),
        Ok(metadata) if metadata.is_file() && !as_they_are => {
            let Some(command) = decompress_command(source, &quoted) else {
                return Ok(());
            };
            let plain = plain_name(path).display().to_string();
            let plain = shell_words::quote(&plain);
            Err(format!(
                "plain files, {several}, not {name}: decompress it first, {command} > {plain}"
            ))
        }
        // A missing file and a folder are reported when the inputs are checked.
        Ok(_) | Err(_) => Ok(()),
    }
}

/// A name for the plain content of a compressed file: its own without the last extension, unless
/// there is such a file.
fn plain_name(path: &Path) -> PathBuf {
    let stem = path.with_extension("");
    if stem != path && !stem.exists() {
        return stem;
    }
    let mut name = path.as_os_str().to_owned();
    name.push(".plain");
    name.into()
}
