//! A packet socket, and the options of sockets.
#![allow(unsafe_code)]

use std::array;
use std::ffi::CString;
use std::io::{self, ErrorKind};
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use libc::{c_int, c_void, sock_filter, socklen_t, tpacket_stats_v3};

/// The protocol of a socket that gets frames of all: `ETH_P_ALL` in the order of the network.
const ALL_PROTOCOLS: u16 = (libc::ETH_P_ALL as u16).to_be();

/// The length of a frame that the kernel takes for the layout of the ring: any divides a block.
const NOMINAL_FRAME: u32 = 2048;

/// Commands to a driver, of 9 and of 2 numbers, and what it answers: that tags are taken out.
const ETHTOOL_GCHANNELS: u32 = 0x3c;
const ETHTOOL_GFLAGS: u32 = 0x25;
const ETH_FLAG_RXVLAN: u32 = 1 << 8;

/// Values of options that the kernel reads, or writes, as bytes.
///
/// # Safety
/// All bytes of the type are its value, and any bytes are one.
pub(crate) unsafe trait Plain: Copy {}

// SAFETY: a number.
unsafe impl Plain for c_int {}
// SAFETY: seven numbers of four bytes.
unsafe impl Plain for libc::tpacket_req3 {}
// SAFETY: numbers of four, two and two bytes, and eight bytes.
unsafe impl Plain for libc::packet_mreq {}
// SAFETY: three numbers of four bytes.
unsafe impl Plain for tpacket_stats_v3 {}

const _: () = assert!(size_of::<libc::packet_mreq>() == 16);

/// What a socket must know of its interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hardware {
    pub(crate) index: u32,
    /// An `ARPHRD_` constant.
    pub(crate) kind: u16,
    /// That of an Ethernet interface.
    pub(crate) address: [u8; 6],
    pub(crate) mtu: u32,
    pub(crate) is_up: bool,
    pub(crate) is_bond: bool,
}

/// A packet socket, which gets whole frames.
#[derive(Debug)]
pub(crate) struct PacketSocket(OwnedFd);

impl PacketSocket {
    /// A socket that is [bound](Self::bind) to no interface and gets nothing.
    pub(crate) fn open() -> io::Result<Self> {
        raw_socket(libc::AF_PACKET).map(Self)
    }

    /// Finds an interface by its name. Fails with [`ErrorKind::NotFound`] if there is none.
    pub(crate) fn hardware(&self, name: &str) -> io::Result<Hardware> {
        let mut request = request(name)?;
        let mut ask = |what| {
            // SAFETY: the request is one of an interface, which these calls read and write.
            let answer = unsafe { libc::ioctl(self.0.as_raw_fd(), what, &raw mut request) };
            checked(answer).map_err(|error| match error.raw_os_error() {
                Some(libc::ENODEV) => unknown_interface(),
                _ => error,
            })?;
            Ok::<_, io::Error>(request.ifr_ifru)
        };
        // SAFETY: each call writes the field of the union that is read.
        let (index, hardware, mtu, flags) = unsafe {
            (
                ask(libc::SIOCGIFINDEX)?.ifru_ifindex,
                ask(libc::SIOCGIFHWADDR)?.ifru_hwaddr,
                ask(libc::SIOCGIFMTU)?.ifru_mtu,
                c_int::from(ask(libc::SIOCGIFFLAGS)?.ifru_flags),
            )
        };
        Ok(Hardware {
            index: index as u32,
            kind: hardware.sa_family,
            address: array::from_fn(|at| hardware.sa_data[at] as u8),
            mtu: mtu.max(0) as u32,
            is_up: flags & libc::IFF_UP != 0,
            is_bond: flags & libc::IFF_MASTER != 0,
        })
    }

    /// The number of queues of an interface of this name; `None` if its driver does not report it.
    pub(crate) fn queues(&self, name: &str) -> Option<u32> {
        // Of `struct ethtool_channels`: the most, then those in use.
        // SAFETY: nine numbers.
        let answer = unsafe { self.ask_driver(name, [ETHTOOL_GCHANNELS; 9]) };
        let [.., received, sent, _, combined] = answer?;
        Some(received.max(sent).saturating_add(combined))
    }

    /// Whether an interface of this name takes VLAN tags out of the frames that it receives.
    pub(crate) fn takes_tags_out(&self, name: &str) -> bool {
        // SAFETY: two numbers, of `struct ethtool_value`.
        let flags = unsafe { self.ask_driver(name, [ETHTOOL_GFLAGS; 2]) };
        flags.is_some_and(|[_, flags]| flags & ETH_FLAG_RXVLAN != 0)
    }

    /// What a driver answers to a command, the first of the numbers, which it overwrites. `None` if
    /// it does not support the command.
    ///
    /// # Safety
    /// The numbers must be as many as the command has.
    unsafe fn ask_driver<const N: usize>(
        &self,
        name: &str,
        mut numbers: [u32; N],
    ) -> Option<[u32; N]> {
        let mut request = request(name).ok()?;
        request.ifr_ifru.ifru_data = numbers.as_mut_ptr().cast();
        // SAFETY: the driver reads and writes as many numbers as the command has.
        let answer =
            unsafe { libc::ioctl(self.0.as_raw_fd(), libc::SIOCETHTOOL, &raw mut request) };
        checked(answer).ok().map(|()| numbers)
    }

    /// Belongs to this interface from now on, and gets its frames, if it `receives`.
    pub(crate) fn bind(&self, index: u32, receives: bool) -> io::Result<()> {
        // SAFETY: numbers, for which zeros are values.
        let mut address: libc::sockaddr_ll = unsafe { mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = if receives { ALL_PROTOCOLS } else { 0 };
        address.sll_ifindex = index as c_int;
        let length = size_of::<libc::sockaddr_ll>() as socklen_t;
        // SAFETY: the address has this length.
        checked(unsafe { libc::bind(self.0.as_raw_fd(), (&raw const address).cast(), length) })?;
        self.take_error()
    }

    /// Whether the interface of the socket is there no more.
    pub(crate) fn is_orphaned(&self) -> bool {
        // SAFETY: as in `bind`.
        let mut address: libc::sockaddr_ll = unsafe { mem::zeroed() };
        let mut length = size_of::<libc::sockaddr_ll>() as socklen_t;
        let (place, length) = ((&raw mut address).cast(), &raw mut length);
        // SAFETY: the kernel writes at most `length` bytes of the address.
        let known = unsafe { libc::getsockname(self.0.as_raw_fd(), place, length) };
        known == 0 && address.sll_ifindex == -1
    }

    /// The error of the socket since the last call, if there is one.
    pub(crate) fn take_error(&self) -> io::Result<()> {
        match get::<c_int>(&self.0, libc::SOL_SOCKET, libc::SO_ERROR, 0)? {
            0 => Ok(()),
            number => Err(io::Error::from_raw_os_error(number)),
        }
    }

    /// Has the kernel fill a ring of blocks, each at the latest so many milliseconds after its
    /// first frame.
    pub(crate) fn set_ring(&self, block_bytes: u32, blocks: u32, timeout: u32) -> io::Result<()> {
        let version = libc::tpacket_versions::TPACKET_V3 as c_int;
        set(&self.0, libc::SOL_PACKET, libc::PACKET_VERSION, version)?;
        let ring = libc::tpacket_req3 {
            tp_block_size: block_bytes,
            tp_block_nr: blocks,
            tp_frame_size: NOMINAL_FRAME,
            tp_frame_nr: (block_bytes / NOMINAL_FRAME).saturating_mul(blocks),
            tp_retire_blk_tov: timeout,
            tp_sizeof_priv: 0,
            tp_feature_req_word: 0,
        };
        set(&self.0, libc::SOL_PACKET, libc::PACKET_RX_RING, ring)
    }

    /// Has the interface pass on the frames that are to others.
    pub(crate) fn set_promiscuous(&self, index: u32) -> io::Result<()> {
        let membership = libc::packet_mreq {
            mr_ifindex: index as c_int,
            mr_type: libc::PACKET_MR_PROMISC as u16,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        set(
            &self.0,
            libc::SOL_PACKET,
            libc::PACKET_ADD_MEMBERSHIP,
            membership,
        )
    }

    /// Leaves out the frames that this machine sends.
    pub(crate) fn ignore_outgoing(&self) -> io::Result<()> {
        set(&self.0, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, 1)
    }

    /// Passes frames to the driver, past the queues of the system.
    pub(crate) fn bypass_queues(&self) -> io::Result<()> {
        set(&self.0, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, 1)
    }

    /// Gets only the frames, and so many bytes of each, that the program says.
    pub(crate) fn attach(&self, program: &[sock_filter]) -> io::Result<()> {
        let length = u16::try_from(program.len()).map_err(|_| ErrorKind::InvalidInput)?;
        let filter = libc::sock_fprog {
            len: length,
            filter: program.as_ptr().cast_mut(),
        };
        // SAFETY: the kernel reads the filter and the program, of these lengths.
        checked(unsafe {
            libc::setsockopt(
                self.0.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_ATTACH_FILTER,
                (&raw const filter).cast(),
                size_of::<libc::sock_fprog>() as socklen_t,
            )
        })
    }

    /// The frames since the last call: all that came, and those of them that were dropped.
    pub(crate) fn take_statistics(&self) -> io::Result<tpacket_stats_v3> {
        let none = tpacket_stats_v3 {
            tp_packets: 0,
            tp_drops: 0,
            tp_freeze_q_cnt: 0,
        };
        get(&self.0, libc::SOL_PACKET, libc::PACKET_STATISTICS, none)
    }

    /// Sends a frame.
    pub(crate) fn send(&self, frame: &[u8]) -> io::Result<()> {
        let (start, length) = (frame.as_ptr().cast::<c_void>(), frame.len());
        // SAFETY: the kernel reads the frame, of this length.
        let sent = unsafe { libc::send(self.0.as_raw_fd(), start, length, 0) };
        match sent {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The program that passes so many bytes of every frame; of 0 bytes, none pass.
pub(crate) const fn pass(bytes: u32) -> [sock_filter; 1] {
    [sock_filter {
        code: (libc::BPF_RET | libc::BPF_K) as u16,
        jt: 0,
        jf: 0,
        k: bytes,
    }]
}

/// A new raw socket of this family.
pub(crate) fn raw_socket(family: c_int) -> io::Result<OwnedFd> {
    // SAFETY: no memory is passed.
    let number = unsafe { libc::socket(family, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
    checked(number)?;
    // SAFETY: a new descriptor, which nothing else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Sets an option of a socket.
pub(crate) fn set(
    socket: &impl AsRawFd,
    level: c_int,
    option: c_int,
    value: impl Plain,
) -> io::Result<()> {
    let length = size_of_val(&value) as socklen_t;
    // SAFETY: the kernel reads at most the bytes of the value.
    checked(unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            (&raw const value).cast(),
            length,
        )
    })
}

/// Gets an option of a socket: what the kernel writes over the value.
pub(crate) fn get<T: Plain>(
    socket: &impl AsRawFd,
    level: c_int,
    option: c_int,
    mut value: T,
) -> io::Result<T> {
    let mut length = size_of::<T>() as socklen_t;
    let (place, length) = ((&raw mut value).cast(), &raw mut length);
    // SAFETY: the kernel writes at most `length` bytes of the value, for which any are one.
    checked(unsafe { libc::getsockopt(socket.as_raw_fd(), level, option, place, length) })?;
    Ok(value)
}

/// A request about an interface of this name. Fails with [`ErrorKind::NotFound`] if there can be
/// none.
fn request(name: &str) -> io::Result<libc::ifreq> {
    let text = CString::new(name).map_err(|_| unknown_interface())?;
    let text = text.as_bytes_with_nul();
    if text.len() > libc::IFNAMSIZ {
        return Err(unknown_interface());
    }
    // SAFETY: an array of numbers and a union of plain values, for which zeros are values.
    let mut request: libc::ifreq = unsafe { mem::zeroed() };
    for (place, byte) in request.ifr_name.iter_mut().zip(text) {
        *place = *byte as libc::c_char;
    }
    Ok(request)
}

fn unknown_interface() -> io::Error {
    io::Error::new(ErrorKind::NotFound, "no such interface")
}

pub(crate) fn checked(answer: c_int) -> io::Result<()> {
    match answer {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
