//! `echoless gen`: reproducible streams of made-up records with a known share of duplicates.
//!
//! A record is a function of the seed and of the position at which it first appears, so a duplicate is made again instead of being
//! remembered: streams of any length take fixed memory.

mod cdr;
mod keys;
mod line;
mod lines;
pub(crate) mod repeats;
mod zipf;

use std::io::Write;
use std::process::ExitCode;

use clap::ValueEnum;
use echoless::KeyHasher;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use self::repeats::Repeats;
use crate::failure::Failure;
use crate::files::{Target, Targets};

/// The kinds of made-up records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// Call records: CSV lines of about 100 bytes
    Cdr,
    /// 64-bit keys, 16 hexadecimal digits a line
    Keys,
    /// Lines of random printable text
    Lines,
}

/// A run of `echoless gen`.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) kind: Kind,
    pub(crate) count: u64,
    pub(crate) seed: u64,
    pub(crate) repeats: Repeats,
    pub(crate) record_bytes: usize,
    pub(crate) header: bool,
    pub(crate) output: Target,
}

/// How many bytes go into one system call.
const BATCH_BYTES: usize = 256 << 10;

/// Makes the record that first appears at a position.
trait Record {
    /// Appends it to `out`.
    fn append(&self, position: u64, out: &mut Vec<u8>);

    /// The header of a stream of such records.
    fn header(&self) -> &'static [u8] {
        b""
    }
}

/// The independent uses of the hash of a position.
mod stream {
    pub(super) const DUPLICATE: u64 = 1;
    pub(super) const SOURCE: u64 = 2;
    pub(super) const CONTENT: u64 = 3;
}

/// A generator of random numbers that depends on the seed, the position and the use only.
fn random(hasher: &KeyHasher, position: u64, stream: u64) -> Xoshiro256PlusPlus {
    Xoshiro256PlusPlus::seed_from_u64(hasher.hash_u64(position).remix(stream))
}

/// A number below `bound`, from 64 random bits.
fn below(bits: u64, bound: u64) -> u64 {
    ((u128::from(bits) * u128::from(bound)) >> 64) as u64
}

/// Runs `echoless gen`.
pub(crate) fn run(job: &Job) -> Result<ExitCode, Failure> {
    match job.kind {
        Kind::Cdr => write(job, &cdr::Cdr::new(job.seed)),
        Kind::Keys => write(job, &keys::Keys::new(job.seed)),
        Kind::Lines => write(
            job,
            &lines::Lines::new(job.seed, job.record_bytes, job.count)?,
        ),
    }
}

fn write(job: &Job, record: &impl Record) -> Result<ExitCode, Failure> {
    let mut targets = Targets::new(&[]);
    let mut output = targets.open(&job.output)?;
    output.empty()?;
    let mut batch = Vec::with_capacity(BATCH_BYTES + (BATCH_BYTES >> 2));
    if job.header {
        batch.extend_from_slice(record.header());
    }
    let mut positions = 0..job.count;
    loop {
        for position in positions.by_ref() {
            record.append(job.repeats.first_position(position), &mut batch);
            if batch.len() >= BATCH_BYTES {
                break;
            }
        }
        if batch.is_empty() {
            return Ok(ExitCode::SUCCESS);
        }
        output
            .file
            .write_all(&batch)
            .map_err(Failure::writing(&output.name, output.is_stdout))?;
        batch.clear();
    }
}
