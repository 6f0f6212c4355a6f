//! What the brokers say of the topics when a session begins: what cannot work ends a member here,
//! with one line. What may come, such as a topic that is created at the same time, is waited for.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rdkafka::admin::{AdminClient, AdminOptions, OwnedResourceSpecifier, ResourceSpecifier};
use rdkafka::client::{ClientContext, DefaultClientContext};
use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};

use crate::config::Config;
use crate::failure::Failure;
use crate::messages::{lock, say};
use crate::topic_id::topic_id;

/// How long the brokers may take to answer, and topics to come.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long a call waits that the member can do without.
const CALL: Duration = Duration::from_secs(10);

/// Between two tries.
const PAUSE: Duration = Duration::from_millis(500);

/// The longest batch of a topic, in bytes, unless it has a setting of its own.
const MOST_BATCH_BYTES: usize = 1_048_588;

/// The topics of a member.
#[derive(Debug, Clone, Default)]
pub(crate) struct Topics {
    /// The id of the input, which another topic of its name does not have.
    pub(crate) input_id: Option<String>,
    /// The partitions of the input.
    pub(crate) input_partitions: usize,
    /// The least number of partitions of the outputs.
    pub(crate) output_partitions: usize,
    /// The longest batch that each output accepts, in bytes.
    pub(crate) limits: BTreeMap<String, usize>,
}

impl Topics {
    /// The longest batch that an output accepts, in bytes.
    pub(crate) fn limit(&self, topic: &str) -> usize {
        self.limits.get(topic).copied().unwrap_or(MOST_BATCH_BYTES)
    }

    /// The longest batch that all outputs accept, in bytes.
    pub(crate) fn least_limit(&self) -> usize {
        let limits = self.limits.values().copied();
        limits.min().unwrap_or(MOST_BATCH_BYTES)
    }
}

/// The first error that librdkafka reports, which says more than that a call timed out.
#[derive(Debug, Default)]
struct FirstError(Mutex<String>);

impl ClientContext for FirstError {
    fn error(&self, _error: KafkaError, reason: &str) {
        let mut first = lock(&self.0);
        if first.is_empty() {
            reason.clone_into(&mut first);
        }
    }
}

impl ConsumerContext for FirstError {}

/// Why the topics do not fit yet.
enum Unready {
    /// It passes, or comes to be: what to say meanwhile, and at the end.
    Wait(String),
    Failure(Failure),
}

/// Asks for the topics. The partitions of the input must be in the outputs under the same number.
/// Waits for what is missing. `None` if `stop` was set meanwhile. Fails with [`Failure::Settings`]
/// if librdkafka rejects the settings, and with [`Failure::Topic`] if something is still missing. If
/// brokers do not answer, that is [`Failure::Topic`] in the first session, [`Failure::Kafka`] later.
pub(crate) fn survey(
    config: &Config,
    is_first: bool,
    stop: &AtomicBool,
) -> Result<Option<Topics>, Failure> {
    let consumer: BaseConsumer<FirstError> = config
        .consumer
        .create_with_context(FirstError::default())
        .map_err(Failure::Settings)?;
    let deadline = Instant::now() + PATIENCE;
    let mut said = String::new();
    // Relaxed: the flag is all that the handler publishes.
    while !stop.load(Ordering::Relaxed) {
        match look(&consumer, config, is_first) {
            Ok(mut topics) => {
                topics.limits = limits(config);
                return Ok(Some(topics));
            }
            Err(Unready::Failure(failure)) => return Err(failure),
            Err(Unready::Wait(reason)) if Instant::now() >= deadline => {
                return Err(Failure::Topic(reason));
            }
            Err(Unready::Wait(reason)) => {
                if said != reason {
                    say(&format!("waits: {reason}"));
                    said = reason;
                }
                thread::sleep(PAUSE);
            }
        }
    }
    Ok(None)
}

fn look(
    consumer: &BaseConsumer<FirstError>,
    config: &Config,
    is_first: bool,
) -> Result<Topics, Unready> {
    let input = partitions(consumer, config, &config.input, is_first)?;
    let mut least = usize::MAX;
    for topic in config.outputs() {
        let found = partitions(consumer, config, topic, is_first)?;
        if found < input && config.filter.is_some() {
            return Err(Unready::Wait(format!(
                "the topic {topic} has {found} partitions: expected at least {input}, as many as {}",
                config.input
            )));
        }
        least = least.min(found);
    }
    Ok(Topics {
        input_id: topic_id(consumer.client(), &config.input, CALL),
        input_partitions: input,
        output_partitions: least,
        limits: BTreeMap::new(),
    })
}

/// The number of partitions of a topic.
fn partitions(
    consumer: &BaseConsumer<FirstError>,
    config: &Config,
    topic: &str,
    is_first: bool,
) -> Result<usize, Unready> {
    let metadata = match consumer.fetch_metadata(Some(topic), PATIENCE) {
        Ok(metadata) => metadata,
        Err(error) if !is_first => {
            let call = "ask for the topics";
            return Err(Unready::Failure(Failure::Kafka { call, error }));
        }
        Err(error) => {
            // Errors wait for a poll.
            consumer.poll(Duration::from_secs(1));
            let FirstError(first) = &**consumer.context();
            let first = lock(first);
            let reason = match first.is_empty() {
                true => error.to_string(),
                false => first.clone(),
            };
            let brokers = config.consumer.get("bootstrap.servers").unwrap_or_default();
            let text = format!("no answer from --brokers {brokers}: {reason}");
            return Err(Unready::Failure(Failure::Topic(text)));
        }
    };
    let found = metadata.topics().iter().find(|found| found.name() == topic);
    match found.map(|found| (found.partitions().len(), found.error())) {
        Some((partitions @ 1.., None)) => Ok(partitions),
        Some((_, Some(error))) if !PASSING.contains(&RDKafkaErrorCode::from(error)) => {
            let error = RDKafkaErrorCode::from(error);
            let text = format!("the topic {topic}: {error}");
            Err(Unready::Failure(Failure::Topic(text)))
        }
        _ => Err(Unready::Wait(format!("the topic {topic} does not exist"))),
    }
}

/// What brokers say of topics that do not exist, or were created just now.
const PASSING: [RDKafkaErrorCode; 3] = [
    RDKafkaErrorCode::UnknownTopicOrPartition,
    RDKafkaErrorCode::UnknownTopic,
    RDKafkaErrorCode::LeaderNotAvailable,
];

/// The longest batches that the outputs accept, where the brokers tell.
fn limits(config: &Config) -> BTreeMap<String, usize> {
    let asked = || -> Result<_, KafkaError> {
        let admin: AdminClient<DefaultClientContext> = config.client.create()?;
        let topics = config.outputs().map(ResourceSpecifier::Topic);
        let topics: Vec<ResourceSpecifier<'_>> = topics.collect();
        let options = AdminOptions::new().request_timeout(Some(CALL));
        futures_executor::block_on(admin.describe_configs(&topics, &options))
    };
    let mut limits = BTreeMap::new();
    let reason = match asked() {
        Ok(answers) => {
            for answer in answers.into_iter().flatten() {
                let setting = answer.get("max.message.bytes");
                let limit = setting.and_then(|setting| setting.value.as_ref()?.parse().ok());
                if let (OwnedResourceSpecifier::Topic(topic), Some(limit)) =
                    (&answer.specifier, limit)
                {
                    limits.insert(topic.clone(), limit);
                }
            }
            "this member may not describe them".to_owned()
        }
        Err(error) => error.to_string(),
    };
    for topic in config
        .outputs()
        .filter(|topic| !limits.contains_key(*topic))
    {
        say(&format!(
            "the settings of the topic {topic} are not known ({reason}): its max.message.bytes is \
             taken to be {MOST_BATCH_BYTES}"
        ));
    }
    limits
}
