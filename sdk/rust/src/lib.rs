//! Write Sallyport plugins in Rust.
//!
//! A tool is a documented struct of arguments and a documented function. Its name, its description
//! and the schema of its arguments are generated from them, so the three cannot drift apart. This
//! is a complete plugin:
//!
//! ```
//! //! Rolls dice.
//! use sallyport_sdk::prelude::*;
//!
//! /// Which dice to roll.
//! #[derive(Deserialize, JsonSchema)]
//! struct RollDice {
//!     /// How many dice, from 1 to 100.
//!     count: u8,
//!     /// How many sides each has. 6 when absent.
//!     sides: Option<u8>,
//! }
//!
//! /// Rolls dice and adds them up.
//! #[tool(read_only, open_world = false)]
//! fn roll_dice(args: RollDice) -> Result<Output<u32>, ToolError> {
//!     let sides = u32::from(args.sides.unwrap_or(6));
//!     if sides == 0 {
//!         return Err(ToolError::InvalidArguments("a die has at least one side".to_owned()));
//!     }
//!     let sum = (0..u32::from(args.count)).map(|roll| 1 + roll * 7 % sides).sum();
//!     Ok(Output::new(sum).speech(format!("You rolled {sum}.")))
//! }
//!
//! sallyport_sdk::export_plugin!(tools = [roll_dice]);
//!
//! # fn main() {
//! // A tool is a plain function, so a test calls it, and no component is needed for that.
//! assert_eq!(roll_dice(RollDice { count: 2, sides: None }).unwrap().data, 3);
//! # }
//! ```
//!
//! The crate of a plugin has `crate-type = ["cdylib"]`, depends on `sallyport-sdk`, `serde` and
//! `schemars`, and becomes a component with `cargo build --release --target wasm32-wasip2`.
//!
//! Files, clocks and random numbers need no helper: `std` and its ecosystem access them through
//! WASI. This crate adds what WASI does not have: [`http`], [`settings`], [`secrets`] and [`log`];
//! data that lasts beyond a call ([`state`](mod@state), [`schedule`], [`session`]); and messages to
//! the user ([`notify`], [`progress`], [`open_url`]). [`testing`] replaces the host in tests. A
//! component only imports the functions that the plugin uses, and needs no grant for the others.
//!
//! In addition to tools, or instead of them, a plugin can play a role: [`provider`], [`listener`],
//! [`guide`] or [`ui`]. It can offer [`resources`] and [`prompts`]. With [`serve`] it answers HTTP
//! requests.
//!
//! Suggested reading order: [`macro@tool`], [`export_plugin!`], [`Output`], [`ToolError`],
//! [`http`].

mod arguments;
mod error;
mod export;
pub mod folders;
#[cfg(target_family = "wasm")]
mod guest;
pub mod guide;
mod host;
pub mod http;
pub mod inbox;
pub mod listener;
pub mod log;
pub mod notify;
pub mod open_url;
mod output;
pub mod packages;
mod plugin;
pub mod progress;
pub mod prompts;
pub mod provider;
pub mod resources;
pub mod schedule;
mod schema;
pub mod secrets;
pub mod serve;
pub mod session;
pub mod settings;
pub mod state;
#[cfg(not(target_family = "wasm"))]
pub mod testing;
mod tool;
pub mod ui;

pub use error::{SetupError, SignIn, ToolError};
pub use output::{Content, Output, ToolReturn};
pub use sallyport_sdk_macros::tool;
pub use tool::{CallContext, Hints, Tool, ToolSpec};

/// The items that almost every plugin needs.
///
/// ```
/// use sallyport_sdk::prelude::*;
///
/// let output: Output = Output::new(json!({ "ok": true }));
/// assert_eq!(output.data["ok"], Value::Bool(true));
/// ```
pub mod prelude {
    pub use schemars::JsonSchema;
    pub use serde::{Deserialize, Serialize};
    pub use serde_json::{Value, json};

    pub use crate::{CallContext, Output, SetupError, Tool, ToolError, tool};
}

/// Items that the macros of this crate expand to. Not for direct use; they may change at any time.
#[doc(hidden)]
pub mod __private {
    pub use crate::{
        arguments::{NoArguments, Takes, TakesNoObject, TakesObject, parse},
        output::{FailsInKind, FailsInSilence, FailsInWords, NeverFails, Returned, returns},
        plugin::{
            Guide, Lifecycle, Listens, Offers, Provider, Serves, Shows, Suggests, Timed, ToolEntry,
            Tools, call, list, names_differ, used,
        },
        schema::{Described, Undescribed, parameters, prose},
    };

    #[cfg(target_family = "wasm")]
    pub use crate::guest::{
        bindings::{
            guide::{self, export_guide},
            lifecycle::{self, export_lifecycle},
            listener::{self, export_listener},
            prompts::{self, export_prompts},
            provider::{self, export_provider},
            resources::{self, export_resources},
            timers::{self, export_timers},
            tools::{self, export_tools},
            ui::{self, export_ui},
        },
        serve::handle,
    };
    #[cfg(target_family = "wasm")]
    pub use wasip2::{self, http::proxy::export as export_http};
}
