//! `echoless packets --diagnose`: feeds in which equal packets are no copies or prove nothing, and
//! copies that look like packets that were sent again.

use echoless_packets::synth::{Generator, Header, Ipv6};
use serde_json::{Value, json};

use crate::packets_diagnose::{
    Captured, MS, SECOND, Sent, arp, capture, copy, diagnose, ip, original, tcp, traffic, udp,
};
use crate::packets_support::{frame, pcap, split};
use crate::run::Folder;

const US: u64 = 1000;

fn sent(time: u64, headers: &[Header], payload: &[u8]) -> Sent {
    Sent {
        time,
        headers: [&[Header::ethernet()], headers].concat(),
        payload: payload.to_vec(),
    }
}

/// A packet of IPv6 between hosts of these numbers.
fn ipv6(from: u8, to: [u8; 2]) -> Header {
    let Header::Ipv6(ip) = Header::ipv6() else {
        unreachable!("the header of IPv6");
    };
    let mut destination = [0; 16];
    destination[..2].copy_from_slice(&to);
    Header::Ipv6(Ipv6 {
        source: [from; 16],
        destination,
        ..ip
    })
}

/// A datagram without a checksum.
fn unchecked(port: u16) -> Header {
    Header::Udp {
        source: port,
        destination: 7001,
        checksum: 0,
    }
}

/// The same packet at each of these times after the first one.
fn again(first: Sent, later: impl IntoIterator<Item = u64>) -> Vec<Sent> {
    let at = |later| Sent {
        time: first.time + later,
        ..first.clone()
    };
    later.into_iter().map(at).collect()
}

/// The packet in a tunnel whose outer header has this identification.
fn tunnelled(packet: &Sent, id: usize) -> Sent {
    let tunnel = [ip(99, id as u16), udp(5000), Header::vxlan(42)];
    let headers = [&[Header::ethernet()], &tunnel[..], &packet.headers].concat();
    Sent {
        headers,
        ..packet.clone()
    }
}

fn originals(sent: &[Sent]) -> Vec<Captured> {
    sent.iter().map(original).collect()
}

/// The text and the figures of the diagnosis of a feed, and a folder with its file.
fn diagnosed(feed: Vec<Captured>, options: &str) -> (String, Value, Folder, (Vec<u8>, Vec<bool>)) {
    let (file, copies) = capture(feed);
    let folder = Folder::with(&[("mirror.pcapng", &file)]);
    let (text, stats) = diagnose(&folder, &format!("{options} mirror.pcapng"));
    (text, stats, folder, (file, copies))
}

/// Checks that nothing in this feed is called a copy.
#[track_caller]
fn check_none(name: &str, feed: Vec<Captured>) {
    let (text, stats, ..) = diagnosed(feed, "");
    let found = (&stats["copies"], &stats["command"]);
    assert_eq!(found, (&json!(0), &Value::Null), "{name}: {text}");
}

/// Checks that the recommended command has these options and removes exactly the copies, of which
/// the diagnosis counts all but `uncounted`.
#[track_caller]
fn check_removed(feed: Vec<Captured>, options: &str, recommended: &[&str], uncounted: usize) {
    let (text, stats, folder, (file, copies)) = diagnosed(feed, options);
    assert_eq!(stats["options"], json!(recommended), "{text}");
    let planted = copies.iter().filter(|is_copy| **is_copy).count();
    assert_eq!(stats["copies"], planted - uncounted, "{text}");
    let command = stats["command"].as_str().unwrap();
    let command = command.strip_prefix("echoless ").unwrap();
    folder.echoless(format!("{command} -q")).text();
    let (kept, _) = split(&file, &copies);
    assert!(folder.bytes("clean.pcapng") == kept, "{text}");
}

#[test]
fn a_tunnel_proves_nothing_of_what_is_sent_again_inside() {
    let beat = sent(333, &[ip(70, 0), udp(9000)], b"alive");
    let beats = again(beat, (0..100).map(|number| number * 20 * MS));
    let requests = (0..40).flat_map(|number| {
        let time = u64::from(number) * 20 * MS + 333;
        let request = sent(time, &[ip(71, 0), udp(3000 + number)], b"example");
        again(request, [0, 300 * MS, 900 * MS])
    });
    for repeats in [beats, requests.collect()] {
        let all = [traffic(), repeats].concat();
        let inside = (1..).zip(&all).map(|(id, it)| tunnelled(it, id));
        check_none("tunnel", originals(&inside.collect::<Vec<_>>()));
        // Both directions, each packet in a tunnel of its own to the capture.
        let copies = all.iter().enumerate().flat_map(|(number, it)| {
            let [first, second] = [1, 2].map(|id| tunnelled(it, 2 * number + id));
            [original(&first), copy(number, it, second.padded())]
        });
        check_removed(copies.collect(), "", &["--window", "100us", "--inner"], 0);
    }
}

#[test]
fn what_is_sent_again_behind_a_copy_is_no_copy_of_it() {
    let beat = sent(333, &[ip(70, 0), udp(9000)], b"alive");
    let beats = again(beat, (0..100).map(|number| number * 20 * MS));
    let acknowledgments = (0..100).flat_map(|number: u32| {
        let time = u64::from(number) * 20 * MS + 777;
        let packet = sent(time, &[ip(72, 0), tcp(7, number * 1000)], &[]);
        again(packet, [0, 500 * US, 1000 * US])
    });
    let all = [traffic(), beats.clone(), acknowledgments.collect()].concat();
    let routed = all.iter().enumerate().filter_map(|(number, it)| {
        let mut behind = it.clone();
        let ip = behind.headers.iter_mut().find_map(|header| match header {
            Header::Ipv4(ip) => Some(ip),
            _ => None,
        });
        ip?.ttl -= 1;
        Some(copy(number, it, behind.padded()))
    });
    let feed = [originals(&all), routed.collect()].concat();
    check_removed(feed, "", &["--window", "100us"], 0);
    // By two ways in turn.
    let ways = beats.iter().enumerate().map(|(number, it)| {
        let tunnel = tunnelled(it, number + 1);
        let way = [Header::ethernet(), ip(number as u8 % 2, number as u16 + 1)];
        Sent {
            headers: [&way[..], &tunnel.headers[2..]].concat(),
            ..tunnel
        }
    });
    let feed = [traffic(), ways.collect()].concat();
    check_none("two ways", originals(&feed));
}

#[test]
fn other_addresses_and_vlans_prove_nothing_on_a_link() {
    let from = |host: u8, ethertype, payload: &[u8], time| Sent {
        headers: vec![
            Header::Ethernet {
                destination: [1, 0x80, 0xc2, 0, 0, 3],
                source: [2, 0, 0, 0, 1, host],
            },
            Header::Opaque { ethertype },
        ],
        ..sent(time, &[], payload)
    };
    let logins = (0..60).map(|number: u8| {
        let time = u64::from(number) * 30 * MS + 777;
        from(number % 20, 0x888e, &[1, 1, 0, 0], time)
    });
    let probes = (0..8).flat_map(|number| {
        let first = arp(number, u64::from(number) * 200 * MS + 5555);
        let second = from(1, 0x0806, &first.payload, first.time + SECOND);
        [first, second]
    });
    let listeners = Header::Icmpv6 {
        kind: 130,
        code: 0,
        checksum: 77,
        rest: 0,
    };
    let query = sent(500 * MS, &[ipv6(1, [0xff, 0x02]), listeners], &[0; 16]);
    let queries = |vlans: u16| {
        let query = &query;
        (0..vlans).map(move |number| Sent {
            time: query.time + u64::from(number) * 50 * US,
            ..query.behind(&[Header::ethernet(), Header::vlan(10 + number)])
        })
    };
    for (name, repeats) in [
        ("logins", logins.collect()),
        ("probes", probes.collect::<Vec<_>>()),
        ("queries", queries(10).collect()),
        ("fewer queries", queries(7).collect()),
    ] {
        check_none(name, originals(&[traffic(), repeats].concat()));
    }
}

#[test]
fn a_few_of_very_many_packets_are_no_copies() {
    let sent: Vec<Sent> = (1..=7000_u16)
        .map(|id| {
            sent(
                u64::from(id) * 9 * US,
                &[ip(id as u8 % 9, id), tcp(u32::from(id), 1)],
                &[],
            )
        })
        .collect();
    let tagged = |step| {
        let copied = sent.iter().enumerate().skip(100).step_by(step);
        let copies = copied.map(|(number, sent)| {
            let tagged = sent.behind(&[Header::ethernet(), Header::vlan(7)]);
            copy(number, sent, tagged.padded())
        });
        [originals(&sent), copies.collect()].concat()
    };
    check_none("6 of 7000", tagged(1200));
    check_removed(tagged(700), "", &["--window", "100us"], 0);
}

#[test]
fn cut_packets_are_copies_only_with_a_checksum() {
    // Equal up to 96 bytes, without a checksum and an identification.
    let unequal = (0..600_u64).map(|number| {
        let time = number / 2 * 3 * MS + number % 2 * 30 * US + 50;
        let payload = [&[b'H'; 100][..], &number.to_be_bytes()].concat();
        sent(time, &[ip(80, 0), unchecked(7000)], &payload)
    });
    let copied: Vec<Sent> = traffic()
        .into_iter()
        .filter(|it| matches!(it.headers[1], Header::Ipv4(_)))
        .collect();
    let cut = copied.iter().enumerate().map(|(number, it)| Captured {
        interface: 1,
        snap: 96,
        ..copy(number, it, it.padded())
    });
    let feed = [
        originals(&copied),
        cut.collect(),
        originals(&unequal.collect::<Vec<_>>()),
    ];
    let options = "--window 10us --snap-safe 82 --ignore lan-id,ttl,ip-checksum";
    let options: Vec<&str> = options.split(' ').collect();
    // The first one teaches where packets are cut.
    check_removed(feed.concat(), "", &options, 1);
}

#[test]
fn packets_that_are_cut_in_their_headers_are_not_compared() {
    let all = traffic();
    let copies = all.iter().enumerate().map(|(number, it)| Captured {
        interface: 1,
        ..copy(number, it, it.padded())
    });
    let cut = (0..400_u32).flat_map(|number| {
        let time = u64::from(number) * 2 * MS + 77;
        let whole = sent(
            time,
            &[ipv6(7, [0xfd, 8]), tcp(number * 1000, 7)],
            &[number as u8; 400],
        );
        let cut = Captured {
            time: time + 99 * US,
            interface: 1,
            snap: 54,
            ..original(&whole)
        };
        [original(&whole), cut]
    });
    let feed = [originals(&all), copies.collect(), cut.collect()].concat();
    check_removed(feed, "", &["--window", "100us"], 0);
}

#[test]
fn other_checksums_tell_cut_packets_apart() {
    let mut random = Generator::new(7);
    let datagrams = (0..3000_u64).map(|number| {
        let datagram = Header::Udp {
            source: 443,
            destination: 50_000,
            checksum: random.below(65_536) as u16,
        };
        let payload = [&b"@ABCDEFGH"[..], &number.to_be_bytes(), &[0; 600]].concat();
        let time = number / 10 * 30 * MS + number % 10 * 12 * US;
        Captured {
            snap: 68,
            ..original(&sent(time, &[ipv6(1, [0xfd, 2]), datagram], &payload))
        }
    });
    check_none("cut", datagrams.collect());
}

#[test]
fn bursts_without_an_identification_prove_nothing() {
    let mut random = Generator::new(11);
    let mut time = 0;
    let mut events = Vec::new();
    for _ in 0..400 {
        time += random.below(10 * MS);
        events.push(time);
    }
    let bursts = |number: u64, apart: u64, count: u64, packet: &dyn Fn(u64) -> Sent| {
        let of = (0..number).flat_map(|it| again(packet(it), (0..count).map(|nth| nth * apart)));
        of.collect::<Vec<_>>()
    };
    let search = |number: u64| {
        let time = number * 90 * MS + 111;
        sent(
            time,
            &[ip(81, 0), udp(40_000 + number as u16)],
            b"M-SEARCH * HTTP/1.1",
        )
    };
    let reset = |number: u64| {
        let time = number * 100 * MS;
        sent(
            time,
            &[ip(100 + number as u8, 0), tcp(number as u32 * 99, 0)],
            &[],
        )
    };
    let same = |pause: u64| {
        move |number: u64| sent(number * pause, &[ip(83, 0xbeef), udp(5005)], b"state")
    };
    let acknowledgments = (0..900_u32).map(|number| {
        let acknowledged = number - u32::from(number % 3 == 2);
        let time = u64::from(number) * 2 * MS + 99;
        sent(
            time,
            &[ipv6(3, [0xfd, 4]), tcp(7, acknowledged * 1000)],
            &[],
        )
    });
    let event = sent(0, &[ip(84, 0), udp(5005)], b"tick");
    for (name, repeats) in [
        ("searches", bursts(20, 1500 * US, 3, &search)),
        (
            "announcements",
            bursts(3, 20 * US, 5, &|it| arp(it as u8, it * 300 * MS)),
        ),
        ("resets", bursts(10, 30 * US, 3, &reset)),
        ("one identification", bursts(20, 7 * MS, 4, &same(95 * MS))),
        (
            "one identification, longer pauses",
            bursts(20, 7 * MS, 4, &same(150 * MS)),
        ),
        ("acknowledgments", acknowledgments.collect()),
        ("events", again(event, events)),
    ] {
        check_none(name, originals(&[traffic(), repeats].concat()));
    }
}

#[test]
fn what_hosts_send_again_far_behind_the_copies_is_no_copy() {
    let all: Vec<Sent> = traffic()
        .into_iter()
        .filter(|it| matches!(&it.headers[1], Header::Ipv4(ip) if ip.id > 0))
        .collect();
    let routed = all.iter().enumerate().map(|(number, it)| {
        let mut behind = it.clone();
        if let Header::Ipv4(ip) = &mut behind.headers[1] {
            ip.ttl -= 1;
        }
        copy(number, it, behind.padded())
    });
    let copied = [originals(&all), routed.collect()].concat();
    // Fewer and more than the copies.
    for repeated in [200, 900_u32] {
        for later in [500 * US, 5 * MS, 50 * MS] {
            for network in [ipv6(3, [0xfd, 4]), ip(88, 0)] {
                let repeats = (0..repeated).flat_map(|number| {
                    let time = u64::from(number) * 2 * MS + 5;
                    let packet = [network.clone(), tcp(7, number * 1000)];
                    again(sent(time, &packet, &[]), [0, later])
                });
                let feed = [&copied[..], &originals(&repeats.collect::<Vec<_>>())].concat();
                check_removed(feed, "", &["--window", "100us"], 0);
            }
        }
    }
}

#[test]
fn packets_that_were_not_compared_are_told() {
    // All but the first one are too late.
    let late = (1..).zip([1, 2, 1, 2]).map(|(time, id)| (time, frame(id)));
    let file = pcap(
        &[(4_000_000, frame(0))]
            .into_iter()
            .chain(late)
            .collect::<Vec<_>>(),
    );
    let folder = Folder::with(&[("late.pcap", file)]);
    let (text, stats) = diagnose(&folder, "late.pcap");
    let told = "5 packets, no copies among the 1 that were compared\n4 packets were not compared, as \
                they are before the latest one by more than the window: sort them first \
                (reordercap)\n";
    assert_eq!(text, told);
    assert_eq!(
        (&stats["packets"], &stats["unjudged"]),
        (&json!(5), &json!(4))
    );
    let run = folder.echoless("packets --count --window 1s --summary full late.pcap");
    let told = "4 packets too late, passed unjudged; sort the packets by time first (reordercap)";
    assert!(run.stderr.contains(told), "{}", run.stderr);
    let window = "window of 1 second, forgotten at most";
    assert!(run.stderr.contains(window), "{}", run.stderr);
}

#[test]
fn a_feed_without_identifications_is_copied_in_most_flows() {
    let feed = |flows| {
        let packets = (0..600_u16).map(move |number| {
            let time = u64::from(number) * 500 * US;
            let datagram = [ipv6(1, [0xfd, 2]), udp(2000 + number % flows)];
            sent(time, &datagram, &number.to_be_bytes())
        });
        let copied = |(number, it): (usize, Sent)| [original(&it), copy(number, &it, it.padded())];
        packets.enumerate().flat_map(copied).collect::<Vec<_>>()
    };
    check_removed(feed(7), "", &["--window", "100us"], 0);
    check_none("one flow", feed(1));
}

#[test]
fn many_copies_of_a_packet_are_not_periodic() {
    for across in [0, 1] {
        let all = traffic();
        let copies = all.iter().flat_map(|it| {
            (1..12).map(move |nth| Captured {
                time: it.time + u64::from(nth) * 2 * US,
                interface: across * nth,
                is_copy: true,
                ..original(it)
            })
        });
        let feed = [originals(&all), copies.collect()].concat();
        check_removed(feed, "", &["--window", "100us"], 0);
    }
}

#[test]
fn a_period_takes_back_its_own_packets_only() {
    let all = traffic();
    let late = all.iter().map(|it| Captured {
        time: it.time + 1500 * US,
        is_copy: true,
        ..original(it)
    });
    let state = sent(99, &[ip(85, 0), udp(5005)], b"state");
    let times = (0..110).map(|nth| nth / 10 * 150 * MS + nth % 10 * MS);
    let feed = [
        originals(&all),
        late.collect(),
        originals(&again(state, times)),
    ]
    .concat();
    let (text, stats, ..) = diagnosed(feed, "");
    assert_eq!(
        (&stats["copies"], &stats["doubtful"]),
        (&json!(1000), &json!([])),
        "{text}"
    );
}

#[test]
fn very_many_kinds_of_pairs_are_counted() {
    let pairs = (0..17_000_u32).flat_map(|number| {
        let headers = [ip((number % 200) as u8, number as u16 + 1), udp(4000)];
        let first = original(&sent(
            u64::from(number) * US,
            &headers,
            &number.to_be_bytes(),
        ));
        let second = Captured {
            time: first.time + 1500,
            interface: number / 150 % 150,
            is_copy: true,
            ..first.clone()
        };
        let interface = number % 150;
        [Captured { interface, ..first }, second]
    });
    // Behind them, periods are still taken back.
    let beats = (0..300_u64).flat_map(|host| {
        let headers = [ip(host as u8, 0), udp(5000 + host as u16 / 250)];
        let beat = sent(100 * MS + host * 10 * US, &headers, b"alive");
        originals(&again(beat, (0..10).map(|nth| nth * 10 * MS)))
    });
    let (text, stats, ..) = diagnosed(pairs.chain(beats).collect(), "");
    assert_eq!(stats["copies"], 17_000, "{text}");
    assert!(stats["other_interfaces"].as_u64() > Some(0), "{text}");
}

#[test]
fn copies_that_come_a_minute_later() {
    let all: Vec<Sent> = traffic()
        .into_iter()
        .filter(|it| matches!(&it.headers[1], Header::Ipv4(ip) if ip.id > 0))
        .collect();
    let later = all.iter().map(|it| Captured {
        time: it.time + 60 * SECOND,
        interface: 1,
        is_copy: true,
        ..original(it)
    });
    let feed = [originals(&all), later.collect()].concat();
    check_removed(feed, "--window 2m", &["--window", "61s"], 0);
}

#[test]
fn what_is_not_remembered_is_said() {
    // Three keys for each packet: as it is, in its tunnel, and as far as the first one was cut.
    let cut = Captured {
        snap: 70,
        ..original(&sent(0, &[ip(1, 1), tcp(1, 1)], &[0; 100]))
    };
    let first = sent(US, &[ip(86, 9), udp(1)], b"copied");
    let between = (0..100_000_u32).map(|number| {
        let packet = sent(0, &[ip(87, number as u16), udp(2)], &number.to_be_bytes());
        let time = 2 * US + u64::from(number) * 9 * US;
        Sent {
            time,
            ..tunnelled(&packet, number as usize)
        }
    });
    let last = Captured {
        time: SECOND,
        ..original(&first)
    };
    let between = between.map(|it| original(&it));
    let (file, _) = capture(
        [cut, original(&first), last]
            .into_iter()
            .chain(between)
            .collect(),
    );
    let folder = Folder::with(&[("mirror.pcapng", &file)]);
    let text = folder
        .echoless("packets -q --diagnose mirror.pcapng")
        .text();
    assert!(
        text.starts_with("100,003 packets, no copies as far as the diagnosis remembers\n1 equal "),
        "{text}"
    );
}

#[test]
fn the_command_can_be_run() {
    // A capture in pcap under any name.
    let all = traffic();
    let packets = all
        .iter()
        .flat_map(|it| [0, 1].map(|later| (it.time / US + later, it.padded())));
    let pcap = pcap(&packets.collect::<Vec<_>>());
    let folder = Folder::new();
    for (name, given, inputs, output) in [
        (
            "mirror.pcapng",
            "mirror.pcapng",
            "mirror.pcapng",
            "clean.pcap",
        ),
        ("-mirror", "-- -mirror", "./-mirror", "clean.pcap"),
        ("clean.pcap", "clean.pcap", "clean.pcap", "clean-2.pcap"),
        ("unused", "", "FILE", "clean.pcap"),
    ] {
        folder.write(name, &pcap);
        let args = format!("packets -q --diagnose --stats stats {given}");
        folder.echoless_on(args, &pcap).text();
        let stats = folder.json("stats");
        let command = stats["diagnosis"]["command"].as_str().unwrap();
        assert!(
            command.ends_with(&format!(" {inputs} -o {output}")),
            "{command}"
        );
        folder.write("FILE", &pcap);
        let command = command.strip_prefix("echoless ").unwrap();
        folder.echoless(format!("{command} -q")).text();
    }
}
