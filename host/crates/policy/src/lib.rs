//! Manifests, policies, and the pure decisions over them.
//!
//! A plugin's [`Manifest`] asks, the operator's [`Policy`] grants, and the [`Grant`] is what both
//! agree on. Parsing is where errors happen, each with file, line and column; what has been parsed
//! can neither fail nor block, and nothing here reads a file, a clock or the environment.
//!
//! Nothing that grants has a default. A key that is accepted is enforced; a key that is not known
//! is an error.
//!
//! Suggested reading order: [`document`], [`manifest`], [`request`], [`policy`], [`grant`],
//! [`net`].
//!
//! ```
//! use sallyport_policy::{Manifest, Policy};
//!
//! let manifest = Manifest::parse("plugin.toml", r#"
//!     name = "weather"
//!     version = "1.0.0"
//!     description = "Forecasts"
//!     [[request.net]]
//!     allow = "GET https://api.open-meteo.com/v1/forecast"
//!     why = "to fetch forecasts"
//! "#)?;
//! let policy = Policy::parse("policy.toml", r#"
//!     [plugin.weather]
//!     net = ["GET https://api.open-meteo.com/v1/**"]
//! "#, None)?;
//! let grant = policy.grant(&manifest, &serde_json::Map::new());
//! assert_eq!(grant.powers(), ["GET https://api.open-meteo.com/v1/forecast"]);
//! # Ok::<(), sallyport_policy::SourceError>(())
//! ```

// A new capability has to be looked at wherever capabilities are told apart.
#![warn(clippy::wildcard_enum_match_arm)]

pub mod document;
mod environment;
mod fix;
pub mod folder;
pub mod grant;
mod guarded;
pub mod limits;
pub mod manifest;
mod nesting;
pub mod net;
pub mod policy;
mod refusal;
pub mod request;
mod rule;
pub mod settings;
pub mod source;
mod table;
pub mod unit;

#[cfg(test)]
mod tests;

pub use document::{Document, Item, Section};
pub use folder::{Access, FsMount};
pub use grant::Grant;
pub use guarded::Surroundings;
pub use limits::Limits;
pub use manifest::Manifest;
pub use net::{NetGrant, NetPattern, NetPermit, is_public};
pub use policy::{Policy, Verdict};
pub use request::Request;
pub use settings::SettingsSchema;
pub use source::{Mistake, Place, SourceError};
pub use unit::{ByteSize, TimeSpan};
