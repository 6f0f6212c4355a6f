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
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use echoless::KeyHash;
use echoless_durable::JournalError;
use rdkafka::client::ClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{BorrowedHeaders, BorrowedMessage, Headers, Message};
use rdkafka::producer::{BaseProducer, BaseRecord, DeliveryResult, Producer, ProducerContext};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};

use crate::assignment::Assignment;
use crate::config::Config;
use crate::failure::{Calling, Failure};
use crate::messages::{Repeats, say};
use crate::partition::{Entry, Fate, FilterConfig};
use crate::report::{Counts, Filters};
use crate::shared_keys::SharedKeys;
use crate::topics;

/// How long a call of a transaction waits.
const CALL: Duration = Duration::from_secs(30);

/// How long a poll waits, and with it a signal.
const POLL: Duration = Duration::from_millis(100);

/// The most records, and bytes of them, of a transaction.
const MOST_RECORDS: usize = 100_000;
const MOST_BYTES: usize = 64 << 20;

/// The most failures in a row, with pauses of up to 8 s between them, after which a member gives
/// up.
const MOST_FAILURES: u32 = 20;

/// Another member has come with the same `--instance`.
const FENCED: Option<RDKafkaErrorCode> = Some(RDKafkaErrorCode::FencedInstanceId);

/// Runs until `stop` is set. Says what it did at the end, however that comes.
///
/// # Errors
/// [`Failure`]; one that may pass only after many in a row.
pub(crate) fn run(config: &Config, stop: &AtomicBool) -> Result<(), Failure> {
    let mut member = Member {
        config,
        stop,
        counts: Counts::default(),
        shared_keys: SharedKeys::default(),
        filters: None,
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
    counts: Counts,
    shared_keys: SharedKeys,
    /// At the end of a session that did not fail.
    filters: Option<Filters>,
}

/// The records of a round, by partition.
type Round<'a> = BTreeMap<i32, Vec<BorrowedMessage<'a>>>;

impl Member<'_> {
    fn run(&mut self) -> Result<(), Failure> {
        if let Some(FilterConfig { state, .. }) = &self.config.filter {
            fs::create_dir_all(state).map_err(|error| JournalError::Io {
                path: state.clone(),
                error,
            })?;
        }
        topics::check(self.config)?;
        let mut failures = 0;
        while !self.is_stopped() {
            let transactions = self.counts.transactions;
            match self.session() {
                Ok(()) => break,
                Err(Failure::Kafka { error, .. }) if error.rdkafka_error_code() == FENCED => {
                    let name = self.config.consumer.get("group.instance.id");
                    return Err(Failure::Instance(name.unwrap_or_default().to_owned()));
                }
                Err(failure) if matches!(failure, Failure::Kafka { .. }) || failure.is_locked() => {
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
    fn session(&mut self) -> Result<(), Failure> {
        let config = self.config;
        let assignment = Assignment::new(config.input.clone(), config.filter.clone());
        let consumer: BaseConsumer<Assignment> = config
            .consumer
            .create_with_context(assignment)
            .map_err(Failure::Settings)?;
        let producer: BaseProducer<Deliveries> = config
            .producer
            .create_with_context(Deliveries::default())
            .map_err(Failure::Settings)?;
        producer
            .init_transactions(CALL)
            .calling("begin as a producer")?;
        consumer.subscribe(&[&config.input]).calling("subscribe")?;
        let outcome = self.rounds(&consumer, &producer);
        self.filters = outcome
            .is_ok()
            .then(|| consumer.context().filters(&consumer));
        // Journals are closed before the group gives their partitions to others.
        consumer.context().close();
        outcome
    }

    fn rounds(
        &mut self,
        consumer: &BaseConsumer<Assignment>,
        producer: &BaseProducer<Deliveries>,
    ) -> Result<(), Failure> {
        let every = self.config.report;
        let next_report = || Some(Instant::now() + every?);
        let mut report_at = next_report();
        while !self.is_stopped() {
            let round = self.gather(consumer)?;
            if !round.is_empty() {
                self.write(consumer, producer, &round)?;
            }
            if report_at.is_some_and(|at| Instant::now() >= at) {
                self.filters = Some(consumer.context().filters(consumer));
                self.report();
                report_at = next_report();
            }
        }
        Ok(())
    }

    /// Polls for an interval, or until there are many records.
    fn gather<'c>(&self, consumer: &'c BaseConsumer<Assignment>) -> Result<Round<'c>, Failure> {
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
                // librdkafka goes on by itself.
                Some(Err(error)) => consumer.context().error(error, "while reading"),
            }
        }
        Ok(round)
    }

    /// Judges the records of a round and writes them in a transaction, with their offsets.
    fn write(
        &mut self,
        consumer: &BaseConsumer<Assignment>,
        producer: &BaseProducer<Deliveries>,
        round: &Round<'_>,
    ) -> Result<(), Failure> {
        let config = self.config;
        let mut partitions = consumer.context().partitions();
        let mut counts = self.counts;
        let mut offsets = TopicPartitionList::new();
        producer
            .begin_transaction()
            .calling("begin a transaction")?;
        for (number, messages) in round {
            let Some(partition) = partitions.get_mut(number) else {
                continue;
            };
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
                if let Some(topic) = topic {
                    self.send(producer, topic, message)?;
                }
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
            self.counts = counts;
            return Ok(());
        }
        let group = consumer.group_metadata().expect("a consumer of a group");
        producer
            .send_offsets_to_transaction(&offsets, &group, CALL)
            .calling("add offsets to a transaction")?;
        producer
            .commit_transaction(CALL)
            .calling("commit a transaction")?;
        for number in round.keys() {
            if let Some(partition) = partitions.get_mut(number) {
                partition.set_written();
            }
        }
        counts.transactions += 1;
        self.counts = counts;
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
        let key = &self.config.key;
        key.of(message.key(), message.payload())
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

    /// Hands a record to the producer as it came, or with another key if it is only copied.
    fn send(
        &self,
        producer: &BaseProducer<Deliveries>,
        topic: &str,
        message: &BorrowedMessage<'_>,
    ) -> Result<(), Failure> {
        let identity;
        let mut record = BaseRecord::<[u8], [u8]>::to(topic);
        if self.config.filter.is_some() {
            record.partition = Some(message.partition());
            record.key = message.key();
        } else {
            // Without one it has no key: any other would be taken for what identifies it.
            identity = self.key(message);
            record.key = identity.as_deref();
        }
        record.payload = message.payload();
        record.timestamp = message.timestamp().to_millis();
        record.headers = message
            .headers()
            .filter(|headers| headers.count() > 0)
            .map(BorrowedHeaders::detach);
        loop {
            match producer.send(record) {
                Ok(()) => return Ok(()),
                Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), back)) => {
                    record = back;
                    producer.poll(Duration::from_millis(10));
                }
                Err((KafkaError::MessageProduction(RDKafkaErrorCode::MessageSizeTooLarge), _)) => {
                    return Err(Failure::Topic(format!(
                        "the record at offset {} of partition {} is larger than message.max.bytes \
                         of this member: raise it with -c, and max.message.bytes of the topic {topic}",
                        message.offset(),
                        message.partition()
                    )));
                }
                Err((error, _)) => return Err(error).calling("write"),
            }
        }
    }
}

/// Reports of deliveries need no answer: a record that cannot be delivered fails its transaction.
#[derive(Debug, Default)]
struct Deliveries(Repeats);

impl ClientContext for Deliveries {
    fn error(&self, error: KafkaError, reason: &str) {
        self.0.say(&error, reason);
    }
}

impl ProducerContext for Deliveries {
    type DeliveryOpaque = ();

    fn delivery(&self, _result: &DeliveryResult<'_>, (): ()) {}
}
