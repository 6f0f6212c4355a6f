//! Comment lines: copied in place, never judged, and no records; and the names of fields in them.

use crate::run::{Folder, assert_runs, assert_runs_with, dedup};

const VCF: &str =
    "##fileformat=VCFv4.2\n#CHROM\tPOS\tID\tREF\tALT\n1\t100\t.\tA\tG\n1\t100\trs1\tA\tG\n";

const ZEEK: &str =
    "#separator \\x09\n#fields\tts\tuid\n#types\ttime\tstring\n1.5\tC1\n1.6\tC1\n#close\t2020\n";

const W3C: &str = "#Version: 1.0\r\n#Fields: time cs-uri\r\n10:00 /a\r\n10:01 /a\r\n#Fields: time cs-uri\r\n10:02 /b\r\n";

/// The text without the line with this number, from 0.
fn without(text: &str, line: usize) -> String {
    let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
    lines.remove(line);
    lines.concat()
}

/// Threads and lengths of reads, on which no output depends.
const VARIANTS: [&str; 6] = [
    "--threads 1 --read-bytes 1",
    "--threads 1 --read-bytes 7",
    "--threads 1",
    "--threads 3 --read-bytes 1",
    "--threads 3 --read-bytes 7",
    "--threads 3",
];

#[test]
fn first_lines_announce_comments() {
    for (args, input, dropped) in [
        ("--format tsv -k 1,2,4,5", VCF, 3),
        ("--format tsv -k 1,2,4,5", &VCF.replace('\n', "\r\n"), 3),
        ("-d tab -k !3 --header", VCF, 3),
        ("-w --header -k CHROM,POS,REF,ALT", VCF, 3),
        ("--format tsv --header -k uid", ZEEK, 4),
        ("--format tsv -k 2", ZEEK, 4),
        ("--format tsv -k -1", ZEEK, 4),
        ("-w --header -k cs-uri", W3C, 3),
        ("-d ' ' --crlf --header -k cs-uri", W3C, 3),
        ("-d tab --header -k cs-uri", &W3C.replace(" /", "\t/"), 3),
    ] {
        let expected = without(input, dropped);
        assert_runs_with(&VARIANTS, &[&format!("{args} | {input} | {expected}")]);
    }
    assert_runs(&[
        // Whole lines are not known to be those of any file, and '' turns the names off.
        " | #Version: 1\n#\n#\n | #Version: 1\n#\n",
        "--comment '' --format tsv -k 1 | #Version: 1\n#a\n#a\n | #Version: 1\n#a\n",
        "-k 1 | #a\n#a\n | #a\n",
    ]);
}

#[test]
fn an_option_gives_what_comments_begin_with() {
    assert_runs_with(
        &["", "--read-bytes 1"],
        &[
            "--comment # | #\na\n#\na\n# b\n | #\na\n#\n# b\n",
            "--comment // -k 1 | // a\n/,b\n// a\n/,c\n | // a\n/,b\n// a\n",
            "--comment ! -i | ! x\n||ads^\n||ADS^\n! x | ! x\n||ads^\n! x",
            "--comment=-- -k 2 --missing error | --\n1,a\n2,a\n | --\n1,a\n",
            "--comment # -z | #a\0b\0b\0#a\0 | #a\0b\0#a\0",
            "--comment # --crlf | #\r\na\r\na\n#\r\n | #\r\na\r\n#\r\n",
            "--comment # --csv -k 1 | # it's,\"open\na,1\n#,\"\"\"\n\"a\",2\n | # it's,\"open\na,1\n#,\"\"\"\n",
            "--comment # --format jsonl -k id | # {\n{\"id\":1}\n#\n{\"id\":1.0}\n | # {\n{\"id\":1}\n#\n",
            "--comment # --window 5s --time-field 1 -k 2 | # t\n1,a\n#\n2,a\n | # t\n1,a\n#\n",
            "--comment # -k 1 | \u{feff}# a\nb\n#\nb\n | \u{feff}# a\nb\n#\n",
            // Comments are no records of a window.
            "--comment # --window 1 --filter stamped:bits=64 | a\n#\n#\na\nb\n#\na\n | a\n#\n#\nb\n#\na\n",
        ],
    );
    assert_runs(&[
        "--comment # --format fixed:2 | a\n | !! invalid --comment: expected records that are lines",
        "--comment # --format json -k a | a\n | !! invalid --comment: expected records that are lines",
        "--comment 'a\nb' |  | !! expected bytes that end no record",
    ]);
}

#[test]
fn a_header_follows_comments() {
    let first = "# one\n#\nid,v\n1,a\n";
    let folder = Folder::with(&[
        ("one", first),
        ("two", "# two\nid,v\n1,b\n# end\n2,c\n"),
        ("known", "# known\nid,v\n9,x\n"),
        ("other", "# other\n#\nid,w\n"),
        ("alone", "# a\n# b\n"),
        ("out", "kept"),
    ]);
    let args = "--comment # --header -k id";
    for more in VARIANTS {
        let run = format!("{args} {more} --duplicates dropped one two");
        folder.assert_runs(&[&format!("{run} | {first}# two\n# end\n2,c\n")]);
        assert_eq!(folder.read("dropped"), "id,v\n1,b\n", "{more}");
    }
    folder.assert_runs(&[
        &format!("{args} --known known one | {first}"),
        // A header that differs is found behind comments, too.
        &format!("{args} one other | {first}!! other, line 3: the header differs from that of one"),
        // Comments alone have no names, and nothing is written before that is known.
        &format!("{args} -o out alone | !! expected a header with names"),
        "--comment # --header alone | # a\n# b\n",
    ]);
    assert_eq!(folder.read("out"), "kept");
    let run = dedup(format!("{args} --max-record 100"), "# comment\n".repeat(20));
    run.fails("comment lines of more than 100 bytes in front of the header (--max-record)");
}

#[test]
fn later_comments_may_have_other_names() {
    let comments = |text: &str| -> String {
        let lines = text.split_inclusive('\n');
        lines.filter(|line| line.starts_with('#')).collect()
    };
    // The same two values in the other order of fields.
    let swapped = ZEEK
        .replace("ts\tuid", "uid\tts")
        .replace("1.5\tC1", "C1\t1.5");
    let swapped = swapped.replace("1.6\tC1", "C2\t1.5");
    let folder = Folder::with(&[
        ("one", ZEEK),
        ("two", &swapped),
        ("lacking", &swapped.replace("\tts", "\tat")),
        ("plain", "ts\tuid\n9\tC2\n"),
    ]);
    for (key, kept) in [
        ("uid", "C2\t1.5\n"),
        ("2", "C2\t1.5\n"),
        ("ts,uid", "C2\t1.5\n"),
        ("ts", ""),
    ] {
        for threads in ["1", "3"] {
            let args = format!("--format tsv --header -k {key} --threads {threads}");
            let first = folder.dedup(format!("{args} one")).text();
            let mut expected = comments(&swapped);
            expected.insert_str(expected.find("#close").unwrap(), kept);
            folder.assert_runs(&[
                &format!("{args} one one | {first}{}", comments(ZEEK)),
                &format!("{args} one two | {first}{expected}"),
            ]);
        }
    }
    // What names do not tell.
    for (args, input) in [
        ("-k !ts", "lacking"),
        ("-k 1-", "lacking"),
        ("-k ts", "lacking"),
        ("-k -1", "two"),
        ("", "two"),
        (
            "-k uid --time-field ts --window 1m --time-format s",
            "lacking",
        ),
    ] {
        let run = folder.dedup(format!("--format tsv --header {args} one {input}"));
        let expected = format!(
            "{input}, line 2: the names of the fields differ from those of the header, and do not \
             tell which fields are compared"
        );
        assert_eq!(run.error(), expected, "{args}");
    }
    // Numbers of fields mean what they say.
    assert_eq!(folder.dedup("--format tsv -k 2 one two").code, 0);
    // A plain file with the same names in its header follows. Behind one, names stay.
    let args = "--format tsv --header -k uid";
    let run = folder.dedup(format!("{args} one plain"));
    assert_eq!(run.text(), without(ZEEK, 4) + "9\tC2\n");
    let run = folder.dedup(format!("{args} plain two"));
    run.fails("the names of the fields differ");
}

/// A log of a web server whose fields change twice, and one of a mail server.
const CHANGED: &str = "#Software: Web Server\n#Fields: date time c-ip sc-status\n\
    2025-01-01 00:00:21 192.0.2.1 200\n2025-01-01 00:00:21 192.0.2.1 200\n\
    #Date: 2025-01-01 01:00:21\n#Fields: date time c-ip cs-uri-stem sc-status\n\
    2025-01-01 00:00:21 192.0.2.1 / 200\n2025-01-01 01:00:22 192.0.2.1 / 200\n\
    #Fields: sc-status c-ip time date\n200 192.0.2.1 01:00:22 2025-01-01\n\
    200 192.0.2.1 01:00:23 2025-01-01\n";

const MAIL: &str = "#Software: Mail Server\r\n#Version: 15.0.0.0\r\n\
    #Fields: date-time, session,\"source\",description\r\n\
    2025-01-01T23:29:49.958Z,08A,SMTP,\"a,b\"\r\n2025-01-01T23:29:49.958Z,08A,SMTP,\"a,b\"\r\n\
    #Fields: session,date-time\r\n08A,2025-01-01T23:29:49.958Z\r\n08B,\"2025\n\"\r\n";

#[test]
fn fields_of_a_log_may_change_within_it() {
    for (options, input, dropped) in [
        (
            "-w --header -k date,time,c-ip,sc-status",
            CHANGED,
            &[3, 6, 9][..],
        ),
        (
            "-w --header -k c-ip --time-field date,time --window 1m",
            CHANGED,
            &[3, 6, 9, 10],
        ),
        ("--csv --header -k session,date-time", MAIL, &[4, 6]),
        ("--csv --header -k 2", MAIL, &[4, 6]),
    ] {
        let lines = input.split_inclusive('\n').enumerate();
        let kept = lines.filter(|(at, _)| !dropped.contains(at));
        let expected: String = kept.map(|(_, line)| line).collect();
        assert_runs_with(
            &[
                "--threads 1",
                "--read-bytes 1",
                "--threads 3 --read-bytes 50",
                "--keep first",
            ],
            &[&format!("{options} | {input} | {expected}")],
        );
        // A run that stops between any two lines goes on with the names in force there.
        let ends = input.match_indices('\n').map(|(at, _)| at + 1);
        for end in ends.skip(2) {
            let folder = Folder::with(&[("log", &input[..end])]);
            let args = format!("{options} --state state -o out log");
            if folder.dedup(&args).code != 0 {
                // Inside of a quoted field.
                continue;
            }
            folder.append("log", &input[end..]);
            folder.dedup(&args).text();
            assert_eq!(folder.read("out"), expected, "{options} {end}");
        }
    }
    let folder = Folder::with(&[("log", CHANGED)]);
    folder
        .dedup("-w --header -k time,c-ip --top-keys top -o out log")
        .text();
    let top = folder.read("top");
    for part in [
        r#""duplicates_low":2,"duplicates_high":2,"key":["00:00:21","192.0.2.1"]"#,
        r#""key":["01:00:22","192.0.2.1"]"#,
    ] {
        assert!(top.contains(part), "{top}");
    }
    // Tags, between the delimiters of the names.
    let text = dedup("--csv --header -k session --tag", MAIL).text();
    for part in [
        "#Fields: date-time, session,\"source\",description,verdict\r\n",
        "#Fields: session,date-time,verdict\r\n08A,2025-01-01T23:29:49.958Z,duplicate\r\n",
    ] {
        assert!(text.contains(part), "{text}");
    }
    dedup("--csv --header -k session --tag=description", MAIL).fails("--tag");
}

#[test]
fn a_log_may_have_ten_thousand_other_headers_and_no_more() {
    let mut log = String::from("#Version: 1.0\n#Fields: id first\n1 a\n");
    for number in 0..10_000 {
        log += &format!("#Fields: x{number} id\n{number} {}\n", number % 5000);
    }
    let args = "-w --header -k id";
    let kept = dedup(args, &log).text();
    // Each key comes twice, and that of the first record a third time.
    let records = kept.lines().filter(|line| !line.starts_with('#'));
    assert_eq!(records.count(), 5000);
    assert!(dedup(format!("{args} --read-bytes 5000"), &log).text() == kept);
    let failed = dedup(args, log + "#Fields: id last\n");
    assert_eq!(
        failed.error(),
        "standard input: its comment lines hold more than 10000 different headers"
    );
}

#[test]
fn comments_are_counted_and_never_tagged() {
    let folder = Folder::with(&[("in", "# a\n1,x\n#\n2,x\n3\n# b")]);
    let more = "--stats stats --rejects rejects --tag-file tags";
    let run = folder.echoless(format!("dedup --comment # -k 2 {more} in"));
    assert_eq!(run.stdout, b"# a\n1,x\n#\n2,x\n# b");
    assert!(
        run.stderr.starts_with("echoless: 3 records ("),
        "{}",
        run.stderr
    );
    assert!(
        run.stderr.contains("1 rejected, 3 comment lines"),
        "{}",
        run.stderr
    );
    let stats = folder.json("stats");
    let names = [
        "records",
        "fresh",
        "duplicates",
        "unkeyed",
        "rejected",
        "comments",
    ];
    assert_eq!(
        names.map(|name| stats[name].as_u64().unwrap()),
        [3, 1, 1, 0, 1, 3]
    );
    assert_eq!(
        folder.read("tags"),
        "comment\nfresh\ncomment\nduplicate\ncomment\n"
    );
    assert_eq!(folder.read("rejects"), "3\n");
    let tagged = "#separator \\x09\n#fields\tts\tuid\tverdict\n#types\ttime\tstring\tstring\n\
                  1.5\tC1\tfresh\n1.6\tC1\tduplicate\n#close\t2020\n";
    assert_runs(&[
        // The names of the fields get that of the tag.
        &format!("--format tsv --header -k uid --tag | {ZEEK} | {tagged}"),
        "--comment # --header -k 1 --tag | # a\nid\n1\n#\n1\n | # a\nid,verdict\n1,fresh\n#\n1,duplicate\n",
        "--comment # --format jsonl -k a --tag | #\n{\"a\":1}\n | #\n{\"a\":1,\"verdict\":\"fresh\"}\n",
    ]);
    // They are not set aside either.
    folder.write("in", "#\n\n{\"a\":1}\n");
    folder.assert_runs(&[
        "--comment # --format jsonl -k a --tag --rejects rejects in | #\n\n{\"a\":1,\"verdict\":\"fresh\"}\n",
    ]);
    assert_eq!(folder.read("rejects"), "");
}
