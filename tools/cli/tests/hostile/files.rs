//! Files that are not what they seem: folders, devices, endless ones, names with control
//! characters.

/// What stands where a file is expected. `/dev/full` can be read without end and not written.
const ODD_FILES: [&str; 10] = [
    "/",
    ".",
    "missing",
    "missing/file",
    "/dev/null",
    "/dev/full",
    "/dev/zero",
    "/dev/stdin",
    "/proc/self/mem",
    "na\u{1b}[2Jme\nwith lines",
];

/// Runs that read such a file.
const READS: [&str; 14] = [
    "dedup -m 64k --max-record 64k",
    "dedup -m 64k --max-record 64k -k 2",
    "dedup -m 64k --max-record 64k --csv --header -k id",
    "dedup -m 64k --max-record 64k --format jsonl -k id",
    "dedup -m 64k --max-record 64k --format prefixed:u32be",
    "dedup -m 64k calls.csv --hash-key",
    "dedup -m 64k calls.csv --skip-seen-files",
    "dedup -m 64k calls.csv --known-state",
    "dedup -m 64k --max-record 64k --follow",
    "dedup -m 64k --format ber",
    "packets -m 64k",
    "eval bloom:k=4,memory=64 --max-record 64k --input",
    "eval --stream uniform:records=500,distinct=0.6 --specs",
    "plan -m 4k --records 500 --max-record 64k --sample",
];

/// Runs that write to such a file.
const WRITES: [&str; 10] = [
    "dedup -m 64k calls.csv -o",
    "dedup -m 64k calls.csv --duplicates",
    "dedup -m 64k calls.csv --rejects",
    "dedup -m 64k calls.csv --tag-file",
    "dedup -m 64k calls.csv --stats",
    "dedup -m 64k calls.csv --compress zstd -o",
    "packets -m 64k mirror.pcap -o",
    "gen cdr -n 100 -o",
    "eval bloom:k=4,memory=64 --stream uniform:records=500,distinct=0.6 --to-csv",
    "eval bloom:k=4,memory=64 --stream uniform:records=500,distinct=0.6 --plots",
];

pub(crate) fn cases() -> Vec<Vec<String>> {
    let endless = ["/dev/zero", "/dev/full"];
    let mut cases = Vec::new();
    for command in READS.into_iter().chain(WRITES) {
        for file in ODD_FILES {
            // Other runs write to these names, and a file that is followed has no end.
            if command.ends_with("--follow") && !file.starts_with(['/', '.']) {
                continue;
            }
            // Fixed lengths of zero are records without an end, as the options request.
            let asked = command.contains("prefixed:u32be") || command.ends_with(" ber");
            if asked && endless.contains(&file) {
                continue;
            }
            let arguments = command.split(' ').chain([file]);
            cases.push(arguments.map(str::to_owned).collect());
        }
    }
    cases
}
