//! Topics as a test sees them, and members as processes.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::Message;
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};

/// Key, value and time of a record.
pub(crate) type Record = (Vec<u8>, Vec<u8>, i64);

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
                let time = message.timestamp().to_millis().expect("a time");
                let record = (bytes(message.key()), bytes(message.payload()), time);
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

/// A window as a member has it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Window {
    /// Whether times move the clock, or else offsets.
    pub(crate) by_time: bool,
    /// The length of a tick, in milliseconds or offsets.
    pub(crate) resolution: i64,
    /// The window in ticks, five granules.
    pub(crate) ticks: i64,
}

/// The records of each partition that pass, and the duplicates. Without a window, the first record
/// of each key passes. With one, a record passes if its key has not passed within it, to the
/// granule, or if it is older than the window by the latest time so far. Offsets must begin at 0
/// and have no gaps.
pub(crate) fn expected(input: &Content, window: Option<Window>) -> (Content, Content) {
    let (mut fresh, mut duplicates) = (Content::new(), Content::new());
    for (partition, records) in input {
        // By key, when it passed, in granules.
        let mut passed = HashMap::new();
        let mut clock = 0;
        let (first, again) = (0_i64..)
            .zip(records)
            .partition::<Vec<_>, _>(|(offset, record)| {
                let (key, _, time) = record;
                let (mut is_late, mut granule) = (false, 0);
                if let Some(window) = window {
                    let position = if window.by_time { *time } else { *offset };
                    let tick = position / window.resolution + 1;
                    clock = tick.max(clock);
                    is_late = clock - tick > window.ticks;
                    granule = clock / (window.ticks / 5);
                }
                let known = passed.get(key).is_some_and(|then| granule - then <= 5);
                if !known && !is_late {
                    passed.insert(key, granule);
                }
                !known || is_late
            });
        let records = |numbered: Vec<(i64, &Record)>| {
            let records = numbered.into_iter().map(|(_, record)| record.clone());
            records.collect()
        };
        fresh.insert(*partition, records(first));
        duplicates.insert(*partition, records(again));
    }
    (fresh, duplicates)
}

/// Starts a member of a group that writes to the topic `<group>.fresh`, or that copies if it has no
/// folder for its state; what it says goes to a file.
pub(crate) fn start_member(
    brokers: &str,
    group: &str,
    state: Option<&Path>,
    log: &Path,
    options: &[&str],
) -> Child {
    let own = match state {
        Some(state) => {
            let state = state.to_str().expect("a path in UTF-8");
            vec!["-m", "4MiB", "--state", state]
        }
        None => vec!["--repartition", "--key", "value"],
    };
    let log = File::options()
        .create(true)
        .append(true)
        .open(log)
        .expect("a log");
    let mut member = Command::new(env!("CARGO_BIN_EXE_echoless-kafka"));
    member
        .args([
            "--brokers",
            brokers,
            "--group",
            group,
            "--in",
            "calls",
            "--out",
            &format!("{group}.fresh"),
        ])
        .args(["--interval", "100ms"])
        .args(own)
        .args(options);
    start(&mut member, log)
}

/// Starts a member whose messages go to its log.
pub(crate) fn start(member: &mut Command, log: File) -> Child {
    let silent = member.stdin(Stdio::null()).stdout(Stdio::null());
    silent.stderr(log).spawn().expect("a member")
}

/// Sends a signal, such as `-TERM`.
pub(crate) fn signal(process: &Child, signal: &str) {
    let status = Command::new("kill")
        .args([signal, &process.id().to_string()])
        .status();
    assert!(status.expect("kill").success());
}
