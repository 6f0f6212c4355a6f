//! How close the line filters come to what the machine can do at all: one random line read for each key.
//!
//! Each filter is measured against reads of its own array, the two taking turns.

use std::ops::RangeInclusive;

use clap::Args;
use echoless::filters::lines::LineForm;
use echoless::memory::{LINE_BYTES, Line, prefetch};
use echoless::{
    FilterSpec, FingerprintSpec, Kernel, KeyHash, RegionOrdered, Replacement, SlotWidth,
};

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
    #[command(flatten)]
    outputs: Outputs,
}

/// Sizes in MiB that stay below 2^64 bytes.
const SIZES: RangeInclusive<u64> = 1..=1 << 40;

/// How far ahead the plain reads ask for lines; 0 leaves it to the CPU's own look-ahead. The limit is the best of them.
const READ_AHEAD: [usize; 6] = [0, 32, 64, 128, 192, 256];

/// From which size on, in MiB, batches in region order are measured too.
const REGIONS_FROM: u64 = 2048;

/// How many keys go to each line before anything is measured: enough that the lines of most filters are full.
const WARM_UP: u64 = 40;

/// A form and how to build it in so many bytes.
struct Form {
    name: String,
    kernel: Kernel,
    /// How many keys the filter is given at a time.
    batch: usize,
    build: Build,
}

type Build = Box<dyn Fn(u64) -> Result<Box<dyn LineForm>, Failure>>;

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
            let spec = text.parse::<FilterSpec>()?.with_memory(bytes);
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
    ]);
    let mut kernels = arguments.kernels.clone();
    if kernels.is_empty() {
        kernels = Kernel::ALL
            .into_iter()
            .filter(|kernel| kernel.is_available())
            .collect();
    }
    for size in &arguments.sizes {
        for kernel in kernels.iter().copied() {
            let ordered = region_ordered_forms(kernel).filter(|_| *size >= REGIONS_FROM);
            for form in fingerprint_forms(kernel)
                .chain(line_forms(kernel))
                .chain(ordered)
            {
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
    let mut words = vec![0; form.batch / 64];
    let (mut observed, mut duplicates) = (0, 0);
    let mut observe = |filter: &mut dyn LineForm, keys: &[KeyHash]| {
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
    let mut reads: Vec<Vec<f64>> = vec![Vec::new(); READ_AHEAD.len()];
    let mut rates = Vec::new();
    for _ in 0..arguments.rounds {
        for (ahead, reads) in READ_AHEAD.into_iter().zip(&mut reads) {
            let (mut read, mut seen) = (0, 0);
            reads.push(rate(&mut stream, BATCH, keys, |keys| {
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
    let reads: Vec<f64> = reads.into_iter().map(median).collect();
    let limit = reads.iter().copied().fold(0.0, f64::max);
    let rate = median(rates);
    table.push(vec![
        "filter".into(),
        form.name.clone().into(),
        form.kernel.name().into(),
        1u64.into(),
        mebibytes.into(),
        (filter.huge_page_bytes() as f64 / bytes as f64).into(),
        rate.into(),
        reads[0].into(),
        limit.into(),
        (rate / reads[0]).into(),
        (rate / limit).into(),
    ]);
    Ok(())
}

/// Reads the line of each key, the lines of later keys being fetched meanwhile; the number of lines with something in them.
fn read_lines(lines: &[Line], keys: &[KeyHash], ahead: usize) -> u64 {
    let count = lines.len() as u64;
    let read = |key: &KeyHash| u64::from(lines[key.line(count) as usize].0[0] != 0);
    if ahead == 0 {
        return keys.iter().map(read).sum();
    }
    let (first, rest) = keys.split_at(ahead.min(keys.len()));
    for key in first {
        prefetch(lines, key.line(count) as usize);
    }
    let mut sum = 0;
    for (key, next) in keys.iter().zip(rest) {
        prefetch(lines, next.line(count) as usize);
        sum += read(key);
    }
    sum + keys[rest.len()..].iter().map(read).sum::<u64>()
}

/// After the warm-up next to no line is empty.
fn check_reads(seen: u64, keys: u64) -> Result<(), Failure> {
    if seen * 1000 >= keys * 999 {
        return Ok(());
    }
    Err(format!("{seen} of {keys} lines read have something in them").into())
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
    fn every_look_ahead_reads_every_line_once() {
        let mut lines = vec![Line([1; 8]); 300];
        lines[17] = Line::EMPTY;
        let mut stream = Stream::new(StreamKind::Distinct, 1);
        let keys = stream.batch();
        let in_17 = keys.iter().filter(|key| key.line(300) == 17).count();
        for ahead in READ_AHEAD.into_iter().chain([1023, 1024, 5000]) {
            assert_eq!(read_lines(&lines, keys, ahead), (keys.len() - in_17) as u64);
        }
    }

    #[test]
    fn wrong_counts_are_failures() {
        assert!(check_reads(999, 1000).is_ok() && check_reads(998, 1000).is_err());
        assert!(check_duplicates(100, 1000, 101.0).is_ok());
        assert!(check_duplicates(200, 1000, 101.0).is_err());
    }
}
