//! Members against the cluster that librdkafka simulates, which needs nothing installed. It has
//! groups and transactions, but keeps no offsets of transactions, so that restarts need a real
//! broker (`chaos.rs`).

mod support;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

use rdkafka::ClientConfig;
use rdkafka::mocking::MockCluster;
use rdkafka::producer::{BaseProducer, BaseRecord, DefaultProducerContext, Producer};

use support::{Content, PATIENCE, expected, read_all, signal, start_member};

type Cluster = MockCluster<'static, DefaultProducerContext>;

fn cluster(partitions: [i32; 3]) -> Cluster {
    let cluster = MockCluster::new(1).expect("a simulated cluster");
    for (topic, partitions) in ["calls", "calls.fresh", "calls.again"]
        .iter()
        .zip(partitions)
    {
        cluster.create_topic(topic, partitions, 1).expect("a topic");
    }
    cluster
}

/// Writes a record for each key, with its number as the value.
fn write(cluster: &Cluster, records: impl Iterator<Item = (i32, u64)>) {
    let producer: BaseProducer = ClientConfig::new()
        .set("bootstrap.servers", cluster.bootstrap_servers())
        .create()
        .expect("a producer");
    for (number, (partition, key)) in records.enumerate() {
        let (key, value) = (format!("call {key}"), number.to_string());
        let record = BaseRecord::to("calls")
            .partition(partition)
            .key(&key)
            .payload(&value);
        producer
            .send(record)
            .map_err(|(error, _)| error)
            .expect("a record");
    }
    producer.flush(PATIENCE).expect("records are written");
}

fn end(mut member: Child) -> Option<i32> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(status) = member.try_wait().expect("a process") {
            return status.code();
        }
        assert!(Instant::now() < deadline, "the member does not end");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn said(log: &Path) -> String {
    std::fs::read_to_string(log).expect("a log")
}

/// Waits until a topic has so many records.
fn wait_for(brokers: &str, topic: &str, records: usize) -> Content {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let content = read_all(brokers, topic);
        let found = content.values().map(Vec::len).sum::<usize>();
        if found >= records {
            return content;
        }
        assert!(Instant::now() < deadline, "{topic} has {found} records");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn the_first_record_of_each_key_passes_and_the_others_are_set_aside() {
    let cluster = cluster([3, 3, 3]);
    let brokers = cluster.bootstrap_servers();
    let folder = tempfile::tempdir().expect("a folder");
    let (state, log) = (folder.path().join("state"), folder.path().join("log"));
    let keys = (0..3_000_u64).map(|number| number * 7_919 % 1_000);
    write(&cluster, keys.map(|key| ((key % 3) as i32, key)));
    let member = start_member(
        &brokers,
        "calls",
        Some(&state),
        &log,
        &["--duplicates", "calls.again"],
    );
    let written = wait_for(&brokers, "calls.fresh", 1_000);
    let set_aside = wait_for(&brokers, "calls.again", 2_000);
    signal(&member, "-TERM");
    assert_eq!(end(member), Some(0), "{}", said(&log));
    let (fresh, duplicates) = expected(&read_all(&brokers, "calls"), None);
    assert_eq!(written, fresh);
    assert_eq!(set_aside, duplicates);
    let line = "3000 records: 1000 fresh, 2000 duplicates (66.67 %), 0 passed unjudged, 0 too late, \
                passed on; 0 read again, ";
    let filters = "; 3 partitions, lag 0, fill at most 0.0 %; no evictions: no duplicate was \
                   missed; once a filter is full, 1 in 1000 at an age of ";
    let said = said(&log);
    let last = said.lines().last().expect("a line");
    assert!(last.contains(line) && last.contains(filters), "{said}");
}

#[test]
fn a_member_reports_what_it_did_while_it_runs() {
    let cluster = cluster([2, 2, 2]);
    let brokers = cluster.bootstrap_servers();
    let folder = tempfile::tempdir().expect("a folder");
    let (state, log) = (folder.path().join("state"), folder.path().join("log"));
    let options = ["--window", "1h", "--report", "100ms"];
    let member = start_member(&brokers, "calls", Some(&state), &log, &options);
    let producer: BaseProducer = ClientConfig::new()
        .set("bootstrap.servers", &brokers)
        .create()
        .expect("a producer");
    let now = 1_800_000_000_000;
    for (key, time) in [
        (Some("call 1"), now),
        (Some("call 1"), now - 1_000),
        (Some("call 2"), now - 7_200_000),
        (None, now),
    ] {
        let mut record: BaseRecord<'_, str, str> = BaseRecord::to("calls")
            .partition(1)
            .payload("")
            .timestamp(time);
        record.key = key;
        let sent = producer.send(record);
        sent.map_err(|(error, _)| error).expect("a record");
    }
    producer.flush(PATIENCE).expect("records are written");
    let line = "4 records: 1 fresh, 1 duplicates (25.00 %), 1 passed unjudged, 1 too late, passed \
                on; 0 read again, ";
    let filters = "; 2 partitions, lag 0, fill at most 0.0 %; no evictions: no duplicate inside the \
                   window was missed; ";
    let deadline = Instant::now() + PATIENCE;
    while !said(&log)
        .lines()
        .any(|said| said.contains(line) && said.contains(filters))
    {
        assert!(Instant::now() < deadline, "{}", said(&log));
        std::thread::sleep(Duration::from_millis(50));
    }
    signal(&member, "-TERM");
    assert_eq!(end(member), Some(0));
}

#[test]
fn one_key_in_two_partitions_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let (state, log) = (folder.path().join("state"), folder.path().join("log"));
    // Two clusters: the simulated group waits for members that have left.
    let clusters = [(); 2].map(|()| cluster([2, 2, 2]));
    for cluster in &clusters {
        write(cluster, [(0, 1), (1, 2), (1, 1)].into_iter());
    }
    let [strict, brokers] = clusters.each_ref().map(MockCluster::bootstrap_servers);
    let strict = start_member(&strict, "calls", Some(&state), &log, &["--strict"]);
    assert_eq!(end(strict), Some(2));
    assert!(
        said(&log).contains("has the key of one in partition"),
        "{}",
        said(&log)
    );
    let member = start_member(&brokers, "calls", Some(&state), &log, &[]);
    wait_for(&brokers, "calls.fresh", 3);
    signal(&member, "-INT");
    assert_eq!(end(member), Some(0));
    assert!(
        said(&log).contains("3 fresh, 0 duplicates"),
        "{}",
        said(&log)
    );
}

#[test]
fn a_copy_is_partitioned_by_what_identifies_a_record() {
    let cluster = cluster([3, 5, 1]);
    let brokers = cluster.bootstrap_servers();
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("log");
    let producer: BaseProducer = ClientConfig::new()
        .set("bootstrap.servers", &brokers)
        .create()
        .expect("a producer");
    let mut expected: BTreeMap<Vec<u8>, usize> = BTreeMap::new();
    for number in 0..300 {
        let value = match number % 100 {
            0 => "foobar".to_owned(),
            call => format!("call {call}"),
        };
        let record = BaseRecord::to("calls")
            .partition(number % 3)
            .key("switch")
            .payload(&value);
        let sent = producer.send(record);
        sent.map_err(|(error, _)| error).expect("a record");
        *expected.entry(value.into_bytes()).or_default() += 1;
    }
    producer.flush(PATIENCE).expect("records are written");
    let member = start_member(&brokers, "calls", None, &log, &[]);
    let copied = wait_for(&brokers, "calls.fresh", 300);
    signal(&member, "-TERM");
    assert_eq!(end(member), Some(0), "{}", said(&log));
    let mut partitions = BTreeMap::new();
    for (partition, records) in copied {
        for (key, value, _) in records {
            assert_eq!(key, value);
            let first = *partitions.entry(value.clone()).or_insert(partition);
            assert_eq!(first, partition);
            *expected.get_mut(&value).expect("a record of the input") -= 1;
        }
    }
    assert!(expected.values().all(|left| *left == 0));
    // As in the tests of Kafka's murmur2, whose lower 31 bits are 1357151166 here.
    assert_eq!(partitions[&b"foobar"[..]], 1357151166 % 5);
    let said = said(&log);
    assert!(said.contains("300 records copied, "), "{said}");
    assert!(said.contains("; 3 partitions, lag 0"), "{said}");
}

#[test]
fn what_cannot_work_ends_with_one_line() {
    let cluster = cluster([2, 1, 2]);
    let brokers = cluster.bootstrap_servers();
    let folder = tempfile::tempdir().expect("a folder");
    let state = folder.path().join("state");
    for (options, message) in [
        (
            &[][..],
            "the topic calls.fresh has 1 partitions: expected at least 2, as many as calls",
        ),
        (&["-c", "nonsense=1"], "nonsense"),
        (&["--window", "1w"], "invalid --window=1w: expected a time"),
    ] {
        let log = folder.path().join(format!("{}.log", options.len()));
        let _ = std::fs::remove_file(&log);
        let member = start_member(&brokers, "calls", Some(&state), &log, options);
        assert_eq!(end(member), Some(2));
        let said = said(&log);
        let lines: Vec<&str> = said.lines().collect();
        let (last, before) = lines.split_last().expect("a line");
        assert!(last.contains(message), "{said}");
        // Partitions that are missing are waited for.
        assert!(
            before.iter().all(|line| line.contains(": waits: ")),
            "{said}"
        );
    }
}
