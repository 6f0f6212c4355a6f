//! `echoless dedup` and `echoless packets` on any bytes. The first byte selects the format and the
//! options, the second the length of reads.
#![no_main]

#[path = "../../tests/mutations/cases.rs"]
mod cases;
#[path = "../../tests/mutations/checks.rs"]
mod checks;

use cases::{CAPTURES, RECORDS};
use checks::Runs;
use libfuzzer_sys::fuzz_target;

thread_local! {
    static RUNS: Runs = Runs::new();
}

fuzz_target!(|bytes: &[u8]| {
    let [selected, piece, bytes @ ..] = bytes else {
        return check_valid_inputs();
    };
    let (number, piece) = (usize::from(*selected), usize::from(*piece));
    RUNS.with(|runs| match RECORDS.get(number) {
        Some(case) => runs.check_records(case.args, bytes, piece),
        None => {
            let (args, _) = CAPTURES[number % CAPTURES.len()];
            runs.check_packets(args, bytes, piece)
        }
    });
});

/// An input without the two bytes stands for all valid ones: a fuzzer begins with it.
fn check_valid_inputs() {
    RUNS.with(|runs| {
        for case in RECORDS {
            runs.check_records(case.args, case.input, 1);
        }
        for (args, options) in CAPTURES {
            runs.check_packets(args, &cases::capture(options), 1);
        }
    });
}
