//! Which filters drift on an endless stream: what `Facts::settles` says is what a
//! simulation shows.

use std::convert::Infallible;
use std::ops::Range;
use std::thread;

use echoless::spec::Form;
use echoless::{FilterSpec, KeyHasher, Verdict};
use echoless_lab::parallel::map;
use echoless_lab::plan::settings;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// So little memory that every filter has been full many times at the end.
const MEMORY: u64 = 1 << 10;

/// The memory of dense lines: one page.
const PAGE: u64 = 4 << 10;

/// Half the records are fresh keys, the others repeat one of the last 64 fresh ones.
const REACH: u64 = 64;

const RECORDS: u64 = 1 << 19;

/// Two parts of the stream, near its end. RSBF has reached its last phase before them.
const PARTS: [Range<u64>; 2] = [
    RECORDS / 8 * 5..RECORDS / 16 * 13,
    RECORDS / 16 * 13..RECORDS,
];

/// FPR and FNR.
type Rates = [f64; 2];

/// The rates in each part.
fn late_rates(spec: &FilterSpec) -> [Rates; 2] {
    let mut filter = spec.build().unwrap();
    let hasher = KeyHasher::seeded(5);
    let mut draws = Xoshiro256PlusPlus::seed_from_u64(6);
    let mut wrong = [[0_u64; 2]; 2];
    for record in 0..RECORDS {
        let newest = record / 2;
        let repeats = record % 2 == 1;
        let age = draws.next_u64() % REACH;
        let key = if repeats {
            newest.saturating_sub(age)
        } else {
            newest
        };
        filter.advance_to(record + 1);
        let duplicate = filter.observe_one(hasher.hash_u64(key)) == Verdict::Duplicate;
        for (part, counts) in PARTS.iter().zip(&mut wrong) {
            if part.contains(&record) {
                counts[usize::from(repeats)] += u64::from(duplicate != repeats);
            }
        }
    }
    let records = ((PARTS[0].end - PARTS[0].start) / 2) as f64;
    wrong.map(|counts| counts.map(|count| count as f64 / records))
}

fn candidates() -> Vec<FilterSpec> {
    let settings = settings(MEMORY, 2 * REACH).unwrap();
    let more = [
        "sbf:k=1,p=1,update=distinct",
        "sbf:k=2,p=1,update=distinct",
        "fpsbf:k=2,c=2,f=6,xi=0,refill=repaired",
        "fpsbf:k=2,c=2,f=6,xi=0,refill=overwrite",
        "fpsbf:k=2,c=2,f=6,xi=1,refill=repaired",
    ];
    let more = more.map(|text| text.parse().unwrap());
    settings
        .into_iter()
        .chain(more)
        .flat_map(|spec| Form::ALL.iter().map(move |form| spec.form(*form)))
        .map(|spec| match spec.name() {
            "dense" => spec.memory(PAGE),
            _ => spec.memory(MEMORY),
        })
        .filter(|spec| spec.build().is_ok())
        .collect()
}

/// How the measured rates contradict the facts of a filter, if they do.
fn difference_from_facts(spec: &FilterSpec) -> Option<String> {
    let [before, last] = late_rates(spec);
    let sum = last[0] + last[1];
    let change = (last[0] - before[0]).abs().max((last[1] - before[1]).abs());
    let settles = spec.facts().settles;
    // A coin that answers "duplicate" in a part p of all cases has FPR p and FNR 1 - p.
    let matches_facts = match settles {
        true => change < 0.02 && sum < 0.98,
        false => sum > 0.95,
    };
    (!matches_facts)
        .then(|| format!("{spec} settles: {settles}, FPR and FNR {before:.3?}, then {last:.3?}"))
}

#[test]
fn filters_drift_if_and_only_if_they_say_so() {
    let specs = candidates();
    let threads = thread::available_parallelism().unwrap();
    let compare = |spec: &FilterSpec| Ok::<_, Infallible>(difference_from_facts(spec));
    let Ok(differences) = map(&specs, threads, compare);
    let failures: Vec<_> = differences.into_iter().flatten().collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    // Every kind has been measured, and both answers occur.
    for name in FilterSpec::names() {
        assert!(specs.iter().any(|spec| spec.name() == name), "{name}");
    }
    for name in ["bloom", "bsbfsd"] {
        let mut of_name = specs.iter().filter(|spec| spec.name() == name);
        assert!(of_name.all(|spec| !spec.facts().settles), "{name}");
    }
    for name in ["rlbsbf", "qqhtd", "rowlru", "clocked"] {
        let mut of_name = specs.iter().filter(|spec| spec.name() == name);
        assert!(of_name.any(|spec| spec.facts().settles), "{name}");
    }
}
