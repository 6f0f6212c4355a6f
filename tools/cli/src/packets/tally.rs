//! Duplicates by distance, by interfaces and by the fields that differ: what a report on copies
//! counts, for people and for programs.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use echoless_packets::InterfaceId;
use echoless_packets::key::{Field, FieldSet};
use echoless_records::number::grouped;
use serde::Serialize;

use super::distances::{Distance, DistanceStats, Distances};

/// The most pairs of interfaces that are counted apart.
pub(crate) const MOST_PAIRS: usize = 1024;

/// Counts of duplicates.
#[derive(Debug)]
pub(crate) struct CopyTally {
    pub(crate) distances: Distances,
    by_interfaces: BTreeMap<(InterfaceId, InterfaceId), u64>,
    /// Duplicates on further pairs of interfaces.
    other_interfaces: u64,
    /// Duplicates that differ in a field, in the order of [`Field::ALL`].
    by_field: Vec<u64>,
    /// Duplicates that differ in no field that is not compared.
    identical: u64,
}

impl CopyTally {
    pub(crate) fn new() -> Self {
        Self {
            distances: Distances::NONE,
            by_interfaces: BTreeMap::new(),
            other_interfaces: 0,
            by_field: vec![0; Field::ALL.len()],
            identical: 0,
        }
    }

    /// Counts duplicates that are this far from their originals, between these interfaces, if they
    /// are known.
    pub(crate) fn add(
        &mut self,
        distance: Distance,
        interfaces: Option<(InterfaceId, InterfaceId)>,
        differing: FieldSet,
        duplicates: u64,
    ) {
        self.distances.add(distance, duplicates);
        let is_counted = |pair: &(InterfaceId, InterfaceId)| {
            self.by_interfaces.len() < MOST_PAIRS || self.by_interfaces.contains_key(pair)
        };
        match interfaces.filter(is_counted) {
            Some(pair) => *self.by_interfaces.entry(pair).or_default() += duplicates,
            None => self.other_interfaces += duplicates,
        }
        if differing.is_empty() {
            self.identical += duplicates;
        }
        for (field, count) in Field::ALL.iter().zip(&mut self.by_field) {
            *count += u64::from(differing.contains(*field)) * duplicates;
        }
    }

    /// The counts for programs.
    pub(crate) fn stats(&self) -> CopyStats {
        CopyStats {
            distances: self.distances.stats(),
            interfaces: (self.by_interfaces.iter())
                .map(|((from, to), duplicates)| PairCount {
                    original: interface_name(*from),
                    copy: interface_name(*to),
                    duplicates: *duplicates,
                })
                .collect(),
            other_interfaces: self.other_interfaces,
            differing_fields: (Field::ALL.iter().zip(&self.by_field))
                .filter(|(_, duplicates)| **duplicates > 0)
                .map(|(field, duplicates)| FieldCount {
                    field: field.name(),
                    duplicates: *duplicates,
                })
                .collect(),
            identical: self.identical,
        }
    }

    /// The counts for people: one line for each of its parts, without a newline at the end.
    pub(crate) fn lines(&self) -> Vec<String> {
        let pairs = self.by_interfaces.iter();
        let pairs = pairs.map(|((from, to), duplicates)| {
            let name = format!("{} to {}", interface_name(*from), interface_name(*to));
            (name, *duplicates)
        });
        let others = ("others".into(), self.other_interfaces);
        let fields = Field::ALL.iter().zip(&self.by_field);
        let fields = fields.map(|(field, duplicates)| (field.name().into(), *duplicates));
        let identical = ("none".into(), self.identical);
        vec![
            counts_line("distance in packets", self.distances.packet_entries()),
            counts_line("distance in time", self.distances.time_entries()),
            counts_line("interfaces (section.number)", pairs.chain([others])),
            counts_line("differing fields", fields.chain([identical])),
        ]
    }
}

/// An interface as text: its section and its number there, both from 0.
fn interface_name(interface: InterfaceId) -> String {
    format!("{}.{}", interface.section, interface.index)
}

/// A line with the entries that are not zero.
pub(crate) fn counts_line(title: &str, entries: impl IntoIterator<Item = (String, u64)>) -> String {
    let mut line = format!("duplicates by {title}:");
    for (name, duplicates) in entries
        .into_iter()
        .filter(|(_, duplicates)| *duplicates > 0)
    {
        let _ = write!(line, " {name}: {};", grouped(duplicates));
    }
    if line.ends_with(';') {
        line.pop();
    } else {
        line += " none";
    }
    line
}

/// The counts in the JSON of `--stats`.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct CopyStats {
    #[serde(flatten)]
    distances: DistanceStats,
    interfaces: Vec<PairCount>,
    other_interfaces: u64,
    differing_fields: Vec<FieldCount>,
    identical: u64,
}

#[derive(Debug, Clone, Serialize)]
struct PairCount {
    original: String,
    copy: String,
    duplicates: u64,
}

#[derive(Debug, Clone, Serialize)]
struct FieldCount {
    field: &'static str,
    duplicates: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beyond_the_bound_of_pairs_everything_is_still_counted() {
        let mut tally = CopyTally::new();
        let interface = |index| InterfaceId { section: 0, index };
        for index in 0..5000 {
            let pair = (interface(index), interface(index + 1));
            let distance = Distance::new(1, None);
            tally.add(distance, Some(pair), FieldSet::EMPTY, 2);
            assert!(tally.by_interfaces.len() <= MOST_PAIRS);
        }
        assert_eq!(tally.by_interfaces.len(), MOST_PAIRS);
        let by_pair: u64 = tally.by_interfaces.values().sum();
        assert_eq!(by_pair + tally.other_interfaces, 10_000);
        assert_eq!(
            (tally.distances.without_time, tally.identical),
            (10_000, 10_000)
        );
    }
}
