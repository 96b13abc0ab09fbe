//! The functions of the host that more than one module needs or that need more than a few lines. In
//! a component they are imports; on other targets they are the fakes of
//! [`testing`](crate::testing). The other capabilities have both in a module of their own.

#[cfg(target_family = "wasm")]
pub(crate) use crate::guest::{
    all_settings, granted_folders as folders, log, schedule, secret, setting, state,
};
#[cfg(not(target_family = "wasm"))]
pub(crate) use crate::testing::{
    all_settings, granted_folders as folders, http_body as http, log, revealed as secret, schedule,
    setting, state,
};

#[cfg(target_family = "wasm")]
pub(crate) mod http {
    //! Outgoing requests.

    pub(crate) use crate::http::wasi::{Body, open};
}
