//! A public sample capture, if it is installed.

use std::collections::HashSet;
use std::path::PathBuf;

use echoless_packets::framing::BlockKind;
use echoless_packets::key::{From, KeyOptions, KeyReader};

use crate::support::{blocks, conditions_of, key_of, packets, reader};

/// The capture; `None`, with a message, if it is absent.
fn capture() -> Option<Vec<u8>> {
    let workspace = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let path = workspace.join("../shared/data/test.pcap");
    if path.exists() {
        return Some(std::fs::read(&path).expect("a readable file"));
    }
    eprintln!("skipped: {} is absent", path.display());
    None
}

/// The number of different keys.
fn distinct(file: &[u8], reader: &KeyReader) -> usize {
    let keys = packets(file)
        .into_iter()
        .map(|block| key_of(reader, &block.packet(file)));
    keys.collect::<HashSet<_>>().len()
}

#[test]
fn every_block_of_the_capture() {
    let Some(file) = capture() else { return };
    let (found, error) = blocks(&file);
    assert_eq!(error, None);
    assert_eq!(found.len(), 180);
    assert_eq!(found[0].1, BlockKind::Header);
    assert_eq!(found[179].0.end, file.len());
    assert_eq!(packets(&file).len(), 179);
}

#[test]
fn distinct_packets_of_the_capture() {
    let Some(file) = capture() else { return };
    assert_eq!(distinct(&file, &reader(From::Link, "none")), 178);
    let default = KeyReader::new(KeyOptions::default()).expect("good options");
    assert_eq!(distinct(&file, &reader(From::Network, "none")), 178);
    // One packet differs from two others in its IPv4 header checksum only.
    assert_eq!(distinct(&file, &default), 177);
    let inner = reader(From::Network, "ttl,checksum,tunnel");
    assert_eq!(distinct(&file, &inner), 177);
    let packets = packets(&file);
    let [a, b] = [13, 14].map(|at: usize| default.ignored_fields(&packets[at].packet(&file)));
    assert_eq!(a.differing(&b).to_string(), "ip-checksum");
}

#[test]
fn packets_without_ip_in_the_capture() {
    let Some(file) = capture() else { return };
    let whole = |ignore| {
        let reader = reader(From::Network, ignore);
        let packets = packets(&file).into_iter();
        let conditions = packets.map(|block| conditions_of(&reader, &block.packet(&file)));
        conditions.filter(|conditions| conditions.whole).count()
    };
    // ARP, an 802.3 frame, a loopback test, IPv4 with a total length beyond the frame, and ten
    // frames of Ethernet in MPLS.
    assert_eq!(whole("none"), 14);
    // In the pseudowires is IP.
    assert_eq!(whole("tunnel"), 4);
}
