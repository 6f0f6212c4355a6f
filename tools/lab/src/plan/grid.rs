//! The candidates of the planner: every kind and form, over a grid of its parameters and of tracked
//! fractions.

use echoless::FilterSpec;
use echoless::spec::{FilterKind, Form, TrackedFraction, Workload};

use super::request::PlanRequest;

/// The most memory, in bytes, to build a candidate in as a trial. A filter that can be built in
/// this much memory can be built in more, up to [`FilterSpec::most_memory`]. A small trial does not
/// touch the whole memory, and the plan may be for a larger machine.
const ENOUGH_MEMORY: u64 = 64 << 10;

/// Every specification of the grid that can be built in the memory of the request, with all keys
/// tracked. Filters with a window in ticks are candidates for a request with a window only: they
/// spend memory on times. Such a request is for an endless stream, so filters whose rates drift
/// without end are none.
pub(super) fn grid(request: &PlanRequest) -> Vec<FilterSpec> {
    let span = request.window.unwrap_or(request.records);
    let texts = FilterKind::grid(&Workload::new(request.memory, span));
    let specs = texts
        .iter()
        .filter_map(|text| text.parse::<FilterSpec>().ok());
    specs
        .flat_map(|spec| Form::ALL.iter().map(move |form| spec.form(*form)))
        .filter(|spec| match request.window {
            None => spec.window().is_none(),
            Some(_) => spec.settles(),
        })
        .filter(|spec| request.memory <= spec.most_memory())
        .filter(|spec| {
            let tried = spec.memory(request.memory.min(ENOUGH_MEMORY));
            tried.build().is_ok()
        })
        .map(|spec| spec.memory(request.memory).seed(request.seed))
        .collect()
}

/// The tracked fractions to try for filters whose rates follow from a formula: 0.20 to 1.00 in
/// steps of 0.01.
pub(super) fn fine_fractions() -> impl Iterator<Item = f64> {
    (20..=100).map(|percent| f64::from(percent) / 100.0)
}

/// The tracked fractions to try for filters that must be simulated.
pub(super) const COARSE_FRACTIONS: [f64; 6] = [0.95, 0.9, 0.8, 0.7, 0.6, 0.5];

/// The same filter, tracking this fraction of the keys.
pub(super) fn tracking(spec: &FilterSpec, fraction: f64) -> FilterSpec {
    match TrackedFraction::new(fraction) {
        Ok(fraction) => spec.tracked(fraction),
        Err(_) => *spec,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::Stream;

    #[test]
    fn the_grid_has_every_filter_in_each_of_its_forms() {
        let stream = Stream::with_distinct_fraction(1_000_000, 0.5).unwrap();
        let endless = PlanRequest::new(stream, 1 << 20).seed(3);
        // A window of 1000 is so short that some filters' own choice of parameters fails.
        for window in [None, Some(1000), Some(100_000)] {
            let request = endless.clone().window(window);
            let specs = grid(&request);
            for name in FilterKind::names() {
                for form in Form::ALL {
                    let text = format!("{name}:form={form},memory=1MiB");
                    let default: FilterSpec = text.parse().unwrap();
                    let of_family =
                        |spec: &&FilterSpec| spec.kind.name() == name && spec.form == *form;
                    // Those that sweep their memory need a window of a record for each 64 bytes.
                    let sweeps = ["tbf", "gbf", "apbf"].contains(&name);
                    let least = if sweeps { Some(16_384) } else { Some(0) };
                    let settles = default.settles() || name == "fpsbf";
                    let offered = match window {
                        None => default.window().is_none(),
                        Some(_) => settles && (window >= least || default.window().is_none()),
                    };
                    let expected = default.build().is_ok() && offered;
                    let found = specs.iter().find(of_family).is_some();
                    assert_eq!(found, expected, "{name} {form} {window:?}");
                }
            }
            let built = specs.iter().filter(|spec| spec.build().is_ok()).count();
            assert_eq!(built, specs.len());
            let common = |spec: &FilterSpec| (spec.memory, spec.seed) == (Some(1 << 20), 3);
            assert!(specs.iter().all(common));
            let windows = specs.iter().filter_map(FilterSpec::window);
            let other: Vec<u64> = windows
                .map(|own| own.ticks)
                .filter(|ticks| Some(*ticks) != window)
                .collect();
            assert_eq!(other, [0; 0], "{window:?}");
        }
    }

    #[test]
    fn no_candidate_has_more_memory_than_its_filter_can_have() {
        let names = |memory: u64| -> Vec<String> {
            let stream = Stream::with_distinct_fraction(1000, 0.6).expect("valid");
            let named = |spec: FilterSpec| format!("{} {}", spec.kind.name(), spec.form);
            let specs = grid(&PlanRequest::new(stream, memory));
            specs.into_iter().map(named).collect()
        };
        for limited in ["lru scattered", "qqht line"] {
            assert!(names(64 << 30).contains(&limited.to_owned()), "{limited}");
            assert!(!names(512 << 30).contains(&limited.to_owned()), "{limited}");
        }
        assert!(names(512 << 30).contains(&"bloom scattered".to_owned()));
        assert_eq!(names(1 << 61), Vec::<String>::new());
    }
}
