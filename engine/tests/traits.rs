//! Traits that programs expect of public types: copies, comparisons and sources of errors.

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
