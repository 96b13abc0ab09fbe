//! The checks of what is stored: sessions and connected accounts.

use sallyport_contract::LOCAL_USER;
use sallyport_runtime::{config::HostSettings, connections::KEY_FILE};
use sallyport_store::sessions::SessionFilter;

use super::{super::setup, DoctorCheck, folder_bytes};

/// Counts the connected accounts, and says where their key is. The check creates no database.
pub(super) async fn check_connections(settings: &HostSettings) -> DoctorCheck {
    let id = "connections";
    if folder_bytes(&settings.paths.state).is_none() {
        return DoctorCheck::ok(id, "none yet");
    }
    let found = match setup::open_store(settings) {
        Ok(store) => store.connections.list_connections(LOCAL_USER).await.map_err(Into::into),
        Err(failure) => Err(failure),
    };
    match found {
        Ok(found) if found.is_empty() => DoctorCheck::ok(id, "none yet"),
        Ok(found) => {
            let key = settings.paths.state.join(KEY_FILE);
            let finding =
                format!("{} are kept, sealed with the key in {}", found.len(), key.display());
            match key.is_file() {
                true => DoctorCheck::ok(id, finding),
                false => DoctorCheck::warning(
                    id,
                    format!("{} is missing, so no account can be used", key.display()),
                    "restore it, or connect again with `sallyport connection add PLUGIN`",
                ),
            }
        }
        Err(failure) => DoctorCheck::from_failure(id, failure, "mend the folder"),
    }
}

/// Counts the stored sessions. The check creates no database.
pub(super) async fn check_sessions(settings: &HostSettings) -> DoctorCheck {
    let id = "sessions";
    if folder_bytes(&settings.paths.state).is_none() {
        return DoctorCheck::ok(id, "none yet");
    }
    let found = match setup::open_store(settings) {
        Ok(store) => {
            store.sessions.list(SessionFilter::of_user(LOCAL_USER)).await.map_err(Into::into)
        }
        Err(failure) => Err(failure),
    };
    match found {
        Ok(found) => DoctorCheck::ok(id, format!("{} are kept", found.len())),
        Err(failure) => DoctorCheck::from_failure(id, failure, "mend the folder"),
    }
}
