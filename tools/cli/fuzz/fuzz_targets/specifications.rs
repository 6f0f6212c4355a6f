//! Specifications of filters: what parses is written in a text that parses to the same.
#![no_main]

use echoless::FilterSpec;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(spec) = text.parse::<FilterSpec>() {
        let written = spec.to_string();
        assert_eq!(written.parse::<FilterSpec>().as_ref(), Ok(&spec), "{written}");
        assert_eq!(spec.to_string(), written);
    }
});
