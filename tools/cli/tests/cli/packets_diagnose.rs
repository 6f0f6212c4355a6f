//! `echoless packets --diagnose`: feeds with copies of a known cause, and feeds without copies.

use std::fs;
use std::thread;

use echoless_packets::LinkType;
use echoless_packets::synth::{Generator, Header, Ipv4, Stack, Tcp};
use echoless_packets::writer::PcapngWriter;
use serde_json::{Value, json};

use crate::network::Network;
use crate::packets_support::split;
use crate::run::{Folder, echoless};

pub(crate) const MS: u64 = 1_000_000;
pub(crate) const SECOND: u64 = 1000 * MS;

/// A captured packet.
#[derive(Debug, Clone)]
pub(crate) struct Captured {
    /// Nanoseconds since the first packet.
    pub(crate) time: u64,
    pub(crate) interface: u32,
    pub(crate) frame: Vec<u8>,
    /// The most bytes that are captured.
    pub(crate) snap: usize,
    pub(crate) is_copy: bool,
}

/// A packet as its headers and its payload.
#[derive(Debug, Clone)]
pub(crate) struct Sent {
    pub(crate) time: u64,
    pub(crate) headers: Vec<Header>,
    pub(crate) payload: Vec<u8>,
}

impl Sent {
    fn ipv4(&mut self) -> &mut Ipv4 {
        let ip = self.headers.iter_mut().find_map(|header| match header {
            Header::Ipv4(ip) => Some(ip),
            _ => None,
        });
        ip.unwrap()
    }

    /// The frame, padded to the shortest length of Ethernet.
    pub(crate) fn padded(&self) -> Vec<u8> {
        let mut frame = self.unpadded();
        frame.resize(frame.len().max(60), 0);
        frame
    }

    fn unpadded(&self) -> Vec<u8> {
        Stack::new(self.headers.clone()).bytes(&self.payload)
    }

    /// With these headers in the place of the link header.
    pub(crate) fn behind(&self, front: &[Header]) -> Self {
        let headers = [front, &self.headers[1..]].concat();
        Self {
            headers,
            ..self.clone()
        }
    }
}

pub(crate) fn tcp(seq: u32, ack: u32) -> Header {
    Header::Tcp(Tcp {
        source: 40_000,
        destination: 443,
        seq,
        ack,
        flags: 0x10,
        window: 500,
        checksum: seq as u16 ^ 0x5555,
        urgent: 0,
        options: Vec::new(),
    })
}

pub(crate) fn udp(port: u16) -> Header {
    Header::Udp {
        source: port,
        destination: 53,
        checksum: port,
    }
}

pub(crate) fn ip(host: u8, id: u16) -> Header {
    let Header::Ipv4(ip) = Header::ipv4() else {
        unreachable!("the header of IPv4");
    };
    Header::Ipv4(Ipv4 {
        id,
        source: [10, 0, 0, host],
        ..ip
    })
}

/// An ARP request for this address.
pub(crate) fn arp(address: u8, time: u64) -> Sent {
    let mut payload = vec![0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 2, 10, 0, 0, 1];
    payload.extend([0, 0, 0, 0, 0, 0, 10, 0, 0, address]);
    Sent {
        time,
        headers: vec![Header::ethernet(), Header::Opaque { ethertype: 0x0806 }],
        payload,
    }
}

/// Two seconds of traffic without copies: eight connections with data and acknowledgments, two
/// streams of datagrams without an identification, IPv6, and ARP.
pub(crate) fn traffic() -> Vec<Sent> {
    let mut random = Generator::new(5);
    let packets = (0..1000_u32).map(|number| {
        let time = u64::from(number) * 2 * MS + random.below(MS);
        let host = (number % 12) as u8;
        let (headers, payload) = match host {
            0..6 => (vec![ip(host, number as u16), tcp(number * 1000, 7)], 1000),
            // Acknowledgments.
            6..8 => (vec![ip(host, number as u16), tcp(7, number * 1000)], 0),
            8..10 => (vec![ip(host, 0), udp(2000)], 200),
            10 => (vec![Header::ipv6(), tcp(number * 1000, 7)], 500),
            11.. => return arp((number / 12) as u8, time),
        };
        Sent {
            time,
            headers: [vec![Header::ethernet()], headers].concat(),
            payload: (0..payload).map(|_| random.below(256) as u8).collect(),
        }
    });
    packets.collect()
}

/// What hosts repeat themselves: retransmissions, keep-alives, and requests of ARP and DNS.
fn repeats(kinds: &[&str]) -> Vec<Sent> {
    let mut all = Vec::new();
    let of_host = |host, id, time, transport, payload: &[u8]| Sent {
        time,
        headers: vec![Header::ethernet(), ip(host, id), transport],
        payload: payload.to_vec(),
    };
    for number in 0..40_u16 {
        let time = u64::from(number) * 45 * MS + 1234;
        for kind in kinds {
            match *kind {
                // The second one has another identification, and comes after a round trip.
                "retransmissions" => {
                    for (id, later) in [(2 * number, 0), (2 * number + 1, 700_000)] {
                        let tcp = tcp(u32::from(number) * 9, 9);
                        all.push(of_host(50, id, time + later, tcp, b"sent again"));
                    }
                }
                // The same connection each time, without an identification.
                "keep-alives" => {
                    let time = u64::from(number) * SECOND;
                    all.push(of_host(51, 0, time, tcp(77, 99), b"\0"));
                }
                "arp" => all.push(arp(200, u64::from(number) * SECOND / 2)),
                "dns" => {
                    for later in [0, 300 * MS, 1500 * MS] {
                        let query = [&number.to_be_bytes()[..], b"\x01\0\0\x01example"].concat();
                        all.push(of_host(52, 0, time + later, udp(3000 + number), &query));
                    }
                }
                other => panic!("{other}"),
            }
        }
    }
    all
}

/// The packets of a feed in the order of time, as pcapng, and which are copies.
pub(crate) fn capture(mut packets: Vec<Captured>) -> (Vec<u8>, Vec<bool>) {
    packets.sort_by_key(|packet| packet.time);
    let mut file = PcapngWriter::new(false);
    let last = packets.iter().map(|packet| packet.interface).max();
    for _ in 0..=last.unwrap_or(0) {
        file.interface(LinkType::ETHERNET, 0, &[(9, &[9])]);
    }
    for packet in &packets {
        let captured = &packet.frame[..packet.frame.len().min(packet.snap)];
        let time = 1_700_000_000 * SECOND + packet.time;
        file.packet(packet.interface, time, captured, packet.frame.len() as u32);
    }
    let copies = packets.iter().map(|packet| packet.is_copy).collect();
    (file.into_bytes(), copies)
}

pub(crate) fn original(sent: &Sent) -> Captured {
    Captured {
        time: sent.time,
        interface: 0,
        frame: sent.padded(),
        snap: usize::MAX,
        is_copy: false,
    }
}

/// The text and the figures of the diagnosis of a file.
pub(crate) fn diagnose(folder: &Folder, name: &str) -> (String, Value) {
    let text = |more| {
        let run = folder.echoless(format!("packets -q --diagnose --stats stats {more} {name}"));
        run.text()
    };
    let whole = text("");
    // It depends neither on the threads nor on how the bytes arrive.
    assert_eq!(text("--threads 3 --read-bytes 70000"), whole);
    (whole, folder.json("stats")["diagnosis"].clone())
}

/// Checks that a feed with these copies of the usual traffic is diagnosed, and that the recommended
/// command removes exactly the copies, beside all that hosts repeat.
#[track_caller]
fn check(cause: &str, options: &str, copies: impl Fn(usize, &Sent) -> Vec<Captured>) -> Value {
    check_of(original, cause, options, copies)
}

#[track_caller]
fn check_of(
    original: impl Fn(&Sent) -> Captured,
    cause: &str,
    options: &str,
    copies: impl Fn(usize, &Sent) -> Vec<Captured>,
) -> Value {
    let mut sent = traffic();
    sent.extend(repeats(&["retransmissions", "keep-alives", "arp", "dns"]));
    let mut feed: Vec<Captured> = sent.iter().map(original).collect();
    for (number, packet) in sent.iter().enumerate() {
        feed.extend(copies(number, packet));
    }
    let (file, duplicates) = capture(feed);
    let planted = duplicates.iter().filter(|is_copy| **is_copy).count() as u64;
    let folder = Folder::with(&[("mirror.pcapng", &file)]);
    let (text, stats) = diagnose(&folder, "mirror.pcapng");
    let is_named = |line: &&str| {
        let words = line.split_once(' ').map(|(_, words)| words);
        words.is_some_and(|words| words.starts_with(&format!("{cause}: ")))
    };
    let named = text.lines().filter(is_named).count();
    assert!(named == 1 && !text.contains("doubtful"), "{text}");
    assert!((6..=13).contains(&text.lines().count()), "{text}");
    // Of copies that were cut, the first ones teach where.
    let found = stats["copies"].as_u64().unwrap();
    assert!(
        found == planted || cause == "snapped" && found + 2 >= planted,
        "{planted}: {text}"
    );
    assert!(
        stats["causes"]
            .as_array()
            .unwrap()
            .iter()
            .any(|it| it["cause"] == cause)
    );
    let command = text.lines().last().unwrap();
    let command = command
        .strip_prefix("to remove the copies: echoless ")
        .unwrap();
    assert_eq!(
        command,
        format!("packets {options}mirror.pcapng -o clean.pcapng"),
        "{text}"
    );
    let run = folder.echoless(format!("{command} --summary line"));
    assert_eq!(run.code, 0, "{}", run.stderr);
    let (kept, _) = split(&file, &duplicates);
    assert!(folder.bytes("clean.pcapng") == kept, "{text}{}", run.stderr);
    stats
}

/// A copy of a packet, a few microseconds later.
pub(crate) fn copy(number: usize, sent: &Sent, frame: Vec<u8>) -> Captured {
    Captured {
        time: sent.time + 2000 + number as u64 % 7 * 900,
        frame,
        is_copy: true,
        ..original(sent)
    }
}

#[test]
fn a_mirror_of_both_directions() {
    let stats = check("equal", "--window 100us ", |number, sent| {
        vec![copy(number, sent, sent.padded())]
    });
    assert_eq!(stats["differing_fields"], json!([]));
    assert_eq!(stats["identical"], stats["copies"]);
    assert_eq!(
        stats["within"][0],
        json!({"share": 0.5, "seconds": 5e-6, "packets": 1})
    );
}

#[test]
fn a_router() {
    let stats = check("routed", "--window 100us ", |number, sent| {
        if !matches!(sent.headers[1], Header::Ipv4(_)) {
            return Vec::new();
        }
        let link = Header::Ethernet {
            destination: [2, 0, 0, 0, 1, 1],
            source: [2, 0, 0, 0, 1, 2],
        };
        let mut behind = sent.behind(&[link]);
        behind.ipv4().ttl -= 1;
        vec![copy(number, sent, behind.padded())]
    });
    let fields = stats["differing_fields"].as_array().unwrap();
    let fields: Vec<&str> = fields
        .iter()
        .map(|it| it["field"].as_str().unwrap())
        .collect();
    assert_eq!(fields, ["mac", "ttl", "ip-checksum"]);
}

#[test]
fn a_trunk_and_an_access_port() {
    // Frames without IP are compared with their tags, and with their padding.
    let ignore = "--window 100us --ignore vlan,lan-id,padding,ttl,ip-checksum,transport-checksum ";
    let stats = check("vlan", ignore, |number, sent| {
        let tagged = sent.behind(&[Header::ethernet(), Header::vlan(7)]);
        vec![copy(number, sent, tagged.padded())]
    });
    let vlans = json!([{"original": null, "copy": 7, "duplicates": stats["copies"]}]);
    assert_eq!(stats["vlans"], vlans);
}

#[test]
fn labels_in_front_of_the_packet() {
    check("mpls", "--window 100us ", |number, sent| {
        if matches!(sent.headers[1], Header::Opaque { .. }) {
            return Vec::new();
        }
        let labelled = sent.behind(&[Header::ethernet(), Header::mpls(77), Header::mpls(78)]);
        vec![copy(number, sent, labelled.padded())]
    });
}

#[test]
fn a_tap_on_each_side() {
    let stats = check("interfaces", "--window 100us ", |number, sent| {
        let interface = 1;
        vec![Captured {
            interface,
            ..copy(number, sent, sent.padded())
        }]
    });
    let pair = json!([{"original": "0.0", "copy": "0.1", "duplicates": stats["copies"]}]);
    assert_eq!(stats["interfaces"], pair);
}

#[test]
fn a_tunnel_and_what_is_inside() {
    check("tunnel", "--window 100us --inner ", |number, sent| {
        let outer = [Header::ethernet(), ip(99, number as u16)];
        let tunnel = match number % 2 {
            0 => vec![udp(4000), Header::vxlan(42), Header::ethernet()],
            _ => {
                let (checksum, key, sequence) = (false, None, None);
                let gre = Header::Gre {
                    checksum,
                    key,
                    sequence,
                };
                vec![gre]
            }
        };
        if matches!(sent.headers[1], Header::Opaque { .. }) {
            return Vec::new();
        }
        let carried = sent.behind(&[&outer[..], &tunnel].concat());
        vec![copy(number, sent, carried.padded())]
    });
}

#[test]
fn a_remarked_type_of_service() {
    let ignore = "--window 100us --ignore lan-id,tos,ttl,ip-checksum,transport-checksum ";
    check("tos", ignore, |number, sent| {
        let mut remarked = sent.clone();
        if !matches!(sent.headers[1], Header::Ipv4(_)) {
            return Vec::new();
        }
        remarked.ipv4().tos = 0xb8;
        vec![copy(number, sent, remarked.padded())]
    });
}

#[test]
fn padding_that_only_one_of_both_has() {
    let ignore = "--window 100us --ignore lan-id,padding,ttl,ip-checksum,transport-checksum ";
    let unpadded = |sent: &Sent| Captured {
        frame: sent.unpadded(),
        ..original(sent)
    };
    check_of(unpadded, "padding", ignore, |number, sent| {
        vec![copy(number, sent, sent.padded())]
    });
}

#[test]
fn captures_with_different_snap_lengths() {
    let options = "--window 100us --snap-safe 82 --ignore lan-id,ttl,ip-checksum ";
    check("snapped", options, |number, sent| {
        let snap = 96;
        vec![Captured {
            snap,
            ..copy(number, sent, sent.padded())
        }]
    });
}

#[test]
fn three_interfaces_in_bursts() {
    let stats = check("interfaces", "--window 100us ", |number, sent| {
        let copies = [1, 2].map(|interface| {
            let first = copy(number, sent, sent.padded());
            Captured {
                interface,
                time: first.time + u64::from(interface) * 700,
                ..first
            }
        });
        copies.into()
    });
    let pairs = stats["interfaces"].as_array().unwrap();
    let pairs: Vec<_> = pairs
        .iter()
        .map(|it| (it["original"].as_str(), it["copy"].as_str()))
        .collect();
    assert_eq!(
        pairs,
        [(Some("0.0"), Some("0.1")), (Some("0.1"), Some("0.2"))]
    );
}

/// Checks that a feed has no copies, and that the run is a success.
#[track_caller]
fn check_clean(sent: &[Sent], repeats: bool) {
    let (file, _) = capture(sent.iter().map(original).collect());
    let folder = Folder::with(&[("mirror.pcapng", &file)]);
    let (text, stats) = diagnose(&folder, "mirror.pcapng");
    assert!(text.contains(" packets, no copies\n"), "{text}");
    assert!(
        !text.contains("doubtful") && !text.contains("echoless packets"),
        "{text}"
    );
    assert_eq!(
        text.contains(" were sent again by their hosts"),
        repeats,
        "{text}"
    );
    assert_eq!(stats["copies"], 0);
    assert_eq!(
        (&stats["causes"], &stats["command"]),
        (&json!([]), &Value::Null)
    );
}

#[test]
fn feeds_without_copies() {
    let kinds = [
        ("retransmissions", false),
        ("keep-alives", true),
        ("arp", true),
        ("dns", true),
    ];
    for (kind, are_equal) in kinds {
        check_clean(&[traffic(), repeats(&[kind])].concat(), are_equal);
        check_clean(&repeats(&[kind]), are_equal);
    }
    check_clean(&traffic(), false);
    // Of the generator, those that Ethernet carries.
    let mut random = Generator::new(9);
    let mut ordinary = Vec::new();
    while ordinary.len() < 2000 {
        let (stack, payload) = (random.stack(), random.payload(300));
        if stack.link() == LinkType::ETHERNET {
            ordinary.push(Sent {
                time: ordinary.len() as u64 * 10_000,
                headers: stack.headers,
                payload,
            });
        }
    }
    check_clean(&ordinary, false);
}

#[test]
fn few_copies_are_told_by_the_identification() {
    // One packet in 50 of IPv4 is copied, of long flows.
    let sent = traffic();
    let numbered = |sent: &Sent| {
        let numbered = sent
            .headers
            .iter()
            .any(|header| matches!(header, Header::Ipv4(ip) if ip.id > 0));
        numbered.then(|| sent.padded())
    };
    let copies = sent
        .iter()
        .enumerate()
        .step_by(17)
        .filter_map(|(number, sent)| Some(copy(number, sent, numbered(sent)?)));
    let feed = sent.iter().map(original).chain(copies).collect();
    let (file, duplicates) = capture(feed);
    let planted = duplicates.iter().filter(|is_copy| **is_copy).count();
    let folder = Folder::with(&[("mirror.pcapng", &file)]);
    let (text, stats) = diagnose(&folder, "mirror.pcapng");
    assert_eq!(stats["copies"], planted, "{text}");
    assert_eq!(stats["options"], json!(["--window", "100us"]));
}

#[test]
fn acknowledgments_that_are_equal_are_no_copies() {
    // Of a receiver that numbers no packets: three in a row now and then.
    let mut sent = traffic();
    for number in 0..600_u32 {
        let same = number - number % 20 / 18;
        sent.push(Sent {
            time: u64::from(number) * 100_000,
            headers: vec![Header::ethernet(), ip(60, 0), tcp(5, same * 1000)],
            payload: Vec::new(),
        });
    }
    check_clean(&sent, true);
}

/// Datagrams with equal content from some hosts, one each 20 ms.
fn heartbeats() -> Vec<Sent> {
    let beats = (0..300_u64).map(|number| Sent {
        time: number / 3 * 20 * MS + number % 3 * 700_000,
        headers: vec![
            Header::ethernet(),
            ip(70 + (number % 3) as u8, (number % 3) as u16),
            udp(9000),
        ],
        payload: b"alive".to_vec(),
    });
    beats.collect()
}

#[test]
fn heartbeats_are_no_copies() {
    check_clean(&[traffic(), heartbeats()].concat(), true);
    check_clean(&heartbeats(), true);
    // Between copies, they are kept apart by the window.
    for interface in [0, 1] {
        let sent = [traffic(), heartbeats()].concat();
        let copies = sent.iter().enumerate().map(|(number, sent)| Captured {
            interface,
            ..copy(number, sent, sent.padded())
        });
        let (file, duplicates) = capture(sent.iter().map(original).chain(copies).collect());
        let folder = Folder::with(&[("mirror.pcapng", &file)]);
        let (text, stats) = diagnose(&folder, "mirror.pcapng");
        assert_eq!(stats["options"], json!(["--window", "100us"]), "{text}");
        let clean = "packets -q --window 100us mirror.pcapng -o clean.pcapng";
        folder.echoless(clean).text();
        assert!(
            folder.bytes("clean.pcapng") == split(&file, &duplicates).0,
            "{text}"
        );
        assert_eq!(
            (&stats["copies"], &stats["removed_repeats"]),
            (&json!(1300), &json!(0))
        );
    }
}

#[test]
fn interfaces_whose_clocks_differ() {
    // The second one is 300 ms behind: what has no identification cannot be told from a repeat.
    let sent = traffic();
    let copies = sent.iter().map(|sent| Captured {
        time: sent.time + 300 * MS,
        interface: 1,
        is_copy: true,
        ..original(sent)
    });
    let (file, _) = capture(sent.iter().map(original).chain(copies).collect());
    let folder = Folder::with(&[("mirror.pcapng", &file)]);
    let (text, stats) = diagnose(&folder, "mirror.pcapng");
    assert_eq!(stats["causes"][0]["cause"], "interfaces", "{text}");
    assert_eq!(stats["options"], json!(["--window", "500ms"]), "{text}");
    assert!(text.contains("doubtful: "), "{text}");
}

#[test]
fn packets_out_of_order_need_a_longer_window() {
    // The packets of the second interface come in batches, each behind 64 of the first one.
    let sent = traffic();
    let mut file = PcapngWriter::new(false);
    for _ in 0..2 {
        file.interface(LinkType::ETHERNET, 0, &[(9, &[9])]);
    }
    let mut duplicates = Vec::new();
    for batch in sent.chunks(4) {
        for (interface, later) in [(0, 0), (1, 3000)] {
            for packet in batch {
                let frame = packet.padded();
                file.packet(interface, packet.time + later, &frame, frame.len() as u32);
                duplicates.push(interface == 1);
            }
        }
    }
    let file = file.into_bytes();
    let folder = Folder::with(&[("mirror.pcapng", &file)]);
    let (text, stats) = diagnose(&folder, "mirror.pcapng");
    assert_eq!(
        (&stats["is_unordered"], &stats["copies"]),
        (&json!(true), &json!(1000))
    );
    assert!(text.contains("not in the order of time"), "{text}");
    assert_eq!(
        stats["distance_seconds"],
        json!([{"at_most": 5e-6, "duplicates": 1000}])
    );
    let command = stats["command"]
        .as_str()
        .unwrap()
        .strip_prefix("echoless ")
        .unwrap();
    folder.echoless(format!("{command} -q")).text();
    assert!(
        folder.bytes("clean.pcapng") == split(&file, &duplicates).0,
        "{text}"
    );
}

#[test]
fn packets_without_times_need_a_window_of_packets() {
    let sent = traffic();
    let mut file = PcapngWriter::new(false);
    file.interface(LinkType::ETHERNET, 0, &[]);
    let mut duplicates = Vec::new();
    for packet in &sent {
        for is_copy in [false, true] {
            let frame = packet.padded();
            file.simple_packet(&frame, frame.len() as u32);
            duplicates.push(is_copy);
        }
    }
    let file = file.into_bytes();
    let folder = Folder::with(&[("a b.pcapng", &file)]);
    let (text, stats) = diagnose(&folder, "'a b.pcapng'");
    let command = "echoless packets --window-packets 2 'a b.pcapng' -o clean.pcapng";
    assert_eq!(stats["command"], command, "{text}");
    folder.echoless(format!("{} -q", &command[9..])).text();
    assert!(
        folder.bytes("clean.pcapng") == split(&file, &duplicates).0,
        "{text}"
    );
}

#[test]
fn malformed_and_cut_packets_are_diagnosed() {
    let mut random = Generator::new(3);
    let mut file = PcapngWriter::new(false);
    for link in [LinkType::ETHERNET, LinkType::RAW, LinkType::LINUX_SLL2] {
        file.interface(link, 0, &[(9, &[9])]);
    }
    let mut frames: Vec<Vec<u8>> = Vec::new();
    for number in 0..4000 {
        let mut frame = match frames.len() as u64 {
            seen @ 1.. if random.below(2) == 0 => frames[random.below(seen) as usize].clone(),
            _ => {
                let stack = random.stack();
                stack.bytes(&random.payload(80))
            }
        };
        for _ in 0..random.below(3) {
            let at = random.below(frame.len() as u64) as usize;
            frame[at] = random.below(256) as u8;
        }
        let captured = random.below(frame.len() as u64 + 1) as usize;
        let captured = [frame.len(), captured][random.below(2) as usize];
        let interface = random.below(3) as u32;
        file.packet(
            interface,
            number * 1000,
            &frame[..captured],
            frame.len() as u32,
        );
        frames.push(frame);
    }
    let folder = Folder::with(&[("mirror.pcapng", &file.into_bytes())]);
    for skip in ["", "--skip-bytes 4"] {
        diagnose(&folder, &format!("{skip} mirror.pcapng"));
    }
}

#[test]
fn both_ends_of_a_live_link() {
    let Some(network) = Network::new(&["a0-a1"], &["tcpreplay"]) else {
        return;
    };
    let folder = Folder::with(&[("sent", echoless("gen packets -n 500", b"").stdout)]);
    let path = |name| folder.path(name).display().to_string();
    let live = "--diagnose --interface a0 --interface a1 --packets 1000";
    let stats = path("stats");
    let run = network
        .packets("", &format!("{live} --stats {stats}"))
        .spawn()
        .unwrap();
    // Written once the interfaces are open.
    while fs::read(&stats).map_or(0, |stats| stats.len()) == 0 {
        thread::yield_now();
    }
    network.replay("a0", &path("sent"));
    let output = run.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.starts_with("1,000 packets, 500 of them copies (50.00 %)\n500 interfaces: "),
        "{text}"
    );
    assert!(text.contains("\ncopies on a1 are "), "{text}");
    let skew = &folder.json("stats")["skew"][0];
    assert_eq!(
        (&skew["first"], &skew["second"]),
        (&"a0".into(), &"a1".into())
    );
    let command = "echoless packets --window ";
    let inputs = " --interface a0 --interface a1 -o clean.pcapng\n";
    assert!(text.contains(command) && text.ends_with(inputs), "{text}");
}

#[test]
fn the_drawing_has_the_text_and_both_distances() {
    let folder = Folder::with(&[(
        "mirror.pcap",
        crate::packets_support::numbered(&[1, 1, 2, 2]),
    )]);
    let text = folder
        .echoless("packets -q --diagnose --svg out.svg mirror.pcap")
        .text();
    let svg = folder.read("out.svg");
    assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"));
    for line in text.lines() {
        assert!(svg.contains(&line.replace('\'', "&apos;")), "{line}");
    }
    for title in [
        "Equal packets by distance in time",
        "Equal packets by distance in packets",
    ] {
        assert!(svg.contains(title), "{title}");
    }
}

#[test]
fn a_diagnosis_excludes_outputs_and_keys() {
    let folder = Folder::with(&[(
        "mirror.pcap",
        crate::packets_support::numbered(&[1, 1, 2, 2]),
    )]);
    for option in [
        "-o out.pcap",
        "--tag",
        "--report",
        "--ignore ttl",
        "--window-packets 3",
        "--skip-seen-files seen",
    ] {
        let run = folder.echoless(format!("packets --diagnose {option} mirror.pcap"));
        run.fails("the argument '--diagnose' cannot be used with");
    }
    for more in ["", "--report", "-o out.pcap"] {
        let run = folder.echoless(format!("packets --svg out.svg {more} mirror.pcap"));
        run.fails("missing --diagnose: expected --diagnose beside --svg FILE");
    }
    let run = folder.echoless("packets -q --diagnose --svg mirror.pcap mirror.pcap");
    run.fails("mirror.pcap");
    assert!(!folder.has("out.svg") && !folder.has("out.pcap"));
    // A summary has no verdicts, which are those of the wide key.
    let run = folder.echoless("packets --diagnose --summary line mirror.pcap");
    assert!(
        run.stderr.contains("4 packets") && !run.stderr.contains("fresh"),
        "{}",
        run.stderr
    );
    assert_eq!(run.code, 0);
}
