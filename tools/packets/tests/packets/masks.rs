//! Masks: packets that differ in one field have equal keys exactly if the field is ignored.

use echoless_packets::key::{Field, FieldSet, KeyOptions, KeyReader};
use echoless_packets::synth::{Generator, Header, Ipv4, Stack};
use proptest::prelude::*;

use crate::model::{Sample, chosen, compared, levels};
use crate::mutations::mutations;
use crate::support::{key_of, layers_and_fields};

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

#[test]
fn variants_change_all_fields() {
    let variants = (0..200).flat_map(|seed| variants(&sample(seed)));
    let fields: Vec<Field> = variants.filter_map(|(_, field, ..)| field).collect();
    let all = FieldSet::of(Field::ALL).without(Field::Tunnel);
    assert_eq!(FieldSet::of(&fields).without(Field::Tunnel), all);
}

/// The field that a header is ignored with, if fields in it have names of their own.
fn owner(sample: &Sample, at: usize) -> Option<Field> {
    match sample.stack.headers.get(at) {
        Some(Header::Mpls { .. }) => Some(Field::Mpls),
        Some(Header::Hsr { .. }) => Some(Field::OtherTags),
        _ => None,
    }
}
