//! A listener that submits web socket messages as input, and sends the answers back.

use std::collections::HashMap;

use sallyport_sdk::{
    inbox,
    listener::{Listener, Reply, Signal},
    prelude::*,
};

/// Maximum number of connections whose address is stored. For others, the connection's id is the
/// origin.
const PEERS_MAX: usize = 256;

/// A chat with all connected clients.
#[derive(Debug, Default)]
struct Chat {
    /// The addresses of the clients, by connection.
    peers: HashMap<String, String>,
}

impl Listener for Chat {
    fn handle(&mut self, connection: &str, signal: Signal) -> Result<Vec<Reply>, ToolError> {
        Ok(match signal {
            Signal::Opened(peer) => {
                self.remember(connection, peer);
                vec![]
            }
            Signal::Text(text) => self.submit(connection, &text),
            Signal::Binary(_) => vec![text("This chat takes text messages only.")],
            Signal::Answered(answer) => vec![text(answer)],
            Signal::Closed => {
                self.peers.remove(connection);
                vec![]
            }
            Signal::Other(_) => vec![],
        })
    }
}

impl Chat {
    fn remember(&mut self, connection: &str, peer: String) {
        if self.peers.len() < PEERS_MAX {
            self.peers.insert(connection.to_owned(), peer);
        }
    }

    /// Submits a message. If it is not accepted, its sender receives the error, and the connection
    /// stays open.
    fn submit(&self, connection: &str, words: &str) -> Vec<Reply> {
        let origin = self.peers.get(connection).map_or(connection, String::as_str);
        match inbox::submit(words, Some(origin)) {
            Ok(()) => vec![],
            Err(error) => vec![text(format!("Sorry, {error}."))],
        }
    }
}

fn text(words: impl Into<String>) -> Reply {
    Reply::Text(words.into())
}

sallyport_sdk::export_plugin!(listener = Chat);

#[cfg(test)]
mod tests {
    use sallyport_sdk::testing::{self, Power};

    use super::*;

    #[track_caller]
    fn check(chat: &mut Chat, signal: Signal, want: &[&str]) {
        let replies = chat.handle("c1", signal).unwrap();
        let want: Vec<_> = want.iter().map(|words| text(*words)).collect();
        assert_eq!(replies, want);
    }

    #[test]
    fn messages_become_input_and_answers_go_back() {
        testing::grant([Power::Inbox]);
        let mut chat = Chat::default();
        check(&mut chat, Signal::Opened("127.0.0.1:4000".to_owned()), &[]);
        check(&mut chat, Signal::Text("Hello".to_owned()), &[]);
        check(&mut chat, Signal::Answered("Good morning.".to_owned()), &["Good morning."]);
        check(&mut chat, Signal::Closed, &[]);
        check(&mut chat, Signal::Text("Late".to_owned()), &[]);
        let input = |text: &str, from: &str| (text.to_owned(), Some(from.to_owned()));
        let inputs = testing::submitted();
        assert_eq!(inputs, [input("Hello", "127.0.0.1:4000"), input("Late", "c1")]);
    }

    #[test]
    fn what_is_not_taken_is_told_and_the_connection_stands() {
        let mut chat = Chat::default();
        check(
            &mut chat,
            Signal::Text("Hello".to_owned()),
            &["Sorry, no session takes input from this plugin."],
        );
        check(&mut chat, Signal::Binary(vec![1]), &["This chat takes text messages only."]);
        check(&mut chat, Signal::Other(json!({})), &[]);
        testing::grant([Power::Inbox]);
        let empty = "Sorry, the input is not taken: it is empty.";
        check(&mut chat, Signal::Text("  ".to_owned()), &[empty]);
    }

    #[test]
    fn no_flood_of_connections_fills_the_memory() {
        let mut chat = Chat::default();
        for n in 0..PEERS_MAX * 2 {
            let _ = chat.handle(&n.to_string(), Signal::Opened("x".to_owned()));
        }
        assert_eq!(chat.peers.len(), PEERS_MAX);
    }
}
