//! A tool as the host sees it: what it says about itself, and how it is called.
//!
//! Nobody writes these by hand; [`#[tool]`](macro@crate::tool) makes them from a function.

use serde_json::Value;

use crate::{Output, ToolError};

/// Where a call comes from. A tool that wants to know takes `&CallContext` as its last parameter.
///
/// ```
/// use sallyport_sdk::prelude::*;
///
/// /// Tells who is asking.
/// #[tool(read_only)]
/// fn whoami(context: &CallContext) -> String {
///     context.user_id.clone()
/// }
///
/// let context = CallContext { user_id: "local".to_owned(), ..CallContext::default() };
/// assert_eq!(whoami(&context), "local");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallContext {
    /// Unique within the session.
    pub call_id: String,
    /// The session that the call belongs to.
    pub session_id: String,
    /// The user on whose behalf the call is made. On a machine of one's own it is always `local`.
    pub user_id: String,
    /// The conversation that the call belongs to. `None` where there is none, as for a single call
    /// from the command line.
    pub conversation_id: Option<String>,
    /// Milliseconds that were left at the start of the call until the host stops it.
    pub deadline_ms: Option<u64>,
    /// When the host was started, in milliseconds since 1970, as far as it says so.
    pub host_started_ms: Option<u64>,
}

/// An author's claims about a tool. They inform people; no decision of the host rests on them.
///
/// ```
/// use sallyport_sdk::prelude::*;
///
/// /// Empties the bin.
/// #[tool(destructive, open_world = false)]
/// fn empty_bin() {}
///
/// let hints = empty_bin::spec().hints;
/// assert_eq!((hints.destructive, hints.open_world), (Some(true), Some(false)));
/// assert_eq!((hints.read_only, hints.idempotent), (None, None));
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Hints {
    /// The tool changes nothing.
    pub read_only: Option<bool>,
    /// The tool may destroy something.
    pub destructive: Option<bool>,
    /// Calling it twice with the same arguments is the same as calling it once.
    pub idempotent: Option<bool>,
    /// The tool reaches things outside the machine it runs on.
    pub open_world: Option<bool>,
}

/// What a tool says about itself.
///
/// ```
/// use sallyport_sdk::prelude::*;
///
/// /// Rolls a die.
/// #[tool]
/// fn roll() -> u8 {
///     4
/// }
///
/// let spec = roll::spec();
/// assert_eq!((spec.name, spec.description.as_str()), ("roll", "Rolls a die."));
/// assert_eq!(spec.parameters, json!({"type": "object", "properties": {}}));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// Unique within the plugin.
    pub name: &'static str,
    /// A short name for people.
    pub title: Option<&'static str>,
    /// What the tool does and when to use it, for a model to read.
    pub description: String,
    /// JSON Schema of the arguments, an object schema.
    pub parameters: Value,
    /// JSON Schema of the data, when its type derives `JsonSchema` and is an object.
    pub output: Option<Value>,
    /// Claims about the tool.
    pub hints: Hints,
}

/// One function that a model can call.
///
/// [`#[tool]`](macro@crate::tool) gives a type of the function's name to every tool, and this trait
/// to that type: `get_time(..)` calls the function, `get_time::spec()` describes it.
pub trait Tool {
    /// The name of the tool.
    const NAME: &'static str;

    /// Describes the tool. The answer is always the same.
    fn spec() -> ToolSpec;

    /// Runs the tool on arguments as the host hands them over, a JSON object.
    ///
    /// # Errors
    ///
    /// Arguments that do not fit, or what the function returned.
    fn call(context: &CallContext, arguments: &str) -> Result<Output, ToolError>;
}
