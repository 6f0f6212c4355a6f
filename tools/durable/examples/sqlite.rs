//! Writes the fresh records of a stream into an SQLite database, and loses or doubles no row,
//! whenever the process is killed.
//!
//! Rows and the position in the stream go into one transaction. The filter is in a journal, which
//! is another store, and nothing commits both at once. So the transaction of the database decides,
//! and the journal follows:
//!
//! ```text
//! judge a batch -> append its keys -> commit the journal -> commit rows and position
//!                                                       ^ a crash here: one commit ahead
//! ```
//!
//! After a crash, the journal is opened at the position of the database. If it is gone, or the
//! database was replaced by an older copy, the stream up to that position is judged once more, for
//! the filter alone: the same keys in the same order lead to the same filter.
//!
//! Without arguments, the program starts itself, kills the child some ten times, takes away its
//! journal once and puts an older database in its place once, and compares the rows with those of a
//! run that was never interrupted.
//!
//! ```sh
//! cargo run --release -p echoless-durable --example sqlite
//! ```

use std::error::Error;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use echoless::{Batch, Filter, FilterSpec, KeyHash, KeyHasher, Verdicts};
use echoless_durable::storage::RealStorage;
use echoless_durable::{Commit, Journal, JournalError, Opened, progress_of};
use rusqlite::Connection;

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

const RECORDS: u64 = 30_000;
const RECORDS_OF_BATCH: u64 = 200;
const KILLS: u64 = 12;

/// The stream, which can be read again from any position, as a file or a partition of Kafka can.
/// Many records come again, after some thousand others at most.
fn record(position: u64) -> String {
    let mixed = position.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    let number = match mixed % 3 {
        0 => position - mixed % 5_000.min(position + 1),
        _ => position,
    };
    format!("call {number}")
}

fn open_database(path: &Path) -> rusqlite::Result<Connection> {
    let database = Connection::open(path)?;
    // A commit that returns is on the disk. With less, a power cut could take transactions back
    // that the journal has left behind, and the filter would be built anew.
    database.pragma_update(None, "journal_mode", "WAL")?;
    database.pragma_update(None, "synchronous", "FULL")?;
    database.execute_batch(
        "BEGIN IMMEDIATE;
         CREATE TABLE IF NOT EXISTS rows (position INTEGER PRIMARY KEY, record TEXT NOT NULL);
         CREATE TABLE IF NOT EXISTS stream (one INTEGER PRIMARY KEY CHECK (one = 1), position);
         INSERT OR IGNORE INTO stream VALUES (1, 0);
         COMMIT;",
    )?;
    Ok(database)
}

/// The position in the stream that a commit of the journal has.
fn position_of(commit: &Commit) -> u64 {
    let bytes = commit.bytes.first_chunk().copied();
    u64::from_le_bytes(bytes.unwrap_or_default())
}

/// The journal at the position of the database, or before it.
fn open_journal(folder: &Path, position: u64) -> Outcome<Opened> {
    // Small enough to forget: the verdicts depend on everything before.
    let spec: FilterSpec = "fingerprint:memory=32KiB".parse()?;
    let hasher = KeyHasher::seeded(0);
    let is_wanted = |commit: Option<&Commit>| commit.map_or(0, position_of) <= position;
    let storage = Arc::new(RealStorage);
    let open = || Journal::open_at(storage.clone(), folder, &spec, &hasher, 1, &is_wanted);
    let opened = match open() {
        Err(JournalError::NoCommit(_)) => {
            fs::remove_dir_all(folder)?;
            open()
        }
        opened => opened,
    };
    let mut opened = opened?;
    // The journal begins a new file with the whole filter now and then.
    opened.journal.set_most_log_bytes(100_000);
    Ok(opened)
}

/// Goes on where the database is, to the end of the stream.
fn consume(folder: &Path) -> Outcome {
    let mut database = open_database(&folder.join("rows.db"))?;
    let query = "SELECT position FROM stream";
    let position: u64 = database.query_row(query, [], |row| row.get(0))?;
    let opened = open_journal(&folder.join("journal"), position)?;
    let (mut journal, mut filter) = (opened.journal, opened.filter);
    let hasher = KeyHasher::seeded(0);
    let mut at = opened.commit.as_ref().map_or(0, position_of);
    while at < RECORDS {
        // Rows of these are in the database: only the filter lacks them.
        let is_again = at < position;
        let most = if is_again { position } else { RECORDS };
        let end = most.min(at + RECORDS_OF_BATCH);
        let records: Vec<String> = (at..end).map(record).collect();
        let keys: Vec<KeyHash> = records.iter().map(|record| hasher.hash(record)).collect();
        let mut verdicts = Verdicts::new();
        filter.filters_mut()[0].observe(&keys, &mut verdicts);
        journal.append_observed(Batch::new(&keys), 0, &verdicts)?;
        if let Some(block) = journal.wanted_block() {
            let lines = block.copy(&*filter.filters()[block.partition]);
            journal.append_block(&lines)?;
        }
        // Before the transaction: a commit can be taken back, and a transaction cannot.
        journal.commit(progress_of(filter.filters()), &end.to_le_bytes())?;
        if !is_again {
            let transaction = database.transaction()?;
            let mut insert = transaction.prepare("INSERT INTO rows VALUES (?1, ?2)")?;
            for index in verdicts.fresh() {
                insert.execute((at + index as u64, &records[index]))?;
            }
            drop(insert);
            transaction.execute("UPDATE stream SET position = ?1", [end])?;
            transaction.commit()?;
        }
        at = end;
        println!("{at}");
    }
    Ok(())
}

fn rows(folder: &Path) -> Outcome<Vec<(u64, String)>> {
    let database = open_database(&folder.join("rows.db"))?;
    let mut statement = database.prepare("SELECT position, record FROM rows ORDER BY position")?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Runs [`consume`] in a child. Kills it some time after so many batches, or waits until it is
/// done.
fn run_child(folder: &Path, kill: Option<(u64, Duration)>) -> Outcome {
    let mut child = Command::new(std::env::current_exe()?)
        .arg("consume")
        .arg(folder)
        .stdout(Stdio::piped())
        .spawn()?;
    // Open until the end: a child that prints to a closed pipe would end by itself.
    let mut output = BufReader::new(child.stdout.take().ok_or("a pipe")?).lines();
    let batches = kill.map_or(usize::MAX, |(batches, _)| batches as usize);
    let seen = output.by_ref().take(batches).count();
    if let Some((_, pause)) = kill.filter(|_| seen == batches) {
        thread::sleep(pause);
        // SIGKILL: nothing of the child runs any more.
        child.kill()?;
        child.wait()?;
        return Ok(());
    }
    let status = child.wait()?;
    if status.success() {
        return Ok(());
    }
    Err(format!("the child failed: {status}").into())
}

/// Kills the child again and again, and then lets it end.
fn main() -> Outcome {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [mode, folder] = &args[..]
        && mode == "consume"
    {
        return consume(Path::new(folder));
    }
    let root = tempfile::tempdir()?;
    let [killed, plain] = ["killed", "plain"].map(|name| root.path().join(name));
    let copy = root.path().join("copy.db");
    fs::create_dir(&killed)?;
    fs::create_dir(&plain)?;
    let mut drawn = 1_u64;
    for kill in 0..KILLS {
        drawn = drawn.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(11);
        let batches = 1 + (drawn >> 40) % (RECORDS / RECORDS_OF_BATCH / KILLS);
        run_child(&killed, Some((batches, Duration::from_micros(drawn >> 52))))?;
        let database = killed.join("rows.db");
        match kill {
            3 => {
                open_database(&database)?.execute("VACUUM INTO ?1", [copy.to_str()])?;
            }
            6 => fs::remove_dir_all(killed.join("journal"))?,
            9 => {
                // Closed, a database has no files beside it.
                drop(open_database(&database)?);
                fs::rename(&copy, &database)?;
            }
            _ => {}
        }
    }
    run_child(&killed, None)?;
    run_child(&plain, None)?;
    let (killed, plain) = (rows(&killed)?, rows(&plain)?);
    assert_eq!(killed.len(), plain.len());
    assert_eq!(killed, plain);
    // The filter has found duplicates, and forgotten some records.
    assert!((RECORDS / 2..RECORDS).contains(&(plain.len() as u64)));
    println!("{KILLS} kills, {} rows, as without", plain.len());
    Ok(())
}
