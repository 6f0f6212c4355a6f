//! The audit of a run: estimates of its errors, with and without a window, in the order of the
//! stream.

use echoless_audit::{Audit, ErrorCounts, Moment, SavedAudit as _, WindowAudit};
use echoless_records::chunk::Chunk;
use echoless_stream::Span;

use crate::config::{Content, DedupConfig};
use crate::packets::filter::numbered_tick;

/// The estimates of a run. It observes the verdicts in the order of the stream, so its estimates do
/// not depend on the number of threads.
#[derive(Debug)]
pub(super) enum RunAudit {
    Unlimited(Box<Audit>),
    Windowed {
        audit: Box<WindowAudit>,
        /// The keys of a tick of a window of keys.
        keys_per_tick: u64,
        /// The number of keys so far.
        keys: u64,
        /// The most keys that the window can hold, if it ends after a number of records.
        most_in_window: u64,
    },
}

impl RunAudit {
    pub(super) fn new(run: &DedupConfig) -> Self {
        let (Some(config), Some(window)) = (&run.window, run.filter.facts().window) else {
            return Self::Unlimited(Box::default());
        };
        let mut most_in_window = match config.span {
            Span::Time(_) => u64::MAX,
            Span::Records(records) => records,
        };
        let (refresh, second, keys_per_tick) = match &run.content {
            Content::Records(_) => (run.filter.facts().renews_keys, None, 1),
            // The filters of two windows always renew their keys.
            Content::Packets(packets) => {
                let second = packets.second_window();
                most_in_window = most_in_window.min(packets.second.unwrap_or(u64::MAX));
                (config.refresh, second, packets.windows.packets_per_tick())
            }
        };
        let mut audit = WindowAudit::new(window, refresh);
        if let Some(second) = second {
            audit = audit.also_within(second);
        }
        if let Some(age) = run.filter.miss_age() {
            audit = audit.with_miss_age(age);
        }
        Self::Windowed {
            audit: Box::new(audit),
            keys_per_tick,
            keys: 0,
            most_in_window,
        }
    }

    /// What was found and sampled, as bytes.
    pub(super) fn save(&self) -> Vec<u8> {
        match self {
            Self::Unlimited(audit) => audit.save(),
            Self::Windowed { audit, keys, .. } => {
                let mut bytes = keys.to_le_bytes().to_vec();
                bytes.extend(audit.save());
                bytes
            }
        }
    }

    /// This audit, of a stream that has not started, with what was [saved](Self::save).
    pub(super) fn load(mut self, bytes: &[u8]) -> Option<Self> {
        match &mut self {
            Self::Unlimited(audit) => **audit = Audit::load(bytes)?,
            Self::Windowed { audit, keys, .. } => {
                let (number, saved) = bytes.split_first_chunk()?;
                *keys = u64::from_le_bytes(*number);
                **audit = WindowAudit::load(saved)?;
            }
        }
        Some(self)
    }

    /// Checks the verdicts on a chunk.
    pub(super) fn observe(&mut self, chunk: &Chunk) {
        match self {
            // Keys that other filters contain may not have been in the stream before.
            Self::Unlimited(audit) => {
                let (keys, verdicts) = chunk.judged();
                audit.observe(keys, verdicts);
            }
            Self::Windowed {
                audit,
                keys_per_tick,
                keys: observed,
                ..
            } => {
                let (before, ticks) = (*observed, &chunk.clock.ticks);
                audit.observe_batch(&chunk.keys.hashes, &chunk.verdicts.of_keys, |index| {
                    let number = numbered_tick(before + index as u64, *keys_per_tick);
                    // A filter that counts its keys gets no ticks.
                    let tick = ticks.get(index).copied().unwrap_or(number);
                    Moment { tick, number }
                });
                *observed += chunk.keys.hashes.len() as u64;
            }
        }
    }

    /// The errors found so far.
    pub(super) fn counts(&self) -> ErrorCounts {
        match self {
            Self::Unlimited(audit) => audit.counts(),
            Self::Windowed { audit, .. } => audit.counts(),
        }
    }

    /// The shortest time, in ticks, after which the filter began to miss duplicates; `None` if it
    /// did not within a window, or has none.
    pub(super) fn miss_age_ticks(&self) -> Option<u64> {
        match self {
            Self::Unlimited(_) => None,
            Self::Windowed { audit, .. } => audit.miss_age_ticks(),
        }
    }

    /// The estimated number of keys that an exact filter would have remembered in the busiest
    /// window; `None` without a window.
    pub(super) fn busiest_window(&self) -> Option<u64> {
        match self {
            Self::Unlimited(_) => None,
            // An estimate from a sample may exceed what is possible.
            Self::Windowed {
                audit,
                keys,
                most_in_window,
                ..
            } => Some(audit.busiest_window_keys().min(*keys).min(*most_in_window)),
        }
    }
}
