//! Why a member ends, or begins again.

use std::path::PathBuf;

use echoless::{BuildError, SpecError};
use echoless_durable::{ChangedOption, JournalError};
use rdkafka::error::KafkaError;
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
         on, or remove the folder to pass the topic from its first record",
        folder.display()
    )]
    Forgotten {
        /// The folder of the partition.
        folder: PathBuf,
        /// The offset behind the records in the filter.
        offset: i64,
    },
    /// A topic that does not fit, or brokers that do not answer.
    #[error("{0}")]
    Topic(String),
    /// One key in two partitions, with `--strict`.
    #[error("{0}")]
    SharedKey(String),
    /// A setting that librdkafka rejects.
    #[error("{0}")]
    Settings(KafkaError),
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
    /// Whether another process has a journal, which it may give back.
    pub(crate) const fn is_locked(&self) -> bool {
        matches!(self, Self::State(JournalError::Locked(_)))
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
