//! The engine: workers own a partition each, and threads pass batches through ports.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use echoless::{
    Engine, FilterSpec, KeyHash, KeyHasher, LineFilter, Partitioned, Report, Verdicts, report_of,
};

use crate::failure::{Code, Failure};
use crate::filter::memory_of;
use crate::keys::{Keys, check_batch, give_back, give_back_verdicts, hash_all};

/// Workers, each with a partition of a filter in lines. Any thread may use them.
#[derive(Debug)]
pub struct Workers {
    engine: Engine<Box<dyn LineFilter>>,
    /// It was shut down, or is now: a new port would have no workers.
    has_ended: AtomicBool,
    pub(crate) spec: FilterSpec,
    pub(crate) hasher: KeyHasher,
    /// The memory of the state, in bytes.
    pub(crate) memory_bytes: u64,
}

impl Workers {
    pub(crate) fn new(
        filter: Partitioned<Box<dyn LineFilter>>,
        spec: FilterSpec,
        hasher: KeyHasher,
    ) -> Result<Arc<Self>, Failure> {
        let memory_bytes = memory_of(filter.filters());
        let (engine, _) = Engine::builder(filter).build()?;
        Ok(Arc::new(Self {
            engine,
            has_ended: AtomicBool::new(false),
            spec,
            hasher,
            memory_bytes,
        }))
    }

    /// Counters and error estimates, while the workers run: each answers between two messages.
    pub(crate) fn report(&self) -> Result<Report, Failure> {
        Ok(self.engine.report()?)
    }

    /// Stops the workers once they have answered what was submitted before.
    pub(crate) fn shutdown(&self) -> Result<Report, Failure> {
        self.has_ended.store(true, Ordering::Relaxed);
        let filter = self.engine.shutdown().map_err(|error| {
            let code = match error.repeated {
                true => Code::Disconnected,
                false => Code::PartitionLost,
            };
            Failure::new(code, error.to_string())
        })?;
        Ok(report_of(filter.filters()))
    }
}

/// The way of one thread to the workers.
#[derive(Debug)]
pub struct Port {
    port: echoless::Port,
    pub(crate) hasher: KeyHasher,
    hashes: Vec<KeyHash>,
    verdicts: Verdicts,
    /// `verdicts` are those of the oldest batch, which is not drained yet.
    is_answered: bool,
}

impl Port {
    pub(crate) fn new(workers: &Workers) -> Result<Self, Failure> {
        // Relaxed: a port that is opened at the same time fails with its first batch.
        if workers.has_ended.load(Ordering::Relaxed) {
            let text = "the engine was shut down: expected one that runs";
            return Err(Failure::new(Code::Disconnected, text));
        }
        Ok(Self {
            port: workers.engine.attach()?,
            hasher: workers.hasher.clone(),
            hashes: Vec::new(),
            verdicts: Verdicts::new(),
            is_answered: false,
        })
    }

    /// Submits a batch; waits if the workers are behind. All keys have the last of their ticks.
    pub(crate) fn submit(&mut self, keys: &dyn Keys, ticks: Option<&[u64]>) -> Result<(), Failure> {
        check_batch(keys.len())?;
        let hashes = hash_all(keys, &self.hasher, &mut self.hashes);
        let submitted = match ticks.and_then(<[u64]>::last) {
            Some(tick) => self.port.submit_at(*tick, hashes),
            None => self.port.submit(hashes),
        };
        give_back(&mut self.hashes);
        Ok(submitted?)
    }

    /// Waits for the verdicts of the oldest batch in flight: the number of its keys, and that of
    /// the duplicates.
    pub(crate) fn drain(&mut self, duplicates: &mut [u64]) -> Result<(usize, u64), Failure> {
        // What did not fit is still there.
        if !self.is_answered {
            self.port.drain(&mut self.verdicts)?;
            self.is_answered = true;
        }
        let words = self.verdicts.words();
        let Some(into) = duplicates.get_mut(..words.len()) else {
            let allowed = format!("{} words or more", words.len());
            return Err(Failure::argument("capacity", duplicates.len(), allowed));
        };
        into.copy_from_slice(words);
        let counts = (self.verdicts.len(), self.verdicts.count_duplicates());
        give_back_verdicts(&mut self.verdicts);
        self.is_answered = false;
        Ok(counts)
    }

    /// Waits until a drain would not.
    pub(crate) fn wait(&mut self, timeout: Duration) -> Result<(), Failure> {
        let end = Instant::now().checked_add(timeout);
        // Of a batch, each partition has an answer, and the port waits for one at a time.
        while !self.is_answered && self.port.in_flight() > 0 {
            match self.port.poll(&mut self.verdicts) {
                Ok(is_answered) => self.is_answered = is_answered,
                // A drain returns it at once.
                Err(_) => break,
            }
            if !self.is_answered {
                let rest = end.map_or(Duration::MAX, |end| end - Instant::now());
                self.port.wait(rest)?;
            }
        }
        Ok(())
    }
}
