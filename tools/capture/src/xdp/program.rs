//! The program of the kernel that passes frames to sockets, and its map of them, by `bpf(2)`.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_long};
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};

use super::socket::XdpSocket;
use super::{is_busy, while_busy};

/// Commands of `bpf(2)`, and what they name.
const BPF_MAP_CREATE: c_long = 0;
const BPF_MAP_UPDATE_ELEM: c_long = 2;
const BPF_PROG_LOAD: c_long = 5;
const BPF_LINK_CREATE: c_long = 28;
const BPF_MAP_TYPE_XSKMAP: u32 = 17;
const BPF_PROG_TYPE_XDP: u32 = 6;
/// The program leaves frames of several parts whole. Sockets have them since Linux 6.6.
const BPF_F_XDP_HAS_FRAGS: u32 = 1 << 5;
const BPF_XDP: u32 = 37;
/// Where the program runs: behind the driver, or in it.
const XDP_FLAGS_SKB_MODE: u32 = 1 << 1;
const XDP_FLAGS_DRV_MODE: u32 = 1 << 2;

const LICENSE: &CStr = c"Dual MIT/GPL";

/// The attributes of commands, as far as they are used: later ones are 0.
#[repr(C)]
struct NewMap {
    kind: u32,
    key_bytes: u32,
    value_bytes: u32,
    entries: u32,
}

#[repr(C, align(8))]
struct NewEntry {
    map: RawFd,
    _gap: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C, align(8))]
struct NewProgram {
    kind: u32,
    count: u32,
    instructions: u64,
    license: u64,
    _log: [u32; 4],
    _kernel: u32,
    flags: u32,
}

#[repr(C)]
struct NewLink {
    program: RawFd,
    interface: u32,
    kind: u32,
    flags: u32,
}

/// `struct bpf_insn`: an operation, two registers of four bits each, an offset and a number.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct Instruction {
    operation: u8,
    registers: u8,
    offset: i16,
    number: i32,
}

const fn instruction(
    operation: u8,
    [target, source]: [u8; 2],
    offset: i16,
    number: i32,
) -> Instruction {
    let registers = match cfg!(target_endian = "big") {
        true => target << 4 | source,
        false => source << 4 | target,
    };
    Instruction {
        operation,
        registers,
        offset,
        number,
    }
}

/// A program that passes the frames of an interface to sockets. It ends with this, at the latest
/// with the process, and then they are the host's again.
#[derive(Debug)]
pub(super) struct Attached {
    _link: OwnedFd,
    /// Whether it runs behind the driver, not in it.
    pub(super) is_generic: bool,
}

impl Attached {
    /// Has the frames of each queue of an interface go to its socket, those of other queues to the
    /// host. Fails with [`io::ErrorKind::ResourceBusy`] or [`io::ErrorKind::AlreadyExists`] if the
    /// interface has another program.
    pub(super) fn new(index: u32, sockets: &[XdpSocket]) -> io::Result<Self> {
        let map = NewMap {
            kind: BPF_MAP_TYPE_XSKMAP,
            key_bytes: 4,
            value_bytes: 4,
            entries: sockets.len() as u32,
        };
        // SAFETY: the command has these attributes, without pointers.
        let map = unsafe { create(BPF_MAP_CREATE, &map) }?;
        for (queue, socket) in (0_u32..).zip(sockets) {
            let number = socket.as_fd().as_raw_fd();
            let entry = NewEntry {
                map: map.as_raw_fd(),
                _gap: 0,
                key: (&raw const queue) as u64,
                value: (&raw const number) as u64,
                flags: 0,
            };
            // SAFETY: the command has these attributes, and both pointers are to numbers of the
            // lengths that the map was made for.
            unsafe { call(BPF_MAP_UPDATE_ELEM, &entry) }?;
        }
        let joins = sockets.iter().all(|socket| socket.joins_parts);
        let program = load(&map, joins)?;
        let link = |flags| {
            let link = NewLink {
                program: program.as_raw_fd(),
                interface: index,
                kind: BPF_XDP,
                flags,
            };
            // SAFETY: the command has these attributes, without pointers.
            unsafe { create(BPF_LINK_CREATE, &link) }
        };
        let (link, is_generic) = while_busy(|| match link(XDP_FLAGS_DRV_MODE) {
            Ok(link) => Ok((link, false)),
            Err(error) if is_busy(&error) => Err(error),
            Err(_) => link(XDP_FLAGS_SKB_MODE).map(|link| (link, true)),
        })?;
        Ok(Self {
            _link: link,
            is_generic,
        })
    }
}

/// Loads the program: `return bpf_redirect_map(map, context->rx_queue_index, XDP_PASS)`.
fn load(map: &OwnedFd, joins_parts: bool) -> io::Result<OwnedFd> {
    const LOAD_WORD: u8 = 0x61;
    const LOAD_MAP: [u8; 2] = [0x18, 0];
    const SET: u8 = 0xb7;
    const CALL: u8 = 0x85;
    const EXIT: u8 = 0x95;
    /// Where the context has the number of the queue.
    const QUEUE: i16 = 16;
    /// A number that is the descriptor of a map.
    const OF_MAP: u8 = 1;
    const XDP_PASS: i32 = 2;
    const REDIRECT_MAP: i32 = 51;
    let program = [
        instruction(LOAD_WORD, [2, 1], QUEUE, 0),
        instruction(LOAD_MAP[0], [1, OF_MAP], 0, map.as_raw_fd()),
        instruction(LOAD_MAP[1], [0, 0], 0, 0),
        instruction(SET, [3, 0], 0, XDP_PASS),
        instruction(CALL, [0, 0], 0, REDIRECT_MAP),
        instruction(EXIT, [0, 0], 0, 0),
    ];
    let load = |flags| {
        let program = NewProgram {
            kind: BPF_PROG_TYPE_XDP,
            count: program.len() as u32,
            instructions: program.as_ptr() as u64,
            license: LICENSE.as_ptr() as u64,
            _log: [0; 4],
            _kernel: 0,
            flags,
        };
        // SAFETY: the command has these attributes; the pointers are to so many instructions, and
        // to a text that ends with NUL.
        unsafe { create(BPF_PROG_LOAD, &program) }
    };
    // The kernel drops frames of several parts uncounted where sockets cannot have them.
    load(if joins_parts { BPF_F_XDP_HAS_FRAGS } else { 0 })
}

/// # Safety
/// As for [`call`], with a command that returns a descriptor.
unsafe fn create<T>(command: c_long, attributes: &T) -> io::Result<OwnedFd> {
    // SAFETY: as for this function.
    let number = unsafe { call(command, attributes) }?;
    // SAFETY: a new descriptor, which is nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// # Safety
/// The command must have attributes of this layout, with pointers to what it expects, and write
/// nothing.
unsafe fn call<T>(command: c_long, attributes: &T) -> io::Result<RawFd> {
    let (attributes, length) = ((&raw const *attributes), size_of::<T>());
    // SAFETY: as for this function.
    match unsafe { libc::syscall(libc::SYS_bpf, command, attributes, length) } {
        -1 => Err(io::Error::last_os_error()),
        number => Ok(number as RawFd),
    }
}
