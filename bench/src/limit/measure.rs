//! Measures filters and reads of their arrays in turn, and checks the verdicts.

use echoless::filters::lines::LineFilter;
use echoless::memory::LINE_BYTES;
use echoless::{Kernel, LookAhead};

use super::arguments::Arguments;
use super::candidates::{Candidate, InUse, candidates};
use super::compare;
use super::machine::huge_page_share;
use super::machine::{self, LOOK_AHEAD, Rates, check_reads, read_lines};
use super::rate::rate;
use crate::check;
use crate::clock::median;
use crate::failure::Failure;
use crate::streams::{KEYS_FOR_A_NEW_ONE, Stream, StreamKind};
use crate::table::{Cell, Table};

/// The age of the keys that the false negative rate is measured with, in keys for each line.
const AGE: u64 = 16;

/// How many keys for each line are repeated in streams that repeat keys: few enough that every
/// filter remembers nearly all of them.
const SPAN: u64 = 4;

/// The columns of the table.
const COLUMNS: &[&str] = &[
    "name",
    "variant",
    "kernel",
    "threads",
    "memory_mib",
    "huge_pages",
    "keys_per_second",
    "plain_read_keys_per_second",
    "limit_keys_per_second",
    "ratio_to_plain_read",
    "ratio_to_limit",
    "fpr",
    "fnr",
    "look_ahead",
];

/// How many keys are looked up for the false negative rate.
const FNR_KEYS: u64 = 1 << 18;

/// Measures and prints the table.
///
/// # Errors
/// If a kernel or the memory is not available, a count is wrong, or an output cannot be written.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    measure_all(arguments)?.publish(&arguments.outputs)
}

fn measure_all(arguments: &Arguments) -> Result<Table, Failure> {
    let mut table = Table::new(if arguments.compare_lookahead {
        compare::COLUMNS
    } else {
        COLUMNS
    });
    LookAhead::fix(arguments.lookahead);
    let mut kernels = arguments.kernels.clone();
    if kernels.is_empty() {
        kernels = Kernel::ALL
            .iter()
            .copied()
            .filter(|kernel| kernel.is_available())
            .collect();
    }
    let names: Vec<String> = candidates(kernels[0])
        .map(|candidate| candidate.name)
        .collect();
    for only in &arguments.only {
        if !names.iter().any(|name| name.contains(only)) {
            let expected = "expected a part of the name of a filter";
            return Err(format!("invalid --only {only}: {expected}").into());
        }
    }
    for size in &arguments.sizes {
        if !arguments.compare_lookahead {
            machine::measure(arguments, *size, &mut table)?;
        }
        for kernel in kernels.iter().copied() {
            for candidate in candidates(kernel) {
                if !arguments.includes(&candidate) {
                    continue;
                }
                if arguments.compare_lookahead {
                    compare::compare(arguments, *size, &candidate, &mut table)?;
                } else {
                    measure(arguments, *size, &candidate, &mut table)?;
                }
            }
        }
    }
    Ok(table)
}

fn measure(
    arguments: &Arguments,
    mebibytes: u64,
    candidate: &Candidate,
    table: &mut Table,
) -> Result<(), Failure> {
    let bytes = mebibytes << 20;
    let mut stream = Stream::new(StreamKind::Distinct, 0);
    let mut read_stream = Stream::new(StreamKind::Distinct, 1);
    let mut measured = candidate.filled(bytes, &mut stream)?;
    if arguments.repeats {
        let span = u32::try_from(bytes / LINE_BYTES * SPAN)
            .map_err(|_| "--repeats needs filters of less than 64 GiB")?;
        stream = Stream::new(StreamKind::Repeats { span }, 2);
        // Until all keys that repeat are keys of this stream.
        let until_settled = u64::from(span) * KEYS_FOR_A_NEW_ONE;
        measured.rate(&mut stream, until_settled);
    }
    let before = (measured.observed, measured.duplicates);
    let keys = arguments.keys * 1_000_000;
    let mut reads: Vec<Vec<f64>> = vec![Vec::new(); LOOK_AHEAD.len()];
    let mut rates = Vec::new();
    for _ in 0..arguments.rounds {
        for (ahead, reads) in LOOK_AHEAD.into_iter().zip(&mut reads) {
            let (mut read, mut seen) = (0, 0);
            reads.push(rate(&mut read_stream, keys, |keys| {
                seen += read_lines(measured.filter.lines(), keys, ahead);
                read += keys.len() as u64;
            }));
            check_reads(seen, read)?;
        }
        rates.push(measured.rate(&mut stream, keys));
    }
    let InUse {
        filter,
        observed,
        duplicates,
        ..
    } = measured;
    let report = filter.report();
    let (fpr, fnr) = if arguments.repeats {
        let fraction = (duplicates - before.1) as f64 / (observed - before.0) as f64;
        // Lines of 8 slots miss 2 in 100. Filters of bits have more false duplicates, or misses,
        // than this could bound.
        if report.tally.evictions.is_some() && !(0.87..0.91).contains(&fraction) {
            let name = &candidate.name;
            return Err(format!("{name}: {fraction:.3} are duplicates, expected 0.9").into());
        }
        (Cell::Nothing, Cell::Nothing)
    } else {
        if let Some(expected) = report.expected_false_duplicates {
            check::false_duplicates(duplicates, observed, expected)?;
        }
        let fnr = false_negative_rate(&*filter, &mut stream, bytes / LINE_BYTES * AGE);
        ((duplicates as f64 / observed as f64).into(), fnr.into())
    };
    let reads = Rates::of(reads);
    let rate = median(rates);
    table.push(vec![
        "filter".into(),
        if arguments.repeats {
            format!("{}, {}", candidate.name, stream.kind().name()).into()
        } else {
            candidate.name.clone().into()
        },
        candidate.kernel.name().into(),
        1u64.into(),
        mebibytes.into(),
        huge_page_share(bytes).into(),
        rate.into(),
        reads.plain.into(),
        reads.best.into(),
        (rate / reads.plain).into(),
        (rate / reads.best).into(),
        fpr,
        fnr,
        report
            .look_ahead
            .map_or(Cell::Nothing, |measured| measured.to_string().into()),
    ]);
    Ok(())
}

/// The fraction of the keys seen `age` keys ago, at least a batch of them, that the filter has
/// forgotten. The filter must have observed the last keys of the stream.
fn false_negative_rate(filter: &dyn LineFilter, stream: &mut Stream, age: u64) -> f64 {
    stream.rewind(age);
    let (mut probed, mut forgotten) = (0, 0);
    while probed < FNR_KEYS.min(age) {
        let keys = stream.batch();
        forgotten += keys.iter().filter(|key| !filter.contains(**key)).count();
        probed += keys.len() as u64;
    }
    forgotten as f64 / probed as f64
}

#[cfg(test)]
mod tests {
    use echoless::FingerprintSpec;

    use super::*;
    use crate::streams::BATCH;
    use crate::table::Outputs;

    #[test]
    fn streams_with_repeats_are_measured() {
        for name in [
            "bloom:k=4",
            "clocked:bits=16,",
            "bits=16,refresh=false,dense=true",
        ] {
            let arguments = Arguments {
                sizes: vec![1],
                keys: 1,
                rounds: 1,
                kernels: vec![Kernel::Scalar],
                lookahead: None,
                compare_lookahead: false,
                only: vec![name.into()],
                repeats: true,
                outputs: Outputs::default(),
            };
            let rows = measure_all(&arguments).unwrap().json();
            let named = candidates(Kernel::Scalar).filter(|it| it.name.contains(name));
            let mut expected: Vec<String> = named.map(|it| it.name).collect();
            assert!(!expected.is_empty(), "{name}");
            for row in rows.as_array().unwrap() {
                assert!(row["keys_per_second"].as_f64().unwrap() > 0.0, "{row}");
                if row["name"] == "filter" {
                    let variant = row["variant"].as_str().unwrap();
                    let is_it = |it: &String| variant.starts_with(&format!("{it}, "));
                    let index = expected.iter().position(is_it).expect(variant);
                    expected.remove(index);
                }
            }
            assert!(expected.is_empty(), "{name}: no row of {expected:?}");
        }
    }

    #[test]
    fn forgotten_keys_are_counted() {
        let mut filter = FingerprintSpec::new(1 << 20).build().unwrap();
        let mut stream = Stream::new(StreamKind::Distinct, 0);
        let mut verdicts = echoless::Verdicts::new();
        for number in 0..8 {
            // The filter observes every second batch only.
            let keys = stream.batch();
            if number % 2 == 0 {
                echoless::Filter::observe(&mut filter, keys, &mut verdicts);
            }
        }
        let rate = false_negative_rate(&filter, &mut stream, 8 * BATCH as u64);
        assert!((rate - 0.5).abs() < 1e-3, "{rate}");
        assert_eq!(false_negative_rate(&filter, &mut stream, BATCH as u64), 1.0);
    }
}
