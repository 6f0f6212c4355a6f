//! Captures for the tests of `echoless packets`, and what a run must write of them.

use std::ops::Range;

use echoless_packets::LinkType;
use echoless_packets::framing::{BlockKind, Framer, Next};
use echoless_packets::synth::{Header, Stack};
use echoless_packets::writer::{PcapWriter, PcapngWriter};

use crate::run::{Run, echoless};

/// Runs `echoless packets` quietly, and with little memory unless the arguments have some.
pub(crate) fn packets(args: &[&str], input: &[u8]) -> Run {
    let mut all = vec!["packets", "-q"];
    if !args.contains(&"-m") {
        all.extend(["-m", "64KiB"]);
    }
    all.extend_from_slice(args);
    echoless(&all, input)
}

/// A UDP packet in Ethernet whose payload is this number.
pub(crate) fn frame(number: u64) -> Vec<u8> {
    with_ttl(number, 64)
}

/// The same packet with this time to live.
pub(crate) fn with_ttl(number: u64, ttl: u8) -> Vec<u8> {
    let mut ip = Header::ipv4();
    if let Header::Ipv4(header) = &mut ip {
        header.ttl = ttl;
    }
    let stack = Stack::new(vec![Header::ethernet(), ip, Header::udp()]);
    stack.bytes(&number.to_be_bytes())
}

/// A little-endian pcap file in microseconds with these packets.
pub(crate) fn pcap(packets: &[(u64, Vec<u8>)]) -> Vec<u8> {
    let mut file = PcapWriter::new(false, false, LinkType::ETHERNET);
    for (time, frame) in packets {
        file.packet(*time, frame, frame.len() as u32);
    }
    file.into_bytes()
}

/// A pcap file with numbered packets a microsecond apart.
pub(crate) fn numbered(numbers: &[u64]) -> Vec<u8> {
    let packets = (0..)
        .zip(numbers)
        .map(|(time, number)| (time, frame(*number)));
    pcap(&packets.collect::<Vec<_>>())
}

/// A pcapng section of one Ethernet interface in nanoseconds.
pub(crate) fn pcapng(big_endian: bool) -> PcapngWriter {
    let mut file = PcapngWriter::new(big_endian);
    file.interface(LinkType::ETHERNET, 0, &[(9, &[9])]);
    file
}

/// The blocks of a file, in order, and whether each is a packet.
pub(crate) fn blocks(file: &[u8]) -> Vec<(Range<usize>, bool)> {
    let (mut framer, mut at, mut blocks) = (Framer::new(), 0, Vec::new());
    while let Next::Block { range, kind } = framer.next_block(file, at, true).unwrap() {
        at = range.end;
        blocks.push((range, matches!(kind, BlockKind::Packet(_))));
    }
    blocks
}

/// The packets of a file: their blocks as bytes.
pub(crate) fn packet_blocks(file: &[u8]) -> Vec<&[u8]> {
    let packets = blocks(file).into_iter().filter(|(_, packet)| *packet);
    packets.map(|(range, _)| &file[range]).collect()
}

/// The file without the packets that `duplicates` marks, and the file without the others.
pub(crate) fn split(file: &[u8], duplicates: &[bool]) -> (Vec<u8>, Vec<u8>) {
    let (mut kept, mut dropped) = (Vec::new(), Vec::new());
    let mut duplicates = duplicates.iter();
    for (range, packet) in blocks(file) {
        let block = &file[range];
        let duplicate = packet.then(|| *duplicates.next().unwrap());
        if duplicate != Some(true) {
            kept.extend_from_slice(block);
        }
        if duplicate != Some(false) {
            dropped.extend_from_slice(block);
        }
    }
    assert_eq!(duplicates.next(), None);
    (kept, dropped)
}
