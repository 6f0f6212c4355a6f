//! Every format on damaged inputs: cut at every byte, and changed at random. The number of random
//! inputs of each case is 200, or that of the variable `ECHOLESS_MUTATIONS`.

mod cases;
mod checks;
mod mutate;

use cases::{CAPTURES, RECORDS};
use checks::{Happened, Runs};
use mutate::Mutator;

/// The number of random inputs of each case.
fn mutations() -> usize {
    let wanted = std::env::var("ECHOLESS_MUTATIONS");
    wanted.map_or(200, |number| number.parse().unwrap())
}

/// The options of each case of captures, and a capture for it.
fn captures() -> impl Iterator<Item = (&'static str, Vec<u8>)> {
    (CAPTURES.iter()).map(|(args, options)| (*args, cases::capture(options)))
}

#[test]
fn records_cut_at_every_byte() {
    let runs = Runs::new();
    for case in RECORDS {
        for end in 0..=case.input.len() {
            runs.check_records(case.args, &case.input[..end], end % 7 + 1);
        }
    }
}

#[test]
fn captures_cut_at_every_byte() {
    let runs = Runs::new();
    for (args, capture) in captures() {
        for end in 0..=capture.len() {
            runs.check_packets(args, &capture[..end], end % 40 + 1);
        }
    }
}

#[test]
fn records_changed_at_random() {
    let runs = Runs::new();
    let mut happened = Happened::default();
    for (seed, case) in (0..).zip(RECORDS) {
        let mut mutator = Mutator::new(seed);
        for _ in 0..mutations() {
            let bytes = mutator.mutate(case.input);
            happened += runs.check_records(case.args, &bytes, mutator.below(60));
        }
    }
    let Happened {
        kept,
        dropped,
        rejected,
        failed: _,
    } = happened;
    let all = [kept, dropped, rejected];
    assert!(all.iter().all(|number| *number > mutations()), "{all:?}");
}

#[test]
fn captures_changed_at_random() {
    let runs = Runs::new();
    let mut happened = Happened::default();
    for (seed, (args, capture)) in (0..).zip(captures()) {
        let mut mutator = Mutator::new(seed);
        for _ in 0..mutations() {
            let bytes = mutator.mutate(&capture);
            happened += runs.check_packets(args, &bytes, mutator.below(300));
        }
    }
    let Happened {
        kept,
        dropped,
        rejected: _,
        failed,
    } = happened;
    let all = [kept, dropped, failed];
    assert!(
        all.iter().all(|number| *number > mutations() / 4),
        "{all:?}"
    );
}
