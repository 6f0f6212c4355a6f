//! States that cannot be read: damaged ones, those of other filters, and bytes that are none.

use echoless::state::{
    Header, MOST_COMMIT_BYTES, StateError, StateReader, StateWriter, restore_parts,
};
use echoless::{Batch, Filter, FilterSpec, KeyHasher, filters::lines::Progress};
use proptest::prelude::*;

use crate::parse;
use crate::state::{build, hasher, saved_bytes};
use crate::state_format::{assert_damage_is_found, header, prelude, section};

fn small() -> FilterSpec {
    parse("rowlru:slots=16,bits=32,form=line,memory=512B")
}

fn load(bytes: &[u8]) -> Result<(), StateError> {
    let saved = StateReader::open(bytes)?;
    saved.limit_memory(1 << 20)?.restore().map(drop)
}

fn error_of(bytes: &[u8]) -> String {
    load(bytes).unwrap_err().to_string()
}

#[test]
fn every_flipped_bit_is_found_and_a_state_that_ends_early() {
    assert_damage_is_found(&saved_bytes(&small()), load);
}

#[test]
fn errors_say_where_a_state_is_damaged() {
    let bytes = saved_bytes(&small());
    let cannot = |text: &str| format!("cannot read the saved state: {text}");
    let places = [
        (20, "the header: its checksum is wrong"),
        (
            bytes.len() - 100,
            "block of lines 0 to 7: its checksum is wrong",
        ),
        (
            bytes.len() - 30,
            "the commit at byte 691: its checksum is wrong",
        ),
        (
            bytes.len() - 1,
            "the end at byte 752: its checksum is wrong",
        ),
    ];
    for (at, text) in places {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        assert_eq!(error_of(&damaged), cannot(text), "byte {at}");
    }
    let ends = [
        (5, "it ends in its first bytes"),
        (11, "it ends in its version"),
        (12, "it ends in its version"),
        (15, "it ends in the section at byte 12"),
        (100, "it ends in the header"),
        (bytes.len() - 100, "it ends in block of lines 0 to 7"),
        (bytes.len() - 17, "it ends in the commit at byte 691"),
        (
            bytes.len() - 16,
            "it ends in byte 752, without its end section",
        ),
        (bytes.len() - 1, "it ends in the end at byte 752"),
    ];
    for (length, text) in ends {
        assert_eq!(error_of(&bytes[..length]), cannot(text), "{length} bytes");
    }
}

#[test]
fn other_files_and_versions_are_rejected_with_the_reason() {
    let cannot = |text: &str| format!("cannot read the saved state: {text}");
    let mut bytes = saved_bytes(&small());
    bytes[8..12].copy_from_slice(&2_u32.to_le_bytes());
    let text = "it has version 2, and this library reads 1";
    assert_eq!(error_of(&bytes), cannot(text));
    let text = "it does not begin with the 8 bytes of a state of echoless";
    for other in [&b"x"[..], &[b'x'; 100], b"echoless\x01\0\0\0"] {
        assert_eq!(error_of(other), cannot(text));
    }
    // What a copy as text does to it.
    let text_copy: Vec<u8> = saved_bytes(&small())
        .into_iter()
        .filter(|byte| *byte != b'\r')
        .collect();
    assert_eq!(error_of(&text_copy), cannot(text));
}

#[test]
fn nothing_follows_a_state_but_a_reader_leaves_it_to_the_caller() {
    let bytes = saved_bytes(&small());
    let longer = [&bytes[..], b"more"].concat();
    let text = format!(
        "cannot read the saved state: bytes follow its end, from byte {} on",
        bytes.len()
    );
    assert_eq!(error_of(&longer), text);
    let mut input = &longer[..];
    let mut reader = StateReader::open(&mut input).unwrap();
    while reader.read_section().unwrap().is_some() {}
    assert!(reader.read_section().unwrap().is_none());
    assert_eq!(reader.mark().position, bytes.len() as u64);
    assert_eq!(input, b"more");
}

#[test]
fn another_specification_or_hasher_is_rejected_with_what_differs() {
    let spec = small();
    let bytes = saved_bytes(&spec);
    let saved = StateReader::open(&bytes[..]).unwrap();
    assert_eq!(saved.header().hasher, hasher().id());
    assert_eq!(saved.header().algorithm, "wyhash");
    assert_eq!(*saved.spec(), (&spec).into());
    saved.check(&spec, &hasher()).unwrap();
    let forced = spec.kernel(echoless::Kernel::Scalar);
    saved.check(&forced, &hasher()).unwrap();
    let fingerprint = parse("fingerprint:bits=32,memory=512B");
    saved.check(&fingerprint, &hasher()).unwrap();
    // Without random choices a seed changes nothing, and `save` accepts it, too.
    saved.check(&spec.seed(9), &hasher()).unwrap();
    for (other, text) in [
        (
            spec.memory(1024).seed(9),
            "memory=512B: expected memory=1KiB",
        ),
        (
            parse("rowlru:slots=32,bits=16,form=line,memory=1KiB"),
            "slots=16,bits=32,memory=512B: expected slots=32,bits=16,memory=1KiB",
        ),
        (
            parse("qqht:slots=16,bits=32,form=line,memory=1KiB"),
            "filter=rowlru: expected filter=qqht",
        ),
        (
            parse("rowlru:slots=16,bits=32,form=line,memory=512B,tracked=0.5"),
            "no tracked: expected tracked=0.5",
        ),
    ] {
        let error = saved.check(&other, &hasher()).unwrap_err();
        assert!(matches!(error, StateError::Mismatch { .. }), "{error:?}");
        assert_eq!(error.to_string(), format!("invalid state with {text}"));
    }
    for other in [KeyHasher::seeded(1), KeyHasher::keyed([0; 16])] {
        let error = saved.check(&spec, &other).unwrap_err().to_string();
        let text = format!(
            "invalid state with key hasher=wyhash {:016x}: expected key hasher={} {:016x}",
            hasher().id(),
            other.algorithm(),
            other.id()
        );
        assert_eq!(error, text);
    }
}

#[test]
fn a_limit_of_memory_holds_before_a_filter_is_built() {
    // As much as no machine has.
    let spec = small().memory(256 << 30);
    let header = Header::new(&spec, &hasher()).unwrap();
    let bytes = StateWriter::new(Vec::new(), &header).unwrap().into_output();
    let error = load(&bytes).unwrap_err();
    let text = "invalid memory=256GiB: expected a state of at most 1MiB";
    assert_eq!(error.to_string(), text);
    let part = header.part(5..21);
    let bytes = StateWriter::new(Vec::new(), &part).unwrap().into_output();
    assert!(
        StateReader::open(&bytes[..])
            .unwrap()
            .limit_memory(1024)
            .is_ok()
    );
    assert!(
        StateReader::open(&bytes[..])
            .unwrap()
            .limit_memory(1023)
            .is_err()
    );
}

#[test]
fn lengths_have_limits() {
    let (bytes, seed) = prelude();
    for (kind, length, text) in [
        (
            1_u32,
            4213_u32,
            "the header: its length is 4213 bytes, more than 4212",
        ),
        (
            2,
            1_048_597,
            "the block at byte 12: its length is 1048597 bytes, more than 1048596",
        ),
        (
            3,
            u32::MAX,
            "the keys at byte 12: its length is 4294967295 bytes, more than 655376",
        ),
        (
            4,
            67_108_897,
            "the commit at byte 12: its length is 67108897 bytes, more than 67108896",
        ),
        (
            5,
            1,
            "the end at byte 12: its length is 1 bytes, more than 0",
        ),
        (6, 0, "the section at byte 12: its kind 6 is not known"),
    ] {
        let head = [kind.to_le_bytes(), length.to_le_bytes()].concat();
        let error = error_of(&[&bytes[..], &head].concat());
        assert_eq!(error, format!("cannot read the saved state: {text}"));
    }
    // The longest length that is allowed, and no bytes.
    let head = [4_u32.to_le_bytes(), 67_108_896_u32.to_le_bytes()].concat();
    let error = error_of(&[&bytes[..], &head].concat());
    assert_eq!(
        error,
        "cannot read the saved state: it ends in the commit at byte 12"
    );
    let (end, _) = section(5, &[], seed);
    let error = error_of(&[&bytes[..], &end].concat());
    let text = "cannot read the saved state: the end at byte 12: no header before it";
    assert_eq!(error, text);

    let header = Header::new(&small(), &hasher()).unwrap();
    let mut writer = StateWriter::new(Vec::new(), &header).unwrap();
    let long = vec![0; MOST_COMMIT_BYTES + 1];
    let error = writer
        .append_commit(Progress::default(), &long)
        .unwrap_err();
    let text = "invalid commit=67108865 bytes: expected at most 67108864 bytes of the caller";
    assert_eq!(error.to_string(), text);
    let mut header = header;
    header.algorithm = "x".repeat(65);
    let error = StateWriter::new(Vec::new(), &header)
        .unwrap_err()
        .to_string();
    assert_eq!(
        error,
        "invalid algorithm=65 bytes: expected at most 64 bytes"
    );
}

/// Payloads with right checksums that no program of this library writes.
#[test]
fn sections_that_contradict_themselves_are_rejected() {
    let header = Header::new(&small(), &hasher()).unwrap();
    let writer = StateWriter::new(Vec::new(), &header).unwrap();
    let (mark, start) = (writer.mark(), writer.into_output());
    let words = |numbers: &[u64]| -> Vec<u8> {
        numbers
            .iter()
            .flat_map(|number| number.to_le_bytes())
            .collect()
    };
    // First line, count and tick.
    let block = |first: u64, count: u32, lines: usize| {
        let mut payload = words(&[first]);
        payload.extend(count.to_le_bytes());
        payload.resize(20 + lines * 64, 0);
        payload
    };
    let position = mark.position;
    let keys = |keys: u32, runs: u32, words: &[u64]| {
        let mut payload = [keys.to_le_bytes(), runs.to_le_bytes()].concat();
        payload.extend(words.iter().flat_map(|number| number.to_le_bytes()));
        payload
    };
    let no_lines = "block of lines 0 to 18446744073709551615: its number of lines";
    for (kind, payload, text) in [
        (1, Vec::new(), "the header: a second header".to_owned()),
        (
            2,
            vec![0; 19],
            format!("the block at byte {position}: it is too short"),
        ),
        (2, block(0, 0, 0), no_lines.to_owned()),
        (
            2,
            block(0, 16_385, 0),
            "block of lines 0 to 16384: its number of lines".into(),
        ),
        (
            2,
            block(0, 8, 7),
            "block of lines 0 to 7: its length".into(),
        ),
        (
            2,
            block(1, 8, 8),
            "block of lines 1 to 8: the state has lines 0 to 7".into(),
        ),
        (
            3,
            vec![0; 15],
            format!("the keys at byte {position}: its length"),
        ),
        (
            3,
            keys(2, 0, &[0, 7]),
            format!("the keys at byte {position}: its length"),
        ),
        (
            3,
            keys(32_769, 0, &[0; 32_770]),
            format!("the keys at byte {position}: its length"),
        ),
        (
            3,
            keys(u32::MAX, u32::MAX, &[0]),
            format!("the keys at byte {position}: its length"),
        ),
        (
            4,
            vec![0; 31],
            format!("the commit at byte {position}: it is too short"),
        ),
        (
            4,
            words(&[5, 6, 0, 0]),
            format!("the commit at byte {position}: its counts contradict each other"),
        ),
        (5, Vec::new(), "it has no lines 0 to 7".into()),
    ] {
        let (section, _) = section(kind, &payload, mark.checksum);
        let error = error_of(&[&start[..], &section].concat());
        assert_eq!(error, format!("cannot read the saved state: {text}"));
    }
}

type Write<'a> = dyn Fn(&mut StateWriter<Vec<u8>>) -> Result<(), StateError> + 'a;

#[test]
fn states_whose_sections_are_in_no_order_are_rejected() {
    let spec = parse("stamped:window=10,memory=512B");
    let header = Header::new(&spec, &hasher()).unwrap();
    let lines = [echoless::memory::Line::EMPTY; 8];
    let state = |write: &Write| {
        let mut writer = StateWriter::new(Vec::new(), &header).unwrap();
        write(&mut writer).unwrap();
        error_of(&writer.end().unwrap())
    };
    let error = state(&|writer| {
        writer.append_block(0, 20, &lines[..5])?;
        writer.append_block(5, 19, &lines[..3])
    });
    let text = "block of lines 5 to 7: its tick 19 is before the clock 20";
    assert_eq!(error, format!("cannot read the saved state: {text}"));
    let error = state(&|writer| {
        writer.append_block(0, 20, &lines)?;
        writer.append_commit(Progress::default(), b"")?;
        writer.append_keys(Batch::new(&[]), 0)
    });
    assert!(error.ends_with("it follows the commit"), "{error}");
    let error = state(&|writer| writer.append_block(0, 20, &lines));
    assert_eq!(error, "cannot read the saved state: it has no commit");
    let error = state(&|writer| writer.append_block(1, 20, &lines[1..]));
    assert_eq!(error, "cannot read the saved state: it has no lines 0 to 0");
}

#[test]
fn headers_that_contradict_themselves_are_rejected() {
    let spec = "dense:memory=8KiB";
    assert!(StateReader::open(&header(128, 64, 64, 1, spec)[..]).is_ok());
    let cases = [
        (127, 0, 127, 0, "127 lines, and its specification has 128"),
        (128, 0, 0, 0, "0 lines from line 0 of 128 are no part"),
        (128, 0, 192, 0, "192 lines from line 0 of 128 are no part"),
        (128, 1, 64, 0, "64 lines from line 1 of 128 are no part"),
        (128, 0, 128, 4, "flags 0x4 are not known"),
    ];
    let cases = cases.map(|(lines, first, count, flags, text)| {
        (header(lines, first, count, flags, spec), text.to_owned())
    });
    let most = format!("{} lines from line 64 of 128 are no part", u64::MAX);
    let longest = [(header(128, 64, u64::MAX, 0, spec), most)];
    let specs = [
        ("dense:bits=24", "invalid bits=24: expected 16, 32 or 64"),
        (
            "qqht:form=line,tracked=0.5,memory=8KiB",
            "invalid tracked=0.5: expected 1, because access to the lines needs a filter that \
             tracks all keys",
        ),
        (
            "qqht:form=line",
            "missing memory: expected a size such as memory=64MiB",
        ),
    ];
    let specs = specs.map(|(spec, text)| {
        let text = format!("its specification is not known: {text}");
        (header(128, 0, 128, 0, spec), text)
    });
    for (bytes, text) in cases.into_iter().chain(longest).chain(specs) {
        let error = error_of(&bytes);
        let found = error.strip_prefix("cannot read the saved state: the header: ");
        assert_eq!(found, Some(&text[..]), "{error}");
    }
}

proptest! {
    #[test]
    fn random_bytes_are_no_state(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        prop_assert!(load(&bytes).is_err());
        let (start, _) = prelude();
        prop_assert!(load(&[&start[..], &bytes].concat()).is_err());
    }

    /// Sections with right checksums and any content, behind the header of a window.
    #[test]
    fn random_sections_end_in_a_filter_or_an_error(
        sections in prop::collection::vec(
            (2_u32..=5, prop_oneof![
                prop::collection::vec(any::<u8>(), 0..200),
                // Blocks, keys and commits of small numbers.
                prop::collection::vec(0_u64..9, 0..12).prop_map(|words| {
                    words.iter().flat_map(|word| (*word as u32).to_le_bytes()).collect()
                }),
            ]),
            0..6,
        ),
    ) {
        let spec = parse("clocked:window=10,memory=512B");
        let header = Header::new(&spec, &hasher()).unwrap().starts_empty(true);
        let writer = StateWriter::new(Vec::new(), &header).unwrap();
        let (mut seed, mut bytes) = (writer.mark().checksum, writer.into_output());
        for (kind, payload) in sections {
            let (more, sum) = section(kind, &payload, seed);
            bytes.extend(more);
            seed = sum;
        }
        if let Ok(restored) = StateReader::open(&bytes[..]).unwrap().restore() {
            restored.filter.report();
        }
    }
}

#[test]
fn partitions_of_a_part_are_those_of_the_whole() {
    let spec = small();
    let mut file = Vec::new();
    let lines = 2..5;
    spec.save_part(&mut build(&spec, 3), lines, &hasher(), b"", &mut file)
        .unwrap();
    let restored = StateReader::open(&file[..]).unwrap().restore().unwrap();
    let range = restored.filter.range();
    assert_eq!(
        (range.total, range.first, restored.filter.lines().len()),
        (8, 2, 3)
    );
    let error = restore_parts([StateReader::open(&file[..]).unwrap()], 2);
    let text = "cannot read the saved state: it has no lines 0 to 1";
    assert_eq!(error.unwrap_err().to_string(), text);
    for (lines, text) in [
        (
            0..0,
            "invalid lines=0..0: expected a range of whole buckets of 1 lines, of 0..8",
        ),
        (
            3..9,
            "invalid lines=3..9: expected a range of whole buckets of 1 lines, of 0..8",
        ),
    ] {
        let saved = spec.save_part(&mut build(&spec, 3), lines, &hasher(), b"", Vec::new());
        assert_eq!(saved.unwrap_err().to_string(), text);
    }
    let mut upper = build(&spec, 2);
    upper.remove(0);
    let saved = spec.save_part(&mut upper, 3..8, &hasher(), b"", Vec::new());
    let text = "invalid partitions=lines 4..8: expected partitions that hold lines 3..8";
    assert_eq!(saved.unwrap_err().to_string(), text);
    upper.clear();
    let saved = spec.save_part(&mut upper, 3..8, &hasher(), b"", Vec::new());
    let text = "invalid partitions=none: expected those of the lines to save";
    assert_eq!(saved.unwrap_err().to_string(), text);
    let dense = parse("dense:memory=8KiB");
    let saved = dense.save_part(&mut build(&dense, 1), 0..63, &hasher(), b"", Vec::new());
    let text = "invalid lines=0..63: expected a range of whole buckets of 64 lines, of 0..128";
    assert_eq!(saved.unwrap_err().to_string(), text);
}
