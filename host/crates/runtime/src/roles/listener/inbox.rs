//! Inputs that wait for the session: those of listeners and of UIs, in the order in which they came.

use std::sync::{Mutex, PoisonError};

use sallyport_contract::services::{Inbox, Origin, SeatError};
use sallyport_model::UserMessage;
use tokio::sync::mpsc::{self, OwnedPermit, error::TrySendError};

/// Inputs that may wait for the present turn to end. Whoever brings more is told so, and nothing
/// that was taken is lost.
pub const INPUTS_WAITING_MAX: usize = 64;

/// Takes inputs for a session.
#[derive(Debug, Clone)]
pub struct Tray(mpsc::Sender<UserMessage>);

impl Tray {
    /// A tray, and the end where the session takes from it.
    pub fn new() -> (Self, mpsc::Receiver<UserMessage>) {
        let (sender, inputs) = mpsc::channel(INPUTS_WAITING_MAX);
        (Self(sender), inputs)
    }

    /// Puts an input in.
    ///
    /// # Errors
    ///
    /// Too many wait, or there is no session any more.
    pub fn put(&self, input: UserMessage) -> Result<(), SeatError> {
        self.0.try_send(input).map_err(|error| match error {
            TrySendError::Full(_) => SeatError::Full,
            TrySendError::Closed(_) => SeatError::Ended,
        })
    }
}

/// A tray with a place that is kept for the next input.
pub struct Kept {
    tray: Tray,
    place: Mutex<Option<OwnedPermit<UserMessage>>>,
}

impl Tray {
    /// Waits for a place, and keeps it: for those who can wait before they bring anything. There is
    /// none where there is no session any more.
    pub async fn keep(&self) -> Option<Kept> {
        let place = self.0.clone().reserve_owned().await.ok()?;
        Some(Kept { tray: self.clone(), place: Mutex::new(Some(place)) })
    }
}

impl Inbox for Tray {
    fn submit(&self, text: String, origin: Origin) -> Result<(), SeatError> {
        self.put(from(text, origin))
    }
}

impl Inbox for Kept {
    fn submit(&self, text: String, origin: Origin) -> Result<(), SeatError> {
        let place = self.place.lock().unwrap_or_else(PoisonError::into_inner).take();
        match place {
            Some(place) => drop(place.send(from(text, origin))),
            None => self.tray.put(from(text, origin))?,
        }
        Ok(())
    }
}

fn from(text: String, origin: Origin) -> UserMessage {
    UserMessage { text, origin: Some(origin), ..UserMessage::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_taken_is_kept_in_order_and_the_rest_is_told() {
        let (tray, mut inputs) = Tray::new();
        let put = |text: String| tray.put(UserMessage::from(text.as_str()));
        for n in 0..INPUTS_WAITING_MAX {
            assert_eq!(put(n.to_string()), Ok(()));
        }
        assert_eq!(put("more".to_owned()), Err(SeatError::Full));
        assert_eq!(inputs.recv().await.unwrap().text, "0");
        assert_eq!(put("more".to_owned()), Ok(()));
        drop(inputs);
        assert_eq!(put("late".to_owned()), Err(SeatError::Ended));
        assert!(tray.keep().await.is_none());
    }

    #[tokio::test]
    async fn a_place_that_is_kept_is_nobody_elses() {
        let (tray, mut inputs) = Tray::new();
        let origin = || Origin { plugin: "lines".parse().unwrap(), label: None, connection: None };
        let put = |text: &str| tray.submit(text.to_owned(), origin());
        (1..INPUTS_WAITING_MAX).for_each(|_| assert_eq!(put("another"), Ok(())));
        let kept = tray.keep().await.unwrap();
        assert_eq!(put("more"), Err(SeatError::Full));
        assert_eq!(kept.submit("kept".to_owned(), origin()), Ok(()));
        assert_eq!(kept.submit("and one".to_owned(), origin()), Err(SeatError::Full));
        inputs.recv().await.unwrap();
        assert_eq!(kept.submit("and one".to_owned(), origin()), Ok(()));
    }
}
