//! The rings between ports and partitions: how deep they are, how both sides wait, and the wiring.

use super::link::PortLink;
use super::message::{MESSAGE_KEYS, Request};
use super::server::ServerLink;
use crate::error::BuildError;
use crate::memory::check_available;
use crate::transport::{Parker, Wait, ring};

/// The most messages in a ring, unless asked otherwise: 8 Ki keys on their way to each partition.
const DEEPEST: usize = 8192 / MESSAGE_KEYS;

/// The fewest, unless asked otherwise: with less, a batch of some hundred keys for each partition stops on its way.
const SHALLOWEST: usize = 4;

/// How rings are set up.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Rings {
    /// The messages in each; from the number of threads if not given.
    pub(super) depth: Option<usize>,
    /// How the threads wait; from the numbers of threads and cores if not given.
    pub(super) wait: Option<Wait>,
}

/// The links of each port, and the links of each server.
pub(super) type Connections = (Vec<Vec<PortLink>>, Vec<Vec<ServerLink>>);

impl Rings {
    /// How each of so many threads waits.
    pub(super) fn wait_among(self, threads: usize) -> Wait {
        self.wait.unwrap_or_else(|| Wait::auto(threads))
    }

    /// How many messages fit in a ring. There is one for each pair, so unless asked otherwise they are the shallower the more there are: all
    /// rings of a thread together hold no more than sixteen of the deepest do, until there are so many that each is at the least.
    fn depth_among(self, ports: usize, servers: usize) -> usize {
        let share = (8 * DEEPEST / ports.max(servers).max(1)).next_power_of_two();
        self.depth.unwrap_or(share.clamp(SHALLOWEST, DEEPEST))
    }

    /// Two rings between each port and each server, whose ends ring the parker at the other side.
    ///
    /// # Errors
    /// [`BuildError`] if the depth is no power of two, or the machine has not the memory for all of them.
    pub(super) fn connect(
        self,
        ports: &[Parker],
        servers: &[Parker],
    ) -> Result<Connections, BuildError> {
        let depth = self.depth_among(ports.len(), servers.len());
        // A model's rings are tiny, and it makes them some million times.
        if depth.is_power_of_two() && cfg!(not(loom)) {
            let pair = ring::bytes::<Request>(depth).saturating_add(ring::bytes::<u64>(depth));
            check_available(pair.saturating_mul(ports.len() as u64 * servers.len() as u64))?;
        }
        let mut server_links: Vec<Vec<ServerLink>> = servers.iter().map(|_| Vec::new()).collect();
        let mut port_links = Vec::new();
        for port in ports {
            let mut to_servers = Vec::new();
            for (server, to_ports) in servers.iter().zip(&mut server_links) {
                let (mut requests, mut requested) = ring::bounded::<Request>(depth)?;
                let (mut answers, mut answered) = ring::bounded::<u64>(depth)?;
                requests.set_doorbell(server.doorbell());
                answered.set_doorbell(server.doorbell());
                requested.set_doorbell(port.doorbell());
                answers.set_doorbell(port.doorbell());
                to_servers.push(PortLink::new(requests, answered));
                to_ports.push(ServerLink::new(requested, answers));
            }
            port_links.push(to_servers);
        }
        Ok((port_links, server_links))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_a_thread_does_not_grow_with_their_number() {
        let depth = |threads| Rings::default().depth_among(threads, threads);
        for threads in 1..=9 {
            assert_eq!(depth(threads), 128);
        }
        assert_eq!((depth(16), depth(128), depth(1024)), (64, 8, 4));
        for threads in 1..=256 {
            assert!(depth(threads).is_power_of_two());
            assert!(threads * depth(threads) <= 2048, "{threads} threads");
        }
        let asked = Rings {
            depth: Some(2),
            wait: None,
        };
        assert_eq!(asked.depth_among(1, 1), 2);
        assert_eq!(Rings::default().depth_among(1, 64), depth(64));
    }

    #[test]
    fn rings_that_the_machine_has_no_memory_for_are_refused_before_they_are_made() {
        let deep = Rings {
            depth: Some(1 << 40),
            wait: None,
        };
        let parkers = [Parker::new(), Parker::new()];
        let error = deep.connect(&parkers, &parkers).unwrap_err();
        assert!(matches!(error, BuildError::Memory(error) if error.bytes >= 4 << 49));
    }
}
