//! The filters that come into request: every kind and form, over a grid of its parameters.

use echoless::FilterSpec;
use echoless::filters::adapters::tracked::TrackedFraction;
use echoless::filters::scattered::cells::DecayingSpec;
use echoless::spec::Form;

use super::request::PlanRequest;

const FORMS: [Form; 2] = [Form::Scattered, Form::Line];

/// What can be built in so much memory can be built in more; trying it in less spares touching all of it.
const ENOUGH_MEMORY: u64 = 64 << 10;

/// Every specification of the grid that can be built in the request's memory, all keys tracked.
pub(super) fn grid(request: &PlanRequest) -> Vec<FilterSpec> {
    let texts = texts(request);
    let specs = texts
        .iter()
        .filter_map(|text| text.parse::<FilterSpec>().ok());
    specs
        .flat_map(|spec| FORMS.map(|form| spec.with_form(form)))
        .filter(|spec| {
            let tried = spec.with_memory(request.memory.min(ENOUGH_MEMORY));
            tried.build().is_ok()
        })
        .map(|spec| spec.with_memory(request.memory).with_seed(request.seed))
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
        Ok(share) => spec.with_tracked(share),
        Err(_) => *spec,
    }
}

/// The grid in text.
fn texts(request: &PlanRequest) -> Vec<String> {
    let mut texts = Vec::new();
    let mut add = |text: String| texts.push(text);
    for k in (1..=12).chain([14, 16, 20, 24]) {
        add(format!("bloom:k={k}"));
    }
    for k in 1..=4 {
        for name in ["bsbf", "bsbfsd", "rlbsbf"] {
            add(format!("{name}:k={k}"));
        }
        for process in ["described", "tabled"] {
            add(format!("rsbf:k={k},as={process}"));
        }
    }
    for (k, d) in [(1, 1), (2, 1), (3, 1), (2, 2), (3, 2), (2, 3), (2, 4)] {
        for fps in [0.001, 0.003, 0.01, 0.03, 0.1, 0.2, 0.4] {
            add(format!("sbf:k={k},d={d},fps={fps}"));
        }
    }
    for k in 1..=3 {
        for fps in [0.01, 0.1, 0.3] {
            add(format!("sbf:k={k},fps={fps},update=distinct"));
        }
    }
    for (k, c, f) in [(1, 1, 7), (1, 2, 6), (2, 1, 3), (2, 2, 6), (1, 2, 14)] {
        for refill in ["xor", "overwrite", "repaired"] {
            add(format!("fpsbf:k={k},c={c},f={f},refill={refill}"));
        }
    }
    // How far back duplicates are looked for.
    let span = request.window.unwrap_or(request.records);
    for window in [span, span / 4, span / 16] {
        let decaying = DecayingSpec {
            window: window.max(1),
            hashes: None,
            cell_bits: None,
        };
        // With more memory than the default parameters can use, the largest of them.
        let parameters = match decaying.hashes_in(request.memory) {
            Ok(_) => "",
            Err(_) => ",k=32,c=32",
        };
        add(format!("bdbf:window={}{parameters}", decaying.window));
    }
    for (slots, r, kept) in [(1, 2, 1), (4, 5, 3), (8, 8, 4)] {
        add(format!("sqf:slots={slots},r={r},kept={kept}"));
    }
    for name in ["qht", "qhtd", "qqht", "qqhtd", "rowlru"] {
        for (slots, bits) in [
            (1, 3),
            (1, 8),
            (4, 4),
            (4, 8),
            (8, 8),
            (16, 8),
            (8, 12),
            (16, 16),
            (64, 8),
            (32, 16),
            (16, 32),
        ] {
            add(format!("{name}:slots={slots},bits={bits}"));
        }
    }
    // Slots of 64 bits are for lines alone.
    for name in ["qht", "qqht", "qqhtd", "rowlru"] {
        add(format!("{name}:slots=8,bits=64"));
    }
    // A QHTD line counts its arrivals in one of its slots.
    for (slots, bits) in [(63, 8), (31, 16), (15, 32), (7, 64)] {
        add(format!("qhtd:slots={slots},bits={bits}"));
    }
    for (slots, bits) in [(2, 4), (4, 6), (4, 8), (4, 12), (4, 16)] {
        add(format!("cuckoo:slots={slots},bits={bits}"));
    }
    for name in ["a2", "dbuf"] {
        for k in [1, 2, 3, 4, 6, 8] {
            add(format!("{name}:k={k},rotate=fill"));
        }
    }
    add("lru".into());
    for q in [0.1, 0.2, 0.4] {
        add(format!("fpbuffer:q={q}"));
    }
    texts
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use echoless::spec::FilterKind;

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
        for name in FilterKind::NAMES {
            for form in FORMS {
                let default: FilterSpec =
                    format!("{name}:form={form},memory=1MiB").parse().unwrap();
                let mut alike = specs
                    .iter()
                    .filter(|spec| spec.kind().name() == name && spec.form() == form);
                assert_eq!(
                    alike.next().is_some(),
                    default.build().is_ok(),
                    "{name} {form}"
                );
            }
        }
        for text in texts(&request) {
            let kind = text.parse::<FilterSpec>().unwrap().kind();
            assert!(
                specs.iter().any(|spec| spec.kind() == kind),
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
                .all(|spec| (spec.memory(), spec.seed()) == (Some(1 << 20), 3))
        );
    }
}
