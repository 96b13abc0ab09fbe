//! The listener role: a plugin that turns signals from outside into input for a session.
//!
//! The host opens the sockets. The manifest requests them (`[[request.listen]]`) and the policy
//! grants them. Lines and WebSocket messages arrive as [`Signal`]s, HTTP requests arrive through
//! [`serve`](mod@crate::serve). The plugin sends input to the session with
//! [`inbox`](mod@crate::inbox).
//!
//! ```
//! use sallyport_sdk::{inbox, listener::{Listener, Reply, Signal}, prelude::*, testing};
//!
//! /// Takes questions, counts them, and sends the answers back.
//! #[derive(Default)]
//! struct Counter {
//!     questions: u32,
//! }
//!
//! impl Listener for Counter {
//!     fn handle(&mut self, connection: &str, signal: Signal) -> Result<Vec<Reply>, ToolError> {
//!         match signal {
//!             Signal::Text(question) => {
//!                 self.questions += 1;
//!                 inbox::submit(&question, Some(connection))?;
//!                 Ok(vec![Reply::Text(format!("question {}", self.questions))])
//!             }
//!             Signal::Answered(answer) => Ok(vec![Reply::Text(answer)]),
//!             _ => Ok(vec![]),
//!         }
//!     }
//! }
//!
//! sallyport_sdk::export_plugin!(listener = Counter);
//!
//! # fn main() {
//! testing::grant([testing::Power::Inbox]);
//! let replies = Counter::default().handle("1", Signal::Text("Why?".to_owned())).unwrap();
//! assert_eq!(replies, [Reply::Text("question 1".to_owned())]);
//! # }
//! ```

use serde_json::Value;

use crate::ToolError;

/// An event on a connection.
///
/// ```
/// use sallyport_sdk::listener::Signal;
///
/// let signal = Signal::Opened("127.0.0.1:40312".to_owned());
/// assert_ne!(signal, Signal::Closed);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum Signal {
    /// A client has connected. Contains its address, or a name for it.
    Opened(String),
    /// A line or a text message has arrived.
    Text(String),
    /// A binary message has arrived.
    Binary(Vec<u8>),
    /// The session has answered an input from this connection. Contains the answer.
    Answered(String),
    /// The connection was closed.
    Closed,
    /// An event that this version does not know, as JSON.
    Other(Value),
}

/// An action on the connection.
///
/// ```
/// use sallyport_sdk::listener::Reply;
///
/// let bye = vec![Reply::Text("Bye.".to_owned()), Reply::Close];
/// assert_eq!(bye.len(), 2);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// Send a line or a text message.
    Text(String),
    /// Send a binary message.
    Binary(Vec<u8>),
    /// Close the connection.
    Close,
    /// An action that this version does not know, as JSON.
    Other(Value),
}

/// A plugin that listens. Its value lives as long as the instance, and
/// [`session::with`](crate::session::with) can access it.
pub trait Listener: Default + 'static {
    /// Runs once before the first signal.
    ///
    /// # Errors
    ///
    /// The listener cannot start; the error states why.
    fn start(&mut self) -> Result<(), ToolError> {
        Ok(())
    }

    /// Runs once after the last signal.
    fn stop(&mut self) {}

    /// Handles one signal, and returns actions on its connection. `connection` identifies the
    /// connection for as long as it is open.
    ///
    /// # Errors
    ///
    /// The signal could not be handled. The error is logged, and the connection stays open.
    fn handle(&mut self, connection: &str, signal: Signal) -> Result<Vec<Reply>, ToolError> {
        let _ = (connection, signal);
        Ok(Vec::new())
    }
}
