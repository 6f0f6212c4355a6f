//! How many packets could not be compared as requested.

use std::fmt::Write as _;
use std::ops::AddAssign;

use echoless_packets::key::Conditions;
use serde::Serialize;

use crate::number::grouped;

/// Packets by what the reader of keys met. A packet may be counted more than once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(crate) struct ConditionCounts {
    /// Packets without the layer that the comparison begins at.
    compared_whole: u64,
    /// Packets of which the capture, or something before it, cut a part.
    truncated: u64,
    /// Packets with a header that contradicts itself or the lengths around it.
    malformed: u64,
    /// Packets with fewer bytes than `--snap-safe` compares.
    short: u64,
}

impl ConditionCounts {
    /// Counts a packet.
    #[inline]
    pub(crate) fn count(&mut self, conditions: Conditions) {
        self.compared_whole += u64::from(conditions.whole);
        self.truncated += u64::from(conditions.truncated);
        self.malformed += u64::from(conditions.malformed);
        self.short += u64::from(conditions.short);
    }

    /// The counts that are not zero, in words; `None` if all are.
    pub(crate) fn words(&self) -> Option<String> {
        let mut text = String::new();
        for (count, what) in [
            (self.compared_whole, "without the layer of --from"),
            (self.truncated, "truncated"),
            (self.malformed, "malformed"),
            (self.short, "shorter than --snap-safe"),
        ] {
            if count > 0 {
                let comma = if text.is_empty() { "" } else { ", " };
                let _ = write!(text, "{comma}{} {what}", grouped(count));
            }
        }
        (!text.is_empty()).then(|| format!("packets that were not compared as usual: {text}"))
    }
}

impl AddAssign for ConditionCounts {
    fn add_assign(&mut self, other: Self) {
        self.compared_whole += other.compared_whole;
        self.truncated += other.truncated;
        self.malformed += other.malformed;
        self.short += other.short;
    }
}
