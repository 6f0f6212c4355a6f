//! The thread of a worker of an engine: it serves one partition until the engine stops it.

use super::pinning::pin_thread;
use super::server::ArrivalServer;
use crate::filters::Filter;
use crate::sync::{Arc, AtomicBool, Ordering, Sender};
use crate::transport::{Parker, Wait};

/// The state and the loop of a worker thread.
pub(super) struct WorkerTask<F> {
    pub(super) server: ArrivalServer<F>,
    pub(super) parker: Parker,
    pub(super) wait: Wait,
    pub(super) pin: Option<PinRequest>,
    pub(super) stop: Arc<AtomicBool>,
}

/// The core that a worker pins itself to, and the channel on which it reports whether it could.
pub(super) struct PinRequest {
    pub(super) core: usize,
    pub(super) report: Sender<bool>,
}

impl<F: Filter> WorkerTask<F> {
    /// Serves until the engine sets `stop`, then answers what is still in the rings.
    pub(super) fn work(&mut self) {
        if let Some(PinRequest { core, report }) = self.pin.take() {
            // Fails only if the builder returned early, with another error, and dropped the
            // receiver.
            let _ = report.send(pin_thread(Some(core)));
        }
        let Self { server, stop, .. } = self;
        loop {
            // Acquire: pairs with the Release in `Engine::stop_workers`. Read before the rings are,
            // so that the last pass finds every message that was enqueued before the stop.
            if stop.load(Ordering::Acquire) {
                // Reject new messages, or a port that never pauses would keep this loop running.
                server.close();
                while server.serve() {}
                return;
            }
            if !server.serve() {
                self.parker.wait_until(self.wait, || {
                    server.is_ready() || stop.load(Ordering::Acquire)
                });
            }
        }
    }

    pub(super) fn into_filter(self) -> Result<F, String> {
        self.server.into_filter()
    }
}
