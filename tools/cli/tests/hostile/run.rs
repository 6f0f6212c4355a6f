//! One hostile run, and what must be true of it.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// The longest output that is read. Then the reader leaves, as `head` does.
const READ: u64 = 1 << 20;

/// A run that takes longer hangs. Every run takes well below a second.
const PATIENCE: Duration = Duration::from_secs(120);

/// The records of the runs: fields, repeats, an empty line, a quoted field, a last line without a
/// newline.
const CALLS: &[u8] = b"id,start,cell\n1,100,a\n2,101,b\n1,100,a\n\n3,\"1\n02\",c\n4,103,d\n4,103,d";

/// A folder with the files that runs read.
pub(crate) struct Bench {
    folder: TempDir,
    mirror: Vec<u8>,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let bench = Self {
            folder: TempDir::new().unwrap(),
            mirror: {
                let args = [
                    "gen",
                    "packets",
                    "-n",
                    "40",
                    "--duplicates",
                    "0.3",
                    "--copies",
                    "ttl",
                ];
                command(&args).output().unwrap().stdout
            },
        };
        bench.restore();
        bench
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Writes the files that a run may have replaced, as outputs that were named so.
    fn restore(&self) {
        let write =
            |name: &str, content: &[u8]| fs::write(self.path().join(name), content).unwrap();
        write("calls.csv", CALLS);
        write("mirror.pcap", &self.mirror);
        write("secret.key", b"000102030405060708090a0b0c0d0e0f\n");
        write("specs.toml", b"filters = [\"bloom:k=4,memory=64\"]\n");
    }
}

/// The command with these arguments and no variable that changes its options.
pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_echoless"));
    command
        .args(arguments)
        .env_remove("ECHOLESS_OPTS")
        .stdin(Stdio::null());
    command
}

/// Runs the command in the folder and checks how it ends.
pub(crate) fn check(bench: &Bench, arguments: &[String]) {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut child = command(&arguments)
        .current_dir(bench.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (stdout, stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let (kept, message) = std::thread::scope(|scope| {
        let reading = scope.spawn(|| read(stdout));
        let message = scope.spawn(|| read(stderr));
        let code = wait(&mut child, &arguments);
        (reading.join().unwrap(), (message.join().unwrap(), code))
    });
    let (message, code) = message;
    let message = String::from_utf8(message).unwrap();
    let told = format!("{arguments:?}: exit code {code:?}, {message}");
    assert!(
        !message.contains("panicked") && !message.contains("internal error"),
        "{told}"
    );
    let shown = message
        .chars()
        .all(|shown| shown == '\n' || !shown.is_control());
    assert!(shown, "control characters: {told}");
    // A run that serves metrics says where before it reads.
    let address = "echoless: metrics at http://127.0.0.1:";
    let serves = message.starts_with(address) && arguments.contains(&"--metrics=0");
    let behind = message.split_once('\n').filter(|_| serves);
    let message = behind.map_or(&message[..], |(_, rest)| rest);
    match code {
        Some(0) => {}
        Some(1) => assert!(arguments.contains(&"--fail-on-duplicates"), "{told}"),
        Some(2) => {
            let lines = message.matches('\n').count();
            assert!(lines == 1 && message.ends_with('\n'), "{told}");
            assert!(
                message.starts_with("echoless: ") && message.len() > 15,
                "{told}"
            );
        }
        _ => panic!("{told}"),
    }
    let is_input = |name: &str, content: &[u8]| {
        // An option that writes may have been given the name of another file.
        fs::read(bench.path().join(name)).unwrap() == content
    };
    let calls = is_input("calls.csv", CALLS);
    let mirror = is_input("mirror.pcap", &bench.mirror);
    let read_calls = arguments[0] == "dedup" && !arguments.contains(&"--in-place");
    assert!(calls || !read_calls, "the input was changed: {told}");
    assert!(
        mirror || arguments[0] != "packets",
        "the input was changed: {told}"
    );
    if code == Some(0) && arguments[0] == "dedup" && kept.len() as u64 == READ {
        panic!("more came out than went in: {told}");
    }
    bench.restore();
}

/// What can be read, at most [`READ`] bytes.
fn read(stream: impl Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    stream.take(READ).read_to_end(&mut bytes).unwrap();
    bytes
}

fn wait(child: &mut Child, arguments: &[&str]) -> Option<i32> {
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        if began.elapsed() > PATIENCE {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("{arguments:?} hangs");
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}
