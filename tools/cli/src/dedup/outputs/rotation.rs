//! `--rotate`: a live capture in files one after the other, each a whole pcapng file.
//!
//! `-o clean.pcapng` names `clean_00001.pcapng`, `clean_00002.pcapng` and so on, behind those that
//! are there. The file that is written has `.part` behind its name, so a reader never finds half of
//! one, and gets its name once it is on the disk: a thread waits for that, as packets do not. Each
//! begins with the header of the section and its interfaces.
//!
//! Nothing that is there is replaced: where a name is taken, the next free number is used. Only files
//! that the run has written are removed.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind};
use std::iter;
use std::mem;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use echoless_packets::framing::block_type::{ENHANCED_PACKET, INTERFACE, SECTION};
use echoless_records::failure::{self, Failure, graver, lock};
use echoless_records::files::{FileBirth, FileId, Opened, Target, Targets, folder_of};
use same_file::is_same_file;

use super::lines::Lines;
use super::sink::Sink;

/// What a file may hold. One with a single packet may hold more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MostOfFile {
    Bytes(u64),
    /// The time from its first packet on.
    Nanoseconds(u64),
    Packets(u64),
}

/// How long after its time a packet is written at the latest, in nanoseconds: where several
/// interfaces are merged, it waits for others.
const LATEST: u64 = 500_000_000;

/// Where the files are, and the number of the next one.
#[derive(Debug, Clone)]
pub(crate) struct RotatedFiles {
    most: MostOfFile,
    /// The number of whole files of the run that stay.
    keep: usize,
    folder: PathBuf,
    stem: String,
    /// With its dot, if the name has one.
    extension: String,
    number: u64,
}

impl RotatedFiles {
    /// The files of a name, behind those that are there. `keep` whole ones of the run stay.
    pub(crate) fn find(path: &Path, most: MostOfFile, keep: usize) -> Result<Self, Failure> {
        let name = path.file_name().and_then(OsStr::to_str).map(Path::new);
        let name = name.ok_or_else(|| Failure::option("--rotate", "-o FILE in UTF-8"))?;
        let text = |part: &OsStr| part.to_string_lossy().into_owned();
        let extension = name
            .extension()
            .map_or(String::new(), |it| format!(".{}", text(it)));
        let mut files = Self {
            most,
            keep,
            folder: folder_of(path).to_owned(),
            stem: name.file_stem().map_or(String::new(), text),
            extension,
            number: 1,
        };
        let names = fs::read_dir(&files.folder);
        let names = names.map_err(Failure::file(files.folder.display().to_string()))?;
        for name in names.flatten().map(|entry| entry.file_name()) {
            if let Some(number) = files.number_of(&name).filter(|it| *it >= files.number) {
                files.number = number;
                files.advance()?;
            }
        }
        Ok(files)
    }

    /// The number in a name that this makes: with 5 digits or more.
    fn number_of(&self, name: &OsStr) -> Option<u64> {
        let name = name.to_str()?;
        let both = [Some(name), name.strip_suffix(".part")];
        both.into_iter().flatten().find_map(|name| {
            let number = name.strip_prefix(&self.stem)?.strip_prefix('_')?;
            let number = number.strip_suffix(&self.extension)?.parse().ok()?;
            (self.name(number) == name).then_some(number)
        })
    }

    /// Rejects another output of the run that has a name of these files.
    fn check_other(&self, other: &Target) -> Result<(), Failure> {
        let has_name = |path: &&Path| {
            let number = path.file_name().and_then(|name| self.number_of(name));
            number.is_some() && is_same_file(folder_of(path), &self.folder).unwrap_or(false)
        };
        match other.path().filter(has_name) {
            None => Ok(()),
            Some(_) => Err(Failure::SameFile {
                name: other.name(),
                other: "a file of --rotate".into(),
            }),
        }
    }

    fn name(&self, number: u64) -> String {
        format!("{}_{number:05}{}", self.stem, self.extension)
    }

    /// The path of the file while it is written.
    fn part(&self) -> PathBuf {
        self.folder.join(self.name(self.number) + ".part")
    }

    fn advance(&mut self) -> Result<(), Failure> {
        let none = || Failure::option("--rotate", "an -o FILE whose last number is not taken");
        self.number = self.number.checked_add(1).ok_or_else(none)?;
        Ok(())
    }

    /// Creates a file under the first number that nothing has.
    fn create(&mut self, targets: &mut Targets) -> Result<Opened, Failure> {
        loop {
            match targets.create(self.part()) {
                Err(Failure::File { source, .. }) if source.kind() == ErrorKind::AlreadyExists => {
                    self.advance()?;
                }
                created => return created,
            }
        }
    }
}

/// The whole files of the run.
#[derive(Debug, Default)]
struct WholeFiles {
    /// Those that stay, the oldest first.
    kept: VecDeque<(PathBuf, Option<Identity>)>,
    /// Above the number of the last one.
    number: u64,
    has_warned: bool,
}

/// Which regular file it is: no other one has all of these.
type Identity = (FileId, Option<FileBirth>);

fn identity(file: &Metadata) -> Option<Identity> {
    Some((FileId::of(file)?, FileBirth::of(file)))
}

impl WholeFiles {
    /// Gives a file that is closed its name once it is on the disk, and removes the oldest ones.
    fn add(&mut self, mut files: RotatedFiles, file: &File) -> Result<(), Failure> {
        let part = files.part();
        let failed = || Failure::file(part.display().to_string());
        file.sync_data().map_err(failed())?;
        let metadata = file.metadata().map_err(failed())?;
        files.number = files.number.max(self.number);
        let path = loop {
            let path = files.folder.join(files.name(files.number));
            match rename_to_free(&part, &path) {
                Ok(()) => break path,
                Err(error) if error.kind() == ErrorKind::AlreadyExists => files.advance()?,
                Err(error) => return Err(failed()(error)),
            }
        };
        self.number = files.number.saturating_add(1);
        self.kept.push_back((path, identity(&metadata)));
        while self.kept.len() > files.keep
            && let Some((path, identity)) = self.kept.pop_front()
        {
            self.remove(&path, identity);
        }
        Ok(())
    }

    /// Removes a file, unless another one has its name by now.
    fn remove(&mut self, path: &Path, written: Option<Identity>) {
        let found = fs::symlink_metadata(path).map(|found| identity(&found));
        let is_ours = found.is_ok_and(|found| found.is_some() && found == written);
        if is_ours
            && let Err(error) = fs::remove_file(path)
            && !self.has_warned
        {
            self.has_warned = true;
            let path = path.display();
            failure::warn(&format!("{path}: stays, in spite of --keep: {error}"));
        }
    }
}

/// Gives a file another name, which nothing may have yet.
fn rename_to_free(from: &Path, to: &Path) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        use rustix::io::Errno;

        match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
            // A file system that cannot.
            Err(Errno::INVAL | Errno::NOSYS) => {}
            renamed => return Ok(renamed?),
        }
    }
    fs::hard_link(from, to)?;
    fs::remove_file(from)
}

/// The files of an output, and what the current one holds.
#[derive(Debug)]
pub(super) struct Rotation {
    files: RotatedFiles,
    /// The header of the section and its interfaces.
    head: Lines,
    /// Whether the file that is written has both, so that it is a capture.
    has_head: bool,
    bytes: u64,
    packets: u64,
    /// The time of its first packet.
    begins: u64,
    whole: Arc<Mutex<WholeFiles>>,
    /// The thread that adds one to them.
    adds: Option<JoinHandle<Result<(), Failure>>>,
}

impl Rotation {
    /// Files of which none is written yet. The other outputs of the run are no files of these.
    pub(super) fn new<'a>(
        files: &RotatedFiles,
        mut others: impl Iterator<Item = &'a Target>,
    ) -> Result<Self, Failure> {
        others.try_for_each(|other| files.check_other(other))?;
        Ok(Self {
            files: files.clone(),
            head: Lines::default(),
            has_head: false,
            bytes: 0,
            packets: 0,
            begins: 0,
            whole: Arc::default(),
            adds: None,
        })
    }

    /// Creates the first file.
    pub(super) fn create(&mut self, targets: &mut Targets) -> Result<Opened, Failure> {
        self.files.create(targets)
    }

    /// Writes blocks in the byte order of this machine.
    pub(super) fn write(&mut self, sink: &mut Sink, blocks: &Lines) -> Result<(), Failure> {
        let written = self.try_write(sink, blocks);
        // A file that lacks some of them is not whole.
        self.has_head &= written.is_ok();
        written
    }

    fn try_write(&mut self, sink: &mut Sink, blocks: &Lines) -> Result<(), Failure> {
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
            // Other blocks, such as statistics, are no reason for a file.
            if is_packet && self.is_full(*length, time) {
                let lengths = &blocks.lengths[start..number];
                sink.write_blocks(&blocks.bytes[start_bytes..at], lengths)?;
                (start, start_bytes, self.has_head) = (number, at, true);
                self.begin_next(sink)?;
            }
            if is_packet && self.packets == 0 {
                self.begins = time;
            }
            self.bytes += length;
            self.packets += u64::from(is_packet);
            at += *length as usize;
        }
        sink.write_blocks(&blocks.bytes[start_bytes..], &blocks.lengths[start..])?;
        self.has_head |= self.head.lengths.len() > 1;
        Ok(())
    }

    /// Whether the file has no place for a packet of this time, whose block has so many bytes.
    fn is_full(&self, length: u64, time: u64) -> bool {
        self.packets > 0
            && match self.files.most {
                MostOfFile::Bytes(most) => self.bytes + length > most,
                MostOfFile::Packets(most) => self.packets >= most,
                MostOfFile::Nanoseconds(most) => time.saturating_sub(self.begins) >= most,
            }
    }

    /// Whether a file is over at a time, also if nothing comes.
    pub(super) const fn is_by_time(&self) -> bool {
        matches!(self.files.most, MostOfFile::Nanoseconds(_))
    }

    /// Begins the next file if the one that is written is over at this time of the system, in
    /// nanoseconds since 1970, and had time for packets that wait for others.
    pub(super) fn pass_time(&mut self, sink: &mut Sink, now: u64) -> Result<(), Failure> {
        match self.is_by_time() && self.is_full(0, now.saturating_sub(LATEST)) {
            true => self.begin_next(sink),
            false => Ok(()),
        }
    }

    fn begin_next(&mut self, sink: &mut Sink) -> Result<(), Failure> {
        let closed = self.close(sink)?;
        self.files.advance()?;
        let mut targets = Targets::new(iter::empty());
        let next = self.files.create(&mut targets);
        self.complete(closed)?;
        sink.replace(next?);
        sink.write_blocks(&self.head.bytes, &self.head.lengths)?;
        targets.keep();
        self.has_head = true;
        self.bytes = self.head.bytes.len() as u64;
        self.packets = 0;
        Ok(())
    }

    /// Closes the file that is written. Returns it, unless there is none that is a capture.
    fn close(&mut self, sink: &mut Sink) -> Result<Option<(RotatedFiles, File)>, Failure> {
        if !mem::take(&mut self.has_head) {
            return Ok(None);
        }
        let file = sink.target.file.durable();
        let file = file.map_err(Failure::file(sink.target.name.as_str()))?;
        sink.close()?;
        Ok(file.map(|file| (self.files.clone(), file)))
    }

    /// Gives a closed file its name, behind the one before: on a thread, because packets would be
    /// lost while the disk is written.
    fn complete(&mut self, closed: Option<(RotatedFiles, File)>) -> Result<(), Failure> {
        self.wait()?;
        if let Some((files, file)) = closed {
            let whole = Arc::clone(&self.whole);
            let add = thread::Builder::new().name("echoless-rotate".into());
            let add = add.spawn(move || lock(&whole).add(files, &file));
            self.adds = Some(add.map_err(Failure::file("a thread"))?);
        }
        Ok(())
    }

    /// Waits until the file before has its name.
    fn wait(&mut self) -> Result<(), Failure> {
        let adds = self.adds.take().map(JoinHandle::join);
        adds.map_or(Ok(()), |added| {
            added.unwrap_or_else(|panic| resume_unwind(panic))
        })
    }

    /// Closes the last file and gives it its name.
    pub(super) fn end(&mut self, sink: &mut Sink) -> Result<(), Failure> {
        let closed = self.close(sink);
        let completed = closed.and_then(|closed| self.complete(closed));
        graver(completed, self.wait())
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::os::unix::fs::symlink;

    use echoless_packets::framing::block_type::STATISTICS;
    use tempfile::TempDir;

    use super::*;

    struct Run {
        rotation: Rotation,
        sink: Sink,
    }

    impl Run {
        fn begin(files: &RotatedFiles) -> Self {
            let mut rotation = Rotation::new(files, iter::empty()).unwrap();
            let mut targets = Targets::new(iter::empty());
            let sink = Sink::main(rotation.create(&mut targets).unwrap(), None);
            targets.keep();
            Self { rotation, sink }
        }

        fn write(&mut self, kind: u32, time: u32) {
            let words = [kind, 32, 0, 0, time, 0, 0, 32];
            let mut blocks = Lines::default();
            blocks.bytes.extend(words.map(u32::to_ne_bytes).concat());
            blocks.lengths.push(32);
            self.rotation.write(&mut self.sink, &blocks).unwrap();
        }

        fn write_head(&mut self) {
            self.write(SECTION, 0);
            self.write(INTERFACE, 0);
        }

        fn end(mut self) {
            self.rotation.end(&mut self.sink).unwrap();
        }
    }

    fn files(folder: &TempDir, most: MostOfFile, keep: usize) -> RotatedFiles {
        RotatedFiles::find(&folder.path().join("out.pcapng"), most, keep).unwrap()
    }

    /// The names in a folder.
    fn names(folder: &TempDir) -> Vec<String> {
        let names = fs::read_dir(folder.path()).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.collect();
        names.sort();
        names
    }

    /// The types and times of the blocks of a file.
    fn blocks(folder: &TempDir, name: &str) -> Vec<(u32, u32)> {
        let bytes = fs::read(folder.path().join(name)).unwrap();
        let word = |block: &[u8], at| u32::from_ne_bytes(*block[at..].first_chunk().unwrap());
        let blocks = bytes.chunks_exact(32);
        blocks
            .map(|block| (word(block, 0), word(block, 16)))
            .collect()
    }

    #[test]
    fn only_files_of_the_run_are_removed() {
        let folder = TempDir::new().unwrap();
        let earlier = [
            "out_00001.pcapng",
            "out_00002.pcapng",
            "out_5000000000.pcapng",
        ];
        for name in earlier {
            fs::write(folder.path().join(name), "earlier").unwrap();
        }
        let mut run = Run::begin(&files(&folder, MostOfFile::Packets(1), 2));
        run.write_head();
        for time in 1..=6 {
            run.write(ENHANCED_PACKET, time);
            if time == 2 {
                run.rotation.wait().unwrap();
                // Another program's, in the place of one of these.
                let [path, other] =
                    ["out_5000000001.pcapng", "other"].map(|it| folder.path().join(it));
                assert!(path.exists());
                fs::write(&other, "other").unwrap();
                fs::rename(other, path).unwrap();
            }
        }
        run.end();
        let own = ["out_5000000005.pcapng", "out_5000000006.pcapng"];
        let other = ["out_5000000001.pcapng"];
        assert_eq!(names(&folder), [&earlier[..], &other, &own].concat());
        let head = [(SECTION, 0), (INTERFACE, 0)];
        for (name, time) in own.iter().zip([5, 6]) {
            let expected = [&head[..], &[(ENHANCED_PACKET, time)]].concat();
            assert_eq!(blocks(&folder, name), expected);
        }
    }

    #[test]
    fn a_file_is_over_at_its_time_also_if_nothing_comes() {
        let folder = TempDir::new().unwrap();
        let mut run = Run::begin(&files(&folder, MostOfFile::Nanoseconds(10), 9));
        run.write_head();
        let at = |run: &mut Run, now| run.rotation.pass_time(&mut run.sink, now).unwrap();
        // No packet has begun it.
        at(&mut run, u64::MAX);
        run.write(ENHANCED_PACKET, 100);
        at(&mut run, 109 + LATEST);
        assert_eq!(names(&folder), ["out_00001.pcapng.part"]);
        for _ in 0..2 {
            at(&mut run, 110 + LATEST);
            run.rotation.wait().unwrap();
            assert_eq!(
                names(&folder),
                ["out_00001.pcapng", "out_00002.pcapng.part"]
            );
        }
        run.write(ENHANCED_PACKET, 109);
        run.end();
        let head = [(SECTION, 0), (INTERFACE, 0)];
        for (name, time) in ["out_00001.pcapng", "out_00002.pcapng"]
            .iter()
            .zip([100, 109])
        {
            let expected = [&head[..], &[(ENHANCED_PACKET, time)]].concat();
            assert_eq!(blocks(&folder, name), expected);
        }
    }

    #[test]
    fn a_file_that_cannot_be_removed_stays() {
        let folder = TempDir::new().unwrap();
        let files = files(&folder, MostOfFile::Packets(1), 1);
        let mut whole = WholeFiles::default();
        // Nobody removes it.
        let path = Path::new("/proc/self/status");
        let found = identity(&fs::symlink_metadata(path).unwrap());
        whole.kept.push_back((path.into(), found));
        let file = File::create(files.part()).unwrap();
        whole.add(files, &file).unwrap();
        assert!(whole.has_warned);
        assert_eq!(names(&folder), ["out_00001.pcapng"]);
    }

    #[test]
    fn a_file_has_its_name_once_it_is_on_the_disk() {
        let folder = TempDir::new().unwrap();
        let files = files(&folder, MostOfFile::Packets(1), 1);
        fs::write(files.part(), "").unwrap();
        // Cannot be synced.
        let file = File::open("/dev/null").unwrap();
        assert!(WholeFiles::default().add(files, &file).is_err());
        assert_eq!(names(&folder), ["out_00001.pcapng.part"]);
    }

    #[test]
    fn runs_at_once_share_no_file() {
        let folder = TempDir::new().unwrap();
        let files = files(&folder, MostOfFile::Packets(1), 100);
        let mut runs = [Run::begin(&files), Run::begin(&files)];
        runs.iter_mut().for_each(Run::write_head);
        for time in 0..10 {
            for (of, run) in (0..).zip(&mut runs) {
                run.write(ENHANCED_PACKET, 100 * of + time);
            }
        }
        runs.into_iter().for_each(Run::end);
        let held = names(&folder).into_iter().map(|name| {
            let blocks = blocks(&folder, &name);
            assert_eq!(blocks[..2], [(SECTION, 0), (INTERFACE, 0)]);
            assert_eq!(blocks.len(), 3);
            blocks[2].1
        });
        let mut held: Vec<u32> = held.collect();
        held.sort_unstable();
        assert!(held.into_iter().eq((0..10).chain(100..110)));
    }

    #[test]
    fn what_is_there_is_left_alone() {
        let folder = TempDir::new().unwrap();
        let path = |name: &str| folder.path().join(name);
        let files = files(&folder, MostOfFile::Packets(1), 1);
        fs::write(path("victim"), "theirs").unwrap();
        symlink("victim", path("out_00001.pcapng.part")).unwrap();
        symlink("nothing", path("out_00002.pcapng.part")).unwrap();
        let mut run = Run::begin(&files);
        run.write_head();
        run.write(ENHANCED_PACKET, 7);
        // While that is in number 3.
        fs::write(path("out_00003.pcapng"), "theirs").unwrap();
        symlink("nothing", path("out_00004.pcapng")).unwrap();
        fs::create_dir(path("out_00005.pcapng")).unwrap();
        run.end();
        for name in ["victim", "out_00003.pcapng"] {
            assert_eq!(fs::read(path(name)).unwrap(), b"theirs");
        }
        assert!(!path("nothing").exists());
        assert_eq!(blocks(&folder, "out_00006.pcapng")[2], (ENHANCED_PACKET, 7));
        let other = Target::File(path("out_00009.pcapng.part"));
        let error = Rotation::new(&files, iter::once(&other)).unwrap_err();
        assert!(
            error.to_string().ends_with("is also a file of --rotate"),
            "{error}"
        );
        let other = Target::File(path("out_9.pcapng"));
        assert!(Rotation::new(&files, iter::once(&other)).is_ok());
    }

    #[test]
    fn only_a_capture_gets_a_name_and_only_a_packet_begins_one() {
        let folder = TempDir::new().unwrap();
        let files = files(&folder, MostOfFile::Bytes(100), 1);
        let mut run = Run::begin(&files);
        run.write(SECTION, 0);
        run.end();
        assert_eq!(names(&folder), ["out_00001.pcapng.part"]);
        let mut run = Run::begin(&files);
        run.write_head();
        run.write(ENHANCED_PACKET, 1);
        run.write(STATISTICS, 0);
        run.end();
        assert_eq!(
            names(&folder),
            ["out_00001.pcapng.part", "out_00002.pcapng"]
        );
        assert_eq!(blocks(&folder, "out_00002.pcapng")[3], (STATISTICS, 0));
    }
}
