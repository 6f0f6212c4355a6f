//! `echoless dedup` on any bytes: the first byte selects the format, the second the length of reads.
#![no_main]

#[path = "../../tests/mutations/cases.rs"]
#[allow(dead_code, reason = "the target uses one of the lists")]
mod cases;
#[path = "../../tests/mutations/checks.rs"]
#[allow(dead_code, reason = "the target uses one of the checks")]
mod checks;

use checks::Runs;
use libfuzzer_sys::fuzz_target;

thread_local! {
    static RUNS: Runs = Runs::new();
}

fuzz_target!(|bytes: &[u8]| {
    let [selected, piece, bytes @ ..] = bytes else {
        return;
    };
    let case = &cases::RECORDS[usize::from(*selected) % cases::RECORDS.len()];
    RUNS.with(|runs| runs.check_records(case.args, bytes, usize::from(*piece)));
});
