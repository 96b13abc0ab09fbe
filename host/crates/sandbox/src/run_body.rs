//! What a run does in its instance.

use sallyport_contract::BoxFuture;
use wasmtime::{Store, component::Instance};

use crate::guest::Guest;

/// The operation on the instance.
pub(crate) type RunBody<R> = Box<
    dyn for<'a> FnOnce(&'a mut Store<Guest>, Instance) -> BoxFuture<'a, wasmtime::Result<R>> + Send,
>;

/// Gives a closure the type of a [`RunBody`], which type inference does not find by itself.
pub(crate) fn box_run_body<R, F>(body: F) -> RunBody<R>
where
    F: for<'a> FnOnce(&'a mut Store<Guest>, Instance) -> BoxFuture<'a, wasmtime::Result<R>>
        + Send
        + 'static,
{
    Box::new(body)
}

/// Sets the limit of the data of one host call. Each byte of the guest counts as one, although it
/// takes `host_bytes_per_byte` in the host.
pub(crate) fn limit_host_call(store: &mut Store<Guest>, host_bytes_per_byte: usize) {
    let bytes = usize::try_from(store.data().limits.host_call_bytes).unwrap_or(usize::MAX);
    store.set_hostcall_fuel(bytes.saturating_mul(host_bytes_per_byte));
}
