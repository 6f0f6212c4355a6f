//! The first contact with the cluster: what cannot work ends a member here, with one line. Later
//! failures pass, and the member begins again.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rdkafka::client::ClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};

use crate::config::Config;
use crate::failure::Failure;

/// How long the brokers may take to answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// The first error that librdkafka reports, which says more than that a call timed out.
#[derive(Debug, Default)]
struct FirstError(Mutex<String>);

impl ClientContext for FirstError {
    fn error(&self, _error: KafkaError, reason: &str) {
        let mut first = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if first.is_empty() {
            reason.clone_into(&mut first);
        }
    }
}

impl ConsumerContext for FirstError {}

/// Checks that the topics exist, and that the partitions of the input are in those that have them
/// under the same number.
///
/// # Errors
/// [`Failure::Settings`] if librdkafka rejects the settings, [`Failure::Topic`] for all else.
pub(crate) fn check(config: &Config) -> Result<(), Failure> {
    let consumer: BaseConsumer<FirstError> = config
        .consumer
        .create_with_context(FirstError::default())
        .map_err(Failure::Settings)?;
    let input = partitions(&consumer, config, &config.input)?;
    for topic in [Some(&config.output), config.duplicates.as_ref()] {
        let Some(topic) = topic else { continue };
        let found = partitions(&consumer, config, topic)?;
        if found < input && config.filter.is_some() {
            return Err(Failure::Topic(format!(
                "the topic {topic} has {found} partitions: expected at least {input}, as many as {}",
                config.input
            )));
        }
    }
    Ok(())
}

/// The number of partitions of a topic.
fn partitions(
    consumer: &BaseConsumer<FirstError>,
    config: &Config,
    topic: &str,
) -> Result<usize, Failure> {
    let metadata = consumer.fetch_metadata(Some(topic), PATIENCE);
    let metadata = metadata.map_err(|error| {
        // Errors wait for a poll.
        consumer.poll(Duration::from_secs(1));
        let FirstError(first) = &**consumer.context();
        let first = first.lock().unwrap_or_else(PoisonError::into_inner);
        let reason = match first.is_empty() {
            true => error.to_string(),
            false => first.clone(),
        };
        let brokers = config.consumer.get("bootstrap.servers").unwrap_or_default();
        Failure::Topic(format!("no answer from --brokers {brokers}: {reason}"))
    })?;
    let found = metadata.topics().iter().find(|found| found.name() == topic);
    match found.map(|found| (found.partitions().len(), found.error())) {
        Some((partitions @ 1.., None)) => Ok(partitions),
        Some((_, Some(error))) if RDKafkaErrorCode::from(error) != UNKNOWN => {
            let error = RDKafkaErrorCode::from(error);
            Err(Failure::Topic(format!("the topic {topic}: {error}")))
        }
        _ => Err(Failure::Topic(format!("the topic {topic} does not exist"))),
    }
}

/// What brokers say of topics that do not exist.
const UNKNOWN: RDKafkaErrorCode = RDKafkaErrorCode::UnknownTopicOrPartition;
