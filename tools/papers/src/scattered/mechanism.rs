//! What all scattered filters share: a mechanism becomes a [`Filter`] here, and a row of the
//! catalogue.

use echoless::extend::{BuildScattered, FilterRow, Head, Named};
use echoless::spec::{Facts, Form};
use echoless::{Batch, BuildError, Cells, Filter, KeyHash, RateSum, Report, Tally, Window};

/// How a scattered filter records keys.
pub(crate) trait Mechanism: Send + Sync + 'static {
    /// Tests and records one key; true means duplicate.
    fn observe_key(&mut self, key: KeyHash) -> bool;

    /// Whether the key would be a duplicate now. Changes nothing.
    fn contains(&self, key: KeyHash) -> bool;

    /// Removes all keys; counters, clock and random draws start over.
    fn clear(&mut self);

    /// The memory of the state, in bytes.
    fn memory_bytes(&self) -> u64;

    /// The cells, and the false positive rate where it follows from them. This may read the whole
    /// memory.
    fn fill(&self) -> (Cells, Option<f64>);

    /// How long a key is remembered, in a filter with a clock.
    fn window(&self) -> Option<Window> {
        None
    }

    /// Moves the clock; a tick before it has no effect.
    fn advance(&mut self, _tick: u64) {}

    /// Takes a step of clearing what expired, with a batch of so many keys.
    fn step(&mut self, _keys: usize) {}

    /// The bits of a slot, where the report names them.
    fn slot_bits(&self) -> Option<u32> {
        None
    }
}

/// The filter of a mechanism.
struct Scattered<M>(M);

impl<M: Mechanism> Filter for Scattered<M> {
    fn observe_batch(&mut self, batch: Batch<'_>, duplicates: &mut [u64]) {
        let Self(mechanism) = self;
        if mechanism.window().is_none() {
            return batch.observe_each(duplicates, |key| mechanism.observe_key(key));
        }
        batch.observe_runs(duplicates, |tick, batch, duplicates| {
            if let Some(tick) = tick {
                mechanism.advance(tick);
            }
            mechanism.step(batch.keys().len());
            batch.observe_each(duplicates, |key| mechanism.observe_key(key));
        });
    }

    fn contains(&self, key: KeyHash) -> bool {
        self.0.contains(key)
    }

    fn clear(&mut self) {
        self.0.clear();
    }

    fn memory_bytes(&self) -> u64 {
        self.0.memory_bytes()
    }

    fn tally(&self) -> Tally {
        let (cells, fpr) = self.0.fill();
        let rates = fpr.map(|fpr| {
            let mut rates = RateSum::default();
            rates.push(fpr);
            rates
        });
        Tally {
            cells: Some(cells),
            rates,
            ..Tally::new(self.memory_bytes())
        }
    }

    fn report_on(&self, tally: Tally) -> Report {
        Report {
            slot_bits: self.0.slot_bits(),
            window: self.0.window(),
            ..Report::new(tally)
        }
    }
}

/// The filter of a mechanism that was built, as rows return it.
pub(crate) fn filter(
    built: Result<impl Mechanism, BuildError>,
) -> Result<Box<dyn Filter>, BuildError> {
    Ok(Box::new(Scattered(built?)))
}

/// The row of a filter whose only form is the scattered one.
pub(crate) const fn row(
    head: Head,
    scattered: BuildScattered,
    facts: fn(&Named, Form, u64) -> Facts,
) -> FilterRow {
    FilterRow {
        head,
        default_form: Form::Scattered,
        scattered: Some(scattered),
        lines: None,
        facts,
    }
}
