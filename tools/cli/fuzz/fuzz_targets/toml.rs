//! Filters and profiles of call records in TOML: a filter that is accepted is the same in its own
//! text and in JSON.
#![no_main]

use echoless::FilterSpec;
use echoless_ber::Profile;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(spec) = toml::from_str::<FilterSpec>(text) {
        let written = spec.to_string();
        assert_eq!(written.parse::<FilterSpec>().as_ref(), Ok(&spec), "{written}");
        let json = serde_json::to_string(&spec).expect("a specification is plain data");
        assert_eq!(serde_json::from_str::<FilterSpec>(&json).ok(), Some(spec), "{json}");
    }
    let _ = toml::from_str::<Profile>(text);
});
