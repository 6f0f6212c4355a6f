//! What takes the place of a capture, and of a sender, on systems that have none yet.

#![allow(
    missing_docs,
    clippy::missing_errors_doc,
    reason = "those of the capture that there is"
)]

use std::io::{self, ErrorKind};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use echoless_packets::framing::PacketBlock;

use crate::options::{InterfaceCounts, InterfaceError, Notice, Options};

/// There is no such capture.
#[derive(Debug)]
pub enum Capture {}

impl Capture {
    pub fn open(options: &Options, _: &[Arc<InterfaceCounts>]) -> Result<Self, InterfaceError> {
        Err(unsupported(options.interfaces.concat()))
    }

    pub fn read(&mut self, _: &mut [u8], _: impl FnMut(PacketBlock, usize)) -> io::Result<usize> {
        match *self {}
    }

    pub fn stop(&mut self) -> io::Result<()> {
        match *self {}
    }

    #[must_use]
    pub fn has_ended(&self) -> bool {
        match *self {}
    }

    #[must_use]
    pub fn awaited(&self) -> (Vec<BorrowedFd<'_>>, Option<Duration>) {
        match *self {}
    }

    #[must_use]
    pub fn is_behind(&self) -> bool {
        match *self {}
    }

    pub fn check(&mut self) -> io::Result<()> {
        match *self {}
    }

    pub fn take_notices(&mut self) -> Vec<Notice> {
        match *self {}
    }
}

/// Nothing is sent.
#[derive(Debug)]
pub enum Sender {}

impl Sender {
    pub fn open(interface: &str) -> Result<Self, InterfaceError> {
        Err(unsupported(interface.into()))
    }

    pub fn send(&self, _: &[u8]) -> io::Result<()> {
        match *self {}
    }
}

fn unsupported(interface: String) -> InterfaceError {
    let problem = "is captured on Linux only: expected `tcpdump -U -w - | echoless packets`";
    let source = io::Error::new(ErrorKind::Unsupported, problem);
    InterfaceError { interface, source }
}
