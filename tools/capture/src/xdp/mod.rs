//! Capture by AF_XDP: a program of the kernel takes the frames of an interface from the host, and
//! puts those of each of its queues into memory of this process.

mod program;
mod reader;
mod socket;
mod umem;

pub(crate) use reader::XdpReader;
