//! States of journals, journals of states, and what both say about themselves.

use std::path::Path;
use std::sync::Arc;

use crate::simulated::SimulatedStorage;
use echoless::filters::lines::Progress;
use echoless::state::{Header, StateWriter};
use echoless::{FilterSpec, SharedSpec};
use echoless_durable::storage::Storage;
use echoless_durable::{JournalError, import, show, verify};

use crate::program::{FOLDER, OUTPUT, Program, hasher};
use crate::support::read;

const STATE: &str = "state";

/// Exports a journal into a file.
fn export(storage: &dyn Storage, folder: &Path, state: &Path) -> Result<(), JournalError> {
    let mut bytes = Vec::new();
    echoless_durable::export(storage, folder, state, &mut bytes)?;
    let _ = storage.remove(state);
    storage.create(state).unwrap().write_all(&bytes).unwrap();
    Ok(())
}

/// A program that has run to its end.
fn run(spec: &str) -> (Program, SimulatedStorage) {
    let program = Program {
        most_log_bytes: 1000,
        ..Program::new(spec)
    };
    let storage = SimulatedStorage::new();
    program.finish(&storage, &program.expected()).unwrap();
    (program, storage)
}

#[test]
fn a_journal_becomes_a_state_and_a_state_a_journal() {
    for spec in ["fingerprint:memory=4KiB", "clocked:window=40,memory=4KiB"] {
        let (mut program, storage) = run(spec);
        let all = program.clone();
        export(&storage, Path::new(FOLDER), Path::new(STATE)).unwrap();

        // What the library saves of the same filter has the same bytes.
        program.partitions = 1;
        let mut opened = program.open(Arc::new(storage.clone())).unwrap();
        let bytes = opened.commit.take().unwrap().bytes;
        let mut saved = Vec::new();
        let filters = opened.filter.filters_mut();
        program
            .spec
            .save(filters, &hasher(), &bytes, &mut saved)
            .unwrap();
        drop(opened);
        let state = read(&storage, STATE);
        assert!(state == saved, "{spec}");

        // Elsewhere, the program goes on where it was.
        let other = SimulatedStorage::new();
        for (name, bytes) in [(STATE, &state), (OUTPUT, &read(&storage, OUTPUT))] {
            other
                .create(Path::new(name))
                .unwrap()
                .write_all(bytes)
                .unwrap();
        }
        import(&other, Path::new(STATE), Path::new(FOLDER)).unwrap();
        program
            .batches
            .extend(all.batches.iter().map(|(keys, ticks)| {
                let ticks = ticks.iter().map(|tick| tick + 77);
                (keys.iter().rev().copied().collect(), ticks.collect())
            }));
        let expected = program.expected();
        assert_eq!(
            program.check(&other, &expected, all.batches.len()),
            Ok(all.batches.len())
        );
        program.finish(&other, &expected).unwrap();
    }
}

#[test]
fn a_journal_replaces_no_journal() {
    let (program, storage) = run("fingerprint:memory=2KiB");
    let (folder, state) = (Path::new(FOLDER), Path::new(STATE));
    export(&storage, folder, state).unwrap();
    verify(&storage, state).unwrap();
    let error = import(&storage, state, folder).unwrap_err();
    assert!(matches!(error, JournalError::Occupied(path) if path == folder));
    let _opened = program.open(Arc::new(storage.clone())).unwrap();
    let error = export(&storage, folder, state).unwrap_err();
    assert!(matches!(error, JournalError::Locked(_)));
}

#[test]
fn a_part_of_a_filter_becomes_no_journal() {
    let storage = SimulatedStorage::new();
    let spec: FilterSpec = "fingerprint:memory=2KiB".parse().unwrap();
    let mut bytes = Vec::new();
    let mut filters = [spec.build_lines().unwrap()];
    spec.save_part(&mut filters, 0..8, &hasher(), b"", &mut bytes)
        .unwrap();
    storage
        .create(Path::new(STATE))
        .unwrap()
        .write_all(&bytes)
        .unwrap();
    let error = import(&storage, Path::new(STATE), Path::new(FOLDER)).unwrap_err();
    assert_eq!(error.to_string(), "state: it is a part of a filter");
    assert_eq!(verify(&storage, Path::new(STATE)).unwrap().part, (0, 8));
}

#[test]
fn the_state_of_a_shared_filter_says_what_it_holds_and_becomes_no_journal() {
    let (storage, state) = (SimulatedStorage::new(), Path::new(STATE));
    let spec: SharedSpec = "row2x32:memory=4KiB".parse().unwrap();
    let filter = spec.build().unwrap();
    for key in 0..100 {
        filter.observe_one(hasher().hash_u64(key % 60));
    }
    let mut file = storage.create(state).unwrap();
    let mut bytes = Vec::new();
    filter.save(&hasher(), b"caller", &mut bytes).unwrap();
    file.write_all(&bytes).unwrap();

    let shown = show(&storage, state).unwrap();
    assert_eq!(shown.spec.to_string(), "row2x32:memory=4KiB");
    assert_eq!((shown.lines, shown.observed, shown.fresh), (64, None, 60));
    assert_eq!(shown.fill, filter.report().fill());
    let json = serde_json::to_value(&shown).unwrap();
    assert_eq!(json["spec"], "row2x32:memory=4KiB");
    let verified = verify(&storage, state).unwrap();
    assert_eq!((verified.fill, &verified.files), (None, &shown.files));
    assert_eq!(shown.files[0].block_lines, 64);
    let error = import(&storage, state, Path::new(FOLDER)).unwrap_err();
    let text = "state: invalid state with a shared filter: expected a filter in lines";
    assert_eq!(error.to_string(), text);
}

/// What a load rejects, though every checksum is right.
#[test]
fn states_that_no_load_accepts_are_not_verified() {
    let spec: FilterSpec = "fingerprint:memory=2KiB".parse().unwrap();
    let lines = [echoless::memory::Line::EMPTY; 32];
    let verified = |blocks: &[usize], commits: usize| {
        let header = Header::new(&spec, &hasher()).unwrap();
        let mut writer = StateWriter::new(Vec::new(), &header).unwrap();
        for count in blocks {
            writer.append_block(0, 0, &lines[..*count]).unwrap();
        }
        for _ in 0..commits {
            writer.append_commit(Progress::default(), b"").unwrap();
        }
        let (storage, path) = (SimulatedStorage::new(), Path::new(STATE));
        let mut file = storage.create(path).unwrap();
        file.write_all(&writer.end().unwrap()).unwrap();
        verify(&storage, path).map_err(|error| error.to_string())
    };
    assert_eq!(verified(&[32], 1).unwrap().files[0].block_lines, 32);
    for (blocks, commits, text) in [
        (&[32][..], 0, "state: it has no commit"),
        (&[32], 2, "state: sections follow its commit"),
        (&[31], 1, "state: it has no blocks of some lines"),
        (&[], 1, "state: it has no blocks of some lines"),
    ] {
        assert_eq!(verified(blocks, commits).unwrap_err(), text);
    }
}

#[test]
fn a_journal_and_its_state_say_what_they_hold() {
    let (program, storage) = run("clocked:window=40,memory=4KiB");
    let expected = program.expected().pop().unwrap();
    let (folder, state) = (Path::new(FOLDER), Path::new(STATE));
    export(&storage, folder, state).unwrap();
    let shown = show(&storage, folder).unwrap();
    assert_eq!(
        (shown.lines, shown.memory_bytes, shown.part),
        (64, 4096, (0, 64))
    );
    assert_eq!(shown.spec.to_string(), program.spec.to_string());
    assert_eq!(shown.hasher, format!("{:016x}", hasher().id()));
    let progress = expected.progress;
    assert_eq!(
        (shown.observed, shown.fresh),
        (Some(progress.observed), progress.fresh)
    );
    assert_eq!(
        (shown.evictions, shown.clock),
        (progress.evictions, progress.tick)
    );
    assert_eq!(
        shown.caller[..8],
        (program.batches.len() as u64).to_le_bytes()
    );
    let fill = shown.fill.unwrap();
    assert!(fill > 0.01 && fill < 1.0, "{fill}");
    for file in &shown.files {
        assert_eq!(file.bytes, storage.size(&file.path).unwrap());
        assert!(file.commits > 0);
    }
    let names = storage.list(folder).unwrap();
    assert_eq!(shown.files.len(), names.len() - 1);

    let of_state = show(&storage, state).unwrap();
    let mut verified = verify(&storage, state).unwrap();
    assert_eq!((verified.fill, of_state.fill), (None, Some(fill)));
    let fpr = of_state.expected_fpr.unwrap();
    assert!(fpr > 0.0 && fpr < 1e-3, "{fpr}");
    assert_eq!(
        (verified.expected_fpr, shown.expected_fpr),
        (None, Some(fpr))
    );
    verified.fill = of_state.fill;
    verified.expected_fpr = of_state.expected_fpr;
    assert_eq!(verified, of_state);
    assert_eq!(
        (of_state.caller, of_state.clock),
        (shown.caller, shown.clock)
    );
    assert_eq!(
        (of_state.files[0].block_lines, of_state.files[0].keys),
        (64, 0)
    );

    let json = serde_json::to_value(show(&storage, folder).unwrap()).unwrap();
    assert_eq!(json["observed"], progress.observed);
    assert_eq!(json["spec"]["filter"], "clocked");
    // Sixteen bytes that are no text.
    assert_eq!(json["caller"].as_str().unwrap().len(), 32);
}

#[test]
fn what_is_neither_a_journal_nor_a_state_is_rejected() {
    let storage = SimulatedStorage::new();
    storage.create_folder(Path::new(FOLDER)).unwrap();
    let message = |result: Result<_, JournalError>| result.map(|_| ()).unwrap_err().to_string();
    assert_eq!(
        message(verify(&storage, Path::new(FOLDER))),
        "journal: it has no journal"
    );
    let state = Path::new(STATE);
    let exported = export(&storage, Path::new(FOLDER), state).unwrap_err();
    assert_eq!(exported.to_string(), "journal: it has no journal");
    assert!(message(show(&storage, state)).starts_with("state: "));
    storage
        .create(state)
        .unwrap()
        .write_all(b"other bytes")
        .unwrap();
    assert!(message(show(&storage, state)).starts_with("state: "));

    // Every truncation of a state.
    let (_, storage) = run("fingerprint:memory=1KiB");
    export(&storage, Path::new(FOLDER), state).unwrap();
    let bytes = read(&storage, STATE);
    for size in 0..bytes.len() {
        storage.remove(state).unwrap();
        storage
            .create(state)
            .unwrap()
            .write_all(&bytes[..size])
            .unwrap();
        let error = message(verify(&storage, state));
        assert!(error.starts_with("state: "), "{error}");
    }
}
