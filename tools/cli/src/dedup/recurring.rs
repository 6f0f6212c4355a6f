//! Dates without a year, and times of day: from positions in a year or day to times.

use crate::config::WindowConfig;
use crate::records::chunk::{Chunk, NO_TIME};
use crate::records::fault::{Fate, Fault, Missing, Problem};
use crate::time::recurring::Unroller;

/// Replaces the positions of the next chunk of the stream by times, and treats the records whose
/// position has none as those without a time.
pub(super) fn place_positions(unroller: &mut Unroller, window: &WindowConfig, chunk: &mut Chunk) {
    let faults = window.faults();
    let (mut passed, mut rejected) = (Vec::new(), Vec::new());
    for hash in 0..chunk.keys.times.len() {
        let position = chunk.keys.times[hash];
        if position == NO_TIME {
            continue;
        }
        let placed = unroller.place(position);
        // A tick is at most `i64::MAX` long.
        let tick = placed.map(|time| time.div_euclid(window.resolution as i64));
        chunk.keys.times[hash] = tick.unwrap_or(NO_TIME);
        let Err(unplaced) = placed else {
            continue;
        };
        if faults.missing == Missing::Empty {
            continue;
        }
        match faults.fate(Problem::Unplaced(unplaced)) {
            Fate::Passed | Fate::Comment => passed.push(hash),
            Fate::Rejected(problem) => rejected.push(Fault {
                record: chunk.record_of(hash),
                problem,
            }),
            Fate::EndsRun(problem) => {
                chunk.fail_at(hash, problem);
                break;
            }
        }
    }
    // All of them have one fate, so neither moves the indices of the other.
    if !rejected.is_empty() {
        chunk.reject_records(&rejected);
    }
    if !passed.is_empty() {
        chunk.remove_hashes(&passed);
    }
    chunk.keys.find_steps();
}
