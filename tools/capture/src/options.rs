//! What is captured, and what is counted and said of it.

use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

/// The snap length without an option: longer than any frame.
pub const MOST_SNAP_LEN: u32 = 256 << 10;

/// The least memory of a ring: two blocks.
pub const LEAST_BUFFER: u64 = 256 << 10;

/// How frames come from the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Method {
    /// Copies of all frames that an interface receives and sends, in the ring of a packet socket.
    AfPacket,
    /// The frames that an interface receives, which the host does not get: behind the driver, and
    /// copied; out of the driver, and copied; or by the hardware in memory of this process.
    AfXdpGeneric,
    /// See [`AfXdpGeneric`](Self::AfXdpGeneric).
    AfXdpCopy,
    /// See [`AfXdpGeneric`](Self::AfXdpGeneric).
    AfXdpZeroCopy,
}

impl Method {
    /// All, each at its number.
    const ALL: [Self; 4] = [
        Self::AfPacket,
        Self::AfXdpGeneric,
        Self::AfXdpCopy,
        Self::AfXdpZeroCopy,
    ];

    /// The name of the method.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::AfPacket => "af-packet",
            Self::AfXdpGeneric => "af-xdp generic",
            Self::AfXdpCopy => "af-xdp copy",
            Self::AfXdpZeroCopy => "af-xdp zero-copy",
        }
    }
}

/// What is captured.
#[derive(Debug, Clone)]
pub struct Options {
    /// Whether frames are captured by AF_XDP, which the host then does not get, in the best way
    /// that the driver has.
    pub by_xdp: bool,
    /// The interfaces, none of them twice.
    pub interfaces: Vec<String>,
    /// The most bytes of a frame, 1 to [`MOST_SNAP_LEN`]. The others are cut off, and a packet says
    /// how long it was.
    pub snap_len: u32,
    /// Whether frames that are to others are captured, too.
    pub promiscuous: bool,
    /// The memory of the ring of each interface in bytes, rounded up to whole blocks of 128 KiB or
    /// 256 KiB; [`LEAST_BUFFER`] or more. By AF_XDP its queues share it, rounded down to frames, of
    /// which each queue has 64 at least.
    pub buffer: u64,
    /// The longest time that a frame waits for others in its block, in whole milliseconds; 1 or
    /// more.
    pub block_timeout: Duration,
    /// An expression in the language of libpcap.
    pub filter: Option<String>,
    /// The interface that frames are sent by: what this machine sends there is not captured.
    pub sends_to: Option<String>,
    /// The number of frames after which the capture ends.
    pub frames: Option<u64>,
    /// Whether an interface that was removed is captured again once there is one of its name.
    pub waits: bool,
}

/// An interface that cannot be captured.
#[derive(Debug)]
pub struct InterfaceError {
    /// The name of the interface.
    pub interface: String,
    /// Why, in words that follow the name; [`io::ErrorKind::InvalidInput`] is the filter.
    pub source: io::Error,
}

/// Whether this is the error of an interface that is not there, or down.
#[must_use]
pub fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NetworkDown)
}

/// What people should know of the interfaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// The interface is down: frames come again once it is up.
    Down(String),
    /// The interface was removed. If the capture waits, an [`Again`](Self::Again) may follow.
    Gone(String),
    /// An interface that was removed is there and captured again.
    Again(String),
    /// The interface has frames whose checksums are not computed yet.
    PartialChecksums(String),
    /// The interface takes VLAN tags out of its frames, which AF_XDP has not.
    LostTags(String),
    /// The interface has frames longer than its MTU, which were joined, or are not divided yet.
    JoinedFrames(String),
}

/// What was counted of one interface. Other threads may read it at any time.
#[derive(Debug, Default)]
pub struct InterfaceCounts {
    frames: AtomicU64,
    received: AtomicU64,
    dropped: AtomicU64,
    freezes: AtomicU64,
    reopened: AtomicU64,
    method: AtomicU8,
}

/// What the kernel has counted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KernelCounts {
    pub(crate) received: u64,
    pub(crate) dropped: u64,
    pub(crate) freezes: u64,
}

impl InterfaceCounts {
    /// Counts of these interfaces, which are all 0.
    #[must_use]
    pub fn of(options: &Options) -> Vec<Arc<Self>> {
        options.interfaces.iter().map(|_| Arc::default()).collect()
    }

    /// The frames that the stream has.
    #[must_use]
    pub fn frames(&self) -> u64 {
        self.frames.load(Ordering::Relaxed)
    }

    /// The frames that the filter of the socket passed, dropped ones included.
    #[must_use]
    pub fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// The frames that the kernel dropped, because the ring was full.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// How often the ring became full.
    #[must_use]
    pub fn freezes(&self) -> u64 {
        self.freezes.load(Ordering::Relaxed)
    }

    /// How often the interface was captured again after it was removed.
    #[must_use]
    pub fn reopened(&self) -> u64 {
        self.reopened.load(Ordering::Relaxed)
    }

    /// How the frames came last.
    #[must_use]
    pub fn method(&self) -> Method {
        Method::ALL[usize::from(self.method.load(Ordering::Relaxed))]
    }

    // Relaxed: the numbers publish nothing else.

    pub(crate) fn set_method(&self, method: Method) {
        self.method.store(method as u8, Ordering::Relaxed);
    }

    pub(crate) fn add_reopened(&self) {
        self.reopened.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn add_frames(&self, frames: u64) {
        self.frames.fetch_add(frames, Ordering::Relaxed);
    }

    pub(crate) fn add_kernel(&self, since: KernelCounts) {
        self.received.fetch_add(since.received, Ordering::Relaxed);
        self.dropped.fetch_add(since.dropped, Ordering::Relaxed);
        self.freezes.fetch_add(since.freezes, Ordering::Relaxed);
    }
}
