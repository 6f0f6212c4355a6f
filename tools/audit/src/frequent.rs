//! The keys with the most `Duplicate` verdicts, followed one by one.
//!
//! A filter that does not renew keys mistakes a key again and again, so one hot key can make up
//! nearly all false duplicates. A sample of the keys misses it, or counts it many times over. This
//! table holds it: a key enters with one of its `Duplicate` verdicts, chosen at random, so the more
//! it has, the sooner it enters.

use echoless::KeyHash;

use crate::sampling::{Choices, KeyBitmap, KeyMap};
use crate::saved::{Saved, saved};
use crate::series::SeriesCounts;
use crate::window::{Moment, Windows};

/// The most keys held, about 0.5 MiB with the hash table around them.
const CAPACITY: usize = 1 << 12;

/// The seed of the choices. They need not be secret, only independent of the stream.
const SEED: u64 = 0x6175_6469_7420_3032;

/// A mistaken verdict counts as so many more when the table is thinned: keys that were mistaken
/// are what it is for.
const MISTAKEN_WEIGHT: u32 = 16;

/// The places for keys whose duplicates are right for a while: 96 KiB, of which few hot keys use
/// little.
const QUIET: usize = 1 << 12;

/// A bounded table of the keys with the most `Duplicate` verdicts.
#[derive(Debug, Clone)]
pub(crate) struct FrequentKeys {
    choices: Choices,
    held: KeyMap<Frequent>,
    /// The keys that are held.
    bitmap: KeyBitmap,
    /// Held keys of which the next duplicates are certainly right, each in one place: most verdicts
    /// on hot keys take no look-up in the table.
    quiet: Box<[Quiet]>,
    /// When the table was last thinned.
    thinned: Moment,
    /// What was found of the keys that are or were held.
    pub(crate) found: SeriesCounts,
}

/// A key that is held.
#[derive(Debug, Clone, Copy)]
struct Frequent {
    record: Record,
    /// The verdicts while the record is unknown.
    unknown: u64,
    /// The verdicts, those before the table was last thinned counting half each time.
    recent: u32,
}

/// A key that was recorded so recently that all duplicates are right.
#[derive(Debug, Clone, Copy)]
struct Quiet {
    key: KeyHash,
    /// The tick from which on they may be wrong.
    end: u64,
    /// The verdicts that the table has not counted.
    verdicts: u32,
}

/// Whether the table has judged a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Followed {
    /// The key is not held.
    No,
    /// It is held, but its record is unknown.
    Unjudged,
    Judged,
}

/// What the filter remembers of a key.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Record {
    /// The record of this moment, from which its age counts.
    At(Moment),
    /// None: it is mistaken for another key until it is reported as fresh.
    Nothing,
    /// A record before this moment, or none.
    Unknown(Moment),
}

impl Saved for Record {
    fn save(&self, bytes: &mut Vec<u8>) {
        let (kind, moment) = match self {
            Self::Nothing => (0_u8, None),
            Self::At(moment) => (1, Some(moment)),
            Self::Unknown(moment) => (2, Some(moment)),
        };
        kind.save(bytes);
        if let Some(moment) = moment {
            moment.save(bytes);
        }
    }

    fn load(bytes: &mut &[u8]) -> Option<Self> {
        match u8::load(bytes)? {
            0 => Some(Self::Nothing),
            1 => Moment::load(bytes).map(Self::At),
            2 => Moment::load(bytes).map(Self::Unknown),
            _ => None,
        }
    }
}

impl FrequentKeys {
    /// A table of a stream that has not started.
    pub(crate) fn new() -> Self {
        Self {
            choices: Choices::all(SEED),
            held: KeyMap::default(),
            bitmap: KeyBitmap::new(),
            quiet: vec![
                Quiet {
                    key: KeyHash::from_uniform(0),
                    end: 0,
                    verdicts: 0,
                };
                QUIET
            ]
            .into(),
            thinned: Moment::default(),
            found: SeriesCounts::default(),
        }
    }

    /// `false` if the key is not held. It may be `true` for others.
    #[inline(always)]
    pub(crate) fn may_hold(&self, key: KeyHash) -> bool {
        self.bitmap.may_hold(key)
    }

    /// Whether a `Duplicate` verdict on this key at this tick is certainly right, as far as that is
    /// known without a look-up.
    #[inline]
    pub(crate) fn is_quiet(&mut self, key: KeyHash, tick: impl FnOnce() -> u64) -> bool {
        let quiet = &mut self.quiet[place(key)];
        let is_quiet = quiet.key == key && tick() < quiet.end;
        quiet.verdicts = quiet.verdicts.saturating_add(u32::from(is_quiet));
        is_quiet
    }

    /// Passes over one `Duplicate` verdict on a key that is not held. Returns whether the key
    /// should [enter](Self::enter).
    #[inline]
    pub(crate) fn choose(&mut self) -> bool {
        self.choices.choose()
    }

    /// Takes note of a `Fresh` verdict on a key that [may be held](Self::may_hold).
    pub(crate) fn record(&mut self, key: KeyHash, now: Moment) {
        if let Some(held) = self.held.get_mut(&key) {
            held.record = Record::At(now);
        }
    }

    /// Checks a `Duplicate` verdict on a key that [may be held](Self::may_hold).
    pub(crate) fn check(&mut self, key: KeyHash, now: Moment, windows: Windows) -> Followed {
        let Some(held) = self.held.get_mut(&key) else {
            return Followed::No;
        };
        let found = &mut self.found;
        if let Record::At(then) = held.record
            && windows.end_at(then, now)
        {
            found.surely_mistaken += 1;
            found.surely_at_end += 1;
            return Followed::Judged;
        }
        if let Record::At(then) | Record::Unknown(then) = held.record
            && windows.are_over(then, now)
        {
            // If the beginning of the series is unknown, the sample of the keys stands for it.
            found.surely_begun += u64::from(matches!(held.record, Record::At(_)));
            held.record = Record::Nothing;
        }
        held.recent = held.recent.saturating_add(1);
        match held.record {
            Record::Nothing => {
                found.surely_mistaken += 1;
                held.recent = held.recent.saturating_add(MISTAKEN_WEIGHT);
            }
            Record::At(then) if windows.contain(then, now) => {
                // With a second window, two clocks would have to be compared.
                if windows.second.is_none() {
                    let end = then.tick.saturating_add(windows.first.ticks);
                    let verdicts = 0;
                    self.quiet[place(key)] = Quiet { key, end, verdicts };
                }
            }
            Record::At(_) => found.surely_undecided += 1,
            Record::Unknown(_) => {
                found.unknown.add(held.unknown, 1);
                held.unknown += 1;
                return Followed::Unjudged;
            }
        }
        Followed::Judged
    }

    /// Holds a key from its next verdict on.
    pub(crate) fn enter(&mut self, key: KeyHash, record: Record, now: Moment, windows: Windows) {
        let frequent = Frequent {
            record,
            unknown: 0,
            recent: 1,
        };
        self.held.insert(key, frequent);
        self.bitmap.add(key);
        if self.held.len() > CAPACITY {
            self.thin(now, windows);
        }
    }

    /// Makes room in the table: keeps the keys with the most verdicts. Fewer keys enter from now on
    /// if it filled up in less than a window, more if it took long.
    fn thin(&mut self, now: Moment, windows: Windows) {
        for quiet in &mut self.quiet {
            if let Some(held) = self.held.get_mut(&quiet.key) {
                held.recent = held.recent.saturating_add(quiet.verdicts);
            }
            quiet.verdicts = 0;
        }
        let mut recent: Vec<u32> = self.held.values().map(|held| held.recent).collect();
        let (_, &mut median, _) = recent.select_nth_unstable(CAPACITY / 2);
        let halvings = self.choices.halvings();
        let halvings = if windows.are_over(self.thinned, now) {
            halvings.saturating_sub(1)
        } else {
            halvings + 1
        };
        let keys = self.held.keys().map(|key| key.get());
        self.choices.set_halvings(halvings, keys);
        self.thinned = now;
        self.held.retain(|_, held| {
            let stays = held.recent > median;
            held.recent /= 2;
            stays
        });
        self.bitmap.redraw(self.held.keys());
    }
}

/// The place of a key among the quiet ones.
#[inline(always)]
const fn place(key: KeyHash) -> usize {
    key.get() as usize % QUIET
}

saved! {
    FrequentKeys { choices, held, bitmap, quiet, thinned, found }
    Frequent { record, unknown, recent }
    Quiet { key, end, verdicts }
}
