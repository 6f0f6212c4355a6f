//! Long runs of `echoless packets --interface` in little time: many files, interfaces that come and
//! go, full disks, readers that stop, kills. `ECHOLESS_SOAK_ROUNDS=100` makes them long.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::network::{LiveRun, Network, captured, frames};
use crate::run::{Folder, echoless, send};

/// The rounds of a test.
fn rounds() -> usize {
    let rounds = std::env::var("ECHOLESS_SOAK_ROUNDS");
    rounds.map_or(3, |rounds| rounds.parse().unwrap())
}

/// The packets of a whole file.
const OF_FILE: usize = 500;

/// A network, a folder, the capture that is sent there, its path and options that keep all of it.
struct Feed {
    network: Network,
    folder: Folder,
    frames: Vec<Vec<u8>>,
    sent: String,
}

const ALL: &str = "--window-packets 1 --from link --ignore none";

impl Feed {
    fn new(packets: usize, tools: &[&str]) -> Option<Self> {
        let network = Network::new(&["a0-a1"], &[&["tcpreplay"], tools].concat())?;
        let folder = Folder::new();
        let file = echoless(format!("gen packets -n {packets} --frame-bytes 300"), b"").bytes();
        folder.write("sent", &file);
        Some(Self {
            network,
            frames: frames(&file),
            sent: folder.path("sent").display().to_string(),
            folder,
        })
    }

    /// The ways to capture that its system has.
    fn methods(&self) -> &'static [&'static str] {
        match self.network.has_xdp() {
            true => &["af-packet", "af-xdp"],
            false => &["af-packet"],
        }
    }

    fn replay(&self) {
        self.network.replay("a0", &self.sent);
    }

    /// The path of a rotated file.
    fn file(&self, number: usize) -> PathBuf {
        self.folder.path(&format!("out_{number:05}.pcapng"))
    }

    /// Options of a run that writes such files.
    fn rotating(&self) -> String {
        let output = self.folder.path("out.pcapng");
        format!(
            "--interface a1 {ALL} --rotate {OF_FILE} -o {}",
            output.display()
        )
    }

    /// Waits until a file is there, which has bytes.
    #[track_caller]
    fn await_file(&self, path: &Path, run: &mut Child) {
        assert!(is_written(path, run), "{}", path.display());
    }

    /// The numbers of the rotated files that are whole, and the number of those that are not.
    fn files(&self) -> (Vec<usize>, usize) {
        let entries = fs::read_dir(self.folder.path("")).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let (mut whole, mut parts) = (Vec::new(), 0);
        for name in names.filter(|name| name.starts_with("out_")) {
            match name.strip_suffix(".pcapng") {
                Some(number) => whole.push(number["out_".len()..].parse().unwrap()),
                None => parts += 1,
            }
        }
        whole.sort_unstable();
        (whole, parts)
    }
}

/// Waits until a file has bytes. Returns whether it has before the run ends.
fn is_written(path: &Path, run: &mut Child) -> bool {
    while !path.metadata().is_ok_and(|file| file.len() > 0) {
        if run.try_wait().unwrap().is_some() {
            return false;
        }
        thread::sleep(Duration::from_millis(2));
    }
    true
}

/// The memory that a process has now, in KiB.
fn memory(process: &Child) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", process.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.unwrap().trim().strip_suffix(" kB").unwrap();
    number.trim().parse().unwrap()
}

#[test]
fn files_are_exact_and_memory_is_flat_while_an_interface_comes_and_goes() {
    // Whole files: the last of a round is complete with the first packet of the next one.
    let Some(feed) = Feed::new(20 * OF_FILE, &[]) else {
        return;
    };
    for method in feed.methods() {
        let stats = feed.folder.path("stats").display().to_string();
        let most = 2 + rounds() / 10;
        let live = format!("--wait-interface --keep 20 --stats {stats} --duration {most}m");
        let live = format!("--capture {method} {live}");
        let args = format!("{} {live}", feed.rotating());
        let begin = feed.files().0.last().map_or(1, |last| last + 1);
        let part = format!("out_{begin:05}.pcapng.part");
        let mut run = feed.network.packets("", &args).spawn().unwrap();
        feed.await_file(&feed.folder.path(&part), &mut run);
        let mut run = LiveRun::of(run);
        let mut first_memory = None;
        for round in 0..rounds() {
            let first = begin + round * 20;
            feed.replay();
            feed.await_file(&feed.file(first + 18), &mut run.child);
            // All but the last file, of which the last packet shows that it is full.
            let whole = (first..first + 19).map(|number| fs::read(feed.file(number)).unwrap());
            let held: Vec<_> = whole.map(|file| frames(&file)).collect();
            assert!(held.iter().all(|file| file.len() == OF_FILE));
            assert!(
                feed.frames[..19 * OF_FILE] == held.concat(),
                "{method} {round}"
            );
            let memory = memory(&run.child);
            let first_memory = *first_memory.get_or_insert(memory);
            assert!(
                memory < first_memory + (8 << 10),
                "{method} {round}: {first_memory} KiB, then {memory}"
            );
            feed.network.sh("ip link del a1");
            run.await_message("a1: was removed, and is captured again once it is there");
            feed.network.add("a0-a1");
            run.await_message("a1: is there again, and captured");
        }
        send(&run.child, "-TERM");
        let (code, _, messages) = run.end();
        assert_eq!(code, Some(143), "{method}: {messages}");
        let all = rounds() * 20 * OF_FILE;
        let stats = feed.folder.json("stats");
        let of_interface = &stats["captured"][0];
        assert_eq!(
            (&stats["records"], &stats["dropped"]),
            (&all.into(), &0.into()),
            "{messages}"
        );
        assert_eq!(of_interface["reopened"], rounds());
        // Those of the last round, all of them whole.
        let (whole, parts) = feed.files();
        let last = begin + rounds() * 20;
        let of_run = whole.iter().copied().filter(|it| *it >= begin);
        assert!(of_run.eq(last - 20..last), "{whole:?}");
        assert_eq!(parts, 0);
    }
}

#[test]
fn kills_leave_whole_files_and_parts() {
    let Some(feed) = Feed::new(20 * OF_FILE, &[]) else {
        return;
    };
    let (mut next, mut parts_before) = (1, 0);
    for round in 0..rounds() {
        let mut run = feed.network.packets("", &feed.rotating()).spawn().unwrap();
        let part = format!("out_{next:05}.pcapng.part");
        feed.await_file(&feed.folder.path(&part), &mut run);
        let done = feed.folder.path(&format!("done_{round}"));
        let (sent, done) = (&feed.sent, done.display());
        let replay = format!("tcpreplay -q --pps 20000 -i a0 {sent}; echo > {done}");
        feed.network.sh(&format!("( {replay} ) > /dev/null 2>&1 &"));
        // While packets come.
        feed.await_file(&feed.file(next + round * 5 % 17), &mut run);
        run.kill().unwrap();
        run.wait().unwrap();
        let (whole, parts) = feed.files();
        // That which is written, and at most two before it that come to the disk.
        let new_parts = parts - parts_before;
        assert!((1..=3).contains(&new_parts), "{new_parts}");
        let of_run: Vec<_> = whole.into_iter().filter(|number| *number >= next).collect();
        let expected = next..next + of_run.len();
        assert!(of_run.iter().copied().eq(expected), "{of_run:?}");
        let files = of_run
            .iter()
            .map(|number| fs::read(feed.file(*number)).unwrap());
        let held: Vec<_> = files.map(|file| frames(&file)).collect();
        assert!(held.iter().all(|file| file.len() == OF_FILE));
        assert!(feed.frames.starts_with(&held.concat()));
        // Numbers are never reused, not even those of parts.
        next += of_run.len() + new_parts;
        parts_before = parts;
        let wait = format!("timeout 60 sh -c 'while ! [ -s {done} ]; do sleep 0.01; done'");
        feed.network.sh(&wait);
    }
}

#[test]
fn a_full_disk_ends_a_run_behind_whole_files() {
    let Some(feed) = Feed::new(20 * OF_FILE, &["mount"]) else {
        return;
    };
    for method in feed.methods() {
        let [disk, copy] = ["disk", method].map(|name| feed.folder.path(name));
        fs::create_dir_all(&disk).unwrap();
        // The mount ends with its namespace, so the files are copied out of it.
        let script = format!(
            "mount -t tmpfs -o size=1m none {disk} || exit 9\n\"$@\"\ncode=$?\n\
             cp -r {disk} {copy}\nexit $code\n",
            disk = disk.display(),
            copy = copy.display()
        );
        feed.folder.write("script", script);
        let before = format!(
            "unshare --mount sh {}",
            feed.folder.path("script").display()
        );
        let output = disk.join("out.pcapng");
        let args = format!("--interface a1 --capture {method} {ALL} --rotate {OF_FILE}");
        let mut run = feed
            .network
            .packets(&before, &format!("{args} -o {}", output.display()));
        let mut run = LiveRun::of(run.spawn().unwrap());
        // The files as the process sees them.
        let root = format!("/proc/{}/root", run.child.id());
        let part = format!("{root}{}/out_00001.pcapng.part", disk.display());
        if !is_written(Path::new(&part), &mut run.child) {
            let (code, _, messages) = run.end();
            assert_eq!(code, Some(9), "{messages}");
            eprintln!("skipped: no right to mount: {messages}");
            return;
        }
        feed.replay();
        let (code, _, messages) = run.end();
        assert_eq!(code, Some(2), "{messages}");
        assert!(
            messages.contains(".pcapng.part: No space left on device"),
            "{messages}"
        );
        let mut whole: Vec<_> = fs::read_dir(&copy)
            .unwrap()
            .map(|it| it.unwrap().path())
            .collect();
        whole.sort();
        let part = whole.pop().unwrap();
        let is_part = part.extension().is_some_and(|it| it == "part");
        assert!(is_part, "{whole:?}, {part:?}");
        let held: Vec<_> = whole
            .iter()
            .map(|file| frames(&fs::read(file).unwrap()))
            .collect();
        assert!(held.len() > 3 && held.iter().all(|file| file.len() == OF_FILE));
        assert!(feed.frames.starts_with(&held.concat()));
    }
}

#[test]
fn a_reader_that_stops_costs_packets_that_are_counted() {
    let Some(feed) = Feed::new(20 * OF_FILE, &[]) else {
        return;
    };
    let stats = feed.folder.path("stats").display().to_string();
    for method in feed.methods() {
        let args =
            format!("--interface a1 --capture {method} --buffer 256KiB {ALL} --stats {stats}");
        let run = LiveRun::start(feed.network.packets("", &args));
        // More than its buffers, the pipe and the ring have room for.
        for _ in 0..rounds() {
            feed.replay();
        }
        send(&run.child, "-TERM");
        // Only now is the output read.
        let (code, output, messages) = run.end();
        assert_eq!(code, Some(143), "{messages}");
        let stats: Value = feed.folder.json("stats");
        let count = |name: &str| stats[name].as_u64().unwrap() as usize;
        let (read, dropped) = (count("records"), count("dropped"));
        assert_eq!(read + dropped, rounds() * feed.frames.len(), "{stats}");
        assert!(
            dropped > 0 && messages.contains("lost before they were read"),
            "{messages}"
        );
        // The captured packets are whole and in order.
        let (found, statistics) = captured(&output);
        assert_eq!((found.len(), statistics), (count("fresh"), 1));
        let mut sent = (0..rounds()).flat_map(|_| &feed.frames);
        assert!(
            found
                .iter()
                .all(|packet| sent.any(|frame| *frame == packet.bytes))
        );
    }
}
