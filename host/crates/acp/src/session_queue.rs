//! The requests that open, close or delete one session, one after the other.
//!
//! A session that closes still writes its last records and ends its instances. One that is opened with
//! the same ID meanwhile would lose its own to that. Requests about different sessions do not wait for
//! each other.

use std::{
    collections::HashMap,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError, Weak},
    task::{Context, Poll, Waker},
};

use tokio::{sync::OwnedMutexGuard, task};

/// The queues of sessions by their ids. Each lasts as long as a request is in it.
#[derive(Default)]
pub(crate) struct SessionQueues {
    queues: Mutex<HashMap<String, Weak<tokio::sync::Mutex<()>>>>,
}

/// A place in the queue of a session.
pub(crate) enum SessionPlace {
    First(SessionTurn),
    Waiting(Pin<Box<dyn Future<Output = SessionTurn> + Send>>),
}

/// Nobody else opens, closes or deletes the session while this exists.
pub(crate) type SessionTurn = OwnedMutexGuard<()>;

impl SessionQueues {
    /// Takes the last place in the queue of a session, at once, so that the order of the places is that
    /// of the calls.
    pub(crate) fn take_place(&self, session_id: &str) -> SessionPlace {
        let queue = self.queue(session_id);
        // Its budget must not be that of the caller's task, or the poll would not take a place when
        // that is used up.
        let mut turn = Box::pin(task::unconstrained(queue.lock_owned()));
        match turn.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(turn) => SessionPlace::First(turn),
            Poll::Pending => SessionPlace::Waiting(turn),
        }
    }

    fn queue(&self, session_id: &str) -> Arc<tokio::sync::Mutex<()>> {
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        queues.retain(|_, queue| queue.strong_count() > 0);
        if let Some(queue) = queues.get(session_id).and_then(Weak::upgrade) {
            return queue;
        }
        let queue = Arc::default();
        queues.insert(session_id.to_owned(), Arc::downgrade(&queue));
        queue
    }
}

impl SessionPlace {
    /// Waits until all earlier places are free.
    pub(crate) async fn reach(self) -> SessionTurn {
        match self {
            Self::First(turn) => turn,
            Self::Waiting(turn) => turn.await,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn a_session_is_not_opened_while_it_closes_and_no_other_one_waits() {
        let queues = SessionQueues::default();
        let closing = queues.take_place("s-1").reach().await;
        let [load, delete] = [(); 2].map(|()| queues.take_place("s-1"));
        queues.take_place("s-2").reach().await;
        // The place counts, and not who waits first.
        let mut deleting = tokio::spawn(delete.reach());
        let mut loading = tokio::spawn(load.reach());
        let moment = Duration::from_millis(50);
        assert!(timeout(moment, &mut loading).await.is_err(), "it waits for the close");
        drop(closing);
        let loaded = loading.await.unwrap();
        assert!(timeout(moment, &mut deleting).await.is_err(), "it waits for the load");
        drop(loaded);
        drop(deleting.await.unwrap());
        queues.take_place("s-3").reach().await;
        assert_eq!(queues.queues.lock().unwrap().len(), 1, "queues of nobody are forgotten");
    }

    #[tokio::test]
    async fn a_place_that_is_given_up_is_free() {
        let queues = SessionQueues::default();
        let closing = queues.take_place("s-1").reach().await;
        let [given_up, load] = [(); 2].map(|()| queues.take_place("s-1"));
        drop((given_up, closing));
        timeout(Duration::from_secs(60), load.reach()).await.unwrap();
    }
}
