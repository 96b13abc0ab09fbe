//! Setup and teardown.

use wasmtime::{Store, component::Instance};

use super::tools::extract_error_message;
use crate::{
    abi::InterfaceMismatch, bindings::v0_1::exports::sallyport::plugin::lifecycle, guest::Guest,
};

pub(super) async fn run_setup(
    lifecycle: &lifecycle::GuestIndices,
    store: &mut Store<Guest>,
    instance: Instance,
) -> wasmtime::Result<Result<(), String>> {
    let guest = lifecycle.load(&mut *store, &instance).map_err(InterfaceMismatch::wrap_error)?;
    Ok(guest.call_setup(store).await?.map_err(setup_error_message))
}

pub(super) async fn run_teardown(
    lifecycle: &lifecycle::GuestIndices,
    store: &mut Store<Guest>,
    instance: Instance,
) -> wasmtime::Result<()> {
    let guest = lifecycle.load(&mut *store, &instance).map_err(InterfaceMismatch::wrap_error)?;
    guest.call_teardown(store).await
}

fn setup_error_message(error: lifecycle::SetupError) -> String {
    match error {
        lifecycle::SetupError::MissingSettings(names) => {
            format!("these settings are missing: {}", names.join(", "))
        }
        lifecycle::SetupError::Unavailable(text) => text,
        lifecycle::SetupError::Other(text) => extract_error_message(text),
    }
}
