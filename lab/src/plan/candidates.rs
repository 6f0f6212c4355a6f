//! The filters that come into question: every kind and form, over a grid of its parameters.

use echoless::FilterSpec;
use echoless::filters::tracked::TrackedShare;
use echoless::spec::Form;

use super::question::Question;

/// Every specification of the grid, in the question's memory, all keys tracked. Some may turn out not to be buildable.
pub(super) fn grid(question: &Question) -> Vec<FilterSpec> {
    let forms: Vec<Form> = ["scattered", "line"]
        .iter()
        .filter_map(|name| name.parse().ok())
        .collect();
    let texts = texts(question.window.unwrap_or(question.records));
    let specs = texts
        .iter()
        .filter_map(|text| text.parse::<FilterSpec>().ok());
    specs
        .flat_map(|spec| forms.iter().map(move |form| spec.with_form(*form)))
        .map(|spec| spec.with_memory(question.memory).with_seed(question.seed))
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
    match TrackedShare::new(share) {
        Ok(share) => spec.with_tracked(share),
        Err(_) => *spec,
    }
}

/// The grid in text; `span` is how far back duplicates are looked for.
fn texts(span: u64) -> Vec<String> {
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
    for (k, d) in [(1, 1), (2, 1), (3, 1), (2, 2), (3, 2), (2, 3)] {
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
    for window in [span, span / 4, span / 16] {
        add(format!("bdbf:window={}", window.max(1)));
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
            (32, 16),
            (16, 32),
        ] {
            add(format!("{name}:slots={slots},bits={bits}"));
        }
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
    use echoless::spec::FilterKind;

    use super::*;

    #[test]
    fn every_filter_is_in_the_grid_and_every_text_is_a_filter() {
        let texts = texts(1_000_000);
        let specs: Vec<FilterSpec> = texts
            .iter()
            .map(|text| {
                text.parse()
                    .unwrap_or_else(|error| panic!("{text}: {error}"))
            })
            .collect();
        for name in FilterKind::NAMES {
            assert!(
                specs.iter().any(|spec| spec.kind().name() == name),
                "{name}"
            );
        }
        for spec in specs {
            let built = spec.with_memory(1 << 20).build();
            assert!(built.is_ok(), "{spec}: {}", built.err().unwrap());
        }
    }
}
