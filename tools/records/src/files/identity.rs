//! Which file it is, under any name and after a restart.

use std::fs::{File, Metadata};
use std::io;
use std::time::{Duration, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

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
    /// Whether another file was created at another time.
    pub fn is_of_another_time(&self, other: &Self) -> bool {
        (self.created.zip(other.created)).is_some_and(|(own, other)| own != other)
    }
}

/// A regular file as it is when it is opened.
#[derive(Debug, Clone)]
pub struct OpenedFile {
    /// Which file it is, and how it starts.
    pub identity: InputIdentity,
    /// The bytes of the sample of its start.
    pub start: Vec<u8>,
    /// The length in bytes.
    pub length: u64,
}

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
        Ok(Some(Self {
            identity: InputIdentity {
                file: id,
                created: (metadata.created().ok())
                    .and_then(|created| created.duration_since(UNIX_EPOCH).ok()),
                start: Sample::of(&start),
            },
            start,
            length: metadata.len(),
        }))
    }
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
        let mut buffer = vec![0; CHUNK_BYTES];
        while left > 0 {
            let most = usize::try_from(left).map_or(buffer.len(), |left| left.min(buffer.len()));
            let part = &mut buffer[..most];
            if plain.fill(part)? < most {
                return Ok(false);
            }
            last.extend_from_slice(part);
            last.drain(..last.len().saturating_sub(SAMPLE_BYTES));
            left -= most as u64;
        }
        let end = last.len().saturating_sub(self.end.bytes);
        Ok(self.end.bytes == 0 || Sample::of(&last[end..]) == self.end)
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
