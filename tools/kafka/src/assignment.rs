//! The partitions that a member has, which come and go with the members of its group.
//!
//! Kafka calls back when partitions come or go, from inside of a poll. No transaction is open then
//! (`session.rs`), so a partition that goes has nothing but records that nobody has judged: its
//! journal is closed, and the next owner opens it.

use std::collections::BTreeMap;
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use echoless_durable::storage::{RealStorage, Storage};
use rdkafka::client::ClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext, RebalanceProtocol};
use rdkafka::error::{KafkaError, KafkaResult, RDKafkaErrorCode};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList, TopicPartitionListElem};
use rdkafka::types::RDKafkaRespErr;

use crate::failure::{Calling, Failure};
use crate::messages::{Repeats, lock, say};
use crate::partition::{FilterConfig, Partition};
use crate::report::Filters;
use crate::topics::Topics;

/// How long an owner waits in one callback for what those before it hold: their unfinished
/// transactions, which Kafka aborts when they time out, and their journals. Below the 5 minutes
/// after which a member that does not poll is excluded.
const MOST_WAIT: Duration = Duration::from_secs(120);

/// How long one call waits.
const CALL: Duration = Duration::from_secs(10);

/// How long a call waits that nothing depends on.
const LAG_CALL: Duration = Duration::from_secs(1);

/// Between two tries.
const PAUSE: Duration = Duration::from_millis(200);

/// The partitions of a member, and the callbacks that change them.
pub(crate) struct Assignment {
    topic: String,
    /// As they were when the session began.
    topics: Topics,
    filter: Option<FilterConfig>,
    storage: Arc<dyn Storage>,
    partitions: Mutex<BTreeMap<i32, Partition>>,
    changes: Mutex<Changes>,
    is_closed: AtomicBool,
    repeats: Repeats,
}

/// What callbacks did since the last look.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    /// Partitions that came or went.
    pub(crate) partitions: Vec<i32>,
    /// Why one could not be opened.
    pub(crate) failure: Option<Failure>,
}

impl Assignment {
    /// No partitions yet. Without a filter they are copied.
    pub(crate) fn new(topic: String, topics: Topics, filter: Option<FilterConfig>) -> Self {
        Self {
            topic,
            topics,
            filter,
            storage: Arc::new(RealStorage),
            partitions: Mutex::default(),
            changes: Mutex::default(),
            is_closed: AtomicBool::new(false),
            repeats: Repeats::default(),
        }
    }

    /// The partitions.
    pub(crate) fn partitions(&self) -> MutexGuard<'_, BTreeMap<i32, Partition>> {
        lock(&self.partitions)
    }

    /// The state of the filters.
    pub(crate) fn filters(&self, consumer: &BaseConsumer<Self>) -> Filters {
        let partitions = self.partitions();
        let lag = partitions.iter().map(|(number, partition)| {
            let ends = consumer.fetch_watermarks(&self.topic, *number, LAG_CALL);
            Some((ends.ok()?.1 - partition.position()).max(0))
        });
        Filters {
            // Ends with the first call that fails.
            lag: lag.sum(),
            partitions: partitions.len(),
            reports: partitions.values().filter_map(Partition::report).collect(),
        }
    }

    /// Closes the partitions, and opens no other ones. The consumer polls while it is dropped, and
    /// may get partitions then, but no committed offsets.
    pub(crate) fn close(&self) {
        // Relaxed: callbacks run in this thread.
        self.is_closed.store(true, Ordering::Relaxed);
        self.partitions().clear();
    }

    /// What callbacks did since the last call.
    pub(crate) fn take_changes(&self) -> Changes {
        mem::take(&mut *lock(&self.changes))
    }

    /// Opens partitions that this member gets, and sets the offsets to read them from.
    fn open(
        &self,
        consumer: &BaseConsumer<Self>,
        list: &mut TopicPartitionList,
    ) -> Result<(), Failure> {
        let deadline = Instant::now() + MOST_WAIT;
        let mut partitions_before = None;
        for element in committed(consumer, list, deadline)?.elements() {
            let number = element.partition();
            if self.filter.is_some() && number as usize >= self.topics.output_partitions {
                return Err(Failure::Partitions(format!(
                    "an output has {} partitions, and {} a partition {number}",
                    self.topics.output_partitions, self.topic
                )));
            }
            let ends = patiently(deadline, || {
                consumer.fetch_watermarks(&self.topic, number, CALL)
            });
            let (first, end) = ends.calling("ask for the ends of a partition")?;
            let of_group = match element.offset() {
                Offset::Offset(committed) => Some(committed),
                // A new group.
                _ => None,
            };
            let committed = of_group.unwrap_or(first);
            if committed > end {
                return Err(Failure::Topic(format!(
                    "the group is at offset {committed} of partition {number} of {}, which ends at \
                     {end}: if the topic was created anew, reset the offsets of the group \
                     (kafka-consumer-groups --reset-offsets --to-earliest)",
                    self.topic
                )));
            }
            if committed < first {
                let lost = first - committed;
                say(&format!(
                    "partition {number}: {lost} offsets were removed before they were read"
                ));
            }
            let partition = self.open_one(number, of_group, first, deadline)?;
            partitions_before = partitions_before.or(partition.partitions_before());
            let start = partition.start(first);
            let behind = partition.behind(start);
            say(&format!(
                "partition {number}: from offset {committed}, {behind} before it are read again"
            ));
            let offset = Offset::Offset(start);
            list.set_partition_offset(&self.topic, number, offset)
                .calling("set an offset")?;
            self.partitions().insert(number, partition);
        }
        if let Some(before) = partitions_before {
            say(&format!(
                "{} has {} partitions, and had {before}: keys that have moved to another one are not \
                 known there",
                self.topic, self.topics.input_partitions
            ));
        }
        Ok(())
    }

    /// Opens a partition once the owner before has closed it.
    fn open_one(
        &self,
        number: i32,
        committed: Option<i64>,
        first: i64,
        deadline: Instant,
    ) -> Result<Partition, Failure> {
        let Some(filter) = &self.filter else {
            return Ok(Partition::copied_from(committed.unwrap_or(first)));
        };
        let folder = filter.state.join(number.to_string());
        loop {
            match Partition::open(
                &self.storage,
                &folder,
                filter,
                &self.topics,
                committed,
                first,
            ) {
                Err(failure) if failure.is_locked() && Instant::now() < deadline => {
                    thread::sleep(PAUSE);
                }
                opened => return opened,
            }
        }
    }
}

impl ClientContext for Assignment {
    fn error(&self, error: KafkaError, reason: &str) {
        // A poll returns it, too.
        if error.rdkafka_error_code() != Some(RDKafkaErrorCode::PartitionEOF) {
            self.repeats.say(&error, reason);
        }
    }
}

impl ConsumerContext for Assignment {
    fn rebalance(
        &self,
        consumer: &BaseConsumer<Self>,
        event: RDKafkaRespErr,
        list: &mut TopicPartitionList,
    ) {
        let numbers: Vec<i32> = list
            .elements()
            .iter()
            .map(TopicPartitionListElem::partition)
            .collect();
        let is_cooperative = matches!(
            consumer.rebalance_protocol(),
            RebalanceProtocol::Cooperative
        );
        let mut outcome = Ok(());
        let assigned = if event == RDKafkaRespErr::RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS {
            if !self.is_closed.load(Ordering::Relaxed) {
                outcome = self.open(consumer, list);
            }
            // After a failure, too: the state of librdkafka must follow. No record of a partition
            // that is not opened is used.
            match is_cooperative {
                true => consumer.incremental_assign(list),
                false => consumer.assign(list),
            }
        } else {
            self.partitions()
                .retain(|number, _| !numbers.contains(number));
            match is_cooperative {
                true => consumer.incremental_unassign(list),
                false => consumer.unassign(),
            }
        };
        let mut changes = lock(&self.changes);
        changes.partitions.extend(numbers);
        if let Err(failure) = outcome.and(assigned.calling("assign partitions")) {
            changes.failure.get_or_insert(failure);
        }
    }
}

/// The committed offsets of the group. With `isolation.level` `read_committed` they are not told
/// before all transactions that would change them have ended.
fn committed(
    consumer: &BaseConsumer<Assignment>,
    list: &TopicPartitionList,
    deadline: Instant,
) -> Result<TopicPartitionList, Failure> {
    let committed = patiently(deadline, || {
        let committed = consumer.committed_offsets(list.clone(), CALL)?;
        committed
            .elements()
            .iter()
            .try_for_each(TopicPartitionListElem::error)?;
        Ok(committed)
    });
    committed.calling("ask for committed offsets, which wait for open transactions")
}

/// Repeats a call until it succeeds, or until the deadline.
fn patiently<T>(deadline: Instant, mut call: impl FnMut() -> KafkaResult<T>) -> KafkaResult<T> {
    loop {
        match call() {
            Err(_) if Instant::now() < deadline => thread::sleep(PAUSE),
            outcome => return outcome,
        }
    }
}
