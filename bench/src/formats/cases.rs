//! The inputs, and the runs on them.
//!
//! To add a format, change this file only: an [`Input`] that makes the file, and the [`Case`]s that
//! read it.

/// A generated file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Input {
    pub(super) name: &'static str,
    pub(super) source: Source,
    /// The length of a record in bytes, about.
    pub(super) record_bytes: u64,
    pub(super) cases: &'static [Case],
}

/// Where the records come from.
#[derive(Debug, Clone, Copy)]
pub(super) enum Source {
    /// `echoless gen` with these arguments.
    Generator(&'static str),
    /// JSON lines.
    Json,
}

/// A run on a file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) program: Program,
    /// The arguments, with blanks in between. `{input}` and `{output}` stand for the files.
    pub(super) arguments: &'static str,
    /// The case of the same input whose time this one is divided by.
    pub(super) compared: Option<&'static str>,
    /// Whether the output must be that of the compared case.
    pub(super) same_output: bool,
}

/// The program of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Program {
    Echoless,
    /// The tool of Wireshark that removes duplicate packets. It is slow, so it runs once.
    Editcap,
}

const fn case(name: &'static str, arguments: &'static str) -> Case {
    Case {
        name,
        program: Program::Echoless,
        arguments,
        compared: None,
        same_output: false,
    }
}

const fn threads(name: &'static str, arguments: &'static str, one: &'static str) -> Case {
    Case {
        compared: Some(one),
        same_output: true,
        ..case(name, arguments)
    }
}

/// All inputs. Cases of one input run in turns.
pub(super) const INPUTS: &[Input] = &[
    Input {
        name: "call records, CSV",
        source: Source::Generator("cdr --duplicates 0.2"),
        record_bytes: 100,
        cases: &[case(
            "csv",
            "dedup -q --threads 1 --csv -k 2,5 {input} -o {output}",
        )],
    },
    Input {
        name: "call records, BER",
        source: Source::Generator("cdr --format ber --duplicates 0.2"),
        record_bytes: 170,
        cases: &[
            case(
                "ber",
                "dedup -q --threads 1 --format ber -k 0x81,0xAC/0x81? {input} -o {output}",
            ),
            case(
                "ber:3gpp",
                "dedup -q --threads 1 --format ber:3gpp {input} -o {output}",
            ),
        ],
    },
    Input {
        name: "JSON lines",
        source: Source::Json,
        record_bytes: 230,
        cases: &[
            case(
                "jsonl",
                "dedup -q --threads 1 --format jsonl -k id,user.name {input} -o {output}",
            ),
            threads(
                "jsonl, two threads",
                "dedup -q --threads 2 --format jsonl -k id,user.name {input} -o {output}",
                "jsonl",
            ),
        ],
    },
    Input {
        name: "keys of 17 bytes",
        source: Source::Generator("keys --duplicates 0.2"),
        record_bytes: 17,
        cases: &[case(
            "fixed",
            "dedup -q --threads 1 --format fixed:17 -k 0-7,8-15 {input} -o {output}",
        )],
    },
    Input {
        name: "packets, IMIX",
        source: Source::Generator("packets --duplicates 0.2"),
        record_bytes: 373,
        cases: &[case("imix", "packets -q --threads 1 {input} -o {output}")],
    },
    Input {
        name: "packets of 64 bytes",
        source: Source::Generator("packets --duplicates 0.2 --frame-bytes 60"),
        record_bytes: 76,
        cases: &[
            case("64 bytes", "packets -q --threads 1 {input} -o {output}"),
            threads(
                "64 bytes, two threads",
                "packets -q --threads 2 {input} -o {output}",
                "64 bytes",
            ),
            case(
                "window of 20,000",
                "packets -q --threads 1 --window-packets 20000 {input} -o {output}",
            ),
            Case {
                compared: Some("window of 20,000"),
                ..case(
                    "window of 1,000,000",
                    "packets -q --threads 1 --window-packets 1000000 {input} -o {output}",
                )
            },
        ],
    },
    Input {
        name: EDITCAP_INPUT,
        source: Source::Generator("packets --duplicates 0.2 --frame-bytes 60"),
        record_bytes: 76,
        cases: &[
            case(
                "window of 19,999",
                "packets -q --threads 1 --from link --ignore none --window-packets 19999 {input} -o {output}",
            ),
            Case {
                program: Program::Editcap,
                compared: Some("window of 19,999"),
                same_output: true,
                ..case("editcap", "-F pcap -D 20000 {input} {output}")
            },
        ],
    },
];

/// The input of editcap, which would take hours for a longer one.
pub(crate) const EDITCAP_INPUT: &str = "500,000 packets";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_are_compared_with_earlier_ones_of_their_input() {
        for input in INPUTS {
            for (index, case) in input.cases.iter().enumerate() {
                assert!(case.arguments.contains("{input}") && case.arguments.contains("{output}"));
                if let Some(name) = case.compared {
                    let earlier = &input.cases[..index];
                    assert!(earlier.iter().any(|earlier| earlier.name == name), "{name}");
                }
            }
        }
    }
}
