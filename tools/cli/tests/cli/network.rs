//! A network of its own for tests of live capture: a namespace with pairs of virtual interfaces.
//!
//! Nothing outside of the namespace is touched. It ends with its last process.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStderr, Command, Output, Stdio};

use echoless_packets::framing::{BlockKind, Framer, Next};

use crate::run::{Folder, command};

/// A network namespace, which a process of its own keeps.
pub(crate) struct Network(Child);

impl Network {
    /// A network with these pairs of interfaces, `a` and `b` of each `a-b`, which are up and quiet;
    /// a message if there is none to be had, or if a tool is absent.
    pub(crate) fn new(pairs: &[&str], tools: &[&str]) -> Option<Self> {
        let needed = ["unshare", "nsenter", "ip"];
        for tool in needed.iter().chain(tools) {
            let found = Command::new("which").arg(tool).output();
            if !found.is_ok_and(|found| found.status.success()) {
                eprintln!("skipped: {tool} is absent");
                return None;
            }
        }
        // It ends when its standard input does, at the latest with this process.
        let keeper = Command::new("unshare")
            .args(["--net", "sh", "-c", "echo begun && exec cat"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut network = Self(keeper);
        let mut begun = [0; 6];
        let begins = network.0.stdout.as_mut().unwrap().read_exact(&mut begun);
        if begins.is_err() {
            eprintln!("skipped: no right to make a network namespace");
            return None;
        }
        let quiet = "net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1";
        let mut lines = vec![format!("sysctl -qw {quiet} && ip link set lo up")];
        lines.extend(pairs.iter().map(|pair| added(pair)));
        for line in lines {
            let output = network.run(&line);
            if !output.status.success() {
                eprintln!("skipped: no such network is to be had: {line}: {output:?}");
                return None;
            }
        }
        Some(network)
    }

    /// The same, and a capture to send there: its folder and its path.
    pub(crate) fn with_capture(
        pairs: &[&str],
        file: &[u8],
        tools: &[&str],
    ) -> Option<(Self, Folder, String)> {
        let network = Self::new(pairs, &[&["tcpreplay"], tools].concat())?;
        let folder = Folder::new();
        folder.write("sent", file);
        let sent = folder.path("sent").display().to_string();
        Some((network, folder, sent))
    }

    /// Adds a pair of interfaces.
    pub(crate) fn add(&self, pair: &str) {
        self.sh(&added(pair));
    }

    fn run(&self, line: &str) -> Output {
        self.enter().args(["sh", "-c", line]).output().unwrap()
    }

    /// Runs a command of the shell there, which must succeed.
    #[track_caller]
    pub(crate) fn sh(&self, line: &str) {
        let output = self.run(line);
        assert!(output.status.success(), "{line}: {output:?}");
    }

    /// Sends all packets of a file by an interface.
    #[track_caller]
    pub(crate) fn replay(&self, interface: &str, file: &str) {
        self.sh(&format!("tcpreplay -q --topspeed -i {interface} {file}"));
    }

    /// The command `echoless packets` with these arguments there, behind `before`. It ends by
    /// itself, so a test of one that captures too long fails in place of waiting forever.
    pub(crate) fn packets(&self, before: &str, args: &str) -> Command {
        let ends = match args.contains("--duration") {
            true => "",
            false => "--duration 2m",
        };
        let ours = command(format!("packets -m 1MiB --summary line {args} {ends}"));
        let mut inside = self.enter();
        inside.args(before.split_whitespace());
        inside.arg(ours.get_program()).args(ours.get_args());
        inside
            .env_remove("ECHOLESS_OPTS")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        inside
    }

    fn enter(&self) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--net", "--target", &self.0.id().to_string(), "--"]);
        command
    }

    /// Whether its system has AF_XDP, and the right to use it; a message if not.
    pub(crate) fn has_xdp(&self) -> bool {
        let mut probe = self.packets("", "--interface lo --capture af-xdp --duration 1ms");
        let probe = probe.output().unwrap();
        let error = String::from_utf8(probe.stderr).unwrap();
        let mut reasons = ["no AF_XDP", "no permission"].iter();
        if reasons.any(|it| error.contains(it)) {
            eprintln!("skipped: {error}");
            return false;
        }
        assert_eq!(probe.status.code(), Some(0), "{error}");
        true
    }

    /// Captures what is sent by `a0`; the file and the messages of a run that [ends
    /// well](LiveRun::end_with).
    #[track_caller]
    pub(crate) fn captured(
        &self,
        args: &str,
        sent: &str,
        expected: &[Vec<u8>],
    ) -> (Vec<u8>, String) {
        let run = LiveRun::start(self.packets("", args));
        self.replay("a0", sent);
        run.end_with(expected, args)
    }

    /// Stops a capture with these options, sends it a file that is larger than its buffer, and
    /// resumes it by the line that `goes_on` makes of its process. Returns its exit code and output.
    pub(crate) fn overrun(
        &self,
        options: &str,
        sent: &str,
        goes_on: impl Fn(u32) -> String,
    ) -> (Option<i32>, Vec<u8>) {
        let run = LiveRun::start(self.packets("", options));
        let id = run.child.id();
        self.sh(&format!("kill -STOP {id}"));
        self.replay("a0", sent);
        self.sh(&goes_on(id));
        let (code, output, messages) = run.end();
        let says = "lost before they were read";
        assert!(messages.contains(says), "{messages}");
        (code, output)
    }
}

/// The line that adds the interfaces `a` and `b` of `a-b`, which are up.
fn added(pair: &str) -> String {
    let (a, b) = pair.split_once('-').unwrap();
    let add = format!("ip link add {a} type veth peer name {b}");
    format!("{add} && ip link set {a} up && ip link set {b} up")
}

impl Drop for Network {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A run that captures.
pub(crate) struct LiveRun {
    pub(crate) child: Child,
    /// What it has written to standard output.
    written: Vec<u8>,
    messages: BufReader<ChildStderr>,
}

impl LiveRun {
    /// Starts a run that writes packets to standard output, and waits until it captures: then the
    /// header of the section is there.
    #[track_caller]
    pub(crate) fn start(command: Command) -> Self {
        Self::try_start(command).unwrap_or_else(|error| panic!("no capture: {error}"))
    }

    /// The same, or its messages if it ends before that.
    pub(crate) fn try_start(mut command: Command) -> Result<Self, String> {
        let mut run = Self::of(command.spawn().unwrap());
        run.written.resize(28, 0);
        let stdout = run.child.stdout.as_mut().unwrap();
        match stdout.read_exact(&mut run.written) {
            Ok(()) => Ok(run),
            Err(_) => {
                let mut messages = String::new();
                run.messages.read_to_string(&mut messages).unwrap();
                run.child.wait().unwrap();
                Err(messages)
            }
        }
    }

    /// A run that has begun, which writes elsewhere.
    pub(crate) fn of(mut child: Child) -> Self {
        Self {
            messages: BufReader::new(child.stderr.take().unwrap()),
            child,
            written: Vec::new(),
        }
    }

    /// Waits for a message with these words, behind those that were awaited.
    #[track_caller]
    pub(crate) fn await_message(&mut self, words: &str) {
        let mut told = String::new();
        while !told.contains(words) {
            let read = self.messages.read_line(&mut told).unwrap();
            assert!(read > 0, "no {words}: {told}");
        }
    }

    /// Waits for the end. Returns the exit code, the file and the messages that were not awaited.
    pub(crate) fn end(mut self) -> (Option<i32>, Vec<u8>, String) {
        let mut stdout = self.child.stdout.take().unwrap();
        stdout.read_to_end(&mut self.written).unwrap();
        let mut messages = String::new();
        self.messages.read_to_string(&mut messages).unwrap();
        (self.child.wait().unwrap().code(), self.written, messages)
    }

    /// Waits for the end, which must be a good one, and for a file of these packets in the order of
    /// time, with the statistics of one interface. Returns the file and the messages.
    #[track_caller]
    pub(crate) fn end_with(self, expected: &[Vec<u8>], case: &str) -> (Vec<u8>, String) {
        let (code, output, messages) = self.end();
        assert_eq!(code, Some(0), "{case}: {messages}");
        let (packets, statistics) = captured(&output);
        assert_eq!(statistics, 1, "{case}");
        assert!(packets.is_sorted_by_key(|packet| packet.time), "{case}");
        assert!(
            packets.iter().map(|packet| &packet.bytes).eq(expected),
            "{case}"
        );
        (output, messages)
    }
}

/// A captured packet: its interface, time, bytes and length on the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Captured {
    pub(crate) interface: u32,
    pub(crate) time: i64,
    pub(crate) bytes: Vec<u8>,
    pub(crate) original_len: u32,
}

/// The packets of a whole file, and the number of its blocks with statistics.
pub(crate) fn captured(file: &[u8]) -> (Vec<Captured>, usize) {
    let (mut framer, mut at, mut packets, mut statistics) = (Framer::new(), 0, Vec::new(), 0);
    while let Next::Block { range, kind } = framer.next_block(file, at, true).unwrap() {
        at = range.end;
        match kind {
            BlockKind::Packet(packet) => packets.push(Captured {
                interface: packet.interface.index,
                time: packet.timestamp.unwrap(),
                bytes: file[packet.data.clone()].to_vec(),
                original_len: packet.original_len,
            }),
            BlockKind::Other(5) => statistics += 1,
            _ => {}
        }
    }
    (packets, statistics)
}

/// The bytes of the packets of a file.
pub(crate) fn frames(file: &[u8]) -> Vec<Vec<u8>> {
    captured(file)
        .0
        .into_iter()
        .map(|packet| packet.bytes)
        .collect()
}
