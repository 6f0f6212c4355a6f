//! Where duplicates come from: how far they are from the packet that they copy, on which interfaces
//! both were captured, and which of the ignored fields differ.
//!
//! The last packet of each key is kept in an [exact table](super::last_seen); a duplicate of a key
//! that has left it is counted as one whose original is unknown.

use echoless_packets::InterfaceId;
use echoless_packets::key::IgnoredFields;
use echoless_records::chunk::Chunk;
use echoless_records::failure::Failure;
use echoless_records::number::grouped;
use serde::Serialize;

use super::distances::Distance;
use super::last_seen::LastSeen;
use super::tally::{CopyStats, CopyTally};
use crate::dedup::{Fields, Observer, RunCounts, Words};

/// What is known about the duplicates so far.
#[derive(Debug)]
pub(crate) struct CopyReport {
    last: LastSeen<Original>,
    /// The number of packets so far that have a verdict: late ones have none.
    packets: u64,
    tally: CopyTally,
    unknown: u64,
}

/// The last packet of a key.
#[derive(Debug, Clone, Copy)]
struct Original {
    number: u64,
    time: Option<i64>,
    interface: InterfaceId,
    ignored: IgnoredFields,
}

impl CopyReport {
    pub(crate) fn new() -> Self {
        Self {
            last: LastSeen::new(),
            packets: 0,
            tally: CopyTally::new(),
            unknown: 0,
        }
    }

    /// Follows the packets of the next chunk of the stream.
    fn observe(&mut self, chunk: &Chunk) {
        let packets = &chunk.keys.packets;
        let packets = packets.blocks.iter().zip(&packets.ignored);
        for (index, (key, (packet, ignored))) in chunk.keys.hashes.iter().zip(packets).enumerate() {
            self.packets += 1;
            let copy = Original {
                number: self.packets,
                time: packet.timestamp,
                interface: packet.interface,
                ignored: *ignored,
            };
            let original = self.last.replace(*key, copy);
            if chunk.verdicts.of_keys.is_duplicate(index) {
                match original {
                    Some(original) => self.count(&original, &copy),
                    None => self.unknown += 1,
                }
            }
        }
    }

    fn count(&mut self, original: &Original, copy: &Original) {
        self.tally.add(
            Distance::between((original.number, original.time), (copy.number, copy.time)),
            Some((original.interface, copy.interface)),
            original.ignored.differing(&copy.ignored),
            1,
        );
    }
}

/// The report in the JSON of `--stats`.
#[derive(Debug, Clone, Serialize)]
struct ReportStats {
    #[serde(flatten)]
    copies: CopyStats,
    unknown: u64,
}

impl Observer for CopyReport {
    fn on_chunk(&mut self, chunk: &mut Chunk, _: &mut RunCounts) -> Result<(), Failure> {
        self.observe(chunk);
        Ok(())
    }

    fn stats(&self, _: &RunCounts, fields: &mut Fields) {
        let (copies, unknown) = (self.tally.stats(), self.unknown);
        fields.add("copies", ReportStats { copies, unknown });
    }

    fn words(&self, _: &RunCounts, words: &mut Words) {
        words.report = self.tally.lines();
        if self.unknown > 0 {
            let unknown = grouped(self.unknown);
            words.report.push(format!(
                "{unknown} duplicates of packets that the report does not remember any more"
            ));
        }
    }
}
