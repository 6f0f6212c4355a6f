//! Files that grow, are rotated and truncated while they are read: `--follow`.

use std::borrow::Cow;
use std::fs::{self, File, Metadata};
use std::io;
use std::path::Path;
use std::time::Duration;

use super::identity::FileId;
use super::inputs::open_without_waiting;
use super::rotated::{
    Between, LEFT_COMPRESSED, LOOKS, RotatedBefore, Sibling, UNORDERED, unreadable,
};
use crate::compression::codec::Detection;

/// How long a reader at the end of a file waits before it looks again.
pub(crate) const PAUSE: Duration = Duration::from_millis(100);

/// What a reader finds at the end of a file that it follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AtEnd {
    /// Nothing yet, or more bytes.
    Open,
    /// The file is shorter than what was read of it.
    Truncated,
    /// Another file has its name, and this one is complete.
    Replaced,
}

impl AtEnd {
    /// Compares the followed name with the file that was read up to this position.
    ///
    /// A rotated file is complete once the new one has bytes: until then, its writer may still have
    /// the old one open.
    pub(crate) fn of(path: &Path, file: &File, position: u64) -> io::Result<Self> {
        // First: what is written to the old file before this is in its length below.
        let named = fs::metadata(path).ok();
        let own = file.metadata()?;
        if own.len() < position {
            return Ok(Self::Truncated);
        }
        let is_other = |named: &Metadata| {
            let id = FileId::of(named);
            id.is_some() && id != FileId::of(&own) && named.len() > 0
        };
        Ok(
            if own.len() == position && named.as_ref().is_some_and(is_other) {
                Self::Replaced
            } else {
                Self::Open
            },
        )
    }
}

/// The next files of a name, open.
#[derive(Debug, Default)]
pub(crate) struct NextFiles {
    /// Those that had the name in between, oldest first.
    pub(crate) rotated: Vec<File>,
    /// The one that has it now. While a file is rotated, none may have it.
    pub(crate) present: Option<File>,
    /// Those that are not read, and why.
    omitted: Vec<(Sibling, Cow<'static, str>)>,
    /// The rotated files that are in the folder now, if any file is there to be read.
    pub(crate) before: RotatedBefore,
}

impl NextFiles {
    /// The files that had the name of `path` after `last`, or without it those that came to its
    /// folder after those `before`, and the one that has it now. None if files are renamed all the
    /// time.
    pub(crate) fn open(
        path: &Path,
        last: Option<&File>,
        before: &RotatedBefore,
        detection: Detection,
    ) -> io::Result<Self> {
        let last_id = (last.map(File::metadata).transpose()?).and_then(|last| FileId::of(&last));
        for _ in 0..LOOKS {
            // First: rotated while the folder is read, it is still the last one.
            let present = match open_without_waiting(path) {
                Ok(file) => Some(file),
                Err(_) if !path.exists() => None,
                Err(error) => return Err(error),
            };
            let mut siblings = match Sibling::all(path) {
                // A file can be read in a folder that cannot.
                Err(_) if last.is_none() => Vec::new(),
                all => all?,
            };
            let metadata = present.as_ref().map(File::metadata).transpose()?;
            let present_id = metadata.as_ref().and_then(FileId::of);
            siblings.retain(|sibling| Some(sibling.id) != present_id);
            let first = siblings.iter().find(|file| Some(file.id) == last_id);
            let mut between = if let Some(first) = first {
                Between::after(first, &siblings)
            } else {
                let mut between = Between::not_before(before, &siblings, detection);
                // Compressed in between, the last one has another number.
                let is_copy = |file: &Sibling| {
                    last.is_some_and(|last| file.is_copy_of(last, detection).unwrap_or(false))
                };
                if let Some(copy) = between.files.iter().position(is_copy) {
                    between.files.remove(copy);
                }
                between
            };
            let mut omitted: Vec<_> = (between.unordered.into_iter())
                .map(|file| (file, Cow::Borrowed(UNORDERED)))
                .collect();
            if detection == Detection::Off {
                let compressed = between.files.extract_if(.., |file| file.is_compressed);
                omitted.extend(compressed.map(|file| (file, Cow::Borrowed(LEFT_COMPRESSED))));
            }
            let (mut rotated, mut was_renamed) = (Vec::new(), false);
            for file in between.files {
                match file.open() {
                    Ok(Some(opened)) => rotated.push(opened),
                    Ok(None) => was_renamed = true,
                    Err(error) => omitted.push((file, unreadable(&error).into())),
                }
            }
            // Without one that was renamed meanwhile, none.
            if !was_renamed {
                let mut next = Self {
                    rotated,
                    present,
                    omitted,
                    before: RotatedBefore::default(),
                };
                // All of them are opened for that.
                if !next.is_empty() {
                    next.before = RotatedBefore::of(&siblings);
                }
                return Ok(next);
            }
        }
        Ok(Self::default())
    }

    /// Whether no file is there to be read.
    pub(crate) const fn is_empty(&self) -> bool {
        self.rotated.is_empty() && self.present.is_none()
    }

    /// Warns of the files that are not read.
    pub(crate) fn warn(&self, path: &Path) {
        for (file, why) in &self.omitted {
            file.warn_of_omission(path, why);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::path::PathBuf;

    use super::*;
    use crate::compression::reader::PlainBytes;
    use crate::reading::read_at;

    #[test]
    fn a_rotated_file_is_complete_once_the_new_one_has_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut writer = File::create(&path).unwrap();
        writer.write_all(b"abc").unwrap();
        let file = File::open(&path).unwrap();
        let at = |position| AtEnd::of(&path, &file, position).unwrap();
        assert_eq!(
            (at(2), at(3), at(4)),
            (AtEnd::Open, AtEnd::Open, AtEnd::Truncated)
        );
        let renamed = folder.path().join("log.1");
        fs::rename(&path, &renamed).unwrap();
        assert_eq!(at(3), AtEnd::Open);
        let mut new = File::create(&path).unwrap();
        assert_eq!(at(3), AtEnd::Open);
        writer.write_all(b"d").unwrap();
        new.write_all(b"e").unwrap();
        assert_eq!((at(3), at(4)), (AtEnd::Open, AtEnd::Replaced));
        let next = || {
            let before = RotatedBefore::default();
            let next = NextFiles::open(&path, Some(&file), &before, Detection::Text).unwrap();
            (next.rotated.len(), next.present.is_some())
        };
        assert_eq!(next(), (0, true));
        // Rotated once more, and no file has the name yet.
        fs::rename(&renamed, folder.path().join("log.2")).unwrap();
        fs::rename(&path, &renamed).unwrap();
        assert_eq!(next(), (1, false));
        File::create(&path).unwrap();
        assert_eq!(next(), (1, true));
    }

    /// A log, and what a follower has read of it.
    struct Model {
        folder: tempfile::TempDir,
        before: RotatedBefore,
        /// The file that is read, and how far.
        last: Option<(File, u64)>,
        written: String,
        read: String,
    }

    impl Model {
        fn new(old: bool) -> Self {
            let folder = tempfile::tempdir().unwrap();
            let write = |name: &str| fs::write(folder.path().join(name), "old\n").unwrap();
            if old {
                ["log.2", "log.1"].into_iter().for_each(write);
            }
            let before = RotatedBefore::of(&Sibling::all(&folder.path().join("log")).unwrap());
            Self {
                folder,
                before,
                last: None,
                written: String::new(),
                read: String::new(),
            }
        }

        fn path(&self, name: &str) -> PathBuf {
            self.folder.path().join(name)
        }

        fn write(&mut self) {
            let line = format!("{}\n", self.written.len());
            let log = (fs::OpenOptions::new().append(true).create(true)).open(self.path("log"));
            log.unwrap().write_all(line.as_bytes()).unwrap();
            self.written += &line;
        }

        fn rotate(&self) {
            if !self.path("log").exists() {
                return;
            }
            for number in (1..40).rev() {
                for end in ["", ".gz"] {
                    let [from, to] =
                        [number, number + 1].map(|number| self.path(&format!("log.{number}{end}")));
                    let _ = fs::rename(from, to);
                }
            }
            fs::rename(self.path("log"), self.path("log.1")).unwrap();
        }

        fn compress(&self) {
            let Ok(content) = fs::read(self.path("log.1")) else {
                return;
            };
            let modified = fs::metadata(self.path("log.1")).unwrap().modified();
            let compressed = File::create(self.path("log.1.gz")).unwrap();
            let mut encoder = flate2::write::GzEncoder::new(compressed, Default::default());
            encoder.write_all(&content).unwrap();
            let compressed = encoder.finish().unwrap();
            compressed.set_modified(modified.unwrap()).unwrap();
            fs::remove_file(self.path("log.1")).unwrap();
        }

        fn read(&mut self, file: File) {
            let mut content = vec![0; 1 << 16];
            let filled = PlainBytes::new(file, Detection::Text, None).fill(&mut content);
            self.read += std::str::from_utf8(&content[..filled.unwrap()]).unwrap();
        }

        /// Reads the rest of a plain file, from this position on.
        fn read_on(&mut self, file: File, position: u64) {
            let mut content = vec![0; 1 << 16];
            let (filled, end) = read_at(&file, &mut content, position);
            end.unwrap();
            self.read += std::str::from_utf8(&content[..filled]).unwrap();
            self.last = Some((file, position + filled as u64));
        }

        /// A look of the follower.
        fn follow(&mut self) {
            let path = self.path("log");
            if let Some((file, position)) = self.last.take() {
                self.read_on(file, position);
            }
            if let Some((file, position)) = &self.last
                && AtEnd::of(&path, file, *position).unwrap() == AtEnd::Open
            {
                return;
            }
            let last = self.last.as_ref().map(|(file, _)| file);
            let next = NextFiles::open(&path, last, &self.before, Detection::Text).unwrap();
            assert!(next.omitted.is_empty(), "{:?}", next.omitted);
            if next.is_empty() {
                return;
            }
            self.before = next.before;
            self.last = None;
            next.rotated.into_iter().for_each(|file| self.read(file));
            if let Some(file) = next.present {
                self.read_on(file, 0);
            }
        }
    }

    proptest::proptest! {
        /// What is written between two looks is read in this order, and nothing else.
        #[test]
        fn all_that_is_written_is_read_once(
            old in proptest::bool::ANY,
            steps in proptest::collection::vec(0..8, 0..30),
        ) {
            let mut model = Model::new(old);
            for step in steps {
                match step {
                    0..3 => model.write(),
                    3..5 => model.rotate(),
                    5 => model.compress(),
                    _ => model.follow(),
                }
            }
            model.write();
            // The file that was read last, and those behind it.
            model.follow();
            model.follow();
            proptest::prop_assert_eq!(model.read, model.written);
        }
    }
}
