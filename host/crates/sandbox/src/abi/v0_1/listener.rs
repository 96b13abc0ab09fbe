//! Listener: converts signals to the types of the contract, and replies to ours.

use crate::{
    bindings::v0_1::exports::sallyport::plugin::listener as wit,
    role_data::{ListenerReply, ListenerSignal},
};

pub(super) fn signal_to_wit(signal: ListenerSignal) -> wit::Signal {
    match signal {
        ListenerSignal::Opened(peer) => wit::Signal::Opened(wit::Opening { peer, extra: None }),
        ListenerSignal::Text(text) => wit::Signal::Text(text),
        ListenerSignal::Binary(data) => wit::Signal::Binary(data),
        ListenerSignal::Answered(text) => {
            wit::Signal::Answered(wit::SessionAnswer { text, extra: None })
        }
        ListenerSignal::Closed => wit::Signal::Closed,
    }
}

/// Converts a reply, unless this version does not know its kind.
pub(super) fn reply_from_wit(reply: wit::Reply) -> Option<ListenerReply> {
    match reply {
        wit::Reply::Text(text) => Some(ListenerReply::Text(text)),
        wit::Reply::Binary(data) => Some(ListenerReply::Binary(data)),
        wit::Reply::Close => Some(ListenerReply::Close),
        wit::Reply::Other(_) => None,
    }
}
