//! A tool as the host sees it: its description, and how it is called.
//!
//! Authors do not write these by hand: [`#[tool]`](macro@crate::tool) generates them from a
//! function.

use serde_json::Value;

use crate::{Output, ToolError};

/// The origin of a call. A tool that needs it takes `&CallContext` as its last parameter.
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
    /// The id of the call, unique within the session.
    pub call_id: String,
    /// The id of the session.
    pub session_id: String,
    /// The user for whom the call is made. On a single-user machine it is always `local`.
    pub user_id: String,
    /// The id of the conversation; `None` if there is none, as for a single call from the command
    /// line.
    pub conversation_id: Option<String>,
    /// The time that the call has, from its start until the host stops it, in milliseconds.
    pub deadline_ms: Option<u64>,
    /// When the host was started, in milliseconds since 1970; `None` if the host does not provide
    /// it.
    pub host_started_ms: Option<u64>,
}

/// An author's claims about a tool. They inform users; the host does not base decisions on them.
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
    /// Two calls with the same arguments have the same effect as one.
    pub idempotent: Option<bool>,
    /// The tool accesses things outside the machine on which it runs.
    pub open_world: Option<bool>,
}

/// The description of a tool.
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
    /// The name, unique within the plugin.
    pub name: &'static str,
    /// A short name that users see.
    pub title: Option<&'static str>,
    /// What the tool does and when to use it, for the model.
    pub description: String,
    /// The JSON Schema of the arguments, an object schema.
    pub parameters: Value,
    /// The JSON Schema of the data, if its type derives `JsonSchema` and is an object.
    pub output: Option<Value>,
    /// The author's claims about the tool.
    pub hints: Hints,
}

/// A function that a model can call.
///
/// [`#[tool]`](macro@crate::tool) adds a type with the function's name to every tool, and
/// implements this trait for it: `get_time(..)` calls the function, `get_time::spec()` describes
/// the tool.
pub trait Tool {
    /// The name of the tool.
    const NAME: &'static str;

    /// Describes the tool. Always returns the same description.
    fn spec() -> ToolSpec;

    /// Runs the tool. `arguments` is a JSON object.
    ///
    /// # Errors
    ///
    /// The arguments are invalid, or the function returned an error.
    fn call(context: &CallContext, arguments: &str) -> Result<Output, ToolError>;
}
