//! The errors of framing: which byte of the file, what was found there, what is expected.

use thiserror::Error;

/// The command that makes a file of a kind that Wireshark knows one that is framed here.
const CONVERT: &str = "editcap -F pcapng FILE -";
const AND_CONVERT: &str = " (editcap -F pcapng FILE - converts it)";

/// A capture file that cannot be framed further. The blocks before the error are good.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FrameError {
    /// The input has no bytes.
    #[error("the file is empty: expected a pcap or pcapng file")]
    Empty,
    /// The input begins like no known file.
    #[error(
        "invalid magic={found} at byte 0: expected a pcap or pcapng file ({CONVERT} converts many \
         others, such as ERF)"
    )]
    Unrecognised {
        /// The first bytes in hexadecimal.
        found: String,
    },
    /// The input is a known kind of file that is not framed here.
    #[error(
        "invalid file={name} at byte 0: expected pcap (microseconds or nanoseconds) or pcapng, \
         not compressed{}", if *.is_capture { AND_CONVERT } else { "" }
    )]
    Unsupported {
        /// The name of the kind.
        name: &'static str,
        /// Whether it holds packets, and Wireshark's programs read it.
        is_capture: bool,
    },
    /// A field has a value that the format does not allow.
    #[error("invalid {field}={value} in the block at byte {offset}: expected {allowed}")]
    Invalid {
        /// The offset of the block in the file.
        offset: u64,
        /// The name of the field.
        field: &'static str,
        /// The value found.
        value: String,
        /// What is allowed.
        allowed: String,
    },
    /// The file ends inside a block.
    #[error(
        "the file is cut: the block at byte {offset} has {found} of at least {expected} bytes; \
         packets before it, all whole: {packets}"
    )]
    Truncated {
        /// The offset of the block in the file: the length of the part that is whole.
        offset: u64,
        /// The bytes of the block that are there.
        found: usize,
        /// The length of the block as far as it is known.
        expected: usize,
        /// The packets before the block.
        packets: u64,
    },
}

impl FrameError {
    /// Whether the file only lacks its end, as one whose writer was stopped: it is cut or empty.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        match self {
            Self::Empty | Self::Truncated { .. } => true,
            Self::Unrecognised { .. } | Self::Unsupported { .. } | Self::Invalid { .. } => false,
        }
    }

    /// The offset in the file of the block that cannot be framed: the length of the part that is
    /// whole.
    #[must_use]
    pub fn offset(&self) -> u64 {
        match self {
            Self::Empty | Self::Unrecognised { .. } | Self::Unsupported { .. } => 0,
            Self::Invalid { offset, .. } | Self::Truncated { offset, .. } => *offset,
        }
    }
}

/// A rejected value of a block whose offset the framer adds.
#[derive(Debug)]
pub(super) struct InvalidField {
    pub(super) field: &'static str,
    pub(super) value: String,
    pub(super) allowed: String,
}

impl InvalidField {
    pub(super) fn new(
        field: &'static str,
        value: impl ToString,
        allowed: impl Into<String>,
    ) -> Self {
        Self {
            field,
            value: value.to_string(),
            allowed: allowed.into(),
        }
    }

    /// The error for a block at `offset`.
    pub(super) fn at(self, offset: u64) -> FrameError {
        FrameError::Invalid {
            offset,
            field: self.field,
            value: self.value,
            allowed: self.allowed,
        }
    }
}
