//! Records that `rasn` encodes and decodes: where it reads a record, our fields are its fields.

use echoless_ber::{Selector, element};
use proptest::collection::vec;
use proptest::prelude::*;
use rasn::types::{Integer, OctetString};
use rasn::{AsnType, Decode, Decoder, Encode};

use crate::support::select;

/// A call record with implicit tags, as in TS 32.298.
#[derive(Debug, Clone, PartialEq, AsnType, Encode, Decode)]
#[rasn(tag(context, 0))]
struct Call {
    #[rasn(tag(context, 0))]
    kind: Integer,
    #[rasn(tag(context, 1))]
    subscriber: Option<OctetString>,
    #[rasn(tag(context, 3))]
    location: Location,
    #[rasn(tag(context, 17))]
    services: Option<Vec<OctetString>>,
    #[rasn(tag(context, 32))]
    reference: OctetString,
}

#[derive(Debug, Clone, PartialEq, AsnType, Encode, Decode)]
struct Location {
    #[rasn(tag(context, 0))]
    area: OctetString,
    #[rasn(tag(context, 31))]
    cell: Option<OctetString>,
}

const KEY: &str = "0x80,0x81?,0xA3/0x80,0xA3/0x9F1F?,0xB1/0x04?,0x9F20";

/// The lengths and contents of octet strings.
fn values<'a>(strings: impl IntoIterator<Item = &'a OctetString>) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    for string in strings {
        let encoded = rasn::ber::encode(string).unwrap();
        // Without the universal tag.
        bytes.extend(&encoded[1..]);
    }
    (!bytes.is_empty()).then_some(bytes)
}

/// The fields that the decoded record has.
fn expected(call: &Call) -> Vec<Option<Vec<u8>>> {
    let kind = rasn::ber::encode(&call.kind).unwrap();
    vec![
        Some(kind[1..].to_vec()),
        values(&call.subscriber),
        values([&call.location.area]),
        values(&call.location.cell),
        values(call.services.iter().flatten()),
        values([&call.reference]),
    ]
}

fn string() -> impl Strategy<Value = OctetString> {
    prop_oneof![8 => vec(any::<u8>(), 0..9), 1 => vec(any::<u8>(), 120..300)]
        .prop_map(OctetString::from)
}

fn call() -> impl Strategy<Value = Call> {
    (
        any::<i64>(),
        prop::option::of(string()),
        (string(), prop::option::of(string())),
        prop::option::of(vec(string(), 0..4)),
        string(),
    )
        .prop_map(
            |(kind, subscriber, (area, cell), services, reference)| Call {
                kind: kind.into(),
                subscriber,
                location: Location { area, cell },
                services,
                reference,
            },
        )
}

/// The same record with every constructed value of indefinite length. The tags have at most two
/// octets.
fn indefinite(bytes: &[u8], out: &mut Vec<u8>) {
    let mut rest = bytes;
    while let [first, ..] = rest {
        let tag = 1 + usize::from(first & 0x1f == 0x1f);
        let (length, octets) = match rest[tag] {
            0x81 => (usize::from(rest[tag + 1]), 2),
            0x82 => (
                usize::from(rest[tag + 1]) << 8 | usize::from(rest[tag + 2]),
                3,
            ),
            short => (usize::from(short), 1),
        };
        let (header, after) = rest.split_at(tag + octets);
        let (content, after) = after.split_at(length);
        if first & 0x20 == 0 {
            out.extend([header, content].concat());
        } else {
            out.extend(&header[..tag]);
            out.push(0x80);
            indefinite(content, out);
            out.extend([0, 0]);
        }
        rest = after;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn fields_are_those_that_rasn_encodes(call in call()) {
        let selector = Selector::new(None, Some(KEY), None).unwrap();
        let bytes = rasn::ber::encode(&call).unwrap();
        prop_assert_eq!(element(&bytes), 0..bytes.len());
        prop_assert_eq!(select(&selector, &bytes), Ok((expected(&call), None)));
        // Both read the indefinite form as the same record.
        let mut endless = Vec::new();
        indefinite(&bytes, &mut endless);
        prop_assert_eq!(rasn::ber::decode::<Call>(&endless).ok(), Some(call.clone()));
        prop_assert_eq!(element(&endless), 0..endless.len());
        prop_assert_eq!(select(&selector, &endless), Ok((expected(&call), None)));
    }

    /// Many changes hit a value, and the record still decodes. Changes that leave another encoding
    /// of a value, such as a string in segments, are left out: that is another value here.
    #[test]
    fn damaged_records_that_rasn_decodes_have_its_fields(
        call in call(),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..3),
    ) {
        let selector = Selector::new(None, Some(KEY), None).unwrap();
        let mut bytes = rasn::ber::encode(&call).unwrap();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let found = select(&selector, &bytes);
        if let Ok(decoded) = rasn::ber::decode::<Call>(&bytes)
            && rasn::ber::encode(&decoded).is_ok_and(|again| again == bytes)
        {
            prop_assert_eq!(found, Ok((expected(&decoded), None)));
        }
    }
}
