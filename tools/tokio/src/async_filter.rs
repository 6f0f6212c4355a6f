//! The filters of tasks: a port of an engine, or a filter that all tasks share.

use std::future::{Future, poll_fn};
use std::sync::Arc;

use echoless::{ExchangeError, KeyHash, Port, SharedFilter, Verdicts};

/// A filter that observes batches of keys, one after the other, without blocking the thread.
///
/// # Examples
/// ```
/// use echoless::{KeyHasher, SharedSpec, Verdicts};
/// use echoless_tokio::AsyncFilter;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let filter = SharedSpec::new(1 << 20).build()?;
/// let key = KeyHasher::seeded(0).hash("call 17");
/// let mut verdicts = Verdicts::new();
/// (&filter).observe_async(&[key, key], &mut verdicts).await?;
/// assert_eq!(verdicts.to_bools(), [false, true]);
/// # Ok(())
/// # }
/// ```
pub trait AsyncFilter: Send {
    /// Tests and records the keys in their order; `verdicts` is resized to them.
    ///
    /// If the future is dropped before it is ready, the keys may be recorded or not, and the next
    /// call returns the verdicts of its own keys. For that, a [`Port`] drops the verdicts of all
    /// batches that are in flight.
    ///
    /// Keys are observed at tick 0: a filter with a window forgets nothing.
    ///
    /// # Errors
    /// If some keys have no verdict. `verdicts` is empty then; what is known of the batch is lost.
    ///
    /// # Panics
    /// Of a [`Port`], if there are 2^31 keys or more.
    fn observe_async(
        &mut self,
        keys: &[KeyHash],
        verdicts: &mut Verdicts,
    ) -> impl Future<Output = Result<(), ExchangeError>> + Send;
}

impl AsyncFilter for Port {
    async fn observe_async(
        &mut self,
        keys: &[KeyHash],
        verdicts: &mut Verdicts,
    ) -> Result<(), ExchangeError> {
        // Batches of futures that were dropped.
        while self.in_flight() > 0 {
            if poll_fn(|context| self.poll_drain(context, verdicts))
                .await
                .is_err()
            {
                self.take_partial(verdicts);
            }
        }
        verdicts.reset(0);
        if !self.try_submit(keys)? {
            unreachable!("no batch is in flight");
        }
        let drained = poll_fn(|context| self.poll_drain(context, verdicts)).await;
        if drained.is_err() {
            self.take_partial(verdicts);
            verdicts.reset(0);
        }
        drained.map(|_| ())
    }
}

/// Keys have no ticks: a window stands still until the program moves its clock with
/// [`SharedFilter::advance_to`].
impl AsyncFilter for &SharedFilter {
    async fn observe_async(
        &mut self,
        keys: &[KeyHash],
        verdicts: &mut Verdicts,
    ) -> Result<(), ExchangeError> {
        self.observe(keys, verdicts);
        Ok(())
    }
}

impl AsyncFilter for Arc<SharedFilter> {
    async fn observe_async(
        &mut self,
        keys: &[KeyHash],
        verdicts: &mut Verdicts,
    ) -> Result<(), ExchangeError> {
        (&**self).observe_async(keys, verdicts).await
    }
}

impl<F: AsyncFilter> AsyncFilter for &mut F {
    async fn observe_async(
        &mut self,
        keys: &[KeyHash],
        verdicts: &mut Verdicts,
    ) -> Result<(), ExchangeError> {
        F::observe_async(self, keys, verdicts).await
    }
}
