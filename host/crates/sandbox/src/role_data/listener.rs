//! What happens on a connection of a listener, and what it does there.

/// An event on a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListenerSignal {
    /// A client has connected. The text is its address or a name for it.
    Opened(String),
    /// A line or a text message arrived.
    Text(String),
    /// A binary message arrived.
    Binary(Vec<u8>),
    /// The session has answered an input that came from this connection.
    Answered(String),
    /// The connection is closed.
    Closed,
}

/// An action on the connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListenerReply {
    /// Send a text message or a line. The text is untrusted.
    Text(String),
    /// Send a binary message.
    Binary(Vec<u8>),
    /// Close the connection.
    Close,
}
