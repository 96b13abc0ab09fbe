//! The role of a listener: a plugin that turns signals from outside into input for a session.
//!
//! The host holds the sockets; what it listens to, the manifest requests (`[[request.listen]]`) and
//! the policy grants. Lines and web socket messages arrive as [`Signal`]s, requests of HTTP through
//! [`serve`](mod@crate::serve). What shall become input goes through [`inbox`](mod@crate::inbox).
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

/// Something that happened on a connection.
///
/// ```
/// use sallyport_sdk::listener::Signal;
///
/// let signal = Signal::Opened("127.0.0.1:40312".to_owned());
/// assert_ne!(signal, Signal::Closed);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum Signal {
    /// Somebody has connected; their address, or a name for it.
    Opened(String),
    /// A line or a text message came.
    Text(String),
    /// A binary message came.
    Binary(Vec<u8>),
    /// The session has answered an input that came from this connection.
    Answered(String),
    /// The connection is closed.
    Closed,
    /// Something that only later versions know.
    Other(Value),
}

/// What to do with the connection.
///
/// ```
/// use sallyport_sdk::listener::Reply;
///
/// let bye = vec![Reply::Text("Bye.".to_owned()), Reply::Close];
/// assert_eq!(bye.len(), 2);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// Send a text message or a line.
    Text(String),
    /// Send a binary message.
    Binary(Vec<u8>),
    /// Close it.
    Close,
    /// Something that only later versions know.
    Other(Value),
}

/// A plugin that listens. Its value lives as long as the instance and can also be reached by
/// [`session::with`](crate::session::with).
pub trait Listener: Default + 'static {
    /// Runs once before the first signal.
    ///
    /// # Errors
    ///
    /// Why nothing can be listened to.
    fn start(&mut self) -> Result<(), ToolError> {
        Ok(())
    }

    /// Runs once after the last signal.
    fn stop(&mut self) {}

    /// Takes one signal. `connection` names where it came from, and is the same for as long as that
    /// stands.
    ///
    /// # Errors
    ///
    /// Why the signal could not be dealt with; it goes into the log, and the connection stands.
    fn handle(&mut self, connection: &str, signal: Signal) -> Result<Vec<Reply>, ToolError> {
        let _ = (connection, signal);
        Ok(Vec::new())
    }
}
