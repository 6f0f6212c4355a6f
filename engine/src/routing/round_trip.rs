//! Routing alone, without rings and filters, for the benchmark of it.

use super::messages::{Router, RoutingWay, Selections};
use crate::error::SpecError;
use crate::hash::KeyHash;
use crate::isa::Kernel;
use crate::partition::Partitioning;
use crate::verdicts::Verdicts;

/// Routes batches to partitions that answer at once.
///
/// Public only for `echoless-bench scaling`; ports and handles route by themselves.
#[derive(Debug)]
pub struct RoundTrip {
    router: Router,
    partitions: usize,
    selections: Selections,
    verdicts: Verdicts,
}

impl RoundTrip {
    /// A router to the partitions: the one that ports use, or one with this kernel and this way.
    ///
    /// # Errors
    /// If this CPU cannot run the kernel.
    pub fn new(
        partitioning: Partitioning,
        with: Option<(Kernel, RoutingWay)>,
    ) -> Result<Self, SpecError> {
        Ok(Self {
            partitions: partitioning.count(),
            router: match with {
                None => Router::new(partitioning),
                Some((kernel, way)) => Router::with(partitioning, kernel.detect()?, way),
            },
            selections: Selections::default(),
            verdicts: Verdicts::new(),
        })
    }

    /// Routes a batch of fewer than 2^31 keys as messages, and turns the answers into verdicts.
    /// `answer` gets the keys of a message, and returns a bit for each that is a duplicate.
    pub fn observe(
        &mut self,
        keys: &[KeyHash],
        mut answer: impl FnMut(&[KeyHash]) -> u64,
    ) -> &Verdicts {
        self.verdicts.reset(keys.len());
        self.router.route(keys, &mut self.selections);
        let kernel = self.router.kernel();
        for owner in 0..self.partitions {
            let mut index = None;
            loop {
                let (keys, next) = self.router.message(&self.selections, owner, index);
                // The first message of a partition without keys.
                if !keys.is_empty() {
                    let answer = answer(keys);
                    (self.selections).answer(owner, kernel, answer, &mut self.verdicts);
                }
                index = next;
                if index.is_none() {
                    break;
                }
            }
        }
        self.selections.finish(kernel, &mut self.verdicts);
        &self.verdicts
    }
}
