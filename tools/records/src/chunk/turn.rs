//! What a state needs of the filter behind a chunk.

use echoless::filters::lines::Progress;
use echoless::{Filter, LineFilter};
use echoless_durable::{CopiedBlock, WantedBlock};

/// The filter behind a chunk, in a run with a state.
#[derive(Debug, Default)]
pub struct ChunkTurn {
    /// The lines that the state asks for, until there is a copy of them.
    pub wanted: Option<WantedBlock>,
    /// The lines, copied.
    pub copied: Option<CopiedBlock>,
    /// The counts and the clock.
    pub progress: Progress,
}

/// A partition of the filter of a run, which tells a state what it holds, if the run has one.
pub trait RunPart: Filter {
    /// Whether the run has a state.
    const HAS_STATE: bool;

    /// Adds to `turn` what the partition of this number holds, in the turn of a chunk behind its
    /// keys.
    fn note(&self, turn: &mut ChunkTurn, partition: usize);
}

/// The filter of a run without a state.
impl RunPart for Box<dyn Filter> {
    const HAS_STATE: bool = false;

    fn note(&self, _: &mut ChunkTurn, _: usize) {}
}

/// The filter of a run with a state.
impl RunPart for Box<dyn LineFilter> {
    const HAS_STATE: bool = true;

    fn note(&self, turn: &mut ChunkTurn, partition: usize) {
        let own = self.progress();
        turn.progress.observed += own.observed;
        turn.progress.fresh += own.fresh;
        turn.progress.evictions += own.evictions;
        turn.progress.tick = turn.progress.tick.max(own.tick);
        if let Some(wanted) = turn.wanted.take_if(|wanted| wanted.partition == partition) {
            turn.copied = Some(wanted.copy(&**self));
        }
    }
}
