//! The one place that tells a component from a test: in a component these functions are imports,
//! anywhere else they are the stand-ins of [`testing`](crate::testing).

#[cfg(not(target_family = "wasm"))]
pub(crate) use crate::testing::{
    all_settings, granted_folders as folders, log, respond as send, revealed as secret, setting,
};
#[cfg(target_family = "wasm")]
pub(crate) use crate::{
    guest::{all_settings, granted_folders as folders, log, secret, setting},
    http::wasi::send,
};
