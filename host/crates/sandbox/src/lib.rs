//! The sandbox: runs components with exactly their grants.
//!
//! This is the only crate that depends on wasmtime, and its generated bindings are not public. Its
//! input is a component's bytes, an effective grant and a call that has passed the gate; its output
//! is a [`sallyport_contract::CallReport`].
//!
//! Every call gets a fresh store from a prepared component, so a call leaves nothing in memory for
//! the next one, unless the plugin's manifest asks for one instance per session. The guest's time,
//! memory, output, log, files and connections are limited, and each limit is a named constant of
//! `limits` or a key of the policy.
//!
//! Suggested reading order: [`component`], [`compile`], [`metadata`], [`plugin`], then `guest`,
//! `grant`, `files`, `net`, and [`roles`] for the roles other than tools.

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
pub use cache::CacheStatistics;
pub use compile::Compiler;
pub use component::ComponentFile;
pub use error::LoadError;
pub use metadata::ComponentMetadata;
pub use net::{BodyBufferError, PendingBody, SystemResolver};
pub use places::{CallSlot, CallSlotError, CallSlots};
pub use plugin::{Plugin, PluginParts, PluginUnavailable};
pub use resident::InstanceInfo;
pub use runtime::{Sandbox, SandboxOptions};
pub use warden::{FixedGrantAuthorizer, HostCallAuthorizer, OutboundAccess, OutboundAccessKind};
