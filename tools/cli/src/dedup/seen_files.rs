//! `--skip-seen-files`: an input whose content an earlier run has read is not read again.
//!
//! The list of seen files is text with one line for each: the BLAKE3 hash of its bytes, compressed
//! as they are, its length and its name.
//!
//! ```text
//! af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262 0 empty.csv
//! ```
//!
//! BLAKE3 is a cryptographic hash: no file can be crafted that is skipped in place of another,
//! which would lose all of its records. It hashes faster than disks read.
//!
//! All inputs are hashed before the first record is judged. A file that changes in between is
//! remembered as it was. The list is written only after the run has ended well; of two runs that
//! end at the same time with one list, the later one wins.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use blake3::{Hash, Hasher};
use echoless::SpecError;
use echoless_durable::replace_file;
use echoless_records::failure::{Failure, without_controls, write_stderr};
use echoless_records::files::Source;
use echoless_records::progress::{Counted, ProgressLine};

use super::observers::{Observer, Words};
use super::reports::fields::Fields;
use super::reports::stats::RunCounts;
use super::reports::summary::counted;

/// The bytes that are hashed at once.
const READ_BYTES: usize = 1 << 20;

/// What identifies the content of a file: its hash and its length.
type Content = (Hash, u64);

/// The list of seen files, and what this run adds to it.
#[derive(Debug)]
pub(super) struct SeenFiles {
    /// The path of the list, without symbolic links.
    path: PathBuf,
    /// Whether this run created the list.
    created: bool,
    /// The lines of the list, with those that this run adds.
    lines: String,
    /// The name of each file in the list.
    names: HashMap<Content, String>,
    changed: bool,
}

impl SeenFiles {
    /// Reads the list at `path`, or creates an empty one.
    ///
    /// # Errors
    /// [`Failure`] if the list cannot be read or created, or a line of it is damaged.
    pub(super) fn open(path: &Path) -> Result<Self, Failure> {
        let name = path.display().to_string();
        let created = OpenOptions::new().append(true).create_new(true).open(path);
        let created = created.is_ok();
        let opened = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .open(path);
        let mut text = Vec::new();
        let read = opened.and_then(|mut file| {
            if !file.metadata()?.is_file() {
                return Err(io::Error::other("is no regular file"));
            }
            file.read_to_end(&mut text)?;
            fs::canonicalize(path)
        });
        let path = read.map_err(Failure::file(name.as_str()))?;
        let mut names = HashMap::new();
        let mut lines = String::new();
        for (number, line) in (1..).zip(text.split_inclusive(|byte| *byte == b'\n')) {
            let parsed = std::str::from_utf8(line).ok().and_then(parse);
            let Some((content, seen)) = parsed else {
                return Err(Failure::Data {
                    name,
                    unit: "line",
                    number,
                    problem: "expected a hash of 64 hexadecimal digits, a length and a name".into(),
                });
            };
            lines.push_str(&line_of(content, seen));
            names.entry(content).or_insert_with(|| seen.to_owned());
        }
        Ok(Self {
            path,
            created,
            lines,
            names,
            changed: false,
        })
    }

    /// Hashes the inputs and removes those that were seen before, each with a line on standard
    /// error, unless `quiet`. Returns them and their length in bytes.
    ///
    /// # Errors
    /// [`Failure`] if an input is no regular file, is the list itself, or cannot be read.
    pub(super) fn remove_seen(
        &mut self,
        sources: &mut Vec<Source>,
        quiet: bool,
    ) -> Result<(Vec<Source>, u64), Failure> {
        let total = Source::total_len(sources);
        let progress = ProgressLine::new(Counted::Bytes, total, !quiet);
        let (mut skipped, mut skipped_bytes, mut hashed) = (Vec::new(), 0, 0);
        let mut buffer = vec![0; READ_BYTES];
        for source in std::mem::take(sources) {
            let mut file = self.open_regular(&source)?;
            let before = hashed;
            let mut hasher = Hasher::new();
            loop {
                let read = match file.read(&mut buffer) {
                    Ok(read) => read,
                    Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                    Err(error) => return Err(Failure::file(source.name())(error)),
                };
                if read == 0 {
                    break;
                }
                hasher.update(&buffer[..read]);
                hashed += read as u64;
                progress.set(hashed);
            }
            let content = (hasher.finalize(), hashed - before);
            let name = without_controls(&source.name());
            if let Some(seen) = self.names.get(&content) {
                if !quiet {
                    let line = format!("echoless: {name}: skipped, seen before as {seen}\n");
                    write_stderr(&line);
                }
                skipped_bytes += content.1;
                skipped.push(source);
            } else {
                self.lines.push_str(&line_of(content, &name));
                self.names.insert(content, name);
                self.changed = true;
                sources.push(source);
            }
        }
        Ok((skipped, skipped_bytes))
    }

    /// Replaces the list by one with the inputs of this run, in one step.
    ///
    /// # Errors
    /// [`Failure`] if the folder of the list cannot be written.
    fn commit(&self) -> Result<(), Failure> {
        if !self.changed {
            return Ok(());
        }
        replace_file(&self.path, |list| list.write_all(self.lines.as_bytes()))
            .map_err(Failure::file(self.path.display().to_string()))
    }

    /// Opens an input that can be read twice.
    fn open_regular(&self, source: &Source) -> Result<File, Failure> {
        let regular = matches!(source, Source::File(_)) && source.length().is_some();
        if !regular {
            let allowed = format!(
                "inputs that are regular files, and {} is none",
                source.name()
            );
            let list = self.path.display().to_string();
            return Err(SpecError::new("--skip-seen-files", list, allowed).into());
        }
        if let Source::File(path) = source
            && same_file::is_same_file(path, &self.path).unwrap_or(false)
        {
            return Err(Failure::SameFile {
                name: self.path.display().to_string(),
                other: "an input".into(),
            });
        }
        source.open()
    }
}

impl Drop for SeenFiles {
    /// A run that adds no file leaves no list where there was none.
    fn drop(&mut self) {
        if self.created && fs::metadata(&self.path).is_ok_and(|list| list.len() == 0) {
            // An empty list that stays does no harm.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The files that a run does not read.
#[derive(Debug)]
pub(super) struct SkippedFiles {
    /// The list, which the run completes; `None` if it has not begun.
    pub(super) seen: Option<SeenFiles>,
    pub(super) skipped: usize,
    /// The number of the others.
    pub(super) read: usize,
}

impl Observer for SkippedFiles {
    fn end_well(&mut self) -> Result<(), Failure> {
        self.seen.as_ref().map_or(Ok(()), SeenFiles::commit)
    }

    fn stats(&self, _: &RunCounts, fields: &mut Fields) {
        fields.add("skipped_files", self.skipped);
    }

    fn words(&self, _: &RunCounts, words: &mut Words) {
        let all = counted((self.skipped + self.read) as u64, "file");
        let skipped = format!("{} of {all} skipped", self.skipped);
        words.skipped = (self.skipped > 0).then_some(skipped);
    }
}

/// A line of the list.
fn line_of((hash, length): Content, name: &str) -> String {
    format!("{hash} {length} {name}\n")
}

/// Parses a line of the list into a content and a name.
fn parse(line: &str) -> Option<(Content, &str)> {
    let line = line.strip_suffix('\n').unwrap_or(line);
    let (hash, rest) = line.split_once(' ')?;
    let (length, name) = rest.split_once(' ')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(length) || name.is_empty() {
        return None;
    }
    Some(((Hash::from_hex(hash).ok()?, length.parse().ok()?), name))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn lines_are_parsed_as_they_are_written(bytes: Vec<u8>, length: u64, name in "(?s).+") {
            let content = (blake3::hash(&bytes), length);
            let name = without_controls(&name);
            let line = line_of(content, &name);
            prop_assert_eq!(line.matches('\n').count(), 1);
            prop_assert_eq!(parse(&line), Some((content, name.as_str())));
        }
    }

    #[test]
    fn other_lines_are_rejected() {
        let hash = blake3::hash(b"").to_hex();
        for line in [
            String::new(),
            "\n".into(),
            hash.to_string(),
            format!("{hash} 1"),
            format!("{hash} 1 "),
            format!("{hash} x name"),
            format!("{hash} +1 name"),
            format!("{hash} 18446744073709551616 name"),
            format!("{}x 1 name", &hash[1..]),
            format!("{} 1 name", &hash[1..]),
        ] {
            assert_eq!(parse(&line), None, "{line}");
        }
    }
}
