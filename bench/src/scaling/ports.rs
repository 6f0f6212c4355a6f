//! Many ports at one worker, of which one is active: small batches go there and back, one at a
//! time.

use echoless::{Engine, Pinning, Verdicts};

use super::candidates::{check_report, spec};
use super::rows::cost_row;
use super::threads::on_threads;
use crate::clock::median_of;
use crate::failure::Failure;
use crate::streams::{BATCH, Stream, StreamKind};
use crate::table::Table;
use crate::turns::measure_in_turn;

/// The keys of a batch: one message.
const BATCH_KEYS: usize = 64;

/// Keys for each measurement, in units of [`BATCH`].
const BATCHES: u64 = 128;

/// Measures engines with each number of ports, in turn.
///
/// # Errors
/// If an engine cannot be built, or observes other keys than were sent.
pub(super) fn measure(ports: &[usize], rounds: u64, table: &mut Table) -> Result<(), Failure> {
    // The caller has the first core.
    let cores: Option<Vec<usize>> = Pinning::Spread.cores(2)?[1..].iter().copied().collect();
    let mut engines = Vec::new();
    for count in ports {
        let pinning = cores.clone().map_or(Pinning::Unpinned, Pinning::Cores);
        let filter = spec(1).build_partitions(1)?;
        let engine = Engine::builder(filter)
            .ports(*count)
            .pinning(pinning)
            .build()?;
        let stream = Stream::new(StreamKind::Distinct, 0);
        engines.push((*count, engine, stream));
    }
    let keys = BATCHES * BATCH as u64;
    let timings = measure_in_turn(&mut engines, rounds, |(_, (_, ports), stream)| {
        let timing = on_threads(vec![(&mut ports[0], stream)], |_, (port, stream)| {
            let mut verdicts = Verdicts::new();
            for _ in 0..BATCHES {
                for batch in stream.batch().chunks(BATCH_KEYS) {
                    port.observe(batch, &mut verdicts).expect("the worker runs");
                }
            }
        })?;
        Ok(timing.of_a_key(keys))
    })?;
    for ((count, (engine, ports), _), timings) in engines.into_iter().zip(timings) {
        drop(ports);
        check_report(engine.shutdown()?.filters(), (rounds + 1) * keys)?;
        let variant = format!("1 of {count} ports active, batches of {BATCH_KEYS} keys");
        let wall = median_of(&timings, |timing| timing.wall);
        let cpu = median_of(&timings, |timing| timing.cpu);
        table.push(cost_row("engine", variant, "distinct", 2, Some(wall), cpu));
    }
    Ok(())
}
