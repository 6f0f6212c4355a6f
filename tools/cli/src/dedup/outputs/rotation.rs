//! `--rotate`: a live capture in files one after the other, each a whole pcapng file.
//!
//! `-o clean.pcapng` names `clean_00001.pcapng`, `clean_00002.pcapng` and so on, behind those of
//! earlier runs. The file that is written has `.part` behind its name, so a reader never finds half
//! of one. Each begins with the header of the section and its interfaces.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::fs;
use std::iter;
use std::path::{Path, PathBuf};

use echoless_records::failure::Failure;
use echoless_records::files::{Target, Targets};

use super::lines::Lines;
use super::sink::Sink;

/// The types of pcapng blocks.
const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const ENHANCED_PACKET: u32 = 6;

/// What a file may hold. One with a single packet may hold more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MostOfFile {
    Bytes(u64),
    /// The time from its first packet on.
    Nanoseconds(u64),
    Packets(u64),
}

/// Where the files are, and which of them there are.
#[derive(Debug, Clone)]
pub(crate) struct RotatedFiles {
    most: MostOfFile,
    /// The number of whole files that stay.
    keep: usize,
    folder: PathBuf,
    stem: String,
    /// With its dot, if the name has one.
    extension: String,
    /// The number of the file that is written.
    number: u64,
    /// The whole files, the oldest first.
    whole: VecDeque<u64>,
}

impl RotatedFiles {
    /// The files of a name, behind those that are there. `keep` whole ones stay.
    ///
    /// # Errors
    /// [`Failure`] if the folder cannot be read, or the path has no name in UTF-8.
    pub(crate) fn find(path: &Path, most: MostOfFile, keep: usize) -> Result<Self, Failure> {
        let folder = path.parent().filter(|folder| *folder != Path::new(""));
        let name = path.file_name().and_then(OsStr::to_str).map(Path::new);
        let name = name.ok_or_else(|| Failure::option("--rotate", "-o FILE in UTF-8"))?;
        let text = |part: &OsStr| part.to_string_lossy().into_owned();
        let extension = name
            .extension()
            .map_or(String::new(), |it| format!(".{}", text(it)));
        let mut files = Self {
            most,
            keep,
            folder: folder.unwrap_or(Path::new(".")).to_owned(),
            stem: name.file_stem().map_or(String::new(), text),
            extension,
            number: 1,
            whole: VecDeque::new(),
        };
        let names = fs::read_dir(&files.folder);
        let names = names.map_err(Failure::file(files.folder.display().to_string()))?;
        let mut whole = Vec::new();
        for name in names
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok())
        {
            let (is_part, name) = match name.strip_suffix(".part") {
                Some(name) => (true, name),
                None => (false, &*name),
            };
            let number = name
                .strip_prefix(&files.stem)
                .and_then(|name| name.strip_prefix('_'));
            let number = number.and_then(|name| name.strip_suffix(&files.extension));
            // Only names that this makes: with 5 digits or more.
            let number = number.and_then(|digits| digits.parse::<u32>().ok());
            if let Some(number) = number.map(u64::from).filter(|it| files.name(*it) == name) {
                files.number = files.number.max(number + 1);
                whole.extend((!is_part).then_some(number));
            }
        }
        whole.sort_unstable();
        files.whole = whole.into();
        Ok(files)
    }

    fn name(&self, number: u64) -> String {
        format!("{}_{number:05}{}", self.stem, self.extension)
    }

    fn path(&self, number: u64) -> PathBuf {
        self.folder.join(self.name(number))
    }

    /// The path of the file that is written.
    pub(crate) fn part(&self) -> PathBuf {
        self.folder.join(self.name(self.number) + ".part")
    }

    /// Gives the file that is written, and closed, its name, and removes the oldest ones.
    fn complete(&mut self) -> Result<(), Failure> {
        let (part, path) = (self.part(), self.path(self.number));
        fs::rename(&part, path).map_err(Failure::file(part.display().to_string()))?;
        self.whole.push_back(self.number);
        self.number += 1;
        while self.whole.len() > self.keep {
            let oldest = self.whole.pop_front().map(|number| self.path(number));
            let removed = oldest.as_ref().map_or(Ok(()), fs::remove_file);
            // Another program may have taken it away.
            let removed = removed.or_else(|error| match error.kind() {
                std::io::ErrorKind::NotFound => Ok(()),
                _ => Err(error),
            });
            let name = oldest.unwrap_or_default().display().to_string();
            removed.map_err(Failure::file(name))?;
        }
        Ok(())
    }
}

/// The files of an output, and what the current one holds.
#[derive(Debug)]
pub(super) struct Rotation {
    files: RotatedFiles,
    /// The header of the section and its interfaces.
    head: Lines,
    bytes: u64,
    packets: u64,
    /// The time of its first packet.
    begins: u64,
}

impl Rotation {
    pub(super) fn new(files: &RotatedFiles) -> Self {
        Self {
            files: files.clone(),
            head: Lines::default(),
            bytes: 0,
            packets: 0,
            begins: 0,
        }
    }

    /// Writes blocks in the byte order of this machine.
    ///
    /// # Errors
    /// [`Failure`] if they cannot be written, or the next file cannot be begun.
    pub(super) fn write(&mut self, sink: &mut Sink, blocks: &Lines) -> Result<(), Failure> {
        // The blocks from `start` on are not written yet: their number, and the bytes before.
        let (mut start, mut start_bytes, mut at) = (0, 0, 0);
        for (number, length) in blocks.lengths.iter().enumerate() {
            let block = &blocks.bytes[at..at + *length as usize];
            let word =
                |at: usize| u32::from_ne_bytes(block[at..at + 4].try_into().unwrap_or_default());
            let kind = word(0);
            if [SECTION, INTERFACE].contains(&kind) {
                self.head.bytes.extend_from_slice(block);
                self.head.lengths.push(*length);
            }
            let is_packet = kind == ENHANCED_PACKET;
            let time = match is_packet {
                true => u64::from(word(12)) << 32 | u64::from(word(16)),
                false => 0,
            };
            if self.is_full(*length, is_packet.then_some(time)) {
                let lengths = &blocks.lengths[start..number];
                sink.write_blocks(&blocks.bytes[start_bytes..at], lengths)?;
                (start, start_bytes) = (number, at);
                self.begin_next(sink)?;
            }
            if is_packet && self.packets == 0 {
                self.begins = time;
            }
            self.bytes += length;
            self.packets += u64::from(is_packet);
            at += *length as usize;
        }
        sink.write_blocks(&blocks.bytes[start_bytes..], &blocks.lengths[start..])
    }

    /// Whether the file has no place for a block of so many bytes, which is a packet if it has a
    /// time.
    fn is_full(&self, length: u64, time: Option<u64>) -> bool {
        self.packets > 0
            && match (self.files.most, time) {
                (MostOfFile::Bytes(most), _) => self.bytes + length > most,
                (MostOfFile::Packets(most), Some(_)) => self.packets >= most,
                (MostOfFile::Nanoseconds(most), Some(time)) => {
                    time.saturating_sub(self.begins) >= most
                }
                (_, None) => false,
            }
    }

    fn begin_next(&mut self, sink: &mut Sink) -> Result<(), Failure> {
        sink.close()?;
        self.files.complete()?;
        let mut targets = Targets::new(iter::empty());
        sink.replace(targets.open(&Target::File(self.files.part()))?)?;
        targets.keep();
        sink.write_blocks(&self.head.bytes, &self.head.lengths)?;
        self.bytes = self.head.bytes.len() as u64;
        self.packets = 0;
        Ok(())
    }

    /// Gives the last file, which is closed, its name.
    ///
    /// # Errors
    /// [`Failure`] if that is not possible.
    pub(super) fn end(&mut self) -> Result<(), Failure> {
        self.files.complete()
    }
}
