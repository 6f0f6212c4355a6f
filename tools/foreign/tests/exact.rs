//! Filters without errors, against a plain set: in memory, in a folder, after saves and without.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use echoless::{KeyHash, KeyHasher};
use echoless_foreign::{
    Call, Code, Failure, Fixed, Hashes, Keys, Kind, Numbers, Object, Packed, Source, Target,
};
use proptest::collection::vec;
use proptest::prelude::*;

/// Four lines: most keys are looked up.
const SPEC: &str = "fingerprint:memory=256";

fn hasher() -> KeyHasher {
    KeyHasher::seeded(7)
}

fn exact(spec: &str) -> Result<Object, Failure> {
    Object::new(Kind::Exact, spec, hasher(), 1)
}

fn load(folder: &Path) -> Result<(Vec<u8>, Object), Failure> {
    let from = Source::File(folder.to_owned());
    Object::load(Kind::Exact, from, hasher(), 1, u64::MAX)
}

fn save(object: &Object, folder: &Path, bytes: &[u8]) -> Result<(), Failure> {
    object.save(Target::File(folder.to_owned()), bytes)
}

/// The keys in a form of bytes.
struct Texts {
    bytes: Vec<u8>,
    offsets: Vec<i64>,
}

impl Texts {
    fn new(keys: &[u64]) -> Self {
        let (mut bytes, mut offsets) = (Vec::new(), vec![0]);
        for key in keys {
            bytes.extend(format!("key {key}").bytes());
            offsets.push(bytes.len() as i64);
        }
        Self { bytes, offsets }
    }

    fn keys(&self) -> Packed<'_, i64> {
        Packed::new(&self.bytes, &self.offsets).unwrap()
    }
}

fn bits(words: &[u64], keys: usize) -> Vec<bool> {
    (0..keys)
        .map(|key| words[key / 64] >> (key % 64) & 1 == 1)
        .collect()
}

/// What a call that judges these keys writes.
fn judged(
    keys: impl Keys,
    judge: impl FnOnce(&dyn Keys, &mut [u64]) -> Result<u64, Failure>,
) -> Vec<bool> {
    let mut words = vec![u64::MAX; keys.len().div_ceil(64)];
    let count = judge(&keys, &mut words).unwrap();
    let found = bits(&words, keys.len());
    assert_eq!(count, found.iter().filter(|bit| **bit).count() as u64);
    found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn verdicts_are_those_of_a_set_that_was_saved(
        steps in vec((vec(0_u64..900, 0..400), 0_u8..8), 1..12),
        spec in prop::sample::select(vec![SPEC, "fingerprint:memory=1MiB"]),
        numbers: bool,
    ) {
        let temporary = tempfile::tempdir().unwrap();
        let folder = temporary.path().join("keys of calls");
        let mut object = exact(spec).unwrap();
        let mut model = HashSet::new();
        let mut saved = None;
        for (step, (keys, does)) in steps.iter().enumerate() {
            let texts = Texts::new(keys);
            let forms: [&dyn Keys; 2] = [&texts.keys(), &Numbers(keys)];
            let keys_of_call = forms[usize::from(numbers)];
            let before = keys.iter().map(|key| model.contains(key)).collect::<Vec<_>>();
            let held = judged(keys_of_call, |keys, words| object.contains(keys, words));
            prop_assert_eq!(held, before);
            let expected: Vec<bool> = keys.iter().map(|key| !model.insert(*key)).collect();
            let found = judged(keys_of_call, |keys, words| object.observe(keys, words));
            prop_assert_eq!(found, expected);
            let report = object.read_report().unwrap();
            prop_assert_eq!(report.tally.fresh, Some(model.len() as u64));
            if does & 1 == 1 {
                save(&object, &folder, &[step as u8]).unwrap();
                saved = Some((model.clone(), vec![step as u8]));
            }
            // As after a kill, or in the next program.
            if let Some((kept, bytes)) = saved.as_ref().filter(|_| does & 2 == 2) {
                drop(object);
                let loaded = load(&folder).unwrap();
                prop_assert_eq!(&loaded.0, bytes);
                object = loaded.1;
                model.clone_from(kept);
            }
        }
    }
}

#[test]
fn keys_of_one_form_are_those_of_another_and_numbers_are_their_own() {
    let object = exact("fingerprint:memory=64KiB").unwrap();
    let ids: Vec<u64> = (0..1000).collect();
    let bytes: Vec<u8> = ids.iter().flat_map(|id| id.to_le_bytes()).collect();
    let offsets: Vec<i32> = (0..=1000).map(|index| 8 * index).collect();
    let fixed = Fixed::new(&bytes, 8, 8, 1000).unwrap();
    let packed = Packed::new(&bytes, &offsets).unwrap();
    let fresh = judged(fixed, |keys, words| object.observe(keys, words));
    assert!(!fresh.contains(&true));
    let again = judged(packed, |keys, words| object.observe(keys, words));
    assert!(!again.contains(&false));
    let numbers = judged(Numbers(&ids), |keys, words| object.observe(keys, words));
    assert!(!numbers.contains(&true));
}

#[test]
fn keys_of_one_hash_are_all_fresh() {
    // Half of the bytes of each are a constant of the hash, which then multiplies by 0.
    let constant = 0xe703_7ed1_a0b4_28db_u64;
    let halves = [(constant >> 32) as u32, constant as u32].map(u32::to_le_bytes);
    let keys: Vec<u8> = (0..5000_u64)
        .flat_map(|key| {
            let free = key.to_le_bytes();
            [
                halves[0],
                [free[0], free[1], 0, 0],
                halves[1],
                [free[2], 1, 0, 0],
            ]
            .concat()
        })
        .collect();
    let object = Object::new(Kind::Exact, SPEC, KeyHasher::seeded(0), 1).unwrap();
    let keys = Fixed::new(&keys, 16, 16, 5000).unwrap();
    let mut hashes = vec![KeyHash::default(); 5000];
    object.hash(keys, &mut hashes).unwrap();
    assert!(hashes.iter().all(|hash| *hash == hashes[0]));
    let found = judged(keys, |keys, words| object.observe(keys, words));
    assert!(!found.contains(&true));
    let found = judged(keys, |keys, words| object.observe(keys, words));
    assert!(!found.contains(&false));
}

#[test]
fn more_keys_than_a_block_are_judged_in_their_order() {
    let object = exact("fingerprint:memory=4MiB").unwrap();
    let keys: Vec<u64> = (0..100_000).map(|at| at * at % 70_001).collect();
    let mut model = HashSet::new();
    let expected: Vec<bool> = keys.iter().map(|key| !model.insert(*key)).collect();
    let found = judged(Numbers(&keys), |keys, words| object.observe(keys, words));
    assert!(found == expected);
}

#[test]
fn what_has_no_digest_or_no_folder_is_an_error() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path().join("state");
    let object = exact(SPEC).unwrap();
    let text = |failure: Failure| (failure.code, failure.text);
    let hashes = [KeyHash::from_uniform(1)];
    let failure = object.observe(Hashes(&hashes), &mut [0]).unwrap_err();
    assert_eq!(
        text(failure),
        (
            Code::InvalidArgument,
            "invalid keys=hashes: expected the keys themselves, for a filter without errors".into()
        )
    );
    let mut out = Vec::new();
    let stream = Target::Stream(None, Box::new(&mut out));
    let failure = object.save(stream, b"").unwrap_err();
    assert!(failure.text.contains("the path of a folder"), "{failure}");
    let from = Source::Streams(vec![Box::new(&b""[..])]);
    let failure = Object::load(Kind::Exact, from, hasher(), 1, u64::MAX).unwrap_err();
    assert!(failure.text.contains("the path of a folder"), "{failure}");
    for spec in [
        "stamped:window=9,memory=1KiB",
        "clocked:window=9,memory=1KiB",
    ] {
        let failure = exact(spec).unwrap_err();
        assert_eq!(failure.code, Code::InvalidSpec);
        assert!(
            failure
                .text
                .ends_with("expected a filter without a window that counts what it evicts")
        );
    }
    let failure = Object::new(Kind::Exact, SPEC, hasher(), 2).unwrap_err();
    assert!(failure.text.contains("invalid partitions=2"), "{failure}");
    assert_eq!(load(&folder).unwrap_err().code, Code::Io);
    assert!(!folder.exists(), "a load has made a folder");
    // Files of others are left alone.
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("notes"), "theirs").unwrap();
    let failure = save(&object, &folder, b"").unwrap_err();
    assert!(
        failure
            .text
            .contains("expected a new folder, or an empty one"),
        "{failure}"
    );
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "no lock is left");
    let failure = save(&object, &folder.join("notes"), b"").unwrap_err();
    assert_eq!(failure.code, Code::Io);
    assert_eq!(fs::read(folder.join("notes")).unwrap(), b"theirs");
    assert_eq!(object.call(Call::advance, 9).unwrap(), 0);
    assert_eq!(object.call(Call::memory_bytes, 0).unwrap(), 256);
}

/// What it leaves is that of a save without the file `filter`, and with an empty lock.
#[test]
fn a_folder_is_as_new_after_a_first_save_that_was_killed() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path().join("state");
    let texts = Texts::new(&(0..3000).collect::<Vec<_>>());
    let duplicates = |object: &Object| {
        let found = judged(texts.keys(), |keys, words| object.observe(keys, words));
        found.iter().filter(|bit| **bit).count()
    };
    let killed = exact(SPEC).unwrap();
    assert_eq!(duplicates(&killed), 0);
    save(&killed, &folder, b"").unwrap();
    drop(killed);
    let keys = folder.join("keys");
    // A commit that is lost takes no keys with it.
    fs::rename(folder.join("filter"), temporary.path().join("backup")).unwrap();
    let object = exact(SPEC).unwrap();
    let lost = "state/filter: it is missing: restore it, or remove its folder to begin anew";
    for failure in [
        save(&object, &folder, b"").unwrap_err(),
        load(&folder).unwrap_err(),
    ] {
        assert_eq!(failure.code, Code::InvalidState);
        assert!(failure.text.ends_with(lost), "{failure}");
    }
    assert_eq!(fs::read_dir(&keys).unwrap().count(), 1);
    fs::write(folder.join("lock"), "").unwrap();
    fs::write(folder.join(".echoless-4711-0.new"), "half").unwrap();
    let run = fs::read_dir(&keys).unwrap().next().unwrap().unwrap().path();
    let cut = &fs::read(&run).unwrap()[..99];
    fs::write(run.with_extension("run.new"), cut).unwrap();
    let failure = load(&folder).unwrap_err();
    assert_eq!(failure.code, Code::Io);
    assert!(failure.text.contains("state/filter: "), "{failure}");

    // A folder of others may have such names.
    for others in ["keys", ".echoless-4711-0.new"] {
        let folder = temporary.path().join(format!("of others {others}"));
        fs::create_dir_all(folder.join(others)).unwrap();
        assert!(save(&object, &folder, b"").is_err());
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
    }
    assert_eq!(duplicates(&object), 0);
    save(&object, &folder, b"here").unwrap();
    drop(object);
    let mut names: Vec<_> = fs::read_dir(&folder).unwrap().collect();
    assert_eq!(names.len(), 3, "{names:?}");
    let (bytes, object) = load(&folder).unwrap();
    assert_eq!((&bytes[..], duplicates(&object)), (&b"here"[..], 3000));
    // A later save that was killed.
    drop(object);
    fs::write(folder.join(".echoless-4712-1.new"), cut).unwrap();
    let (bytes, object) = load(&folder).unwrap();
    assert_eq!(bytes, b"here");
    names = fs::read_dir(&folder).unwrap().collect();
    assert_eq!(names.len(), 3, "{names:?}");
    // In a folder with files of others it may be one that they write.
    drop(object);
    fs::write(folder.join(".echoless-4712-2.new"), "theirs").unwrap();
    fs::write(folder.join("theirs"), "").unwrap();
    assert!(load(&folder).is_ok());
    assert_eq!(
        fs::read(folder.join(".echoless-4712-2.new")).unwrap(),
        b"theirs"
    );
}

#[test]
fn a_folder_is_of_one_filter_and_damage_is_an_error() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path().join("state");
    let object = exact(SPEC).unwrap();
    let texts = Texts::new(&(0..3000).collect::<Vec<_>>());
    let observe = |object: &Object| {
        let found = judged(texts.keys(), |keys, words| object.observe(keys, words));
        found.iter().filter(|bit| **bit).count()
    };
    assert_eq!(observe(&object), 0);
    object.call(Call::clear, 0).unwrap();
    assert_eq!(observe(&object), 0);
    save(&object, &folder, b"here").unwrap();
    let failure = object.call(Call::clear, 0).unwrap_err();
    assert_eq!(failure.code, Code::Unsupported);
    assert_eq!(load(&folder).unwrap_err().code, Code::Busy);
    let other = temporary.path().join("other");
    let failure = save(&object, &other, b"").unwrap_err();
    assert!(
        failure.text.contains("where it was saved before"),
        "{failure}"
    );
    assert!(!other.exists());
    drop(object);
    let failure = save(&exact(SPEC).unwrap(), &folder, b"").unwrap_err();
    assert!(
        failure.text.contains("what was saved is loaded first"),
        "{failure}"
    );
    let from = || Source::File(folder.clone());
    let of_seed = Object::load(Kind::Exact, from(), KeyHasher::seeded(8), 1, u64::MAX);
    assert_eq!(of_seed.unwrap_err().code, Code::StateMismatch);
    let limited = Object::load(Kind::Exact, from(), hasher(), 1, 255);
    assert_eq!(limited.unwrap_err().code, Code::InvalidSpec);
    let (bytes, object) = load(&folder).unwrap();
    assert_eq!((&bytes[..], observe(&object)), (&b"here"[..], 3000));
    drop(object);
    // The file of a filter that makes errors.
    let state = folder.join("filter");
    let whole = fs::read(&state).unwrap();
    let plain = Object::new(Kind::Filter, SPEC, hasher(), 1).unwrap();
    save(&plain, &state, b"here").unwrap();
    let failure = load(&folder).unwrap_err();
    assert_eq!(failure.code, Code::InvalidState);
    fs::write(&state, &whole).unwrap();
    let keys = fs::read_dir(folder.join("keys"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let mut bytes = fs::read(&keys).unwrap();
    bytes[50] ^= 1;
    fs::write(&keys, &bytes).unwrap();
    let (_, object) = load(&folder).unwrap();
    let mut words = vec![0; 3000_usize.div_ceil(64)];
    let failure = object.observe(texts.keys(), &mut words).unwrap_err();
    assert_eq!(failure.code, Code::InvalidState);
    assert!(failure.text.contains("its block 0 is damaged"), "{failure}");
    let failure = save(&object, &folder, b"").unwrap_err();
    assert_eq!(
        failure.text,
        "the filter has failed before: load it as it was last saved"
    );
    drop(object);
    bytes[50] ^= 1;
    fs::write(&keys, &bytes).unwrap();
    assert_eq!(observe(&load(&folder).unwrap().1), 3000);
}
