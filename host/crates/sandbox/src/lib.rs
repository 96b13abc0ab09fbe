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
mod action_run;
pub mod authorizer;
mod bindings;
mod cache;
mod call_slots;
mod capability;
mod clock;
pub mod compile;
mod compile_limits;
pub mod component;
mod current_run;
mod digest_cache;
mod dynamic;
mod effect_log;
mod embedded_manifest;
mod engine_config;
mod error;
mod files;
mod grant;
mod guest;
mod guest_creation;
mod host_start;
mod imports;
mod instance_pool;
mod interface;
mod interface_check;
mod leftovers;
mod limits;
mod linked_plugin;
mod memory_pool;
pub mod metadata;
mod mutex;
mod net;
mod pending_body;
pub mod plugin;
mod pooled_plugin;
mod power_imports;
mod precompile;
mod prepared_instances;
mod producers;
mod rate_limiter;
mod role_data;
mod role_links;
pub mod roles;
mod run;
mod run_body;
mod run_context;
mod runtime;
pub mod schema;
mod schema_cost;
mod simulation;
mod ticker;
pub mod undo;
mod wasm_engine;

pub use action_run::{ActionAnswer, ActionRequest, ActionRequestError, ActionRun};
pub use authorizer::{
    AccountCredential, FixedGrantAuthorizer, GrantOutcome, HostCallAuthorizer, OutboundAccess,
    OutboundAccessKind, RunGrants,
};
pub use cache::CacheStatistics;
pub use call_slots::{CallSlot, CallSlotError, CallSlots};
pub use compile::{Compiler, run_as_worker};
pub use component::{COMPONENT_BYTES_MAX, ComponentFile};
pub use embedded_manifest::read_embedded_manifest;
pub use error::LoadError;
pub use imports::find_path_argument;
pub use instance_pool::InstanceInfo;
pub use leftovers::{RunLeftovers, collect_leftovers};
pub use metadata::ComponentMetadata;
pub use net::{BoxedConnection, DuplexConnection, SimulatedNetwork, SystemResolver};
pub use pending_body::{BodyBufferError, PendingBody};
pub use plugin::{Plugin, PluginParts, PluginUnavailable};
pub use precompile::{CompileProgress, run_as_queue};
pub use producers::component_languages;
pub use runtime::{Sandbox, SandboxOptions};
pub use simulation::Simulation;
