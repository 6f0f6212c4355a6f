//! Drops the copies of packets that a mirror port makes, one packet at a time, within a window of
//! time.
//!
//! A packet that was passed within the last second is a copy. Later it may be a retransmission,
//! which passes: the filter has a window. Ticks are milliseconds of the capture's own clock; no
//! system clock is read.
//!
//! The window counts from the packet that passed (`refresh=false`). Lines renew keys unless they
//! are told otherwise: then every copy begins the window anew, and a packet that its sender repeats
//! more often than once in a window, such as a keepalive, would pass once and never again.
//!
//! ```sh
//! cargo run --release -p echoless --example packets
//! ```

use std::error::Error;
use std::net::{IpAddr, Ipv4Addr};

use echoless::{Filter, FilterSpec, KeyHash, KeyHasher, Verdict};

/// What a capture library hands out.
#[derive(Clone)]
struct Packet {
    millisecond: u64,
    source: IpAddr,
    destination: IpAddr,
    identification: u16,
    payload: Vec<u8>,
}

impl Packet {
    /// The hash of what is equal in all copies of a packet. The time to live and the checksum are
    /// not: a router on the way changes them.
    fn key(&self, hasher: &KeyHasher) -> KeyHash {
        // An address has one hash, also if it is mapped into IPv6.
        let hash = |address: IpAddr| match address.to_canonical() {
            IpAddr::V4(v4) => hasher.hash_u64(v4.to_bits().into()),
            IpAddr::V6(v6) => hasher.hash_u128(v6.to_bits()),
        };
        let addresses = [self.source, self.destination].map(|address| hash(address).get());
        let mut fixed = [0; 18];
        fixed[..8].copy_from_slice(&addresses[0].to_le_bytes());
        fixed[8..16].copy_from_slice(&addresses[1].to_le_bytes());
        fixed[16..].copy_from_slice(&self.identification.to_le_bytes());
        hasher.hash_parts([&fixed[..], &self.payload])
    }
}

/// The time between two keepalives: less than a window.
const KEEPALIVE: usize = 400;

/// One packet every millisecond; every third one is mirrored 5 ms later, and every tenth one sent
/// again after 2 s. Another sender repeats a keepalive, the same packet each time.
fn capture(packets: u64) -> Vec<Packet> {
    let packet = |number: u64| Packet {
        millisecond: number,
        source: Ipv4Addr::new(192, 0, 2, (number % 250) as u8).into(),
        destination: Ipv4Addr::new(198, 51, 100, 7).into(),
        identification: number as u16,
        payload: number.to_le_bytes().repeat(8),
    };
    let later = |number, by| Packet {
        millisecond: number + by,
        ..packet(number)
    };
    let mirrored = (0..packets).step_by(3).map(|number| later(number, 5));
    let sent_again = (0..packets).step_by(10).map(|number| later(number, 2000));
    let keepalive = packet(u64::MAX);
    let keepalives = (0..packets).step_by(KEEPALIVE).map(|millisecond| Packet {
        millisecond,
        ..keepalive.clone()
    });
    let mut all: Vec<Packet> = (0..packets)
        .map(packet)
        .chain(mirrored)
        .chain(sent_again)
        .chain(keepalives)
        .collect();
    all.sort_by_key(|packet| packet.millisecond);
    all
}

fn main() -> Result<(), Box<dyn Error>> {
    let capture = capture(30_000);
    // A window of a second, in memory for the packets of several seconds.
    let spec: FilterSpec = "stamped:window=1000,refresh=false,memory=1MiB".parse()?;
    let (mut filter, hasher) = (spec.build()?, KeyHasher::seeded(0));
    let mut copies = 0;
    for packet in &capture {
        filter.advance_to(packet.millisecond);
        match filter.observe_one(packet.key(&hasher)) {
            Verdict::Fresh => {} // forward the packet here
            Verdict::Duplicate => copies += 1,
        }
    }
    println!("{copies} of {} packets are copies", capture.len());
    // What was mirrored, and nothing that was sent again. Of 75 keepalives every third one passes,
    // 1200 ms after the one before; renewed keys would drop 74.
    assert_eq!((capture.len(), copies), (43_075, 10_000 + 50));
    // While nothing is evicted before its time, no copy within the window is missed.
    assert_eq!(filter.report().tally.evictions, Some(0));
    Ok(())
}
