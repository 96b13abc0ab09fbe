//! The sandbox: runs components with exactly their grants, and nothing else.
//!
//! This is the only crate that names wasmtime, and its generated bindings never leave it. What
//! comes in are a component's bytes, an effective grant and a call that has passed the gate; what
//! goes out is a [`sallyport_contract::CallReport`].
//!
//! Every call gets a fresh store from a prepared component: nothing that a call leaves in memory is
//! there for the next one, unless the plugin's manifest asks for one instance per session. The
//! guest's clock, memory, output, log, files and connections are limited, and each limit is a named
//! constant of `limits` or a key of the policy.
//!
//! Suggested reading order: [`component`], [`compile`], [`metadata`], [`plugin`], then `guest`, `grant`,
//! `files`, `net`, and [`roles`] for what a plugin is beside its tools.

mod abi;
mod ahead;
mod bindings;
mod cache;
mod capability;
mod case;
mod clock;
pub mod compile;
pub mod component;
mod docket;
mod error;
mod files;
mod grant;
mod guest;
mod interface;
mod ledger;
mod limits;
pub mod metadata;
mod net;
mod places;
pub mod plugin;
mod power;
mod rate;
#[cfg(feature = "bench")]
pub mod raw;
mod resident;
pub mod roles;
mod run;
mod runtime;
pub mod schema;
mod schema_cost;
mod ticker;
pub mod warden;

pub use ahead::CompileProgress;
pub use cache::CacheUse;
pub use compile::Compiler;
pub use component::ComponentFile;
pub use error::LoadError;
pub use metadata::Metadata;
pub use net::{HoldError, PendingBody, SystemResolver};
pub use places::{NoPlace, Place, Places};
pub use plugin::{Plugin, PluginParts, Unavailable};
pub use resident::InstanceInfo;
pub use runtime::{Sandbox, SandboxOptions};
pub use warden::{Access, AccessKind, Unattended, Warden};
