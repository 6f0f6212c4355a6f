//! Sets of digests, against a plain set, after crashes and with damaged files.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use echoless::hash::{KeyDigest, KeyDigester};
use echoless::verified::DigestSet;
use echoless_durable::DigestStore;
use echoless_durable::storage::{RealStorage, Storage};
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
    let folder = Path::new("keys");
    let mut store = DigestStore::open(storage.clone(), folder, &digester(), committed).unwrap();
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
            prop_assert_eq!(store.len(), next);
            let all = found(&mut store, 0..next + 50);
            prop_assert_eq!(all, (0..next).collect());
            if commits {
                committed = store.flush().unwrap();
                prop_assert_eq!(committed, next);
                store.merge().unwrap();
                let keys = Path::new("keys");
                DigestStore::verify(storage.clone(), keys, &digester(), committed).unwrap();
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

/// The keys that a program appends between its commits.
const APPENDED: [std::ops::Range<u64>; 5] = [0..160, 200..290, 400..403, 600..604, 800..1000];

/// Opens the set at this commit, and checks what it has.
fn check(storage: &SimulatedStorage, committed: u64, told: usize) {
    let storage: Arc<dyn Storage> = Arc::new(storage.clone());
    let mut store = open_with(&storage, committed, 70);
    let kept = found(&mut store, 0..1100);
    let keys = APPENDED.into_iter().flatten();
    let expected = keys.take(committed as usize).collect();
    assert_eq!(kept, expected, "after {told} operations");
}

#[test]
fn every_crash_leaves_the_digests_of_the_last_commit() {
    let simulated = SimulatedStorage::new();
    let storage: Arc<dyn Storage> = Arc::new(simulated.clone());
    let mut store = open_with(&storage, 0, 70);
    // What the caller has committed, and the operations before.
    let mut commits = vec![(0, 0)];
    for keys in APPENDED {
        store.merge().unwrap();
        keys.for_each(|key| store.append(digest(key)).unwrap());
        let committed = store.flush().unwrap();
        commits.push((simulated.operations(), committed));
    }
    store.merge().unwrap();
    let mut states = 0;
    for state in simulated.crash_states() {
        let (at, mut done) = (state.operations, commits.iter().rev());
        let (_, committed) = *done.find(|(before, _)| *before <= at).unwrap();
        check(&state.storage, committed, at);
        // Opening it has removed files, and may be cut short, too.
        for again in state.storage.crash_states().filter(|_| states % 29 == 0) {
            check(&again.storage, committed, at);
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
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path().join("keys");
    let storage = Arc::new(RealStorage);
    let open = |digester: &KeyDigester, committed| {
        DigestStore::open(storage.clone(), &folder, digester, committed)
    };
    let mut store = open(&digester(), 0).unwrap();
    (0..3000).for_each(|key| store.append(digest(key)).unwrap());
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
        let read = DigestStore::verify(storage.clone(), &folder, &digester(), 3000);
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
    DigestStore::verify(storage.clone(), &folder, &digester(), 3000).unwrap();
}
