//! Vertical slices, and diced ones, against a plain table of bits whose failed ranges are marked.

use echoless::{Filter, KeyHash};
use proptest::prelude::*;

use crate::harness::{Event, PlainBloom, build, events, fail, is_duplicate, key, parse, restore};

/// A policy, by its text.
#[derive(Debug, Clone, Copy)]
enum Policy {
    Duplicate,
    Fresh,
    Hybrid(usize),
    Repaired(usize),
}

impl Policy {
    fn text(self) -> String {
        match self {
            Self::Duplicate => "duplicate".into(),
            Self::Fresh => "fresh".into(),
            Self::Hybrid(least) => format!("hybrid,least={least}"),
            Self::Repaired(least) => format!("repaired,least={least}"),
        }
    }

    /// Whether a key is a duplicate: for each of its bits, `None` if it is missing.
    fn judge(self, bits: &[Option<bool>]) -> bool {
        let live = bits.iter().flatten().count();
        let set = bits.iter().flatten().filter(|bit| **bit).count();
        match self {
            Self::Duplicate => set == live,
            Self::Fresh => set == bits.len(),
            Self::Hybrid(least) => set >= least,
            Self::Repaired(least) => set == live && live >= least,
        }
    }
}

/// The bits of all filters in a row, in S slices of S' pieces.
struct Table {
    shape: PlainBloom,
    bits: Vec<bool>,
    slices: usize,
    pieces: usize,
    /// By piece, through all slices.
    failed: Vec<bool>,
}

/// The first cell of part `index` of `count` of `len` cells: cell x lies in part x * count / len.
fn bound(len: usize, count: usize, index: usize) -> usize {
    (0..len).find(|x| x * count / len >= index).unwrap_or(len)
}

impl Table {
    fn new(hashes: usize, bytes: usize, slices: usize, pieces: usize) -> Self {
        let shape = PlainBloom::new(hashes, bytes);
        Self {
            bits: vec![false; shape.cells()],
            shape,
            slices,
            pieces,
            failed: vec![false; slices * pieces],
        }
    }

    /// The piece and the cell of bit `index` of a key.
    fn locate(&self, key: KeyHash, index: usize) -> (usize, usize) {
        let len = self.bits.len();
        let uncut = index * self.shape.bits[0].len() + self.shape.position(key, index);
        let slice = uncut * self.slices / len;
        if self.pieces == 1 {
            return (slice, uncut);
        }
        let start = bound(len, self.slices, slice);
        let size = bound(len, self.slices, slice + 1) - start;
        // Each slice is a horizontal filter with a hash of its own.
        let stream = 0x7069_6563_6573_0000 + slice as u64;
        let piece = KeyHash::from_uniform(key.remix(stream)).line(self.pieces as u64) as usize;
        let from = bound(size, self.pieces, piece);
        let to = bound(size, self.pieces, piece + 1);
        let cell = start + from + (uncut - start) * (to - from) / size;
        (slice * self.pieces + piece, cell)
    }

    fn located(&self, key: KeyHash) -> Vec<(usize, usize)> {
        let hashes = self.shape.bits.len();
        (0..hashes).map(|index| self.locate(key, index)).collect()
    }

    fn seen(&self, key: KeyHash) -> Vec<Option<bool>> {
        let cells = self.located(key).into_iter();
        cells
            .map(|(piece, cell)| (!self.failed[piece]).then_some(self.bits[cell]))
            .collect()
    }

    fn insert(&mut self, key: KeyHash) {
        for (piece, cell) in self.located(key) {
            if !self.failed[piece] {
                self.bits[cell] = true;
            }
        }
    }

    fn fail(&mut self, piece: usize) {
        self.failed[piece] = true;
        let (slice, within) = (piece / self.pieces, piece % self.pieces);
        let start = bound(self.bits.len(), self.slices, slice);
        let size = bound(self.bits.len(), self.slices, slice + 1) - start;
        let from = start + bound(size, self.pieces, within);
        let to = start + bound(size, self.pieces, within + 1);
        self.bits[from..to].fill(false);
    }
}

fn policies() -> impl Strategy<Value = Policy> {
    prop_oneof![
        Just(Policy::Duplicate),
        Just(Policy::Fresh),
        (1_usize..7).prop_map(Policy::Hybrid),
        (1_usize..7).prop_map(Policy::Repaired),
    ]
}

proptest! {
    #[test]
    fn vertical_slices_agree_with_a_plain_table_through_failures(
        slices in 1_usize..20,
        pieces in 1_usize..4,
        hashes in 1_usize..7,
        bytes in 12_usize..60,
        policy in policies(),
        events in events(),
    ) {
        let policy = match policy {
            Policy::Hybrid(least) => Policy::Hybrid(least.min(hashes)),
            Policy::Repaired(least) => Policy::Repaired(least.min(hashes)),
            Policy::Duplicate | Policy::Fresh => policy,
        };
        let diced = if pieces > 1 { format!("horizontal:slices={pieces}/") } else { String::new() };
        let bloom = format!("{diced}bloom:k={hashes},memory={bytes}");
        let failed = policy.text();
        let text = |probe: &str| {
            format!("vertical:slices={slices},failed={failed},probe={probe}/{bloom}")
        };
        let (mut parallel, mut pipelined) = (build(&text("parallel")), build(&text("pipelined")));
        let mut model = Table::new(hashes, bytes, slices, pieces);
        let (mut fresh, mut unavailable, mut most_probed) = (0, 0, 0);
        for event in events {
            match event {
                Event::Key(number) => {
                    let key = key(number);
                    let seen = model.seen(key);
                    let expected = policy.judge(&seen);
                    unavailable += u64::from(seen.contains(&None));
                    fresh += u64::from(!expected);
                    let mut live: Vec<usize> = model.located(key).into_iter()
                        .map(|(piece, _)| piece)
                        .filter(|piece| !model.failed[*piece])
                        .collect();
                    live.sort_unstable();
                    live.dedup();
                    most_probed += live.len() as u64;
                    if !expected {
                        model.insert(key);
                    }
                    prop_assert_eq!(is_duplicate(&mut *parallel, key), expected);
                    prop_assert_eq!(is_duplicate(&mut *pipelined, key), expected);
                }
                Event::Fail(piece) | Event::Restore(piece) => {
                    let piece = piece % (slices * pieces);
                    let path = [piece / pieces, piece % pieces];
                    let path = if pieces > 1 { &path[..] } else { &path[..1] };
                    for filter in [&mut parallel, &mut pipelined] {
                        if matches!(event, Event::Fail(_)) {
                            fail(&mut **filter, path).unwrap();
                        } else {
                            restore(&mut **filter, path).unwrap();
                        }
                    }
                    if matches!(event, Event::Fail(_)) {
                        model.fail(piece);
                    } else {
                        model.failed[piece] = false;
                    }
                }
            }
        }
        for key in (0..300).map(key) {
            prop_assert_eq!(parallel.contains(key), policy.judge(&model.seen(key)));
        }
        let (all, few) = (parallel.slices().unwrap(), pipelined.slices().unwrap());
        prop_assert_eq!(all.loads().iter().sum::<u64>(), all.counts().probed);
        prop_assert!(few.counts().probed <= all.counts().probed);
        prop_assert!(all.counts().probed <= most_probed);
        prop_assert_eq!(all.counts().unavailable, unavailable);
        let ones = model.bits.iter().filter(|bit| **bit).count() as u64;
        let tally = pipelined.tally();
        prop_assert_eq!(tally.cells.map(|cells| cells.occupied), Some(ones));
        prop_assert_eq!((tally.fresh, tally.unavailable), (Some(fresh), Some(unavailable)));
        pipelined.clear();
        prop_assert!(!pipelined.slices().unwrap().is_failed(&[0]).unwrap());
        prop_assert_eq!(pipelined.report().fill(), Some(0.0));
    }

    #[test]
    fn uncut_and_vertical_filters_are_the_same(
        slices in 1_u32..97,
        hashes in 1_u32..9,
        policy in prop::sample::select(vec!["duplicate", "fresh", "repaired"]),
        keys in prop::collection::vec(0_u64..100, 0..500),
    ) {
        let bloom = format!("bloom:k={hashes},memory=13B");
        let spec = parse(&format!("vertical:slices={slices},failed={policy}/{bloom}"));
        let (mut cut, mut whole) = (spec.build().unwrap(), build(&bloom));
        for number in keys {
            prop_assert_eq!(cut.observe_one(key(number)), whole.observe_one(key(number)));
        }
        prop_assert_eq!(cut.report().fill(), whole.report().fill());
        prop_assert_eq!(cut.memory_bytes(), whole.memory_bytes());
        prop_assert_eq!(spec.facts().rate_model, parse(&bloom).facts().rate_model);
        prop_assert_eq!(spec.facts().cache_lines, f64::from(hashes));
    }
}

#[test]
fn messages_and_probes_are_counted_for_both_modes() {
    // One slice for each of the four bits of a key.
    let counts = |probe: &str, failed: &str, failures: usize| {
        let text = format!("vertical:slices=4,probe={probe},failed={failed}/bloom:k=4,memory=1KiB");
        let mut filter = build(&text);
        for slice in 0..failures {
            fail(&mut *filter, &[slice]).unwrap();
        }
        filter.observe_one(key(1));
        let fresh = filter.slices().unwrap().counts();
        filter.observe_one(key(1));
        let both = filter.slices().unwrap().counts();
        (
            (fresh.probed, fresh.messages),
            (both.probed - fresh.probed, both.messages - fresh.messages),
        )
    };
    // Four requests, four answers, four settings; a duplicate is not set again.
    assert_eq!(counts("parallel", "duplicate", 0), ((4, 12), (4, 8)));
    // The first slice answers that its bit is not set; for a duplicate the last one answers.
    assert_eq!(counts("pipelined", "duplicate", 0), ((1, 6), (4, 5)));
    assert_eq!(counts("parallel", "duplicate", 1), ((3, 9), (3, 6)));
    // A missing bit makes the key fresh before any slice is probed; its other bits are set.
    assert_eq!(counts("pipelined", "fresh", 1), ((0, 3), (0, 3)));
    // Without a live slice, no slice is probed.
    assert_eq!(counts("parallel", "duplicate", 4), ((0, 0), (0, 0)));
    // Two set bits are enough for this heuristic, and three that are left unset are too many.
    let hybrid = counts("pipelined", "hybrid,least=2", 0);
    assert_eq!(hybrid, ((3, 8), (2, 3)));
}

#[test]
fn a_vertical_slice_of_pieces_fails_and_is_restored_whole_or_by_piece() {
    let mut filter = build("vertical:slices=3/horizontal:slices=4/bloom:k=3,memory=1KiB");
    fail(&mut *filter, &[1]).unwrap();
    restore(&mut *filter, &[1, 2]).unwrap();
    let slices = filter.slices().unwrap();
    assert_eq!((slices.slice_count(), slices.loads().len()), (3, 12));
    let failed: Vec<bool> = (0..4)
        .map(|piece| slices.is_failed(&[1, piece]).unwrap())
        .collect();
    assert_eq!(failed, [true, true, false, true]);
    assert_eq!(slices.is_failed(&[1]), Ok(false));
    restore(&mut *filter, &[1]).unwrap();
    assert_eq!(filter.slices().unwrap().is_failed(&[1, 0]), Ok(false));
}

#[test]
fn horizontal_slices_cut_vertically_are_vertical_filters() {
    let mut diced = build("horizontal:slices=5/vertical:slices=8/bloom:k=8,memory=5KiB");
    let mut plain = build("horizontal:slices=5/bloom:k=8,memory=5KiB");
    for number in (0..6000).map(|number| number % 4000) {
        let expected = plain.observe_one(key(number));
        assert_eq!(diced.observe_one(key(number)), expected);
    }
    // A failed piece misses one bit of each key of its slice: no key is forgotten.
    fail(&mut *diced, &[2, 7]).unwrap();
    assert!((0..4000).all(|number| diced.contains(key(number))));
    // Once the whole slice is back, empty, its keys are gone.
    fail(&mut *diced, &[2]).unwrap();
    restore(&mut *diced, &[2]).unwrap();
    let gone = (0..4000).filter(|number| !diced.contains(key(*number)));
    assert!((700..900).contains(&gone.count()));
    assert_eq!(diced.slices().unwrap().is_failed(&[2, 7]), Ok(false));
}
