//! Inputs that wait for the session: those of listeners and of UIs, in the order in which they came.

use sallyport_contract::services::{Inbox, Origin, SeatError};
use sallyport_model::UserMessage;
use tokio::sync::mpsc::{self, error::TrySendError};

/// Inputs that may wait for the present turn to end. Whoever brings more is told so, and nothing
/// that was taken is lost.
const INPUTS_WAITING_MAX: usize = 64;

/// Takes inputs for a session.
#[derive(Debug, Clone)]
pub(crate) struct Tray(mpsc::Sender<UserMessage>);

impl Tray {
    /// A tray, and the end where the session takes from it.
    pub(crate) fn new() -> (Self, mpsc::Receiver<UserMessage>) {
        let (sender, inputs) = mpsc::channel(INPUTS_WAITING_MAX);
        (Self(sender), inputs)
    }

    /// Puts an input in.
    ///
    /// # Errors
    ///
    /// Too many wait, or there is no session any more.
    pub(crate) fn put(&self, input: UserMessage) -> Result<(), SeatError> {
        self.0.try_send(input).map_err(|error| match error {
            TrySendError::Full(_) => SeatError::Full,
            TrySendError::Closed(_) => SeatError::Ended,
        })
    }
}

impl Inbox for Tray {
    fn submit(&self, text: String, origin: Origin) -> Result<(), SeatError> {
        self.put(UserMessage { text, origin: Some(origin), ..UserMessage::default() })
    }
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
    }
}
