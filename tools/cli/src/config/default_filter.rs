//! The filter of a run without `--filter`.

use std::str::FromStr;

use echoless::memory::LINE_BYTES;
use echoless::{FilterSpec, FingerprintGeometry, FingerprintSpec, Replacement, SpecError};
use echoless_records::number::parse_rate;

use super::memory_size::{MOST_DEFAULT_MEMORY, at_most_default, memory_for};
use super::window::WindowConfig;
use crate::args::DedupArgs;

/// The lines with the narrowest slots that keep the false positive rate. Without `memory`, inputs
/// with few `keys` get a small filter, unless it has a window. Returns the shape, too. Fails if an
/// option is outside its range, the memory is less than a line (with `--dense` a page), or no slot
/// is wide enough for the rate.
pub(super) fn default_filter(
    args: &DedupArgs,
    window: Option<&WindowConfig>,
    memory: Option<u64>,
    keys: impl FnOnce() -> Option<u64>,
) -> Result<(FilterSpec, FingerprintGeometry), SpecError> {
    let max_fpr = parse_rate("--fpr", &args.fpr)?;
    let replacement = match window {
        Some(window) if window.refresh => Replacement::Lru,
        Some(_) => Replacement::Fifo,
        None => Replacement::from_str(&args.replacement)?,
    };
    let stores_duplicates = replacement.records_duplicates();
    if args.dense && stores_duplicates {
        let asked = replacement.to_string();
        let allowed = "fifo or lru with --dense";
        return Err(SpecError::new("--replacement", asked, allowed));
    }
    // The width is that of the largest default, so neither the length of the input nor the machine
    // changes it.
    let spec = FingerprintSpec::new(memory.unwrap_or(MOST_DEFAULT_MEMORY)).max_fpr(max_fpr);
    let mut spec = spec.dense(args.dense).replacement(replacement);
    if let Some(window) = window {
        spec = spec.window(window.ticks);
    }
    let width = spec.geometry()?.width;
    let memory = memory.unwrap_or_else(|| {
        // Distinct keys do not bound how many fingerprints are stored by a policy that records
        // duplicates, or by a window, which forgets a key and records it again.
        let keys = (!stores_duplicates && window.is_none())
            .then(keys)
            .flatten();
        // With a choice of two lines fewer lines overflow than with one, which the bound is for.
        let shape = FingerprintGeometry::new(MOST_DEFAULT_MEMORY / LINE_BYTES, width);
        at_most_default(keys.map(|keys| memory_for(keys, shape)))
    });
    let spec = FilterSpec::try_from(&spec.slot_width(width))?.memory(memory);
    Ok((spec, FingerprintGeometry::new(memory / LINE_BYTES, width)))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    fn text(options: &str, memory: Option<u64>, keys: Option<u64>) -> String {
        #[derive(Parser)]
        struct Command {
            #[command(flatten)]
            args: DedupArgs,
        }
        let options = ["dedup"].into_iter().chain(options.split_whitespace());
        let args = Command::parse_from(options).args;
        let window = WindowConfig::from_args(&args, None).unwrap();
        let spec = default_filter(&args, window.as_ref(), memory, || keys);
        spec.map_or_else(|error| error.to_string(), |(spec, _)| spec.to_string())
    }

    #[test]
    fn the_rate_selects_the_width_and_few_keys_a_small_memory() {
        let mib = Some(1 << 20);
        let window = "clocked:window=9,refresh=";
        for (options, memory, keys, expected) in [
            (
                "--dense --fpr 1e-3",
                mib,
                None,
                "dense:replacement=lru,bits=16,memory=1MiB",
            ),
            (
                "--dense --fpr 1e-8",
                mib,
                None,
                "dense:replacement=lru,bits=32,memory=1MiB",
            ),
            (
                "--dense --fpr 1e-9",
                mib,
                None,
                "dense:replacement=lru,bits=64,memory=1MiB",
            ),
            (
                "--dense",
                None,
                Some(10),
                "dense:replacement=lru,bits=32,memory=64KiB",
            ),
            (
                "--dense",
                Some(4095),
                None,
                "invalid memory=4095 B: expected at least 4096 B (one page)",
            ),
            (
                "--dense --replacement qqhtd",
                mib,
                None,
                "invalid --replacement=qqhtd: expected fifo or lru with --dense",
            ),
            (
                "",
                None,
                Some(10),
                "rowlru:slots=16,bits=32,rows=packed,form=line,memory=64KiB",
            ),
            (
                "--window 9 --fpr 1e-3",
                mib,
                None,
                &format!("{window}false,bits=16,dense=false,memory=1MiB"),
            ),
            (
                "--window 9 --refresh --dense",
                mib,
                None,
                &format!("{window}true,bits=32,dense=true,memory=1MiB"),
            ),
        ] {
            assert_eq!(text(options, memory, keys), expected, "{options}");
        }
        let error = text("--dense --fpr 1e-18", mib, None);
        assert!(error.starts_with("invalid fpr=1e-18: expected at least"));
    }

    #[test]
    fn few_keys_do_not_make_the_filter_of_a_window_small() {
        let (few, unknown) = (Some(10), None);
        let options = "--window 9";
        assert_eq!(text(options, None, few), text(options, None, unknown));
    }
}
