//! Groups: copies count only inside one.

use echoless_packets::key::{Group, KeyOptions, KeyReader};
use echoless_packets::synth::{Header, Stack};
use echoless_packets::{InterfaceId, Packet};

use crate::support::key_of;

fn group_reader(group: Group) -> KeyReader {
    let options = KeyOptions {
        group,
        ..KeyOptions::default()
    };
    KeyReader::new(options).expect("good options")
}

#[test]
fn by_interface() {
    let stack = Stack::new(vec![Header::ethernet(), Header::ipv4(), Header::udp()]);
    let bytes = stack.bytes(b"abc");
    let on = |section, index| Packet {
        interface: InterfaceId { section, index },
        ..stack.packet(&bytes)
    };
    let (none, interface) = (group_reader(Group::None), group_reader(Group::Interface));
    for (other, same) in [(on(0, 0), true), (on(0, 1), false), (on(1, 0), false)] {
        assert_eq!(key_of(&none, &on(0, 0)), key_of(&none, &other));
        assert_eq!(
            key_of(&interface, &on(0, 0)) == key_of(&interface, &other),
            same
        );
    }
    assert_ne!(key_of(&interface, &on(0, 1)), key_of(&interface, &on(1, 0)));
}

#[test]
fn by_vlan() {
    let reader = group_reader(Group::Vlan);
    let key = |tags: &[u16]| {
        let mut headers = vec![Header::ethernet()];
        headers.extend(tags.iter().map(|tci| Header::vlan(*tci)));
        headers.extend([Header::ipv4(), Header::udp()]);
        let stack = Stack::new(headers);
        key_of(&reader, &stack.packet(&stack.bytes(b"abc")))
    };
    let groups: [&[u16]; 6] = [&[], &[0], &[1], &[2], &[1, 2], &[2, 1]];
    for (at, a) in groups.iter().enumerate() {
        for (other, b) in groups.iter().enumerate() {
            assert_eq!(key(a) == key(b), at == other, "{a:?} {b:?}");
        }
    }
    // Priority and drop eligibility are not the identifier.
    assert_eq!(key(&[0xf001]), key(&[1]));
}
