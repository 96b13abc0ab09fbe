//! Listener: converts signals to the types of the contract, and replies to ours.

use sallyport_contract::LogLevel;
use wasmtime::{Store, component::Instance};

use super::tools::{done, tool_error};
use crate::{
    abi::{Mismatch, ToolReturn},
    bindings::v0_1::exports::sallyport::plugin::listener as wit,
    guest::Guest,
    roles::{Reply, Signal},
};

pub(super) async fn start(
    listener: &wit::GuestIndices,
    store: &mut Store<Guest>,
    instance: Instance,
) -> wasmtime::Result<ToolReturn> {
    let guest = listener.load(&mut *store, &instance).map_err(Mismatch::wrap)?;
    let bytes_max = store.data().output_bytes_max();
    Ok(done(guest.call_start(store).await?, bytes_max))
}

pub(super) async fn stop(
    listener: &wit::GuestIndices,
    store: &mut Store<Guest>,
    instance: Instance,
) -> wasmtime::Result<()> {
    let guest = listener.load(&mut *store, &instance).map_err(Mismatch::wrap)?;
    guest.call_stop(store).await
}

pub(super) async fn handle(
    listener: &wit::GuestIndices,
    store: &mut Store<Guest>,
    instance: Instance,
    connection: String,
    signal: Signal,
) -> wasmtime::Result<Result<Vec<Reply>, ToolReturn>> {
    let guest = listener.load(&mut *store, &instance).map_err(Mismatch::wrap)?;
    let bytes_max = store.data().output_bytes_max();
    let ledger = store.data().case.ledger.clone();
    let result = guest.call_handle(store, &connection, &wit_signal(signal)).await?;
    let replies = |replies: Vec<wit::Reply>| {
        let known = replies.into_iter().filter_map(|reply| {
            let known = known(reply);
            if known.is_none() {
                ledger.log(LogLevel::Warn, "a reply of an unknown kind was left out");
            }
            known
        });
        known.collect()
    };
    Ok(result.map(replies).map_err(|error| tool_error(error, bytes_max)))
}

fn wit_signal(signal: Signal) -> wit::Signal {
    match signal {
        Signal::Opened(peer) => wit::Signal::Opened(wit::Opening { peer, extra: None }),
        Signal::Text(text) => wit::Signal::Text(text),
        Signal::Binary(data) => wit::Signal::Binary(data),
        Signal::Answered(text) => wit::Signal::Answered(wit::SessionAnswer { text, extra: None }),
        Signal::Closed => wit::Signal::Closed,
    }
}

/// Converts a reply, unless this version does not know its kind.
fn known(reply: wit::Reply) -> Option<Reply> {
    match reply {
        wit::Reply::Text(text) => Some(Reply::Text(text)),
        wit::Reply::Binary(data) => Some(Reply::Binary(data)),
        wit::Reply::Close => Some(Reply::Close),
        wit::Reply::Other(_) => None,
    }
}
