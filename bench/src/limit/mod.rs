//! How close the line filters come to what the machine can do at all: one random line read for each key.
//!
//! Each filter is measured against reads of its own array, the two taking turns. `machine` measures arrays that are no filter's.

mod machine;

use std::ops::RangeInclusive;

use clap::Args;
use echoless::filters::lines::LineFilter;
use echoless::memory::LINE_BYTES;
use echoless::{
    FilterSpec, FingerprintSpec, Kernel, KeyHash, RegionOrdered, Replacement, SlotWidth,
};

use self::machine::{LOOK_AHEAD, Rates, check_reads, read_lines};
use crate::clock::{median, thread_seconds};
use crate::streams::{BATCH, Stream, StreamKind};
use crate::table::{Failure, Outputs, Table};

/// The options of `limit`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The sizes of the array, in MiB.
    #[arg(long, value_delimiter = ',', default_value = "1,64,512", value_parser = clap::value_parser!(u64).range(SIZES))]
    sizes: Vec<u64>,
    /// Keys for each measurement, in millions.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    keys: u64,
    /// Measurements of each form; the median counts.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=1000))]
    rounds: u64,
    /// Kernels to measure; all that this machine has if not given.
    #[arg(long, value_delimiter = ',')]
    kernels: Vec<Kernel>,
    /// Only forms whose name has one of these in it, as `lru` or `rlbsbf:k=2`; all if not given.
    #[arg(long, value_delimiter = ';')]
    forms: Vec<String>,
    #[command(flatten)]
    outputs: Outputs,
}

/// Sizes in MiB that stay below 2^64 bytes.
const SIZES: RangeInclusive<u64> = 1..=1 << 40;

/// From which size on, in MiB, batches in region order are measured too.
const REGIONS_FROM: u64 = 2048;

/// How many keys go to each line before anything is measured: enough that the lines of most filters are full.
const WARM_UP: u64 = 40;

/// How many keys per line ago the keys were seen that the false negative rate is measured with.
const AGE: u64 = 16;

/// How many of them are looked for.
const FNR_KEYS: u64 = 1 << 18;

/// A form and how to build it in so many bytes.
struct Form {
    name: String,
    kernel: Kernel,
    /// How many keys the filter is given at a time.
    batch: usize,
    build: Build,
}

type Build = Box<dyn Fn(u64) -> Result<Box<dyn LineFilter>, Failure>>;

fn fingerprint_forms(kernel: Kernel) -> impl Iterator<Item = Form> {
    Replacement::ALL.into_iter().map(move |replacement| Form {
        name: format!("fingerprint 32 x 16, {replacement}"),
        kernel,
        batch: BATCH,
        build: Box::new(move |bytes| {
            let spec = FingerprintSpec::new(bytes)
                .slot_width(SlotWidth::Bits16)
                .replacement(replacement)
                .kernel(kernel);
            Ok(Box::new(spec.build()?))
        }),
    })
}

/// The line forms of published filters.
const LINE_FORMS: [&str; 6] = [
    "bloom:k=4",
    "bloom:k=6",
    "bsbf:k=2",
    "rlbsbf:k=2",
    "rlbsbf:k=3",
    "sbf:k=2,d=1",
];

fn line_forms(kernel: Kernel) -> impl Iterator<Item = Form> {
    LINE_FORMS.into_iter().map(move |text| Form {
        name: format!("{text}, one line"),
        kernel,
        batch: BATCH,
        build: Box::new(move |bytes| {
            let spec = text.parse::<FilterSpec>()?.memory(bytes);
            Ok(spec.line_spec()?.kernel(kernel).build()?)
        }),
    })
}

/// FIFO lines whose batches are ordered by region; for arrays past the reach of the page tables' caches.
fn region_ordered_forms(kernel: Kernel) -> impl Iterator<Item = Form> {
    [64 << 10, 4 << 20].into_iter().map(move |batch| Form {
        name: format!(
            "fingerprint 32 x 16, fifo, {} Ki keys by region",
            batch >> 10
        ),
        kernel,
        batch,
        build: Box::new(move |bytes| {
            let spec = FingerprintSpec::new(bytes)
                .slot_width(SlotWidth::Bits16)
                .kernel(kernel);
            Ok(Box::new(RegionOrdered::new(spec.build()?)))
        }),
    })
}

/// All forms, those in region order last.
fn forms(kernel: Kernel) -> impl Iterator<Item = Form> {
    fingerprint_forms(kernel)
        .chain(line_forms(kernel))
        .chain(region_ordered_forms(kernel))
}

/// Measures and prints the table.
///
/// # Errors
/// If a kernel or the memory is not there, a count is wrong, or an output cannot be written.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let mut table = Table::new(&[
        "name",
        "form",
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
    ]);
    let mut kernels = arguments.kernels.clone();
    if kernels.is_empty() {
        kernels = Kernel::ALL
            .into_iter()
            .filter(|kernel| kernel.is_available())
            .collect();
    }
    let names: Vec<String> = forms(kernels[0]).map(|form| form.name).collect();
    for asked in &arguments.forms {
        if !names.iter().any(|name| name.contains(asked)) {
            return Err(format!("--forms {asked}: no form has that in its name").into());
        }
    }
    for size in &arguments.sizes {
        machine::measure(arguments, *size, &mut table)?;
        for kernel in kernels.iter().copied() {
            let wanted = |form: &Form| {
                let mut names = arguments.forms.iter();
                let asked =
                    arguments.forms.is_empty() || names.any(|name| form.name.contains(name));
                asked && (form.batch == BATCH || *size >= REGIONS_FROM)
            };
            for form in forms(kernel).filter(wanted) {
                measure(arguments, *size, &form, &mut table)?;
            }
        }
    }
    table.publish(&arguments.outputs)
}

/// Keys per second of something that takes batches of so many keys of a stream, until it has had at least `keys`.
fn rate(stream: &mut Stream, batch: usize, keys: u64, mut take: impl FnMut(&[KeyHash])) -> f64 {
    let mut collected = Vec::with_capacity(batch);
    let mut taken = 0;
    let start = thread_seconds();
    while taken < keys {
        if batch == BATCH {
            take(stream.batch());
        } else {
            collected.clear();
            while collected.len() < batch {
                collected.extend_from_slice(stream.batch());
            }
            take(&collected);
        }
        taken += batch as u64;
    }
    taken as f64 / (thread_seconds() - start)
}

fn measure(
    arguments: &Arguments,
    mebibytes: u64,
    form: &Form,
    table: &mut Table,
) -> Result<(), Failure> {
    let bytes = mebibytes << 20;
    let mut filter = (form.build)(bytes)?;
    let mut stream = Stream::new(StreamKind::Distinct, 0);
    let mut read_stream = Stream::new(StreamKind::Distinct, 1);
    let mut words = vec![0; form.batch / 64];
    let (mut observed, mut duplicates) = (0, 0);
    let mut observe = |filter: &mut dyn LineFilter, keys: &[KeyHash]| {
        filter.observe_words(keys, &mut words);
        observed += keys.len() as u64;
        duplicates += words
            .iter()
            .map(|word: &u64| u64::from(word.count_ones()))
            .sum::<u64>();
    };
    let warm_up = bytes / LINE_BYTES * WARM_UP;
    rate(&mut stream, form.batch, warm_up, |keys| {
        observe(&mut *filter, keys);
    });
    let keys = arguments.keys * 1_000_000;
    let mut reads: Vec<Vec<f64>> = vec![Vec::new(); LOOK_AHEAD.len()];
    let mut rates = Vec::new();
    for _ in 0..arguments.rounds {
        for (ahead, reads) in LOOK_AHEAD.into_iter().zip(&mut reads) {
            let (mut read, mut seen) = (0, 0);
            reads.push(rate(&mut read_stream, BATCH, keys, |keys| {
                seen += read_lines(filter.lines(), keys, ahead);
                read += keys.len() as u64;
            }));
            check_reads(seen, read)?;
        }
        rates.push(rate(&mut stream, form.batch, keys, |keys| {
            observe(&mut *filter, keys);
        }));
    }
    if let Some(expected) = filter.expected_false_duplicates() {
        check_duplicates(duplicates, observed, expected)?;
    }
    let fnr = false_negative_rate(&*filter, &mut stream, bytes / LINE_BYTES * AGE);
    let reads = Rates::of(reads);
    let rate = median(rates);
    table.push(vec![
        "filter".into(),
        form.name.clone().into(),
        form.kernel.name().into(),
        1u64.into(),
        mebibytes.into(),
        (filter.huge_page_bytes() as f64 / bytes as f64).into(),
        rate.into(),
        reads.plain.into(),
        reads.best.into(),
        (rate / reads.plain).into(),
        (rate / reads.best).into(),
        (duplicates as f64 / observed as f64).into(),
        fnr.into(),
    ]);
    Ok(())
}

/// The share of keys seen `age` keys ago, a batch or more of them, that the filter has forgotten. The last keys of the stream were observed.
fn false_negative_rate(filter: &dyn LineFilter, stream: &mut Stream, age: u64) -> f64 {
    stream.go_back(age);
    let (mut asked, mut forgotten) = (0, 0);
    while asked < FNR_KEYS.min(age) {
        let keys = stream.batch();
        forgotten += keys.iter().filter(|key| !filter.contains(**key)).count();
        asked += keys.len() as u64;
    }
    forgotten as f64 / asked as f64
}

fn check_duplicates(duplicates: u64, keys: u64, expected: f64) -> Result<(), Failure> {
    let tolerance = 6.0 * expected.sqrt() + expected * 0.01 + 3.0;
    if (duplicates as f64 - expected).abs() <= tolerance {
        return Ok(());
    }
    Err(format!(
        "{duplicates} duplicates in {keys} distinct keys, {expected:.1} false ones expected"
    )
    .into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forgotten_keys_are_counted() {
        let mut filter = FingerprintSpec::new(1 << 20).build().unwrap();
        let mut stream = Stream::new(StreamKind::Distinct, 0);
        let mut verdicts = echoless::Verdicts::new();
        for number in 0..8 {
            // Every second batch is kept from the filter.
            let keys = stream.batch();
            if number % 2 == 0 {
                echoless::Filter::observe(&mut filter, keys, &mut verdicts);
            }
        }
        let rate = false_negative_rate(&filter, &mut stream, 8 * BATCH as u64);
        assert!((rate - 0.5).abs() < 1e-3, "{rate}");
        assert_eq!(false_negative_rate(&filter, &mut stream, BATCH as u64), 1.0);
    }

    #[test]
    fn wrong_counts_are_failures() {
        assert!(check_duplicates(100, 1000, 101.0).is_ok());
        assert!(check_duplicates(200, 1000, 101.0).is_err());
    }
}
