//! `--format ber:container=PATH`: records inside of elements, against a plain model of the elements
//! that are left.

use std::collections::HashSet;
use std::fs;
use std::io::{Read, Write};

use echoless_ber::{ContainerScan, END_OF_CONTENTS, INDEFINITE_LENGTH, length_in};
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::Value;

use crate::run::{Run, assert_errors, dedup, echoless, file, path};

const ARGS: [&str; 4] = ["--format", "ber:container=0x61/0x63", "-k", "0x81"];

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
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| path(&directory, name);
        let (kept, dropped) = expected(&files);
        let mut inputs = Vec::new();
        for (number, elements) in files.iter().enumerate() {
            inputs.push(file(directory.path(), &format!("in{number}"), &bytes_of(elements)));
        }
        let inputs: Vec<&str> = inputs.iter().map(String::as_str).collect();
        let (out, side, packed) = (path("out"), path("side"), path("out.gz"));
        for reads in ["1", "37", "100000"] {
            for threads in ["1", "3"] {
                let how = ["--read-bytes", reads, "--threads", threads, "--duplicates", &side];
                let args = [&ARGS[..], &how, &inputs].concat();
                prop_assert_eq!(&dedup(&args, b"").bytes(), &kept);
                prop_assert_eq!(&fs::read(&side).unwrap(), &dropped);
                let args = [&args[..], &["-o", &out]].concat();
                dedup(&args, b"").text();
                prop_assert_eq!(&fs::read(&out).unwrap(), &kept);
            }
        }
        let args = [&ARGS[..], &inputs].concat();
        dedup(&[&args[..], &["--compress", "gzip", "-o", &packed]].concat(), b"").text();
        let mut unpacked = Vec::new();
        let packed = fs::File::open(&packed).unwrap();
        MultiGzDecoder::new(packed).read_to_end(&mut unpacked).unwrap();
        prop_assert_eq!(&unpacked, &kept);
        let inverted = dedup(&[&args[..], &["--invert"]].concat(), b"").bytes();
        prop_assert_eq!(&inverted, &dropped);
        // What is left has no duplicates, and passes as it is.
        prop_assert_eq!(dedup(&ARGS, &kept).bytes(), kept);
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
        let directory = tempfile::tempdir().unwrap();
        let out = directory.path().join("out");
        let out = out.to_str().unwrap();
        let run = |more: &[&str]| {
            let missing = ["--missing", "skip", "--max-record", "1k"];
            let run = dedup(&[&ARGS[..], &missing, more].concat(), &bytes);
            prop_assert!(run.stderr.lines().count() <= 1, "{}", run.stderr);
            Ok((run.code, run.stderr, run.stdout))
        };
        let whole = run(&[])?;
        for more in [
            &["--read-bytes", "1"][..],
            &["--read-bytes", "13", "--threads", "2"],
            &["--threads", "2"],
        ] {
            prop_assert_eq!(&run(more)?, &whole, "{:?}", more);
        }
        let (code, stderr, stdout) = run(&["-o", out])?;
        prop_assert_eq!((code, &stderr), (whole.0, &whole.1));
        prop_assert!(stdout.is_empty());
        prop_assert_eq!(&fs::read(out).unwrap_or_default(), &whole.2);
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
    assert_eq!(dedup(&ARGS, &input).bytes(), batch(&[1, 2]).bytes());
    // Without a key, records are compared by their bytes.
    assert_eq!(dedup(&ARGS[..2], &input).bytes(), batch(&[1, 2]).bytes());
    // A path of one element: records of several types in it.
    let types: Vec<u8> = (0..300_u32)
        .flat_map(|number| Element::record(0xa0 + number as u8 % 3, number as u8 % 7, 9).bytes())
        .collect();
    let list = |content: &[u8]| {
        let length = length_in(content.len() as u64, 5);
        [&[0x30][..], &length, content].concat()
    };
    let record = Element::record(0xa0, 0, 9).bytes().len();
    let one = ["--format", "ber:container=0x30", "-k", "0x81"];
    let kept = list(&types[..7 * record]);
    assert_eq!(dedup(&one, &list(&types)).bytes(), kept);
    // The names of a profile.
    let names = ["--format", "ber:3gpp,container=0x30", "-k", "0x81"];
    assert_eq!(dedup(&names, &list(&types)).bytes(), kept);
}

#[test]
fn counts_and_side_files_are_about_records() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| path(&directory, name);
    let input = file(directory.path(), "in", &batch(&[1, 2, 1, 2, 2]).bytes());
    let (side, tags, stats) = (path("side"), path("tags"), path("stats"));
    let whole = [
        "--explain",
        "--duplicates",
        &side,
        "--stats",
        &stats,
        &input,
    ];
    let kept = dedup(&[&ARGS[..], &whole].concat(), b"").bytes();
    assert_eq!(kept, batch(&[1, 2]).bytes());
    assert_eq!(fs::read(&side).unwrap(), batch(&[1, 2, 2]).bytes());
    let json: Value = serde_json::from_slice(&fs::read(&stats).unwrap()).unwrap();
    let counts = ["records", "fresh", "duplicates", "unkeyed"].map(|name| &json[name]);
    assert_eq!(counts, [5, 2, 3, 0]);
    assert_eq!(json["bytes_out"], kept.len());
    // Header and begin of the list are 14 bytes; a record has 10.
    let positions = fs::read_to_string(format!("{side}.jsonl")).unwrap();
    let first = positions.lines().next().unwrap();
    assert!(
        first.ends_with("\"record\":3,\"offset\":32,\"bytes\":10}"),
        "{first}"
    );
    let all = dedup(&[&ARGS[..], &["--tag-file", &tags, &input]].concat(), b"");
    assert_eq!(all.bytes(), fs::read(&input).unwrap());
    let verdicts = "fresh\nfresh\nduplicate\nduplicate\nduplicate\n";
    assert_eq!(fs::read_to_string(&tags).unwrap(), verdicts);
    let run = |more: &[&str]| dedup(&[&ARGS[..], more, &[&input]].concat(), b"").bytes();
    assert_eq!(run(&["--count"]), b"2\n");
    assert_eq!(run(&["--repeated"]), batch(&[1, 2]).bytes());
    let known = file(directory.path(), "known", &batch(&[2, 3]).bytes());
    assert_eq!(run(&["--known", &known]), batch(&[1]).bytes());
    let in_place = file(directory.path(), "place", &batch(&[4, 4]).bytes());
    assert_eq!(
        dedup(&[&ARGS[..], &["--in-place", &in_place]].concat(), b"").bytes(),
        b""
    );
    assert_eq!(fs::read(&in_place).unwrap(), batch(&[4]).bytes());
    // Only records count for a window of them, in whatever pieces the others arrive.
    for reads in ["1", "1000"] {
        let window = [
            "--window",
            "2",
            "--filter",
            "stamped:bits=64",
            "--read-bytes",
            reads,
        ];
        let inputs = [batch(&[1, 2]), batch(&[1]), batch(&[3, 4, 1])];
        let bytes = bytes_of(&inputs);
        let kept = bytes_of(&[batch(&[1, 2]), batch(&[]), batch(&[3, 4, 1])]);
        assert_eq!(dedup(&[&ARGS[..], &window].concat(), &bytes).bytes(), kept);
    }
    let eval = [
        "eval",
        "rowlru:memory=16KiB",
        "--input",
        &input,
        "--to-csv",
        "-",
        "-q",
    ];
    let run = echoless(&[&eval[..], &ARGS].concat(), b"");
    assert!(run.text().contains(",5,"), "five records");
}

#[test]
fn records_without_their_key_are_set_aside() {
    let directory = tempfile::tempdir().unwrap();
    let rejects = directory.path().join("rejects");
    let rejects = rejects.to_str().unwrap();
    let mut keyless = batch(&[1, 2, 1]);
    if let Body::Elements(inside) = &mut keyless.body
        && let Body::Elements(records) = &mut inside[1].body
    {
        records.insert(1, Element::new(0x69, Body::Elements(Vec::new())));
    }
    let input = keyless.bytes();
    let run = |more: &[&str]| dedup(&[&ARGS[..], more].concat(), &input);
    let error = run(&[]);
    assert!(
        error
            .error()
            .starts_with("standard input, record 2: `0x81` of the key is missing"),
        "{}",
        error.stderr
    );
    // What comes before the fault is a whole batch of one record.
    let cut = batch(&[1]).bytes();
    let cut = [&[0x61, cut[1] - 9][..], &cut[2..cut.len() - 9]].concat();
    assert_eq!(error.stdout, cut);
    assert_eq!(run(&["--rejects", rejects]).bytes(), batch(&[1, 2]).bytes());
    assert_eq!(fs::read(rejects).unwrap(), [0x69, 0]);
    let skipped = run(&["--missing", "skip"]).bytes();
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
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("out");
    let rejects = directory.path().join("rejects");
    let [out, rejects] = [&out, &rejects].map(|path| path.to_str().unwrap());
    let mut open = batch(&[1, 1, 2]);
    open.padding = None;
    for element in [batch(&[1, 1, 2]), open] {
        let bytes = element.bytes();
        for cut in 1..bytes.len() {
            let run = dedup(&[&ARGS[..], &["-o", out]].concat(), &bytes[..cut]);
            let message = run.error();
            assert!(message.contains("the input ends"), "{cut}: {message}");
            let written = fs::read(out).unwrap();
            let piped = dedup(&ARGS, &bytes[..cut]);
            piped.error();
            assert_eq!(piped.stdout, written, "{cut}");
            // Nothing follows a cut container, so it is no record that can be set aside.
            let aside = dedup(
                &[&ARGS[..], &["--rejects", rejects]].concat(),
                &bytes[..cut],
            );
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
            let run = dedup(&[&ARGS[..], &["--read-bytes", reads]].concat(), input);
            assert!(run.error().contains(message), "{}", run.stderr);
        }
    }
    let limited = |most: &str| dedup(&[&ARGS[..], &["--max-record", most]].concat(), &whole);
    assert_eq!(limited("10").bytes(), whole);
    let run = limited("9");
    assert!(
        run.error()
            .contains("record 1: the record that begins here is longer than 9 bytes"),
        "{}",
        run.stderr
    );
}

/// A run with warnings.
fn warned(args: &[&str], input: &[u8]) -> Run {
    let run = echoless(
        &[&["dedup", "-m", "1MiB", "--summary=line"], args].concat(),
        input,
    );
    assert_eq!(run.code, 0, "{}", run.stderr);
    run
}

#[test]
fn one_record_that_holds_the_input_draws_a_warning() {
    let path = ["--format", "ber", "-k", "0x63/0x69/0x81"];
    let input = batch(&[1, 2, 1]).bytes();
    let run = warned(&path, &input);
    assert_eq!(run.stdout, input);
    let warning = "echoless: standard input: 1 record holds the whole input: name the element that \
                   holds the records, --format ber:container=0x61/0x63, and paths to fields from \
                   a record on\n";
    assert!(run.stderr.contains(warning), "{}", run.stderr);
    assert_eq!(dedup(&path, &input).bytes(), input);
    let silent = |args: &[&str], input: &[u8]| {
        let run = warned(args, input);
        assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
    };
    silent(&path, &[&input[..], &input].concat());
    silent(&path[..2], &Element::record(0xa0, 1, 5).bytes());
    silent(&ARGS, &input);
    // An input without the path is copied, and so are those after it.
    let other = Element::new(0x62, Body::Elements(vec![batch(&[1, 1])])).bytes();
    let run = warned(&ARGS, &other);
    assert_eq!(run.stdout, other);
    let warning = "echoless: standard input has no element on the path of ber:container, so all of \
                   it is copied and nothing is compared\n";
    assert!(run.stderr.contains(warning), "{}", run.stderr);
    silent(&ARGS, b"");
}

#[test]
fn elements_of_any_length_pass() {
    let directory = tempfile::tempdir().unwrap();
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
    let input = file(directory.path(), "in", &long(&records));
    let out = directory.path().join("out");
    let out = out.to_str().unwrap();
    dedup(&[&ARGS[..], &["-o", out, &input]].concat(), b"").text();
    assert!(fs::read(out).unwrap() == long(&kept));
    let piped = dedup(&[&ARGS[..], &[&input]].concat(), b"").bytes();
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
    let directory = tempfile::tempdir().unwrap();
    // A stored block: the plain bytes up to the cut are decoded.
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::none());
    encoder
        .write_all(&batch(&[1, 2, 3, 4, 5, 6]).bytes())
        .unwrap();
    let compressed = encoder.finish().unwrap();
    let cut = file(
        directory.path(),
        "cut.gz",
        &compressed[..compressed.len() - 30],
    );
    let next = file(directory.path(), "next", &batch(&[7, 8]).bytes());
    let run = dedup(&[&ARGS[..], &[&cut, &next]].concat(), b"");
    assert_eq!(run.code, 2, "{}", run.stderr);
    assert!(run.stderr.contains("cut.gz"), "{}", run.stderr);
    // Nothing of the second input is in the output.
    let other = batch(&[7, 8]).bytes();
    assert!(!run.stdout.windows(other.len()).any(|part| part == other));
}
