//! The thread that appends to the journal, and syncs outputs and journal at each commit, while the
//! run goes on.

use std::fs::File;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use echoless::filters::lines::Progress;
use echoless::{Batch, KeyHash, Verdicts};
use echoless_durable::{CopiedBlock, Journal, WantedBlock};
use echoless_records::failure::{Failure, lock};

/// The chunks that may wait for the thread: as many as are written in a few milliseconds.
const MOST_WAITING: usize = 64;

/// The other end of the thread.
#[derive(Debug)]
pub(super) struct Committer {
    /// None once the last step was sent.
    steps: Option<SyncSender<Step>>,
    /// None once it was waited for.
    thread: Option<JoinHandle<Result<JournalWithOutputs, Failure>>>,
    shared: Arc<Shared>,
}

/// What the thread and the run share.
#[derive(Debug)]
struct Shared {
    /// Whether a commit is under way.
    is_busy: AtomicBool,
    /// The lines that the journal asks for.
    wanted: WantedBlocks,
}

/// The lines that the journal asks for, as they are behind some chunk. The worker of a chunk takes
/// the request in its turn to fill, so that one chunk answers it.
#[derive(Debug, Clone, Default)]
pub(in crate::dedup) struct WantedBlocks(Arc<Mutex<Option<WantedBlock>>>);

impl WantedBlocks {
    pub(in crate::dedup) fn take(&self) -> Option<WantedBlock> {
        lock(&self.0).take()
    }
}

/// A step of the journal.
#[derive(Debug)]
enum Step {
    Keys(LoggedKeys),
    Commit(Progress, Vec<u8>),
    /// The files that are synced before each commit, with their names.
    Outputs(Vec<(String, File)>),
    /// Answered once everything before is done.
    Wait(SyncSender<()>),
}

/// A journal, and the outputs that its commits speak of.
#[derive(Debug)]
pub(super) struct JournalWithOutputs {
    pub(super) journal: Journal,
    outputs: Vec<(String, File)>,
}

impl JournalWithOutputs {
    /// Syncs the outputs, and commits: what the bytes say of the outputs is on the disk before.
    pub(super) fn commit(&mut self, progress: Progress, bytes: &[u8]) -> Result<(), Failure> {
        for (name, file) in &self.outputs {
            file.sync_data().map_err(Failure::file(name.as_str()))?;
        }
        Ok(self.journal.commit(progress, bytes)?)
    }
}

/// What a chunk adds to the journal.
#[derive(Debug)]
pub(super) struct LoggedKeys {
    pub(super) keys: Vec<KeyHash>,
    /// The tick of each; none without a window.
    pub(super) ticks: Vec<u64>,
    pub(super) verdicts: Verdicts,
    /// The clock behind the chunk.
    pub(super) clock: u64,
    /// Lines as they are behind the chunk.
    pub(super) copied: Option<CopiedBlock>,
}

impl Committer {
    /// Starts the thread, without outputs.
    pub(super) fn start(journal: Journal) -> Result<Self, Failure> {
        let (steps, received) = sync_channel(MOST_WAITING);
        let shared = Arc::new(Shared {
            is_busy: AtomicBool::new(false),
            wanted: WantedBlocks::default(),
        });
        let own = Arc::clone(&shared);
        let thread = thread::Builder::new()
            .name("echoless-state".into())
            .spawn(move || run(journal, &received, &own))
            .map_err(Failure::file("a thread"))?;
        Ok(Self {
            steps: Some(steps),
            thread: Some(thread),
            shared,
        })
    }

    /// The lines that the journal asks for.
    pub(super) fn wanted(&self) -> WantedBlocks {
        self.shared.wanted.clone()
    }

    /// Whether a commit is under way.
    pub(super) fn is_busy(&self) -> bool {
        // Relaxed: a hint.
        self.shared.is_busy.load(Ordering::Relaxed)
    }

    /// Appends the keys of the next chunk. Fails with what has ended the thread, as the calls
    /// below.
    pub(super) fn log(&mut self, keys: LoggedKeys) -> Result<(), Failure> {
        self.send(Step::Keys(keys))
    }

    /// Commits everything before: syncs the outputs, which have been written to so far, and then
    /// the journal.
    pub(super) fn commit(&mut self, progress: Progress, bytes: Vec<u8>) -> Result<(), Failure> {
        self.shared.is_busy.store(true, Ordering::Relaxed);
        self.send(Step::Commit(progress, bytes))
    }

    /// Syncs these files before each commit from now on, with their names in messages.
    pub(super) fn sync_outputs(&mut self, files: Vec<(String, File)>) -> Result<(), Failure> {
        self.send(Step::Outputs(files))
    }

    /// Waits until everything so far is on the disk.
    pub(super) fn wait(&mut self) -> Result<(), Failure> {
        let (done, waiting) = sync_channel(1);
        self.send(Step::Wait(done))?;
        waiting.recv().or_else(|_| self.fail())
    }

    /// Waits until everything is on the disk, and ends.
    pub(super) fn finish(&mut self) -> Result<JournalWithOutputs, Failure> {
        self.steps = None;
        let thread = self.thread.take().ok_or_else(has_ended)?;
        let panicked = |_| Failure::Panic("the thread of the state panicked".into());
        thread.join().map_err(panicked)?
    }

    fn send(&mut self, step: Step) -> Result<(), Failure> {
        let sent = (self.steps.as_ref()).is_some_and(|steps| steps.send(step).is_ok());
        if sent { Ok(()) } else { self.fail() }
    }

    /// Why the thread has ended.
    fn fail(&mut self) -> Result<(), Failure> {
        Err(self.finish().err().unwrap_or_else(has_ended))
    }
}

impl Drop for Committer {
    fn drop(&mut self) {
        // A run that fails reports its own error, and leaves the last commit.
        let _ = self.finish();
    }
}

fn has_ended() -> Failure {
    Failure::Panic("the thread of the state has ended".into())
}

/// Lets the next commit find that the thread has ended.
struct IdleAtEnd<'a>(&'a Shared);

impl Drop for IdleAtEnd<'_> {
    fn drop(&mut self) {
        self.0.is_busy.store(false, Ordering::Relaxed);
    }
}

fn run(
    journal: Journal,
    steps: &Receiver<Step>,
    shared: &Shared,
) -> Result<JournalWithOutputs, Failure> {
    let _idle = IdleAtEnd(shared);
    let ask = |journal: &Journal| *lock(&shared.wanted.0) = journal.wanted_block();
    ask(&journal);
    let mut durable = JournalWithOutputs {
        journal,
        outputs: Vec::new(),
    };
    for step in steps {
        match step {
            Step::Outputs(files) => durable.outputs = files,
            Step::Wait(done) => {
                // The run has ended if it does not wait.
                let _ = done.send(());
            }
            Step::Keys(logged) => {
                let LoggedKeys {
                    keys,
                    ticks,
                    verdicts,
                    clock,
                    copied,
                } = logged;
                let batch = match &*ticks {
                    [] => Batch::new(&keys),
                    ticks => Batch::at_each(&keys, ticks),
                };
                let journal = &mut durable.journal;
                journal.append_observed(batch, clock, &verdicts)?;
                if let Some(copied) = copied {
                    journal.append_block(&copied)?;
                    ask(journal);
                }
            }
            Step::Commit(progress, bytes) => {
                let wanted = durable.journal.wanted_block();
                durable.commit(progress, &bytes)?;
                if durable.journal.wanted_block() != wanted {
                    ask(&durable.journal);
                }
                shared.is_busy.store(false, Ordering::Relaxed);
            }
        }
    }
    Ok(durable)
}
