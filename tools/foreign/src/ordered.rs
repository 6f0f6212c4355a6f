//! The filter of several threads whose verdicts are those of one: batches apply in the order of
//! their tickets.

use std::cell::Cell;
use std::io::{self, Write};
use std::ptr;
use std::sync::Arc;
use std::time::Duration;

use echoless::{
    Batch, FilterSpec, KeyHash, KeyHasher, LineFilter, OrderedFilter, OrderedHandle, Partitioned,
    Report, Ticket, Verdicts,
};
use self_cell::{MutBorrow, self_cell};

use crate::failure::{Code, Failure};
use crate::filter::memory_of;
use crate::keys::{
    KEPT_KEYS, Keys, check_batch, check_masks, give_back, give_back_verdicts, hash_all,
};

type Lines = Box<dyn LineFilter>;

/// A filter in lines whose batches apply in the order of their tickets. All threads may use it at
/// the same time; each observes through a [`Thread`] of its own.
#[derive(Debug)]
pub struct Ordered {
    filter: OrderedFilter<Lines>,
    pub(crate) spec: FilterSpec,
    pub(crate) hasher: KeyHasher,
    /// The memory of the state, in bytes.
    pub(crate) memory_bytes: u64,
}

thread_local! {
    /// The ordered filter for whose save this thread is in `position`, as an address.
    static IN_POSITION: Cell<usize> = const { Cell::new(0) };
}

/// What a program does at the point of the stream where a saved state ends. First `before` runs,
/// then the ticket of the point is taken, then `position` returns the bytes of the caller: so
/// `before` can lock the input, and `position` read its position and unlock it. `position` must not
/// observe or report with the filter, which would wait for it: that is an error.
pub struct Cut<'a> {
    /// Runs before the ticket is taken.
    pub before: Box<dyn FnMut() + 'a>,
    /// Returns the bytes to be saved.
    pub position: Box<dyn FnMut() -> Result<Vec<u8>, Failure> + 'a>,
}

impl std::fmt::Debug for Cut<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Cut")
    }
}

impl Ordered {
    pub(crate) fn new(
        filter: Partitioned<Lines>,
        spec: FilterSpec,
        hasher: KeyHasher,
    ) -> Arc<Self> {
        Arc::new(Self {
            memory_bytes: memory_of(filter.filters()),
            filter: OrderedFilter::builder(filter).build(),
            spec,
            hasher,
        })
    }

    /// Counters and error estimates at one point of the stream.
    pub(crate) fn report(&self) -> Result<Report, Failure> {
        self.check_can_wait()?;
        Ok(self.filter.handle().ticket().report()?)
    }

    /// Checks that a call can take a ticket and wait for its turn. Fails with [`Code::Busy`] inside
    /// of `position`, which would wait for itself: the save has a ticket.
    pub(crate) fn check_can_wait(&self) -> Result<(), Failure> {
        if IN_POSITION.get() == ptr::from_ref(self).addr() {
            let text = "position uses the ordered filter that is saved: expected none to wait for";
            return Err(Failure::new(Code::Busy, text));
        }
        Ok(())
    }

    /// Writes the state of one point of the stream, while threads observe.
    pub(crate) fn save(&self, cut: &mut Cut<'_>, output: impl Write) -> Result<(), Failure> {
        self.check_can_wait()?;
        let mut failure = None;
        let result = self.filter.save(&self.spec, &self.hasher, output, |saver| {
            (cut.before)();
            let ticket = saver.ticket();
            let outer = IN_POSITION.replace(ptr::from_ref(self).addr());
            let bytes = (cut.position)();
            IN_POSITION.set(outer);
            let bytes = bytes.map_err(|error| {
                failure = Some(error);
                io::Error::other("the position of the caller")
            })?;
            Ok((ticket, bytes))
        });
        // A failure of the caller is reported as it was.
        failure.map_or_else(|| Ok(result?), Err)
    }
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

/// The access of one thread to an ordered filter.
pub struct Thread {
    pub(crate) ordered: Arc<Ordered>,
    /// The handle while it has no ticket. One of the two is there between calls.
    idle: Option<OrderedHandle<Lines>>,
    holding: Option<Holding>,
    hashes: Vec<KeyHash>,
    verdicts: Verdicts,
}

impl std::fmt::Debug for Thread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Thread")
            .field("ordered", &self.ordered)
            .finish_non_exhaustive()
    }
}

impl Thread {
    pub(crate) fn new(ordered: &Arc<Ordered>) -> Self {
        Self {
            idle: Some(ordered.filter.handle()),
            ordered: Arc::clone(ordered),
            holding: None,
            hashes: Vec::new(),
            verdicts: Verdicts::new(),
        }
    }

    /// Takes the next ticket, unless the thread holds one.
    pub(crate) fn take(&mut self) {
        if let Some(handle) = self.idle.take() {
            let owner = MutBorrow::new(handle);
            self.holding = Some(Holding::new(owner, |handle| {
                Some(handle.borrow_mut().ticket())
            }));
        }
    }

    /// Leaves out the ticket that the thread holds.
    pub(crate) fn leave(&mut self) {
        self.use_ticket(|ticket| drop(ticket));
    }

    /// Waits for the turn of the ticket that the thread holds, or the next one.
    pub(crate) fn wait(&mut self, timeout: Duration) -> Result<(), Failure> {
        self.ordered.check_can_wait()?;
        self.take();
        let waited = self.holding.as_mut().and_then(|holding| {
            let wait = |ticket: &mut Ticket<'_, Lines>| ticket.wait(timeout);
            holding.with_dependent_mut(|_, ticket| ticket.as_mut().map(wait))
        });
        Ok(waited.unwrap_or(Ok(()))?)
    }

    /// Passes the ticket that the thread holds to `with`, or leaves it out.
    fn use_ticket<T>(&mut self, with: impl FnOnce(Ticket<'_, Lines>) -> T) -> Option<T> {
        let mut holding = self.holding.take()?;
        let result = holding.with_dependent_mut(|_, ticket| ticket.take().map(with));
        self.idle = Some(holding.into_owner().into_inner());
        result
    }

    /// Observes with the ticket that the thread holds, or the next one. The ticket is used up also
    /// by a batch that fails, unless an argument was wrong.
    pub(crate) fn observe(
        &mut self,
        keys: &dyn Keys,
        ticks: Option<&[u64]>,
        duplicates: &mut [u64],
    ) -> Result<u64, Failure> {
        self.ordered.check_can_wait()?;
        check_masks(keys.len(), ticks.map(<[u64]>::len), duplicates.len())?;
        check_batch(keys.len())?;
        let mut buffer = std::mem::take(&mut self.hashes);
        let mut verdicts = std::mem::take(&mut self.verdicts);
        let hashes = hash_all(keys, &self.ordered.hasher, &mut buffer);
        self.take();
        let batch = match ticks {
            Some(ticks) => Batch::at_each(hashes, ticks),
            None => Batch::new(hashes),
        };
        let passed = self.use_ticket(|ticket| ticket.observe(batch, &mut verdicts));
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
