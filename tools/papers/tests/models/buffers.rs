//! Exact buffers: a searched list.

use echoless::KeyHash;
use proptest::prelude::*;

use crate::harness::{Draws, Model, agree, streams};

struct Lru {
    keys: Vec<KeyHash>,
    capacity: usize,
    guess: f64,
    draws: Draws,
}

impl Model for Lru {
    fn observe(&mut self, key: KeyHash) -> bool {
        let index = self.keys.iter().position(|held| *held == key);
        let guessed = index.is_none() && self.guess > 0.0 && self.draws.unit() < self.guess;
        index.map(|index| self.keys.remove(index));
        self.keys.insert(0, key);
        self.keys.truncate(self.capacity);
        index.is_some() || guessed
    }

    fn contains(&self, key: KeyHash) -> bool {
        self.keys.contains(&key) || self.guess > 0.0 && self.draws.clone().unit() < self.guess
    }
}

proptest! {
    #[test]
    fn buffers_agree_with_their_model(
        (charge, entry_bytes) in prop::sample::select(vec![("full", 24), ("hash", 8), ("hash32", 4)]),
        memory in 24_usize..3000,
        guess in prop::sample::select(vec![0.0, 0.05, 0.5]),
        seed in any::<u64>(),
        stream in streams(),
    ) {
        let mut model = Lru {
            keys: Vec::new(),
            capacity: memory / entry_bytes,
            guess,
            draws: Draws::new(seed),
        };
        let name = if guess > 0.0 {
            format!("fpbuffer:q={guess}")
        } else {
            "lru:tracked=1".to_owned()
        };
        let spec = format!("{name},charge={charge},memory={memory},seed={seed}");
        agree(&spec, &mut model, &stream)?;

        // The filter reports its true size for every accounting.
        let parsed: echoless::FilterSpec = echoless_papers::parse(&spec).expect("valid");
        let bytes = parsed.build().expect("valid").memory_bytes();
        prop_assert_eq!(bytes, (memory / entry_bytes * 24) as u64);
    }
}
