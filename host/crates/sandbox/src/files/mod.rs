//! Files as a guest sees them: the host's side of `wasi:filesystem`.
//!
//! It is our own, linked in place of wasmtime-wasi's, since a path is more than a path here. At
//! every host call
//!
//! 1. the present grant is asked: what was taken back or narrowed acts at once, also on what is
//!    open ([`mount`]);
//! 2. a path is walked name by name, without ever following a link blindly, and every name on the
//!    way is compared with what the mount denies: the name that was checked is the one that is
//!    opened, whatever is swapped meanwhile ([`resolve`]);
//! 3. a refusal by policy is written into the ledger, with the line that refused it, and so is what
//!    was changed;
//! 4. what grows is charged to the quota of the mount ([`shelf`]), be it a folder of the host or a
//!    scratch of the session ([`scratch`]);
//! 5. nothing but regular files and folders is ever opened, so nothing blocks for ever ([`open`]).
//!
//! All work on the disk is done on threads that may block. Changes to one folder of the host are
//! made one after the other, so that what was looked at is what is changed.

mod change;
mod content;
mod convert;
mod host;
mod listing;
mod look;
mod measure;
pub(crate) mod mount;
mod open;
mod opened;
pub(crate) mod own;
mod resolve;
mod scratch;
mod shelf;
mod stream;

use std::sync::Arc;

use wasmtime::component::{HasSelf, Linker};
use wasmtime_wasi::{
    p2::bindings::filesystem::{preopens, types},
    runtime::spawn_blocking,
};

use self::{mount::Mount, scratch::Scratches, shelf::Shelves};
use crate::guest::Guest;

/// What all guests share of the disk.
#[derive(Debug, Default)]
pub(crate) struct Disk {
    pub(crate) shelves: Shelves,
    pub(crate) scratches: Scratches,
}

/// The mounts of one guest. A guest without any has no files at all.
pub(crate) struct Files {
    pub(crate) mounts: Vec<Arc<Mount>>,
}

impl Files {
    /// Another run of the same guest begins.
    pub(crate) fn begin_run(&self) {
        self.mounts.iter().for_each(|mount| mount.account().begin_run());
    }
}

/// Puts our files in the place of those that are linked already.
pub(crate) fn link(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
    linker.allow_shadowing(true);
    types::add_to_linker::<_, HasSelf<Guest>>(linker, |guest| guest)?;
    preopens::add_to_linker::<_, HasSelf<Guest>>(linker, |guest| guest)?;
    linker.allow_shadowing(false);
    Ok(())
}

/// Does work on the disk where it may block. Work that has not begun is given up with the call.
async fn on_disk<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> R {
    spawn_blocking(work).await
}
