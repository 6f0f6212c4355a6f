//! Live capture on Linux: the frames of interfaces as the bytes of a pcapng section, so that what
//! reads files reads them, too.
//!
//! ```text
//! kernel -> ring of an interface -> frames in the order of time -> blocks of pcapng -> the caller
//! ```
//!
//! An interface has a packet socket with a ring (`TPACKET_V3`) that the kernel fills block by
//! block, or a socket of AF_XDP for each queue, whose frames the host does not get. A frame is copied
//! once, into the buffer of the caller, with the VLAN tag that the kernel has taken out put back,
//! and described there, so that the caller need not frame it. The section ends with the statistics
//! of each interface, which say what the kernel has dropped.
//!
//! The caller waits: [`Capture::awaited`] says for what.
//!
//! # Examples
//! ```
//! use echoless_capture::{Capture, InterfaceCounts, LEAST_BUFFER, MOST_SNAP_LEN, Options};
//! use std::time::Duration;
//!
//! let options = Options {
//!     by_xdp: false,
//!     interfaces: vec!["nowhere".into()],
//!     snap_len: MOST_SNAP_LEN,
//!     promiscuous: false,
//!     buffer: LEAST_BUFFER,
//!     block_timeout: Duration::from_millis(20),
//!     filter: None,
//!     sends_to: None,
//!     frames: None,
//!     waits: false,
//! };
//! let counts = InterfaceCounts::of(&options);
//! // No such interface, or no permission.
//! let error = Capture::open(&options, &counts).unwrap_err();
//! assert_eq!(error.interface, "nowhere");
//! ```
//!
//! `unsafe` code maps memory (`memory.rs`) and reads it (`ring.rs`, `xdp/umem.rs`), calls sockets
//! (`socket.rs`, `xdp/socket.rs`), `bpf(2)` (`xdp/program.rs`) and libpcap (`filter.rs`).
//! `block.rs` and `xdp/reader.rs` take offsets and lengths out of the memory and trust none of them.

#[cfg(target_os = "linux")]
mod block;
#[cfg(target_os = "linux")]
mod capture;
#[cfg(not(target_os = "linux"))]
mod elsewhere;
#[cfg(target_os = "linux")]
mod filter;
#[cfg(target_os = "linux")]
mod interface;
#[cfg(target_os = "linux")]
mod memory;
mod options;
#[cfg(target_os = "linux")]
mod pcapng;
#[cfg(target_os = "linux")]
mod reader;
#[cfg(target_os = "linux")]
mod ring;
#[cfg(target_os = "linux")]
mod sender;
#[cfg(target_os = "linux")]
mod socket;
#[cfg(target_os = "linux")]
mod source;
#[cfg(target_os = "linux")]
mod xdp;

#[cfg(target_os = "linux")]
pub use capture::Capture;
#[cfg(not(target_os = "linux"))]
pub use elsewhere::{Capture, Sender};
pub use options::{
    InterfaceCounts, InterfaceError, LEAST_BUFFER, MOST_SNAP_LEN, Method, Notice, Options,
    is_absent,
};
#[cfg(target_os = "linux")]
pub use sender::Sender;
