//! Sends frames by an interface.

use std::io;

use crate::interface::find;
use crate::options::InterfaceError;
use crate::socket::PacketSocket;

/// An Ethernet interface that frames are sent by, past the queues of the system.
#[derive(Debug)]
pub struct Sender(PacketSocket);

impl Sender {
    /// Finds the interface.
    ///
    /// # Errors
    /// [`InterfaceError`] if there is no such interface that is up and Ethernet, not loopback, or no
    /// permission.
    pub fn open(interface: &str) -> Result<Self, InterfaceError> {
        let open = || {
            let (socket, hardware, _) = find(interface)?;
            if hardware.kind != libc::ARPHRD_ETHER {
                return Err(io::Error::other(
                    "packets leave by Ethernet interfaces only",
                ));
            }
            socket.bypass_queues()?;
            socket.bind(hardware.index, false)?;
            Ok(Self(socket))
        };
        open().map_err(|source| InterfaceError {
            interface: interface.into(),
            source,
        })
    }

    /// Sends a whole frame.
    ///
    /// # Errors
    /// That of the system: the frame is not sent.
    #[inline]
    pub fn send(&self, frame: &[u8]) -> io::Result<()> {
        self.0.send(frame)
    }
}
