//! The fields of a record, against the tree that it was written from.

use echoless_ber::{MAX_DEPTH, Profile, Selector};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::support::{Form, select, tag, tag_text, tree};

/// A path of one to three tags.
fn path() -> impl Strategy<Value = Vec<(u8, u32)>> {
    vec(tag(), 1..4)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// A field is the canonical lengths and contents of all values on its path.
    #[test]
    fn fields_are_the_values_on_the_paths(
        record in tree(),
        paths in vec((path(), any::<bool>(), any::<bool>()), 1..6),
    ) {
        let text: Vec<String> = paths
            .iter()
            .map(|(path, constructed, optional)| {
                let tags: Vec<String> = path.iter().map(|tag| tag_text(*tag, *constructed)).collect();
                format!("{}{}", tags.join("/"), if *optional { "?" } else { "" })
            })
            .collect();
        let selector = Selector::new(None, Some(&text.join(",")), None).unwrap();
        let expected: Vec<Option<Vec<u8>>> = paths
            .iter()
            .map(|(path, ..)| {
                let values = record.on_path(path);
                let mut bytes = Vec::new();
                values.iter().for_each(|value| value.write_value(Form::Canonical, &mut bytes));
                (!values.is_empty()).then_some(bytes)
            })
            .collect();
        let lacking = (expected.iter().zip(&paths))
            .position(|(value, (.., optional))| value.is_none() && !optional);
        for form in [Form::Own, Form::Canonical] {
            let found = select(&selector, &record.bytes(form));
            prop_assert_eq!(found, Ok((expected.clone(), lacking)));
        }
    }

    /// Damaged records give an error or fields, and records cut short an error.
    #[test]
    fn damaged_records_do_not_panic(
        record in tree(),
        path in path(),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut: prop::sample::Index,
    ) {
        let tags: Vec<String> = path.iter().map(|tag| tag_text(*tag, true)).collect();
        let selector = Selector::new(None, Some(&tags.join("/")), Some("0x80")).unwrap();
        let bytes = record.bytes(Form::Own);
        let cut = &bytes[..cut.index(bytes.len())];
        prop_assert!(select(&selector, cut).is_err());
        let mut damaged = bytes.clone();
        for (at, byte) in changes {
            let at = at.index(damaged.len());
            damaged[at] = byte;
        }
        if let Ok((fields, _)) = select(&selector, &damaged) {
            prop_assert_eq!(fields.len(), 2);
        }
    }
}

#[test]
fn values_that_no_path_enters_are_skipped() {
    let selector = Selector::new(None, Some("0x80"), None).unwrap();
    // The content of [1] is no BER.
    let record = b"\xa0\x08\xa1\x03\xff\xff\xff\x80\x01x";
    assert_eq!(
        select(&selector, record),
        Ok((vec![Some(b"\x01x".to_vec())], None))
    );
    let inside = Selector::new(None, Some("0xA1/0x80"), None).unwrap();
    assert_eq!(select(&inside, record).unwrap_err().at, 4);
    let value = Selector::new(None, Some("0xA1"), None).unwrap();
    assert_eq!(select(&value, record).unwrap_err().at, 4);
}

#[test]
fn values_and_paths_are_nested_up_to_the_limit() {
    let nested = |levels: usize| {
        let mut record = b"\x80\x01x".to_vec();
        for _ in 0..levels {
            let octets = [&[0xa0, 0x81, record.len() as u8][..], &record].concat();
            record = octets;
        }
        record
    };
    let selector = Selector::new(None, Some("0xA0"), None).unwrap();
    assert!(select(&selector, &nested(MAX_DEPTH)).is_ok());
    let error = select(&selector, &nested(MAX_DEPTH + 1)).unwrap_err();
    assert_eq!(error.problem, "nested deeper than 32 levels");
    let longest = ["0xA0"; MAX_DEPTH - 1].join("/");
    let selector = Selector::new(None, Some(&longest), None).unwrap();
    assert_eq!(select(&selector, &nested(MAX_DEPTH)).unwrap().1, None);
}

#[test]
fn a_time_is_the_content_of_the_first_value() {
    let selector = Selector::new(None, Some("0x80"), Some("0x81")).unwrap();
    let record = b"\xa0\x09\x81\x01a\x80\x01x\x81\x01b";
    let expected = vec![Some(b"\x01x".to_vec()), Some(b"a".to_vec())];
    assert_eq!(select(&selector, record), Ok((expected, None)));
    assert_eq!((selector.keys(), selector.fields()), (1, 2));
}

#[test]
fn names_stand_for_the_path_of_each_type() {
    let profile = Profile::ts32298();
    let selector =
        Selector::new(Some(profile), Some("callReference,sequenceNumber?"), None).unwrap();
    let own = Selector::new(Some(profile), None, None).unwrap();
    // moCallRecord [0] has the reference in [32], mtCallRecord [1] in [29].
    let mo = b"\xa0\x0b\x80\x01\0\x9f\x20\x02\x01\x02\x9f\x21\0";
    let mt = b"\xa1\x07\x80\x01\x01\x9d\x02\x01\x02";
    let (mo_fields, lacking) = select(&selector, mo).unwrap();
    assert_eq!(
        mo_fields,
        [Some(b"\x02\x01\x02".to_vec()), Some(b"\0".to_vec())]
    );
    assert_eq!(lacking, None);
    let (mt_fields, lacking) = select(&selector, mt).unwrap();
    assert_eq!(mt_fields, [Some(b"\x02\x01\x02".to_vec()), None]);
    assert_eq!(lacking, None);
    // The type's own key requires the recording entity, number 2.
    assert_eq!(select(&own, mo).unwrap().1, Some(2));
    assert_eq!(own.name(0), "recordType");
    assert!(own.name(2).contains("recordingEntity` or `"));
    // A type that is not in the profile has none of its fields.
    assert_eq!(select(&own, b"\xb0\x03\x80\x01\0").unwrap().1, Some(0));
    assert_eq!(select(&selector, b"\xb0\x03\x80\x01\0").unwrap().1, Some(0));
    // A primitive record has no fields.
    assert_eq!(select(&own, b"\x80\x01x").unwrap().1, Some(0));
}

#[test]
fn unknown_fields_are_rejected() {
    let profile = Profile::ts32298();
    let error = Selector::new(None, Some("0x80,callReference"), None).unwrap_err();
    assert_eq!(error.text, "callReference");
    assert!(!error.allowed.contains("moCallRecord"));
    let error = Selector::new(Some(profile), Some("0x80,callreference"), None).unwrap_err();
    assert!(error.allowed.contains("moCallRecord"));
    let error = Selector::new(None, Some("0x80"), Some("0x81?")).unwrap_err();
    assert!(error.is_time);
    let many = ["0x80"; 65].join(",");
    assert_eq!(
        Selector::new(None, Some(&many), None).unwrap_err().text,
        "65 fields"
    );
    assert!(Selector::new(None, Some(&many[5..]), None).is_ok());
}

#[test]
fn a_record_without_an_element_lacks_the_fields_that_are_required() {
    let selector = Selector::new(None, Some("0x80?,0x81,0x82"), Some("0x83")).unwrap();
    for (among, field) in [(!0, Some(1)), (!2, Some(2)), (8, Some(3)), (1, None)] {
        assert_eq!(selector.first_required(among), field);
    }
}
