//! Drops duplicate call records across restarts: the filter is saved when the program ends, and the
//! next run restores it and goes on.
//!
//! Each run passes a day of call records to the filter. The switches send some records of the day
//! before once more; without its state the second run would pass them again.
//!
//! ```sh
//! cargo run --release -p echoless-durable --example restart
//! ```

use std::error::Error;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::Path;
use std::process;

use echoless::state::StateReader;
use echoless::{FilterSpec, KeyHash, KeyHasher, LineFilter, Verdicts};
use echoless_durable::replace_file;

const RECORDS: u64 = 10_000;
/// The records of the day before that are sent once more.
const LATE: u64 = 500;

/// The saved filter, or an empty one in the first run.
fn start(
    path: &Path,
    spec: &FilterSpec,
    hasher: &KeyHasher,
) -> Result<Box<dyn LineFilter>, Box<dyn Error>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(spec.build_lines()?),
        Err(error) => return Err(error.into()),
    };
    let saved = StateReader::open(file)?;
    // With other memory or another seed, no saved key would be found: better an error than silence.
    saved.check(spec, hasher)?;
    Ok(saved.restore()?.filter)
}

/// Saves the filter. A crash leaves the old or the new state.
fn stop(
    path: &Path,
    spec: &FilterSpec,
    hasher: &KeyHasher,
    filter: Box<dyn LineFilter>,
) -> Result<(), Box<dyn Error>> {
    replace_file(path, |file| spec.save(&mut [filter], hasher, b"", file))?;
    Ok(())
}

/// One run of the program: returns how many records of the day were fresh.
fn run(path: &Path, day: u64) -> Result<usize, Box<dyn Error>> {
    let spec: FilterSpec = "fingerprint:fpr=1e-8,memory=4MiB".parse()?;
    let hasher = KeyHasher::seeded(0);
    let mut filter = start(path, &spec, &hasher)?;
    let calls = (day * RECORDS).saturating_sub(LATE)..(day + 1) * RECORDS;
    let keys: Vec<KeyHash> = calls
        .map(|call| hasher.hash(format!("+4930{:06},{}", call % 9_973, 1_700_000_000 + call)))
        .collect();
    let mut verdicts = Verdicts::new();
    filter.observe(&keys, &mut verdicts);
    stop(path, &spec, &hasher, filter)?;
    Ok(verdicts.fresh().count())
}

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::temp_dir().join(format!("echoless-restart-{}.state", process::id()));
    // The file of a killed run with the same process id.
    let _ = fs::remove_file(&path);
    for day in 0..3 {
        let fresh = run(&path, day)?;
        println!("day {day}: {fresh} records are fresh");
        assert_eq!(fresh as u64, RECORDS, "the late ones are duplicates");
    }
    fs::remove_file(path)?;
    Ok(())
}
