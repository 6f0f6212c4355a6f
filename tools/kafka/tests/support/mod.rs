//! Topics as a test sees them, and members as processes.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::Message;
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};

/// Key and value of a record.
pub(crate) type Record = (Vec<u8>, Vec<u8>);

/// The records of each partition, in order.
pub(crate) type Content = BTreeMap<i32, Vec<Record>>;

/// How long the cluster may take for anything before a test gives up.
pub(crate) const PATIENCE: Duration = Duration::from_secs(150);

/// All committed records of a topic.
pub(crate) fn read_all(brokers: &str, topic: &str) -> Content {
    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", brokers)
        .set("group.id", "reader of the test")
        .set("enable.auto.commit", "false")
        .set("auto.offset.reset", "earliest")
        .set("isolation.level", "read_committed")
        .set("enable.partition.eof", "true")
        .create()
        .expect("a consumer");
    let metadata = consumer
        .fetch_metadata(Some(topic), PATIENCE)
        .expect("the topic");
    let partitions = metadata.topics()[0].partitions();
    let mut list = TopicPartitionList::new();
    let mut content = Content::new();
    for partition in partitions {
        list.add_partition_offset(topic, partition.id(), Offset::Beginning)
            .expect("an offset");
        content.insert(partition.id(), Vec::new());
    }
    consumer.assign(&list).expect("an assignment");
    let mut ended = HashSet::new();
    let deadline = Instant::now() + PATIENCE;
    while ended.len() < partitions.len() {
        assert!(Instant::now() < deadline, "{topic} has no end");
        match consumer.poll(Duration::from_millis(100)) {
            None => {}
            Some(Ok(message)) => {
                let bytes = |part: Option<&[u8]>| part.unwrap_or_default().to_vec();
                let record = (bytes(message.key()), bytes(message.payload()));
                content.entry(message.partition()).or_default().push(record);
            }
            Some(Err(rdkafka::error::KafkaError::PartitionEOF(partition))) => {
                ended.insert(partition);
            }
            Some(Err(error)) => println!("the reader of {topic}: {error}"),
        }
    }
    content
}

/// The first record of each key, and the others, in each partition.
pub(crate) fn expected(input: &Content) -> (Content, Content) {
    let (mut fresh, mut duplicates) = (Content::new(), Content::new());
    for (partition, records) in input {
        let mut keys = HashSet::new();
        let (first, again) = records
            .iter()
            .cloned()
            .partition(|(key, _)| keys.insert(key.clone()));
        fresh.insert(*partition, first);
        duplicates.insert(*partition, again);
    }
    (fresh, duplicates)
}

/// Starts a member; what it says goes to a file.
pub(crate) fn start_member(brokers: &str, state: &Path, log: &Path, options: &[&str]) -> Child {
    let log = std::fs::File::options()
        .create(true)
        .append(true)
        .open(log)
        .expect("a log");
    Command::new(env!("CARGO_BIN_EXE_echoless-kafka"))
        .args([
            "--brokers",
            brokers,
            "--group",
            "dedup",
            "--in",
            "calls",
            "--out",
            "calls.fresh",
        ])
        .args(["-m", "4MiB", "--interval", "100ms", "--state"])
        .arg(state)
        .args(options)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .expect("a member")
}

/// Sends a signal, such as `-TERM`.
pub(crate) fn signal(process: &Child, signal: &str) {
    let status = Command::new("kill")
        .args([signal, &process.id().to_string()])
        .status();
    assert!(status.expect("kill").success());
}
