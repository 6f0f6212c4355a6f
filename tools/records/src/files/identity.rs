//! Which file it is, under any name and after a restart.

use std::fs::{File, Metadata};
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crc32fast::Hasher;
use serde::{Deserialize, Serialize};

use super::inputs::open_without_waiting;
use crate::compression::codec::Detection;
use crate::compression::reader::PlainBytes;
use crate::reading::{self, CHUNK_BYTES};

/// The bytes at the start of an input, and in front of a position in it, that tell it from another
/// file which got the number of a removed one.
pub const SAMPLE_BYTES: usize = 1 << 10;

/// The device and the number of a regular file, which a rename does not change. They are a hint
/// only: a reboot may change the device, a copy has another number, and a new file may get that of
/// a removed one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    /// `None` if it is no regular file.
    pub fn of(metadata: &Metadata) -> Option<Self> {
        use std::os::unix::fs::MetadataExt;
        metadata.is_file().then(|| Self {
            device: metadata.dev(),
            inode: metadata.ino(),
        })
    }

    #[cfg(test)]
    pub(crate) const fn numbered(inode: u64) -> Self {
        Self { device: 0, inode }
    }

    /// That of no file.
    pub const NONE: Self = Self {
        device: 0,
        inode: 0,
    };

    /// The number, without the device.
    pub const fn number(self) -> u64 {
        self.inode
    }
}

/// Some bytes of a file as a hash.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Sample {
    /// The number of bytes.
    pub bytes: usize,
    hash: String,
}

impl Sample {
    /// Hashes these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self {
            bytes: bytes.len(),
            hash: blake3::hash(bytes).to_hex().to_string(),
        }
    }

    /// The bytes in front of an offset.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn in_front_of(offset: u64, file: &File) -> io::Result<Self> {
        let start = offset.saturating_sub(SAMPLE_BYTES as u64);
        let mut bytes = vec![0; usize::try_from(offset - start).unwrap_or(SAMPLE_BYTES)];
        let read = read_at(file, &mut bytes, start)?;
        Ok(Self::of(&bytes[..read]))
    }

    /// Whether the file has these bytes at an offset.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn is_at(&self, offset: u64, file: &File) -> io::Result<bool> {
        let mut bytes = vec![0; self.bytes.min(SAMPLE_BYTES)];
        let read = read_at(file, &mut bytes, offset)?;
        Ok(read == self.bytes && Self::of(&bytes) == *self)
    }
}

/// The first bytes of a file as a checksum to which more are added, by a later run as well. It
/// tells changed content from what it was, unless the change was crafted to keep it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContentDigest {
    /// The number of bytes.
    pub bytes: u64,
    /// CRC-32 of these, as of gzip.
    crc: u32,
}

impl ContentDigest {
    /// The digest of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self {
            bytes: bytes.len() as u64,
            crc: crc32fast::hash(bytes),
        }
    }

    /// Adds the bytes that follow.
    pub fn add(&mut self, next: &Self) {
        let hasher = |digest: &Self| Hasher::new_with_initial_len(digest.crc, digest.bytes);
        let mut both = hasher(self);
        both.combine(&hasher(next));
        self.crc = both.finalize();
        self.bytes += next.bytes;
    }

    /// So many first bytes of a file, decompressed, or all; `None` if its path has another one now.
    ///
    /// # Errors
    /// If the file cannot be read, or its data is damaged or not decoded.
    pub fn of_file(
        path: &Path,
        id: FileId,
        bytes: u64,
        detection: Detection,
    ) -> io::Result<Option<Self>> {
        // An open file of its own, as clones of one share their position.
        let Some(file) = open_same(path, id)? else {
            return Ok(None);
        };
        Self::of_first(bytes, &mut PlainBytes::new(file, detection, None)).map(Some)
    }

    /// The first bytes that are read, so many or all.
    ///
    /// # Errors
    /// If the file cannot be read, or its data is damaged or not decoded.
    fn of_first(bytes: u64, plain: &mut PlainBytes) -> io::Result<Self> {
        let mut digest = Self::default();
        let mut buffer = vec![0; CHUNK_BYTES];
        while digest.bytes < bytes {
            let left = bytes - digest.bytes;
            let most = usize::try_from(left).map_or(buffer.len(), |left| left.min(buffer.len()));
            let filled = plain.fill(&mut buffer[..most])?;
            digest.add(&Self::of(&buffer[..filled]));
            if filled < most {
                break;
            }
        }
        Ok(digest)
    }
}

/// A regular file that is read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputIdentity {
    /// Which file it is.
    pub file: FileId,
    /// When it was created, since 1970, if the system tells: a new file may get the number of a
    /// removed one.
    #[serde(default)]
    pub(crate) created: Option<Duration>,
    /// Its first bytes, as they are in the file.
    pub start: Sample,
}

impl InputIdentity {
    /// The file is gone: another one has its number. A copy of it may be there.
    pub fn lose_file(&mut self) {
        (self.file, self.created) = (FileId::NONE, None);
    }

    /// Whether another file was created at another time.
    pub fn is_of_another_time(&self, other: &Self) -> bool {
        (self.created.zip(other.created)).is_some_and(|(own, other)| own != other)
    }
}

/// A regular file as it was found.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FoundFile {
    /// Which file it is, and how it starts.
    #[serde(flatten)]
    pub identity: InputIdentity,
    /// The length in bytes.
    #[serde(default)]
    pub length: u64,
    /// When it was changed last, since 1970: a change behind this look has another time. `None` if
    /// that may not be so, as it was changed just now, or the system does not tell.
    #[serde(default)]
    pub modified: Option<Duration>,
}

/// A regular file as it is when it is opened.
#[derive(Debug, Clone)]
pub struct OpenedFile {
    /// Which file it is.
    pub found: FoundFile,
    /// The bytes of the sample of its start.
    pub start: Vec<u8>,
}

/// How long ago a change must be for the next one to have another time. Clocks of file systems tick
/// every 10 ms at the latest, those of some in seconds.
const CLOCK_STEP: Duration = Duration::from_secs(2);

impl OpenedFile {
    /// `None` if it is no regular file. Does not move the position of the file.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn of(file: &File) -> io::Result<Option<Self>> {
        let metadata = file.metadata()?;
        let Some(id) = FileId::of(&metadata) else {
            return Ok(None);
        };
        let start = start_of(file)?;
        let identity = InputIdentity {
            file: id,
            created: (metadata.created().ok())
                .and_then(|created| created.duration_since(UNIX_EPOCH).ok()),
            start: Sample::of(&start),
        };
        let found = FoundFile {
            identity,
            length: metadata.len(),
            modified: modified_before(&metadata, SystemTime::now()),
        };
        Ok(Some(Self { found, start }))
    }
}

/// When a file was changed last, unless that may be the time of its next change, too.
fn modified_before(metadata: &Metadata, now: SystemTime) -> Option<Duration> {
    let modified = metadata.modified().ok()?;
    let is_settled = (now.duration_since(modified)).is_ok_and(|ago| ago > CLOCK_STEP);
    let modified = modified.duration_since(UNIX_EPOCH).ok()?;
    is_settled.then_some(modified)
}

/// The content of a file up to a length, as samples of its start and of its end.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ContentSample {
    /// The length in bytes.
    pub length: u64,
    /// The first bytes, which may be more than this length.
    pub start: Sample,
    /// The bytes in front of the end.
    pub end: Sample,
    /// All of it, if that is known.
    #[serde(default)]
    pub digest: Option<ContentDigest>,
}

impl ContentSample {
    /// Content of which nothing is known but its length.
    pub fn of_length(length: u64) -> Self {
        Self {
            length,
            ..Self::default()
        }
    }

    /// The content of a file up to a length, or to its end if that is less.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn of(file: &File, length: u64) -> io::Result<Self> {
        let length = length.min(file.metadata()?.len());
        let sample = length.min(SAMPLE_BYTES as u64);
        let mut bytes = vec![0; sample as usize];
        let mut sample_at = |offset| {
            let read = read_at(file, &mut bytes, offset)?;
            io::Result::Ok(Sample::of(&bytes[..read]))
        };
        Ok(Self {
            length,
            start: sample_at(0)?,
            end: sample_at(length - sample)?,
            digest: None,
        })
    }

    /// Whether a file begins with this content.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn begins(&self, file: &File) -> io::Result<bool> {
        let end_at = self.length.checked_sub(self.end.bytes as u64);
        match end_at {
            Some(end_at) => Ok(self.start.is_at(0, file)? && self.end.is_at(end_at, file)?),
            None => Ok(false),
        }
    }

    /// Whether decompressed bytes begin with this content, if that is any.
    pub(super) fn begins_decompressed(&self, plain: &mut PlainBytes) -> io::Result<bool> {
        if !(1..=SAMPLE_BYTES).contains(&self.start.bytes) {
            return Ok(false);
        }
        let mut last = vec![0; self.start.bytes];
        if plain.fill(&mut last)? < last.len() || Sample::of(&last) != self.start {
            return Ok(false);
        }
        let mut left = self.length.saturating_sub(last.len() as u64);
        last.truncate(usize::try_from(self.length).unwrap_or(usize::MAX));
        let mut digest = ContentDigest::of(&last);
        let mut buffer = vec![0; CHUNK_BYTES];
        while left > 0 {
            let most = usize::try_from(left).map_or(buffer.len(), |left| left.min(buffer.len()));
            let part = &mut buffer[..most];
            if plain.fill(part)? < most {
                return Ok(false);
            }
            digest.add(&ContentDigest::of(part));
            last.extend_from_slice(part);
            last.drain(..last.len().saturating_sub(SAMPLE_BYTES));
            left -= most as u64;
        }
        let end = last.len().saturating_sub(self.end.bytes);
        let has_end = self.end.bytes == 0 || Sample::of(&last[end..]) == self.end;
        Ok(has_end && self.digest.as_ref().is_none_or(|known| *known == digest))
    }
}

/// The number of a file in its file system, and when it was created: no other file there has both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileBirth {
    inode: u64,
    /// Since 1970.
    created: Duration,
}

impl FileBirth {
    /// `None` if the system does not tell.
    pub fn of(metadata: &Metadata) -> Option<Self> {
        let created = metadata.created().ok()?.duration_since(UNIX_EPOCH).ok()?;
        let inode = FileId::of(metadata)?.inode;
        Some(Self { inode, created })
    }
}

/// Opens a file, if it still has its path.
pub(super) fn open_same(path: &Path, id: FileId) -> io::Result<Option<File>> {
    // Something else may have its name by now.
    match open_without_waiting(path) {
        Ok(file) => {
            let is_same = FileId::of(&file.metadata()?) == Some(id);
            Ok(is_same.then_some(file))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The first bytes of a file, as many as a sample has at most.
fn start_of(file: &File) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; SAMPLE_BYTES];
    let read = read_at(file, &mut bytes, 0)?;
    bytes.truncate(read);
    Ok(bytes)
}

/// Reads up to the end of the buffer or of the file.
fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let (read, end) = reading::read_at(file, buffer, offset);
    end.map(|()| read)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_digest_is_that_of_the_bytes_however_they_are_divided(
            parts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..50), 0..6),
            more in prop::collection::vec(any::<u8>(), 0..50),
        ) {
            let mut digest = ContentDigest::default();
            for part in &parts {
                digest.add(&ContentDigest::of(part));
            }
            let bytes = parts.concat();
            prop_assert_eq!(&digest, &ContentDigest::of(&bytes));
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(&file, [&bytes[..], &more].concat()).unwrap();
            let of_first = |count| {
                let file = file.reopen().unwrap();
                ContentDigest::of_first(count, &mut PlainBytes::new(file, Detection::Off, None))
            };
            prop_assert_eq!(of_first(digest.bytes).unwrap(), digest.clone());
            // A file that is shorter has another one, and so has one with another byte.
            let longer = of_first(u64::MAX).unwrap();
            prop_assert_eq!(longer.bytes, (bytes.len() + more.len()) as u64);
            if let Some(last) = bytes.last() {
                let changed = [&bytes[..bytes.len() - 1], &[last ^ 1]].concat();
                prop_assert_ne!(ContentDigest::of(&changed), digest);
            }
        }
    }

    #[test]
    fn a_time_of_change_is_known_once_the_next_change_has_another_one() {
        let file = tempfile::tempfile().unwrap();
        let metadata = file.metadata().unwrap();
        let changed = metadata.modified().unwrap();
        let after = |time| modified_before(&metadata, changed + time);
        assert_eq!(after(Duration::ZERO), None);
        assert_eq!(after(CLOCK_STEP), None);
        let known = changed.duration_since(UNIX_EPOCH).unwrap();
        assert_eq!(after(CLOCK_STEP + Duration::from_nanos(1)), Some(known));
        assert_eq!(modified_before(&metadata, changed - CLOCK_STEP), None);
    }
}
