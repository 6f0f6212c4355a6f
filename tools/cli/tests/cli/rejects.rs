//! Faulty records that are set aside, and the positions of dropped ones.

use serde_json::{Value, json};

use crate::run::{Folder, Run};

/// The lines of a file of positions.
fn positions(folder: &Folder, name: &str) -> Vec<Value> {
    let text = folder.read(name);
    let lines = text.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// A number of a position.
fn at(position: &Value, name: &str) -> usize {
    usize::try_from(position[name].as_u64().unwrap()).unwrap()
}

/// The bytes of the input at a position.
fn bytes_at<'a>(input: &'a [u8], position: &Value) -> &'a [u8] {
    &input[at(position, "offset")..][..at(position, "bytes")]
}

/// Runs with `--rejects` and checks that the positions are those of the rejected bytes in `input`.
#[track_caller]
fn rejecting(args: &str, input: &str) -> (Run, Folder, Vec<String>) {
    let folder = Folder::with(&[("in", input)]);
    let run = folder.dedup(format!("{args} --rejects bad in"));
    let mut listed = Vec::new();
    let mut reasons = Vec::new();
    for position in positions(&folder, "bad.jsonl") {
        assert_eq!(position["input"], "in");
        listed.extend(bytes_at(input.as_bytes(), &position));
        let reason = position["reason"].as_str().unwrap();
        reasons.push(format!("{}: {reason}", at(&position, "record")));
    }
    let written = folder.bytes("bad");
    // A terminator that the input lacks is supplied.
    assert!(listed == written || [&listed[..], b"\n"].concat() == written);
    (run, folder, reasons)
}

#[test]
fn faulty_records_are_rejected_with_their_reasons() {
    let lines = "1,a\n2\n3,a\n\n4,b\n";
    let members = "{\"a\":1}\n{\"a\":\n{\"b\":1}\n{\"a\":1.0}\nx\n";
    let timed = "--window 10s --time-field 2 -k 1 --late reject";
    let times = "a,100\nb,200\nc,150\nd,x\nb,205\nc,150\ne,206\n";
    let lacks = "field 2 of the key is missing: the record has 1";
    let late = "the record is later than window and lateness allow";
    for (args, input, kept, expected) in [
        (
            "-k 2",
            lines,
            "1,a\n4,b\n",
            &[&*format!("2: {lacks}"), &format!("4: {lacks}")][..],
        ),
        // Records that --missing allows are not faulty.
        ("-k 2 --missing skip", lines, "1,a\n2\n\n4,b\n", &[]),
        (
            "--format jsonl -k a",
            members,
            "{\"a\":1}\n",
            &[
                "2: invalid JSON at column 6: expected a value",
                "3: `a` of the key is missing",
                "5: invalid JSON at column 1: expected a value",
            ],
        ),
        (
            "--format jsonl -k a --missing skip",
            members,
            "{\"a\":1}\n{\"b\":1}\n",
            &[
                "2: invalid JSON at column 6: expected a value",
                "5: invalid JSON at column 1: expected a value",
            ],
        ),
        (
            timed,
            times,
            "a,100\nb,200\ne,206\n",
            &[
                &format!("3: {late}"),
                "4: field 2 is not a time of --time-format auto: `x`",
                &format!("6: {late}"),
            ],
        ),
        // With the window of a count, rejected records count as records.
        (
            "--window 2 -k 2",
            "1,a\n2\n3,a\n4\n5\n6,a\n",
            "1,a\n6,a\n",
            &[2, 4, 5].map(|line| &*format!("{line}: {lacks}").leak()),
        ),
    ] {
        let (run, _, reasons) = rejecting(args, input);
        assert_eq!(run.text(), kept, "{args}");
        assert_eq!(reasons, expected, "{args}");
    }
    // A header is the first record, and every output of records has it.
    let (_, folder, _) = rejecting("-k 2", lines);
    assert_eq!(folder.read("bad"), "2\n\n");
    let run = folder.dedup("-k 2 --header --rejects bad in");
    assert_eq!(run.text(), "1,a\n3,a\n4,b\n");
    let numbers: Vec<usize> = positions(&folder, "bad.jsonl")
        .iter()
        .map(|position| at(position, "record"))
        .collect();
    assert_eq!(numbers, [2, 4]);
    assert_eq!(folder.read("bad"), "1,a\n2\n\n");
}

#[test]
fn the_incomplete_end_of_an_input_is_rejected_and_the_next_input_follows() {
    for (format, cut, whole, kept, rejected, reason) in [
        (
            "fixed:2",
            "ababc",
            "abxy",
            "abxy",
            "c",
            "after 1 of 2 bytes",
        ),
        (
            "prefixed:u8",
            "\x01a\x03bc",
            "\x01a\x01b",
            "\x01a\x01b",
            "\x03bc",
            "after 3 of 4 bytes",
        ),
        (
            "csv",
            "a\n\"b\nc\n",
            "c\na\n",
            "a\nc\n",
            "\"b\nc\n",
            "does not end",
        ),
    ] {
        let folder = Folder::with(&[("cut", cut), ("whole", whole)]);
        let args = format!("--format {format} --rejects bad cut whole");
        assert_eq!(folder.dedup(args).text(), kept, "{format}");
        assert_eq!(folder.read("bad"), rejected, "{format}");
        let [position] = &positions(&folder, "bad.jsonl")[..] else {
            panic!("{format}: one position");
        };
        assert_eq!(position["input"], "cut");
        assert_eq!(position["offset"], cut.len() - rejected.len());
        let told = position["reason"].as_str().unwrap();
        assert!(told.contains(reason), "{format}: {told}");
        // Without --rejects it ends the run.
        folder
            .dedup(format!("--format {format} cut whole"))
            .fails(reason);
    }
}

#[test]
fn the_counts_of_rejected_records_are_told() {
    let folder = Folder::with(&[("in", "1,a\n2\n3,a\n")]);
    let run = folder.echoless("dedup -m 1MiB -k 2 --rejects bad --stats stats in");
    assert_eq!(run.code, 0);
    for part in [
        "3 records (10 B)",
        "1 fresh, 1 duplicate (33.33 %), 1 rejected",
    ] {
        assert!(run.stderr.contains(part), "{}", run.stderr);
    }
    let stats = folder.json("stats");
    let counts = ["rejected", "fresh", "unkeyed"].map(|name| stats[name].as_u64().unwrap());
    assert_eq!(counts, [1, 1, 0]);
    folder.assert_runs(&["-k 2 --rejects bad --count in | 1\n"]);
}

#[test]
fn positions_of_dropped_records() {
    let folder = Folder::with(&[
        ("one", "id,name\n1,\"a\nb\"\n1,x\n"),
        ("two", "id,name\n2,c\n1,d\n"),
    ]);
    let expected = [
        json!({"input": "one", "record": 3, "offset": 16, "bytes": 4}),
        json!({"input": "two", "record": 3, "offset": 12, "bytes": 4}),
    ];
    // The file may have a name of its own, and needs no file of duplicates.
    for (options, name) in [
        ("--duplicates dropped --explain", "dropped.jsonl"),
        ("--explain=why", "why"),
    ] {
        let run = folder.dedup(format!("--csv --header -k id {options} one two"));
        assert_eq!(run.text(), "id,name\n1,\"a\nb\"\n2,c\n");
        assert_eq!(positions(&folder, name), expected, "{options}");
    }
    assert_eq!(folder.read("dropped"), "id,name\n1,x\n1,d\n");
}

#[test]
fn positions_lead_to_the_records_on_any_number_of_threads() {
    let line = |index: u32| match index % 1000 {
        7 => "no comma\n".into(),
        _ => format!("{index},{}\n", index * 7919 % 100_003),
    };
    let input: String = (0..200_000).map(line).collect();
    let folder = Folder::with(&[("in", &input)]);
    let mut first = None;
    for threads in ["1", "2", "3", "8"] {
        let run = folder.dedup(format!(
            "-k 2 --threads {threads} --rejects bad -m 8MiB --duplicates dropped --explain in"
        ));
        let names = ["bad", "bad.jsonl", "dropped", "dropped.jsonl"];
        let outputs = (run.bytes(), names.map(|name| folder.bytes(name)));
        let is_same = *first.get_or_insert_with(|| outputs.clone()) == outputs;
        assert!(is_same, "{threads}");
    }
    let lines: Vec<&str> = input.split_inclusive('\n').collect();
    for (records, count) in [("bad", 200), ("dropped", 199_800 - 100_003)] {
        let positions = positions(&folder, &format!("{records}.jsonl"));
        assert_eq!(positions.len(), count);
        let mut found = Vec::<u8>::new();
        for position in positions {
            let bytes = bytes_at(input.as_bytes(), &position);
            assert_eq!(bytes, lines[at(&position, "record") - 1].as_bytes());
            found.extend(bytes);
        }
        assert!(found == folder.bytes(records));
    }
}

#[test]
fn positions_of_dropped_packets() {
    let folder = Folder::new();
    let generated = folder.echoless("gen packets -n 500 --duplicates 0.4 -o capture");
    assert_eq!(generated.code, 0, "{}", generated.stderr);
    let run = folder.echoless("packets -q capture -o - --duplicates dropped --explain");
    assert_eq!(run.code, 0, "{}", run.stderr);
    let bytes = folder.bytes("capture");
    let positions = positions(&folder, "dropped.jsonl");
    assert!(!positions.is_empty());
    let packets = positions
        .iter()
        .flat_map(|position| bytes_at(&bytes, position));
    let packets: Vec<u8> = packets.copied().collect();
    assert!(folder.bytes("dropped").ends_with(&packets));
    let numbers = positions.iter().map(|position| at(position, "record"));
    assert!(
        numbers
            .into_iter()
            .all(|number| (1..=500).contains(&number))
    );
}
