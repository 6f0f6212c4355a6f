//! `--format ber:container=PATH`: records inside of elements, against a plain model of the elements
//! that are left.

use std::collections::HashSet;

use echoless_ber::{ContainerScan, END_OF_CONTENTS, INDEFINITE_LENGTH, length_in};
use flate2::write::GzEncoder;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::codecs::decompress;
use crate::run::{Folder, Run, assert_errors, dedup, echoless};

const ARGS: &str = "--format ber:container=0x61/0x63 -k 0x81";

/// An element of BER.
#[derive(Debug, Clone)]
struct Element {
    tag: u8,
    /// The octets of its length beyond those that are necessary; `None` for an indefinite length.
    padding: Option<usize>,
    body: Body,
}

#[derive(Debug, Clone)]
enum Body {
    Bytes(Vec<u8>),
    Elements(Vec<Element>),
}

impl Element {
    fn new(tag: u8, body: Body) -> Self {
        Self {
            tag,
            padding: Some(0),
            body,
        }
    }

    /// A record with this key, and more or less beside it.
    fn record(tag: u8, key: u8, more: usize) -> Self {
        let field = |tag, content: &[u8]| Self::new(tag, Body::Bytes(content.to_vec()));
        let fields = vec![field(0x80, &vec![0; more]), field(0x81, &[key])];
        Self::new(tag, Body::Elements(fields))
    }

    fn key(&self) -> Option<u8> {
        match &self.body {
            Body::Bytes(_) => None,
            Body::Elements(fields) => fields.iter().find_map(|field| match &field.body {
                Body::Bytes(bytes) if field.tag == 0x81 => bytes.first().copied(),
                Body::Bytes(_) | Body::Elements(_) => None,
            }),
        }
    }

    fn bytes(&self) -> Vec<u8> {
        self.left(&[], &mut |_| true)
    }

    /// The element with the records on a path for which `keep` is true: the lengths of what is left
    /// are in as many octets as before.
    fn left(&self, path: &[u8], keep: &mut dyn FnMut(&Self) -> bool) -> Vec<u8> {
        let content = |path: &[u8], keep: &mut dyn FnMut(&Self) -> bool| match &self.body {
            Body::Bytes(bytes) => bytes.clone(),
            Body::Elements(inside) => {
                let is_container = path == [self.tag];
                let inside = inside.iter();
                let mut kept = Vec::new();
                for element in inside {
                    if is_container {
                        if keep(element) {
                            kept.extend(element.bytes());
                        }
                    } else {
                        let rest = path.strip_prefix(&[self.tag]).unwrap_or_default();
                        kept.extend(element.left(rest, keep));
                    }
                }
                kept
            }
        };
        let whole = content(&[], &mut |_| true);
        let left = content(path, keep);
        let mut out = vec![self.tag];
        match self.padding {
            Some(padding) => {
                let least = match whole.len() {
                    0..0x80 => 1,
                    0x80..0x100 => 2,
                    _ => 3,
                };
                out.extend(length_in(left.len() as u64, least + padding));
                out.extend(left);
            }
            None => {
                out.push(INDEFINITE_LENGTH);
                out.extend(left);
                out.extend(END_OF_CONTENTS);
            }
        }
        out
    }
}

fn padding() -> impl Strategy<Value = Option<usize>> {
    prop_oneof![3 => Just(Some(0)), 1 => (1..4_usize).prop_map(Some), 2 => Just(None)]
}

/// Files of a few elements, most of them with containers, and filler between them.
fn elements() -> impl Strategy<Value = Vec<Element>> {
    let record = (
        prop::sample::select(vec![0x63, 0x69, 0xa0, 0x61]),
        0..12_u8,
        0..40_usize,
    )
        .prop_map(|(tag, key, more)| Element::record(tag, key, more));
    let other = vec(any::<u8>(), 0..200).prop_map(|bytes| Element::new(0x44, Body::Bytes(bytes)));
    let list = |tags: Vec<u8>| {
        let record = record.clone();
        (prop::sample::select(tags), vec(record, 0..30), padding()).prop_map(
            |(tag, records, padding)| Element {
                padding,
                ..Element::new(tag, Body::Elements(records))
            },
        )
    };
    let inner = prop_oneof![3 => list(vec![0x63]), 1 => list(vec![0x64, 0x61]), 2 => other];
    let outer = (vec(inner, 0..4), padding(), prop::bool::weighted(0.8)).prop_map(
        |(inside, padding, is_batch)| Element {
            padding,
            ..Element::new(if is_batch { 0x61 } else { 0x62 }, Body::Elements(inside))
        },
    );
    vec(outer, 1..5)
}

/// The first records of their keys and what is around them, and the others with the same.
fn expected(files: &[Vec<Element>]) -> (Vec<u8>, Vec<u8>) {
    let side = |fresh: bool| {
        let mut seen = HashSet::new();
        let mut keep = |record: &Element| seen.insert(record.key()) == fresh;
        let elements = files.iter().flatten();
        elements
            .flat_map(|element| element.left(&[0x61, 0x63], &mut keep))
            .collect()
    };
    (side(true), side(false))
}

fn bytes_of(elements: &[Element]) -> Vec<u8> {
    elements.iter().flat_map(Element::bytes).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// Outputs are the elements that are left, in files, in pipes and compressed, on any number of
    /// threads and however the bytes arrive.
    #[test]
    fn outputs_are_the_elements_that_are_left(files in vec(elements(), 1..3)) {
        let folder = Folder::new();
        let (kept, dropped) = expected(&files);
        let mut args = String::from(ARGS);
        for (number, elements) in files.iter().enumerate() {
            folder.write(&format!("in{number}"), bytes_of(elements));
            args += &format!(" in{number}");
        }
        for reads in ["1", "37", "100000"] {
            for threads in ["1", "3"] {
                let how = format!("--read-bytes {reads} --threads {threads} --duplicates side");
                prop_assert_eq!(&folder.dedup(format!("{args} {how}")).bytes(), &kept);
                prop_assert_eq!(&folder.bytes("side"), &dropped);
                folder.dedup(format!("{args} {how} -o out")).text();
                prop_assert_eq!(&folder.bytes("out"), &kept);
            }
        }
        folder.dedup(format!("{args} --compress gzip -o out.gz")).text();
        prop_assert_eq!(&decompress("gzip", &folder.bytes("out.gz")), &kept);
        let inverted = folder.dedup(format!("{args} --invert")).bytes();
        prop_assert_eq!(&inverted, &dropped);
        // What is left has no duplicates, and passes as it is.
        prop_assert_eq!(dedup(ARGS, &kept).bytes(), kept);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Damaged inputs have one outcome, in a file and in a pipe, however the bytes arrive.
    #[test]
    fn damaged_inputs_have_one_outcome(
        elements in elements(),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..3),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut bytes = bytes_of(&elements);
        for (at, byte) in &changes {
            let at = at.index(bytes.len());
            bytes[at] = *byte;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        let folder = Folder::new();
        let run = |more: &str| {
            let args = format!("{ARGS} --missing skip --max-record 1k {more}");
            let run = folder.dedup_on(args, &bytes);
            prop_assert!(run.stderr.lines().count() <= 1, "{}", run.stderr);
            Ok((run.code, run.stderr, run.stdout))
        };
        let whole = run("")?;
        for more in ["--read-bytes 1", "--read-bytes 13 --threads 2", "--threads 2"] {
            prop_assert_eq!(&run(more)?, &whole, "{}", more);
        }
        let (code, stderr, stdout) = run("-o out")?;
        prop_assert_eq!((code, &stderr), (whole.0, &whole.1));
        prop_assert!(stdout.is_empty());
        let written = std::fs::read(folder.path("out")).unwrap_or_default();
        prop_assert_eq!(&written, &whole.2);
    }
}

#[test]
fn a_malformed_record_in_front_of_more_bytes_than_a_record_may_have_is_malformed() {
    let mut input = batch(&[1, 2]).bytes();
    let second = input
        .windows(2)
        .rposition(|bytes| bytes[0] == 0x69)
        .unwrap();
    input.truncate(second + 1);
    // A length of nine bytes.
    input.extend([0x89; 5000]);
    for reads in ["1", "13", "1024", "1025", "100000"] {
        let run = dedup(
            format!("{ARGS} --max-record 1k --read-bytes {reads}"),
            &input,
        );
        run.fails("a length exceeds 64 bits");
    }
}

/// A batch of records with these keys: header, list and trailer.
fn batch(keys: &[u8]) -> Element {
    let records = keys.iter().map(|key| Element::record(0x69, *key, 3));
    let field = |tag, content: &[u8]| Element::new(tag, Body::Bytes(content.to_vec()));
    let inside = vec![
        field(0x44, b"header"),
        Element::new(0x63, Body::Elements(records.collect())),
        field(0x4f, b"trailer"),
    ];
    Element::new(0x61, Body::Elements(inside))
}

#[test]
fn records_of_a_batch() {
    let input = batch(&[1, 2, 1]).bytes();
    assert_eq!(dedup(ARGS, &input).bytes(), batch(&[1, 2]).bytes());
    // Without a key, records are compared by their bytes.
    assert_eq!(
        dedup("--format ber:container=0x61/0x63", &input).bytes(),
        batch(&[1, 2]).bytes()
    );
    // A path of one element: records of several types in it.
    let types: Vec<u8> = (0..300_u32)
        .flat_map(|number| Element::record(0xa0 + number as u8 % 3, number as u8 % 7, 9).bytes())
        .collect();
    let list = |content: &[u8]| {
        let length = length_in(content.len() as u64, 5);
        [&[0x30][..], &length, content].concat()
    };
    let record = Element::record(0xa0, 0, 9).bytes().len();
    let one = "--format ber:container=0x30 -k 0x81";
    let kept = list(&types[..7 * record]);
    assert_eq!(dedup(one, list(&types)).bytes(), kept);
    // The names of a profile.
    let names = "--format ber:3gpp,container=0x30 -k 0x81";
    assert_eq!(dedup(names, list(&types)).bytes(), kept);
}

#[test]
fn counts_and_side_files_are_about_records() {
    let input = batch(&[1, 2, 1, 2, 2]).bytes();
    let folder = Folder::with(&[
        ("in", &input),
        ("known", &batch(&[2, 3]).bytes()),
        ("place", &batch(&[4, 4]).bytes()),
    ]);
    let run = |more: &str| folder.dedup(format!("{ARGS} {more}")).bytes();
    let kept = run("--explain --duplicates side --stats stats in");
    assert_eq!(kept, batch(&[1, 2]).bytes());
    assert_eq!(folder.bytes("side"), batch(&[1, 2, 2]).bytes());
    let stats = folder.json("stats");
    let counts = ["records", "fresh", "duplicates", "unkeyed"].map(|name| &stats[name]);
    assert_eq!(counts, [5, 2, 3, 0]);
    assert_eq!(stats["bytes_out"], kept.len());
    // Header and begin of the list are 14 bytes; a record has 10.
    let positions = folder.read("side.jsonl");
    let first = positions.lines().next().unwrap();
    assert!(
        first.ends_with("\"record\":3,\"offset\":32,\"bytes\":10}"),
        "{first}"
    );
    assert_eq!(run("--tag-file tags in"), input);
    let verdicts = "fresh\nfresh\nduplicate\nduplicate\nduplicate\n";
    assert_eq!(folder.read("tags"), verdicts);
    assert_eq!(run("--count in"), b"2\n");
    assert_eq!(run("--repeated in"), batch(&[1, 2]).bytes());
    assert_eq!(run("--known known in"), batch(&[1]).bytes());
    assert_eq!(run("--in-place place"), b"");
    assert_eq!(folder.bytes("place"), batch(&[4]).bytes());
    // Only records count for a window of them, in any pieces in which the others arrive.
    for reads in ["1", "1000"] {
        let args = format!("{ARGS} --window 2 --filter stamped:bits=64 --read-bytes {reads}");
        let inputs = [batch(&[1, 2]), batch(&[1]), batch(&[3, 4, 1])];
        let kept = bytes_of(&[batch(&[1, 2]), batch(&[]), batch(&[3, 4, 1])]);
        assert_eq!(dedup(args, bytes_of(&inputs)).bytes(), kept);
    }
    let eval = format!("eval rowlru:memory=16KiB --input in --to-csv - -q {ARGS}");
    assert!(folder.echoless(eval).text().contains(",5,"), "five records");
}

#[test]
fn records_without_their_key_are_set_aside() {
    let mut keyless = batch(&[1, 2, 1]);
    if let Body::Elements(inside) = &mut keyless.body
        && let Body::Elements(records) = &mut inside[1].body
    {
        records.insert(1, Element::new(0x69, Body::Elements(Vec::new())));
    }
    let folder = Folder::with(&[("in", keyless.bytes())]);
    let run = |more: &str| folder.dedup(format!("{ARGS} in {more}"));
    let error = run("");
    error.fails("in, record 2: `0x81` of the key is missing");
    // What comes before the fault is a whole batch of one record.
    let cut = batch(&[1]).bytes();
    let cut = [&[0x61, cut[1] - 9][..], &cut[2..cut.len() - 9]].concat();
    assert_eq!(error.stdout, cut);
    assert_eq!(run("--rejects rejects").bytes(), batch(&[1, 2]).bytes());
    assert_eq!(folder.bytes("rejects"), [0x69, 0]);
    let skipped = run("--missing skip").bytes();
    assert_eq!(skipped.len(), batch(&[1, 2]).bytes().len() + 2);
}

/// Checks that all elements on the path are whole in an output.
#[track_caller]
fn assert_whole(bytes: &[u8]) {
    let mut scan = ContainerScan::new(&"0x61/0x63".parse().unwrap());
    let mut at = 0;
    while let Some(piece) = scan.next(bytes, at).unwrap() {
        at = piece.end;
    }
    assert!(at == bytes.len() && scan.is_outside(), "{bytes:x?}");
}

#[test]
fn an_input_that_ends_inside_is_an_error_after_whole_records() {
    let folder = Folder::new();
    let mut open = batch(&[1, 1, 2]);
    open.padding = None;
    for element in [batch(&[1, 1, 2]), open] {
        let bytes = element.bytes();
        for cut in 1..bytes.len() {
            folder.write("in", &bytes[..cut]);
            let run = folder.dedup(format!("{ARGS} -o out in"));
            run.fails("the input ends");
            let written = folder.bytes("out");
            let piped = dedup(ARGS, &bytes[..cut]);
            piped.error();
            assert_eq!(piped.stdout, written, "{cut}");
            // Nothing follows a cut container, so it is no record that can be set aside.
            let aside = folder.dedup(format!("{ARGS} --rejects rejects in"));
            assert_eq!(aside.code == 0, cut == 1, "{cut}");
            let in_header_or_trailer = cut < 12 || bytes.len() - cut < 11;
            if !in_header_or_trailer {
                assert_whole(&written);
            }
        }
    }
}

#[test]
fn faulty_elements_end_the_run() {
    let whole = batch(&[1, 2]).bytes();
    // The second record, whose length is at 23, is longer than the list.
    let mut long = whole.clone();
    assert_eq!(long[23], 8);
    long[23] = 9;
    let mut longer_list = whole.clone();
    assert_eq!(longer_list[11], 20);
    longer_list[11] = 60;
    for (input, message) in [
        (
            &long,
            "record 2: an element is longer than the value around it: byte 0 of the record at byte offset 22",
        ),
        (
            &longer_list,
            "record 1: an element is longer than the value around it: byte 0 of the record at byte offset 10",
        ),
        (
            &[&whole[..], b"\x61\xff"].concat(),
            "record 3: a length begins with the reserved byte 0xFF",
        ),
    ] {
        for reads in ["1", "1000"] {
            let run = dedup(format!("{ARGS} --read-bytes {reads}"), input);
            run.fails(message);
        }
    }
    let limited = |most: u32| dedup(format!("{ARGS} --max-record {most}"), &whole);
    assert_eq!(limited(10).bytes(), whole);
    let run = limited(9);
    run.fails("record 1: the record that begins here is longer than 9 bytes");
}

/// A run with warnings.
fn warned(args: &str, input: &[u8]) -> Run {
    let run = echoless(format!("dedup -m 1MiB --summary=line {args}"), input);
    assert_eq!(run.code, 0, "{}", run.stderr);
    run
}

#[test]
fn one_record_that_holds_the_input_draws_a_warning() {
    let path = "--format ber -k 0x63/0x69/0x81";
    let input = batch(&[1, 2, 1]).bytes();
    let run = warned(path, &input);
    assert_eq!(run.stdout, input);
    let warning = "echoless: standard input: 1 record holds the whole input: name the element that \
                   holds the records, --format ber:container=0x61/0x63, and paths to fields from \
                   a record on\n";
    assert!(run.stderr.contains(warning), "{}", run.stderr);
    assert_eq!(dedup(path, &input).bytes(), input);
    let silent = |args: &str, input: &[u8]| {
        let run = warned(args, input);
        assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
    };
    silent(path, &input.repeat(2));
    silent("--format ber", &Element::record(0xa0, 1, 5).bytes());
    silent(ARGS, &input);
    // An input without the path is copied, and so are those after it.
    let other = Element::new(0x62, Body::Elements(vec![batch(&[1, 1])])).bytes();
    let run = warned(ARGS, &other);
    assert_eq!(run.stdout, other);
    let warning = "echoless: standard input has no element on the path of ber:container, so all of \
                   it is copied and nothing is compared\n";
    assert!(run.stderr.contains(warning), "{}", run.stderr);
    silent(ARGS, b"");
}

#[test]
fn elements_of_any_length_pass() {
    // 68 MB, more than is held back.
    let record = |key: u8| Element::record(0x69, key, 60_000).bytes();
    let records: Vec<u8> = (0..1130)
        .flat_map(|number| record((number % 5) as u8))
        .collect();
    let wrapped = |records: &[u8], inner: &[u8], end: &[u8]| {
        [
            &[0x61][..],
            inner,
            &[0x44, 1, b'h'],
            &[0x63],
            inner,
            records,
            end,
            &[0x44, 1, b't'],
            end,
        ]
        .concat()
    };
    let long = |records: &[u8]| {
        let inner = [&[0x63][..], &length_in(records.len() as u64, 5), records].concat();
        let content = [&b"\x44\x01h"[..], &inner, b"\x44\x01t"].concat();
        [&[0x61][..], &length_in(content.len() as u64, 5), &content].concat()
    };
    let kept: Vec<u8> = (0..5).flat_map(record).collect();
    let folder = Folder::with(&[("in", long(&records))]);
    folder.dedup(format!("{ARGS} -o out in")).text();
    assert!(folder.bytes("out") == long(&kept));
    let piped = folder.dedup(format!("{ARGS} in")).bytes();
    assert_eq!(
        piped,
        wrapped(&kept, &[INDEFINITE_LENGTH], &END_OF_CONTENTS)
    );
}

#[test]
fn containers_that_cannot_be_named() {
    let run = |args: &[&str]| dedup(args, b"");
    let cases = [
        "--format ber:container= | invalid --format ber=container=: expected container=PATH with tags in hexadecimal",
        "--format ber:container=61/63 | invalid --format ber=container=61/63: expected container=PATH with tags",
        "--format ber:container=0x61,container=0x63 | expected 3gpp or profile=FILE.toml, and container=TAG/TAG or ts32297",
        "--format ber:container=0x61,ts32297 | expected 3gpp or profile=FILE.toml, and container=TAG/TAG or ts32297",
        "--format ber:container=0x61 --fix-header -o x | expected a format with file headers",
        "--format ber:container=0x61 --tag | expected fields with delimiters",
    ];
    assert_errors(run, &cases);
}

/// The next input would be read, and written, as a part of the element.
#[test]
fn a_compressed_input_that_is_cut_inside_an_element_ends_the_run() {
    // A stored block: the plain bytes up to the cut are decoded.
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::none());
    let whole = batch(&[1, 2, 3, 4, 5, 6]).bytes();
    std::io::Write::write_all(&mut encoder, &whole).unwrap();
    let compressed = encoder.finish().unwrap();
    let cut = &compressed[..compressed.len() - 30];
    let other = batch(&[7, 8]).bytes();
    let folder = Folder::with(&[("cut.gz", cut), ("next", &other)]);
    let run = folder.dedup(format!("{ARGS} cut.gz next"));
    assert_eq!(run.code, 2, "{}", run.stderr);
    assert!(run.stderr.contains("cut.gz"), "{}", run.stderr);
    // Nothing of the second input is in the output.
    assert!(!run.stdout.windows(other.len()).any(|part| part == other));
}
