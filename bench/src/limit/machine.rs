//! What the machine does with lines without a filter: random reads, random updates and sequential
//! reads.

use echoless::KeyHash;
use echoless::memory::{CacheLevel, LINE_BYTES, Line, LineArray, huge_page_bytes, prefetch};

use super::arguments::Arguments;
use super::rate::rate;
use crate::clock::median;
use crate::failure::Failure;
use crate::streams::{Stream, StreamKind};
use crate::table::{Cell, Table};

/// How many keys ahead a loop prefetches, and into which cache. With 0, only the CPU prefetches.
/// The limit is the rate of the best of them.
pub(super) const LOOK_AHEAD: [(usize, CacheLevel); 11] = [
    (0, CacheLevel::L1),
    (32, CacheLevel::L1),
    (64, CacheLevel::L1),
    (128, CacheLevel::L1),
    (192, CacheLevel::L1),
    (256, CacheLevel::L1),
    (32, CacheLevel::L2),
    (64, CacheLevel::L2),
    (128, CacheLevel::L2),
    (192, CacheLevel::L2),
    (256, CacheLevel::L2),
];

/// Keys or lines per second.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rates {
    /// Without prefetching in software.
    pub(super) plain: f64,
    /// With the best of [`LOOK_AHEAD`].
    pub(super) best: f64,
}

impl Rates {
    /// The medians of several measurements at each of [`LOOK_AHEAD`].
    pub(super) fn of(measured: Vec<Vec<f64>>) -> Self {
        let medians: Vec<f64> = measured.into_iter().map(median).collect();
        Self {
            plain: medians[0],
            best: medians.into_iter().fold(0.0, f64::max),
        }
    }
}

/// Adds rows for an array of this size: on huge pages if the system provides them, and on small
/// ones.
pub(super) fn measure(
    arguments: &Arguments,
    mebibytes: u64,
    table: &mut Table,
) -> Result<(), Failure> {
    let count = (mebibytes << 20) / LINE_BYTES;
    let mut huge = LineArray::zeroed(count)?;
    huge.fill(Line([1; 8]));
    measure_lines(arguments, mebibytes, &mut huge, table)?;
    drop(huge);
    // The allocator does not request huge pages. It gets small ones if the system provides huge
    // ones on request only.
    let mut small = Vec::new();
    small.try_reserve_exact(usize::try_from(count)?)?;
    small.resize(usize::try_from(count)?, Line([1; 8]));
    measure_lines(arguments, mebibytes, &mut small, table)
}

fn measure_lines(
    arguments: &Arguments,
    mebibytes: u64,
    lines: &mut [Line],
    table: &mut Table,
) -> Result<(), Failure> {
    let keys = arguments.keys * 1_000_000;
    let mut stream = Stream::new(StreamKind::Distinct, 1);
    let mut reads = vec![Vec::new(); LOOK_AHEAD.len()];
    let mut updates = reads.clone();
    let mut sweeps = Vec::new();
    for _ in 0..arguments.rounds {
        for (index, ahead) in LOOK_AHEAD.into_iter().enumerate() {
            let (mut read, mut seen) = (0, 0);
            reads[index].push(rate(&mut stream, keys, |keys| {
                seen += read_lines(lines, keys, ahead);
                read += keys.len() as u64;
            }));
            check_reads(seen, read)?;
            updates[index].push(rate(&mut stream, keys, |keys| {
                update_lines(lines, keys, ahead);
            }));
        }
        sweeps.push(sweep_rate(lines, keys)?);
    }
    let reads = Rates::of(reads);
    let huge = huge_page_share(size_of_val(lines) as u64);
    let mut row = |variant: &str, rates: Rates| {
        table.push(vec![
            "machine".into(),
            variant.into(),
            "".into(),
            1u64.into(),
            mebibytes.into(),
            huge.into(),
            rates.best.into(),
            reads.plain.into(),
            reads.best.into(),
            (rates.best / reads.plain).into(),
            (rates.best / reads.best).into(),
            Cell::Nothing,
            Cell::Nothing,
            Cell::Nothing,
        ]);
    };
    row("random line reads", reads);
    row("random line updates", Rates::of(updates));
    let sweeps = median(sweeps);
    let sweeps = Rates {
        plain: sweeps,
        best: sweeps,
    };
    row("lines read one after the other", sweeps);
    Ok(())
}

/// The part of the measured bytes that is on huge pages, as far as the process shows it.
pub(super) fn huge_page_share(bytes: u64) -> f64 {
    huge_page_bytes().map_or(0.0, |huge| huge.min(bytes) as f64 / bytes as f64)
}

/// Reads the line of each key while the lines of later keys are prefetched. Returns the number of
/// lines that are not empty.
pub(super) fn read_lines(
    lines: &[Line],
    keys: &[KeyHash],
    (ahead, into): (usize, CacheLevel),
) -> u64 {
    // A loop of its own for each cache: the limit must not pay for the choice.
    match into {
        CacheLevel::L1 => read_into::<true>(lines, keys, ahead),
        CacheLevel::L2 => read_into::<false>(lines, keys, ahead),
    }
}

/// The cache of a loop that is compiled for it.
const fn cache<const L1: bool>() -> CacheLevel {
    if L1 { CacheLevel::L1 } else { CacheLevel::L2 }
}

fn read_into<const L1: bool>(lines: &[Line], keys: &[KeyHash], ahead: usize) -> u64 {
    let count = lines.len() as u64;
    let read = |key: &KeyHash| u64::from(lines[key.line(count) as usize].0[0] != 0);
    if ahead == 0 {
        return keys.iter().map(read).sum();
    }
    let (first, rest) = keys.split_at(ahead.min(keys.len()));
    for key in first {
        prefetch(lines, key.line(count) as usize, cache::<L1>());
    }
    let mut sum = 0;
    for (key, next) in keys.iter().zip(rest) {
        prefetch(lines, next.line(count) as usize, cache::<L1>());
        sum += read(key);
    }
    sum + keys[rest.len()..].iter().map(read).sum::<u64>()
}

/// Changes a word of the line of each key while the lines of later keys are prefetched.
fn update_lines(lines: &mut [Line], keys: &[KeyHash], (ahead, into): (usize, CacheLevel)) {
    match into {
        CacheLevel::L1 => update_into::<true>(lines, keys, ahead),
        CacheLevel::L2 => update_into::<false>(lines, keys, ahead),
    }
}

fn update_into<const L1: bool>(lines: &mut [Line], keys: &[KeyHash], ahead: usize) {
    let count = lines.len() as u64;
    for key in keys.iter().take(ahead) {
        prefetch(lines, key.line(count) as usize, cache::<L1>());
    }
    for (index, key) in keys.iter().enumerate() {
        if ahead > 0
            && let Some(next) = keys.get(index + ahead)
        {
            prefetch(lines, next.line(count) as usize, cache::<L1>());
        }
        let word = &mut lines[key.line(count) as usize].0[1];
        *word = word.wrapping_add(1);
    }
}

/// Lines per second, read in order, in passes over the array until at least `count` are read.
fn sweep_rate(lines: &[Line], count: u64) -> Result<f64, Failure> {
    let start = crate::clock::thread_seconds();
    let (mut read, mut seen) = (0, 0);
    while read < count {
        seen += lines
            .iter()
            .fold(0, |sum: u64, line| sum.wrapping_add(line.0[0]));
        read += lines.len() as u64;
    }
    check_reads(seen, read)?;
    Ok(read as f64 / (crate::clock::thread_seconds() - start))
}

/// Fails if more than a thousandth of the lines read are empty: warm filters have hardly any.
pub(super) fn check_reads(seen: u64, keys: u64) -> Result<(), Failure> {
    if seen * 1000 >= keys * 999 {
        return Ok(());
    }
    Err(format!("{seen} of {keys} lines read are not empty, expected nearly all").into())
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
        let longer = [1023, 1024, 5000].map(|ahead| (ahead, CacheLevel::L2));
        for ahead in LOOK_AHEAD.into_iter().chain(longer) {
            assert_eq!(read_lines(&lines, keys, ahead), (keys.len() - in_17) as u64);
        }
    }

    #[test]
    fn every_look_ahead_updates_every_line_once() {
        let mut stream = Stream::new(StreamKind::Distinct, 1);
        let keys = stream.batch();
        for ahead in LOOK_AHEAD {
            let mut lines = vec![Line::EMPTY; 300];
            update_lines(&mut lines, keys, ahead);
            for (index, line) in lines.iter().enumerate() {
                let hits = keys.iter().filter(|key| key.line(300) == index as u64);
                assert_eq!(line.0, [0, hits.count() as u64, 0, 0, 0, 0, 0, 0]);
            }
        }
    }

    #[test]
    fn empty_lines_are_rejected() {
        assert!(check_reads(999, 1000).is_ok() && check_reads(998, 1000).is_err());
    }
}
