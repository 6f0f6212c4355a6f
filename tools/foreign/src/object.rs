//! What a handle stands for, of any kind, and the [calls](crate::for_each_call) with it.

use std::io::{BufReader, Read, Write};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

use echoless::spec::Form;
use echoless::state::{StateError, StateReader, restore_parts};
use echoless::{FilterSpec, KeyHash, KeyHasher, LineFilter, Partitioned, Report};

use crate::engine::{Port, Workers};
use crate::exact::{Digester, Exact};
use crate::failure::Failure;
use crate::filter::{Filter, know_papers, read_file, spec_of, write_file};
use crate::handles::exclusive;
use crate::keys::Keys;
use crate::ordered::{Cut, Ordered, Thread};
use crate::partitions::Partitions;
use crate::shared::Shared;
use crate::snapshot::Snapshot;

/// A filter of some kind, or the access of one thread to it.
#[derive(Debug)]
pub enum Object {
    /// One thread at a time may use it.
    Filter(Box<Mutex<Filter>>),
    /// One thread at a time may use it.
    Exact(Box<Mutex<Exact>>),
    /// All threads use it at the same time.
    Shared(Box<Shared>),
    /// All threads use it in the order of their tickets, each by a `Thread`.
    Ordered(Arc<Ordered>),
    /// The access of one thread to an ordered filter.
    Thread(Box<Mutex<Thread>>),
    /// Workers that judge.
    Engine(Arc<Workers>),
    /// The way of one thread to the workers.
    Port(Box<Mutex<Port>>),
    /// Some partitions of a filter.
    Partitions(Box<Mutex<Partitions>>),
    /// These partitions at one point of the stream.
    Snapshot(Box<Snapshot>),
}

/// What [`Object::new`] and [`Object::load`] make, as C numbers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub enum Kind {
    /// A filter of any specification, which one thread at a time may use; a call while another one
    /// runs is an error.
    Filter = 1,
    /// A filter that all threads use at the same time, without locks.
    Shared = 2,
    /// A filter in lines whose batches apply in the order of their tickets. All threads may use it
    /// at the same time; each observes through an access of its own, `echoless_open`.
    Ordered = 3,
    /// Workers, each with a partition of a filter in lines. Any thread may use it; each observes
    /// through a port of its own, `echoless_open`.
    Engine = 4,
    /// A filter in lines without errors: keys that it may have seen are compared with the digests,
    /// of 128 bits, of all keys. It has no window, and never forgets: a key takes 17 to 40 bytes of
    /// memory until the filter is saved, and then 16.1 on the disk. It is saved in a folder and
    /// loaded from that by its path. One thread at a time may use it, as a filter.
    Exact = 5,
}

impl Kind {
    /// The kind with this number.
    ///
    /// # Errors
    /// [`Failure`] if there is none.
    pub fn of_number(number: u32) -> Result<Self, Failure> {
        let kinds = [
            Self::Filter,
            Self::Shared,
            Self::Ordered,
            Self::Engine,
            Self::Exact,
        ];
        let found = kinds.into_iter().find(|kind| *kind as u32 == number);
        found.ok_or_else(|| Failure::argument("kind", number, "1 to 5, the number of a kind"))
    }
}

/// Where a state is saved.
pub enum Target<'a> {
    /// A file, which is replaced as a whole.
    File(PathBuf),
    /// A stream, for all of the state or some lines of it.
    Stream(Option<Range<u64>>, Box<dyn Write + 'a>),
    /// A stream, for one partition of several.
    Partition(usize, Box<dyn Write + 'a>),
}

/// Where a state was saved.
pub enum Source<'a> {
    /// A file.
    File(PathBuf),
    /// A stream for each part of the state, in any order.
    Streams(Vec<Box<dyn Read + 'a>>),
}

pub(crate) const FILTER: &str = "filter";

impl Object {
    /// Makes an object from a specification.
    ///
    /// # Errors
    /// [`Failure`] if the specification is wrong, is not of a filter of this kind, or cannot be
    /// built; if there are no such partitions.
    pub fn new(
        kind: Kind,
        spec: &str,
        hasher: KeyHasher,
        partitions: usize,
    ) -> Result<Self, Failure> {
        check_partitions(kind, partitions)?;
        Ok(match kind {
            Kind::Filter => Self::filter(Filter::new(spec, hasher)?),
            Kind::Exact => Self::exact(Exact::new(spec, hasher)?),
            Kind::Shared => Self::Shared(Box::new(Shared::new(spec, hasher)?)),
            Kind::Ordered | Kind::Engine => {
                let spec = spec_of(spec)?.form(Form::Line);
                Self::divided(kind, spec.build_line_partitions(partitions)?, spec, hasher)?
            }
        })
    }

    fn filter(filter: Filter) -> Self {
        Self::Filter(Box::new(Mutex::new(filter)))
    }

    fn exact(filter: Exact) -> Self {
        Self::Exact(Box::new(Mutex::new(filter)))
    }

    fn divided(
        kind: Kind,
        filter: Partitioned<Box<dyn LineFilter>>,
        spec: FilterSpec,
        hasher: KeyHasher,
    ) -> Result<Self, Failure> {
        Ok(match kind {
            Kind::Engine => Self::Engine(Workers::new(filter, spec, hasher)?),
            _ => Self::Ordered(Ordered::new(filter, spec, hasher)),
        })
    }

    /// Makes the object of the partitions `owned` of `count`; see [`Partitions::open`].
    ///
    /// # Errors
    /// As [`Partitions::open`].
    pub fn partitions(
        spec: &str,
        hasher: KeyHasher,
        count: usize,
        owned: Range<usize>,
    ) -> Result<Self, Failure> {
        let partitions = Partitions::open(spec, hasher, count, owned)?;
        Ok(Self::Partitions(Box::new(Mutex::new(partitions))))
    }

    /// Restores an object of any kind, and the bytes that were saved with it, those of
    /// parts behind each other in the order of their lines.
    ///
    /// # Errors
    /// [`Code::StateMismatch`](crate::Code::StateMismatch) if the keys were hashed otherwise, the
    /// parts are of different filters, or the state is not that of this kind of filter;
    /// [`Code::InvalidState`](crate::Code::InvalidState) if a state is damaged or incomplete, and
    /// [`Code::InvalidSpec`](crate::Code::InvalidSpec) if the filter has more memory than
    /// `memory_limit`.
    pub fn load(
        kind: Kind,
        from: Source<'_>,
        hasher: KeyHasher,
        partitions: usize,
        memory_limit: u64,
    ) -> Result<(Vec<u8>, Self), Failure> {
        check_partitions(kind, partitions)?;
        know_papers();
        let parts = match from {
            Source::File(path) if kind == Kind::Exact => {
                let (bytes, filter) = Exact::load(&path, hasher, memory_limit)?;
                return Ok((bytes, Self::exact(filter)));
            }
            Source::Streams(_) if kind == Kind::Exact => {
                let allowed = "the path of a folder, which a filter without errors is saved in";
                return Err(Failure::argument("from", "streams", allowed));
            }
            Source::Streams(parts) => parts,
            Source::File(path) => {
                return read_file(&path, |file| {
                    let parts = Source::Streams(vec![Box::new(file)]);
                    Self::load(kind, parts, hasher, partitions, memory_limit)
                });
            }
        };
        let open = |part| {
            let part = BufReader::new(part);
            let state = StateReader::open(part)?.limit_memory(memory_limit)?;
            state.check(*state.spec(), &hasher)?;
            Ok::<_, StateError>(state)
        };
        let mut parts: Vec<_> = parts.into_iter().map(open).collect::<Result<_, _>>()?;
        let Some(first) = parts.first() else {
            return Err(Failure::argument("parts", 0, "one state or more"));
        };
        if kind == Kind::Shared {
            let spec = *first.spec().shared()?;
            let (Some(part), []) = (parts.pop(), &parts[..]) else {
                let allowed = "one, a shared filter is saved as a whole";
                return Err(Failure::argument("parts", parts.len() + 1, allowed));
            };
            let restored = part.restore_shared()?;
            let shared = Shared::of_restored(restored.filter, spec, hasher);
            return Ok((restored.bytes, Self::Shared(Box::new(shared))));
        }
        let spec = *first.spec().lines()?;
        let restored = restore_parts(parts, partitions)?;
        let object = match kind {
            Kind::Filter => Self::filter(Filter::of_restored(restored.filter, spec, hasher)),
            kind => Self::divided(kind, restored.filter, spec, hasher)?,
        };
        Ok((restored.bytes.concat(), object))
    }

    /// Opens the access of one more thread to an ordered filter or an engine, or a snapshot of
    /// partitions.
    ///
    /// # Errors
    /// [`Failure`] if there is none of the object, or the engine was shut down.
    pub fn open(&self) -> Result<Self, Failure> {
        Ok(match self {
            Self::Ordered(ordered) => Self::Thread(Box::new(Mutex::new(Thread::new(ordered)))),
            Self::Engine(workers) => Self::Port(Box::new(Mutex::new(Port::new(workers)?))),
            Self::Partitions(partitions) => {
                let snapshot = exclusive(FILTER, partitions)?.snapshot();
                Self::Snapshot(Box::new(snapshot))
            }
            _ => return Err(self.is_no("ordered filter or engine")),
        })
    }

    /// Probes and inserts each key in order, each at its [tick](Keys::ticks) if they have some.
    /// Returns the number of duplicates; see [`Filter::observe`].
    ///
    /// # Errors
    /// As [`check_masks`](crate::check_masks), or of the object; nothing was judged then, unless a
    /// partition is lost.
    #[inline]
    pub fn observe(&self, keys: impl Keys, duplicates: &mut [u64]) -> Result<u64, Failure> {
        self.observe_at(&keys, keys.ticks(), duplicates)
    }

    /// As [`observe`](Self::observe), at these ticks if there are some.
    ///
    /// # Errors
    /// As [`observe`](Self::observe).
    #[inline]
    pub fn observe_at(
        &self,
        keys: &dyn Keys,
        ticks: Option<&[u64]>,
        duplicates: &mut [u64],
    ) -> Result<u64, Failure> {
        match self {
            Self::Filter(filter) => exclusive(FILTER, filter)?.observe(keys, ticks, duplicates),
            Self::Shared(shared) => shared.observe(keys, ticks, duplicates),
            Self::Exact(exact) => exclusive(FILTER, exact)?.observe(keys, ticks, duplicates),
            Self::Thread(thread) => exclusive("thread", thread)?.observe(keys, ticks, duplicates),
            Self::Partitions(filter) => exclusive(FILTER, filter)?.observe(keys, ticks, duplicates),
            _ => Err(self.is_no("filter, shared filter or thread")),
        }
    }

    /// Whether each key would be a duplicate now, as [`observe`](Self::observe) writes it.
    ///
    /// # Errors
    /// As [`observe`](Self::observe).
    pub fn contains(&self, keys: impl Keys, duplicates: &mut [u64]) -> Result<u64, Failure> {
        match self {
            Self::Shared(shared) => shared.contains(&keys, duplicates),
            Self::Exact(exact) => exclusive(FILTER, exact)?.contains(&keys, duplicates),
            _ => self.as_filter()?.contains(&keys, duplicates),
        }
    }

    /// Writes the hash of each key.
    ///
    /// # Errors
    /// [`Failure`] if the object hashes no keys.
    pub fn hash(&self, keys: impl Keys, hashes: &mut [KeyHash]) -> Result<(), Failure> {
        // A copy: another thread may use the object while the keys are hashed.
        let hasher = match self {
            Self::Filter(filter) => exclusive(FILTER, filter)?.hasher.clone(),
            Self::Shared(shared) => shared.hasher().clone(),
            Self::Exact(exact) => exclusive(FILTER, exact)?.hasher.clone(),
            Self::Ordered(ordered) => ordered.hasher.clone(),
            Self::Thread(thread) => exclusive("thread", thread)?.ordered.hasher.clone(),
            Self::Engine(workers) => workers.hasher.clone(),
            Self::Port(port) => exclusive("port", port)?.hasher.clone(),
            Self::Partitions(_) | Self::Snapshot(_) => return Err(self.is_no(FILTER)),
        };
        keys.hash(&hasher, 0, hashes);
        Ok(())
    }

    /// What makes the digests of keys for a filter without errors; `None` for other objects.
    ///
    /// # Errors
    /// [`Failure`] if another thread uses it.
    pub fn digester(&self) -> Result<Option<Digester>, Failure> {
        match self {
            Self::Exact(exact) => Ok(Some(exclusive(FILTER, exact)?.digester.clone())),
            _ => Ok(None),
        }
    }

    /// Submits a batch to a port; all keys have the last of their ticks.
    ///
    /// # Errors
    /// [`Failure`] if the engine was shut down, or a partition is lost.
    pub fn submit(&self, keys: impl Keys) -> Result<(), Failure> {
        self.as_port()?.submit(&keys, keys.ticks())
    }

    /// Waits for the verdicts of the oldest batch in flight of a port: the number of its keys, and
    /// that of the duplicates.
    ///
    /// # Errors
    /// [`Failure`] if the verdicts have more words, and the batch stays; if the engine was shut
    /// down, or a partition is lost.
    pub fn drain(&self, duplicates: &mut [u64]) -> Result<(usize, u64), Failure> {
        self.as_port()?.drain(duplicates)
    }

    /// Counters and error estimates. This may read the whole memory of the filter.
    ///
    /// # Errors
    /// [`Failure`] if the object has none, or a partition is lost.
    pub fn read_report(&self) -> Result<Report, Failure> {
        Ok(match self {
            Self::Shared(shared) => shared.report(),
            Self::Exact(exact) => exclusive(FILTER, exact)?.report(),
            Self::Ordered(ordered) => ordered.report()?,
            Self::Engine(workers) => workers.report()?,
            Self::Partitions(filter) => exclusive(FILTER, filter)?.report(),
            _ => self.as_filter()?.report(),
        })
    }

    /// As [`read_report`](Self::read_report), reading at most so many lines of the partitions of a task; see
    /// [`Partitions::report_in_slices`].
    ///
    /// # Errors
    /// [`Failure`] if the object is of another kind.
    pub fn report_in_slices(&self, most_lines: usize) -> Result<Report, Failure> {
        Ok(self.as_partitions()?.report_in_slices(most_lines))
    }

    /// The specification.
    ///
    /// # Errors
    /// [`Failure`] if the object has none, or another thread uses it.
    pub fn spec(&self) -> Result<String, Failure> {
        Ok(match self {
            Self::Shared(shared) => shared.spec().to_string(),
            Self::Exact(exact) => exclusive(FILTER, exact)?.spec.to_string(),
            Self::Ordered(ordered) => ordered.spec.to_string(),
            Self::Engine(workers) => workers.spec.to_string(),
            Self::Partitions(filter) => exclusive(FILTER, filter)?.identity.spec.to_string(),
            _ => self.as_filter()?.spec.to_string(),
        })
    }

    /// Saves the object with `bytes` of the caller, which a single partition does not have.
    ///
    /// # Errors
    /// [`Code::Unsupported`](crate::Code::Unsupported) if it cannot be saved, or not in parts, or
    /// [`Code::Io`](crate::Code::Io) if the file or the stream fails.
    pub fn save(&self, to: Target<'_>, bytes: &[u8]) -> Result<(), Failure> {
        let (lines, output) = match (self, to) {
            (Self::Ordered(_), to) => {
                let cut = Cut {
                    before: Box::new(|| ()),
                    position: Box::new(|| Ok(bytes.to_vec())),
                };
                return self.save_at(to, cut);
            }
            (Self::Exact(exact), to) => {
                let Target::File(path) = to else {
                    let allowed = "the path of a folder, which a filter without errors is saved in";
                    return Err(Failure::argument("to", "a stream", allowed));
                };
                return exclusive(FILTER, exact)?.save(&path, bytes);
            }
            (_, Target::File(path)) => {
                if !matches!(self, Self::Shared(_)) {
                    // Before there is a file.
                    self.lines()?;
                }
                return write_file(&path, |file| {
                    self.save(Target::Stream(None, Box::new(file)), bytes)
                });
            }
            (Self::Snapshot(snapshot), Target::Partition(partition, output)) => {
                return snapshot.save(partition, output);
            }
            (_, Target::Partition(partition, output)) => {
                return self.as_partitions()?.save(partition, output);
            }
            (_, Target::Stream(lines, output)) => (lines, output),
        };
        match self {
            Self::Shared(shared) if lines.is_none() => shared.save(bytes, output),
            _ => self.as_filter()?.save(lines, bytes, output),
        }
    }

    /// Saves an ordered filter with the bytes of the point where its state ends.
    ///
    /// # Errors
    /// As [`save`](Self::save), and that of [`Cut::position`].
    pub fn save_at(&self, to: Target<'_>, mut cut: Cut<'_>) -> Result<(), Failure> {
        let Self::Ordered(ordered) = self else {
            return Err(self.is_no("ordered filter"));
        };
        match to {
            Target::File(path) => {
                ordered.check_can_wait()?;
                write_file(&path, |file| ordered.save(&mut cut, file))
            }
            Target::Stream(None, output) => ordered.save(&mut cut, output),
            _ => Err(Failure::argument(
                "lines",
                "a part",
                "all, an ordered filter is saved as a whole",
            )),
        }
    }

    /// Replaces one partition by its saved state; see [`Partitions::load`].
    ///
    /// # Errors
    /// As [`Partitions::load`].
    pub fn load_partition(&self, partition: usize, input: impl Read) -> Result<(), Failure> {
        self.as_partitions()?.load(partition, input)
    }

    /// Stops the workers of an engine, and returns the report of its filter.
    ///
    /// # Errors
    /// [`Failure`] if it was shut down before, or a partition is lost.
    pub fn shutdown(&self) -> Result<Report, Failure> {
        match self {
            Self::Engine(workers) => workers.shutdown(),
            _ => Err(self.is_no("engine")),
        }
    }

    pub(crate) fn as_filter(&self) -> Result<MutexGuard<'_, Filter>, Failure> {
        match self {
            Self::Filter(filter) => exclusive(FILTER, filter),
            _ => Err(self.is_no(FILTER)),
        }
    }

    pub(crate) fn as_thread(&self) -> Result<MutexGuard<'_, Thread>, Failure> {
        match self {
            Self::Thread(thread) => exclusive("thread", thread),
            _ => Err(self.is_no("thread of an ordered filter")),
        }
    }

    fn as_port(&self) -> Result<MutexGuard<'_, Port>, Failure> {
        match self {
            Self::Port(port) => exclusive("port", port),
            _ => Err(self.is_no("port of an engine")),
        }
    }

    /// The partitions of a task, for what only they have.
    ///
    /// # Errors
    /// [`Failure`] if the object is another one, or another thread uses it.
    pub fn as_partitions(&self) -> Result<MutexGuard<'_, Partitions>, Failure> {
        match self {
            Self::Partitions(partitions) => exclusive(FILTER, partitions),
            _ => Err(self.is_no("partitions")),
        }
    }

    /// The failure of a call that objects of this kind do not have.
    #[cold]
    pub(crate) fn is_no(&self, expected: &str) -> Failure {
        let kind = match self {
            Self::Filter(_) => FILTER,
            Self::Shared(_) => "shared filter",
            Self::Exact(_) => "filter without errors",
            Self::Ordered(_) => "ordered filter",
            Self::Thread(_) => "thread of an ordered filter",
            Self::Engine(_) => "engine",
            Self::Port(_) => "port of an engine",
            Self::Partitions(_) => "partitions",
            Self::Snapshot(_) => "snapshot",
        };
        Failure::argument("handle", kind, expected)
    }
}

/// Checks that only a filter that is divided has partitions.
fn check_partitions(kind: Kind, partitions: usize) -> Result<(), Failure> {
    match kind {
        Kind::Filter | Kind::Shared | Kind::Exact if partitions != 1 => {
            let allowed = "1, unless the filter is an ordered one or an engine's";
            Err(Failure::argument("partitions", partitions, allowed))
        }
        _ => Ok(()),
    }
}
