//! Reads, judges and writes: each round is one transaction of records and offsets.
//!
//! ```text
//! poll for an interval -> judge -> send fresh records -> save the journals -> offsets -> commit
//! |- partitions come  -|  |- none comes or goes, since nobody polls                           -|
//! |  and go            |
//! ```
//!
//! If a call fails, the member forgets everything and begins again: a new consumer, a new producer
//! with the same transactional id, which aborts the transaction of the one before, and partitions
//! at the committed offsets. So there is one way to recover, the one that a killed member takes,
//! and it does not matter whether a commit that failed took effect.
//!
//! A **zombie** is a member that the group has given up, but that runs on. Its offsets come with
//! the generation of the group that it knows, and Kafka rejects those of an old one. What it sent
//! before is in an open transaction, and the next owner gets no committed offsets until that has
//! ended.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use echoless::KeyHash;
use echoless_durable::JournalError;
use echoless_metrics::{Endpoint, Fields};
use rdkafka::ClientConfig;
use rdkafka::client::ClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{BorrowedHeaders, BorrowedMessage, Headers, Message};
use rdkafka::producer::{BaseProducer, BaseRecord, DeliveryResult, Producer, ProducerContext};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};

use crate::assignment::Assignment;
use crate::config::Config;
use crate::failure::{Calling, Failure};
use crate::key;
use crate::messages::{Repeats, lock, say};
use crate::partition::{Entry, Fate, FilterConfig};
use crate::report::{Counts, Filters};
use crate::shared_keys::SharedKeys;
use crate::topics::{self, Topics};

/// How long a call of a transaction waits.
const CALL: Duration = Duration::from_secs(30);

/// How long a poll waits, and with it a signal.
const POLL: Duration = Duration::from_millis(100);

/// How long reports of deliveries are waited for after a failure.
const REPORTS: Duration = Duration::from_secs(2);

/// The most records, and bytes of them, of a transaction.
const MOST_RECORDS: usize = 100_000;
const MOST_BYTES: usize = 64 << 20;

/// The most failures in a row, with pauses of up to 8 s between them, after which a member gives
/// up.
const MOST_FAILURES: u32 = 20;

/// Another member has come with the same `--instance`.
const FENCED: Option<RDKafkaErrorCode> = Some(RDKafkaErrorCode::FencedInstanceId);

/// Runs until `stop` is set. Says what it did at the end, however that comes. Failures that may
/// pass end it only after many in a row.
pub(crate) fn run(config: &Config, stop: &AtomicBool) -> Result<(), Failure> {
    let shown = Mutex::new(Counts::default().fields(None));
    thread::scope(|scope| {
        let serve = |address| {
            let endpoint = Endpoint::bind(address)?;
            say(&format!("metrics at http://{}/metrics", endpoint.address()));
            endpoint.serve(scope, || lock(&shown).clone())
        };
        let served = config
            .metrics
            .map(|address| serve(address).map_err(|error| Failure::Metrics(address, error)));
        let _served = served.transpose()?;
        run_member(config, stop, &shown)
    })
}

fn run_member(config: &Config, stop: &AtomicBool, shown: &Mutex<Fields>) -> Result<(), Failure> {
    let mut member = Member {
        config,
        stop,
        shown,
        counts: Counts::default(),
        shared_keys: SharedKeys::default(),
        filters: None,
        unwritable: BTreeMap::new(),
        sent: Vec::new(),
    };
    let outcome = member.run();
    if outcome.is_ok() || member.counts != Counts::default() {
        member.report();
    }
    outcome
}

/// What lasts from one session to the next.
struct Member<'a> {
    config: &'a Config,
    stop: &'a AtomicBool,
    /// What `--metrics` shows.
    shown: &'a Mutex<Fields>,
    counts: Counts,
    shared_keys: SharedKeys,
    /// At the end of a session that did not fail.
    filters: Option<Filters>,
    /// Why brokers did not accept records, by partition and offset in the input, and output.
    unwritable: BTreeMap<(i32, i64, &'a str), RDKafkaErrorCode>,
    /// The records that were sent in the transaction at hand.
    sent: Vec<Sent<'a>>,
}

/// A record that was sent.
struct Sent<'a> {
    partition: i32,
    offset: i64,
    topic: &'a str,
    /// Whether the limit of the topic, as it was when the session began, allows its length.
    fits: bool,
}

/// The records of a round, by partition.
type Round<'a> = BTreeMap<i32, Vec<BorrowedMessage<'a>>>;

impl<'a> Member<'a> {
    fn run(&mut self) -> Result<(), Failure> {
        if let Some(FilterConfig { state, .. }) = &self.config.filter {
            fs::create_dir_all(state).map_err(|error| JournalError::Io {
                path: state.clone(),
                error,
            })?;
        }
        let (mut failures, mut is_first) = (0, true);
        while !self.is_stopped() {
            let transactions = self.counts.transactions;
            let found = self.unwritable.len();
            let session = topics::survey(self.config, is_first, self.stop);
            is_first = false;
            let session = session.and_then(|topics| match topics {
                Some(topics) => self.session(topics),
                // Stopped.
                None => Ok(()),
            });
            match session {
                Ok(()) => break,
                Err(Failure::Kafka { error, .. }) if error.rdkafka_error_code() == FENCED => {
                    let name = self.config.consumer.get("group.instance.id");
                    return Err(Failure::Instance(name.unwrap_or_default().to_owned()));
                }
                Err(_) if self.unwritable.len() > found => {}
                Err(failure) if failure.may_pass() => {
                    if self.counts.transactions > transactions {
                        failures = 0;
                    }
                    failures += 1;
                    if failures > MOST_FAILURES {
                        return Err(failure);
                    }
                    say(&format!("begins again at the committed offsets: {failure}"));
                    self.pause(Duration::from_secs(1 << failures.min(4) >> 1));
                }
                Err(failure) => return Err(failure),
            }
        }
        Ok(())
    }

    /// Says what the member has done and how its filters are, if that is known.
    fn report(&self) {
        say(&match &self.filters {
            Some(filters) => format!("{}; {filters}", self.counts),
            None => self.counts.to_string(),
        });
    }

    /// Takes the counts behind a transaction.
    fn count(&mut self, counts: Counts) {
        self.counts = counts;
        if self.config.metrics.is_some() {
            *lock(self.shown) = counts.fields(self.filters.as_ref());
        }
    }

    fn is_stopped(&self) -> bool {
        // Relaxed: the flag is all that the handler publishes.
        self.stop.load(Ordering::Relaxed)
    }

    fn pause(&self, length: Duration) {
        let end = Instant::now() + length;
        while Instant::now() < end && !self.is_stopped() {
            thread::sleep(POLL);
        }
    }

    /// Joins the group and works until the member is stopped or a call fails.
    fn session(&mut self, topics: Topics) -> Result<(), Failure> {
        let config = self.config;
        let settings = producer_settings(config, &topics);
        let filter = config.filter.clone();
        let assignment = Assignment::new(config.input.clone(), topics.clone(), filter);
        let consumer: BaseConsumer<Assignment> = config
            .consumer
            .create_with_context(assignment)
            .map_err(Failure::Settings)?;
        let producer: BaseProducer<Deliveries> = settings
            .create_with_context(Deliveries::default())
            .map_err(Failure::Settings)?;
        producer
            .init_transactions(CALL)
            .calling("begin as a producer")?;
        consumer.subscribe(&[&config.input]).calling("subscribe")?;
        let outcome = self.rounds(&topics, &consumer, &producer);
        let outcome = outcome.map_err(|failure| {
            if matches!(failure, Failure::Kafka { .. }) {
                serve_reports(&producer);
            }
            self.blame(producer.context(), failure)
        });
        self.filters = outcome
            .is_ok()
            .then(|| consumer.context().filters(&consumer));
        // Journals are closed before the group gives their partitions to others.
        consumer.context().close();
        outcome
    }

    fn rounds(
        &mut self,
        topics: &Topics,
        consumer: &BaseConsumer<Assignment>,
        producer: &BaseProducer<Deliveries>,
    ) -> Result<(), Failure> {
        let every = self.config.report;
        let next_report = || Some(Instant::now() + every?);
        let mut report_at = next_report();
        while !self.is_stopped() {
            let (round, mut ended) = self.gather(consumer)?;
            let partitions = consumer.context().partitions();
            ended.retain(|number, end| {
                let partition = partitions.get(number);
                partition.is_some_and(|partition| *end > partition.position())
            });
            drop(partitions);
            if !round.is_empty() || !ended.is_empty() {
                self.write(topics, consumer, producer, &round, &ended)?;
            }
            if report_at.is_some_and(|at| Instant::now() >= at) {
                self.filters = Some(consumer.context().filters(consumer));
                self.count(self.counts);
                self.report();
                report_at = next_report();
            }
        }
        Ok(())
    }

    /// Polls for an interval, or until there are many records. Returns them, and the partitions that
    /// were read to their ends, with the offsets there.
    fn gather<'c>(
        &self,
        consumer: &'c BaseConsumer<Assignment>,
    ) -> Result<(Round<'c>, BTreeMap<i32, i64>), Failure> {
        let mut ended = BTreeMap::new();
        let end = Instant::now() + self.config.interval;
        let (mut round, mut records, mut bytes) = (Round::new(), 0, 0);
        while records < MOST_RECORDS && bytes < MOST_BYTES {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() || self.is_stopped() {
                break;
            }
            let polled = consumer.poll(left.min(POLL));
            // A poll that changes partitions returns no record.
            let changes = consumer.context().take_changes();
            if let Some(failure) = changes.failure {
                return Err(failure);
            }
            for number in changes.partitions {
                // They come again, from where they were opened, or are another member's.
                round.remove(&number);
                ended.remove(&number);
            }
            match polled {
                None => {}
                Some(Ok(message)) => {
                    records += 1;
                    bytes += message.key_len() + message.payload_len();
                    round.entry(message.partition()).or_default().push(message);
                }
                Some(Err(KafkaError::MessageConsumptionFatal(code))) => {
                    let fatal = consumer.client().fatal_error();
                    let code = fatal.map_or(code, |(code, _)| code);
                    return Err(KafkaError::MessageConsumptionFatal(code)).calling("read");
                }
                Some(Err(KafkaError::PartitionEOF(number))) => {
                    // Beyond the last record, if transactions ended there. librdkafka forgets the
                    // position when a partition goes, and passes no end of before.
                    let position = consumer.position().calling("ask for the position")?;
                    let of_partition = position.find_partition(&self.config.input, number);
                    if let Some(Offset::Offset(end)) = of_partition.map(|found| found.offset()) {
                        ended.insert(number, end);
                    }
                }
                // librdkafka goes on by itself.
                Some(Err(error)) => consumer.context().error(error, "while reading"),
            }
        }
        Ok((round, ended))
    }

    /// Judges the records of a round and writes them in a transaction, with their offsets.
    fn write(
        &mut self,
        topics: &Topics,
        consumer: &BaseConsumer<Assignment>,
        producer: &BaseProducer<Deliveries>,
        round: &Round<'_>,
        ended: &BTreeMap<i32, i64>,
    ) -> Result<(), Failure> {
        let config = self.config;
        let mut partitions = consumer.context().partitions();
        let mut counts = self.counts;
        let mut offsets = TopicPartitionList::new();
        self.sent.clear();
        producer
            .begin_transaction()
            .calling("begin a transaction")?;
        let none = Vec::new();
        for (number, partition) in partitions.iter_mut() {
            let messages = round.get(number).unwrap_or(&none);
            let end = ended.get(number);
            if messages.is_empty() && end.is_none_or(|end| *end <= partition.position()) {
                continue;
            }
            let mut entries = Vec::with_capacity(messages.len());
            for message in messages {
                let entry = self.entry(message);
                if let Some(hash) = entry.hash {
                    counts.shared_keys += u64::from(self.is_shared(hash, message)?);
                }
                entries.push(entry);
            }
            let fates = partition.judge(&entries)?;
            for (message, fate) in messages.iter().zip(fates) {
                let (count, topic) = match fate {
                    Fate::Fresh => (&mut counts.fresh, Some(&config.output)),
                    Fate::Unkeyed => (&mut counts.unkeyed, Some(&config.output)),
                    Fate::Late => (&mut counts.late, Some(&config.output)),
                    Fate::Copied => (&mut counts.copied, Some(&config.output)),
                    Fate::Duplicate => (&mut counts.duplicates, config.duplicates.as_ref()),
                    Fate::Again => (&mut counts.again, None),
                };
                *count += 1;
                if let Some(topic) = topic
                    && let Some(reason) = self.send(topics, producer, topic, message)?
                {
                    self.reject(topics, producer, message, reason)?;
                    counts.rejected += 1;
                }
            }
            counts.ahead += partition.take_ahead();
            if let Some(end) = end {
                partition.pass_to(*end);
            }
            partition.save()?;
            if let Some(offset) = partition.uncommitted() {
                let offset = Offset::Offset(offset);
                let added = offsets.add_partition_offset(&config.input, *number, offset);
                added.calling("set an offset")?;
            }
        }
        if offsets.count() == 0 {
            // Nothing was sent, and librdkafka ends such a transaction without the broker.
            producer
                .abort_transaction(CALL)
                .calling("end a transaction")?;
            self.count(counts);
            return Ok(());
        }
        let group = consumer.group_metadata().expect("a consumer of a group");
        producer
            .send_offsets_to_transaction(&offsets, &group, CALL)
            .calling("add offsets to a transaction")?;
        producer
            .commit_transaction(CALL)
            .calling("commit a transaction")?;
        for number in round.keys().chain(ended.keys()) {
            if let Some(partition) = partitions.get_mut(number) {
                partition.set_written();
            }
        }
        counts.transactions += 1;
        self.count(counts);
        Ok(())
    }

    /// What is judged of a record.
    fn entry(&self, message: &BorrowedMessage<'_>) -> Entry {
        let filter = self.config.filter.as_ref();
        Entry {
            offset: message.offset(),
            hash: filter.and_then(|filter| Some(filter.hasher.hash(self.key(message)?))),
            time: message.timestamp().to_millis(),
        }
    }

    /// What identifies a record.
    fn key<'m>(&self, message: &'m BorrowedMessage<'_>) -> Option<Cow<'m, [u8]>> {
        self.config.key.of(message)
    }

    /// Whether the key of a record is in another partition, too, which is said once.
    fn is_shared(&mut self, hash: KeyHash, message: &BorrowedMessage<'_>) -> Result<bool, Failure> {
        let (number, offset) = (message.partition(), message.offset());
        let Some(other) = self.shared_keys.note(hash, number) else {
            return Ok(false);
        };
        let text = format!(
            "the record at offset {offset} of partition {number} has the key of one in partition \
             {other}: duplicates are found within a partition only, so the producer must choose \
             the partition by what identifies a record"
        );
        if self.config.strict {
            return Err(Failure::SharedKey(text));
        }
        if self.counts.shared_keys == 0 {
            say(&text);
            self.counts.shared_keys = 1;
        }
        Ok(true)
    }

    /// Hands a record to the producer as it came, or with another key if it is only copied. Returns
    /// why the topic does not accept it, if it does not.
    fn send(
        &mut self,
        topics: &Topics,
        producer: &BaseProducer<Deliveries>,
        topic: &'a str,
        message: &BorrowedMessage<'_>,
    ) -> Result<Option<String>, Failure> {
        let identity;
        let mut record = BaseRecord::<[u8], [u8], usize>::with_opaque_to(topic, self.sent.len());
        if self.config.filter.is_some() {
            record.partition = Some(message.partition());
            record.key = message.key();
        } else {
            // Without one it has no key: any other would be taken for what identifies it.
            identity = self.config.key.of(message);
            record.key = identity.as_deref();
        }
        record.payload = message.payload();
        record.timestamp = message.timestamp().to_millis();
        record.headers = message
            .headers()
            .filter(|headers| headers.count() > 0)
            .map(BorrowedHeaders::detach);
        let (limit, bytes) = (topics.limit(topic), batch_bytes(&record));
        let too_long = || {
            format!("is {bytes} bytes long as a batch, and max.message.bytes of {topic} is {limit}")
        };
        if bytes > limit && !self.compresses() {
            return Ok(Some(too_long()));
        }
        let (partition, offset) = (message.partition(), message.offset());
        if let Some(code) = self.unwritable.get(&(partition, offset, topic)) {
            return Ok(Some(format!("was not accepted by {topic}: {code}")));
        }
        self.sent.push(Sent {
            partition,
            offset,
            topic,
            fits: bytes <= limit,
        });
        loop {
            match producer.send(record) {
                Ok(()) => return Ok(None),
                Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), back)) => {
                    record = back;
                    producer.poll(Duration::from_millis(10));
                }
                Err((KafkaError::MessageProduction(RDKafkaErrorCode::MessageSizeTooLarge), _)) => {
                    return Ok(Some(format!(
                        "is longer than message.max.bytes of this member, or {}",
                        too_long()
                    )));
                }
                Err((error, _)) => return Err(error).calling("write"),
            }
        }
    }

    /// Whether batches are compressed, and may be shorter than their records: brokers decide then.
    fn compresses(&self) -> bool {
        let names = ["compression.type", "compression.codec"];
        let mut codecs = names
            .iter()
            .filter_map(|name| self.config.producer.get(name));
        codecs.any(|codec| codec != "none")
    }

    /// Sends a record that another topic does not accept for this reason to that of rejected ones.
    fn reject(
        &mut self,
        topics: &Topics,
        producer: &BaseProducer<Deliveries>,
        message: &BorrowedMessage<'_>,
        reason: String,
    ) -> Result<(), Failure> {
        let config = self.config;
        let (offset, number) = (message.offset(), message.partition());
        let place = format!("the record at offset {offset} of partition {number}");
        let place = format!("{place} of {}", config.input);
        let Some(topic) = &config.reject else {
            return Err(Failure::Topic(format!(
                "{place} {reason} (--reject TOPIC sets such records aside)"
            )));
        };
        match self.send(topics, producer, topic, message)? {
            None => Ok(()),
            Some(again) => Err(Failure::Topic(format!("{place} {reason}, and {again}"))),
        }
    }

    /// Notes the records that brokers did not accept, which is why a transaction has failed. Without
    /// a topic for them it is the reason to end.
    fn blame(&mut self, deliveries: &Deliveries, failure: Failure) -> Failure {
        let mut refused = lock(&deliveries.refused);
        for (index, code) in refused.drain(..) {
            let Some(sent) = self.sent.get(index) else {
                continue;
            };
            if sent.fits && code == RDKafkaErrorCode::MessageSizeTooLarge {
                // The limit of the topic has changed, which the next session sees.
                continue;
            }
            if self.config.reject.is_none() {
                let (offset, number) = (sent.offset, sent.partition);
                return Failure::Topic(format!(
                    "the record at offset {offset} of partition {number} of {} was not accepted by \
                     {}: {code} (--reject TOPIC sets such records aside)",
                    self.config.input, sent.topic
                ));
            }
            let record = (sent.partition, sent.offset, sent.topic);
            self.unwritable.insert(record, code);
        }
        failure
    }
}

/// Serves the reports of deliveries that have not been, until one is of a record that was refused:
/// the call that has failed for it need not be one that serves them.
fn serve_reports(producer: &BaseProducer<Deliveries>) {
    let end = Instant::now() + REPORTS;
    producer.poll(Duration::ZERO);
    while producer.in_flight_count() > 0
        && lock(&producer.context().refused).is_empty()
        && Instant::now() < end
    {
        producer.poll(POLL);
    }
}

/// The settings of the producer, whose batches no output rejects as a whole.
fn producer_settings(config: &Config, topics: &Topics) -> ClientConfig {
    /// That of librdkafka.
    const BATCH_BYTES: usize = 1_000_000;
    let mut settings = config.producer.clone();
    let limit = topics.least_limit();
    let given = settings
        .get("batch.size")
        .and_then(|size| size.parse().ok());
    if given.unwrap_or(BATCH_BYTES) > limit {
        if given.is_some() {
            say(&format!(
                "batches have at most {limit} bytes, which is the least max.message.bytes of the \
                 topics, instead of the batch.size that is set"
            ));
        }
        settings.set("batch.size", limit.to_string());
    }
    settings
}

/// The length of a record as a batch of its own, without compression, in bytes.
fn batch_bytes(record: &BaseRecord<'_, [u8], [u8], usize>) -> usize {
    /// What is in front of the records of a batch.
    const HEAD: usize = 61;
    let field = |bytes: Option<&[u8]>| {
        let length = bytes.map_or(0, <[u8]>::len);
        varint_bytes(length) + length
    };
    // Attributes, and the differences of time and offset, which are 0.
    let mut bytes = 3 + field(record.key) + field(record.payload);
    let headers = record.headers.as_ref();
    bytes += varint_bytes(headers.map_or(0, Headers::count));
    for header in headers.iter().flat_map(|headers| headers.iter()) {
        bytes += field(Some(header.key.as_bytes())) + field(header.value);
    }
    HEAD + varint_bytes(bytes) + bytes
}

/// The bytes of a length, as a signed number of variable length.
const fn varint_bytes(length: usize) -> usize {
    let bits = usize::BITS - length.leading_zeros() + 1;
    bits.div_ceil(7) as usize
}

impl key::Record for BorrowedMessage<'_> {
    fn key(&self) -> Option<&[u8]> {
        Message::key(self)
    }

    fn value(&self) -> Option<&[u8]> {
        self.payload()
    }

    fn header(&self, name: &str) -> Option<&[u8]> {
        let headers = self.headers()?;
        let named = headers.iter().filter(|header| header.key == name);
        named.last()?.value
    }
}

/// Notes which records brokers do not accept. All other reports of deliveries need no answer: a
/// record that cannot be delivered fails its transaction.
#[derive(Debug, Default)]
struct Deliveries {
    repeats: Repeats,
    /// Their numbers in the transaction.
    refused: Mutex<Vec<(usize, RDKafkaErrorCode)>>,
}

/// Why brokers do not accept a record, however often it comes.
const REFUSED: [RDKafkaErrorCode; 3] = [
    RDKafkaErrorCode::MessageSizeTooLarge,
    RDKafkaErrorCode::InvalidTimestamp,
    RDKafkaErrorCode::InvalidRecord,
];

impl ClientContext for Deliveries {
    fn error(&self, error: KafkaError, reason: &str) {
        self.repeats.say(&error, reason);
    }
}

impl ProducerContext for Deliveries {
    type DeliveryOpaque = usize;

    fn delivery(&self, result: &DeliveryResult<'_>, number: usize) {
        if let Err((KafkaError::MessageProduction(code), _)) = result
            && REFUSED.contains(code)
        {
            lock(&self.refused).push((number, *code));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_batches_are_those_of_the_format() {
        for (length, bytes) in [
            (0, 1),
            (63, 1),
            (64, 2),
            (8_191, 2),
            (8_192, 3),
            (1 << 20, 4),
        ] {
            assert_eq!(varint_bytes(length), bytes, "{length}");
        }
        let value = [0; 1_000];
        let mut record = BaseRecord::<[u8], [u8], usize>::with_opaque_to("topic", 0);
        record.key = Some(b"key");
        record.payload = Some(&value);
        // 61, the length of the record, 3, the key, the value, no headers.
        assert_eq!(batch_bytes(&record), 61 + 2 + 3 + 4 + 1_002 + 1);
        let header = rdkafka::message::Header {
            key: "name",
            value: Some(&b"seven"[..]),
        };
        record.headers = Some(rdkafka::message::OwnedHeaders::new().insert(header));
        assert_eq!(batch_bytes(&record), 61 + 2 + 3 + 4 + 1_002 + 1 + 5 + 6);
    }
}
