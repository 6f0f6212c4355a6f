//! Masks: packets that differ in one field have equal keys exactly if the field is ignored.

use echoless_packets::LinkType;
use echoless_packets::key::{Field, FieldSet, From, KeyOptions, KeyReader};
use echoless_packets::synth::{Generator, Header, Ipv4, Stack};
use proptest::prelude::*;

use crate::model::{Sample, chosen, compared, levels};
use crate::mutations::mutations;
use crate::support::{key_of, layers_and_fields, reader};

/// Gives IPv4 headers a checksum that does not follow from the other fields, so that a change of
/// one field is a change of one field.
fn fix_checksums(stack: &mut Stack) {
    for header in &mut stack.headers {
        if let Header::Ipv4(Ipv4 { checksum, .. }) = header {
            *checksum = Some(0x1234);
        }
    }
}

fn sample(seed: u64) -> Sample {
    let mut generator = Generator::new(seed);
    let mut stack = generator.stack();
    fix_checksums(&mut stack);
    let mut sample = Sample {
        stack,
        payload: generator.payload(40),
        padding: generator.payload(8),
    };
    if sample.is_bare() {
        sample.padding.clear();
    }
    sample
}

/// The packets that differ from `base` in one place: name, ignorable field, number of the header.
fn variants(base: &Sample) -> Vec<(String, Option<Field>, usize, Sample)> {
    let mut all = Vec::new();
    for mutation in mutations(&base.stack) {
        let stack = mutation.stack;
        let changed = Sample {
            stack,
            ..base.clone()
        };
        all.push((mutation.name, mutation.field, mutation.at, changed));
    }
    let last = base.stack.headers.len();
    let mut edit = |name: &str, field, change: &dyn Fn(&mut Sample)| {
        let mut changed = base.clone();
        change(&mut changed);
        all.push((name.into(), field, last, changed));
    };
    edit("longer payload", None, &|s| s.payload.push(0));
    if !base.payload.is_empty() {
        edit("first byte", None, &|s| s.payload[0] ^= 1);
        edit("last byte", None, &|s| {
            *s.payload.last_mut().expect("not empty") ^= 1;
        });
        edit("shorter payload", None, &|s| {
            s.payload.truncate(s.payload.len() - 1);
        });
    }
    edit("longer padding", Some(Field::Padding), &|s| {
        s.padding.push(0);
    });
    if !base.padding.is_empty() {
        edit("padding", Some(Field::Padding), &|s| s.padding[0] ^= 1);
    }
    all
}

fn options() -> impl Strategy<Value = KeyOptions> {
    let limit = prop::option::of(1u32..50);
    (layers_and_fields(), limit).prop_map(|((from, ignore), payload_bytes)| KeyOptions {
        from,
        ignore,
        payload_bytes,
        ..KeyOptions::default()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    /// Keys are equal exactly if the model's lists of compared fields are. If they are, the report
    /// of ignored fields has the one that was changed.
    #[test]
    fn keys_are_equal_exactly_if_the_compared_fields_are(seed: u64, options in options()) {
        let base = sample(seed);
        let reader = KeyReader::new(options.clone()).expect("good options");
        let bytes = base.bytes();
        let packet = base.stack.packet(&bytes);
        let (key, model) = (key_of(&reader, &packet), compared(&base, &options));
        let ignored = reader.ignored_fields(&packet);
        let level = levels(&base.stack.headers)[chosen(&base.stack.headers, &options)];
        for (name, field, at, changed) in variants(&base) {
            let changed_bytes = changed.bytes();
            if changed_bytes == bytes && changed.stack.link() == base.stack.link() {
                continue;
            }
            if changed.is_bare() && !changed.padding.is_empty() {
                continue;
            }
            let changed_packet = changed.stack.packet(&changed_bytes);
            let equal = key_of(&reader, &changed_packet) == key;
            let expected = compared(&changed, &options) == model;
            prop_assert_eq!(equal, expected, "{}: {:?} {:?}", name, base, options);
            let differing = ignored.differing(&reader.ignored_fields(&changed_packet));
            if equal && at < level.start {
                prop_assert!(differing.contains(Field::Tunnel), "{}: {}", name, differing);
            } else if equal && let Some(field) = field {
                // Behind the compared headers everything is payload; padding of a tunneled packet
                // is behind the outer one.
                let seen = match field {
                    Field::Padding => level.start == 0 && level.ip.is_some(),
                    _ => at < level.payload,
                };
                // A field that is compared elsewhere is reported with the header that it is in.
                let with_owner = owner(&base, at).is_some_and(|owner| differing.contains(owner));
                prop_assert!(!seen || with_owner || differing.contains(field), "{}: {}", name, differing);
            }
        }
    }
}

/// The field that a header is ignored with, if fields in it have names of their own.
fn owner(sample: &Sample, at: usize) -> Option<Field> {
    match sample.stack.headers.get(at) {
        Some(Header::Mpls { .. }) => Some(Field::Mpls),
        Some(Header::Hsr { .. }) => Some(Field::OtherTags),
        _ => None,
    }
}

/// Packets with every field, outside of tunnels.
fn rich() -> Vec<Stack> {
    let mut ipv4 = Header::ipv4();
    if let Header::Ipv4(ip) = &mut ipv4 {
        ip.checksum = Some(9);
        ip.options = vec![1; 4];
    }
    let mut tcp = Header::tcp();
    if let Header::Tcp(tcp) = &mut tcp {
        tcp.options = vec![1; 4];
    }
    let hsr = Header::Hsr {
        path: 1,
        sequence: 7,
    };
    let redundancy = Header::Tag {
        ethertype: 0xf1c1,
        bytes: vec![0, 0, 0, 7],
    };
    let ethernet = Header::ethernet();
    let links = [
        vec![
            ethernet.clone(),
            Header::vlan(1),
            Header::Pppoe { session: 2 },
        ],
        vec![
            ethernet.clone(),
            Header::vlan(1),
            Header::mpls(3),
            Header::mpls(4),
        ],
        vec![ethernet, hsr, redundancy, Header::Snap],
        vec![Header::radiotap(9, 200), Header::wireless(), Header::Snap],
    ];
    let mut stacks = Vec::new();
    for link in links {
        for ip in [ipv4.clone(), Header::ipv6()] {
            let mut headers = link.clone();
            headers.extend([ip, tcp.clone()]);
            stacks.push(Stack::new(headers));
        }
    }
    stacks
}

#[test]
fn each_mask_ignores_its_field_and_no_other() {
    let mut seen = FieldSet::EMPTY;
    for stack in rich() {
        let base = Sample {
            stack,
            payload: b"payload".to_vec(),
            padding: vec![0; 4],
        };
        let bytes = base.bytes();
        let packet = base.stack.packet(&bytes);
        for mask in Field::ALL.iter().filter(|field| **field != Field::Tunnel) {
            let reader = reader(From::Link, mask.name());
            let key = key_of(&reader, &packet);
            for (name, field, at, changed) in variants(&base) {
                let changed_bytes = changed.bytes();
                if changed_bytes == bytes {
                    continue;
                }
                // A time to live is ignored with its label, a path with its tag.
                let inside = owner(&base, at) == Some(*mask);
                let equal = key_of(&reader, &changed.stack.packet(&changed_bytes)) == key;
                assert_eq!(equal, field == Some(*mask) || inside, "{mask:?}: {name}");
                if equal {
                    seen = seen.with(*mask);
                }
            }
        }
    }
    assert_eq!(seen, FieldSet::of(Field::ALL).without(Field::Tunnel));
}

#[test]
fn the_default_ignores_what_a_router_changes() {
    let before = Stack::new(vec![Header::ethernet(), Header::ipv4(), Header::udp()]);
    let mut routed = before.clone();
    if let Header::Ipv4(ip) = &mut routed.headers[1] {
        ip.ttl -= 1;
    }
    routed.headers[0] = Header::Ethernet {
        destination: [2, 9, 9, 9, 9, 9],
        source: [2, 8, 8, 8, 8, 8],
    };
    routed.headers.insert(1, Header::vlan(7));
    let reader = KeyReader::new(KeyOptions::default()).expect("good options");
    let (a, b) = (before.bytes(b"data"), routed.bytes(b"data"));
    let (a, b) = (before.packet(&a), routed.packet(&b));
    assert_eq!(key_of(&reader, &a), key_of(&reader, &b));
    let differing = reader
        .ignored_fields(&a)
        .differing(&reader.ignored_fields(&b));
    assert_eq!(differing.to_string(), "mac,vlan,ttl,ip-checksum");
    // The same packet in another link header.
    let raw = Stack::new(before.headers[1..].to_vec());
    let bytes = raw.bytes(b"data");
    assert_eq!(key_of(&reader, &raw.packet(&bytes)), key_of(&reader, &a));
}

#[test]
fn a_packet_and_its_tunneled_copy_are_equal_without_the_tunnel() {
    let plain = Stack::new(vec![Header::ethernet(), Header::ipv4(), Header::tcp()]);
    let bytes = plain.bytes(b"data");
    let ignore = "ttl,checksum,tunnel";
    let inner = reader(From::Network, ignore);
    let key = key_of(&inner, &plain.packet(&bytes));
    let outer = [Header::ethernet(), Header::ipv6()];
    let ethernet = Header::ethernet();
    let tunnels: [&[Header]; 14] = [
        &[],
        &[Header::gre()],
        &[Header::gre(), ethernet.clone()],
        &[
            Header::Gre {
                checksum: false,
                key: None,
                sequence: Some(1),
            },
            Header::Erspan { session: 1 },
            ethernet.clone(),
            Header::vlan(1),
        ],
        &[Header::udp(), Header::vxlan(1), ethernet.clone()],
        &[
            Header::udp(),
            Header::geneve(1),
            ethernet.clone(),
            Header::vlan(3),
        ],
        &[Header::udp(), Header::geneve(1)],
        &[Header::udp(), Header::gtp_u(1)],
        &[Header::mpls(5)],
        &[Header::EtherIp, ethernet.clone()],
        &[Header::udp(), Header::mpls(5)],
        &[Header::udp(), Header::Tzsp { fields: vec![] }, ethernet],
        &[
            Header::udp(),
            Header::Tzsp {
                fields: vec![0, 10, 1, 200],
            },
            Header::wireless(),
            Header::Snap,
        ],
        &[
            Header::udp(),
            Header::L2tp {
                tunnel: 1,
                session: 2,
            },
            Header::Link {
                kind: LinkType::PPP,
                bytes: vec![0xff, 0x03],
            },
        ],
    ];
    for tunnel in tunnels {
        let mut headers = outer.to_vec();
        headers.extend_from_slice(tunnel);
        headers.extend([Header::ipv4(), Header::tcp()]);
        let stack = Stack::new(headers);
        let bytes = stack.bytes(b"data");
        let packet = stack.packet(&bytes);
        assert_eq!(key_of(&inner, &packet), key, "{tunnel:?}");
        assert!(inner.key(&packet, &mut Vec::new()).conditions.inner);
        let outermost = reader(From::Network, "ttl,checksum");
        assert_ne!(key_of(&outermost, &packet), key, "{tunnel:?}");
    }
}
