//! A real broker, from its published jars.

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};

use crate::support::PATIENCE;

/// Whether a broker can be started; says SKIPPED if not.
pub(crate) fn is_available() -> bool {
    let jars = script().arg("--resolve").status();
    let found = jars.is_ok_and(|status| status.success());
    if !found {
        println!("SKIPPED: no broker; the test needs a JDK, Maven and its repository");
    }
    found
}

/// A broker as a process, which is killed at the end.
pub(crate) struct Broker {
    folder: PathBuf,
    port: u16,
    process: Child,
}

fn script() -> Command {
    let mut command = Command::new("bash");
    command.arg(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/broker/start.sh"
    ));
    command
}

impl Broker {
    /// Starts one whose data are in a folder.
    pub(crate) fn start(folder: PathBuf) -> Self {
        let port = free_port();
        let process = Self::spawn(&folder, port);
        Self {
            folder,
            port,
            process,
        }
    }

    fn spawn(folder: &Path, port: u16) -> Child {
        let mut command = script();
        let mut process = command
            .arg(folder)
            .arg(port.to_string())
            .spawn()
            .expect("a broker");
        let deadline = Instant::now() + PATIENCE;
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < deadline, "the broker does not start");
            assert_eq!(process.try_wait().expect("a process"), None, "it ended");
            thread::sleep(Duration::from_millis(200));
        }
        process
    }

    pub(crate) fn kill_and_start(&mut self) {
        self.process.kill().expect("a process");
        self.process.wait().expect("a process");
        self.process = Self::spawn(&self.folder, self.port);
    }

    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A port with a free one behind it, for the controller.
fn free_port() -> u16 {
    (15_000..32_000)
        .step_by(2)
        .cycle()
        .skip(std::process::id() as usize % 8_500)
        .find(|&port| {
            [port, port + 1]
                .map(|port| TcpListener::bind(("127.0.0.1", port)))
                .iter()
                .all(Result::is_ok)
        })
        .expect("a port")
}

/// How many records the group has still to read.
fn lag(brokers: &str, group: &str, topic: &str, partitions: i32) -> Option<i64> {
    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", brokers)
        .set("group.id", group)
        .set("isolation.level", "read_committed")
        .create()
        .expect("a consumer");
    let mut list = TopicPartitionList::new();
    list.add_partition_range(topic, 0, partitions - 1);
    let wait = Duration::from_secs(5);
    let committed = consumer.committed_offsets(list, wait).ok()?;
    let mut lag = 0;
    for element in committed.elements() {
        element.error().ok()?;
        let (first, end) = consumer
            .fetch_watermarks(topic, element.partition(), wait)
            .ok()?;
        lag += match element.offset() {
            Offset::Offset(offset) => end - offset,
            _ => end - first,
        };
    }
    Some(lag)
}

/// Waits until the group has read everything.
pub(crate) fn wait_until_read(brokers: &str, group: &str, topic: &str, partitions: i32) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let lag = lag(brokers, group, topic, partitions);
        if lag == Some(0) {
            return;
        }
        assert!(Instant::now() < deadline, "records are left: {lag:?}");
        thread::sleep(Duration::from_millis(200));
    }
}
