//! Keys in every form, filters and their states, against the library itself; and every error.

use echoless::{Filter as _, FilterSpec, KeyHash, KeyHasher, Verdicts};
use echoless_foreign::{
    CODES, Call, Code, Cut, Failure, Filter, Fixed, Hashes, Keys, Kind, Numbers, Object, Packed,
    ReportFields, Shared, Source, Table, Target, UNKNOWN_COUNT, hash_all,
};
use proptest::collection::vec;
use proptest::prelude::*;

const SPEC: &str = "fingerprint:fpr=1e-8,memory=64KiB";

fn hasher() -> KeyHasher {
    KeyHasher::seeded(7)
}

/// The object of some states, and the bytes that were saved with it.
fn load<'a>(
    kind: Kind,
    states: impl IntoIterator<Item = &'a [u8]>,
    hasher: KeyHasher,
    limit: u64,
) -> Result<(Vec<u8>, Object), Failure> {
    let stream = |state| -> Box<dyn std::io::Read + 'a> { Box::new(state) };
    let states = states.into_iter().map(stream).collect();
    Object::load(kind, Source::Streams(states), hasher, 1, limit)
}

fn words(keys: usize) -> Vec<u64> {
    vec![u64::MAX; keys.div_ceil(64)]
}

proptest! {
    /// Blocks end anywhere; the verdicts are those of the filter of the library, which gets all
    /// keys at a time.
    #[test]
    fn every_form_has_the_verdicts_of_the_library(
        ids in vec(0..3000_u64, 0..5000),
        split in any::<prop::sample::Index>(),
    ) {
        let bytes: Vec<u8> = ids.iter().flat_map(|id| id.to_le_bytes()).collect();
        let offsets: Vec<i32> = (0..=ids.len() as i32).map(|index| 8 * index).collect();
        let hashes: Vec<KeyHash> = bytes.chunks(8).map(|key| hasher().hash(key)).collect();
        let spec: FilterSpec = SPEC.parse().unwrap();
        let mut expected = Verdicts::new();
        spec.build().unwrap().observe(&hashes, &mut expected);

        let fixed = Fixed::new(&bytes, 8, 8, ids.len()).unwrap();
        let packed = Packed::new(&bytes, &offsets).unwrap();
        let forms: [&dyn Keys; 3] = [&fixed, &packed, &Hashes(&hashes)];
        for keys in forms {
            let mut buffer = Vec::new();
            prop_assert_eq!(hash_all(keys, &hasher(), &mut buffer), &hashes[..]);
            let mut filter = Filter::new(SPEC, hasher()).unwrap();
            let mut found = words(ids.len());
            let count = filter.observe(keys, None, &mut found).unwrap();
            prop_assert_eq!(&found[..], expected.words());
            prop_assert_eq!(count, expected.count_duplicates());
            let held = filter.contains(keys, &mut found).unwrap();
            prop_assert_eq!(held, found.iter().map(|word| u64::from(word.count_ones())).sum());
            prop_assert!(held >= count);
        }
        // In two calls, as numbers.
        let at = if ids.is_empty() { 0 } else { split.index(ids.len()) };
        let (one, two) = ids.split_at(at);
        let numbers: Vec<KeyHash> = ids.iter().map(|id| hasher().hash_u64(*id)).collect();
        spec.build().unwrap().observe(&numbers, &mut expected);
        let mut filter = Filter::new(SPEC, hasher()).unwrap();
        let mut count = 0;
        for part in [one, two] {
            count += filter.observe(&Numbers(part), None, &mut words(part.len())).unwrap();
        }
        prop_assert_eq!(count, expected.count_duplicates());
        let fields = ReportFields::from(&filter.report());
        prop_assert_eq!(fields.observed, ids.len() as u64);
        prop_assert_eq!(fields.fresh, ids.len() as u64 - count);
    }

    #[test]
    fn a_loaded_filter_goes_on_as_the_saved_one(
        ids in vec(0..4000_u64, 0..3000),
        cut in any::<prop::sample::Index>(),
        parts in 1..5_u64,
    ) {
        let cut = if ids.is_empty() { 0 } else { cut.index(ids.len()) };
        let mut filter = Filter::new(SPEC, hasher()).unwrap();
        filter.observe(&Numbers(&ids[..cut]), None, &mut words(cut)).unwrap();
        let lines = filter.lines().unwrap();
        let states: Vec<Vec<u8>> = (0..parts)
            .map(|part| {
                let range = lines * part / parts..lines * (part + 1) / parts;
                let mut state = Vec::new();
                filter.save(Some(range), &[part as u8], &mut state).unwrap();
                state
            })
            .collect();
        let reversed = states.iter().rev().map(|state| &state[..]);
        let (bytes, loaded) = load(Kind::Filter, reversed, hasher(), u64::MAX).unwrap();
        prop_assert_eq!(bytes, (0..parts as u8).collect::<Vec<_>>());
        let (mut one, mut two) = (words(ids.len() - cut), words(ids.len() - cut));
        filter.observe(&Numbers(&ids[cut..]), None, &mut one).unwrap();
        loaded.observe(Numbers(&ids[cut..]), &mut two).unwrap();
        prop_assert_eq!(one, two);
        let report = loaded.read_report().unwrap();
        prop_assert_eq!(filter.report().tally.fresh, report.tally.fresh);
    }
}

#[test]
fn ticks_are_those_of_each_key_in_every_block() {
    let spec = "clocked:window=100,refresh=false,form=line,memory=1MiB";
    let ids: Vec<u64> = (0..5000).map(|index| index % 150).collect();
    let ticks: Vec<u64> = (0..5000).collect();
    let mut filter = Filter::new(spec, hasher()).unwrap();
    let mut found = words(ids.len());
    // A key comes back after 150 ticks, and the window is 100.
    assert_eq!(
        filter
            .observe(&Numbers(&ids), Some(&ticks), &mut found)
            .unwrap(),
        0
    );
    assert_eq!(
        filter
            .observe(&Numbers(&ids[4900..]), None, &mut words(100))
            .unwrap(),
        100
    );
    filter.advance_to(5200);
    assert_eq!(filter.contains(&Numbers(&ids), &mut found).unwrap(), 0);
    assert_eq!(ReportFields::from(&filter.report()).window_ticks, 100);
}

#[test]
fn threads_of_a_shared_filter_find_each_key_fresh_once() {
    let shared = Shared::new("row2x32:memory=4MiB", hasher()).unwrap();
    let ids: Vec<u64> = (0..10_000).collect();
    let fresh: u64 = std::thread::scope(|scope| {
        let observe = || {
            let duplicates = shared.observe(&Numbers(&ids), None, &mut words(ids.len()));
            ids.len() as u64 - duplicates.unwrap()
        };
        let threads: Vec<_> = (0..3).map(|_| scope.spawn(observe)).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .sum()
    });
    assert_eq!(Some(fresh), shared.report().tally.fresh);
    assert!((9900..10_200).contains(&fresh), "{fresh}");
    assert_eq!(
        shared.contains(&Numbers(&[1, 77_777]), &mut [0]).unwrap(),
        1
    );
    shared.clear();
    assert_eq!(
        shared
            .contains(&Numbers(&ids), &mut words(ids.len()))
            .unwrap(),
        0
    );
    assert_eq!(shared.spec().to_string(), "row2x32:memory=4MiB");
}

#[test]
fn a_shared_filter_with_a_window_takes_ticks() {
    let shared = Shared::new("stamped:window=60,memory=1MiB", hasher()).unwrap();
    let mut found = [0];
    let ticks = Some(&[100, 160, 221][..]);
    assert_eq!(
        shared
            .observe(&Numbers(&[7; 3]), ticks, &mut found)
            .unwrap(),
        1
    );
    assert_eq!(found, [0b010]);
    let error = shared
        .observe(&Numbers(&[7; 2]), ticks, &mut found)
        .unwrap_err();
    assert_eq!(error.code, Code::InvalidArgument);
    shared.advance_to(1000);
    assert_eq!(shared.contains(&Numbers(&[7]), &mut found).unwrap(), 0);
    assert_eq!(ReportFields::from(&shared.report()).window_ticks, 60);
}

/// A writer that uses the filter which is being saved, itself and in another thread that it waits
/// for.
struct Using<'a>(&'a Shared, Vec<u8>);

impl std::io::Write for Using<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let other = || {
            assert!(
                self.0
                    .observe(&Numbers(&[1, 2, 7]), None, &mut [0])
                    .unwrap()
                    >= 2
            );
            assert_eq!(self.0.contains(&Numbers(&[1, 7]), &mut [0]).unwrap(), 2);
            assert_eq!(self.0.report().tally.fresh, Some(3));
            self.0.save(b"", std::io::sink()).unwrap();
        };
        other();
        std::thread::scope(|scope| scope.spawn(other).join().unwrap());
        self.1.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_shared_filter_is_saved_while_its_output_uses_it() {
    let shared = Shared::new("row2x32:memory=3MiB", hasher()).unwrap();
    shared.observe(&Numbers(&[1, 2]), None, &mut [0]).unwrap();
    let mut output = Using(&shared, Vec::new());
    shared.save(b"line 2", &mut output).unwrap();
    let state = output.1;

    let load = |kind, hasher, limit| load(kind, [&state[..]], hasher, limit);
    let (bytes, loaded) = load(Kind::Shared, hasher(), u64::MAX).unwrap();
    assert_eq!(bytes, b"line 2");
    assert_eq!(loaded.spec().unwrap(), shared.spec().to_string());
    assert_eq!(loaded.observe(Numbers(&[2, 3]), &mut [0]).unwrap(), 1);
    let failed = |result: Result<_, Failure>| result.map(drop).unwrap_err().code;
    assert_eq!(
        failed(load(Kind::Shared, KeyHasher::seeded(8), u64::MAX)),
        Code::StateMismatch
    );
    assert_eq!(
        failed(load(Kind::Shared, hasher(), 1 << 10)),
        Code::InvalidSpec
    );
    let lines = load(Kind::Filter, hasher(), u64::MAX);
    assert_eq!(failed(lines), Code::StateMismatch);
}

#[test]
fn counts_that_a_filter_does_not_keep_are_unknown() {
    let shared = Shared::new("row2x32:memory=64KiB", hasher()).unwrap();
    let fields = ReportFields::from(&shared.report());
    assert_eq!((fields.observed, fields.window_ticks), (UNKNOWN_COUNT, 0));
    assert!(fields.memory_bytes >= 64 << 10);
}

/// The verdicts of each kind are those of one filter, and so are its counts.
#[test]
fn objects_of_all_kinds_agree() {
    let ids: Vec<u64> = (0..5000).map(|index| index * 7919 % 3001).collect();
    let mut expected = words(ids.len());
    let filter = Object::new(Kind::Filter, SPEC, hasher(), 1).unwrap();
    let count = filter.observe(Numbers(&ids), &mut expected).unwrap();
    for kind in [Kind::Ordered, Kind::Engine] {
        let object = Object::new(kind, SPEC, hasher(), 2).unwrap();
        let access = object.open().unwrap();
        let mut found = words(ids.len());
        if kind == Kind::Engine {
            access.submit(Numbers(&ids)).unwrap();
            assert_eq!(access.call(Call::wait, 60_000), Ok(0));
            assert_eq!(access.drain(&mut found).unwrap(), (ids.len(), count));
        } else {
            assert_eq!(access.call(Call::take, 0), Ok(0));
            assert_eq!(access.observe(Numbers(&ids), &mut found).unwrap(), count);
        }
        assert_eq!(found, expected);
        let report = object.read_report().unwrap();
        assert_eq!(report.tally, filter.read_report().unwrap().tally);
        for call in [Call::memory_bytes, Call::advance, Call::take] {
            let is_right = call == Call::memory_bytes;
            let result = object.call(call, 1);
            assert_eq!(result.is_ok(), is_right, "{}", call.name());
            assert_eq!(
                result.ok() == filter.call(call, 1).ok(),
                is_right || call == Call::take
            );
        }
        assert_eq!(object.spec(), filter.spec());
    }
}

#[test]
fn an_ordered_filter_is_saved_with_the_position_of_its_cut() {
    let ordered = Object::new(Kind::Ordered, SPEC, hasher(), 3).unwrap();
    let thread = ordered.open().unwrap();
    thread.observe(Numbers(&[1, 2]), &mut [0]).unwrap();
    let mut state = Vec::new();
    let called = std::cell::RefCell::new(Vec::new());
    let cut = Cut {
        before: Box::new(|| called.borrow_mut().push("before")),
        position: Box::new(|| {
            called.borrow_mut().push("position");
            let inside = thread.observe(Numbers(&[3]), &mut [0]);
            assert_eq!(inside.unwrap_err().code, Code::Busy);
            Ok(b"line 2".to_vec())
        }),
    };
    let target = Target::Stream(None, Box::new(&mut state));
    ordered.save_at(target, cut).unwrap();
    assert_eq!(called.into_inner(), ["before", "position"]);
    for kind in [Kind::Filter, Kind::Ordered] {
        let (bytes, loaded) = load(kind, [&state[..]], hasher(), u64::MAX).unwrap();
        assert_eq!(bytes, b"line 2");
        let access = if kind == Kind::Filter {
            loaded
        } else {
            loaded.open().unwrap()
        };
        assert_eq!(access.observe(Numbers(&[1, 2, 3]), &mut [0]).unwrap(), 2);
    }
    let failed = Cut {
        before: Box::new(|| ()),
        position: Box::new(|| Err(Failure::new(Code::Io, "no position"))),
    };
    let mut state = Vec::new();
    let target = Target::Stream(None, Box::new(&mut state));
    assert_eq!(
        ordered.save_at(target, failed).unwrap_err().text,
        "no position"
    );
    // What reached the stream is no state, or the filter would go on at no position.
    let loaded = load(Kind::Ordered, [&state[..]], hasher(), u64::MAX);
    assert_eq!(loaded.err().unwrap().code, Code::InvalidState);
}

#[test]
fn a_batch_of_too_many_keys_is_no_panic() {
    for kind in [Kind::Ordered, Kind::Engine] {
        let object = Object::new(kind, SPEC, hasher(), 2).unwrap();
        let access = object.open().unwrap();
        for count in [1 << 31, 1 << 40] {
            let keys = Fixed::new(&[], 0, 0, count).unwrap();
            let failed = match kind {
                Kind::Engine => access.submit(keys).unwrap_err(),
                _ => {
                    let mut duplicates = vec![0; 1 << 25];
                    access.observe(keys, &mut duplicates).unwrap_err()
                }
            };
            assert_eq!(failed.code, Code::InvalidArgument, "{failed}");
            if kind == Kind::Ordered {
                break;
            }
        }
    }
}

#[test]
fn what_cannot_be_saved_begins_no_file() {
    let folder = std::env::temp_dir().join(format!("echoless-{}-no-file", std::process::id()));
    let engine = Object::new(Kind::Engine, SPEC, hasher(), 2).unwrap();
    let target = || Target::File(folder.join("state"));
    let failed = engine.save(target(), b"").unwrap_err();
    assert_ne!(failed.code, Code::Io, "{failed}");
}

#[test]
fn every_error_has_its_code_and_says_what_is_allowed() {
    let failed = |result: Result<Filter, Failure>| result.unwrap_err();
    let cases = [
        ("nonsense:memory=1MiB", Code::InvalidSpec, "nonsense"),
        ("fingerprint:fpr=1e-8", Code::InvalidSpec, "missing memory"),
        (
            "fingerprint:memory=64KiB,k=5",
            Code::InvalidSpec,
            "expected one of",
        ),
        (
            "fingerprint:memory=256GiB",
            Code::OutOfMemory,
            "cannot allocate",
        ),
    ];
    for (spec, code, text) in cases {
        let failure = failed(Filter::new(spec, hasher()));
        assert_eq!(failure.code, code, "{failure}");
        assert!(failure.text.contains(text), "{failure}");
    }
    let mut filter = Filter::new(SPEC, hasher()).unwrap();
    let keys = Numbers(&[1, 2]);
    for (ticks, masks, text) in [
        (
            None,
            0,
            "invalid length of duplicates=0 words: expected 1 for 2 keys",
        ),
        (
            None,
            2,
            "invalid length of duplicates=2 words: expected 1 for 2 keys",
        ),
        (
            Some(&[1][..]),
            1,
            "invalid number of ticks=1: expected 2, one for each key",
        ),
    ] {
        let failure = filter
            .observe(&keys, ticks, &mut vec![0; masks])
            .unwrap_err();
        assert_eq!(
            (failure.code, &*failure.text),
            (Code::InvalidArgument, text)
        );
    }
    assert_eq!(
        filter.report().tally.observed,
        Some(0),
        "nothing was judged"
    );
    for (failure, text) in [
        (
            Fixed::new(b"abcdef", 4, 3, 1).err(),
            "invalid stride=3: expected at least",
        ),
        (
            Fixed::new(b"abcdef", 4, 4, 2).err(),
            "invalid count=2: expected as many as 6 bytes have",
        ),
        (
            Fixed::new(b"", 1, usize::MAX, 3).err(),
            "invalid count=3: expected as many as 0",
        ),
        (
            Packed::<i32>::new(b"", &[]).err(),
            "invalid offsets=0: expected one more than keys",
        ),
        (
            Packed::new(b"ab", &[0, 3]).err(),
            "invalid offset=number 1: expected ascending offsets",
        ),
        (
            Packed::new(b"ab", &[-1, 1]).err(),
            "invalid offset=number 0: expected ascending offsets",
        ),
        (
            Packed::new(b"ab", &[2, 1]).err(),
            "invalid offset=number 1: expected ascending offsets",
        ),
    ] {
        let failure = failure.unwrap();
        assert_eq!(failure.code, Code::InvalidArgument);
        assert!(failure.text.starts_with(text), "{failure}");
    }

    let mut state = Vec::new();
    filter.save(None, b"", &mut state).unwrap();
    let failed = |result: Result<(Vec<u8>, Object), Failure>| result.map(drop).unwrap_err();
    let load = |state, hasher, limit| load(Kind::Filter, [state], hasher, limit);
    assert!(load(&state, hasher(), u64::MAX).is_ok());
    let other = KeyHasher::seeded(8);
    assert_eq!(
        failed(load(&state, other, u64::MAX)).code,
        Code::StateMismatch
    );
    assert_eq!(
        failed(load(&state, hasher(), 1 << 10)).code,
        Code::InvalidSpec
    );
    assert_eq!(
        failed(load(&state[..100], hasher(), u64::MAX)).code,
        Code::InvalidState
    );
    let parts = Source::Streams(Vec::new());
    let none = failed(Object::load(Kind::Filter, parts, hasher(), 1, u64::MAX));
    assert_eq!(none.text, "invalid parts=0: expected one state or more");
    let two = Object::new(Kind::Filter, SPEC, hasher(), 2).unwrap_err();
    assert!(
        two.text.starts_with("invalid partitions=2: expected 1"),
        "{two}"
    );
}

#[test]
fn the_numbers_of_codes_never_change() {
    let numbers: Vec<i32> = CODES.iter().map(|code| code.number()).collect();
    assert_eq!(numbers, (1..=15).collect::<Vec<_>>());
    assert_eq!(
        (Code::InvalidArgument.number(), Code::Forked.number()),
        (1, 11)
    );
    assert_eq!((Code::TimedOut.number(), Code::Panicked.number()), (12, 15));
}

/// `tools/java` has the same keys and numbers in `FilterTest`.
#[test]
fn hashes_and_verdicts_of_a_fixed_stream_never_change() {
    let hasher = KeyHasher::seeded(0);
    assert_eq!(hasher.hash(b"call 17").get(), 0xe7e2_39d5_637d_0702);
    let keys: Vec<KeyHash> = (0..60_000)
        .map(|number| KeyHash::from_uniform(mix(7919 * number % 20_011)))
        .collect();
    // Fewer slots than keys, so that some duplicates are missed.
    let mut filter = Filter::new(SPEC, hasher).unwrap();
    let mut found = words(keys.len());
    let count = filter.observe(&Hashes(&keys), None, &mut found).unwrap();
    let folded = found.iter().fold(0, |folded: u64, word| {
        folded.wrapping_mul(31).wrapping_add(*word)
    });
    assert_eq!((count, folded), (7141, 0xd790_0864_e0f2_3f67));
}

/// A mix of 64 bits (splitmix64).
fn mix(number: u64) -> u64 {
    let mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

/// What the caller passes is repeated in no text as it is.
#[test]
fn texts_of_errors_are_one_line() {
    let nasty = "a\nb\r\u{1b}[2J\u{202e}c\u{2028}d\u{9b}\0";
    let path = std::path::Path::new("/nowhere").join(nasty.replace('\0', ""));
    let new = |spec: &str| Filter::new(spec, hasher()).unwrap_err();
    for failure in [
        new(nasty),
        new(&format!("fingerprint:memory=1MiB,{nasty}=1")),
        new(&format!("fingerprint:memory={nasty}")),
        Shared::new(nasty, hasher()).unwrap_err(),
        Failure::argument("name", nasty, nasty),
        Failure::new(Code::Io, nasty).of_path(&path),
        Failure::from(std::io::Error::other(nasty)),
        Object::load(
            Kind::Filter,
            Source::File(path.clone()),
            hasher(),
            1,
            u64::MAX,
        )
        .unwrap_err(),
        Object::new(Kind::Filter, SPEC, hasher(), 1)
            .unwrap()
            .save(Target::File(path), b"")
            .unwrap_err(),
        echoless_foreign::catch::<()>(|| panic!("{nasty}")).unwrap_err(),
    ] {
        let text = &failure.text;
        assert_eq!(&echoless::message::without_controls(text), text);
        assert!(text.contains(r"a\nb"), "{text}");
    }
}

/// Threads that have ended leave nothing behind that later ones miss, and there is room for many
/// that live at the same time.
#[test]
fn a_table_has_room_for_the_handles_of_many_threads() {
    static TABLE: Table<usize> = Table::new(1, "number");
    let insert = |number: usize| {
        let handle = TABLE.insert(number)?;
        assert_eq!(*TABLE.get(handle.number())?, number);
        Ok::<_, Failure>(handle)
    };
    // One after the other, which leave their handles behind.
    let mut handles = Vec::new();
    for number in 0..5000 {
        let thread = std::thread::spawn(move || insert(number));
        handles.push(thread.join().unwrap().unwrap());
    }
    for (number, handle) in handles.into_iter().enumerate() {
        assert_eq!(*TABLE.get(handle.number()).unwrap(), number);
        TABLE.remove(handle.number()).unwrap();
        assert!(TABLE.get(handle.number()).is_err());
    }
    // At the same time; a machine may allow fewer.
    let (ended, all) = (
        std::sync::RwLock::new(()),
        std::sync::Mutex::new(Vec::new()),
    );
    let end = ended.write().unwrap();
    std::thread::scope(|scope| {
        let mut threads = 0;
        while threads < 4300 {
            let run = || {
                let number = all.lock().unwrap().len();
                let handle = insert(number);
                all.lock().unwrap().push(handle.clone());
                drop(ended.read());
                TABLE.remove(handle.unwrap().number()).unwrap();
            };
            let builder = std::thread::Builder::new().stack_size(64 << 10);
            if builder.spawn_scoped(scope, run).is_err() {
                println!("SKIPPED more than {threads} threads: the system allows no more");
                break;
            }
            threads += 1;
        }
        while all.lock().unwrap().len() < threads {
            std::thread::yield_now();
        }
        drop(end);
    });
    assert!(all.into_inner().unwrap().iter().all(Result::is_ok));
}
