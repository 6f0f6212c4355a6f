//! The filter of several threads whose verdicts are those of one: batches apply in the order of
//! their tickets.

use std::cell::Cell;
use std::ffi::{c_char, c_int, c_void};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use std::{io, ptr};

use echoless::state::replace_file;
use echoless::{
    FilterSpec, KeyHash, KeyHasher, LineFilter, OrderedFilter, OrderedHandle, Ticket, Verdicts,
};
use echoless_foreign::{
    Code, Failure, Keys, ReportFields, Table, check_masks, exclusive, give_back,
    give_back_verdicts, hash_all, restore_file,
};
use self_cell::{MutBorrow, self_cell};

use crate::call::{Place, call, echoless_hashing, hasher, path, text};
use crate::filter::{LoadPlaces, ReportPlace, echoless_read};
use crate::keys::{echoless_keys, judge_keys};

/// A handle: a filter in lines whose batches apply in the order of their tickets. All threads may
/// use it at the same time; each observes through a thread of its own, `echoless_thread`.
#[derive(Debug)]
pub struct echoless_ordered {
    _opaque: (),
}

/// A handle: the access of one thread to an ordered filter. One thread at a time may use it.
#[derive(Debug)]
pub struct echoless_thread {
    _opaque: (),
}

type Lines = Box<dyn LineFilter>;

struct Ordered {
    filter: OrderedFilter<Lines>,
    spec: FilterSpec,
    hasher: KeyHasher,
}

type LinesTicket<'a> = Option<Ticket<'a, Lines>>;

self_cell!(
    /// A handle and its ticket, which borrows it. There is none once its batch has passed.
    struct Holding {
        owner: MutBorrow<OrderedHandle<Lines>>,
        #[not_covariant]
        dependent: LinesTicket,
    }
);

struct Thread {
    ordered: Arc<Ordered>,
    /// The handle while it has no ticket. One of the two is there between calls.
    idle: Option<OrderedHandle<Lines>>,
    holding: Option<Holding>,
    hashes: Vec<KeyHash>,
    verdicts: Verdicts,
}

static ORDERED: Table<Arc<Ordered>> = Table::new(4, "ordered filter");
static THREADS: Table<Mutex<Thread>> = Table::new(5, THREAD);
const THREAD: &str = "thread";

thread_local! {
    /// The ordered filter for whose save this thread is in `position`, as an address.
    static IN_POSITION: Cell<usize> = const { Cell::new(0) };
}

impl Ordered {
    /// Checks that a call can take a ticket and wait for its turn.
    ///
    /// # Errors
    /// [`Code::Busy`] inside of `position`, which would wait for itself: the save has a ticket.
    fn check_can_wait(&self) -> Result<(), Failure> {
        if IN_POSITION.get() == ptr::from_ref(self).addr() {
            let text = "position uses the ordered filter that is saved: expected none to wait for";
            return Err(Failure::new(Code::Busy, text));
        }
        Ok(())
    }
}

/// The keys of the longest batch whose buffers a thread keeps.
const KEPT_KEYS: usize = 1 << 17;

impl Thread {
    /// Takes the next ticket, unless the thread holds one.
    fn take_ticket(&mut self) {
        if let Some(handle) = self.idle.take() {
            let owner = MutBorrow::new(handle);
            self.holding = Some(Holding::new(owner, |handle| {
                Some(handle.borrow_mut().ticket())
            }));
        }
    }

    /// Passes the ticket that the thread holds to `with`, or leaves it out.
    fn use_ticket<T>(&mut self, with: impl FnOnce(Ticket<'_, Lines>) -> T) -> Option<T> {
        let mut holding = self.holding.take()?;
        let result = holding.with_dependent_mut(|_, ticket| ticket.take().map(with));
        self.idle = Some(holding.into_owner().into_inner());
        result
    }

    /// Observes with the ticket that the thread holds, or the next one. The ticket is used up also
    /// by a batch that fails.
    fn observe(
        &mut self,
        keys: &dyn Keys,
        ticks: Option<&[u64]>,
        duplicates: &mut [u64],
    ) -> Result<u64, Failure> {
        self.ordered.check_can_wait()?;
        check_masks(keys.len(), ticks.map(<[u64]>::len), duplicates.len())?;
        let most = (1 << 31) - 1;
        if keys.len() > most {
            let allowed = format!("at most {most} in a batch");
            return Err(Failure::argument("count", keys.len(), allowed));
        }
        let mut buffer = std::mem::take(&mut self.hashes);
        let mut verdicts = std::mem::take(&mut self.verdicts);
        let hashes = hash_all(keys, &self.ordered.hasher, &mut buffer);
        self.take_ticket();
        let passed = self.use_ticket(|ticket| match ticks {
            Some(ticks) => ticket.observe_at(ticks, hashes, &mut verdicts),
            None => ticket.observe(hashes, &mut verdicts),
        });
        let result = match passed {
            Some(Ok(())) => {
                duplicates.copy_from_slice(verdicts.words());
                Ok(verdicts.count_duplicates())
            }
            Some(Err(error)) => Err(error.into()),
            None => unreachable!("a ticket was taken"),
        };
        give_back(&mut buffer);
        give_back_verdicts(&mut verdicts);
        (self.hashes, self.verdicts) = (buffer, verdicts);
        if keys.len() > KEPT_KEYS {
            // A handle keeps its buffers, too.
            self.idle = Some(self.ordered.filter.handle());
        }
        result
    }
}

/// Runs `with` on the thread of a handle.
#[inline]
fn with_thread<T>(
    handle: *const echoless_thread,
    with: impl FnOnce(&mut Thread) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let entry = THREADS.get(handle)?;
    with(&mut *exclusive(THREAD, &entry)?)
}

/// Builds an ordered filter of `partitions` partitions from the specification of a filter in lines,
/// such as "fingerprint:fpr=1e-8,memory=64MiB". Threads that do nothing but judge need a partition
/// each; verdicts do not depend on the number. Free it with `echoless_ordered_free`. Any thread may
/// call this.
///
/// # Safety
/// As `echoless_filter_new`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn echoless_ordered_new(
    spec: *const c_char,
    hashing: *const echoless_hashing,
    partitions: usize,
    out: *mut *mut echoless_ordered,
) -> c_int {
    call(|| {
        // SAFETY: the caller answers for the pointers.
        let (out, spec, hasher) = unsafe {
            let out = Place::new("out", out)?;
            (out, text("spec", spec, None)?, hasher(hashing)?)
        };
        let spec: FilterSpec = spec.parse()?;
        let filter = OrderedFilter::builder(spec.build_line_partitions(partitions)?).build();
        let handle = ORDERED.insert(Arc::new(Ordered {
            filter,
            spec,
            hasher,
        }))?;
        out.write(handle.pointer());
        Ok(())
    })
}

/// Frees an ordered filter; NULL has no effect. Its threads go on; the filter itself is freed with
/// the last of them.
#[unsafe(no_mangle)]
pub extern "C" fn echoless_ordered_free(ordered: *mut echoless_ordered) -> c_int {
    call(|| ORDERED.remove(ordered))
}

/// The access of one more thread. Free it with `echoless_thread_free`. Any thread may call this.
///
/// # Safety
/// `out` points to memory for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn echoless_thread_new(
    ordered: *mut echoless_ordered,
    out: *mut *mut echoless_thread,
) -> c_int {
    call(|| {
        // SAFETY: the caller answers for the memory.
        let out = unsafe { Place::new("out", out)? };
        let ordered = Arc::clone(&*ORDERED.get(ordered)?);
        let handle = THREADS.insert(Mutex::new(Thread {
            idle: Some(ordered.filter.handle()),
            ordered,
            holding: None,
            hashes: Vec::new(),
            verdicts: Verdicts::new(),
        }))?;
        out.write(handle.pointer());
        Ok(())
    })
}

/// Frees a thread; NULL has no effect. A ticket that it holds is left out.
#[unsafe(no_mangle)]
pub extern "C" fn echoless_thread_free(thread: *mut echoless_thread) -> c_int {
    call(|| THREADS.remove(thread))
}

/// Takes the next ticket: the batch of the next `echoless_thread_observe` of this thread applies
/// after those of all tickets that were taken before. Usually under the lock of the input, so that
/// both have one order. Does not block. Without effect if the thread holds a ticket.
///
/// All later tickets wait until the batch has passed, so a thread that holds a ticket must observe,
/// or leave it out with `echoless_thread_leave`.
#[unsafe(no_mangle)]
pub extern "C" fn echoless_thread_take(thread: *mut echoless_thread) -> c_int {
    call(|| {
        with_thread(thread, |thread| {
            thread.take_ticket();
            Ok(())
        })
    })
}

/// Waits at most so many milliseconds for the turn of the ticket that the thread holds, which it
/// takes if it holds none. If the time is over, that is `ECHOLESS_STATUS_TIMED_OUT`, and the thread
/// still holds its ticket, in its place among the others.
#[unsafe(no_mangle)]
pub extern "C" fn echoless_thread_wait(thread: *mut echoless_thread, milliseconds: u64) -> c_int {
    call(|| {
        with_thread(thread, |thread| {
            thread.ordered.check_can_wait()?;
            thread.take_ticket();
            let timeout = Duration::from_millis(milliseconds);
            let waited = thread.holding.as_mut().and_then(|holding| {
                let wait = |ticket: &mut Ticket<'_, Lines>| ticket.wait(timeout);
                holding.with_dependent_mut(|_, ticket| ticket.as_mut().map(wait))
            });
            Ok(waited.unwrap_or(Ok(()))?)
        })
    })
}

/// Leaves out the ticket that the thread holds, if it holds one.
#[unsafe(no_mangle)]
pub extern "C" fn echoless_thread_leave(thread: *mut echoless_thread) -> c_int {
    call(|| {
        with_thread(thread, |thread| {
            thread.use_ticket(|ticket| drop(ticket));
            Ok(())
        })
    })
}

/// As `echoless_filter_observe`, with the ticket that the thread holds, or else the next one. Waits
/// at each partition for the batches of lower tickets. After an error about the arguments, the
/// thread still holds its ticket; after any other error the batch has passed the partitions that
/// are not lost.
///
/// # Safety
/// As `echoless_filter_observe`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn echoless_thread_observe(
    thread: *mut echoless_thread,
    keys: echoless_keys,
    duplicates: *mut u64,
    count: *mut u64,
) -> c_int {
    call(|| {
        with_thread(thread, |thread| {
            // SAFETY: the caller answers for the pointers.
            unsafe {
                judge_keys(&keys, duplicates, count, |keys, ticks, words| {
                    thread.observe(keys, ticks, words)
                })
            }
        })
    })
}

/// As `echoless_filter_report`, at one point of the stream, while threads observe. From any thread
/// that holds no ticket.
///
/// # Safety
/// As `echoless_filter_report`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn echoless_ordered_report(
    ordered: *mut echoless_ordered,
    report: *mut ReportFields,
) -> c_int {
    call(|| {
        // SAFETY: the caller answers for the struct.
        let place = unsafe { ReportPlace::new(report)? };
        let ordered = Arc::clone(&*ORDERED.get(ordered)?);
        ordered.check_can_wait()?;
        place.write(&ordered.filter.handle().ticket().report()?);
        Ok(())
    })
}

/// The most bytes of the caller in a state of an ordered filter.
const MOST_BYTES: usize = 1 << 16;

/// A function that is called at the point of the stream where a state ends.
pub type echoless_cut = Option<unsafe extern "C" fn(context: *mut c_void)>;

/// Saves an ordered filter into a file, as `echoless_filter_save_file`, while threads observe: the
/// state is that of one point of the stream. There `before` is called, then the ticket of the point
/// is taken, then `position` writes the bytes of the caller, at most 65,536: so `before` can lock
/// the input, and `position` read its position and unlock it. Both may be NULL. From a thread that
/// holds no ticket; `position` must not observe or report with the filter, which would wait for it.
///
/// # Safety
/// `path` ends with a NUL; the functions take `context`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn echoless_ordered_save_file(
    ordered: *mut echoless_ordered,
    path: *const c_char,
    before: echoless_cut,
    position: echoless_read,
    context: *mut c_void,
) -> c_int {
    call(|| {
        // SAFETY: the caller answers for the path.
        let path = unsafe { self::path(path)? };
        let ordered = Arc::clone(&*ORDERED.get(ordered)?);
        ordered.check_can_wait()?;
        let mut failure = None;
        let saved = replace_file(&path, |file| {
            let Ordered {
                filter,
                spec,
                hasher,
            } = &*ordered;
            let result = filter.save(spec, hasher, file, |saver| {
                if let Some(before) = before {
                    // SAFETY: the caller answers for the function and its context.
                    unsafe { before(context) };
                }
                let ticket = saver.ticket();
                let mut bytes = Vec::new();
                if let Some(position) = position {
                    let mut length = 0;
                    bytes.resize(MOST_BYTES, 0);
                    let outer = IN_POSITION.replace(Arc::as_ptr(&ordered).addr());
                    // SAFETY: as above.
                    let status = unsafe {
                        position(context, bytes.as_mut_ptr(), MOST_BYTES, &raw mut length)
                    };
                    IN_POSITION.set(outer);
                    if status != 0 || length > MOST_BYTES {
                        let text = format!("position returned {status} and {length} bytes");
                        failure = Some(Failure::new(Code::Io, text));
                        length = 0;
                    }
                    bytes.truncate(length);
                }
                (ticket, bytes)
            });
            if let Err(error) = result {
                failure.get_or_insert(error.into());
            }
            match &failure {
                None => Ok(()),
                Some(failure) => Err(io::Error::other(failure.text.clone())),
            }
        });
        match (saved, failure) {
            (_, Some(failure)) => Err(failure),
            (Ok(()), None) => Ok(()),
            (Err(error), None) => Err(Failure::from(error).of_path(&path)),
        }
    })
}

/// Restores an ordered filter of `partitions` partitions from a file, that of an ordered filter with
/// any number of them or that of `echoless_filter_save_file`. Otherwise as
/// `echoless_filter_load_file`.
///
/// # Safety
/// As `echoless_filter_load_file`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn echoless_ordered_load_file(
    path: *const c_char,
    hashing: *const echoless_hashing,
    partitions: usize,
    memory_limit: u64,
    bytes: *mut u8,
    capacity: usize,
    length: *mut usize,
    out: *mut *mut echoless_ordered,
) -> c_int {
    call(|| {
        // SAFETY: the caller answers for the pointers.
        let (loaded, path, hasher) = unsafe {
            let loaded = LoadPlaces::new(bytes, capacity, length, out)?;
            (loaded, self::path(path)?, hasher(hashing)?)
        };
        let (spec, filter, saved) = restore_file(&path, &hasher, memory_limit, partitions)?;
        let filter = OrderedFilter::builder(filter).build();
        loaded.write(&saved, || {
            ORDERED.insert(Arc::new(Ordered {
                filter,
                spec,
                hasher,
            }))
        })
    })
}
