//! Filters in the language of libpcap, compiled by libpcap itself where it is installed.
//!
//! The library is opened when a filter is wanted, so that neither building nor running without one
//! needs it. A program that the kernel runs is compiled for an open interface, as `tcpdump` does:
//! only then does it know of VLAN tags that the kernel has taken out of the frames. One that runs
//! here sees frames as they are.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char, c_int, c_uint};
use std::io::{self, ErrorKind};
use std::ptr;
use std::slice;

use echoless_packets::LinkType;
use libc::sock_filter;
use libloading::Library;

use crate::options::MOST_SNAP_LEN;

/// The names of the library: of most systems, of Debian, and of one that is built from source.
const NAMES: [&str; 3] = ["libpcap.so.1", "libpcap.so.0.8", "libpcap.so"];

/// The bytes for an error message: `PCAP_ERRBUF_SIZE`.
const MESSAGE_BYTES: usize = 256;

/// `PCAP_NETMASK_UNKNOWN`.
const NO_NETMASK: c_uint = 0xffff_ffff;

/// The memory of the handle, which gets no frames that count.
const LITTLE_MEMORY: c_int = 64 << 10;

/// `struct bpf_program`. An instruction is that of the kernel.
#[repr(C)]
struct Program {
    length: c_uint,
    instructions: *mut sock_filter,
}

impl Program {
    /// # Safety
    /// Where there are instructions, they must be `length`.
    unsafe fn instructions(&self) -> io::Result<Vec<sock_filter>> {
        if self.length == 0 || self.instructions.is_null() {
            let problem = "libpcap has made no program of it";
            return Err(io::Error::new(ErrorKind::InvalidInput, problem));
        }
        // SAFETY: as for this function.
        let program = unsafe { slice::from_raw_parts(self.instructions, self.length as usize) };
        Ok(program.to_vec())
    }
}

/// `bpf_filter`: a program, a frame, its length on the wire and here; 0 is a frame that it rejects.
type RunProgram = unsafe extern "C" fn(*const sock_filter, *const u8, c_uint, c_uint) -> c_uint;

/// A filter that runs here, not in the kernel.
#[derive(Debug)]
pub(crate) struct FrameFilter {
    program: Vec<sock_filter>,
    run: RunProgram,
    /// Keeps `run` there.
    _library: Library,
}

impl FrameFilter {
    /// Compiles an expression for whole frames with this link header.
    pub(crate) fn new(link: LinkType, expression: &str) -> io::Result<Self> {
        let library = open()?;
        let program = compile_with(&library, None, link, MOST_SNAP_LEN, expression)?;
        // SAFETY: the function of libpcap with its type.
        let run = unsafe { library.get::<RunProgram>(c"bpf_filter") };
        let run = *run.map_err(|error| io::Error::new(ErrorKind::Unsupported, error))?;
        Ok(Self {
            program,
            run,
            _library: library,
        })
    }

    /// Whether the filter selects a frame.
    #[inline]
    pub(crate) fn selects(&self, frame: &[u8]) -> bool {
        let length = c_uint::try_from(frame.len()).unwrap_or(c_uint::MAX);
        // SAFETY: libpcap has made the program, whose jumps stay in it and which ends, and checks
        // what it reads of the frame, which has this length or more.
        unsafe { (self.run)(self.program.as_ptr(), frame.as_ptr(), length, length) != 0 }
    }
}

/// A `pcap_t`.
#[repr(C)]
struct Handle {
    _opaque: [u8; 0],
}

/// Compiles an expression for an interface whose frames have this link header, and are cut to so
/// many bytes. Fails with [`ErrorKind::InvalidInput`] and the words of libpcap if the expression is
/// none, and with [`ErrorKind::Unsupported`] if there is no libpcap, or if its frames are others.
pub(crate) fn compile(
    interface: &str,
    link: LinkType,
    snap_len: u32,
    expression: &str,
) -> io::Result<Vec<sock_filter>> {
    compile_with(&open()?, Some(interface), link, snap_len, expression)
}

/// Compiles for an interface, or for frames as they are.
fn compile_with(
    library: &Library,
    interface: Option<&str>,
    link: LinkType,
    snap_len: u32,
    expression: &str,
) -> io::Result<Vec<sock_filter>> {
    let missing = |error: libloading::Error| io::Error::new(ErrorKind::Unsupported, error);
    let text = |text: &str| CString::new(text).map_err(io::Error::from);
    let (name, expression) = (interface.map(text).transpose()?, text(expression)?);
    let snap_len = snap_len.min(i32::MAX as u32) as c_int;
    // SAFETY: these are the functions of libpcap with their types, which did not change since 1.0.
    // A handle is one that libpcap returned, and is closed once; messages are copied before that.
    // Every string ends with NUL. A compiled program has `length` instructions until it is freed.
    unsafe {
        type Create = unsafe extern "C" fn(*const c_char, *mut c_char) -> *mut Handle;
        type Set = unsafe extern "C" fn(*mut Handle, c_int) -> c_int;
        type Ask = unsafe extern "C" fn(*mut Handle) -> c_int;
        type Message = unsafe extern "C" fn(*mut Handle) -> *const c_char;
        type Compile =
            unsafe extern "C" fn(*mut Handle, *mut Program, *const c_char, c_int, c_uint) -> c_int;
        type Open = unsafe extern "C" fn(c_int, c_int) -> *mut Handle;
        let create = library.get::<Create>(c"pcap_create").map_err(missing)?;
        let open_dead = library.get::<Open>(c"pcap_open_dead").map_err(missing)?;
        let set_snap_len = library.get::<Set>(c"pcap_set_snaplen").map_err(missing)?;
        let set_memory = library
            .get::<Set>(c"pcap_set_buffer_size")
            .map_err(missing)?;
        let activate = library.get::<Ask>(c"pcap_activate").map_err(missing)?;
        let link_of = library.get::<Ask>(c"pcap_datalink").map_err(missing)?;
        let message = library.get::<Message>(c"pcap_geterr").map_err(missing)?;
        let compile = library.get::<Compile>(c"pcap_compile").map_err(missing)?;
        let free = library.get::<unsafe extern "C" fn(*mut Program)>(c"pcap_freecode");
        let free = free.map_err(missing)?;
        let close = library.get::<unsafe extern "C" fn(*mut Handle)>(c"pcap_close");
        let close = close.map_err(missing)?;

        let mut problem = [0 as c_char; MESSAGE_BYTES];
        let handle = match &name {
            Some(name) => create(name.as_ptr(), problem.as_mut_ptr()),
            None => open_dead(c_int::from(link.0), snap_len),
        };
        if handle.is_null() {
            return Err(io::Error::other(words(problem.as_ptr())));
        }
        if name.is_some() {
            set_snap_len(handle, snap_len);
            set_memory(handle, LITTLE_MEMORY);
        }
        let mut program = Program {
            length: 0,
            instructions: ptr::null_mut(),
        };
        let compiled = if name.is_some() && activate(handle) < 0 {
            Err(io::Error::other(words(message(handle))))
        } else if link_type(link_of(handle)) != Some(link) {
            let problem = "a filter is compiled for other frames than those of the interface";
            Err(io::Error::new(ErrorKind::Unsupported, problem))
        } else if compile(handle, &raw mut program, expression.as_ptr(), 1, NO_NETMASK) < 0 {
            Err(io::Error::new(
                ErrorKind::InvalidInput,
                words(message(handle)),
            ))
        } else {
            let instructions = program.instructions();
            free(&raw mut program);
            instructions
        };
        close(handle);
        compiled
    }
}

fn open() -> io::Result<Library> {
    for name in NAMES {
        // SAFETY: loading libpcap runs no code of its own.
        if let Ok(library) = unsafe { Library::new(name) } {
            return Ok(library);
        }
    }
    let problem = "libpcap, which compiles filters, is not installed (Debian: libpcap0.8, Fedora: \
                   libpcap)";
    Err(io::Error::new(ErrorKind::Unsupported, problem))
}

/// The number in capture files of a link header that libpcap has this number for.
fn link_type(of_libpcap: c_int) -> Option<LinkType> {
    const RAW: c_int = 12;
    match of_libpcap {
        RAW => Some(LinkType::RAW),
        other => u16::try_from(other).ok().map(LinkType),
    }
}

/// # Safety
/// The message must end with NUL.
unsafe fn words(message: *const c_char) -> String {
    // SAFETY: as for this function.
    unsafe { CStr::from_ptr(message) }
        .to_string_lossy()
        .into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::socket::pass;

    #[test]
    fn a_program_without_instructions_is_an_error() {
        let mut one = pass(7);
        let none = ptr::null_mut();
        for (length, instructions, expected) in [
            (1, one.as_mut_ptr(), Some(7)),
            (0, one.as_mut_ptr(), None),
            (1, none, None),
        ] {
            let program = Program {
                length,
                instructions,
            };
            // SAFETY: one instruction, or none.
            let read = unsafe { program.instructions() };
            let read = read.map_err(|error| error.kind());
            let read = read.map(|program| program.iter().map(|it| it.k).collect::<Vec<_>>());
            assert_eq!(
                read,
                expected.map(|k| vec![k]).ok_or(ErrorKind::InvalidInput)
            );
        }
    }
}
