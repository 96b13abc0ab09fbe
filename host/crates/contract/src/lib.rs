//! Shared vocabulary of Sallyport: tools, calls, outcomes, and the traits through which the lower
//! crates reach outwards.
//!
//! Everything here is plain data. The crate has no I/O, no async runtime and no WebAssembly, so the
//! policy, the sandbox, the models and the session share one definition of a tool call without
//! depending on each other.
//!
//! Suggested reading order: [`name`], [`tool`], [`call`], [`outcome`], [`toolbox`],
//! [`services`].

pub mod call;
pub mod json;
pub mod mangle;
pub mod name;
pub mod outcome;
pub mod preview;
pub mod redact;
pub mod secret;
pub mod services;
pub mod text;
pub mod tool;
pub mod toolbox;

pub use call::{AbandonedEffects, AdmittedCall, RequestedCall, ToolCallContext};
pub use mangle::NameTable;
pub use name::{NameError, PluginName, ToolId, ToolName};
pub use outcome::{
    CallFailure, CallReport, ContentPart, Denial, Effect, FailureKind, LogLevel, Outcome,
    ToolOutput,
};
pub use preview::{BodyEncoding, BodyPreview, RequestPreview};
pub use redact::{RedactStream, Redactor, ScanStream};
pub use secret::Secret;
pub use services::{DataOwner, Services};
pub use tool::{ToolDescriptor, ToolHints};
pub use toolbox::{
    ApprovalAnswer, ApprovalRequest, ApprovalSubject, BoxFuture, Consent, Decision,
    HostNameResolver, Toolbox,
};
