//! The filters that come into request: every kind and form, over a grid of its parameters.

use echoless::FilterSpec;
use echoless::spec::{FilterKind, Form, TrackedFraction, Workload};

use super::request::PlanRequest;

/// What can be built in so much memory can be built in more; trying it in less spares touching all of it.
const ENOUGH_MEMORY: u64 = 64 << 10;

/// Every specification of the grid that can be built in the request's memory, all keys tracked.
pub(super) fn grid(request: &PlanRequest) -> Vec<FilterSpec> {
    let span = request.window.unwrap_or(request.records);
    let texts = FilterKind::grid(&Workload::new(request.memory, span));
    let specs = texts
        .iter()
        .filter_map(|text| text.parse::<FilterSpec>().ok());
    specs
        .flat_map(|spec| Form::ALL.iter().map(move |form| spec.form(*form)))
        .filter(|spec| {
            let tried = spec.memory(request.memory.min(ENOUGH_MEMORY));
            tried.build().is_ok()
        })
        .map(|spec| spec.memory(request.memory).seed(request.seed))
        .collect()
}

/// The shares that are tried for filters whose rates are quick to have.
pub(super) fn fine_shares() -> impl Iterator<Item = f64> {
    (20..=100).map(|percent| f64::from(percent) / 100.0)
}

/// The shares that are tried for filters that must be simulated.
pub(super) const COARSE_SHARES: [f64; 6] = [0.95, 0.9, 0.8, 0.7, 0.6, 0.5];

/// The same filter on this share of the keys.
pub(super) fn tracking(spec: &FilterSpec, share: f64) -> FilterSpec {
    match TrackedFraction::new(share) {
        Ok(share) => spec.tracked(share),
        Err(_) => *spec,
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use super::*;
    use crate::plan::Goal;
    use crate::stream::Stream;

    #[test]
    fn every_filter_is_in_the_grid_in_every_form_that_it_has() {
        let request = PlanRequest {
            memory: 1 << 20,
            records: 1_000_000,
            stream: Stream::with_distinct_share(1_000_000, 0.5).unwrap(),
            window: None,
            goal: Goal::default(),
            seed: 3,
            threads: NonZeroUsize::MIN,
        };
        let specs = grid(&request);
        for name in FilterKind::names() {
            for form in Form::ALL {
                let default: FilterSpec =
                    format!("{name}:form={form},memory=1MiB").parse().unwrap();
                let mut alike = specs
                    .iter()
                    .filter(|spec| spec.kind.name() == name && spec.form == *form);
                assert_eq!(
                    alike.next().is_some(),
                    default.build().is_ok(),
                    "{name} {form}"
                );
            }
        }
        for text in FilterKind::grid(&Workload::new(request.memory, request.records)) {
            let kind = text.parse::<FilterSpec>().unwrap().kind;
            assert!(
                specs.iter().any(|spec| spec.kind == kind),
                "{text} has no form"
            );
        }
        assert!(specs.iter().all(|spec| spec.build().is_ok()));
        // Also where a window is so short that the filter's own candidate of parameters fails.
        let short = PlanRequest {
            window: Some(1000),
            ..request.clone()
        };
        assert!(grid(&short).iter().all(|spec| spec.build().is_ok()));
        assert!(
            specs
                .iter()
                .all(|spec| (spec.memory, spec.seed) == (Some(1 << 20), 3))
        );
    }
}
