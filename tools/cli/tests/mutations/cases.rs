//! Ways to run the command, and valid inputs of them. The fuzz targets share this file.

use echoless_cli::run_in_process;

/// Options, with blanks in between, and a valid input of a run with them.
pub(crate) struct Case {
    pub(crate) args: &'static str,
    pub(crate) input: &'static [u8],
}

const LINES: &[u8] = b"1,a,100\n2,b,101\r\n1,c,102\n\n3,\"a,\n\"\"b\",103\n1,a,90\n2,b,500";

const JSON: &[u8] = br#"{"id":1,"t":"2025-01-01T00:00:00Z","l":[1,{"a":null}]}
{"l":[1.0,{"a":null}],"id":1,"t":1735689605}
{"id":"\u0031\ud83d\ude00","t":0}
 [1e3, -0.5, true, ""] 
{}
{"id":1,"t":1735689608}
"#;

/// Filler, and records of definite and of indefinite length with tags of one byte and two.
const CALLS: &[u8] = b"\0\xff\xa0\x08\x80\x01\x07\xa3\x03\x81\x01x\xff\xff\
    \xa1\x80\x80\x01\x07\xa3\x80\x81\x81\x01x\0\0\0\0\0\
    \xbf\x4f\x03\x80\x01\x08\xa0\x03\x80\x01\x08";

const fn case(args: &'static str, input: &'static [u8]) -> Case {
    Case { args, input }
}

/// Every record format, with and without a key, and with times.
pub(crate) const RECORDS: &[Case] = &[
    case("", LINES),
    case("-k 1", LINES),
    case("-k 1 --window 10s --time-field 3 --late reject", LINES),
    case(
        "-k 1 --window 1d --time-field 2 --time-format %m-%d --time-year 2023 --missing skip",
        b"1,12-30\n1,01-01\n1,12-31\n2,02-28\n2,02-29\n1,02-29\n2,03-01\n1,02-01\n",
    ),
    case(
        "-k 1 --window 1h --time-field 2 --time-format %H:%M --late reject",
        b"1,23:59\n1,00:10\n1,23:58\n1,12:09\n2,12:30\n2,00:31\n1,00:10\n",
    ),
    case("-z -k 2 --missing skip", b"a,b\0c,b\0\0d\0"),
    case("--crlf -k 2- --missing empty", LINES),
    case("-i --skip-fields 1 --skip-chars 1 --max-chars 3", LINES),
    case("-d ,1 -k 2 --missing skip", LINES),
    case("-w -k 2 --missing skip", b" 1  a\n2\ta \n\n1 \xff\n3 a"),
    case("--csv", LINES),
    case("--csv -k 2", LINES),
    case("--format csv --window 2 -k 1", LINES),
    case(
        "--csv-backslash -k 2",
        b"1,\"a\\\"\"\n2,\"\\\n\"\n\\,,a\\\"\r\n1,\"a\"\"\"\n",
    ),
    case("--format tsv -k 2", b"1\ta\n2\ta\n\t\n"),
    case("--format jsonl", JSON),
    case("--format jsonl -k id,l[1].a", JSON),
    case("--format jsonl -k .", JSON),
    case("--format jsonl -k id --window 1m --time-field t", JSON),
    case("--format jsonl -k !t,!l[0] -i --trim", JSON),
    case(
        "--format jsonl -k id",
        br#"{"id":1}{"id":[1]} {"id":{}}[1]"#,
    ),
    case("--format json", JSON),
    case("--format json -k id --missing skip", JSON),
    case(
        "--format json:container=a -k id --missing skip",
        br#"{"n":1,"a":[{"id":1},{"id":2} ,{"id":1}],"b":[]}{"a":[{"id":2}]}"#,
    ),
    case(
        "--format json:container=.",
        b"[1,1,\n\"a]\",{\"a\":[1]},{\"a\":[1]}]\n[1]",
    ),
    case("--format paragraphs", LINES),
    case(
        "--format paragraphs -k 2 -i --missing skip",
        b"\n\na\nb\r\n\r\nx\nB\n\n\nc\n\n\n",
    ),
    case("--format lines:2 -k 1", b"1\na\n2\r\nb\n1\na\n"),
    case("--ignore-case=unicode --trim -k !2,-1", LINES),
    case("-k 2--1 --missing empty --blank-lines skip", LINES),
    case("--comment // --csv -k 1", b"//\"\n1,a\n//\n\"1\",b\n"),
    case(
        "--format tsv --header -k uid",
        b"#separator \\x09\n#fields\tts\tuid\n1\tC1\n2\tC1\n#close\n",
    ),
    case("--format fixed:3", b"abcabdabcxyz"),
    case("--format fixed:8 -k 0-2,7", b"abc....1abd....1abc....1"),
    case("--format prefixed:u8", b"\x03abc\0\x03abc\x02x1\x03abd"),
    case(
        "--format prefixed:u16be -k 0-1",
        b"\0\x03abc\0\0\0\x03abc\0\x02ab",
    ),
    case(
        "--format prefixed:u16le -k 1-",
        b"\x03\0abc\0\0\x03\0abc\x02\0ab",
    ),
    case(
        "--format prefixed:u32be -k 2 --missing skip",
        b"\0\0\0\x03abc\0\0\0\0\0\0\0\x03xbc",
    ),
    case(
        "--format prefixed:u32le -k 2 --missing empty",
        b"\x03\0\0\0abc\0\0\0\0\x03\0\0\0xbc",
    ),
    case("--format prefixed:varint", b"\x03abc\x83\0abc\0\x01x"),
    case("--format ber", CALLS),
    case("--format ber -k 0x80,0xA3/0x81?", CALLS),
    // Read again from their last chunk on.
    case("--keep last -k 1 --missing skip", LINES),
    case("--keep none --csv -k 2", LINES),
    case("--keep last --format jsonl -k id", JSON),
    case(
        "--keep none --format prefixed:varint",
        b"\x03abc\x83\0abc\0\x01x",
    ),
    case("--keep last --format ber -k 0x80", CALLS),
    case("--format ber:3gpp -k recordType,0xA3 --missing skip", CALLS),
    case(
        "--format ber -k 0x80? --window 10s --time-field 0x82 --time-format bcd --missing empty",
        b"\xa0\x0e\x80\x01\x07\x82\x09\x25\x01\x01\0\0\0+\0\0\xa0\x03\x80\x01\x07\xff\xff",
    ),
];

/// Options for captures, and the options of `gen packets` that make an input for them.
pub(crate) const CAPTURES: &[(&str, &str)] = &[
    ("", ""),
    ("--window-packets 3 --from link --ignore none", "--pcapng"),
    (
        "--window 1ms --window-packets 4 --inner",
        "--copies ttl,vlan --nanoseconds",
    ),
    (
        "--group interface --from payload --report",
        "--pcapng --snap 50",
    ),
];

/// A capture that `gen packets` writes with these options.
pub(crate) fn capture(options: &str) -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("capture");
    let fixed = "gen packets -n 8 --duplicates 0.4 --gap 2 --frame-bytes 60";
    let words = fixed.split_whitespace().chain(options.split_whitespace());
    let generate: Vec<&str> = words.chain(["-o", path.to_str().unwrap()]).collect();
    run_in_process(&generate).unwrap();
    std::fs::read(path).unwrap()
}
