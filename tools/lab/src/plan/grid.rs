//! The candidates of the planner: every kind and form, over a grid of its parameters and of tracked
//! fractions.

use echoless::spec::{Form, TrackedFraction, parse_bytes};
use echoless::{FilterSpec, SpecError};

use super::request::PlanRequest;

/// The most memory, in bytes, to build a candidate in as a trial. A filter that can be built in
/// this much memory can be built in more, up to
/// [`Facts::most_memory`](echoless::spec::Facts::most_memory). A small trial does not touch the
/// whole memory, and the plan may be for a larger machine.
const ENOUGH_MEMORY: u64 = 64 << 10;

/// What the planner tries, in the order of the catalogue. Each choice in braces is tried, the last
/// one fastest. `SPAN` is the largest distance between two duplicates, in records, and `DERIVED`
/// the parameters that `bdbf` cannot derive from much memory.
const SETTINGS: &[&str] = &[
    "bloom:k={1|2|3|4|5|6|7|8|9|10|11|12|14|16|20|24}",
    "{bsbf:|bsbfsd:|rlbsbf:|rsbf:as=described,|rsbf:as=tabled,}k=1",
    "{bsbf:|bsbfsd:|rlbsbf:|rsbf:as=described,|rsbf:as=tabled,}k=2",
    "{bsbf:|bsbfsd:|rlbsbf:|rsbf:as=described,|rsbf:as=tabled,}k=3",
    "{bsbf:|bsbfsd:|rlbsbf:|rsbf:as=described,|rsbf:as=tabled,}k=4",
    "sbf:{k=1,d=1|k=2,d=1|k=3,d=1|k=2,d=2|k=3,d=2|k=2,d=3|k=2,d=4},\
     fps={0.001|0.003|0.01|0.03|0.1|0.2|0.4}",
    "sbf:k={1|2|3},fps={0.01|0.1|0.3},update=distinct",
    "fpsbf:{k=1,c=1,f=7|k=1,c=2,f=6|k=2,c=1,f=3|k=2,c=2,f=6|k=1,c=2,f=14},\
     refill={xor|overwrite|repaired}",
    "bdbf:window={SPAN}{DERIVED}",
    "sqf:{slots=1,r=2,kept=1|slots=4,r=5,kept=3|slots=8,r=8,kept=4}",
    // Slots of 64 bits are for lines only. A line of qhtd counts its arrivals in one slot.
    "qht:{slots=1,bits=3|slots=1,bits=8|slots=4,bits=4|slots=4,bits=8|slots=8,bits=8|\
     slots=16,bits=8|slots=8,bits=12|slots=16,bits=16|slots=64,bits=8|slots=32,bits=16|\
     slots=16,bits=32|slots=8,bits=64}",
    "qhtd:{slots=1,bits=3|slots=1,bits=8|slots=4,bits=4|slots=4,bits=8|slots=8,bits=8|\
     slots=16,bits=8|slots=8,bits=12|slots=16,bits=16|slots=64,bits=8|slots=32,bits=16|\
     slots=16,bits=32|slots=63,bits=8|slots=31,bits=16|slots=15,bits=32|slots=7,bits=64}",
    "{qqht|rowlru|qqhtd}:{slots=1,bits=3|slots=1,bits=8|slots=4,bits=4|slots=4,bits=8|\
     slots=8,bits=8|slots=16,bits=8|slots=8,bits=12|slots=16,bits=16|slots=64,bits=8|\
     slots=32,bits=16|slots=16,bits=32|slots=8,bits=64}",
    "cuckoo:{slots=2,bits=4|slots=4,bits=6|slots=4,bits=8|slots=4,bits=12|slots=4,bits=16}",
    "{a2|dbuf}:k={1|2|3|4|6|8},rotate=fill",
    "lru",
    "fpbuffer:q={0.1|0.2|0.4}",
];

/// Filters that clear expired cells as time passes: in the time of a window they sweep their whole
/// memory. Here and below duplicates renew their keys: for a planner, a key is a duplicate if it
/// was last seen at most a window ago.
const SWEEPING: &[&str] = &[
    // Narrow stamps leave more of the memory to keys, at the price of a coarser window.
    "tbf:window={SPAN},refresh=true,bits={4|6|8},k={1|2|3|4|6|8}",
    "tbf:window={SPAN},refresh=true,k=4,equal=2,bits=8",
    "gbf:window={SPAN},refresh=true,q={2|4|8|16},k={2|3|4|6|8}",
    // More generations make the window more exact; each needs a slice.
    "apbf:window={SPAN},refresh=true,l={4|8|16},k={2|4|6|8|10|14}",
];

const LINES: &[&str] = &[
    "clocked:window={SPAN},dense={false|true},bits={16|32|64}",
    "stamped:window={SPAN},bits={32|64}",
    "dense:replacement={lru|fifo},bits={16|32|64}",
];

/// The specifications that the planner tries for duplicates at most `span` records apart, in a
/// filter of `memory` bytes.
///
/// # Errors
/// [`SpecError`] if one of them is none: a fault of the list.
pub fn settings(memory: u64, span: u64) -> Result<Vec<FilterSpec>, SpecError> {
    // With more than 512 bits for each record of the window, the sweeps would take nearly all time,
    // and filters of one line have room for every key.
    let sweeping = if memory / 64 <= span { SWEEPING } else { &[] };
    let mut texts = Vec::new();
    for text in [SETTINGS, sweeping, LINES].into_iter().flatten() {
        if text.starts_with("bdbf") {
            for window in [1, 4, 16].map(|part| (span / part).max(1)) {
                // The largest k and c, where those that follow from the memory would be larger.
                let hashes = (memory as f64 * 8.0 * std::f64::consts::LN_2 / window as f64).sqrt();
                let derived = if hashes.ceil() <= 32.0 {
                    ""
                } else {
                    ",k=32,c=32"
                };
                let text = text.replace("{SPAN}", &window.to_string());
                texts.push(text.replace("{DERIVED}", derived));
            }
        } else {
            expand(&text.replace("{SPAN}", &span.to_string()), &mut texts);
        }
    }
    texts
        .iter()
        .map(|text| echoless_papers::parse(text))
        .collect()
}

/// Appends the text with each choice of its braces.
fn expand(text: &str, texts: &mut Vec<String>) {
    let braces = text
        .split_once('{')
        .and_then(|(before, rest)| Some((before, rest.split_once('}')?)));
    match braces {
        None => texts.push(text.to_owned()),
        Some((before, (choices, after))) => {
            for choice in choices.split('|') {
                expand(&format!("{before}{choice}{after}"), texts);
            }
        }
    }
}

/// The same filter for a stream `scale` times shorter, in as much less memory: what counts records
/// or bytes shrinks. The memory itself is left as it is. Fails if the filter has an option of this
/// name that counts neither.
pub(super) fn scaled(spec: &FilterSpec, scale: f64) -> Result<FilterSpec, SpecError> {
    let mut text = String::new();
    for part in spec.to_string().split_inclusive([':', ',', '/']) {
        let option = part.trim_end_matches([':', ',', '/']);
        match option.split_once('=') {
            Some((key @ ("window" | "step"), value)) => {
                let count = parse_bytes(value)? as f64 / scale;
                let count = count.round().max(1.0) as u64;
                text += &format!("{key}={count}{}", &part[option.len()..]);
            }
            _ => text += part,
        }
    }
    text.parse()
}

/// Every specification of the grid that can be built in the memory of the request, with all keys
/// tracked. Filters with a window in ticks are candidates for a request with a window only: they
/// spend memory on times. Such a request is for an endless stream, so filters whose rates drift
/// without end are none.
pub(super) fn grid(request: &PlanRequest) -> Result<Vec<FilterSpec>, SpecError> {
    let span = request.window.unwrap_or(request.records).max(1);
    let specs = settings(request.memory, span)?.into_iter();
    let specs = specs
        .flat_map(|spec| Form::ALL.iter().map(move |form| spec.form(*form)))
        .filter(|spec| match request.window {
            None => spec.facts().window.is_none(),
            Some(_) => spec.facts().settles,
        })
        .filter(|spec| request.memory <= spec.facts().most_memory)
        .filter(|spec| {
            let tried = spec.memory(request.memory.min(ENOUGH_MEMORY));
            tried.build().is_ok()
        })
        .map(|spec| spec.memory(request.memory).seed(request.seed));
    Ok(specs.collect())
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
            let specs = grid(&request).unwrap();
            for name in FilterSpec::names() {
                for form in Form::ALL {
                    let text = format!("{name}:form={form},memory=1MiB");
                    let default: FilterSpec = echoless_papers::parse(&text).unwrap();
                    let of_family = |spec: &&FilterSpec| spec.name() == name && spec.form == *form;
                    // Those that sweep their memory need a window of a record for each 64 bytes.
                    let sweeps = ["tbf", "gbf", "apbf"].contains(&name);
                    let least = if sweeps { Some(16_384) } else { Some(0) };
                    let settles = default.facts().settles || name == "fpsbf";
                    let offered = match window {
                        None => default.facts().window.is_none(),
                        Some(_) => settles && (window >= least || default.facts().window.is_none()),
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
            let windows = specs.iter().filter_map(|spec| spec.facts().window);
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
            let named = |spec: FilterSpec| format!("{} {}", spec.name(), spec.form);
            let specs = grid(&PlanRequest::new(stream, memory)).unwrap();
            specs.into_iter().map(named).collect()
        };
        for limited in ["lru scattered", "qqht line"] {
            assert!(names(64 << 30).contains(&limited.to_owned()), "{limited}");
            assert!(!names(512 << 30).contains(&limited.to_owned()), "{limited}");
        }
        assert!(names(512 << 30).contains(&"bloom scattered".to_owned()));
        assert_eq!(names(1 << 61), Vec::<String>::new());
    }

    #[test]
    fn every_setting_is_a_specification() {
        for (memory, span) in [(1 << 20, 100_000), (1 << 40, 1), (64, u64::from(u32::MAX))] {
            let settings = settings(memory, span).unwrap();
            assert!(settings.len() > 200, "{}", settings.len());
        }
        let mut texts = Vec::new();
        expand("{a|b}:k={1|2}", &mut texts);
        assert_eq!(texts, ["a:k=1", "a:k=2", "b:k=1", "b:k=2"]);
    }

    #[test]
    fn windows_and_steps_shrink_with_the_stream() {
        for (text, expected) in [
            (
                "growing:step=1MiB/tbf:window=1000,memory=8MiB",
                "growing:step=64KiB/tbf:window=63,memory=8MiB",
            ),
            (
                "horizontal:slices=4/growing/bloom",
                "horizontal:slices=4/growing/bloom",
            ),
            ("bdbf:window=8,k=2", "bdbf:window=1,k=2"),
        ] {
            let parse = |text: &str| echoless_papers::parse(text).unwrap();
            assert_eq!(scaled(&parse(text), 16.0), Ok(parse(expected)));
        }
    }
}
