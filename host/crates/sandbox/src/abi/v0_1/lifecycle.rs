//! Setup and teardown.

use wasmtime::{Store, component::Instance};

use super::tools::message_in;
use crate::{abi::Mismatch, bindings::v0_1::exports::sallyport::plugin::lifecycle, guest::Guest};

pub(super) async fn setup(
    lifecycle: &lifecycle::GuestIndices,
    store: &mut Store<Guest>,
    instance: Instance,
) -> wasmtime::Result<Result<(), String>> {
    let guest = lifecycle.load(&mut *store, &instance).map_err(Mismatch::wrap)?;
    Ok(guest.call_setup(store).await?.map_err(setup_error))
}

pub(super) async fn teardown(
    lifecycle: &lifecycle::GuestIndices,
    store: &mut Store<Guest>,
    instance: Instance,
) -> wasmtime::Result<()> {
    let guest = lifecycle.load(&mut *store, &instance).map_err(Mismatch::wrap)?;
    guest.call_teardown(store).await
}

fn setup_error(error: lifecycle::SetupError) -> String {
    match error {
        lifecycle::SetupError::MissingSettings(names) => {
            format!("these settings are missing: {}", names.join(", "))
        }
        lifecycle::SetupError::Unavailable(text) => text,
        lifecycle::SetupError::Other(text) => message_in(text),
    }
}
