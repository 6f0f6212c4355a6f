//! How close the line filters come to what the machine can do at all: one random line read for each key.

use std::rc::Rc;

use clap::Args;
use echoless::memory::{LineArray, prefetch};
use echoless::{Filter, FingerprintSpec, Kernel, KeyHash, Replacement, SlotWidth};

use crate::clock::{median, thread_seconds};
use crate::streams::{BATCH, Stream, StreamKind};
use crate::table::{Failure, Outputs, Table};

/// The options of `limit`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The sizes of the array, in MiB.
    #[arg(long, value_delimiter = ',', default_value = "1,64,512")]
    sizes: Vec<u64>,
    /// Keys for each measurement, in millions.
    #[arg(long, default_value_t = 20)]
    keys: u64,
    /// Measurements of each form; the median counts.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Kernels to measure; all that this machine has if not given.
    #[arg(long, value_delimiter = ',')]
    kernels: Vec<Kernel>,
    #[command(flatten)]
    outputs: Outputs,
}

/// Something that takes a batch of keys; what it returns is summed up and checked.
trait Contender {
    fn take(&mut self, keys: &[KeyHash]) -> u64;

    /// Fails if the sum over `keys` keys is not what it must be.
    fn check(&self, keys: u64, sum: u64) -> Result<(), Failure>;
}

/// How far ahead the plain reads ask for lines; 0 leaves it to the CPU's own look-ahead. The limit is the best of them.
const READ_AHEAD: [usize; 5] = [0, 32, 64, 128, 256];

/// The limit: the first word of the line of each key is read and added up.
struct LineReads {
    lines: Rc<LineArray>,
    ahead: usize,
}

/// An array in which the first word of each line is 1.
fn array_of_ones(bytes: u64) -> Result<LineArray, Failure> {
    let mut lines = LineArray::zeroed(bytes / 64)?;
    for line in lines.iter_mut() {
        line.0[0] = 1;
    }
    Ok(lines)
}

impl Contender for LineReads {
    fn take(&mut self, keys: &[KeyHash]) -> u64 {
        let lines = &self.lines[..];
        let count = lines.len() as u64;
        let read = |key: &KeyHash| lines[key.line(count) as usize].0[0];
        if self.ahead == 0 {
            return keys.iter().map(read).sum();
        }
        let (first, rest) = keys.split_at(self.ahead.min(keys.len()));
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

    fn check(&self, keys: u64, sum: u64) -> Result<(), Failure> {
        (sum == keys)
            .then_some(())
            .ok_or_else(|| format!("{keys} reads gave {sum}").into())
    }
}

struct FilterUnderTest<F> {
    filter: F,
    duplicates: Vec<u64>,
    expected_false: Box<dyn Fn(&F) -> f64>,
}

impl<F: Filter> Contender for FilterUnderTest<F> {
    fn take(&mut self, keys: &[KeyHash]) -> u64 {
        self.filter.observe_words(keys, &mut self.duplicates);
        self.duplicates
            .iter()
            .map(|word| u64::from(word.count_ones()))
            .sum()
    }

    fn check(&self, keys: u64, sum: u64) -> Result<(), Failure> {
        let expected = (self.expected_false)(&self.filter);
        let tolerance = 6.0 * expected.sqrt() + expected * 0.01 + 3.0;
        if (sum as f64 - expected).abs() <= tolerance {
            return Ok(());
        }
        Err(
            format!("{sum} duplicates in {keys} distinct keys, {expected:.1} false ones expected")
                .into(),
        )
    }
}

struct Entry {
    form: String,
    kernel: Option<Kernel>,
    contender: Box<dyn Contender>,
    keys: Stream,
    sum: u64,
    observed: u64,
    rates: Vec<f64>,
}

impl Entry {
    fn new(form: &str, kernel: Option<Kernel>, contender: impl Contender + 'static) -> Self {
        Self {
            form: form.to_owned(),
            kernel,
            contender: Box::new(contender),
            keys: Stream::new(StreamKind::Distinct, 0),
            sum: 0,
            observed: 0,
            rates: Vec::new(),
        }
    }

    fn measure(&mut self, batches: u64) {
        let start = thread_seconds();
        for _ in 0..batches {
            self.sum += self.contender.take(self.keys.batch());
        }
        let seconds = thread_seconds() - start;
        let observed = batches * BATCH as u64;
        self.observed += observed;
        self.rates.push(observed as f64 / seconds);
    }
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
        "limit_keys_per_second",
        "ratio_to_limit",
    ]);
    for size in &arguments.sizes {
        measure_size(arguments, *size, &mut table)?;
    }
    table.publish(&arguments.outputs)
}

fn measure_size(arguments: &Arguments, mebibytes: u64, table: &mut Table) -> Result<(), Failure> {
    let bytes = mebibytes << 20;
    let lines = Rc::new(array_of_ones(bytes)?);
    let huge = lines.huge_page_bytes() as f64 / bytes as f64;
    let read = |ahead: usize| {
        let lines = Rc::clone(&lines);
        Entry::new(
            &format!("random line read, {ahead} ahead"),
            None,
            LineReads { lines, ahead },
        )
    };
    let mut entries: Vec<Entry> = READ_AHEAD.into_iter().map(read).collect();
    for kernel in kernels(arguments) {
        for replacement in Replacement::ALL {
            let spec = FingerprintSpec::new(bytes)
                .slot_width(SlotWidth::Bits16)
                .replacement(replacement)
                .kernel(kernel);
            let filter = FilterUnderTest {
                filter: spec.build()?,
                duplicates: vec![0; BATCH / 64],
                expected_false: Box::new(|filter| filter.report().expected_false_duplicates),
            };
            let form = format!("fingerprint 32 x 16, {replacement}");
            entries.push(Entry::new(&form, Some(kernel), filter));
        }
    }
    let batches = (arguments.keys * 1_000_000).div_ceil(BATCH as u64);
    // The first round touches every page and fills the lines; it does not count.
    for round in 0..=arguments.rounds {
        for entry in &mut entries {
            entry.measure(if round == 0 {
                batches.max(bytes / 64 / 256)
            } else {
                batches
            });
            if round == 0 {
                entry.rates.clear();
            }
        }
    }
    let reads = entries.iter().filter(|entry| entry.kernel.is_none());
    let limit = reads
        .map(|entry| median(entry.rates.clone()))
        .fold(0.0, f64::max);
    for entry in entries {
        entry.contender.check(entry.observed, entry.sum)?;
        let rate = median(entry.rates);
        table.push(vec![
            if entry.kernel.is_none() {
                "limit"
            } else {
                "filter"
            }
            .into(),
            entry.form.into(),
            entry.kernel.map(Kernel::name).into(),
            1u64.into(),
            mebibytes.into(),
            huge.into(),
            rate.into(),
            limit.into(),
            (rate / limit).into(),
        ]);
    }
    Ok(())
}

fn kernels(arguments: &Arguments) -> Vec<Kernel> {
    if arguments.kernels.is_empty() {
        let all = Kernel::ALL.into_iter();
        return all.filter(|kernel| kernel.is_available()).collect();
    }
    arguments.kernels.clone()
}
