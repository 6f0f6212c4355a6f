//! Where records end.

use echoless_ber::{Lack, MAX_DEPTH, RecordScan, element, record_ends};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::support::{Form, tree};

fn ends(bytes: &[u8]) -> Vec<usize> {
    let mut ends = Vec::new();
    record_ends(bytes, 0, &mut ends);
    ends
}

fn filler() -> impl Strategy<Value = Vec<u8>> {
    vec(prop::sample::select(vec![0x00, 0xff]), 0..12)
}

proptest! {
    /// Records with filler end before the next one begins, and their elements are found again.
    #[test]
    fn records_have_the_filler_behind_them(
        leading in filler(),
        records in vec((tree(), filler()), 1..6),
    ) {
        let mut bytes = leading;
        let (mut expected, mut elements) = (Vec::new(), Vec::new());
        for (record, filler) in &records {
            let record = record.bytes(Form::Own);
            bytes.extend(&record);
            bytes.extend(filler);
            expected.push(bytes.len());
            elements.push(record);
        }
        prop_assert_eq!(ends(&bytes), &expected[..]);
        let mut start = 0;
        for (end, expected) in expected.into_iter().zip(elements) {
            let record = &bytes[start..end];
            prop_assert_eq!(&record[element(record)], &expected[..]);
            start = end;
        }
    }

    /// However the bytes arrive, a record ends at the same place, and only once a byte of the next
    /// one, or nothing, follows. Until then the scan returns what the record lacks.
    #[test]
    fn a_scan_goes_on_where_it_was(record in tree(), filler in filler(), step in 1_usize..40) {
        let element = record.bytes(Form::Own);
        let whole = [&element[..], &filler, b"\xa0"].concat();
        let end = whole.len() - 1;
        let mut scan = RecordScan::default();
        let mut arrived = 0;
        while arrived < whole.len() {
            arrived = whole.len().min(arrived + step);
            let expected = (arrived > end).then_some(end);
            prop_assert_eq!(scan.end(&whole[..arrived], 0), Ok(expected));
            if expected.is_none() {
                let lack = scan.lack(arrived);
                prop_assert_eq!(lack == Lack::Nothing, arrived >= element.len());
                if let Lack::Bytes(all) = lack {
                    prop_assert_eq!(all, element.len() as u64);
                }
            }
        }
    }

    /// Any bytes are cut into records without gaps.
    #[test]
    fn any_bytes_are_cut(bytes in vec(prop_oneof![Just(0x80), Just(0xa0), Just(0), 1_u8..9, any::<u8>()], 0..200)) {
        let ends = ends(&bytes);
        prop_assert!(ends.is_sorted_by(|one, next| one < next));
        prop_assert_eq!(ends.last().copied().unwrap_or(0), bytes.len());
        let mut start = 0;
        for end in ends {
            let inside = element(&bytes[start..end]);
            prop_assert!(inside.start <= inside.end && inside.end <= end - start);
            start = end;
        }
    }
}

#[test]
fn a_scan_says_what_is_wrong() {
    let scan = |bytes: &[u8]| {
        let mut scan = RecordScan::default();
        let end = scan.end(bytes, 0);
        // A further call returns the same error.
        assert_eq!(scan.end(bytes, 0), end);
        end.map_err(|error| (error.at, error.problem))
    };
    for (bytes, at, problem) in [
        (
            &b"\xa0\xff"[..],
            0,
            "a length begins with the reserved byte 0xFF",
        ),
        (b"\0\x80\x80", 1, "a primitive value of indefinite length"),
        (
            b"\xa0\x80\x04\xff",
            2,
            "a length begins with the reserved byte 0xFF",
        ),
        (
            b"\xa0\x89\x01\0\0\0\0\0\0\0\0",
            0,
            "a length exceeds 64 bits",
        ),
        (
            b"\xbf\xff\xff\xff\xff\xff\xff\x7f\0",
            0,
            "a tag number exceeds 32 bits",
        ),
    ] {
        assert_eq!(scan(bytes), Err((at, problem)), "{bytes:x?}");
    }
    let deep = b"\xa0\x80".repeat(MAX_DEPTH);
    assert_eq!(scan(&deep), Ok(None));
    let deeper = [&deep[..], b"\xa0\x80"].concat();
    assert_eq!(
        scan(&deeper),
        Err((2 * MAX_DEPTH, "nested deeper than 32 levels"))
    );
}

#[test]
fn a_scan_says_what_is_missing() {
    for (bytes, lack) in [
        (&b"\0\xff"[..], Lack::Nothing),
        (b"\xa0", Lack::Header),
        (b"\xa0\x82\x01", Lack::Header),
        (b"\xff\xa0\x03ab", Lack::Bytes(6)),
        (
            b"\xa0\x88\xff\xff\xff\xff\xff\xff\xff\xff",
            Lack::Bytes(u64::MAX),
        ),
        (b"\xa0\x80\x80\x01x\0", Lack::EndOfContents),
        (b"\xa0\x80\x80\x01x\0\0", Lack::Nothing),
        (b"\xa0\x80\xa1\x80\0\0", Lack::EndOfContents),
    ] {
        let mut scan = RecordScan::default();
        assert_eq!(scan.end(bytes, 0), Ok(None), "{bytes:x?}");
        assert_eq!(scan.lack(bytes.len()), lack, "{bytes:x?}");
    }
}
