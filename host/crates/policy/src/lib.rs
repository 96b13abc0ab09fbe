//! Manifests, policies, and the pure decisions over them.
//!
//! A plugin's [`Manifest`] requests, the operator's [`Policy`] grants, and the [`Grant`] is the
//! intersection of the two. Only parsing can fail; each error has a file, a line and a column.
//! Parsed values neither fail nor block, and nothing in this crate reads a file, a clock or the
//! environment.
//!
//! Nothing that grants has a default. An accepted key is enforced; an unknown key is an error.
//!
//! Suggested reading order: [`document`], [`manifest`], [`request`], [`policy`], [`grant`],
//! [`net`], [`capability`], [`rule`], [`verdict`].
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
//! let policy = Policy::from_user_file("policy.toml", r#"
//!     [plugin.weather]
//!     net = ["GET https://api.open-meteo.com/v1/**"]
//! "#, None)?;
//! let grant = policy.effective_grant(&manifest, &serde_json::Map::new());
//! assert_eq!(grant.permission_lines(), ["GET https://api.open-meteo.com/v1/forecast"]);
//! # Ok::<(), sallyport_policy::SourceError>(())
//! ```

// A new case of an enum needs a decision in every `match` over it.
#![warn(clippy::wildcard_enum_match_arm)]

pub mod action_rules;
mod addition;
mod argument_names;
pub mod capability;
pub mod check;
mod condition;
mod denial;
pub mod document;
pub mod edit;
mod environment;
pub mod explain;
mod fix;
pub mod folder;
pub mod glob;
pub mod grant;
mod grant_choice;
mod grant_note;
pub mod group;
mod guarded_folders;
pub mod learn;
pub mod limits;
pub mod manifest;
mod message;
mod nesting;
pub mod net;
pub mod policy;
mod policy_context;
pub mod proxy;
pub mod question;
pub mod request;
pub mod rule;
mod rule_text;
mod rule_totals;
pub mod secret;
pub mod settings;
pub mod source;
mod table;
pub mod tier;
mod toml_text;
mod tool_pattern;
mod ungranted;
pub mod unit;
pub mod verdict;

#[cfg(test)]
mod tests;

pub use action_rules::{
    ActionRuleKind, ActionRuleText, ActionRules, AppliedActionRule, fill_success_message,
};
pub use argument_names::ArgumentNames;
pub use capability::*;
pub use check::{Installed, PolicyRemark, PolicyRemarkKind};
pub use document::{TomlDocument, TomlItem, TomlSection};
pub use explain::{DecisionExplanation, ExplanationStep};
pub use folder::{FsAccess, FsMount};
pub use glob::{GlobError, GlobSet};
pub use grant::{Grant, NetGrant, NetPermit, ReachableAddresses};
pub use grant_note::GrantNote;
pub use group::UserGroup;
pub use guarded_folders::MachineFacts;
pub use limits::{GlobalLimits, PluginLimits};
pub use manifest::{
    InstanceLifetime, MANIFEST_SECTION, MCP_METHODS, Manifest, PluginRole, is_plugin_version,
};
pub use net::{
    NetPattern, NetPatternError, RequestFormError, UrlOrigin, is_plain_path, is_public_address,
    is_this_machine, literal_addresses, parse_request, rebuild_url, url_without_secrets,
};
pub use policy::{Policy, PolicyFile};
pub use proxy::{ProxyAddress, ProxyTable};
pub use question::{LoginGroups, PolicyQuestion};
pub use request::{CapabilityRequest, PluginRequests};
pub use rule::{RuleExampleResult, RuleMatch};
pub use rule_text::RuleText;
pub use secret::{SecretGrant, SecretHeader, SecretInjection, SecretName, SecretSource, SecretUse};
pub use settings::SettingsSchema;
pub use source::{HintedError, SourceError, SourceLocation};
pub use tier::PolicyTier;
pub use tool_pattern::{ToolPattern, ToolPatternError};
pub use ungranted::{UngrantedRequest, UngrantedRequestKind};
pub use unit::{ByteSize, TimeSpan};
pub use verdict::PolicyVerdict;
