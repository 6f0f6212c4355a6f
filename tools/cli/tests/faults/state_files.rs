//! Inputs of a state that are appended to, rotated, copied, edited, replaced and truncated between
//! runs, which are killed at any call, in a folder that moves to another device: at the end of a
//! run, every line that was written to an input was judged once, and the first of each is in the
//! output.
//!
//! `ECHOLESS_STEPS` is the number of steps, `ECHOLESS_SEED` that of the first case, and
//! `ECHOLESS_OTHER` a folder on another file system than that of `TMPDIR`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use super::Faults;

/// The number of steps without `ECHOLESS_STEPS`.
const STEPS: u64 = 300;

/// The steps with one state.
const STEPS_OF_A_CASE: u64 = 40;

/// How often a test looks at an output before it gives up: some minutes.
const LOOKS: usize = 6000;

/// Numbers that depend on the seed alone.
struct Draw(u64);

impl Draw {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % bound
    }

    /// True once in so many times.
    fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }
}

/// The folder of a case, and what its runs must have read.
struct Case {
    draw: Draw,
    folder: PathBuf,
    /// Where the folder moves to, and back.
    other: PathBuf,
    /// Where the outputs are, which stay where they are.
    outputs: PathBuf,
    shim: PathBuf,
    follows: bool,
    /// How often each line was written to an input.
    written: BTreeMap<String, u64>,
    lines: u64,
    rotations: u64,
    /// Half a line at the end of the log.
    half: Option<String>,
    done: Vec<String>,
}

impl Case {
    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    fn output(&self, name: &str) -> String {
        fs::read_to_string(self.outputs.join(name)).unwrap_or_default()
    }

    fn append(&self, name: &str, text: &str) {
        let mut options = OpenOptions::new();
        let file = options.append(true).create(true).open(self.path(name));
        file.unwrap().write_all(text.as_bytes()).unwrap();
    }

    fn rename(&self, from: &str, to: &str) {
        fs::rename(self.path(from), self.path(to)).unwrap();
    }

    /// Some lines, of which the first is new: a file that has the content of another one is that
    /// file. A third of the others are old.
    fn new_lines(&mut self) -> String {
        let mut text = self.new_line(false);
        for _ in 0..self.draw.below(8) {
            let may_be_old = self.draw.once_in(3);
            text += &self.new_line(may_be_old);
        }
        text
    }

    fn new_line(&mut self, may_be_old: bool) -> String {
        let number = if may_be_old {
            self.draw.below(self.lines)
        } else {
            self.lines += 1;
            self.lines - 1
        };
        let line = format!("line {number:0width$}\n", width = (number % 90) as usize);
        *self.written.entry(line.clone()).or_default() += 1;
        line
    }

    /// The log and the files that it was, oldest first.
    fn logs(&self) -> Vec<String> {
        let rotated = (1..=self.rotations).rev();
        let names = rotated.map(|number| format!("log.{number}"));
        let names = names.filter(|name| self.path(name).exists());
        names.chain(["log".to_owned()]).collect()
    }

    fn command(&self, fault: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_echoless"));
        command
            .env_remove("ECHOLESS_OPTS")
            .current_dir(&self.folder);
        command.args(["dedup", "-q", "-m", "1MiB", "--state", "state"]);
        command.arg("-o").arg(self.outputs.join("out"));
        command.arg("--duplicates").arg(self.outputs.join("dup"));
        command.args(["--threads", "1", "--read-bytes", "64"]);
        if self.lines.is_multiple_of(2) {
            command.args(["--commit-interval", "0s"]);
        }
        if self.follows {
            command.args(["--follow", "log"]);
        } else {
            command.args(self.logs()).arg("one").arg("same");
        }
        if !fault.is_empty() {
            command.env("LD_PRELOAD", &self.shim).env("FAULT", fault);
        }
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        command
    }

    /// A run that is killed in front of some call, or goes on to its end.
    fn run_in_part(&mut self) {
        let fault = format!("any:{}:kill", 1 + self.draw.below(220));
        let mut child = self.command(&fault).spawn().unwrap();
        if self.follows {
            thread::sleep(Duration::from_millis(self.draw.below(150)));
            let _ = child.kill();
        }
        let output = child.wait_with_output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(
            matches!(output.status.code(), None | Some(0)),
            "{told}{}",
            self.told()
        );
    }

    /// A run to the end of what was written.
    fn run(&mut self) {
        let mut child = self.command("").spawn().unwrap();
        if self.follows {
            self.wait_for_all(&mut child);
            let ended = Command::new("kill")
                .arg("-TERM")
                .arg(child.id().to_string())
                .status();
            assert!(ended.unwrap().success());
        }
        let output = child.wait_with_output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        // The signal may come before the run is ready for it.
        let has_ended = match output.status.code() {
            Some(code) => code == if self.follows { 143 } else { 0 },
            None => self.follows,
        };
        assert!(has_ended, "{told}{}", self.told());
        assert_eq!(told, "", "{}", self.told());
        self.check();
    }

    fn wait_for_all(&self, child: &mut Child) {
        let wanted: u64 = self.written.values().sum();
        for _ in 0..LOOKS {
            let lines = |name| self.output(name).matches('\n').count() as u64;
            if lines("out") + lines("dup") >= wanted {
                return;
            }
            if child.try_wait().unwrap().is_some() {
                break;
            }
            thread::sleep(Duration::from_millis(20));
        }
        let _ = child.kill();
        self.check();
    }

    /// Every line was judged as often as it was written.
    fn check(&self) {
        let mut judged = BTreeMap::new();
        let mut fresh = BTreeSet::new();
        for line in self.output("out").split_inclusive('\n') {
            assert!(
                fresh.insert(line.to_owned()),
                "twice: {line}{}",
                self.told()
            );
            *judged.entry(line.to_owned()).or_default() += 1;
        }
        for line in self.output("dup").split_inclusive('\n') {
            *judged.entry(line.to_owned()).or_default() += 1;
        }
        for (line, count) in &judged {
            let wanted = self.written.get(line);
            assert_eq!(wanted, Some(count), "doubled or cut: {line}{}", self.told());
        }
        for (line, count) in &self.written {
            assert_eq!(judged.get(line), Some(count), "lost: {line}{}", self.told());
            assert!(fresh.contains(line), "not passed: {line}{}", self.told());
        }
    }

    fn told(&self) -> String {
        format!(" in {}: {:?}", self.folder.display(), self.done)
    }

    /// Completes half a line.
    fn complete(&mut self) {
        if let Some(rest) = self.half.take() {
            self.append("log", &rest);
        }
    }

    fn rotate(&mut self) {
        self.complete();
        for number in (1..=self.rotations).rev() {
            let [from, to] = [number, number + 1].map(|number| format!("log.{number}"));
            if self.path(&from).exists() {
                self.rename(&from, &to);
            }
        }
        self.rotations += 1;
        self.rename("log", "log.1");
        let lines = self.new_lines();
        self.append("log", &lines);
    }

    /// Gives a file another number.
    fn copy(&mut self) {
        let mut names = self.logs();
        if !self.follows {
            names.extend(["one".to_owned(), "same".to_owned()]);
        }
        let name = &names[self.draw.below(names.len() as u64) as usize];
        fs::copy(self.path(name), self.path("copy")).unwrap();
        let modified = fs::metadata(self.path(name)).unwrap().modified().unwrap();
        let copy = OpenOptions::new()
            .append(true)
            .open(self.path("copy"))
            .unwrap();
        copy.set_modified(modified).unwrap();
        self.rename("copy", name);
    }

    /// Moves the folder to another device, where every file has another number.
    fn reboot(&mut self) {
        let copied = Command::new("cp")
            .arg("-a")
            .arg(&self.folder)
            .arg(&self.other)
            .status();
        assert!(copied.unwrap().success());
        fs::remove_dir_all(&self.folder).unwrap();
        let name = self.folder.file_name().unwrap();
        let moved = self.other.join(name);
        self.other = self.folder.parent().unwrap().to_owned();
        self.folder = moved;
    }

    /// Writes a file anew, of which all was read: its lines are read again.
    fn replace(&mut self, how: u64) {
        let lines = self.new_lines();
        match how {
            // Another file in its place, with a line in front.
            0 => {
                let old = self.text("one");
                for line in old.split_inclusive('\n') {
                    *self.written.get_mut(line).unwrap() += 1;
                }
                fs::write(self.path("copy"), lines + &old).unwrap();
                self.rename("copy", "one");
            }
            // Truncated, and other content.
            1 => fs::write(self.path("one"), lines).unwrap(),
            _ => {
                fs::remove_file(self.path("one")).unwrap();
                fs::write(self.path("one"), lines).unwrap();
            }
        }
    }

    /// Rotates by a copy once all was read: `copytruncate` loses what is written meanwhile.
    fn copy_and_truncate(&mut self) {
        self.complete();
        self.run();
        for number in (1..=self.rotations).rev() {
            let [from, to] = [number, number + 1].map(|number| format!("log.{number}"));
            if self.path(&from).exists() {
                self.rename(&from, &to);
            }
        }
        self.rotations += 1;
        fs::copy(self.path("log"), self.path("log.1")).unwrap();
        let lines = self.new_lines();
        fs::write(self.path("log"), lines).unwrap();
    }

    fn step(&mut self) {
        let what = self.draw.below(100);
        let name = match what {
            0..30 => {
                let lines = self.new_lines();
                self.complete();
                if self.follows && self.draw.once_in(3) {
                    let line = self.new_line(true);
                    let at = 1 + self.draw.below(line.len() as u64 - 1) as usize;
                    self.append("log", &(lines + &line[..at]));
                    self.half = Some(line[at..].to_owned());
                } else {
                    let name = if self.follows || self.draw.once_in(2) {
                        "log"
                    } else {
                        "one"
                    };
                    self.append(name, &lines);
                }
                "append"
            }
            30..45 => {
                self.rotate();
                "rotate"
            }
            45..65 => {
                self.run_in_part();
                "killed"
            }
            65..80 => {
                self.complete();
                self.run();
                "run"
            }
            80..86 => {
                self.copy();
                "copy"
            }
            86..91 => {
                self.reboot();
                "reboot"
            }
            91..95 => {
                self.copy_and_truncate();
                "copytruncate"
            }
            _ if self.follows => "nothing",
            _ => {
                self.complete();
                self.run();
                let how = self.draw.below(3);
                self.replace(how);
                "replace"
            }
        };
        self.done.push(name.to_owned());
    }
}

fn number(name: &str, default: u64) -> u64 {
    let value = std::env::var(name).ok();
    value.map_or(default, |value| value.parse().unwrap())
}

#[test]
fn no_line_is_lost_doubled_or_cut_whatever_happens_to_the_inputs() {
    let Some(faults) = Faults::new() else {
        return;
    };
    let steps = number("ECHOLESS_STEPS", STEPS);
    let first = number("ECHOLESS_SEED", 1);
    let other = std::env::var("ECHOLESS_OTHER").map_or(std::env::temp_dir(), PathBuf::from);
    for seed in first..first + steps.div_ceil(STEPS_OF_A_CASE) {
        let here = tempfile::tempdir().unwrap();
        let there = tempfile::tempdir_in(&other).unwrap();
        let folder = here.path().join("case");
        fs::create_dir(&folder).unwrap();
        fs::create_dir(here.path().join("outputs")).unwrap();
        let mut case = Case {
            draw: Draw(seed),
            folder,
            other: there.path().to_owned(),
            outputs: here.path().join("outputs"),
            shim: faults.path("shim.so"),
            follows: seed % 2 == 0,
            written: BTreeMap::new(),
            lines: 0,
            rotations: 0,
            half: None,
            done: vec![format!("seed {seed}")],
        };
        case.begin();
        for _ in 0..STEPS_OF_A_CASE {
            case.step();
        }
        case.complete();
        case.run();
    }
}

impl Case {
    fn begin(&mut self) {
        let lines = self.new_lines();
        self.append("log", &lines);
        if self.follows {
            // What was rotated before a state knows the log is not read.
            self.run();
            return;
        }
        // Two files with the same short content.
        for name in ["one", "same"] {
            self.append(name, "same\n");
            *self.written.entry("same\n".to_owned()).or_default() += 1;
        }
    }
}
