//! The functions of the host. In a component they are imports; on other targets they are the fakes
//! of [`testing`](crate::testing).

#[cfg(target_family = "wasm")]
pub(crate) use crate::guest::{
    all_settings, granted_folders as folders,
    imports::{inbox, notify, open_url, packages, progress, provider, ui},
    log, schedule, secret, setting, state,
};
#[cfg(not(target_family = "wasm"))]
pub(crate) use crate::testing::{
    all_settings, granted_folders as folders, http_body as http, log,
    people::{inbox, notify, open_url, progress, provider, ui},
    revealed as secret, schedule, setting, state, stored_packages as packages,
};

#[cfg(target_family = "wasm")]
pub(crate) mod http {
    //! Outgoing requests.

    pub(crate) use crate::http::wasi::{Body, open};
}
