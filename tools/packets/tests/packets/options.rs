//! Options: names, defaults, and every rejection.

use echoless_packets::Packet;
use echoless_packets::key::{Field, FieldSet, From, Group, KeyOptions, KeyReader, MIN_SNAP};
use echoless_packets::synth::{Header, Stack};

use crate::support::conditions_of;

fn rejected(options: KeyOptions) -> String {
    KeyReader::new(options)
        .expect_err("bad options")
        .to_string()
}

#[test]
fn names_are_unique_and_parse_to_their_values() {
    for field in Field::ALL {
        let set: FieldSet = field.name().parse().expect("a name");
        assert_eq!(set, FieldSet::of(&[*field]));
        assert_eq!(set.to_string(), field.name());
    }
    let all = FieldSet::of(Field::ALL);
    assert_eq!(all.to_string().parse(), Ok(all));
    assert_eq!(all.iter().collect::<Vec<_>>(), Field::ALL);
    assert_eq!(FieldSet::EMPTY.to_string().parse(), Ok(FieldSet::EMPTY));
    assert_eq!(
        "checksum".parse(),
        "ip-checksum,transport-checksum".parse::<FieldSet>()
    );
    for name in ["link", "network", "transport", "payload"] {
        assert_eq!(name.parse::<From>().expect("a name").to_string(), name);
    }
    for name in ["none", "interface", "vlan"] {
        assert_eq!(name.parse::<Group>().expect("a name").to_string(), name);
    }
}

#[test]
fn unknown_names_are_rejected() {
    let allowed = "capture-header, mac, vlan, other-tags, lan-id, mpls, pppoe, padding, tos, ttl, \
                   ip-id, ip-checksum, ip-options, \
                   flow-label, transport-checksum, tcp-seq, tcp-ack, tcp-window, tcp-options, \
                   tunnel, checksum or none alone";
    for (text, name) in [("TTL", "TTL"), ("ttl,", ""), ("", ""), ("ttl,none", "none")] {
        let error = text.parse::<FieldSet>().expect_err("no field").to_string();
        assert_eq!(error, format!("invalid ignore={name}: expected {allowed}"));
    }
    let error = "layer3".parse::<From>().expect_err("no layer").to_string();
    assert_eq!(
        error,
        "invalid from=layer3: expected link, network, transport, payload"
    );
    let error = "port".parse::<Group>().expect_err("no group").to_string();
    assert_eq!(error, "invalid group=port: expected none, interface, vlan");
}

#[test]
fn contradictions_are_rejected() {
    let default = KeyOptions::default;
    let snap = KeyOptions {
        snap_safe: Some(MIN_SNAP - 1),
        ..default()
    };
    assert_eq!(
        rejected(snap),
        "invalid snap_safe=39: expected at least 40 bytes"
    );
    let none = KeyOptions {
        from: From::Payload,
        payload_bytes: Some(0),
        ..default()
    };
    assert_eq!(
        rejected(none),
        "invalid payload_bytes=0: expected at least 1 with from=payload"
    );
    let ignore = FieldSet::of(&[Field::Vlan]);
    let group = KeyOptions {
        ignore,
        group: Group::Vlan,
        ..default()
    };
    let text = "invalid group=vlan: expected none or interface if vlan is ignored";
    assert_eq!(rejected(group), text);
    for good in [
        KeyOptions {
            snap_safe: Some(MIN_SNAP),
            ..default()
        },
        KeyOptions {
            payload_bytes: Some(0),
            ..default()
        },
        KeyOptions {
            group: Group::Vlan,
            ..default()
        },
    ] {
        assert_eq!(
            KeyReader::new(good.clone())
                .expect("good options")
                .options(),
            &good
        );
    }
}

/// TCP of the IP packet of these addresses, captured up to this many bytes of its header.
fn cut_tcp(address: u8, ip: Header, captured: usize) -> (Stack, Vec<u8>) {
    let stack = Stack::new(vec![Header::ethernet(), ip, Header::tcp()]);
    let mut bytes = stack.bytes(b"payload");
    let header = bytes.len() - 27;
    // The last byte of the destination, and the last one of the source port.
    (bytes[header - 1], bytes[header + 1]) = (address, address);
    bytes.truncate(header + captured);
    (stack, bytes)
}

#[test]
fn what_was_captured_of_a_header_is_no_payload() {
    let options = KeyOptions {
        payload_bytes: Some(0),
        ..KeyOptions::default()
    };
    let reader = KeyReader::new(options).expect("good options");
    for ip in [Header::ipv4(), Header::ipv6()] {
        let key = |port: u8, captured| {
            let (stack, mut bytes) = cut_tcp(7, ip.clone(), captured);
            let end = bytes.len();
            bytes[end - captured + 1] = port;
            let packet = Packet {
                original_len: 100,
                ..stack.packet(&bytes)
            };
            crate::support::key_of(&reader, &packet)
        };
        for captured in 2..=20 {
            assert_eq!(key(1, captured), key(1, captured));
            assert_ne!(key(1, captured), key(2, captured), "{captured}");
        }
    }
}

#[test]
fn without_a_byte_of_a_layer_the_rest_is_compared() {
    let reader = crate::support::reader(From::Transport, "lan-id,ttl,checksum");
    for ip in [Header::ipv4(), Header::ipv6()] {
        let key = |address, captured| {
            let (stack, bytes) = cut_tcp(address, ip.clone(), captured);
            let packet = Packet {
                original_len: 100,
                ..stack.packet(&bytes)
            };
            let whole = conditions_of(&reader, &packet).whole;
            assert_eq!(whole, captured == 0, "{captured}");
            crate::support::key_of(&reader, &packet)
        };
        assert_ne!(key(1, 0), key(2, 0));
        assert_eq!(key(1, 1), key(2, 1));
    }
}

#[test]
fn fields_in_front_of_the_first_layer_are_left_out() {
    let left_out = |from| {
        let options = KeyOptions {
            from,
            ignore: FieldSet::EMPTY,
            ..KeyOptions::default()
        };
        KeyReader::new(options).expect("good options").left_out()
    };
    assert_eq!(left_out(From::Link), FieldSet::EMPTY);
    assert_eq!(
        left_out(From::Network).to_string(),
        "capture-header,mac,vlan,other-tags,lan-id,mpls,pppoe,padding"
    );
    let all = FieldSet::of(Field::ALL).without(Field::Tunnel);
    assert_eq!(left_out(From::Payload), all);
    assert!(left_out(From::Transport).contains(Field::FlowLabel));
    assert!(!left_out(From::Transport).contains(Field::TcpSeq));
}
