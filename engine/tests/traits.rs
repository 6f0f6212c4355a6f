//! Traits that programs expect of public types: text, sources of errors, and forms in files.

use std::error::Error;
use std::io;

use echoless::state::StateError;
use echoless::{BuildError, FingerprintSpec, SlotWidth};

#[test]
fn specifications_are_copied_and_memory_errors_compared() {
    let spec = FingerprintSpec::new(200 << 30).slot_width(SlotWidth::Bits64);
    let moved = spec;
    let Err(BuildError::Memory(error)) = moved.build() else {
        panic!("200 GiB were allocated");
    };
    assert_eq!(error.clone(), error);
    assert_eq!(spec, moved);
}

#[test]
fn errors_return_their_causes() {
    let kind = |error: &dyn Error| {
        let source = error
            .source()
            .and_then(|source| source.downcast_ref::<io::Error>());
        source.map(io::Error::kind)
    };
    let full = || io::Error::from(io::ErrorKind::StorageFull);
    assert_eq!(
        kind(&StateError::Io(full())),
        Some(io::ErrorKind::StorageFull)
    );
    let thread = || BuildError::Thread {
        worker: 1,
        reason: full(),
    };
    assert_eq!(kind(&thread()), Some(io::ErrorKind::StorageFull));
    // Its text is that of the error inside, so its cause is, too.
    assert_eq!(
        kind(&StateError::Build(thread())),
        Some(io::ErrorKind::StorageFull)
    );
    assert!(StateError::Unreadable(String::new()).source().is_none());
}

#[cfg(feature = "serde")]
#[test]
fn reports_and_hashes_are_written_to_files() {
    use echoless::{Filter, FilterSpec, Kernel, KeyHash};
    use serde_json::json;
    let key = KeyHash::from_uniform(u64::MAX);
    assert_eq!(serde_json::to_value(key).unwrap(), json!(u64::MAX));
    assert_eq!(
        serde_json::from_str::<KeyHash>("18446744073709551615").unwrap(),
        key
    );

    let spec: FilterSpec = "clocked:window=600,memory=64B".parse().unwrap();
    let mut filter = spec.kernel(Kernel::Scalar).build().unwrap();
    filter.observe_one(key);
    let report = serde_json::to_value(filter.report()).unwrap();
    assert_eq!(report["kernel"], json!("scalar"));
    assert_eq!(report["window"], json!({"ticks": 600, "granule": 120}));
    assert_eq!(report["tally"]["observed"], json!(1));
    assert_eq!(report["tally"]["cells"]["occupied"], json!(1));
    assert_eq!(report["tally"]["unavailable"], json!(null));
    assert_eq!(report["miss_age"]["since"], json!("last_seen"));

    let empty: FilterSpec = "clocked:window=600,memory=64B".parse().unwrap();
    let tally = serde_json::to_value(empty.build().unwrap().tally()).unwrap();
    assert_eq!(tally["rates"], json!(0.0));
}

#[cfg(all(feature = "serde", feature = "threads"))]
#[test]
fn counts_are_written_to_files() {
    let counts = serde_json::to_value(echoless::assembly::EngineCounts::default()).unwrap();
    assert_eq!(
        counts,
        serde_json::json!({"judged": 0, "duplicates": 0, "unknown": 0})
    );
}
