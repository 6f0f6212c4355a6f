//! Which record of each key passes: `--keep` and the options that are short for it; and what runs need
//! that read their inputs several times.

use std::env;
use std::path::{Path, PathBuf};

use echoless_records::compression::length::decompress_command;
use echoless_records::failure::Failure;
use echoless_records::files::Source;
use echoless_records::signals::Signals;

use crate::args::{DedupArgs, Keep};

/// The record of each key that passes, and the option that asks for it. Fails beside an option that
/// does not go with it.
pub(super) fn kept(args: &DedupArgs) -> Result<(Keep, Option<&'static str>), Failure> {
    let (keep, option) = match args.keep {
        _ if args.last => (Keep::Last, "--last"),
        _ if args.unique => (Keep::None, "--unique"),
        _ if args.all_repeated => (Keep::None, "--all-repeated"),
        Some(Keep::Last) => (Keep::Last, "--keep last"),
        Some(Keep::None) => (Keep::None, "--keep none"),
        Some(Keep::First) | None => return Ok((Keep::First, None)),
    };
    if args.window.is_some() {
        let allowed = "no --window beside it, which counts from the records before";
        return Err(Failure::option(option, allowed));
    }
    if args.repeated {
        let allowed = "no --repeated beside it, which is about the first record of a key";
        return Err(Failure::option(option, allowed));
    }
    Ok((keep, Some(option)))
}

/// What a run needs that reads its inputs several times.
#[derive(Debug)]
pub(crate) struct Rereading {
    /// The option that asks for it.
    option: &'static str,
    /// Whether the inputs must be plain.
    is_backwards: bool,
    as_they_are: bool,
    /// The folder for copies of inputs that can be read only once; `None` rejects them.
    temp: Option<PathBuf>,
    /// The signal that ended one that was copied, and with it all inputs.
    pub(crate) ended_by: Option<u8>,
}

impl Rereading {
    /// What these options need, if they need it.
    pub(super) fn new(
        args: &DedupArgs,
        backwards: Option<&'static str>,
        sources: &[Source],
        as_they_are: bool,
    ) -> Result<Option<Self>, Failure> {
        let Some(option) = backwards.or(args.exact.then_some("--exact")) else {
            return Ok(None);
        };
        let temp = || args.temp.clone().unwrap_or_else(env::temp_dir);
        let rereading = Self {
            option,
            is_backwards: backwards.is_some(),
            as_they_are,
            temp: (!args.no_spool).then(temp),
            ended_by: None,
        };
        sources
            .iter()
            .try_for_each(|source| rereading.check(source))?;
        Ok(Some(rereading))
    }

    /// Copies the inputs that can be read only once. A signal ends them: what was read until then
    /// is judged.
    pub(crate) fn spool(&mut self, sources: &mut Vec<Source>) -> Result<(), Failure> {
        let Some(folder) = &self.temp else {
            return Ok(());
        };
        for index in 0..sources.len() {
            if sources[index].is_rereadable() {
                continue;
            }
            let signals = Signals::catch().map_err(Failure::file("signals"))?;
            sources[index] = sources[index].spool(folder, signals)?;
            self.check(&sources[index])?;
            self.ended_by = signals.take();
            if self.ended_by.is_some() {
                sources.truncate(index + 1);
                break;
            }
        }
        Ok(())
    }

    /// Checks that an input can be read several times, or copied, and that it is plain if it is read
    /// backwards. The error says how to get what is expected.
    fn check(&self, source: &Source) -> Result<(), Failure> {
        let several = "since it reads them several times";
        let name = source.name();
        let quoted = shell_words::quote(&name);
        let invalid = |allowed: String| Err(Failure::option(self.option, allowed));
        match source {
            _ if source.is_rereadable() => {}
            _ if self.temp.is_some() && source.is_pipe() => return Ok(()),
            Source::File(_) => {
                return invalid(format!(
                    "regular files, {several}, not {name}: write it to a file \
                     first, cat {quoted} > FILE"
                ));
            }
            Source::Stdin | Source::Spooled(_) | Source::Interfaces(_) => {
                return invalid(format!(
                    "names of regular files, {several}, not standard input: \
                     write it to a file first, cat > FILE"
                ));
            }
        }
        let command = (self.is_backwards && !self.as_they_are)
            .then(|| decompress_command(source, &quoted))
            .flatten();
        let Some(command) = command else {
            return Ok(());
        };
        let plain = match source {
            Source::File(path) => plain_name(path),
            Source::Stdin | Source::Spooled(_) | Source::Interfaces(_) => {
                return invalid(format!(
                    "plain data, {several}, and {name} is compressed: decompress it first"
                ));
            }
        };
        let plain = plain.display().to_string();
        let plain = shell_words::quote(&plain);
        invalid(format!(
            "plain files, {several}, not {name}: decompress it first, {command} > {plain}"
        ))
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
