//! Sets of digests, against a plain set, after crashes and with damaged files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use echoless::hash::{KeyDigest, KeyDigester};
use echoless::state::checksum;
use echoless_durable::storage::{RealStorage, Storage};
use echoless_durable::{DigestSet, DigestStore, Kept};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::simulated::SimulatedStorage;

fn digester() -> KeyDigester {
    KeyDigester::keyed([3; 16])
}

fn digest(key: u64) -> KeyDigest {
    // Some share their first word with many others, so that it crosses blocks.
    match digester().digest(key.to_le_bytes()).words() {
        [_, second] if key.is_multiple_of(3) => KeyDigest::from_words([1 << 63, second]),
        words => KeyDigest::from_words(words),
    }
}

/// Opens a set that makes a run of so many digests.
fn open_with(storage: &Arc<dyn Storage>, committed: u64, most_recent: usize) -> DigestStore {
    open_kept(storage, Kept::Digest, committed, most_recent)
}

/// As [`open_with`], of a set of either kind.
fn open_kept(
    storage: &Arc<dyn Storage>,
    kept: Kept,
    committed: u64,
    most_recent: usize,
) -> DigestStore {
    let folder = Path::new("keys");
    let mut store =
        DigestStore::open(storage.clone(), folder, &digester(), kept, committed).unwrap();
    store.set_most_recent(most_recent);
    store
}

/// Those of these keys that the set has.
fn found(store: &mut DigestStore, keys: impl Iterator<Item = u64>) -> BTreeSet<u64> {
    let mut wanted: Vec<_> = keys.map(|key| (digest(key), key)).collect();
    wanted.sort_unstable();
    let sorted: Vec<_> = wanted.iter().map(|(digest, _)| *digest).collect();
    let mut found = BTreeSet::new();
    store
        .find(&sorted, &mut |index| assert!(found.insert(wanted[index].1)))
        .unwrap();
    found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn a_set_has_what_was_committed_and_what_was_appended_since(
        steps in vec((1_u64..1000, any::<bool>(), any::<bool>()), 1..12),
    ) {
        let storage: Arc<dyn Storage> = Arc::new(SimulatedStorage::new());
        let mut store = open_with(&storage, 0, 700);
        let (mut next, mut committed) = (0, 0);
        for (count, commits, reopens) in steps {
            for key in next..next + count {
                store.append(digest(key)).unwrap();
            }
            next += count;
            prop_assert_eq!((store.len(), store.kept()), (next, next));
            let all = found(&mut store, 0..next + 50);
            prop_assert_eq!(all, (0..next).collect());
            // Few of them, whose blocks are not next to each other.
            let few = found(&mut store, (0..next + 50).step_by(97));
            prop_assert_eq!(few, (0..next).step_by(97).collect());
            if commits {
                committed = store.flush().unwrap();
                prop_assert_eq!(committed, next);
                store.merge().unwrap();
                let keys = Path::new("keys");
                DigestStore::verify(storage.clone(), keys, &digester(), Kept::Digest, committed).unwrap();
            }
            if reopens {
                // Runs behind the commit may be there, and are removed.
                drop(store);
                store = open_with(&storage, committed, 700);
                let kept = found(&mut store, 0..next + 50);
                prop_assert_eq!(kept, (0..committed).collect());
                next = committed;
            }
        }
    }
}

/// The last tick of each of the keys below 400 that a set with times has.
fn times(store: &mut DigestStore) -> BTreeMap<u64, u64> {
    let mut wanted: Vec<_> = (0..400).map(|key| (digest(key), key)).collect();
    wanted.sort_unstable();
    let sorted: Vec<_> = wanted.iter().map(|(digest, _)| *digest).collect();
    let mut times = BTreeMap::new();
    let found = &mut |index: usize, tick: u64| {
        let last = times.entry(wanted[index].1).or_insert(tick);
        *last = tick.max(*last);
    };
    store.find_times(&sorted, found).unwrap();
    times
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn a_set_with_times_has_the_last_ones_of_its_window(
        steps in vec((vec((0_u64..300, 0_u64..3), 0..900), 0_u8..8), 1..9),
        window in 1_u64..800,
    ) {
        let storage: Arc<dyn Storage> = Arc::new(SimulatedStorage::new());
        let open = |committed| {
            let keys = Path::new("keys");
            let kept = Kept::LastSeen;
            let opened = DigestStore::open(storage.clone(), keys, &digester(), kept, committed);
            let mut store = opened.unwrap();
            store.set_most_recent(170);
            store
        };
        let mut store = open(0);
        let (mut model, mut clock, mut appended) = (BTreeMap::new(), 1, 0);
        let mut saved = (model.clone(), clock, appended);
        for (seen, does) in steps {
            for (key, step) in seen {
                clock += step;
                store.forget_before(clock.saturating_sub(window));
                store.append_at(digest(key), clock).unwrap();
                model.insert(key, clock);
                appended += 1;
            }
            if does & 1 == 1 {
                prop_assert_eq!(store.flush().unwrap(), appended);
                saved = (model.clone(), clock, appended);
                store.merge().unwrap();
                // Each run has at most the last time of each key.
                prop_assert!(store.kept() <= 450, "{} kept", store.kept());
                let keys = Path::new("keys");
                let kept = Kept::LastSeen;
                DigestStore::verify(storage.clone(), keys, &digester(), kept, appended).unwrap();
            }
            if does & 2 == 2 {
                drop(store);
                (model, clock, appended) = saved.clone();
                store = open(appended);
            }
            let mut expected = model.clone();
            expected.retain(|_, tick| *tick + window >= clock);
            let mut found = times(&mut store);
            // What is older may be there, with its time.
            prop_assert!(found.iter().all(|(key, tick)| model[key] == *tick || model[key] + window < clock));
            found.retain(|_, tick| *tick + window >= clock);
            prop_assert_eq!(found, expected);
        }
    }
}

#[test]
fn what_a_window_leaves_takes_no_room() {
    let simulated = SimulatedStorage::new();
    let storage: Arc<dyn Storage> = Arc::new(simulated);
    let keys = Path::new("keys");
    let kept = Kept::LastSeen;
    let open =
        |committed| DigestStore::open(storage.clone(), keys, &digester(), kept, committed).unwrap();
    let mut store = open(0);
    for tick in 1..=40_000 {
        store.append_at(digest(tick % 10_000), tick).unwrap();
        store.forget_before(tick.saturating_sub(1000));
        if tick % 500 == 0 {
            let committed = store.flush().unwrap();
            store.merge().unwrap();
            assert!(store.kept() <= 3500, "{}", store.kept());
            drop(store);
            store = open(committed);
        }
    }
    assert_eq!(store.len(), 40_000);
    // All are too old, and a file without any is one file.
    for _ in 0..5 {
        store.forget_before(50_000);
        store.append_at(digest(1), 49_999).unwrap();
        let committed = store.flush().unwrap();
        store.merge().unwrap();
        drop(store);
        store = open(committed);
    }
    store.append_at(digest(7), 50_001).unwrap();
    assert_eq!(store.kept(), 1);
    let found = times(&mut store);
    assert_eq!(found, BTreeMap::from([(7, 50_001)]));
}

#[test]
fn a_merge_that_is_stopped_leaves_the_set_as_it_was() {
    let storage: Arc<dyn Storage> = Arc::new(SimulatedStorage::new());
    let names = || storage.list(Path::new("keys")).unwrap();
    let mut store = open_with(&storage, 0, 10);
    for key in 0..100 {
        store.append(digest(key)).unwrap();
    }
    let committed = store.flush().unwrap();
    let before = names();
    assert_eq!(before.len(), 10);
    let stops = Arc::new(AtomicBool::new(true));
    let flag = stops.clone();
    store.stop_merges_if(move || flag.load(Ordering::Relaxed));
    store.merge().unwrap();
    assert_eq!(names(), before);
    assert_eq!(found(&mut store, 0..200), (0..100).collect());
    stops.store(false, Ordering::Relaxed);
    store.merge().unwrap();
    assert_eq!(names().len(), 1);
    drop(store);
    let mut store = open_with(&storage, committed, 10);
    assert_eq!(found(&mut store, 0..200), (0..100).collect());
}

/// The keys that a program appends between its commits.
const APPENDED: [std::ops::Range<u64>; 5] = [0..160, 200..290, 400..403, 600..604, 800..1000];

/// Opens the set at this commit, and checks what it has.
fn check(storage: &SimulatedStorage, kept: Kept, committed: u64, told: usize) {
    let storage: Arc<dyn Storage> = Arc::new(storage.clone());
    let mut store = open_kept(&storage, kept, committed, 70);
    let has = found(&mut store, 0..1100);
    let keys = APPENDED.into_iter().flatten();
    let expected: BTreeSet<u64> = keys.take(committed as usize).collect();
    assert_eq!(has, expected, "after {told} operations");
    if kept == Kept::LastSeen {
        let expected = expected.into_iter().filter(|key| *key < 400);
        let expected = expected.map(|key| (key, key + 1)).collect();
        assert_eq!(times(&mut store), expected, "after {told} operations");
    }
}

#[test]
fn every_crash_leaves_the_digests_of_the_last_commit() {
    for kept in [Kept::Digest, Kept::LastSeen] {
        check_crashes(kept);
    }
}

/// Adds a key to a set of either kind.
fn append(store: &mut DigestStore, kept: Kept, key: u64) {
    let appended = match kept {
        Kept::Digest => store.append(digest(key)),
        Kept::LastSeen => store.append_at(digest(key), key + 1),
    };
    appended.unwrap();
}

fn check_crashes(kept: Kept) {
    let simulated = SimulatedStorage::new();
    let storage: Arc<dyn Storage> = Arc::new(simulated.clone());
    let mut store = open_kept(&storage, kept, 0, 70);
    // What the caller has committed, and the operations before.
    let mut commits = vec![(0, 0)];
    for keys in APPENDED {
        store.merge().unwrap();
        keys.for_each(|key| append(&mut store, kept, key));
        let committed = store.flush().unwrap();
        commits.push((simulated.operations(), committed));
    }
    store.merge().unwrap();
    let mut states = 0;
    for state in simulated.crash_states() {
        let (at, mut done) = (state.operations, commits.iter().rev());
        let (_, committed) = *done.find(|(before, _)| *before <= at).unwrap();
        check(&state.storage, kept, committed, at);
        // Opening it has removed files, and may be cut short, too.
        for again in state.storage.crash_states().filter(|_| states % 29 == 0) {
            check(&again.storage, kept, committed, at);
        }
        states += 1;
    }
    assert!(states > 100, "{states} states");
}

#[test]
fn runs_stay_few_and_only_what_was_committed_is_merged() {
    let storage: Arc<dyn Storage> = Arc::new(SimulatedStorage::new());
    let names = || storage.list(Path::new("keys")).unwrap().len();
    let mut store = open_with(&storage, 0, 10);
    // Far more than may be open, or lie about, at a time.
    (0..3005).for_each(|key| store.append(digest(key)).unwrap());
    assert!(names() <= 64, "{} files", names());
    let committed = store.flush().unwrap();
    store.merge().unwrap();
    assert!(names() <= 3, "{} files", names());
    let few = names();
    (3005..3900).for_each(|key| store.append(digest(key)).unwrap());
    store.flush().unwrap();
    drop(store);
    // The second commit has failed.
    let mut store = open_with(&storage, committed, 10);
    assert_eq!(names(), few);
    assert_eq!(found(&mut store, 0..4000), (0..3005).collect());
    for key in 3005..3020 {
        store.append(digest(key)).unwrap();
        store.flush().unwrap();
        store.merge().unwrap();
    }
    assert!((2..=6).contains(&names()), "{} files", names());
    assert_eq!(found(&mut store, 0..4000), (0..3020).collect());
}

#[test]
fn damage_is_an_error_and_no_other_answer() {
    for kept in [Kept::Digest, Kept::LastSeen] {
        check_damage(kept);
    }
}

fn check_damage(kept: Kept) {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path().join("keys");
    let storage = Arc::new(RealStorage);
    let open = |digester: &KeyDigester, committed| {
        DigestStore::open(storage.clone(), &folder, digester, kept, committed)
    };
    let mut store = open(&digester(), 0).unwrap();
    (0..3000).for_each(|key| append(&mut store, kept, key));
    assert_eq!(store.flush().unwrap(), 3000);
    drop(store);
    let [run] = &*fs::read_dir(&folder).unwrap().collect::<Vec<_>>() else {
        panic!("one run");
    };
    let run = run.as_ref().unwrap().path();
    let bytes = fs::read(&run).unwrap();
    for at in (0..bytes.len()).step_by(97).chain([bytes.len() - 1]) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 4;
        fs::write(&run, damaged).unwrap();
        let read = DigestStore::verify(storage.clone(), &folder, &digester(), kept, 3000);
        let error = read.expect_err("damage at any byte").to_string();
        assert!(
            error.contains("damaged") || error.contains("length"),
            "{error}"
        );
    }
    fs::write(&run, &bytes[..bytes.len() - 1]).unwrap();
    assert!(open(&digester(), 3000).is_err());
    fs::write(&run, &bytes).unwrap();
    // The caller has committed more, or other keys.
    let error = open(&digester(), 3001).unwrap_err().to_string();
    assert!(
        error.contains("from number 3000 to 3001 are missing"),
        "{error}"
    );
    let other = KeyDigester::keyed([4; 16]);
    let error = open(&other, 3000).unwrap_err().to_string();
    assert!(error.contains("another set of keys"), "{error}");
    let kinds = [Kept::Digest, Kept::LastSeen].into_iter();
    for other in kinds.filter(|other| *other != kept) {
        let opened = DigestStore::open(storage.clone(), &folder, &digester(), other, 3000);
        let error = opened.unwrap_err().to_string();
        assert!(error.contains("its header is damaged"), "{error}");
    }
    // Names of others are left alone.
    for name in ["1-2.run", "notes", "0000000000000bb8-0000000000000bb9.run"] {
        fs::write(folder.join(name), "theirs").unwrap();
    }
    let error = open(&digester(), 3000).unwrap_err().to_string();
    assert!(error.contains("another set of keys"), "{error}");
    fs::remove_file(folder.join("0000000000000bb8-0000000000000bb9.run")).unwrap();
    open(&digester(), 3000).unwrap();
    for name in ["1-2.run", "notes"] {
        assert_eq!(fs::read(folder.join(name)).unwrap(), b"theirs");
    }
    // Nothing of it was changed.
    assert_eq!(fs::read(&run).unwrap(), bytes);
    DigestStore::verify(storage.clone(), &folder, &digester(), kept, 3000).unwrap();
}

/// The bytes of a run as the page of the format has them.
fn run_bytes(kept: Kept, digests: &[(KeyDigest, u64)]) -> Vec<u8> {
    let sealed = |number: u64, numbers: &[u64]| -> Vec<u8> {
        let mut bytes: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
        bytes.extend(checksum(number, &bytes).to_le_bytes());
        bytes
    };
    let [store, _] = digester().digest([]).words();
    let (magic, block) = match kept {
        Kept::Digest => (*b"ECHOKEYS", 255),
        Kept::LastSeen => (*b"ECHOSEEN", 170),
    };
    let count = digests.len() as u64;
    let mut bytes = sealed(0, &[u64::from_le_bytes(magic), store, 0, count]);
    let mut index = Vec::new();
    for (number, digests) in digests.chunks(block).enumerate() {
        let mut numbers = Vec::new();
        for (digest, tick) in digests {
            numbers.extend(digest.words());
            numbers.extend((kept == Kept::LastSeen).then_some(*tick));
        }
        index.push(numbers[0]);
        bytes.extend(sealed(number as u64, &numbers));
    }
    index.extend((kept == Kept::LastSeen).then_some(count));
    bytes.extend(sealed(u64::MAX, &index));
    bytes
}

#[test]
fn a_run_has_the_bytes_of_its_format() {
    for (kept, count) in [Kept::Digest, Kept::LastSeen]
        .into_iter()
        .flat_map(|kept| [1, 170, 255, 256, 1000].map(|count| (kept, count)))
    {
        let storage: Arc<dyn Storage> = Arc::new(SimulatedStorage::new());
        let mut store = open_kept(&storage, kept, 0, 5000);
        (0..count).for_each(|key| append(&mut store, kept, key));
        store.flush().unwrap();
        let path = format!("keys/0000000000000000-{count:016x}.run");
        let mut bytes = Vec::new();
        let mut file = storage.read(Path::new(&path)).unwrap();
        file.read_to_end(&mut bytes).unwrap();
        let mut digests: Vec<_> = (0..count).map(|key| (digest(key), key + 1)).collect();
        digests.sort_unstable();
        assert_eq!(bytes, run_bytes(kept, &digests), "{kept:?} {count}");
    }
}
