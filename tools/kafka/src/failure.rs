//! Why a member ends, or begins again.

use std::net::SocketAddr;
use std::path::PathBuf;

use echoless::{BuildError, SpecError};
use echoless_durable::{ChangedOption, JournalError};
use rdkafka::error::KafkaError;
use rdkafka::types::RDKafkaConfRes;
use thiserror::Error;

/// Why a member ends, or begins again.
#[derive(Debug, Error)]
pub(crate) enum Failure {
    /// An option with an invalid value.
    #[error(transparent)]
    Option(#[from] SpecError),
    /// An option that must not change.
    #[error(transparent)]
    Changed(#[from] ChangedOption),
    /// A file that an option names and that cannot be read.
    #[error("{}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        #[source]
        error: std::io::Error,
    },
    /// A filter that cannot be built.
    #[error(transparent)]
    Filter(#[from] BuildError),
    /// A state that cannot be read or written.
    #[error(transparent)]
    State(#[from] JournalError),
    /// Another member has the same `--instance`.
    #[error("another member has come with --instance {0}: expected a name of its own for each")]
    Instance(String),
    /// A group without an offset that had one.
    #[error(
        "the group has no offset for a partition whose filter in {} is at offset {offset}: Kafka \
         forgets the offsets of a group that is away for long. Set the group to this offset to go \
         on, or remove the folder to pass the topic from its first record{}",
        folder.display(),
        if *may_be_anew { "; if the topic was created anew, remove the folder" } else { "" }
    )]
    Forgotten {
        /// The folder of the partition.
        folder: PathBuf,
        /// The offset behind the records in the filter.
        offset: i64,
        /// Whether the topic is not known to be the same.
        may_be_anew: bool,
    },
    /// Another topic of the same name.
    #[error(
        "the topic was created anew since the state {} was written: its offsets begin again. To \
         pass it from its first record, remove this folder, and reset the offsets of the group \
         (kafka-consumer-groups --reset-offsets --to-earliest)",
        folder.display()
    )]
    Anew {
        /// The folder of the partition.
        folder: PathBuf,
    },
    /// A partition that an output lacks, in a topic that got more of them.
    #[error("{0}")]
    Partitions(String),
    /// A topic that does not fit, or brokers that do not answer.
    #[error("{0}")]
    Topic(String),
    /// One key in two partitions, with `--strict`.
    #[error("{0}")]
    SharedKey(String),
    /// A setting that librdkafka rejects. Its value may be a password.
    #[error("{}", rejected_setting(.0))]
    Settings(KafkaError),
    /// The address of `--metrics` cannot be taken.
    #[error("--metrics {0}: {1}")]
    Metrics(SocketAddr, std::io::Error),
    /// The handlers of signals cannot be installed.
    #[error("signals: {0}")]
    Signals(std::io::Error),
    /// A call of Kafka that failed. All that is not committed is forgotten, and the member begins
    /// again at the committed offsets.
    #[error("{call}: {error}")]
    Kafka {
        /// What was tried.
        call: &'static str,
        /// The error of librdkafka.
        #[source]
        error: KafkaError,
    },
}

impl Failure {
    /// Whether the member begins again at the committed offsets.
    pub(crate) const fn may_pass(&self) -> bool {
        matches!(self, Self::Kafka { .. } | Self::Partitions(_)) || self.is_locked()
    }

    /// Whether another process has a journal, which it may give back.
    pub(crate) const fn is_locked(&self) -> bool {
        matches!(self, Self::State(JournalError::Locked(_)))
    }
}

fn rejected_setting(error: &KafkaError) -> String {
    match error {
        KafkaError::ClientConfig(RDKafkaConfRes::RD_KAFKA_CONF_UNKNOWN, _, name, _) => {
            format!("invalid setting {name}: librdkafka has none of this name")
        }
        KafkaError::ClientConfig(_, _, name, _) if !name.is_empty() => {
            format!("invalid setting {name}: librdkafka does not accept its value")
        }
        other => other.to_string(),
    }
}

/// Says what was tried.
pub(crate) trait Calling<T> {
    /// Turns an error of Kafka into a [`Failure`].
    fn calling(self, call: &'static str) -> Result<T, Failure>;
}

impl<T> Calling<T> for Result<T, KafkaError> {
    fn calling(self, call: &'static str) -> Result<T, Failure> {
        self.map_err(|error| Failure::Kafka { call, error })
    }
}
