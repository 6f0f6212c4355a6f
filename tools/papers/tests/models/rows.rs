//! Rows of fingerprints: vectors of vectors.

use echoless::KeyHash;
use proptest::prelude::*;

use crate::harness::{Draws, Model, agree, position, streams};

fn nonzero_fingerprint(key: KeyHash, bits: u32) -> u32 {
    let candidates = (1..).map(|stream| (key.remix(stream) >> (64 - bits)) as u32);
    candidates
        .into_iter()
        .find(|candidate| *candidate != 0)
        .expect("endless")
}

/// The number of bytes of the table that decodes semi-sorted rows: a word for each value of each
/// slot.
fn rank_table(slots: usize, bits: u32) -> usize {
    8 * slots * (1 << bits)
}

/// The number of bits that number all sorted rows.
fn sorted_row_bits(slots: usize, bits: u32) -> usize {
    // The number of rows of one slot, of two and so on, each from the one before.
    let values = 1_u64 << bits;
    let rows = (0..slots as u64).fold(1, |rows, slot| rows * (values + slot) / (slot + 1));
    rows.next_power_of_two().ilog2() as usize
}

/// Shapes of rows that can be semi-sorted: slots, and bits of a slot.
const SORTED: [(usize, u32); 7] = [(1, 5), (2, 3), (4, 4), (8, 2), (3, 9), (16, 2), (1, 12)];

/// Each row holds its fingerprints only, without empty slots.
struct Rows {
    name: &'static str,
    rows: Vec<Vec<u32>>,
    slots: usize,
    fingerprint: Box<dyn Fn(KeyHash) -> u32>,
    sorted: bool,
    draws: Draws,
}

impl Rows {
    fn insert(&mut self, row: usize, fingerprint: u32) {
        let row = &mut self.rows[row];
        if matches!(self.name, "qqht" | "qqhtd" | "rowlru") {
            row.insert(0, fingerprint);
            row.truncate(self.slots);
        } else if row.len() < self.slots {
            row.push(fingerprint);
        } else {
            if self.sorted {
                row.sort_unstable();
            }
            let victim = self.draws.below(self.slots);
            row[victim] = fingerprint;
        }
    }
}

impl Model for Rows {
    fn observe(&mut self, key: KeyHash) -> bool {
        let row = position(key, 0, self.rows.len());
        let fingerprint = (self.fingerprint)(key);
        let found = self.rows[row].iter().position(|held| *held == fingerprint);
        match (found, self.name) {
            (None, _) | (Some(_), "qhtd" | "qqhtd") => self.insert(row, fingerprint),
            (Some(slot), "rowlru") => {
                self.rows[row].remove(slot);
                self.rows[row].insert(0, fingerprint);
            }
            (Some(_), _) => {}
        }
        found.is_some()
    }

    fn contains(&self, key: KeyHash) -> bool {
        self.rows[position(key, 0, self.rows.len())].contains(&(self.fingerprint)(key))
    }
}

struct Cuckoo {
    rows: Vec<Vec<u32>>,
    slots: usize,
    bits: u32,
    kicks: usize,
    sorted: bool,
    draws: Draws,
}

impl Cuckoo {
    fn partner(&self, row: usize, fingerprint: u32) -> usize {
        row ^ position(
            KeyHash::from_uniform(u64::from(fingerprint)),
            0,
            self.rows.len(),
        )
    }

    fn has_room(&self, row: usize) -> bool {
        self.rows[row].len() < self.slots
    }
}

impl Model for Cuckoo {
    fn observe(&mut self, key: KeyHash) -> bool {
        if self.contains(key) {
            return true;
        }
        let mut fingerprint = nonzero_fingerprint(key, self.bits);
        let first = position(key, 0, self.rows.len());
        let second = self.partner(first, fingerprint);
        if let Some(row) = [first, second].into_iter().find(|row| self.has_room(*row)) {
            self.rows[row].push(fingerprint);
            return false;
        }
        let mut row = [first, second][1 - usize::from(self.draws.below(2) < 1)];
        for _ in 0..self.kicks {
            if self.has_room(row) {
                self.rows[row].push(fingerprint);
                return false;
            }
            if self.sorted {
                self.rows[row].sort_unstable();
            }
            let victim = self.draws.below(self.slots);
            fingerprint = std::mem::replace(&mut self.rows[row][victim], fingerprint);
            row = self.partner(row, fingerprint);
        }
        if self.has_room(row) {
            self.rows[row].push(fingerprint);
        }
        false
    }

    fn contains(&self, key: KeyHash) -> bool {
        let fingerprint = nonzero_fingerprint(key, self.bits);
        let first = position(key, 0, self.rows.len());
        let second = self.partner(first, fingerprint);
        self.rows[first].contains(&fingerprint) || self.rows[second].contains(&fingerprint)
    }
}

proptest! {
    #[test]
    fn quotient_tables_agree_with_their_model(
        name in prop::sample::select(vec!["qht", "qhtd", "qqht", "qqhtd", "rowlru"]),
        (slots, bits) in prop_oneof![3 => (1_usize..9, 1_u32..14), 1 => (1_usize..65, 1_u32..33)],
        memory in 20_usize..200,
        seed in any::<u64>(),
        stream in streams(),
    ) {
        let memory = memory.max(slots * bits as usize / 4);
        let mut model = Rows {
            name,
            rows: vec![Vec::new(); memory * 8 / (slots * bits as usize)],
            slots,
            fingerprint: Box::new(move |key| nonzero_fingerprint(key, bits)),
            sorted: false,
            draws: Draws::new(seed),
        };
        let spec = format!("{name}:slots={slots},bits={bits},memory={memory},seed={seed}");
        agree(&spec, &mut model, &stream)?;
    }

    #[test]
    fn streaming_quotient_filters_agree_with_their_model(
        slots in prop_oneof![3 => 1_usize..5, 1 => 5_usize..65],
        (remainder, kept) in (1_u32..28).prop_flat_map(|r| (Just(r), 1..=r)),
        memory in 20_usize..200,
        seed in any::<u64>(),
        sorted in any::<bool>(),
        stream in streams(),
    ) {
        // The number of bits that counts of 0 to r take, by trial.
        let count_bits = (1_u32..).find(|bits| 1 << bits > remainder).expect("few");
        let bits = kept + count_bits;
        // Rows of few bits can always be semi-sorted.
        let sorted = sorted && bits <= 12 && slots * bits as usize <= 32;
        let (row_bits, table, form) = if sorted {
            (sorted_row_bits(slots, bits), rank_table(slots, bits), "sorted")
        } else {
            (slots * bits as usize, 0, "packed")
        };
        let memory = memory.max(row_bits / 4);
        let mut model = Rows {
            name: "sqf",
            rows: vec![Vec::new(); 1 << (memory * 8 / row_bits).ilog2()],
            slots,
            fingerprint: Box::new(move |key| {
                let bits = (key.remix(1) >> (64 - remainder)) as u32;
                // In the order of the filter's values, in which 0 is the empty slot.
                bits.count_ones() << 27 | (bits % (1 << kept)) ^ 1
            }),
            sorted,
            draws: Draws::new(seed),
        };
        let spec = format!(
            "sqf:slots={slots},r={remainder},kept={kept},rows={form},memory={},seed={seed}",
            memory + table
        );
        agree(&spec, &mut model, &stream)?;
    }

    #[test]
    fn semi_sorted_rows_agree_with_their_model(
        name in prop::sample::select(vec!["qht", "qhtd"]),
        (slots, bits) in prop::sample::select(SORTED.to_vec()),
        memory in 20_usize..200,
        seed in any::<u64>(),
        stream in streams(),
    ) {
        let mut model = Rows {
            name,
            rows: vec![Vec::new(); memory * 8 / sorted_row_bits(slots, bits)],
            slots,
            fingerprint: Box::new(move |key| nonzero_fingerprint(key, bits)),
            sorted: true,
            draws: Draws::new(seed),
        };
        let memory = memory + rank_table(slots, bits);
        let spec = format!(
            "{name}:slots={slots},bits={bits},rows=sorted,memory={memory},seed={seed}"
        );
        agree(&spec, &mut model, &stream)?;
    }

    #[test]
    fn cuckoo_filters_agree_with_their_model(
        (slots, bits, sorted) in prop_oneof![
            2 => (1_usize..6, 1_u32..12, Just(false)),
            1 => (1_usize..65, 1_u32..33, Just(false)),
            1 => prop::sample::select(SORTED.to_vec()).prop_map(|(slots, bits)| (slots, bits, true)),
        ],
        kicks in 1_usize..9,
        memory in 20_usize..200,
        seed in any::<u64>(),
        stream in streams(),
    ) {
        let (row_bits, table, form) = if sorted {
            (sorted_row_bits(slots, bits), rank_table(slots, bits), "sorted")
        } else {
            (slots * bits as usize, 0, "packed")
        };
        let memory = memory.max(row_bits / 4);
        let mut model = Cuckoo {
            rows: vec![Vec::new(); 1 << (memory * 8 / row_bits).ilog2()],
            slots,
            bits,
            kicks,
            sorted,
            draws: Draws::new(seed),
        };
        let spec = format!(
            "cuckoo:slots={slots},bits={bits},kicks={kicks},rows={form},memory={},seed={seed}",
            memory + table
        );
        agree(&spec, &mut model, &stream)?;
    }
}
