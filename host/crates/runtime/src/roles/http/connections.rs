//! The connections at one address: their limit, and which one is dropped to make room.
//!
//! A client that has not shown the key keeps its place only until another one needs it. So
//! thousands of idle or slow connections do not lock out a client.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use tokio::task::AbortHandle;

/// Most concurrent connections at one address. A browser opens six; the rest is for programs.
pub(super) const CONNECTIONS_MAX: usize = 256;

/// Whether the client of a connection has shown the key.
#[derive(Debug, Clone, Default)]
pub(super) struct KnownPeer(Arc<AtomicBool>);

impl KnownPeer {
    /// Records that the client has shown the key.
    pub(super) fn mark_known(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn is_known(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The open connections, the oldest first.
#[derive(Debug, Default)]
pub(super) struct OpenConnections(VecDeque<(AbortHandle, KnownPeer)>);

impl OpenConnections {
    /// Makes room for another connection, if necessary by dropping the oldest one without a key.
    /// Returns false if every client has shown the key.
    pub(super) fn make_room(&mut self) -> bool {
        if self.0.len() >= CONNECTIONS_MAX {
            self.0.retain(|(task, _)| !task.is_finished());
        }
        if self.0.len() < CONNECTIONS_MAX {
            return true;
        }
        let unknown = self.0.iter().position(|(_, peer)| !peer.is_known());
        let ended = unknown.and_then(|at| self.0.remove(at));
        if let Some((task, _)) = &ended {
            task.abort();
        }
        ended.is_some()
    }

    pub(super) fn add(&mut self, task: AbortHandle, peer: KnownPeer) {
        self.0.push_back((task, peer));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn whoever_is_known_keeps_the_place_and_the_oldest_other_makes_room() {
        let mut open = OpenConnections::default();
        let mut tasks = tokio::task::JoinSet::new();
        let peers: Vec<KnownPeer> = (0..CONNECTIONS_MAX).map(|_| KnownPeer::default()).collect();
        for peer in &peers {
            assert!(open.make_room());
            open.add(tasks.spawn(std::future::pending::<()>()), peer.clone());
        }
        peers.iter().for_each(KnownPeer::mark_known);
        assert!(!open.make_room(), "all of them are known");
        let (one, other) = (KnownPeer::default(), KnownPeer::default());
        // Known connections that have ended make room first.
        tasks.abort_all();
        while tasks.join_next().await.is_some() {}
        assert!(open.make_room() && open.0.is_empty());
        for peer in [&one, &other].into_iter().chain(&peers[2..]) {
            open.add(tasks.spawn(std::future::pending::<()>()), peer.clone());
        }
        one.mark_known();
        assert!(open.make_room());
        assert!(tasks.join_next().await.unwrap().unwrap_err().is_cancelled());
        assert_eq!(open.0.len(), CONNECTIONS_MAX - 1);
        assert!(open.0.iter().all(|(_, peer)| peer.is_known()), "the other one has made room");
    }
}
