//! The files that may have had a name which is followed: which they are, in which order they were
//! rotated, and which of them were there before.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::identity::{
    ContentSample, FileId, InputIdentity, OpenedFile, SAMPLE_BYTES, Sample, open_same,
};
use crate::compression::codec::Detection;
use crate::compression::reader::PlainBytes;
use crate::failure;
use crate::reading::{CHUNK_BYTES, read_at};

/// How often the folder is read until no file is renamed meanwhile.
pub const LOOKS: u32 = 10;

/// The ends of names of compressed files.
const COMPRESSED: [&[u8]; 8] = [
    b".gz", b".zst", b".bz2", b".xz", b".lz4", b".lzma", b".lz", b".Z",
];

/// Why a file is not read that may have been rotated in between.
pub const UNORDERED: &str =
    "neither its name nor its times say whether it is older than what was read";

/// Why a compressed file is not read.
pub const LEFT_COMPRESSED: &str = "--no-decompress leaves it compressed";

/// Why a file is not read that cannot be.
pub fn unreadable(error: &io::Error) -> String {
    format!("of this error: {error}")
}

/// A regular file in the folder of one that is followed, which may have had its name.
#[derive(Debug, Clone)]
pub struct Sibling {
    /// Its path.
    pub path: PathBuf,
    /// Which file it is.
    pub id: FileId,
    pub(crate) modified: SystemTime,
    /// When the file was made. `None` on a file system that does not know, and of a compressed
    /// file, which is younger than its content.
    created: Option<SystemTime>,
    /// The number or time in its name; `None` if that is not the followed one with such an
    /// addition.
    label: Option<Label>,
    /// Whether its name is that of a compressed file.
    pub is_compressed: bool,
}

/// What rotation adds to a name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Label {
    /// As in `log.1`: the newest has the smallest number, unless the times of the files contradict.
    Number(u64),
    /// As in `log-20251125` or `log.2025-11-25.2`: the newest has the greatest.
    Time(Vec<u64>),
}

impl Label {
    /// The label of a name, if it is that of `of` with a number or a time behind it, or in front of
    /// its extension.
    fn parse(name: &[u8], of: &[u8]) -> Option<Self> {
        let plain = without_compression(name);
        let added = plain.strip_prefix(of).or_else(|| {
            let dot = of.iter().rposition(|byte| *byte == b'.')?;
            let (stem, extension) = of.split_at(dot);
            plain.strip_prefix(stem)?.strip_suffix(extension)
        })?;
        let [b'.' | b'-' | b'_', digits @ ..] = added else {
            return None;
        };
        if !digits.first()?.is_ascii_digit() {
            return None;
        }
        let numbers = digits.split(|byte| !byte.is_ascii_digit());
        let numbers: Vec<&[u8]> = numbers.filter(|number| !number.is_empty()).collect();
        let value = |number: &[u8]| {
            let text = std::str::from_utf8(number).unwrap_or_default();
            text.parse().unwrap_or(u64::MAX)
        };
        Some(match numbers[..] {
            [number] if number.len() < 6 => Self::Number(value(number)),
            _ => Self::Time(numbers.into_iter().map(value).collect()),
        })
    }
}

/// The folder of a file.
pub fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

fn without_compression(name: &[u8]) -> &[u8] {
    let ends = COMPRESSED.iter();
    ends.filter_map(|end| name.strip_suffix(*end))
        .next()
        .unwrap_or(name)
}

/// Whether two names may be those of one file before and after a rotation.
pub fn are_related(one: &Path, other: &Path) -> bool {
    let names = |path: &Path| {
        let name = path
            .file_name()
            .map(|name| name.as_encoded_bytes().to_vec());
        let name = without_compression(&name.unwrap_or_default()).to_vec();
        let mut names = unlabelled(&name);
        names.push(name);
        names
    };
    let others = names(other);
    names(one).iter().any(|name| others.contains(name))
}

/// The names that rotation may have made this one of.
fn unlabelled(name: &[u8]) -> Vec<Vec<u8>> {
    let begins = |at: usize| {
        let pair = name.get(at..at + 2);
        pair.is_some_and(|pair| b".-_".contains(&pair[0]) && pair[1].is_ascii_digit())
    };
    let mut names = Vec::new();
    for start in (1..name.len()).filter(|at| begins(*at)) {
        let is_label = |at: &usize| name[*at].is_ascii_digit() || begins(*at);
        let length = (start..name.len()).take_while(is_label).count();
        names.push([&name[..start], &name[start + length..]].concat());
    }
    names
}

/// The order of rotation of two files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    Before,
    After,
    Unknown,
}

impl Sibling {
    fn new(path: PathBuf, followed: &[u8], metadata: &Metadata) -> io::Result<Option<Self>> {
        let Some(id) = FileId::of(metadata) else {
            return Ok(None);
        };
        let name = path.file_name().unwrap_or_default().as_encoded_bytes();
        let is_compressed = without_compression(name).len() < name.len();
        let label = Label::parse(name, followed);
        Ok(Some(Self {
            id,
            modified: metadata.modified()?,
            created: metadata.created().ok().filter(|_| !is_compressed),
            label,
            is_compressed,
            path,
        }))
    }

    /// The regular files in the folder of `path`, without the one that has this name.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn all(path: &Path) -> io::Result<Vec<Self>> {
        // A file that is renamed while the folder is read may be missing, or there twice.
        let mut all = Self::list(path)?;
        for _ in 0..LOOKS {
            let before = std::mem::replace(&mut all, Self::list(path)?);
            if Self::by_path(&before) == Self::by_path(&all) {
                break;
            }
        }
        Ok(all)
    }

    /// Which file each path is, so that two looks at a folder can be compared.
    pub fn by_path<'a>(files: impl IntoIterator<Item = &'a Self>) -> HashMap<&'a Path, FileId> {
        let files = files.into_iter();
        files.map(|file| (file.path.as_path(), file.id)).collect()
    }

    fn list(path: &Path) -> io::Result<Vec<Self>> {
        let name = path.file_name().unwrap_or_default();
        let own = fs::metadata(path).ok().as_ref().and_then(FileId::of);
        let mut all = Vec::new();
        for entry in fs::read_dir(folder_of(path))? {
            let entry = entry?;
            // A file may be removed meanwhile.
            let Ok(metadata) = fs::metadata(entry.path()) else {
                continue;
            };
            let sibling = path.with_file_name(entry.file_name());
            if entry.file_name() != name
                && let Some(sibling) = Self::new(sibling, name.as_encoded_bytes(), &metadata)?
                && Some(sibling.id) != own
            {
                all.push(sibling);
            }
        }
        // While a file is compressed, it is there twice.
        let twins: HashSet<OsString> = (all.iter())
            .filter(|file| !file.is_compressed)
            .filter_map(|file| file.path.file_name().map(OsStr::to_owned))
            .collect();
        all.retain(|file| {
            let plain = file.path.with_extension("");
            let plain = plain.file_name().unwrap_or_default();
            !file.is_compressed || !twins.contains(plain)
        });
        Ok(all)
    }

    /// Warns that the file may have had the name of `path` in between, and why it is not read.
    pub fn warn_of_omission(&self, path: &Path, why: &str) {
        let (own, name) = (self.path.display(), path.display());
        failure::warn(&format!(
            "{own}: may have had the name of {name} in between, and is not read, as {why}: records \
             may be lost; give it as an input in front of {name}"
        ));
    }

    /// Whether the name has a number or a time.
    pub const fn is_labelled(&self) -> bool {
        self.label.is_some()
    }

    /// Whether the name is that of `path` with something behind it or with a label.
    pub fn has_name_of(&self, path: &Path) -> bool {
        let name = |path: &Path| path.file_name().unwrap_or_default().to_owned();
        let (own, name) = (name(&self.path), name(path));
        self.is_labelled() || own.as_encoded_bytes().starts_with(name.as_encoded_bytes())
    }

    /// Opens the file, if it still has its name.
    ///
    /// # Errors
    /// If the file is there and cannot be opened.
    pub fn open(&self) -> io::Result<Option<File>> {
        open_same(&self.path, self.id)
    }

    /// Which file it is, without its content.
    fn identity_without_content(&self) -> InputIdentity {
        InputIdentity {
            file: self.id,
            created: (self.created).and_then(|time| time.duration_since(UNIX_EPOCH).ok()),
            start: Sample::default(),
        }
    }

    /// The first bytes, decompressed, as many as a sample has at most; `None` if it was renamed.
    ///
    /// # Errors
    /// If the file cannot be read, or its data is damaged or not decoded.
    pub fn plain_start(&self, detection: Detection) -> io::Result<Option<Vec<u8>>> {
        let Some(file) = self.open()? else {
            return Ok(None);
        };
        let mut start = vec![0; SAMPLE_BYTES];
        let filled = PlainBytes::new(file, detection, None).fill(&mut start)?;
        start.truncate(filled);
        Ok(Some(start))
    }

    /// Whether it begins with this content, if that is any, once it is decompressed.
    ///
    /// # Errors
    /// As of [`plain_start`](Self::plain_start).
    pub fn begins_with(&self, content: &ContentSample, detection: Detection) -> io::Result<bool> {
        match self.open()? {
            Some(file) => content.begins_decompressed(&mut PlainBytes::new(file, detection, None)),
            None => Ok(false),
        }
    }

    /// Whether it has the content of `file`, or is that compressed.
    pub(super) fn is_copy_of(&self, file: &File, detection: Detection) -> io::Result<bool> {
        let Some(own) = self.open()? else {
            return Ok(false);
        };
        let mut plain = PlainBytes::new(own, detection, None);
        let (mut own, mut other) = (vec![0; CHUNK_BYTES], vec![0; CHUNK_BYTES]);
        let mut offset = 0;
        loop {
            let filled = plain.fill(&mut own)?;
            let (read, end) = read_at(file, &mut other, offset);
            end?;
            if own[..filled] != other[..read] {
                return Ok(false);
            }
            if filled == 0 {
                return Ok(true);
            }
            offset += read as u64;
        }
    }

    /// Compares the times of two files. That of a change misleads if a writer is late, so that the
    /// time of making decides against it, but not for it.
    fn by_times(&self, other: &Self) -> Order {
        let modified = other.modified.cmp(&self.modified);
        let created = (self.created.zip(other.created)).map(|(own, other)| other.cmp(&own));
        match (modified, created) {
            (Ordering::Greater, Some(Ordering::Less)) => Order::Unknown,
            (Ordering::Greater, _) | (_, Some(Ordering::Greater)) => Order::Before,
            (Ordering::Less, _) | (_, Some(Ordering::Less)) => Order::After,
            (Ordering::Equal, _) => Order::Unknown,
        }
    }
}

/// What the numbers in names say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Numbers {
    /// The smaller, the newer, as most programs have it.
    Falling,
    /// The greater, the newer.
    Rising,
    /// The times of the files contradict one another.
    Unclear,
}

impl Numbers {
    /// Compares numbers with times.
    fn of(files: &[&Sibling]) -> Self {
        // How many pairs have the smaller number on the newer file, and on the older one.
        let (mut modified, mut created) = ([0, 0], [0, 0]);
        for (at, one) in files.iter().enumerate() {
            for other in &files[at + 1..] {
                let (Some(Label::Number(a)), Some(Label::Number(b))) = (&one.label, &other.label)
                else {
                    continue;
                };
                let vote = |votes: &mut [u32; 2], times: Ordering| match a.cmp(b) {
                    Ordering::Equal => {}
                    _ if times == Ordering::Equal => {}
                    numbers => votes[usize::from(numbers == times)] += 1,
                };
                let (older, younger) = match one.modified <= other.modified {
                    true => (one, other),
                    false => (other, one),
                };
                // Compressed later than the other one was written, and not as old as its content.
                if older.is_compressed || !younger.is_compressed {
                    vote(&mut modified, one.modified.cmp(&other.modified));
                }
                if let Some((a, b)) = one.created.zip(other.created) {
                    vote(&mut created, a.cmp(&b));
                }
            }
        }
        match (modified, created) {
            ([_, 0], _) => Self::Falling,
            (_, [falling, 0]) if falling > 0 => Self::Falling,
            ([0, _], [0, rising]) if rising > 0 => Self::Rising,
            _ => Self::Unclear,
        }
    }
}

/// The files that had a name between one and the present one.
#[derive(Debug, Default)]
pub struct Between {
    /// Oldest first.
    pub files: Vec<Sibling>,
    /// Files that may be among them, or before.
    pub unordered: Vec<Sibling>,
}

impl Between {
    /// Those of these files that were rotated after `first`, by the number or time in their names,
    /// else by their times.
    pub fn after(first: &Sibling, siblings: &[Sibling]) -> Self {
        let labelled = siblings
            .iter()
            .filter(|file| file.is_labelled() && file.id != first.id);
        let numbers = Numbers::of(&labelled.clone().chain([first]).collect::<Vec<_>>());
        let mut between = Self::default();
        for file in labelled {
            match order(first, file, numbers) {
                Order::Before => between.files.push(file.clone()),
                Order::Unknown => between.unordered.push(file.clone()),
                Order::After => {}
            }
        }
        between.sort(numbers);
        between
    }

    /// Those of these files that were changed at this time or later.
    pub fn since(time: SystemTime, siblings: &[Sibling]) -> Self {
        let is_later = |file: &&Sibling| file.is_labelled() && file.modified >= time;
        Self::sorted(siblings.iter().filter(is_later).collect())
    }

    fn sorted(files: Vec<&Sibling>) -> Self {
        let numbers = Numbers::of(&files);
        let mut between = Self {
            files: files.into_iter().cloned().collect(),
            unordered: Vec::new(),
        };
        between.sort(numbers);
        between
    }

    fn sort(&mut self, numbers: Numbers) {
        let are_alike = |files: &[Sibling]| {
            let is_number = |file: &Sibling| matches!(file.label, Some(Label::Number(_)));
            files
                .windows(2)
                .all(|pair| is_number(&pair[0]) == is_number(&pair[1]))
        };
        let by_label = are_alike(&self.files);
        self.files.sort_by(|a, b| {
            let labels = match (&a.label, &b.label) {
                _ if !by_label => Ordering::Equal,
                (Some(Label::Number(a)), Some(Label::Number(b))) if numbers == Numbers::Rising => {
                    a.cmp(b)
                }
                (Some(Label::Number(a)), Some(Label::Number(b))) => b.cmp(a),
                (a, b) => a.cmp(b),
            };
            let times = || (a.modified, a.created, &a.path).cmp(&(b.modified, b.created, &b.path));
            labels.then_with(times)
        });
    }

    /// Those of these files that are none of those `before`.
    pub fn not_before(before: &RotatedBefore, siblings: &[Sibling], detection: Detection) -> Self {
        // What is wrong with a file is found when it is read.
        let is_new =
            |file: &&Sibling| file.is_labelled() && !before.has(file, detection).unwrap_or(false);
        Self::sorted(siblings.iter().filter(is_new).collect())
    }
}

/// Whether `first` was rotated before or after another file.
fn order(first: &Sibling, file: &Sibling, numbers: Numbers) -> Order {
    let by_label = match (&first.label, &file.label) {
        (Some(Label::Number(a)), Some(Label::Number(b))) => match numbers {
            Numbers::Rising => b.cmp(a),
            Numbers::Falling => a.cmp(b),
            // Only what both say.
            Numbers::Unclear if a == b => Ordering::Equal,
            Numbers::Unclear => {
                let falls = if b < a { Order::Before } else { Order::After };
                let agree = first.by_times(file) == falls;
                return if agree { falls } else { Order::Unknown };
            }
        },
        (Some(Label::Time(a)), Some(Label::Time(b))) => b.cmp(a),
        _ => Ordering::Equal,
    };
    match by_label {
        Ordering::Greater => Order::Before,
        Ordering::Less => Order::After,
        Ordering::Equal => first.by_times(file),
    }
}

/// The rotated files that are in a folder before a name in it is followed: they are not read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RotatedBefore(Vec<KnownFile>);

/// A rotated file, as it was then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct KnownFile {
    #[serde(flatten)]
    identity: InputIdentity,
    content: ContentSample,
}

impl KnownFile {
    fn of(sibling: &Sibling) -> Option<Self> {
        let file = sibling.open().ok()??;
        Some(Self {
            identity: OpenedFile::of(&file).ok()??.found.identity,
            content: ContentSample::of(&file, u64::MAX).ok()?,
        })
    }
}

impl RotatedBefore {
    /// Those of these files whose names have a number or a time.
    pub fn of(siblings: &[Sibling]) -> Self {
        let unread = |sibling: &Sibling| KnownFile {
            identity: sibling.identity_without_content(),
            content: ContentSample::default(),
        };
        let known = |sibling| KnownFile::of(sibling).unwrap_or_else(|| unread(sibling));
        let labelled = siblings.iter().filter(|sibling| sibling.is_labelled());
        Self(labelled.map(known).collect())
    }

    /// Whether a file is one of these, which may have another name by now, have grown, or be
    /// compressed.
    fn has(&self, sibling: &Sibling, detection: Detection) -> io::Result<bool> {
        // Known without its content: it could not be opened then.
        let unread = sibling.identity_without_content();
        if self.0.iter().any(|known| known.identity == unread) {
            return Ok(true);
        }
        let Some(file) = sibling.open()? else {
            return Ok(false);
        };
        let Some(opened) = OpenedFile::of(&file)? else {
            return Ok(false);
        };
        // A new file may get the number of a removed one.
        let is_it = |KnownFile { identity, .. }: &KnownFile| {
            let start = opened.start.get(..identity.start.bytes);
            identity.file.number() == sibling.id.number()
                && !identity.is_of_another_time(&opened.found.identity)
                && start.is_some_and(|start| Sample::of(start) == identity.start)
        };
        if self.0.iter().any(is_it) {
            return Ok(true);
        }
        if !sibling.is_compressed || detection == Detection::Off {
            return Ok(false);
        }
        // Of few bytes all of them: many files have the same first line.
        let start = sibling.plain_start(detection)?.unwrap_or_default();
        let start = Sample::of(&start);
        for known in self.0.iter().filter(|known| known.content.start == start) {
            if sibling.begins_with(&known.content, detection)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// A file whose content is at least that old: its numbers are seconds.
    fn sibling(name: &str, modified: u64, created: Option<u64>) -> Sibling {
        let time = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let path = PathBuf::from(name);
        let metadata = tempfile::tempfile().unwrap().metadata().unwrap();
        let file = Sibling::new(path, b"app.log", &metadata).unwrap().unwrap();
        Sibling {
            modified: time(modified),
            created: created.map(time),
            ..file
        }
    }

    /// Names of the files after the first of these, and of those that cannot be ordered.
    fn after(files: &[(&str, u64, Option<u64>)]) -> (Vec<String>, Vec<String>) {
        let named = |(name, modified, created): &(&str, u64, Option<u64>)| {
            sibling(name, *modified, *created)
        };
        let mut siblings: Vec<Sibling> = files.iter().map(named).collect();
        // Numbers of temporary files come again once they are removed.
        let ids: Vec<FileId> = (0..siblings.len())
            .map(|index| FileId::numbered(index as u64))
            .collect();
        for (sibling, id) in siblings.iter_mut().zip(ids) {
            sibling.id = id;
        }
        let between = Between::after(&siblings[0], &siblings);
        let names = |files: Vec<Sibling>| {
            let name = |file: Sibling| file.path.to_str().unwrap().to_owned();
            files.into_iter().map(name).collect::<Vec<_>>()
        };
        (names(between.files), names(between.unordered))
    }

    /// A long header that all files have is not enough.
    #[test]
    fn a_compressed_file_was_there_before_if_it_has_all_of_the_content() {
        use std::io::Write;

        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let content = |lines: &str| "h".repeat(2 * SAMPLE_BYTES) + lines;
        let siblings = || Sibling::all(&path("log")).unwrap();
        fs::write(path("log.1"), content("a\n")).unwrap();
        let before = RotatedBefore::of(&siblings());
        // It has grown since.
        for (name, lines) in [("log.2.gz", "a\nb\n"), ("log.1.gz", "b\na\n")] {
            let file = File::create(path(name)).unwrap();
            let mut encoder = flate2::write::GzEncoder::new(file, Default::default());
            encoder.write_all(content(lines).as_bytes()).unwrap();
            encoder.finish().unwrap();
        }
        fs::remove_file(path("log.1")).unwrap();
        let new = Between::not_before(&before, &siblings(), Detection::Text).files;
        let new: Vec<_> = new.into_iter().map(|file| file.path).collect();
        assert_eq!(new, [path("log.1.gz")]);
    }

    #[test]
    fn names_before_and_after_a_rotation_are_related() {
        for (one, other, expected) in [
            ("log", "log.1", true),
            ("log.1", "log.2", true),
            ("log.2.gz", "log.1", true),
            ("app.log", "app-20251125.log", true),
            ("app.log", "app-2025-11-25.log", true),
            ("log.2025-11-25.2", "log", true),
            ("log.2025-11-25.2", "log.2025-11-24.1.gz", true),
            ("app.1.log", "app.2.log.zst", true),
            ("a1", "a2", false),
            ("log", "log.old", false),
            ("one", "same", false),
        ] {
            assert_eq!(
                are_related(Path::new(one), Path::new(other)),
                expected,
                "{one} {other}"
            );
        }
    }

    #[test]
    fn rotated_files_are_ordered_by_their_names_and_then_by_their_times() {
        for (files, newer, unordered) in [
            // Numbers, as logrotate has them, also with equal times.
            (
                &[
                    ("app.log.3", 1, None),
                    ("app.log.1", 3, None),
                    ("app.log.2.gz", 2, None),
                    ("app.log.10", 0, None),
                ][..],
                &["app.log.2.gz", "app.log.1"][..],
                &[][..],
            ),
            (
                &[
                    ("app.log.3", 1, None),
                    ("app.log.1", 1, None),
                    ("app.log.2", 1, None),
                ],
                &["app.log.2", "app.log.1"],
                &[],
            ),
            // They rise.
            (
                &[
                    ("app.log.2", 2, Some(1)),
                    ("app.log.1", 1, Some(0)),
                    ("app.log.3", 3, Some(2)),
                ],
                &["app.log.3"],
                &[],
            ),
            // A late writer.
            (
                &[("app.log.2", 9, Some(1)), ("app.log.1", 5, Some(2))],
                &["app.log.1"],
                &[],
            ),
            (
                &[("app.log.2", 9, None), ("app.log.1", 5, None)],
                &[],
                &["app.log.1"],
            ),
            // One was compressed late, which says nothing of its content; several rise.
            (
                &[("app.log.2.gz", 9, None), ("app.log.1", 5, None)],
                &["app.log.1"],
                &[],
            ),
            (
                &[("app.log.1.gz", 5, None), ("app.log.2.gz", 9, None)],
                &[],
                &["app.log.2.gz"],
            ),
            // Times in the names, and a number behind them.
            (
                &[
                    ("app-20251124.log", 5, None),
                    ("app-20251126.log", 4, None),
                    ("app-20251125.log.gz", 3, None),
                    ("app-20251123.log", 9, None),
                ],
                &["app-20251125.log.gz", "app-20251126.log"],
                &[],
            ),
            (
                &[
                    ("app.log.2025-11-25.2", 1, None),
                    ("app.log.2025-11-25.1", 1, None),
                    ("app.log.2025-11-25.10", 1, None),
                ],
                &["app.log.2025-11-25.10"],
                &[],
            ),
            // Names that say nothing.
            (
                &[
                    ("old", 2, None),
                    ("app.log.1", 3, None),
                    ("app.log.2", 1, None),
                ],
                &["app.log.1"],
                &[],
            ),
            (
                &[("old", 2, None), ("app.log.1", 2, None)],
                &[],
                &["app.log.1"],
            ),
            (
                &[("old", 2, Some(2)), ("app.log.1", 2, Some(3))],
                &["app.log.1"],
                &[],
            ),
            // Others.
            (
                &[
                    ("app.log.1", 2, None),
                    ("app.log.lock", 3, None),
                    ("app.logs", 3, None),
                ],
                &[],
                &[],
            ),
        ] {
            let found = after(files);
            assert_eq!(found.0, newer, "{files:?}");
            assert_eq!(found.1, unordered, "{files:?}");
        }
    }
}
