//! Filters around filters with a window that have nothing but the required methods.

use echoless::{Batch, Filter, FilterSpec, KeyHash, Report, Tally, Verdicts};
use proptest::prelude::*;

use crate::arrivals::{Arrival, arrivals, observe};
use crate::promises::observe_at;

/// As little as the compiler accepts.
struct Wrapper(Box<dyn Filter>);

impl Filter for Wrapper {
    fn observe_batch(&mut self, batch: Batch<'_>, duplicates: &mut [u64]) {
        self.0.observe_batch(batch, duplicates);
    }

    fn contains(&self, key: KeyHash) -> bool {
        self.0.contains(key)
    }

    fn clear(&mut self) {
        self.0.clear();
    }

    fn tally(&self) -> Tally {
        self.0.tally()
    }

    fn report_on(&self, tally: Tally) -> Report {
        self.0.report_on(tally)
    }
}

/// A window in every form: lines, pages, cells all over the memory, and under each adapter.
const FILTERS: [&str; 10] = [
    "clocked:window=1000,memory=4KiB",
    "clocked:window=1000,dense=true,memory=8KiB",
    "stamped:window=1000,refresh=true,memory=4KiB",
    "tbf:k=6,window=1000,memory=4KiB",
    "gbf:k=7,window=1000,memory=4KiB",
    "apbf:k=8,l=4,window=1000,memory=4KiB",
    "stamped:window=1000,memory=4KiB,tracked=0.5",
    "horizontal:slices=3/stamped:window=1000,memory=4KiB",
    "vertical:slices=3/tbf:k=6,window=1000,memory=4KiB",
    "growing/tbf:k=6,window=1000,memory=4KiB",
];

fn build(text: &str) -> Box<dyn Filter> {
    let spec: FilterSpec = echoless_papers::parse(text).expect(text);
    spec.build().expect(text)
}

/// The verdicts on a stream, key by key, and those of a look at each key before.
fn one_by_one(filter: &mut dyn Filter, stream: &[Arrival]) -> Vec<(bool, bool)> {
    let observe_one = |arrival: &Arrival| {
        filter.advance_to(arrival.tick);
        let mut found = Verdicts::new();
        filter.contains_each(&[arrival.key], &mut found);
        let duplicate = filter.observe_one(arrival.key).is_duplicate();
        (duplicate, found.is_duplicate(0))
    };
    stream.iter().map(observe_one).collect()
}

/// A report without what depends on the machine.
fn report(filter: &dyn Filter) -> Report {
    let mut report = filter.report();
    report.look_ahead = None;
    report
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn a_wrapper_of_the_required_methods_has_the_clock_and_the_report(
        text in prop::sample::select(FILTERS.to_vec()),
        stream in arrivals(1000, 1 << 16, 1..=60, 300),
        length in 1_usize..150,
    ) {
        let (mut plain, mut wrapped) = (build(text), Wrapper(build(text)));
        prop_assert_eq!(observe(&mut wrapped, &stream), observe(&mut *plain, &stream));
        prop_assert_eq!(report(&wrapped), report(&*plain));
        prop_assert_eq!(wrapped.memory_bytes(), plain.memory_bytes());
        plain.clear();
        wrapped.clear();
        let verdicts = observe_at(&mut wrapped, &stream, length);
        prop_assert_eq!(verdicts, observe_at(&mut *plain, &stream, length));
        prop_assert_eq!(report(&wrapped), report(&*plain));
        plain.clear();
        wrapped.clear();
        prop_assert_eq!(one_by_one(&mut wrapped, &stream), one_by_one(&mut *plain, &stream));
    }
}

#[test]
fn a_window_moves_under_a_wrapper() {
    let key = KeyHash::from_uniform(17);
    for text in FILTERS.iter().filter(|text| !text.contains("tracked")) {
        let mut filter = Wrapper(build(text));
        filter.observe_one(key);
        filter.advance_to(900);
        assert!(filter.contains(key), "{text}");
        filter.observe_at(&[key], &[3000], &mut Verdicts::new());
        assert!(filter.contains(key), "{text}");
        // Only the clock moves.
        filter.advance_to(6000);
        assert!(!filter.contains(key), "{text}");
        assert!(filter.report().window.is_some(), "{text}");
    }
}
