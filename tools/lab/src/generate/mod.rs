//! `echoless gen`: reproducible streams of generated records with a known fraction of duplicates.
//!
//! A record is a function of the seed and of the position at which it first appears. A duplicate is
//! generated again instead of being stored, so streams of any length take fixed memory.

mod cdr;
mod cdr_ber;
mod line;
mod lines;
mod options;
mod packets;
mod repeats;
mod zipf;

use std::io::Write;
use std::process::ExitCode;

use clap::ValueEnum;
use echoless::KeyHasher;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

pub use self::options::GenArgs;

use self::cdr::CdrFormat;
use self::packets::CaptureConfig;
use self::repeats::Repeats;
use echoless_records::failure::Failure;
use echoless_records::files::{Target, Targets};
use echoless_records::progress::{Counted, ProgressLine, are_shown};

/// The kinds of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// Call records: CSV lines of about 100 bytes, or BER
    Cdr,
    /// 64-bit keys, 16 hexadecimal digits a line
    Keys,
    /// Lines of random printable text
    Lines,
    /// A capture of UDP packets (pcap or pcapng), whose duplicates are copies 100 packets later
    /// unless --gap or --distribution is given
    Packets,
}

/// A stream, and where it is written.
#[derive(Debug)]
pub(crate) struct GenConfig {
    pub(crate) kind: Kind,
    pub(crate) count: u64,
    pub(crate) seed: u64,
    pub(crate) repeats: Repeats,
    pub(crate) cdr_format: CdrFormat,
    pub(crate) record_bytes: usize,
    pub(crate) header: bool,
    pub(crate) capture: CaptureConfig,
    pub(crate) output: Target,
    pub(crate) quiet: bool,
}

/// The number of bytes per system call.
const BATCH_BYTES: usize = 256 << 10;

/// Generates the record that first appears at a position.
trait Record {
    /// Appends the record to `out`.
    fn append(&self, position: u64, out: &mut Vec<u8>);

    /// Appends the record at `position`, which repeats the one at `first` unless they are equal.
    fn append_repeat(&self, _position: u64, first: u64, out: &mut Vec<u8>) {
        self.append(first, out);
    }

    /// The header of a stream of such records.
    fn header(&self) -> &[u8] {
        b""
    }
}

/// Numbers of the independent random streams that one position has.
mod stream {
    pub(super) const DUPLICATE: u64 = 1;
    pub(super) const SOURCE: u64 = 2;
    pub(super) const CONTENT: u64 = 3;
}

/// A random number generator that depends only on the seed, the position and the stream.
fn random(hasher: &KeyHasher, position: u64, stream: u64) -> Xoshiro256PlusPlus {
    Xoshiro256PlusPlus::seed_from_u64(hasher.hash_u64(position).remix(stream))
}

/// Maps 64 random bits to a number below `bound`: the high word of their product.
fn below(bits: u64, bound: u64) -> u64 {
    ((u128::from(bits) * u128::from(bound)) >> 64) as u64
}

/// Runs `echoless gen`.
pub fn run(args: GenArgs) -> Result<ExitCode, Failure> {
    let config = &GenConfig::try_from(args)?;
    match config.kind {
        Kind::Cdr => write(config, &cdr::Cdr::new(config.seed, config.cdr_format)),
        Kind::Keys => write(config, &lines::Keys::new(config.seed)),
        Kind::Lines => write(
            config,
            &lines::Lines::new(config.seed, config.record_bytes, config.count)?,
        ),
        Kind::Packets => write(config, &packets::Packets::new(config.seed, config.capture)),
    }
}

fn write(config: &GenConfig, record: &impl Record) -> Result<ExitCode, Failure> {
    let mut targets = Targets::new(&[]);
    let mut output = targets.open(&config.output)?;
    output.truncate()?;
    let mut batch = Vec::with_capacity(BATCH_BYTES + (BATCH_BYTES >> 2));
    if config.header {
        batch.extend_from_slice(record.header());
    }
    let mut positions = 0..config.count;
    let shows_progress = !config.quiet && !are_shown(output.is_stdout);
    let progress = ProgressLine::new(Counted::Records, Some(config.count), shows_progress);
    let failed = || Failure::writing(&output.name, output.is_stdout);
    loop {
        let before = positions.start;
        for position in positions.by_ref() {
            let first = config.repeats.first_position(position);
            record.append_repeat(position, first, &mut batch);
            if batch.len() >= BATCH_BYTES {
                break;
            }
        }
        if batch.is_empty() {
            output.file.close().map_err(failed())?;
            targets.keep();
            return Ok(ExitCode::SUCCESS);
        }
        output.file.write_all(&batch).map_err(failed())?;
        batch.clear();
        progress.add(positions.start - before);
    }
}
