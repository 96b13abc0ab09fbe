//! Listener: converts signals to the types of the contract, and replies to ours.

use sallyport_contract::LogLevel;
use wasmtime::{Store, component::Instance};

use super::tools::{convert_tool_error, convert_unit_result};
use crate::{
    abi::{InterfaceMismatch, ToolReturnValue},
    bindings::v0_1::exports::sallyport::plugin::listener as wit,
    guest::Guest,
    roles::{ListenerReply, ListenerSignal},
};

pub(super) async fn start_listener(
    listener: &wit::GuestIndices,
    store: &mut Store<Guest>,
    instance: Instance,
) -> wasmtime::Result<ToolReturnValue> {
    let guest = listener.load(&mut *store, &instance).map_err(InterfaceMismatch::wrap_error)?;
    let bytes_max = store.data().output_bytes_max();
    Ok(convert_unit_result(guest.call_start(store).await?, bytes_max))
}

pub(super) async fn stop_listener(
    listener: &wit::GuestIndices,
    store: &mut Store<Guest>,
    instance: Instance,
) -> wasmtime::Result<()> {
    let guest = listener.load(&mut *store, &instance).map_err(InterfaceMismatch::wrap_error)?;
    guest.call_stop(store).await
}

pub(super) async fn handle_signal(
    listener: &wit::GuestIndices,
    store: &mut Store<Guest>,
    instance: Instance,
    connection: String,
    signal: ListenerSignal,
) -> wasmtime::Result<Result<Vec<ListenerReply>, ToolReturnValue>> {
    let guest = listener.load(&mut *store, &instance).map_err(InterfaceMismatch::wrap_error)?;
    let bytes_max = store.data().output_bytes_max();
    let effect_log = store.data().run_context.effect_log.clone();
    let result = guest.call_handle(store, &connection, &signal_to_wit(signal)).await?;
    let replies = |replies: Vec<wit::Reply>| {
        let known = replies.into_iter().filter_map(|reply| {
            let known = reply_from_wit(reply);
            if known.is_none() {
                effect_log.log_line(LogLevel::Warn, "a reply of an unknown kind was left out");
            }
            known
        });
        known.collect()
    };
    Ok(result.map(replies).map_err(|error| convert_tool_error(error, bytes_max)))
}

fn signal_to_wit(signal: ListenerSignal) -> wit::Signal {
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
fn reply_from_wit(reply: wit::Reply) -> Option<ListenerReply> {
    match reply {
        wit::Reply::Text(text) => Some(ListenerReply::Text(text)),
        wit::Reply::Binary(data) => Some(ListenerReply::Binary(data)),
        wit::Reply::Close => Some(ListenerReply::Close),
        wit::Reply::Other(_) => None,
    }
}
