//! Fills a new topic for measurements (`tests/throughput.sh`): 16 bytes of key, 100 bytes of value,
//! and one record in five has the key of one up to a million before.
//!
//! ```sh
//! cargo run --release -p echoless-kafka --example load -- localhost:9092 5000000 calls copy fresh
//! ```
//!
//! The first topic is filled, the others are only created.

use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};

const PARTITIONS: i32 = 6;
const VALUE: [u8; 100] = [b'v'; 100];

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [brokers, records, topics @ ..] = &words[..] else {
        panic!("expected BROKERS RECORDS TOPIC...");
    };
    let records: u64 = records.parse().expect("a number of records");
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", brokers);
    let admin: AdminClient<DefaultClientContext> = config.create().expect("a client");
    let created: Vec<NewTopic<'_>> = topics
        .iter()
        .map(|name| NewTopic::new(name, PARTITIONS, TopicReplication::Fixed(1)))
        .collect();
    let created = admin.create_topics(&created, &AdminOptions::new());
    for topic in futures_executor::block_on(created).expect("an answer") {
        topic.expect("a new topic");
    }
    config
        .set("enable.idempotence", "true")
        .set("linger.ms", "20");
    let producer: BaseProducer = config.create().expect("a producer");
    for number in 0..records {
        let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let key = match mixed % 5 {
            0 => number - mixed % 1_000_000.min(number + 1),
            _ => number,
        };
        let key = format!("{:016x}", key.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut record = BaseRecord::to(&topics[0]).key(&key).payload(&VALUE);
        while let Err((error, back)) = producer.send(record) {
            let full = KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull);
            assert_eq!(error, full);
            record = back;
            producer.poll(Duration::from_millis(10));
        }
    }
    producer
        .flush(Duration::from_secs(120))
        .expect("records are written");
}
