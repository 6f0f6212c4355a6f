//! The committed header is that of the source, and so is the copy in the Go module, whose folder
//! must have all that it needs. `UPDATE_HEADER=1` writes both.

use std::path::Path;
use std::{env, fs};

/// What stands before everything else.
const HEAD: &str = "\
/* echoless: duplicate detection on endless streams, in fixed memory.
 *
 * Every function returns 0 or an echoless_status, and echoless_last_error() has the text. Handles
 * are freed with the _free function of their kind; one that was freed, or is of another kind, is an
 * error in every call. Pointers to keys, masks and texts are trusted: each function says how much
 * it reads and writes there, and the one must be apart from the other. Before 1.0 the interface may change with every version; the name of
 * the shared library has the whole version. */
";

/// The constructors of keys. As functions they are checked by the compiler, and cost nothing.
const KEYS: &str = r#"
/* Hashes that are uniform in all 64 bits, such as those of XXH3. Ids are numbers. */
static inline echoless_keys echoless_hashes(const uint64_t *hashes, size_t count) {
    echoless_keys keys = {ECHOLESS_FORM_HASHES, 0, 0, count, hashes, NULL, NULL};
    return keys;
}

/* Numbers, such as ids. The same eight bytes as a key of any other form are another key. */
static inline echoless_keys echoless_numbers(const uint64_t *numbers, size_t count) {
    echoless_keys keys = {ECHOLESS_FORM_NUMBERS, 0, 0, count, numbers, NULL, NULL};
    return keys;
}

/* `width` bytes each, `stride` bytes after the one before: a field of an array of structs. */
static inline echoless_keys echoless_fixed(const void *bytes, size_t width, size_t stride,
                                           size_t count) {
    echoless_keys keys = {ECHOLESS_FORM_FIXED, width, stride, count, bytes, NULL, NULL};
    return keys;
}

/* Bytes of any length, each with its pointer. */
static inline echoless_keys echoless_slices(const echoless_slice *slices, size_t count) {
    echoless_keys keys = {ECHOLESS_FORM_SLICES, 0, 0, count, slices, NULL, NULL};
    return keys;
}

/* The bytes of a text, without its NUL. */
static inline echoless_slice echoless_text(const char *text) {
    echoless_slice slice = {(const uint8_t *)text, strlen(text)};
    return slice;
}

/* Bytes behind each other: key i is from offsets[i] to offsets[i + 1], so there are count + 1. */
static inline echoless_keys echoless_packed(const void *bytes, const int64_t *offsets,
                                            size_t count) {
    echoless_keys keys = {ECHOLESS_FORM_PACKED64, 0, 0, count, bytes, offsets, NULL};
    return keys;
}

/* The same with offsets of 32 bits, as those of Arrow's utf8 and binary. */
static inline echoless_keys echoless_packed32(const void *bytes, const int32_t *offsets,
                                              size_t count) {
    echoless_keys keys = {ECHOLESS_FORM_PACKED32, 0, 0, count, bytes, offsets, NULL};
    return keys;
}

/* Captured packets, compared as `reader` says. */
static inline echoless_keys echoless_packets(const echoless_packet *packets, size_t count,
                                             const echoless_packet_keys *reader) {
    echoless_keys keys = {ECHOLESS_FORM_PACKETS, 0, 0, count, packets, reader, NULL};
    return keys;
}

/* The same keys, each at its own tick, for a filter with a window. */
static inline echoless_keys echoless_at(echoless_keys keys, const uint64_t *ticks) {
    keys.ticks = ticks;
    return keys;
}

/* Whether key `index` is a duplicate. */
static inline int echoless_is_duplicate(const uint64_t *duplicates, size_t index) {
    return (int)(duplicates[index / 64] >> (index % 64) & 1);
}

#endif /* ECHOLESS_H */
"#;

fn header() -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(folder.join("cbindgen.toml")).unwrap();
    let version = env!("CARGO_PKG_VERSION");
    let [major, minor, patch] = version.split('.').collect::<Vec<_>>()[..] else {
        panic!("three numbers in {version}");
    };
    let mut builder = cbindgen::Builder::new()
        .with_config(config)
        .with_header(HEAD);
    builder = builder.with_after_include(format!(
        "#include <stddef.h>\n#include <stdint.h>\n#include <string.h>\n\n\
         #define ECHOLESS_VERSION \"{version}\"\n\
         #define ECHOLESS_VERSION_MAJOR {major}\n#define ECHOLESS_VERSION_MINOR {minor}\n\
         #define ECHOLESS_VERSION_PATCH {patch}\n\n/* Success. */\n#define ECHOLESS_OK 0\n\n\
         /* A count that the filter does not keep. An unknown rate or age is NaN. */\n\
         #define ECHOLESS_UNKNOWN UINT64_MAX\n"
    ));
    for file in ["call", "keys", "filter", "shared", "ordered", "engine"] {
        builder = builder.with_src(folder.join(format!("src/{file}.rs")));
    }
    for file in ["failure", "report"] {
        builder = builder.with_src(folder.join(format!("../foreign/src/{file}.rs")));
    }
    let mut text = Vec::new();
    builder.generate().unwrap().write(&mut text);
    let text = String::from_utf8(text).unwrap();
    // The constructors stand inside of the guard.
    let (before, _) = text.rsplit_once("#endif").expect("an include guard");
    format!("{}\n{}", before.trim_end(), KEYS.trim_start_matches('\n'))
}

/// Compares a file with what it must have, or writes it.
fn check(path: &str, expected: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    if env::var_os("UPDATE_HEADER").is_some() {
        fs::write(&path, expected).unwrap();
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == expected,
        "{}: run UPDATE_HEADER=1 cargo test -p echoless-capi --test header",
        path.display()
    );
}

#[test]
fn the_header_is_that_of_the_source() {
    let generated = header();
    check("include/echoless.h", &generated);
    check("../go/echoless.h", &generated);
}

#[test]
fn the_go_module_has_the_licences() {
    for name in ["LICENSE-MIT", "LICENSE-APACHE"] {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let text = fs::read_to_string(root.join(name)).unwrap();
        check(&format!("../go/{name}"), &text);
    }
}
