//! A partition of the input topic: its filter, its journal, and how far both are.
//!
//! Nothing here knows of Kafka. The committed offset of the group decides where the group is, since
//! it is in one transaction with the records that were written. The journal follows: it is opened
//! at its newest commit that is not beyond the committed offset, and the records from there to the
//! committed offset are read again, for the filter alone. So a journal may be as old as it likes,
//! or be absent, and this costs time only.

mod filter_config;

use std::cell::Cell;
use std::fs;
use std::mem;
use std::path::Path;
use std::sync::Arc;

use echoless::{Batch, Filter, KeyHash, LineFilter, Partitioned, Report, Verdicts};
use echoless_durable::storage::Storage;
use echoless_durable::{Commit, Journal, JournalError, progress_of};
use echoless_stream::{Clock, is_late, tick_since};

use crate::failure::Failure;
use crate::position::{Details, Position};
use crate::topics::Topics;
use crate::window::Window;

pub(crate) use filter_config::FilterConfig;

/// What is judged of a record.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) offset: i64,
    /// `None` if the record has no key.
    pub(crate) hash: Option<KeyHash>,
    /// In milliseconds since 1970.
    pub(crate) time: Option<i64>,
}

/// What happens to a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// To the output.
    Fresh,
    /// To the topic of duplicates.
    Duplicate,
    /// To the output without a verdict: it has no key.
    Unkeyed,
    /// To the output without a verdict: it is older than the window.
    Late,
    /// To the output, since nothing is judged.
    Copied,
    /// Nowhere: it is written already, and was read for the filter.
    Again,
}

/// An opened partition.
pub(crate) struct Partition {
    /// `None` if records are only copied.
    judge: Option<Judge>,
    /// The offset of the next record to judge; `None` if that is the first one of the topic.
    next: Option<i64>,
    /// Records before this offset are written.
    written: i64,
    /// A transaction has committed an offset.
    group_has_offset: bool,
    /// What later runs must agree with.
    details: Details,
    /// How many partitions the topic had at the last commit, if that is another number.
    partitions_before: Option<usize>,
    /// Judged records that were too far ahead, since they were asked for.
    ahead: u64,
}

/// The filter of a partition and its journal.
struct Judge {
    filter: Partitioned<Box<dyn LineFilter>>,
    journal: Journal,
    window: Option<Window>,
    /// In ticks. The filter knows only the granule that it lies in, and what is late must not depend
    /// on how records were gathered.
    clock: Clock,
}

impl Judge {
    /// The tick of the clock for the filter; 0 if no record has moved it.
    fn tick(&self) -> u64 {
        self.clock.latest.map_or(0, |latest| tick_since(0, latest))
    }
}

impl Partition {
    /// Opens the filter of a folder for a group that is at an offset, `None` if it has none yet, of
    /// a partition that begins at `first`, of this topic. A journal without a commit that old is
    /// removed, and the filter begins empty. Fails with [`Failure::State`] if the folder is in use
    /// or damaged; [`Failure::Changed`] or [`Failure::Option`] if an option differs;
    /// [`Failure::Anew`] if it is of another topic of this name; [`Failure::Forgotten`] if the
    /// group had an offset.
    pub(crate) fn open(
        storage: &Arc<dyn Storage>,
        folder: &Path,
        config: &FilterConfig,
        topics: &Topics,
        committed: Option<i64>,
        first: i64,
    ) -> Result<Self, Failure> {
        let mut details = Details {
            options: config.options.clone(),
            topic_id: topics.input_id.clone(),
            partitions: Some(topics.input_partitions),
            ..Details::default()
        };
        let is_anew = |position: &Position| {
            let before = position
                .details
                .as_ref()
                .and_then(|before| before.topic_id.as_ref());
            before
                .zip(topics.input_id.as_ref())
                .map(|(before, now)| before != now)
        };
        let anew = || Failure::Anew {
            folder: folder.to_owned(),
        };
        let open = |is_wanted: &dyn Fn(&Position) -> bool| {
            let has_unreadable = Cell::new(false);
            let is_wanted = |commit: Option<&Commit>| {
                commit.is_none_or(|commit| {
                    Position::of(commit).map_or_else(
                        || {
                            has_unreadable.set(true);
                            // So that it is not cut off.
                            true
                        },
                        |at| is_wanted(&at),
                    )
                })
            };
            let (spec, hasher) = (&config.spec, &config.hasher);
            let opened = Journal::open_at(storage.clone(), folder, spec, hasher, 1, &is_wanted);
            if has_unreadable.get() {
                return Err(JournalError::Segments {
                    path: folder.to_owned(),
                    reason: "a commit of another form: expected one of echoless-kafka, of this \
                             version or an earlier one"
                        .to_owned(),
                });
            }
            opened
        };
        if committed.is_none() && folder.exists() {
            // Each commit of the journal but the first follows a transaction with an offset. So
            // Kafka has forgotten it, and to begin anew would write all records again.
            let newest =
                open(&|_| true).map_err(|error| config.explain(&**storage, folder, error))?;
            let newest = newest.commit.as_ref().and_then(Position::of);
            if let Some(newest) = newest.filter(|newest| newest.group_has_offset) {
                return Err(match is_anew(&newest) {
                    Some(true) => anew(),
                    known => Failure::Forgotten {
                        folder: folder.to_owned(),
                        offset: newest.next,
                        may_be_anew: known.is_none(),
                    },
                });
            }
        }
        let open = || open(&|at| committed.is_some_and(|committed| at.next <= committed));
        let opened = match open() {
            // Someone has moved the group back.
            Err(JournalError::NoCommit(_)) => {
                fs::remove_dir_all(folder).map_err(|error| JournalError::Io {
                    path: folder.to_owned(),
                    error,
                })?;
                open()?
            }
            opened => opened.map_err(|error| config.explain(&**storage, folder, error))?,
        };
        let position = opened.commit.as_ref().and_then(Position::of);
        let mut partitions_before = None;
        if let Some(position) = &position {
            if is_anew(position) == Some(true) {
                return Err(anew());
            }
            config.check(position, folder)?;
            if let Some(before) = &position.details {
                partitions_before = before
                    .partitions
                    .filter(|_| before.partitions != details.partitions);
                // Brokers may not have told it in time.
                details.topic_id = details.topic_id.or_else(|| before.topic_id.clone());
            }
        }
        let judge = Judge {
            filter: opened.filter,
            journal: opened.journal,
            window: config.window,
            clock: position.as_ref().map(Position::clock).unwrap_or_default(),
        };
        Ok(Self {
            judge: Some(judge),
            next: position.map(|at| at.next),
            written: committed.unwrap_or(first),
            group_has_offset: committed.is_some(),
            details,
            partitions_before,
            ahead: 0,
        })
    }

    /// A partition that is copied from an offset on, and has no filter.
    pub(crate) fn copied_from(committed: i64) -> Self {
        Self {
            judge: None,
            next: Some(committed),
            written: committed,
            group_has_offset: true,
            details: Details::default(),
            partitions_before: None,
            ahead: 0,
        }
    }

    /// The offset to read from, with the first offset that the topic still has.
    pub(crate) fn start(&self, first: i64) -> i64 {
        self.next.map_or(first, |next| next.max(first))
    }

    /// How many offsets from a start are read again.
    pub(crate) fn behind(&self, start: i64) -> i64 {
        (self.written - start).max(0)
    }

    /// Judges records in the order of their offsets, and appends their keys to the journal.
    pub(crate) fn judge(&mut self, entries: &[Entry]) -> Result<Vec<Fate>, JournalError> {
        let Some(judge) = &mut self.judge else {
            return Ok(self.copy(entries));
        };
        let mut fates = Vec::with_capacity(entries.len());
        let (mut judged, mut keys, mut ticks) = (Vec::new(), Vec::new(), Vec::new());
        for (index, entry) in entries.iter().enumerate() {
            let is_again = entry.offset < self.written;
            // Kafka may deliver a record twice after a rebalance.
            if self.next.is_some_and(|next| entry.offset < next) {
                fates.push(Fate::Again);
                continue;
            }
            self.next = Some(entry.offset + 1);
            let mut passes_as_late = false;
            if let Some(window) = judge.window
                && let Some(time) = window.tick(entry.offset, entry.time)
            {
                match judge.clock.admit(time, window.max_advance) {
                    Some(time) => {
                        let clock = judge.clock.latest.unwrap_or(time);
                        passes_as_late = is_late(clock, time, window.ticks);
                    }
                    None => self.ahead += u64::from(!is_again),
                }
            }
            fates.push(match (is_again, entry.hash) {
                (true, _) => Fate::Again,
                (false, None) => Fate::Unkeyed,
                // Until it is judged.
                (false, Some(_)) => Fate::Late,
            });
            if let Some(hash) = entry.hash
                && !passes_as_late
            {
                judged.push(index);
                keys.push(hash);
                ticks.push(judge.tick());
            }
        }
        let clock = judge.tick();
        let filter = &mut judge.filter.filters_mut()[0];
        let mut verdicts = Verdicts::new();
        let batch = match judge.window {
            Some(_) => {
                filter.observe_at(&keys, &ticks, &mut verdicts);
                Batch::at_each(&keys, &ticks)
            }
            None => {
                filter.observe(&keys, &mut verdicts);
                Batch::new(&keys)
            }
        };
        // Records without a key move the clock, too.
        if judge.window.is_some() {
            filter.advance_to(clock);
        }
        judge.journal.append_observed(batch, clock, &verdicts)?;
        if let Some(block) = judge.journal.wanted_block() {
            let lines = block.copy(&**filter);
            judge.journal.append_block(&lines)?;
        }
        for (verdict, index) in verdicts.iter().zip(judged) {
            if fates[index] != Fate::Again {
                fates[index] = match verdict.is_duplicate() {
                    true => Fate::Duplicate,
                    false => Fate::Fresh,
                };
            }
        }
        Ok(fates)
    }

    /// The fates of records without a filter.
    fn copy(&mut self, entries: &[Entry]) -> Vec<Fate> {
        let copied = entries.iter().map(|entry| {
            let is_again = self.next.is_some_and(|next| entry.offset < next);
            if is_again {
                return Fate::Again;
            }
            self.next = Some(entry.offset + 1);
            Fate::Copied
        });
        copied.collect()
    }

    /// Notes that no record is before this offset that was not judged: behind the last one are only
    /// the ends of transactions, and records of those that were aborted.
    pub(crate) fn pass_to(&mut self, offset: i64) {
        if offset > self.position() {
            self.next = Some(offset);
        }
    }

    /// How many partitions the topic had at the last commit, if that is another number.
    pub(crate) const fn partitions_before(&self) -> Option<usize> {
        self.partitions_before
    }

    /// Takes the number of judged records that were too far ahead since the last call.
    pub(crate) const fn take_ahead(&mut self) -> u64 {
        mem::replace(&mut self.ahead, 0)
    }

    /// Makes the filter durable as it is now. Called before the transaction with the records: a
    /// commit of the journal can be taken back, and a transaction cannot.
    pub(crate) fn save(&mut self) -> Result<(), JournalError> {
        let Some(judge) = &mut self.judge else {
            return Ok(());
        };
        let progress = progress_of(judge.filter.filters());
        let next = self.next.unwrap_or(0);
        let details = self.details.clone();
        let position = Position::new(next, judge.clock, self.group_has_offset, details);
        judge.journal.commit(progress, &position.encode())
    }

    /// The offset that a transaction must commit; `None` if the group is there already.
    pub(crate) fn uncommitted(&self) -> Option<i64> {
        self.next.filter(|next| *next > self.written)
    }

    /// The offset behind the records that were judged, or from where they are.
    pub(crate) fn position(&self) -> i64 {
        self.next.unwrap_or(self.written).max(self.written)
    }

    /// The counts and estimates of the filter, since it began. Reads all of its memory.
    pub(crate) fn report(&self) -> Option<Report> {
        let judge = self.judge.as_ref()?;
        Some(judge.filter.filters()[0].report())
    }

    /// Notes that the transaction is committed.
    pub(crate) fn set_written(&mut self) {
        self.written = self.position();
        self.group_has_offset = true;
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use clap::Parser;
    use echoless::KeyHasher;
    use echoless_durable::storage::RealStorage;
    use echoless_durable::verify;

    use super::*;
    use crate::args::Args;
    use crate::config::Config;

    /// The filter of a specification, with a window of the options.
    pub(super) fn filter(spec: &str, window: Option<&str>) -> FilterConfig {
        FilterConfig {
            state: PathBuf::new(),
            spec: spec.parse().unwrap(),
            hasher: KeyHasher::seeded(0),
            window: window.map(|window| Window::parse(window).unwrap()),
            options: Vec::new(),
        }
    }

    pub(super) fn open(folder: &Path, config: &FilterConfig, committed: i64) -> Partition {
        let storage: Arc<dyn Storage> = Arc::new(RealStorage);
        Partition::open(
            &storage,
            folder,
            config,
            &Topics::default(),
            Some(committed),
            0,
        )
        .unwrap()
    }

    /// The record at an offset: many keys come again, every tenth record has none, times jump back
    /// and forth, and some are about as old as the window.
    fn entry(offset: i64) -> Entry {
        let mixed = (offset as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        let key = match mixed % 3 {
            0 => offset as u64 - mixed % 3_000.min(offset as u64 + 1),
            _ => offset as u64,
        };
        Entry {
            offset,
            hash: (!mixed.is_multiple_of(10)).then(|| KeyHasher::seeded(0).hash_u64(key)),
            time: Some(offset * 10 + (mixed % 100) as i64 - 50 - (mixed % 7 / 6 * 1_990) as i64),
        }
    }

    const RECORDS: i64 = 8_000;

    /// The fates of all records in one run.
    fn uninterrupted(config: &FilterConfig) -> Vec<Fate> {
        let folder = tempfile::tempdir().unwrap();
        let entries: Vec<Entry> = (0..RECORDS).map(entry).collect();
        open(&folder.path().join("0"), config, 0)
            .judge(&entries)
            .unwrap()
    }

    /// Crashes after each step of a round, again and again, and returns the fates of what was
    /// committed.
    fn crashing(config: &FilterConfig) -> Vec<Fate> {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("0");
        // What the transactions hold: the offset of the group, and what was written.
        let (mut committed, mut written) = (0, Vec::new());
        let mut draw = 1_u64;
        while committed < RECORDS {
            let mut partition = open(&folder, config, committed);
            let judge = partition.judge.as_mut().unwrap();
            judge.journal.set_most_log_bytes(10_000);
            let mut at = partition.start(0);
            assert!(at <= committed);
            loop {
                draw = draw.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(11);
                let end = RECORDS.min(at + 1 + (draw >> 33) as i64 % 400);
                let entries: Vec<Entry> = (at..end).map(entry).collect();
                let fates = partition.judge(&entries).unwrap();
                at = end;
                let crash = (draw >> 50) % 20;
                if crash == 0 {
                    break;
                }
                partition.save().unwrap();
                if crash == 1 {
                    break;
                }
                if let Some(offset) = partition.uncommitted() {
                    committed = offset;
                    written.extend(fates.into_iter().filter(|fate| *fate != Fate::Again));
                    partition.set_written();
                }
                if crash == 2 || at == RECORDS {
                    break;
                }
            }
            drop(partition);
            if (draw >> 55).is_multiple_of(9) {
                // The partition moves to a member without its journal.
                fs::remove_dir_all(&folder).unwrap();
            }
        }
        written
    }

    #[test]
    fn crashes_and_lost_journals_change_no_verdict() {
        for (spec, window) in [
            // Small enough to forget.
            ("fingerprint:memory=16KiB", None),
            ("fingerprint:replacement=qqhtd,bits=8,memory=16KiB", None),
            ("clocked:window=2000,memory=64KiB", Some("2000ms")),
            ("clocked:window=2500,memory=64KiB", Some("2500")),
        ] {
            let config = filter(spec, window);
            let expected = uninterrupted(&config);
            for fate in [Fate::Fresh, Fate::Duplicate, Fate::Unkeyed] {
                assert!(expected.contains(&fate), "{spec}: {fate:?}");
            }
            let is_by_time = window.is_some_and(|window| window.ends_with("ms"));
            assert_eq!(expected.contains(&Fate::Late), is_by_time, "{spec}");
            assert_eq!(crashing(&config), expected, "{spec}");
        }
    }

    #[test]
    fn a_group_that_is_moved_back_is_judged_as_before() {
        let config = filter("fingerprint:memory=64KiB", None);
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("0");
        let entries: Vec<Entry> = (0..900).map(entry).collect();
        let mut partition = open(&folder, &config, 0);
        let mut expected = Vec::new();
        for batch in entries.chunks(300) {
            expected.extend(partition.judge(batch).unwrap());
            partition.save().unwrap();
            partition.set_written();
        }
        drop(partition);
        let mut partition = open(&folder, &config, 450);
        // Its commits are at 300, 600 and 900.
        assert_eq!(partition.start(0), 300);
        assert_eq!(partition.behind(300), 150);
        // The topic has lost records since.
        assert_eq!(partition.start(310), 310);
        let fates = partition.judge(&entries[300..]).unwrap();
        assert!(fates[..150].iter().all(|fate| *fate == Fate::Again));
        assert_eq!(fates[150..], expected[450..]);
        // Records that come twice are not written twice.
        assert!(
            partition
                .judge(&entries[300..])
                .unwrap()
                .iter()
                .all(|fate| *fate == Fate::Again)
        );
    }

    #[test]
    fn a_window_forgets_and_lets_late_records_pass() {
        let config = filter("clocked:window=3600,memory=64KiB", Some("3600ms"));
        let folder = tempfile::tempdir().unwrap();
        let mut partition = open(&folder.path().join("0"), &config, 0);
        let record = |offset, key, time| Entry {
            offset,
            hash: Some(KeyHasher::seeded(0).hash_u64(key)),
            time,
        };
        let fates = partition.judge(&[
            record(0, 1, Some(0)),
            record(1, 1, Some(3_600)),
            // Older than the window: nobody knows whether its key came before.
            record(2, 2, Some(3_600 + 3_601)),
            record(3, 3, Some(3_600)),
            record(4, 3, Some(3_600)),
            // Without a time, a record is as late as the one before.
            record(5, 2, None),
            record(6, 2, Some(20_000)),
        ]);
        let (fresh, duplicate, late) = (Fate::Fresh, Fate::Duplicate, Fate::Late);
        let expected = [fresh, duplicate, fresh, late, late, duplicate, fresh];
        assert_eq!(fates.unwrap(), expected);
    }

    #[test]
    fn a_group_whose_offset_is_forgotten_does_not_begin_anew() {
        let config = filter("fingerprint:memory=64KiB", None);
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("0");
        let storage: Arc<dyn Storage> = Arc::new(RealStorage);
        let open_at =
            |offset| Partition::open(&storage, &folder, &config, &Topics::default(), offset, 100);
        let open = || open_at(None);
        let entries: Vec<Entry> = (100..400).map(entry).collect();
        // The journal is ahead of a group that has no offset: a crash in the first transaction.
        for _ in 0..2 {
            let mut partition = open().unwrap();
            assert_eq!((partition.start(100), partition.behind(100)), (100, 0));
            partition.judge(&entries).unwrap();
            partition.save().unwrap();
        }
        let mut partition = open().unwrap();
        for entries in entries.chunks(100) {
            partition.judge(entries).unwrap();
            partition.save().unwrap();
            partition.set_written();
        }
        drop(partition);
        let forgotten = open().err().unwrap().to_string();
        assert!(
            forgotten.contains("has no offset") && forgotten.contains("400"),
            "{forgotten}"
        );
        // Nothing is lost by that.
        let partition = open_at(Some(400)).unwrap();
        assert_eq!(partition.start(100), 400);
    }

    #[test]
    fn a_journal_with_commits_of_another_form_is_kept() {
        let config = filter("fingerprint:memory=64KiB", None);
        let storage: Arc<dyn Storage> = Arc::new(RealStorage);
        // Details of a later version, and what is no position at all.
        for bytes in [&[&[1; 17][..], b"{\"version\":2}"].concat()[..], b"x"] {
            for committed in [None, Some(0), Some(200), Some(i64::MAX)] {
                let folder = tempfile::tempdir().unwrap();
                let folder = folder.path().join("0");
                let mut partition = open(&folder, &config, 0);
                for entries in (0..200).map(entry).collect::<Vec<_>>().chunks(100) {
                    partition.judge(entries).unwrap();
                    partition.save().unwrap();
                    partition.set_written();
                }
                let judge = partition.judge.as_mut().unwrap();
                let progress = progress_of(judge.filter.filters());
                judge.journal.commit(progress, bytes).unwrap();
                drop(partition);
                // The second time, nothing was cut off by the first.
                for _ in 0..2 {
                    let opened = Partition::open(
                        &storage,
                        &folder,
                        &config,
                        &Topics::default(),
                        committed,
                        0,
                    );
                    let error = opened.err().unwrap().to_string();
                    let expected = format!("{}: a commit of another form", folder.display());
                    assert!(error.starts_with(&expected), "{committed:?}: {error}");
                }
                assert_eq!(verify(&*storage, &folder).unwrap().caller, bytes);
            }
        }
    }

    /// The filter of options as a user types them.
    pub(super) fn configured(options: &str) -> FilterConfig {
        let common = "echoless-kafka --brokers b:1 --group g --in calls --out fresh --state s";
        let memory = if options.contains("-m") {
            ""
        } else {
            " -m 64k"
        };
        let line = format!("{common}{memory} {options}");
        let words = line.split_whitespace();
        let config = Config::new(Args::try_parse_from(words).unwrap(), "unique").unwrap();
        config.filter.unwrap()
    }

    /// Commits as the first versions did.
    pub(super) fn save_without_details(partition: &mut Partition) {
        let next = partition.next.unwrap();
        let judge = partition.judge.as_mut().unwrap();
        let mut position = Position::new(next, judge.clock, true, Details::default());
        position.details = None;
        let progress = progress_of(judge.filter.filters());
        judge.journal.commit(progress, &position.encode()).unwrap();
    }

    /// A record each second, from 2023 on.
    pub(super) fn each_second(offset: i64) -> Entry {
        Entry {
            offset,
            hash: Some(KeyHasher::seeded(0).hash_u64(offset as u64)),
            time: Some(1_700_000_000_000 + offset * 1_000),
        }
    }

    #[test]
    fn a_topic_that_was_created_anew_is_another_one() {
        let config = filter("fingerprint:memory=64KiB", None);
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("0");
        let storage: Arc<dyn Storage> = Arc::new(RealStorage);
        let open = |id: Option<&str>, partitions, committed| {
            let topics = Topics {
                input_id: id.map(str::to_owned),
                input_partitions: partitions,
                ..Topics::default()
            };
            Partition::open(&storage, &folder, &config, &topics, committed, 0)
        };
        let entries: Vec<Entry> = (0..200).map(entry).collect();
        let mut partition = open(Some("one"), 6, Some(0)).unwrap();
        for entries in entries.chunks(100) {
            partition.judge(entries).unwrap();
            partition.save().unwrap();
            partition.set_written();
        }
        drop(partition);
        for (id, committed, expected) in [
            (Some("one"), Some(200), None),
            // Brokers that do not tell it.
            (None, Some(200), None),
            (
                Some("two"),
                Some(200),
                Some("the topic was created anew since"),
            ),
            // Kafka removes the offsets of a topic with it.
            (Some("two"), None, Some("the topic was created anew since")),
            (Some("one"), None, Some("the group has no offset")),
        ] {
            let error = open(id, 6, committed).err().map(|error| error.to_string());
            let begins = error.as_deref().zip(expected);
            let is_expected = begins.is_some_and(|(error, expected)| error.starts_with(expected));
            assert!(
                is_expected || error.as_deref() == expected,
                "{id:?} {committed:?}: {error:?}"
            );
        }
        // The id is kept over a run in which the brokers did not tell it.
        let mut partition = open(None, 6, Some(200)).unwrap();
        partition.save().unwrap();
        drop(partition);
        let error = open(Some("two"), 6, Some(200)).err().unwrap().to_string();
        assert!(error.starts_with("the topic was created anew"), "{error}");
        assert_eq!(
            open(Some("one"), 6, Some(200)).unwrap().partitions_before(),
            None
        );
        assert_eq!(
            open(Some("one"), 8, Some(200)).unwrap().partitions_before(),
            Some(6)
        );
        // The group was reset, and the journal has no commit that old.
        assert_eq!(open(Some("two"), 6, Some(0)).unwrap().start(0), 0);
    }

    #[test]
    fn the_ends_of_transactions_are_passed() {
        let config = filter("fingerprint:memory=64KiB", None);
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("0");
        let mut partition = open(&folder, &config, 0);
        let entries: Vec<Entry> = (0..10).map(entry).collect();
        partition.judge(&entries).unwrap();
        partition.pass_to(11);
        partition.pass_to(3);
        assert_eq!(
            (partition.uncommitted(), partition.position()),
            (Some(11), 11)
        );
        partition.save().unwrap();
        partition.set_written();
        assert_eq!(partition.uncommitted(), None);
        drop(partition);
        assert_eq!(open(&folder, &config, 11).start(0), 11);
    }

    #[test]
    fn a_time_in_the_far_future_does_not_move_the_clock() {
        let far = 7_000_000_000_000;
        let config = configured("--window 1h --max-advance 10m");
        // Every tenth record has a wrong time, and after some there is a pause of a day.
        let entries: Vec<Entry> = (0..4_000)
            .map(|offset| {
                let mut entry = each_second(offset);
                entry.time = match offset {
                    0 => Some(far),
                    1_000.. => entry.time.map(|time| time + 86_400_000),
                    _ if offset % 10 == 7 => Some(far + offset),
                    _ => entry.time,
                };
                entry
            })
            .collect();
        let folder = tempfile::tempdir().unwrap();
        let whole = folder.path().join("whole");
        let mut partition = open(&whole, &config, 0);
        let fates = partition.judge(&entries).unwrap();
        assert!(fates.iter().all(|fate| *fate == Fate::Fresh));
        // The first one, one in ten, and 999 after the pause.
        assert_eq!(
            (partition.take_ahead(), partition.take_ahead()),
            (1 + 100 + 999, 0)
        );
        let clock = |partition: &Partition| partition.judge.as_ref().unwrap().clock.latest;
        let expected = config.window.unwrap().tick(0, entries[3_999].time);
        assert_eq!(clock(&partition), expected);
        // The same in parts, over restarts.
        let parts = folder.path().join("parts");
        let mut ahead = 0;
        for (entries, from) in entries.chunks(700).zip((0..).step_by(700)) {
            let mut partition = open(&parts, &config, from);
            partition.judge(entries).unwrap();
            ahead += partition.take_ahead();
            partition.save().unwrap();
        }
        assert_eq!(ahead, 1_100);
        assert_eq!(clock(&open(&parts, &config, 4_000)), expected);
        // The last time of all has a tick beyond the signed numbers, if ticks are milliseconds.
        let short = configured("--window 1s --max-advance 1s");
        let mut partition = open(&folder.path().join("short"), &short, 0);
        let mut last = each_second(1);
        last.time = Some(i64::MAX);
        partition.judge(&[each_second(0), last]).unwrap();
        let expected = short.window.unwrap().tick(0, each_second(0).time);
        assert_eq!((clock(&partition), partition.take_ahead()), (expected, 1));
        // Without the bound, all others are late.
        let mut partition = open(&folder.path().join("any"), &configured("--window 1h"), 0);
        let fates = partition.judge(&entries).unwrap();
        assert!(fates[1..7].iter().all(|fate| *fate == Fate::Late));
    }
}
