//! What only packets have among the counts of a run: blocks that are no packets, and how packets
//! were read.

use echoless_records::chunk::{Chunk, NO_TIME};
use echoless_records::failure::{self, Failure};

use crate::config::{DedupConfig, PacketConfig};
use crate::dedup::{Fields, Observer, RunCounts, Words};

/// The counts of packets, and a warning of captures that are not in the order of time.
#[derive(Debug)]
pub(crate) struct PacketCounts<'a> {
    config: &'a DedupConfig,
    /// The window of packets beside one of time.
    second: Option<u64>,
    /// Whether a packet with a time was read of the current input.
    has_begun_input: bool,
}

impl<'a> PacketCounts<'a> {
    pub(crate) fn new(config: &'a DedupConfig, packets: &PacketConfig) -> Self {
        Self {
            config,
            second: packets.second,
            has_begun_input: false,
        }
    }
}

impl Observer for PacketCounts<'_> {
    /// Warns of a capture that begins before the clock by more than the window: its files are not
    /// in the order of time.
    fn on_chunk(&mut self, chunk: &mut Chunk, _: &mut RunCounts) -> Result<(), Failure> {
        if chunk.input.is_first {
            self.has_begun_input = false;
        }
        if !chunk.input.is_capture || self.has_begun_input {
            return Ok(());
        }
        let has_time = chunk.keys.times.iter().any(|tick| *tick != NO_TIME);
        if !has_time && chunk.clock.late == 0 {
            return Ok(());
        }
        self.has_begun_input = true;
        if chunk.input.source > 0 && chunk.clock.begins_late && !self.config.run.quiet {
            failure::warn(&format!(
                "{}: begins before packets of the inputs in front of it by more than the window, \
                 so packets pass unjudged: join the files in the order of time first (mergecap)",
                self.config.sources[chunk.input.source].name()
            ));
        }
        Ok(())
    }

    fn stats(&self, counts: &RunCounts, fields: &mut Fields) {
        fields.add("frame_blocks", counts.frame_blocks);
        fields.add_all(&counts.conditions);
        if let Some(second) = self.second {
            fields.add("window_packets", second);
        }
    }

    fn words(&self, counts: &RunCounts, words: &mut Words) {
        words.lines.extend(counts.conditions.words());
    }
}
