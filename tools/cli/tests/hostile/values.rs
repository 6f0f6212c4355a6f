//! Values of options: hostile ones and usual ones.

use crate::options::Opt;

/// Values that most options reject. None may crash a run, hang it, or make its results wrong.
pub(crate) const HOSTILE: [&str; 22] = [
    "",
    "0",
    "-1",
    "1",
    "1e999",
    "NaN",
    "0.5",
    "18446744073709551615",
    "18446744073709551616",
    "99999999999999999999999999",
    "340282366920938463463374607431768211456k",
    "-",
    "--",
    "1-",
    "2-1",
    "1,,2",
    ",",
    "a\u{1b}[31m\nb",
    "é\u{202e}",
    "calls.csv",
    "/",
    "missing/folder/file",
];

/// The option with a value that it usually has.
pub(crate) fn usual(option: &Opt) -> Vec<String> {
    let Some(value) = &option.value else {
        return vec![option.name.clone()];
    };
    if option.is_flag() {
        return vec![option.name.clone()];
    }
    let name = option.name.trim_start_matches('-');
    let usual = match (name, value.as_str()) {
        ("key" | "time-field", _) => "2",
        ("window", "TIME") | ("lateness" | "max-advance", _) => "1s",
        ("filter", _) => "clocked:bits=16,form=line",
        ("fpr", _) => "0.001",
        ("kernel", _) => "scalar",
        ("replacement", _) => "lru",
        ("format", "FORMAT") => "csv",
        ("missing" | "blank-lines", _) => "skip",
        ("ignore-case", _) => "unicode",
        ("comment", _) => "#",
        ("summary", _) => "line",
        ("stats-every", _) => "1s",
        ("metrics", _) => "0",
        ("late", _) => "pass",
        ("keep", _) => "last",
        ("time-format", _) => "ms",
        ("time-year", _) => "2024",
        ("distribution", _) => "zipf",
        ("duplicates", "FRACTION") => "0.3",
        ("copies" | "ignore", _) => "ttl",
        ("from", _) => "network",
        ("group", _) => "vlan",
        ("compress", _) => "gzip",
        ("hash-key", _) => "secret.key",
        (_, "FILE" | "LIST") => return vec![format!("--{name}=out.{name}")],
        (_, "SIZE") => "128k",
        (_, "BYTES") => ";",
        _ => "100",
    };
    vec![format!("--{name}={usual}")]
}
