//! Threads with a common start, each on its own core, and the time that they take.

use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use echoless::Pinning;
use echoless::assembly::pin_thread;

use crate::clock::process_seconds;
use crate::failure::Failure;

/// The seconds that a measurement took.
pub(super) struct Timing {
    pub(super) wall: f64,
    /// Of all threads of the process.
    pub(super) cpu: f64,
}

impl Timing {
    /// The seconds for each of so many keys.
    pub(super) fn of_a_key(self, keys: u64) -> Self {
        Self {
            wall: self.wall / keys as f64,
            cpu: self.cpu / keys as f64,
        }
    }
}

/// Runs a closure on one thread for each of `inputs`, from a common start, with each thread pinned
/// to its own core if there are enough.
///
/// The time runs from the first start to the last end. The threads read the clock themselves, as
/// the spawning thread may not have a core to do it in time.
pub(super) fn on_threads<T: Send>(
    inputs: Vec<T>,
    run: impl Fn(usize, T) + Sync,
) -> Result<Timing, Failure> {
    let cores = Pinning::Spread.cores(inputs.len())?;
    let barrier = Barrier::new(inputs.len());
    let times: Vec<(Instant, f64, Instant)> = thread::scope(|scope| {
        let start = |(index, (input, core))| {
            let (run, barrier) = (&run, &barrier);
            scope.spawn(move || {
                let pinned = pin_thread(core);
                // Wait before the assertion: if this thread panicked first, the others would block
                // here.
                barrier.wait();
                assert!(pinned, "cannot pin a thread to core {core:?}");
                let (start, cpu) = (Instant::now(), process_seconds());
                run(index, input);
                (start, cpu, Instant::now())
            })
        };
        let threads: Vec<_> = inputs
            .into_iter()
            .zip(cores)
            .enumerate()
            .map(start)
            .collect();
        let ends = threads.into_iter().map(thread::ScopedJoinHandle::join);
        ends.collect::<Result<_, _>>()
            .map_err(|_| "a thread panicked")
    })?;
    let cpu = process_seconds();
    let start = times.iter().map(|(start, _, _)| *start).min();
    let end = times.iter().map(|(_, _, end)| *end).max();
    let (Some(start), Some(end)) = (start, end) else {
        return Err("no thread to measure".into());
    };
    let before = times.iter().map(|(_, cpu, _)| *cpu).fold(cpu, f64::min);
    Ok(Timing {
        wall: (end - start).as_secs_f64(),
        cpu: cpu - before,
    })
}
