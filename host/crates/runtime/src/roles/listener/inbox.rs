//! The inputs of listeners and UIs that wait for the session, in order of arrival.

use std::sync::{Mutex, PoisonError};

use sallyport_contract::services::{InputOrigin, SessionInbox, SubmissionError};
use sallyport_model::UserInputMessage;
use tokio::sync::mpsc::{self, OwnedPermit, error::TrySendError};

/// Most inputs that may wait for the current turn to end. Further ones are rejected with an error,
/// and accepted ones are never lost.
pub const INPUTS_WAITING_MAX: usize = 64;

/// Accepts inputs for a session.
#[derive(Debug, Clone)]
pub struct InputQueue(mpsc::Sender<UserInputMessage>);

impl InputQueue {
    /// Creates a tray, and returns the receiver for the session.
    pub fn new() -> (Self, mpsc::Receiver<UserInputMessage>) {
        let (sender, inputs) = mpsc::channel(INPUTS_WAITING_MAX);
        (Self(sender), inputs)
    }

    /// Adds an input.
    ///
    /// # Errors
    ///
    /// Too many inputs are waiting, or the session has ended.
    pub fn push(&self, input: UserInputMessage) -> Result<(), SubmissionError> {
        self.0.try_send(input).map_err(|error| match error {
            TrySendError::Full(_) => SubmissionError::Full,
            TrySendError::Closed(_) => SubmissionError::Ended,
        })
    }
}

/// A tray with a place reserved for the next input.
pub struct ReservedInputSlot {
    input_queue: InputQueue,
    permit: Mutex<Option<OwnedPermit<UserInputMessage>>>,
}

impl InputQueue {
    /// Waits for a place and reserves it, for a source that can wait before it reads. Returns
    /// `None` if the session has ended.
    pub async fn reserve_slot(&self) -> Option<ReservedInputSlot> {
        let permit = self.0.clone().reserve_owned().await.ok()?;
        Some(ReservedInputSlot { input_queue: self.clone(), permit: Mutex::new(Some(permit)) })
    }
}

impl SessionInbox for InputQueue {
    fn submit_input(&self, text: String, origin: InputOrigin) -> Result<(), SubmissionError> {
        self.push(build_user_message(text, origin))
    }
}

impl SessionInbox for ReservedInputSlot {
    fn submit_input(&self, text: String, origin: InputOrigin) -> Result<(), SubmissionError> {
        let permit = self.permit.lock().unwrap_or_else(PoisonError::into_inner).take();
        match permit {
            Some(permit) => drop(permit.send(build_user_message(text, origin))),
            None => self.input_queue.push(build_user_message(text, origin))?,
        }
        Ok(())
    }
}

fn build_user_message(text: String, origin: InputOrigin) -> UserInputMessage {
    UserInputMessage { text, origin: Some(origin), ..UserInputMessage::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_taken_is_kept_in_order_and_the_rest_is_told() {
        let (input_queue, mut inputs) = InputQueue::new();
        let put = |text: String| input_queue.push(UserInputMessage::from(text.as_str()));
        for n in 0..INPUTS_WAITING_MAX {
            assert_eq!(put(n.to_string()), Ok(()));
        }
        assert_eq!(put("more".to_owned()), Err(SubmissionError::Full));
        assert_eq!(inputs.recv().await.unwrap().text, "0");
        assert_eq!(put("more".to_owned()), Ok(()));
        drop(inputs);
        assert_eq!(put("late".to_owned()), Err(SubmissionError::Ended));
        assert!(input_queue.reserve_slot().await.is_none());
    }

    #[tokio::test]
    async fn a_place_that_is_kept_is_nobody_elses() {
        let (input_queue, mut inputs) = InputQueue::new();
        let origin =
            || InputOrigin { plugin: "lines".parse().unwrap(), label: None, connection: None };
        let put = |text: &str| input_queue.submit_input(text.to_owned(), origin());
        (1..INPUTS_WAITING_MAX).for_each(|_| assert_eq!(put("another"), Ok(())));
        let kept = input_queue.reserve_slot().await.unwrap();
        assert_eq!(put("more"), Err(SubmissionError::Full));
        assert_eq!(kept.submit_input("kept".to_owned(), origin()), Ok(()));
        assert_eq!(kept.submit_input("and one".to_owned(), origin()), Err(SubmissionError::Full));
        inputs.recv().await.unwrap();
        assert_eq!(kept.submit_input("and one".to_owned(), origin()), Ok(()));
    }
}
