//! A file of JSON lines: events with a nested object, an array and text with escapes.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// Writes `count` lines, of which a fifth repeat the key of an earlier line.
///
/// # Errors
/// If the file cannot be written.
pub(super) fn write(path: &Path, count: u64) -> std::io::Result<()> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
    let mut file = BufWriter::new(File::create(path)?);
    for line in 0..count {
        let repeats = line % 5 == 4;
        let id = if repeats {
            random.next_u64() % line
        } else {
            line
        };
        let (amount, agent) = (random.next_u64() % 100_000, random.next_u64() % 1000);
        writeln!(
            file,
            "{{\"type\":\"call\",\"id\":{id},\"user\":{{\"name\":\"user-{}\",\"groups\":[1,{agent},30]}},\
             \"at\":\"2026-01-01T12:00:00.{:06}Z\",\"amount\":{}.{:02},\"agent\":\"client \\\"{agent}\\\" \\u00e9\",\
             \"ok\":true,\"note\":null,\"path\":[\"eu\",\"west\",\"cell {}\"]}}",
            id % 100_003,
            line % 1_000_000,
            amount / 100,
            amount % 100,
            id % 977,
        )?;
    }
    file.flush()
}
