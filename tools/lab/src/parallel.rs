//! Independent pieces of work on several threads, with results in the order of the items.
//!
//! Simulations differ in length by orders of magnitude, so threads take items one at a time from a
//! shared counter instead of a fixed part each.

use std::num::NonZeroUsize;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

/// Applies `work` to every item on `threads` threads. A thread that finishes an item takes the next
/// one.
///
/// # Errors
/// The error of the first thread that has one, in the order in which threads were started. That
/// thread stops; the others still run all remaining items.
///
/// # Panics
/// If `work` panics.
///
/// # Examples
/// ```
/// use std::num::NonZeroUsize;
/// use echoless_lab::parallel::map;
/// let threads = NonZeroUsize::new(2).unwrap();
/// let squares = map(&[1, 2, 3], threads, |number| Ok::<_, ()>(number * number));
/// assert_eq!(squares, Ok(vec![1, 4, 9]));
/// ```
pub fn map<T: Sync, R: Send + Sync, E: Send>(
    items: &[T],
    threads: NonZeroUsize,
    work: impl Fn(&T) -> Result<R, E> + Sync,
) -> Result<Vec<R>, E> {
    let next = AtomicUsize::new(0);
    let results: Vec<OnceLock<R>> = items.iter().map(|_| OnceLock::new()).collect();
    let take_items = || {
        loop {
            // Relaxed: the counter only hands out indices. Results reach the caller through the
            // joins of the scope, which synchronise.
            let index = next.fetch_add(1, Relaxed);
            let Some(item) = items.get(index) else {
                return Ok(());
            };
            let result = work(item)?;
            results[index].get_or_init(|| result);
        }
    };
    thread::scope(|scope| {
        let threads = threads.get().min(items.len());
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(take_items)).collect();
        workers
            .into_iter()
            .try_for_each(|worker| worker.join().expect("a worker panicked"))
    })?;
    Ok(results
        .into_iter()
        .filter_map(OnceLock::into_inner)
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_order_for_any_number_of_threads() {
        let items: Vec<u64> = (0..200).collect();
        for threads in [1, 2, 7, 300] {
            let threads = NonZeroUsize::new(threads).unwrap();
            let doubled = map(&items, threads, |item| Ok::<_, ()>(item * 2)).unwrap();
            assert!(doubled.iter().zip(&items).all(|(two, one)| *two == one * 2));
            assert_eq!(doubled.len(), items.len());
        }
        let none = map(&[], NonZeroUsize::MIN, |item: &u64| Ok::<_, ()>(*item));
        assert_eq!(none, Ok(Vec::new()));
    }

    #[test]
    fn an_error_is_returned() {
        let threads = NonZeroUsize::new(2).unwrap();
        let odd = |item: &u64| if *item == 7 { Err(*item) } else { Ok(*item) };
        let items: Vec<u64> = (0..20).collect();
        assert_eq!(map(&items, threads, odd), Err(7));
    }
}
