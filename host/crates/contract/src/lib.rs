//! Shared vocabulary of Sallyport: tools, calls, outcomes, and the traits through which the lower
//! crates reach outwards.
//!
//! Everything here is plain data. The crate has no I/O, no async runtime and no WebAssembly, so the
//! policy, the sandbox, the models and the session share one definition of a tool call without
//! depending on each other.
//!
//! Suggested reading order: [`name`], [`tool`], [`call`], [`outcome`], [`toolbox`],
//! [`services`].

pub mod boxed_future;
pub mod call;
pub mod denial;
pub mod fix;
pub mod form;
pub mod grant_question;
pub mod json;
pub mod mangle;
pub mod milliseconds;
pub mod name;
pub mod outcome;
pub mod preview;
pub mod principal;
pub mod prompt;
pub mod redact;
pub mod resource;
pub mod secret;
pub mod services;
pub mod text;
pub mod tool;
pub mod toolbox;
pub mod trace_parent;
pub mod user_answer;
pub mod user_budget;
pub mod user_role;

/// The attribute of the async traits that are used as `dyn`. The traits of [`toolbox`] return a
/// [`BoxFuture`] instead, because an admission outlives the toolbox.
pub use async_trait::async_trait;
pub use boxed_future::BoxFuture;
pub use call::{AbandonedEffects, Admission, AdmittedCall, RequestedCall};
pub use denial::{
    ApprovalObstacle, Denial, DenialReason, DenialSubject, GrantedScope, PolicyPlace,
    RequestedScope,
};
pub use fix::{FixGrant, FixRule, PolicyFix};
pub use form::{
    FieldKind, FieldOption, FormAnswer, FormField, FormQuestion, TextFormat, TypedValueError,
};
pub use grant_question::{GrantAnswer, GrantChoice, GrantQuestion, GrantScope};
pub use mangle::NameTable;
pub use name::{NameError, PluginName, ToolId, ToolName};
pub use outcome::{
    CallFailure, CallReport, ContentPart, Effect, FailureKind, LogLevel, Outcome, ToolOutput,
};
pub use preview::{BodyEncoding, BodyPreview, RequestPreview};
pub use principal::{LOCAL_USER, Principal, ToolCallContext};
pub use prompt::{FilledPrompt, PromptArgument, PromptQuery, PromptRole, PromptSpec};
pub use redact::{RedactStream, Redactor, ScanStream};
pub use resource::{
    OfferPage, ResourceContents, ResourceData, ResourceQuery, ResourceSpec, ResourceTemplate,
};
pub use secret::Secret;
pub use services::{DataOwner, Services};
pub use tool::{ToolDescriptor, ToolHints};
pub use toolbox::{
    ApprovalAnswer, ApprovalRequest, ApprovalSubject, Consent, Decision, HostNameResolver, Toolbox,
};
pub use trace_parent::{TraceParent, TraceParentError};
pub use user_answer::UserAnswer;
pub use user_budget::{BudgetMeasure, BudgetPeriod, SpentBudget, UserBudget};
pub use user_role::{UnknownRoleError, UserRole};
