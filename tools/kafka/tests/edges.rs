//! A real broker whose topics have limits of their own: what they do not accept is set aside or
//! named, and members wait for topics and find those that are created anew.
//!
//! Needs a JDK and Maven, which fetches the broker (`broker/pom.xml`), and says SKIPPED without.

#[path = "support/broker.rs"]
#[expect(dead_code, reason = "the other test kills it")]
mod broker;
#[expect(dead_code, reason = "the other tests need the rest")]
mod support;

use std::path::PathBuf;
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

use futures_executor::block_on;
use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, NewPartitions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};

use broker::{Broker, wait_until_read};
use support::{PATIENCE, read_all, signal, start};

/// The topics of a test begin with its name.
struct Test<'a> {
    name: &'static str,
    brokers: &'a str,
    folder: PathBuf,
}

/// What is tried with topics of a test.
type Scenario = fn(&Test<'_>);

/// A record to write: its key, the length of its value, and its time if it has one of its own.
type Given = (&'static str, usize, Option<i64>);

impl Test<'_> {
    fn topic(&self, end: &str) -> String {
        format!("{}.{end}", self.name)
    }

    fn admin(&self) -> AdminClient<DefaultClientContext> {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", self.brokers);
        config.create().expect("a client")
    }

    /// Creates a topic of one partition.
    fn create(&self, end: &str, settings: &[(&str, &str)]) {
        let name = self.topic(end);
        let mut topic = NewTopic::new(&name, 1, TopicReplication::Fixed(1));
        topic.config = settings.to_vec();
        let options = AdminOptions::new().operation_timeout(Some(PATIENCE));
        // A topic that was deleted may be there for a moment.
        let deadline = Instant::now() + PATIENCE;
        loop {
            let created = block_on(self.admin().create_topics([&topic], &options));
            match created.expect("an answer").remove(0) {
                Ok(_) => return,
                Err((_, error)) => assert!(Instant::now() < deadline, "{error}"),
            }
            thread::sleep(Duration::from_millis(200));
        }
    }

    fn delete(&self, end: &str) {
        let options = AdminOptions::new().operation_timeout(Some(PATIENCE));
        let deleted = block_on(self.admin().delete_topics(&[&self.topic(end)], &options));
        deleted.expect("an answer").remove(0).expect("a topic");
    }

    /// Writes records to the input, in one transaction if it has a name.
    fn write(&self, records: &[Given], transaction: Option<&str>) {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", self.brokers);
        config.set("message.max.bytes", "10000000");
        if let Some(name) = transaction {
            config.set("transactional.id", name);
        }
        let producer: BaseProducer = config.create().expect("a producer");
        if transaction.is_some() {
            producer.init_transactions(PATIENCE).expect("a producer");
            producer.begin_transaction().expect("a transaction");
        }
        let input = self.topic("in");
        for (key, length, time) in records {
            // No codec makes it shorter.
            let mut draw = 1_u64;
            let value: Vec<u8> = (0..*length)
                .map(|_| {
                    draw = draw.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(11);
                    (draw >> 33) as u8
                })
                .collect();
            let mut record = BaseRecord::<str, [u8]>::to(&input).payload(&value);
            record.key = Some(*key).filter(|key| !key.is_empty());
            record.timestamp = *time;
            let sent = producer.send(record);
            sent.map_err(|(error, _)| error).expect("a record");
        }
        producer.flush(PATIENCE).expect("records are written");
        if transaction.is_some() {
            producer
                .commit_transaction(PATIENCE)
                .expect("a transaction");
        }
    }

    fn start(&self, options: &[&str]) -> Child {
        std::fs::create_dir_all(&self.folder).expect("a folder");
        let log = std::fs::File::create(self.folder.join("log")).expect("a log");
        let mut member = Command::new(env!("CARGO_BIN_EXE_echoless-kafka"));
        member
            .args([
                "--brokers",
                self.brokers,
                "--group",
                self.name,
                "-m",
                "1MiB",
            ])
            .args(["--in", &self.topic("in"), "--out", &self.topic("out")])
            .args(["--interval", "100ms", "-c", "session.timeout.ms=3000"])
            .args(["-c", "heartbeat.interval.ms=500", "--state"])
            .arg(self.folder.join("state"))
            .args(options);
        start(&mut member, log)
    }

    fn said(&self) -> String {
        std::fs::read_to_string(self.folder.join("log")).expect("a log")
    }

    /// Ends a member that has read everything, and returns its last line.
    fn end(&self, mut member: Child) -> String {
        wait_until_read(self.brokers, self.name, &self.topic("in"), 1);
        signal(&member, "-TERM");
        let status = member.wait().expect("a process");
        let said = self.said();
        assert!(status.success(), "{}: {said}", self.name);
        said.lines().last().expect("a line").to_owned()
    }

    /// Runs a member until everything is read, and returns its last line.
    fn run(&self, options: &[&str]) -> String {
        self.end(self.start(options))
    }

    /// Runs a member that ends with an error, and returns its line.
    fn fail(&self, options: &[&str]) -> String {
        let mut member = self.start(options);
        let deadline = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = member.try_wait().expect("a process") {
                break status;
            }
            if Instant::now() > deadline {
                let _ = member.kill();
            }
            thread::sleep(Duration::from_millis(50));
        };
        let said = self.said();
        assert_eq!(status.code(), Some(2), "{}: {said}", self.name);
        let mut errors = said.lines().filter(|line| !line.contains("records: "));
        errors.next_back().expect("a line").to_owned()
    }

    /// The keys in a topic.
    fn keys(&self, end: &str) -> Vec<String> {
        let content = read_all(self.brokers, &self.topic(end));
        let records = content.into_values().flatten();
        let keys = records.map(|(key, _, _)| String::from_utf8(key).expect("text"));
        keys.collect()
    }
}

/// The lines of a report must have these words.
fn assert_says(line: &str, words: &[&str]) {
    for words in words {
        assert!(line.contains(words), "{words} is not in: {line}");
    }
}

fn records_that_a_topic_does_not_accept(test: &Test<'_>) {
    test.create("in", &[("max.message.bytes", "5000000")]);
    test.create("out", &[]);
    test.create("aside", &[("max.message.bytes", "5000000")]);
    // The second is longer than what librdkafka allows by itself, and not than the topic.
    // 61 of the batch, 3 of the length of the record, 3 of its numbers, 2 of the key, 3 of the
    // length of the value, 1 of the number of headers.
    let long = 1_048_588 - 61 - 3 - 3 - 2 - 3 - 1;
    test.write(
        &[
            ("a", 10, None),
            ("b", long, None),
            ("c", long + 1, None),
            ("d", 10, None),
        ],
        None,
    );
    let error = test.fail(&[]);
    let limits = "is 1048589 bytes long as a batch, and max.message.bytes of size.out is 1048588";
    assert_says(
        &error,
        &["the record at offset 2 of partition 0 of size.in ", limits],
    );
    let aside = test.topic("aside");
    let said = test.run(&["--reject", &aside]);
    // How many the run before has passed on depends on what came with one fetch.
    assert_says(&said, &["; 1 rejected", "lag 0"]);
    assert_eq!(
        (test.keys("out"), test.keys("aside")),
        (["a", "b", "d"].map(String::from).to_vec(), vec!["c".into()])
    );
    // The broker decides where batches are compressed.
    test.write(&[("e", long + 1, None), ("f", 10, None)], None);
    let said = test.run(&["--reject", &aside, "-c", "compression.type=zstd"]);
    assert_says(&said, &["2 records: 2 fresh", "; 1 rejected"]);
    assert_eq!(
        (test.keys("out").len(), test.keys("aside")),
        (4, vec!["c".into(), "e".into()])
    );
}

fn topics_with_short_batches(test: &Test<'_>) {
    test.create("in", &[]);
    test.create("out", &[("max.message.bytes", "300000")]);
    let keys = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
    test.write(&keys.map(|key| (key, 200_000, None)), None);
    assert_says(&test.run(&[]), &["10 records: 10 fresh", "lag 0"]);
    assert_eq!(test.keys("out"), keys);
}

fn records_that_a_topic_refuses_for_other_reasons(test: &Test<'_>) {
    test.create("in", &[]);
    let settings = [
        ("message.timestamp.before.max.ms", "86400000"),
        ("cleanup.policy", "compact"),
    ];
    test.create("out", &settings);
    test.create("aside", &[]);
    test.write(
        &[
            ("a", 1, None),
            ("b", 1, Some(1_700_000_000_000)),
            ("", 1, None),
        ],
        None,
    );
    assert_says(
        &test.fail(&[]),
        &["the record at offset ", "was not accepted by refuse.out: "],
    );
    let said = test.run(&["--reject", &test.topic("aside")]);
    assert_says(
        &said,
        &["3 records: 2 fresh", "1 passed unjudged", "; 2 rejected"],
    );
    assert_eq!(
        (test.keys("out"), test.keys("aside")),
        (vec!["a".into()], vec!["b".into(), String::new()])
    );
}

fn transactions_at_the_end(test: &Test<'_>) {
    test.create("in", &[]);
    test.create("out", &[]);
    for number in 0..3 {
        test.write(&[("a", 1, None), ("b", number, None)], Some("a producer"));
    }
    // Waits for a lag of 0, of the group.
    assert_says(
        &test.run(&[]),
        &["6 records: 2 fresh, 4 duplicates", "lag 0"],
    );
    assert_says(&test.run(&[]), &["0 records", "0 read again", "lag 0"]);
}

fn a_topic_that_comes_later(test: &Test<'_>) {
    let member = test.start(&[]);
    let deadline = Instant::now() + PATIENCE;
    while !test
        .said()
        .contains("waits: the topic later.in does not exist")
    {
        assert!(Instant::now() < deadline, "{}", test.said());
        thread::sleep(Duration::from_millis(50));
    }
    test.create("in", &[]);
    test.create("out", &[]);
    test.write(&[("a", 1, None)], None);
    assert_says(&test.end(member), &["1 records: 1 fresh"]);
}

fn a_topic_that_is_created_anew(test: &Test<'_>) {
    test.create("in", &[]);
    test.create("out", &[]);
    // The second commit of the journal knows that the group has an offset.
    for key in ["a", "b"] {
        test.write(&[(key, 1, None)], None);
        test.run(&[]);
    }
    test.delete("in");
    test.create("in", &[]);
    test.write(&[("c", 1, None), ("d", 1, None), ("e", 1, None)], None);
    assert_says(
        &test.fail(&[]),
        &["the topic was created anew since the state "],
    );
    std::fs::remove_dir_all(test.folder.join("state")).expect("a folder");
    test.run(&[]);
    assert_eq!(test.keys("out"), ["a", "b", "c", "d", "e"]);
}

fn an_option_that_changes(test: &Test<'_>) {
    test.create("in", &[]);
    test.create("out", &[]);
    let time = 1_700_000_000_000;
    test.write(&[("a", 1, Some(time)), ("b", 1, Some(time + 1_000))], None);
    test.run(&["--window", "1h"]);
    test.write(
        &[
            ("a", 1, Some(time + 600_000)),
            ("b", 1, Some(time + 600_000)),
        ],
        None,
    );
    let error = test.fail(&["--window", "2h"]);
    assert_says(
        &error,
        &["invalid --window=2h: expected --window=1h, as in the state "],
    );
    assert_says(
        &test.run(&["--window", "60m"]),
        &["2 records: 0 fresh, 2 duplicates"],
    );
}

fn an_output_with_fewer_partitions(test: &Test<'_>) {
    test.create("in", &[]);
    test.create("out", &[]);
    test.write(&[("a", 1, None)], None);
    test.run(&[]);
    let options = AdminOptions::new().operation_timeout(Some(PATIENCE));
    let input = test.topic("in");
    let more = [NewPartitions::new(&input, 2)];
    let added = block_on(test.admin().create_partitions(&more, &options));
    added.expect("an answer").remove(0).expect("partitions");
    let expected = "the topic fewer.out has 1 partitions: expected at least 2, as many as fewer.in";
    assert_says(&test.fail(&[]), &[expected]);
}

fn main() {
    if !broker::is_available() {
        return;
    }
    let only = std::env::args()
        .nth(1)
        .filter(|word| !word.starts_with('-'));
    let root = tempfile::tempdir().expect("a folder");
    let broker = Broker::start(root.path().join("broker"));
    let brokers = broker.address();
    let tests: [(&'static str, Scenario); 8] = [
        ("size", records_that_a_topic_does_not_accept),
        ("batches", topics_with_short_batches),
        ("refuse", records_that_a_topic_refuses_for_other_reasons),
        ("ends", transactions_at_the_end),
        ("later", a_topic_that_comes_later),
        ("anew", a_topic_that_is_created_anew),
        ("option", an_option_that_changes),
        ("fewer", an_output_with_fewer_partitions),
    ];
    if let Some(only) = &only {
        assert!(tests.iter().any(|(name, _)| name == only), "no test {only}");
    }
    for (name, run) in tests {
        if only.as_ref().is_some_and(|only| only != name) {
            continue;
        }
        let began = Instant::now();
        run(&Test {
            name,
            brokers: &brokers,
            folder: root.path().join(name),
        });
        println!("{name}: ok, {:.1} s", began.elapsed().as_secs_f64());
    }
}
