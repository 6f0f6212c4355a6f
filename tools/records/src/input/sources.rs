//! The inputs of a stream: which one is current, how it is opened, also one that is followed, and
//! what was read of those before it.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::SystemTime;

use crate::chunk::unread_part::CutBefore;
use crate::compression::codec::Detection;
use crate::compression::reader::PlainBytes;
use crate::failure::{self, Failure};
use crate::files::follow::{AtEnd, NextFiles, PAUSE};
use crate::files::rotated::{Sibling, folder_of};
use crate::files::{OpenedFile, RotatedBefore, Source};
use crate::reading::Filled;
use crate::restart::{EarlierFile, InputRestart, StreamRestart};
use crate::signals::{Patience, Signals};

/// The inputs, and where the stream is in them.
#[derive(Debug)]
pub(super) struct InputSources {
    pub(super) all: Vec<Source>,
    /// The number of the first of them that are known: their records are not written.
    pub(super) known: usize,
    /// The index of the current one.
    pub(super) at: usize,
    pub(super) detection: Detection,
    /// The most threads that decompress an input.
    pub(super) threads: usize,
    /// Where the inputs go on that an earlier run has read in part, in a run with a state.
    restarts: Option<Vec<Option<InputRestart>>>,
    /// If the last input is followed, its name.
    following: Option<Following>,
    /// The files of that name that are read before the present one.
    earlier: VecDeque<EarlierFile>,
    /// The rotated files of that name at the start of a run with a state.
    rotated_before: Option<RotatedBefore>,
    /// The bytes of the inputs before the current one, and of the known ones among them.
    pub(super) bytes_before: u64,
    pub(super) known_bytes: u64,
    /// Whether a signal ends the stream.
    pub(super) catches_signals: bool,
    /// Set once the first input is opened, if signals are caught.
    pub(super) signals: Option<Signals>,
}

/// The input that is read.
#[derive(Debug)]
pub(super) struct OpenInput {
    pub(super) file: PlainBytes,
    /// The start of a record whose end is not read yet.
    pub(super) tail: Vec<u8>,
    /// Where its next part begins, if its chunks are read elsewhere.
    pub(super) part: Option<NextPart>,
    /// Whether no chunk has records of it yet, and no earlier run has read a part of it.
    pub(super) begins: bool,
    /// Where it goes on, and which file it is, for its next chunk, in a run with a state.
    pub(super) restart: Option<InputRestart>,
    pub(super) opened: Option<Box<OpenedFile>>,
    /// The length of the file when it was opened, if it is a regular one with a name.
    pub(super) length: Option<u64>,
    /// Whether its records are known, which are not of this run.
    pub(super) is_known: bool,
    /// Whether it may be compressed, although it is followed.
    is_rotated: bool,
}

/// The part of a plain file behind those that other threads read.
#[derive(Debug)]
pub(super) struct NextPart {
    /// Where it begins in the file.
    pub(super) offset: u64,
    /// What the cut in front of it divides.
    pub(super) cut: CutBefore,
}

impl InputSources {
    pub(super) fn new(all: Vec<Source>, detection: Detection) -> Self {
        Self {
            all,
            known: 0,
            at: 0,
            detection,
            threads: 1,
            restarts: None,
            following: None,
            earlier: VecDeque::new(),
            rotated_before: None,
            bytes_before: 0,
            known_bytes: 0,
            catches_signals: true,
            signals: None,
        }
    }

    /// Opens each input where an earlier run has left it.
    pub(super) fn restart(&mut self, stream: &StreamRestart) {
        self.restarts = Some(stream.inputs.clone());
        self.earlier = stream.earlier.iter().cloned().collect();
        self.rotated_before = Some(stream.rotated_before.clone());
    }

    /// Follows the name of the last input.
    pub(super) fn follow(&mut self, is_quiet: bool) {
        if let Some(Source::File(path)) = self.all.last() {
            let before = self.rotated_before.take();
            self.following = Some(Following {
                path: path.clone(),
                is_quiet,
                awaits_file: false,
                before: before.unwrap_or_else(|| rotated_now(path)),
                changed: [None; 2],
            });
        }
    }

    pub(super) fn current(&self) -> &Source {
        &self.all[self.at]
    }

    /// Whether the current input is followed.
    pub(super) fn is_followed(&self) -> bool {
        self.following.is_some() && self.at + 1 == self.all.len()
    }

    /// Opens the current input, or the next file of its name if it is followed. Returns what ends
    /// the wait for a file that is still to come.
    pub(super) fn open(
        &mut self,
        patience: Patience,
    ) -> Result<ControlFlow<Filled, OpenInput>, Failure> {
        let is_followed = self.is_followed();
        let source = &self.all[self.at];
        let mut following = self.following.as_mut().filter(|_| is_followed);
        while let Some(following) = &mut following
            && self.earlier.is_empty()
        {
            let found = following.open_awaited(self.detection, &mut self.earlier);
            found.map_err(Failure::file(source.name()))?;
            if self.earlier.is_empty() {
                following.note_gone();
                if self.signals.is_none() {
                    self.signals = Some(Signals::catch().map_err(Failure::file("signals"))?);
                }
                if let Some(filled) = pause(self.signals, patience)? {
                    return Ok(ControlFlow::Break(filled));
                }
            }
        }
        let earlier = is_followed.then(|| self.earlier.pop_front()).flatten();
        let is_rotated = earlier.as_ref().is_some_and(|earlier| earlier.is_rotated);
        let mut restart = None;
        let file = if let Some(earlier) = earlier {
            restart = earlier.restart;
            let file = earlier.file.try_clone();
            file.map_err(Failure::file(source.name()))?
        } else if self.catches_signals {
            source.open_at_once()?
        } else {
            source.open()?
        };
        let length = length_of(source, &file);
        if let Some(following) = following {
            following.found();
            if length.is_none() {
                return Err(following.is_no_file());
            }
        }
        if self.catches_signals {
            let signals = Signals::catch().map_err(Failure::file("signals"))?;
            self.signals = Some(if source.is_cut() {
                signals.at_end()
            } else {
                signals
            });
        }
        let mut opened = None;
        if let Some(restarts) = &mut self.restarts {
            let found = OpenedFile::of(&file).map_err(Failure::file(source.name()))?;
            opened = found.map(Box::new);
            // The next file of a name that is followed has none.
            restart = restarts[self.at].take().or(restart);
        }
        let bytes = PlainBytes::new(file, self.detection, self.signals);
        let mut bytes = bytes.decompressed_on(self.threads);
        if let Some(restart) = &restart {
            bytes = bytes.from(restart.position.bytes);
        }
        Ok(ControlFlow::Continue(OpenInput {
            file: bytes.named(source.extension()).or_as_it_is(),
            tail: Vec::new(),
            part: None,
            begins: restart.is_none(),
            restart,
            opened,
            length,
            is_known: self.at < self.known,
            is_rotated,
        }))
    }

    /// Whether the current input is complete, of which a read has returned so many bytes.
    pub(super) fn is_complete(&mut self, input: &OpenInput, read: usize) -> Result<bool, Failure> {
        let is_followed = self.is_followed();
        match self.following.as_mut().filter(|_| is_followed) {
            Some(following) => {
                let (file, is_rotated) = (&input.file, input.is_rotated);
                following.has_ended(file, read, is_rotated, self.detection, &mut self.earlier)
            }
            None => Ok(read == 0),
        }
    }

    /// Waits for more of an input that is followed. Returns what ends the wait.
    pub(super) fn wait(&self, patience: Patience) -> Result<Option<Filled>, Failure> {
        pause(self.signals, patience)
    }

    /// Goes on behind the current input, which ended: with the next file of its name if it is
    /// followed, else with the next input.
    pub(super) fn close(&mut self, file: &PlainBytes) {
        self.bytes_before += file.file_bytes();
        if !self.is_followed() {
            self.at += 1;
            if self.at == self.known {
                self.known_bytes = self.bytes_before;
            }
        }
    }
}

/// The length of a regular file that has a name, and is read from its start.
fn length_of(source: &Source, file: &File) -> Option<u64> {
    if let Source::Stdin = source {
        return None;
    }
    let metadata = file.metadata().ok()?;
    metadata.is_file().then_some(metadata.len())
}

/// The name of an input that is followed.
#[derive(Debug)]
struct Following {
    path: PathBuf,
    is_quiet: bool,
    /// Whether it was said that no file has its name.
    awaits_file: bool,
    /// The rotated files of the name when it was opened last, or at the start.
    before: RotatedBefore,
    /// When the folder was changed, at each of the last two looks for an awaited file.
    changed: [Option<SystemTime>; 2],
}

impl Following {
    /// Opens the file of the name, and those that were rotated since it was awaited.
    fn open_awaited(
        &mut self,
        detection: Detection,
        earlier: &mut VecDeque<EarlierFile>,
    ) -> io::Result<()> {
        let changed = fs::metadata(folder_of(&self.path)).and_then(|folder| folder.modified());
        let changed = changed.ok();
        // Its files are not read at each look. The time alone may be that of the change before.
        let is_unchanged = changed.is_some() && self.changed == [changed; 2];
        self.changed = [self.changed[1], changed];
        if is_unchanged && !self.path.exists() {
            return Ok(());
        }
        self.open_next(None, detection, earlier)
    }

    /// Opens the files of the name behind the last one, if there are any.
    fn open_next(
        &mut self,
        last: Option<&File>,
        detection: Detection,
        earlier: &mut VecDeque<EarlierFile>,
    ) -> io::Result<()> {
        let next = NextFiles::open(&self.path, last, &self.before, detection)?;
        if next.is_empty() {
            return Ok(());
        }
        next.warn(&self.path);
        self.before = next.before;
        let rotated = next.rotated.into_iter().map(|file| (file, true));
        let files = rotated.chain(next.present.map(|file| (file, false)));
        earlier.extend(files.map(|(file, is_rotated)| EarlierFile {
            file: Arc::new(file),
            restart: None,
            is_rotated,
        }));
        Ok(())
    }

    /// Says once that no file has the name.
    fn note_gone(&mut self) {
        if !self.awaits_file {
            self.note("does not exist, and is waited for");
        }
        self.awaits_file = true;
    }

    /// Nothing is said about a file that is gone once one was there.
    fn found(&mut self) {
        self.awaits_file = true;
    }

    fn note(&self, note: &str) {
        if !self.is_quiet {
            failure::warn(&format!("{}: {note}", self.path.display()));
        }
    }

    /// The error of what has the name and cannot be followed.
    fn is_no_file(&self) -> Failure {
        let problem = "is no regular file, and --follow reads regular files alone";
        let error = io::Error::new(ErrorKind::Unsupported, problem);
        Failure::file(self.path.display().to_string())(error)
    }

    /// Whether a file is complete of which a read has returned so many bytes, so that the next one
    /// of its name follows: the first of `earlier`, which gets those that were rotated meanwhile.
    /// One that was `rotated` may be compressed. Fails if it is compressed, or cannot be read.
    fn has_ended(
        &mut self,
        file: &PlainBytes,
        read: usize,
        is_rotated: bool,
        detection: Detection,
        earlier: &mut VecDeque<EarlierFile>,
    ) -> Result<bool, Failure> {
        let name = self.path.display().to_string();
        let Some(plain) = file.plain_file().filter(|_| file.codec().is_none()) else {
            if is_rotated {
                return Ok(read == 0);
            }
            let problem = "is compressed, and --follow reads plain files alone";
            let error = io::Error::new(ErrorKind::Unsupported, problem);
            return Err(Failure::file(name)(error));
        };
        if read > 0 {
            return Ok(false);
        }
        if !earlier.is_empty() {
            return Ok(true);
        }
        let found = AtEnd::of(&self.path, plain, file.file_position());
        match found.map_err(Failure::file(name.as_str()))? {
            AtEnd::Open => return Ok(false),
            AtEnd::Truncated => {
                // Its copy was read.
                self.before = rotated_now(&self.path);
                self.note("was truncated, and is read from its start");
            }
            AtEnd::Replaced => {
                let found = self.open_next(Some(plain), detection, earlier);
                found.map_err(Failure::file(name))?;
                if earlier.is_empty() {
                    // The name is free for a moment, or files are still renamed. Opened by its name
                    // later, the next file could be one that came after others.
                    return Ok(false);
                }
                self.note("was replaced, and goes on in the new file");
            }
        }
        Ok(true)
    }
}

/// The rotated files of a name, as far as its folder can be read.
fn rotated_now(path: &Path) -> RotatedBefore {
    RotatedBefore::of(&Sibling::all(path).unwrap_or_default())
}

/// Waits before the next look at a file that is followed. Returns what the chunk gets if that is
/// not to be.
fn pause(signals: Option<Signals>, patience: Patience) -> Result<Option<Filled>, Failure> {
    match (patience, signals) {
        (Patience::Try, _) => Ok(Some(Filled::NotYet)),
        (Patience::Wait, Some(signals)) => {
            let arrived = signals.arrives_within(PAUSE);
            let arrived = arrived.map_err(Failure::file("signals"))?;
            Ok(arrived.then_some(Filled::End))
        }
        (Patience::Wait, None) => {
            thread::sleep(PAUSE);
            Ok(None)
        }
    }
}
