//! Reading sections one after the other.

use std::io::{ErrorKind, Read};

use super::error::StateError;
use super::header::Header;
use super::section::{
    CHECKSUM, HEAD, Kind, MAGIC, Mark, PRELUDE, Section, SectionBuffer, VERSION, u32_at,
};
use super::spec::StateSpec;
use crate::error::SpecError;
use crate::hash::KeyHasher;
use crate::memory::LINE_BYTES;
use crate::size::format_bytes;

/// The bytes that are read at once, and whose memory is allocated before: no more than that is
/// allocated for a length that is wrong. A block is read at once.
const STEP: usize = (1 << 20) + 4096;

/// Reads a state, or a segment of a journal, section by section, and checks each;
/// [`restore`](Self::restore) and [`restore_parts`](super::restore_parts) make a filter of all of
/// them. Checksums find damage. They do not protect from states that were forged.
///
/// No length is believed: a section has the limits of its kind, and memory is allocated as bytes
/// arrive. Reads no byte behind a section, and none behind the [end](Section::End). Reads in pieces
/// of a few bytes and of up to 1 MiB, so a file of large blocks needs no buffer.
///
/// # Examples
/// Where a file was torn off, the sections before are whole.
/// ```
/// use echoless::state::{Header, Section, StateError, StateReader, StateWriter};
/// use echoless::{FilterSpec, KeyHasher, filters::lines::Progress};
/// let spec: FilterSpec = "rowlru:form=line,memory=1KiB".parse()?;
/// let header = Header::new(&spec, &KeyHasher::seeded(0))?.starts_empty(true);
/// let mut writer = StateWriter::new(Vec::new(), &header)?;
/// writer.append_commit(Progress::default(), b"one")?;
/// let whole = writer.mark();
/// writer.append_commit(Progress::default(), b"two")?;
/// let mut file = writer.into_output();
/// file.pop();
///
/// let mut reader = StateReader::open(&file[..])?;
/// let Some(Section::Commit(commit)) = reader.read_section()? else { panic!() };
/// assert_eq!(commit.bytes, b"one");
/// assert_eq!(reader.mark(), whole);
/// assert!(matches!(reader.read_section(), Err(StateError::Truncated { .. })));
/// // Cut there, the file goes on.
/// file.truncate(whole.position as usize);
/// let mut writer = StateWriter::resume(&mut file, whole);
/// writer.append_commit(Progress::default(), b"three")?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct StateReader<R> {
    input: R,
    header: Header,
    bucket_lines: u64,
    sections: Sections,
}

/// The sections that were read.
#[derive(Debug)]
struct Sections {
    buffer: SectionBuffer,
    mark: Mark,
    has_ended: bool,
}

impl<R: Read> StateReader<R> {
    /// Reads and checks the beginning of a file and its header.
    ///
    /// # Errors
    /// [`StateError::Unreadable`] if it is another file, or from another version of this library,
    /// [`Damaged`](StateError::Damaged) or [`Truncated`](StateError::Truncated) if it once was
    /// such a file, [`StateError::Io`] if `input` fails.
    pub fn open(mut input: R) -> Result<Self, StateError> {
        let mut prelude = [0; PRELUDE];
        let read = read_up_to(&mut input, &mut prelude)?;
        let magic = &prelude[..MAGIC.len()];
        if read < MAGIC.len() && magic[..read] == MAGIC[..read] {
            return Err(StateError::truncated("its first bytes"));
        }
        if magic != MAGIC {
            let reason = "it does not begin with the 8 bytes of a state of echoless";
            return Err(StateError::Unreadable(reason.into()));
        }
        if read < PRELUDE {
            return Err(StateError::truncated("its version"));
        }
        let version = u32_at(&prelude, MAGIC.len());
        if version != VERSION {
            let reason = format!("it has version {version}, and this library reads {VERSION}");
            return Err(StateError::Unreadable(reason));
        }
        let (_, mark) = Mark::prelude(version);
        let mut sections = Sections {
            buffer: SectionBuffer::new(),
            mark,
            has_ended: false,
        };
        match sections.read(&mut input)? {
            Some((Kind::Header, _)) => {}
            Some((_, section)) => return Err(StateError::invalid(section, "no header before it")),
            None => return Err(StateError::truncated("its version")),
        }
        let header = Header::decode(sections.buffer.payload())?;
        Ok(Self {
            bucket_lines: header.spec.lines_and_bucket()?.1,
            header,
            input,
            sections,
        })
    }

    /// A reader of the same file that goes on behind another section. `input` must be at
    /// [`Mark::position`].
    ///
    /// # Examples
    /// ```
    /// use echoless::state::{Header, Section, StateReader, StateWriter};
    /// use echoless::{FilterSpec, KeyHasher, filters::lines::Progress};
    /// let spec: FilterSpec = "rowlru:form=line,memory=1KiB".parse()?;
    /// let header = Header::new(&spec, &KeyHasher::seeded(0))?.starts_empty(true);
    /// let mut writer = StateWriter::new(Vec::new(), &header)?;
    /// writer.append_commit(Progress::default(), b"one")?;
    /// let mark = writer.mark();
    /// writer.append_commit(Progress::default(), b"two")?;
    /// let file = writer.into_output();
    ///
    /// let reader = StateReader::open(&file[..])?;
    /// let mut rest = reader.resume(&file[mark.position as usize..], mark);
    /// let Some(Section::Commit(commit)) = rest.read_section()? else { panic!() };
    /// assert_eq!(commit.bytes, b"two");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn resume<S>(&self, input: S, mark: Mark) -> StateReader<S> {
        StateReader {
            input,
            header: self.header.clone(),
            bucket_lines: self.bucket_lines,
            sections: Sections {
                buffer: SectionBuffer::new(),
                mark,
                has_ended: false,
            },
        }
    }

    /// What the file is of.
    #[must_use]
    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// The specification of the saved filter.
    #[must_use]
    pub const fn spec(&self) -> &StateSpec {
        &self.header.spec
    }

    /// Checks that the saved filter is the one that a program would build.
    ///
    /// # Errors
    /// As [`Header::check`].
    pub fn check(&self, spec: impl Into<StateSpec>, hasher: &KeyHasher) -> Result<(), StateError> {
        self.header.check(spec, hasher)
    }

    /// Rejects a filter of more memory than `bytes` before it is built. Without a limit, a state is
    /// as large as it says, up to the memory that is available; a program that reads states of
    /// others sets one.
    ///
    /// # Errors
    /// [`StateError::Build`] if the state has more.
    pub fn limit_memory(self, bytes: u64) -> Result<Self, StateError> {
        let part = &self.header.part;
        let memory = (part.end - part.start) * LINE_BYTES;
        if memory <= bytes {
            return Ok(self);
        }
        let allowed = format!("a state of at most {}", format_bytes(bytes));
        Err(SpecError::new("memory", format_bytes(memory), allowed).into())
    }

    /// The next section; `None` behind the [end](Section::End), or where the input ends between two
    /// sections.
    ///
    /// # Errors
    /// [`StateError::Damaged`] or [`Truncated`](StateError::Truncated): [`mark`](Self::mark) is
    /// then the point behind the last whole section; [`StateError::Unreadable`] if the section
    /// contradicts the header or itself; [`StateError::Io`] if the input fails.
    pub fn read_section(&mut self) -> Result<Option<Section<'_>>, StateError> {
        let sections = &mut self.sections;
        if sections.has_ended {
            return Ok(None);
        }
        let Some((kind, name)) = sections.read(&mut self.input)? else {
            return Ok(None);
        };
        sections.has_ended = kind == Kind::End;
        let section = sections.buffer.section(kind, &name)?;
        if let Section::Block(block) = &section {
            let part = &self.header.part;
            let end = block.first.saturating_add(block.count);
            if block.first < part.start || end > part.end {
                let (first, last) = (part.start, part.end - 1);
                let reason = format!("the state has lines {first} to {last}");
                return Err(StateError::invalid(name, reason));
            }
            let bucket = self.bucket_lines;
            if block.first % bucket != 0 || block.count % bucket != 0 {
                let reason = format!("no whole buckets of {bucket} lines");
                return Err(StateError::invalid(name, reason));
            }
        }
        Ok(Some(section))
    }

    /// The point behind the last section that was read: how many bytes there are before it, and
    /// their checksum.
    #[must_use]
    pub const fn mark(&self) -> Mark {
        self.sections.mark
    }

    /// Checks that the input has ended.
    ///
    /// # Errors
    /// [`StateError::Unreadable`] if it has more bytes; [`StateError::Io`] if it fails.
    pub fn check_end(&mut self) -> Result<(), StateError> {
        if read_up_to(&mut self.input, &mut [0])? == 0 {
            return Ok(());
        }
        let reason = format!(
            "bytes follow its end, from byte {} on",
            self.mark().position
        );
        Err(StateError::Unreadable(reason))
    }
}

impl Sections {
    /// Reads a section, checks it, and returns its kind and its name in an error.
    fn read(&mut self, input: &mut impl Read) -> Result<Option<(Kind, String)>, StateError> {
        let position = self.mark.position;
        let mut head = [0; HEAD];
        match read_up_to(input, &mut head)? {
            0 => return Ok(None),
            HEAD => {}
            _ => {
                return Err(StateError::truncated(format!(
                    "the section at byte {position}"
                )));
            }
        }
        let [number, length] = [0, 4].map(|at| u32_at(&head, at));
        let Some((kind, most)) = Kind::of(number) else {
            let reason = format!("its kind {number} is not known");
            return Err(StateError::damaged(
                format!("the section at byte {position}"),
                reason,
            ));
        };
        let length = length as usize;
        if length > most {
            let reason = format!("its length is {length} bytes, more than {most}");
            return Err(StateError::damaged(kind.describe(position, &[]), reason));
        }
        self.buffer.begin(kind, 0);
        let mut filled = 0;
        while filled < length + CHECKSUM {
            let step = STEP.min(length + CHECKSUM - filled);
            self.buffer.reserve(filled + step);
            let read = read_up_to(input, &mut self.buffer.rest_mut()[filled..][..step])?;
            filled += read;
            if read < step {
                let known = &self.buffer.rest_mut()[..filled.min(length)];
                return Err(StateError::truncated(kind.describe(position, known)));
            }
        }
        // Writes the head that was read, which is part of the checksum.
        self.buffer.begin(kind, length);
        let name = kind.describe(position, self.buffer.payload());
        let checksum = self.buffer.checksum(self.mark.checksum);
        if self.buffer.read_checksum() != checksum {
            return Err(StateError::damaged(name, "its checksum is wrong"));
        }
        self.mark = Mark {
            position: position + (HEAD + length + CHECKSUM) as u64,
            checksum,
        };
        Ok(Some((kind, name)))
    }
}

/// Reads until the bytes are full or the input ends. Returns how many were read.
fn read_up_to(input: &mut impl Read, bytes: &mut [u8]) -> Result<usize, StateError> {
    let mut filled = 0;
    while filled < bytes.len() {
        match input.read(&mut bytes[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(filled)
}
