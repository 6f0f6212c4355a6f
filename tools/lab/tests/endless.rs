//! Which filters drift on an endless stream: what a specification says of itself is what a
//! simulation shows.

use echoless::spec::{FilterKind, Form, Workload};
use echoless::{FilterSpec, KeyHasher, Verdict};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// So little memory that every filter has been full many times at the end.
const MEMORY: u64 = 1 << 10;

/// Half the records are fresh keys, the others repeat one of the last 64 fresh ones.
const REACH: u64 = 64;

/// Records of the last part that is measured; the part before it is half as long.
const LAST: u64 = 1 << 18;

/// FPR and FNR.
type Rates = [f64; 2];

/// The rates in records 2^17 to 2^18, and 2^18 to 2^19.
fn late_rates(spec: &FilterSpec) -> [Rates; 2] {
    let mut filter = spec.build().unwrap();
    let hasher = KeyHasher::seeded(5);
    let mut draws = Xoshiro256PlusPlus::seed_from_u64(6);
    let mut wrong = [[0_u64; 2]; 2];
    for record in 0..2 * LAST {
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
        if record >= LAST / 2 {
            let part = usize::from(record >= LAST);
            wrong[part][usize::from(repeats)] += u64::from(duplicate != repeats);
        }
    }
    let rates = |part: usize, kind_records: u64| {
        wrong[part].map(|count| count as f64 / kind_records as f64)
    };
    [rates(0, LAST / 4), rates(1, LAST / 2)]
}

fn candidates() -> Vec<FilterSpec> {
    let texts = FilterKind::grid(&Workload::new(MEMORY, 2 * REACH));
    let more = ["sbf:k=1,p=1,update=distinct", "sbf:k=2,p=1,update=distinct"];
    let texts = texts.into_iter().chain(more.map(String::from));
    let specs = texts.filter_map(|text| text.parse::<FilterSpec>().ok());
    specs
        .flat_map(|spec| Form::ALL.iter().map(move |form| spec.form(*form)))
        .map(|spec| spec.memory(MEMORY))
        .filter(|spec| spec.build().is_ok())
        .collect()
}

#[test]
fn filters_drift_if_and_only_if_they_say_so() {
    let specs = candidates();
    let mut failures = Vec::new();
    for spec in &specs {
        let [before, last] = late_rates(spec);
        let worst = last[0].max(last[1]);
        let change = (last[0] - before[0]).abs().max((last[1] - before[1]).abs());
        let as_said = if spec.settles() {
            change < 0.02 && worst < 0.98
        } else {
            worst > 0.9
        };
        if !as_said {
            failures.push(format!(
                "{spec} settles: {}, FPR and FNR {before:.3?}, then {last:.3?}",
                spec.settles()
            ));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    // Every kind has been measured, and both answers occur.
    for name in FilterKind::names() {
        assert!(specs.iter().any(|spec| spec.kind.name() == name), "{name}");
    }
    for name in ["bloom", "rsbf", "bsbfsd"] {
        let mut of_name = specs.iter().filter(|spec| spec.kind.name() == name);
        assert!(of_name.all(|spec| !spec.settles()), "{name}");
    }
    for name in ["rlbsbf", "qqhtd", "rowlru", "clocked"] {
        let mut of_name = specs.iter().filter(|spec| spec.kind.name() == name);
        assert!(of_name.any(FilterSpec::settles), "{name}");
    }
}
