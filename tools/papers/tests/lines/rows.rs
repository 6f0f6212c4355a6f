//! Rows with random victims: the slots of a line as integers. Rows that are queues are fingerprint
//! lines.

use echoless::{Filter, FingerprintSpec, KeyHash, KeyHasher, Replacement, SlotWidth};
use proptest::prelude::*;

use crate::harness::{Bits, Model, agree, below, number, parse, set_number, streams};

struct Row {
    bits: usize,
    again: bool,
}

impl Model for Row {
    fn visit(&self, line: &mut Bits, key: KeyHash, draw: KeyHash) -> bool {
        let len = self.slots();
        let slots: Vec<u64> = (0..len)
            .map(|slot| number(line, slot * self.bits, self.bits))
            .collect();
        let fingerprint = (key.get() & (u64::MAX >> (64 - self.bits))).max(1);
        let seen = slots.contains(&fingerprint);
        if !seen || self.again {
            let empty = slots.iter().position(|slot| *slot == 0);
            let slot = empty.unwrap_or_else(|| below(draw, 0, len));
            set_number(line, slot * self.bits, self.bits, fingerprint);
        }
        if self.again {
            let arrivals = number(line, len * self.bits, self.bits);
            set_number(line, len * self.bits, self.bits, arrivals.wrapping_add(1));
        }
        seen
    }
}

impl Row {
    fn slots(&self) -> usize {
        512 / self.bits - usize::from(self.again)
    }
}

proptest! {
    #[test]
    fn rows_with_random_victims_agree_with_their_model(
        bits in prop::sample::select(vec![8_usize, 16, 32, 64]),
        again in any::<bool>(),
        lines in 1_usize..6,
        seed in any::<u64>(),
        stream in streams(),
    ) {
        let name = if again { "qhtd" } else { "qht" };
        let row = Row { bits, again };
        agree(&format!("{name}:slots={},bits={bits}", row.slots()), lines, seed, &row, &stream)?;
    }

    #[test]
    fn rows_that_are_queues_agree_with_fingerprint_lines(
        (name, replacement) in prop::sample::select(vec![
            ("qqht", Replacement::Fifo), ("qqhtd", Replacement::Qqhtd), ("rowlru", Replacement::Lru),
        ]),
        width in prop::sample::select(SlotWidth::ALL.to_vec()),
        stream in streams(),
    ) {
        let text = format!("{name}:slots={},bits={},form=line,memory=192B", width.slots(), width.bits());
        let mut filter = parse(&text).build().expect("valid");
        let spec = FingerprintSpec::new(192).slot_width(width).replacement(replacement);
        let mut expected = spec.build().expect("valid");
        for key in stream {
            let key = KeyHasher::seeded(9).hash_u64(key);
            prop_assert_eq!(filter.observe_one(key), expected.observe_one(key), "{}", text);
        }
    }
}
