//! Streams without duplicates.
//!
//! ```text
//!   input --> batch --> port: batches in flight, oldest first --> records with verdicts --> output
//! ```
//!
//! Each poll first gives out what has verdicts, then takes the verdicts that arrived, reads the
//! input as far as it is ready, and submits the batch if it is due. Before it is pending, it has
//! left the waker of the task with each of input, timer and port that can bring it on.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use echoless::{ExchangeError, KeyHash, Port, Verdict, Verdicts};
use futures_core::Stream;
use pin_project_lite::pin_project;
use thiserror::Error;
use tokio::time::{Instant, Sleep, sleep_until};

use crate::batching::Batching;

/// Records without verdicts, because their partition is lost or the engine is gone. They are in no
/// filter that goes on, so they can be submitted again: through the input, such as a channel that
/// the consumer keeps a sender of, or to a [`Port`].
#[derive(Error)]
#[error("records without a verdict, {}: {cause}", records.len())]
pub struct Unknown<T> {
    /// Why they have none.
    pub cause: ExchangeError,
    /// The records, in their order.
    pub records: Vec<T>,
}

impl<T> fmt::Debug for Unknown<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = formatter.debug_struct("Unknown");
        out.field("cause", &self.cause)
            .field("records", &self.records.len())
            .finish()
    }
}

/// How many duplicates are dropped before other tasks of the thread may go on.
const MOST_DUPLICATES: usize = 4096;

/// Duplicate detection for streams of records.
pub trait Dedup: Stream + Sized {
    /// Drops the duplicates. The records that stay keep their order.
    ///
    /// After an error the stream goes on with the next batch: once the partition is
    /// [replaced](echoless::Engine::replace) without errors. The records of an error come with it;
    /// those of its batch whose verdicts are known come before it.
    ///
    /// Records are observed at tick 0, so a filter with a window forgets nothing, unless they have
    /// [ticks](Fresh::with_ticks).
    ///
    /// The stream is `Unpin` if the input is, so `while let Some(record) = stream.next().await`
    /// needs no pinning. Dropping the future of a next record loses nothing. Dropping the stream
    /// drops the records that it has read and not given out; some are then recorded.
    ///
    /// # Panics
    /// If batches are in flight on the port. If the stream is polled outside a runtime with timers.
    fn dedup<K>(self, port: Port, key: K, batching: Batching) -> Fresh<Self, K>
    where
        K: FnMut(&Self::Item) -> KeyHash,
    {
        Fresh {
            with_verdicts: self.with_verdicts(port, key, batching),
        }
    }

    /// Gives every record its verdict. As [`dedup`](Self::dedup) otherwise.
    ///
    /// # Panics
    /// As [`dedup`](Self::dedup).
    fn with_verdicts<K>(self, port: Port, key: K, batching: Batching) -> WithVerdicts<Self, K>
    where
        K: FnMut(&Self::Item) -> KeyHash,
    {
        assert_eq!(port.in_flight(), 0, "batches are in flight");
        WithVerdicts {
            input: Some(self),
            key,
            ticks: Ticks(None),
            clock: 0,
            next: None,
            port,
            in_flight: VecDeque::new(),
            batching,
            due: None,
            records: Vec::new(),
            keys: Vec::new(),
            verdicts: Verdicts::new(),
            ready: VecDeque::new(),
            unknown: None,
        }
    }
}

impl<S: Stream> Dedup for S {}

pin_project! {
    /// The records of a stream with their verdicts; see [`Dedup::with_verdicts`].
    #[derive(Debug)]
    #[must_use = "streams do nothing unless polled"]
    pub struct WithVerdicts<S: Stream, K> {
        // `None` once it has ended.
        #[pin]
        input: Option<S>,
        key: K,
        ticks: Ticks<S::Item>,
        // The largest tick so far, at which the batch is observed.
        clock: u64,
        // The record that begins the next batch, with its tick, beyond the clock.
        next: Option<(S::Item, u64)>,
        port: Port,
        // The records of the batches in flight, oldest first.
        in_flight: VecDeque<Vec<S::Item>>,
        batching: Batching,
        // When the batch is due, unless it is empty or full, or the delay is endless. Boxed, so
        // that the stream can move if its input can.
        due: Option<Pin<Box<Sleep>>>,
        // The batch.
        records: Vec<S::Item>,
        keys: Vec<KeyHash>,
        verdicts: Verdicts,
        ready: VecDeque<(S::Item, Verdict)>,
        unknown: Option<Unknown<S::Item>>,
    }
}

type TickOf<T> = Box<dyn FnMut(&T) -> u64 + Send>;

/// The tick of each record; without it, all have tick 0.
struct Ticks<T>(Option<TickOf<T>>);

impl<T> fmt::Debug for Ticks<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_tuple("Ticks")
            .field(&self.0.is_some())
            .finish()
    }
}

impl<S: Stream, K> WithVerdicts<S, K> {
    /// Observes records at ticks, for a filter with a window; see [`Fresh::with_ticks`].
    pub fn with_ticks(mut self, tick: impl FnMut(&S::Item) -> u64 + Send + 'static) -> Self {
        self.ticks = Ticks(Some(Box::new(tick)));
        self
    }
}

impl<S, K> Stream for WithVerdicts<S, K>
where
    S: Stream,
    K: FnMut(&S::Item) -> KeyHash,
{
    type Item = Result<(S::Item, Verdict), Unknown<S::Item>>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            let this = self.as_mut().project();
            if let Some(record) = this.ready.pop_front() {
                return Poll::Ready(Some(Ok(record)));
            }
            if let Some(unknown) = this.unknown.take() {
                return Poll::Ready(Some(Err(unknown)));
            }
            if self.as_mut().poll_verdicts(context).is_ready() {
                continue;
            }
            let ended = self.as_mut().poll_input(context).is_ready();
            if self.as_mut().poll_submit(ended, context).is_ready() {
                continue;
            }
            let this = self.as_mut().project();
            if ended && this.records.is_empty() && this.port.in_flight() == 0 {
                return Poll::Ready(None);
            }
            return Poll::Pending;
        }
    }
}

impl<S, K> WithVerdicts<S, K>
where
    S: Stream,
    K: FnMut(&S::Item) -> KeyHash,
{
    /// Takes the oldest batch in flight apart, once it has verdicts or is lost.
    fn poll_verdicts(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = self.project();
        if this.port.in_flight() == 0 {
            return Poll::Pending;
        }
        match ready!(this.port.poll_drain(context, this.verdicts)) {
            Ok(complete) => {
                let records = complete.then(|| this.in_flight.pop_front()).flatten();
                let records = records.into_iter().flatten();
                this.ready.extend(records.zip(this.verdicts.iter()));
            }
            Err(cause) => {
                let partial = this.port.take_partial(this.verdicts);
                let records = partial.then(|| this.in_flight.pop_front()).flatten();
                let records = records.into_iter().flatten();
                let mut unknown = Vec::new();
                for (index, record) in records.enumerate() {
                    if this.verdicts.is_unknown(index) {
                        unknown.push(record);
                    } else {
                        this.ready.push_back((record, this.verdicts.get(index)));
                    }
                }
                *this.unknown = Some(Unknown {
                    cause,
                    records: unknown,
                });
            }
        }
        Poll::Ready(())
    }

    /// Reads records until the batch is full. Ready once the input has ended.
    fn poll_input(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        loop {
            let mut this = self.as_mut().project();
            if let Some((record, tick)) = this.next.take_if(|_| this.records.is_empty()) {
                *this.clock = tick;
                self.as_mut().push(record);
                continue;
            }
            if this.next.is_some() || this.records.len() >= this.batching.records {
                return Poll::Pending; // until the batch is submitted
            }
            let Some(input) = this.input.as_mut().as_pin_mut() else {
                return Poll::Ready(());
            };
            let Some(record) = ready!(input.poll_next(context)) else {
                this.input.set(None);
                continue;
            };
            let tick = this.ticks.0.as_mut().map_or(0, |tick| tick(&record));
            if tick > *this.clock {
                *this.next = Some((record, tick));
            } else {
                self.as_mut().push(record);
            }
        }
    }

    /// Appends a record to the batch.
    fn push(self: Pin<&mut Self>, record: S::Item) {
        let this = self.project();
        if this.records.is_empty() {
            // `None` if the delay is endless.
            let due = Instant::now().checked_add(this.batching.delay);
            match (&mut *this.due, due) {
                (Some(sleep), Some(due)) => sleep.as_mut().reset(due),
                (sleep, due) => *sleep = due.map(|due| Box::pin(sleep_until(due))),
            }
        }
        this.keys.push((this.key)(&record));
        this.records.push(record);
    }

    /// Submits the batch once it is due and has room. Ready if it was submitted or rejected.
    fn poll_submit(self: Pin<&mut Self>, ended: bool, context: &mut Context<'_>) -> Poll<()> {
        let this = self.project();
        if this.records.is_empty() {
            return Poll::Pending;
        }
        let is_complete = ended || this.next.is_some();
        if !is_complete && this.records.len() < this.batching.records {
            let Some(due) = this.due else {
                return Poll::Pending; // until the batch is full, or the input ends
            };
            // A timer is ready up to a millisecond later.
            if due.deadline() > Instant::now() {
                ready!(due.as_mut().poll(context));
            }
        }
        if this.port.in_flight() >= this.batching.in_flight {
            return Poll::Pending; // until verdicts arrive
        }
        // An error comes back from the submission, with the records.
        ready!(this.port.poll_ready(context)).ok();
        let records = std::mem::take(this.records);
        match this.port.try_submit_at(*this.clock, this.keys) {
            Ok(true) => this.in_flight.push_back(records),
            Ok(false) => unreachable!("the port is ready"),
            Err(cause) => *this.unknown = Some(Unknown { cause, records }),
        }
        this.keys.clear();
        Poll::Ready(())
    }
}

pin_project! {
    /// The fresh records of a stream; see [`Dedup::dedup`].
    #[must_use = "streams do nothing unless polled"]
    pub struct Fresh<S: Stream, K> {
        #[pin]
        with_verdicts: WithVerdicts<S, K>,
    }
}

impl<S: Stream, K> Fresh<S, K> {
    /// Observes records at ticks, for a filter with a window: `tick` is the time of a record in the
    /// units of the filter, such as its event time in seconds.
    ///
    /// The clock is the largest tick so far; earlier records are observed at the clock. A batch has
    /// one tick, so a record beyond the clock begins the next batch: ticks should be long enough
    /// that many records share one.
    ///
    /// # Examples
    /// ```
    /// use echoless::{Engine, FilterSpec, KeyHasher};
    /// use echoless_tokio::{Batching, Dedup};
    /// use tokio_stream::StreamExt;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// // A record is a duplicate only of one at most 600 s before.
    /// let filter: FilterSpec = "stamped:window=600,refresh=false,memory=1MiB".parse()?;
    /// let (engine, mut ports) = Engine::builder(filter.build_partitions(2)?).build()?;
    /// let hasher = KeyHasher::seeded(0);
    /// let calls = [(0, "call 17"), (600, "call 17"), (601, "call 17")];
    /// let key = move |(_, id): &(u64, &str)| hasher.hash(id);
    /// let passed: Vec<_> = tokio_stream::iter(calls)
    ///     .dedup(ports.remove(0), key, Batching::default())
    ///     .with_ticks(|(second, _)| *second)
    ///     .collect::<Result<_, _>>()
    ///     .await?;
    /// assert_eq!(passed, [(0, "call 17"), (601, "call 17")]);
    /// engine.shutdown()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn with_ticks(mut self, tick: impl FnMut(&S::Item) -> u64 + Send + 'static) -> Self {
        self.with_verdicts = self.with_verdicts.with_ticks(tick);
        self
    }
}

impl<S: Stream, K> fmt::Debug for Fresh<S, K>
where
    WithVerdicts<S, K>: fmt::Debug,
{
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_tuple("Fresh")
            .field(&self.with_verdicts)
            .finish()
    }
}

impl<S, K> Stream for Fresh<S, K>
where
    S: Stream,
    K: FnMut(&S::Item) -> KeyHash,
{
    type Item = Result<S::Item, Unknown<S::Item>>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        for _ in 0..MOST_DUPLICATES {
            match ready!(self.as_mut().project().with_verdicts.poll_next(context)) {
                Some(Ok((record, Verdict::Fresh))) => return Poll::Ready(Some(Ok(record))),
                Some(Ok((_, Verdict::Duplicate))) => {}
                Some(Err(unknown)) => return Poll::Ready(Some(Err(unknown))),
                None => return Poll::Ready(None),
            }
        }
        // Other tasks go on before this one.
        context.waker().wake_by_ref();
        Poll::Pending
    }
}
