//! The expansion of [`export_plugin!`](crate::export_plugin): a table of tools, and a trait for
//! each role.

use crate::{
    CallContext, Output, SetupError, Tool, ToolError, ToolSpec,
    guide::Persona,
    http::Response,
    provider::{Answer, ProviderError, Request},
    schedule::Firing,
    serve,
};

/// One entry of the table of tools.
#[derive(Debug, Clone, Copy)]
pub struct ToolEntry {
    name: &'static str,
    spec: fn() -> ToolSpec,
    call: fn(&CallContext, &str) -> Result<Output, ToolError>,
}

impl ToolEntry {
    /// Makes the entry of a tool.
    pub const fn of<T: Tool>() -> Self {
        Self { name: T::NAME, spec: T::spec, call: T::call }
    }
}

/// `tools = […]`.
pub trait Tools {
    /// The tools, in the order of the list.
    const TOOLS: &'static [ToolEntry];
}

/// `setup = …` and `teardown = …`.
pub trait Lifecycle {
    /// Runs when the plugin is loaded.
    ///
    /// # Errors
    ///
    /// The plugin cannot be used at the moment; the error states why.
    fn setup() -> Result<(), SetupError> {
        Ok(())
    }

    /// Runs when the host shuts down.
    fn teardown() {}
}

/// `on_timer = …`.
pub trait Timed {
    /// Runs when a timer fires.
    ///
    /// # Errors
    ///
    /// The plugin could not handle the firing; the error states why.
    fn on_timer(firing: Firing, context: &CallContext) -> Result<(), ToolError>;
}

/// `provider = …`.
pub trait Provider {
    /// Answers the last message of a conversation.
    ///
    /// # Errors
    ///
    /// The provider has no answer; the error states why.
    fn generate(request: Request) -> Result<Answer, ProviderError>;
}

/// `listener = …`.
pub trait Listens {
    /// The type that listens.
    type Listener: crate::listener::Listener;
}

/// `guide = …`.
pub trait Guide {
    /// Describes the assistant.
    fn describe() -> Persona;
}

/// `ui = …`.
pub trait Shows {
    /// The type that is the UI.
    type Ui: crate::ui::Ui;
}

/// `resources = …`.
pub trait Offers {
    /// The type that offers resources.
    type Resources: crate::resources::Resources;
}

/// `prompts = …`.
pub trait Suggests {
    /// The type that offers prompts.
    type Prompts: crate::prompts::Prompts;
}

/// `http = …`.
pub trait Serves {
    /// Answers a request.
    fn serve(request: serve::Request) -> Response;
}

/// Marks an item as used, because only a component calls it, and other targets would report it as
/// dead code.
pub const fn used<T>(_role: &T) {}

/// Lists the tools.
pub fn list(tools: &[ToolEntry]) -> impl Iterator<Item = ToolSpec> {
    tools.iter().map(|entry| (entry.spec)())
}

/// Runs the tool with that name.
///
/// # Errors
///
/// The tool does not exist, or returned an error.
pub fn call(
    tools: &[ToolEntry],
    context: &CallContext,
    name: &str,
    arguments: &str,
) -> Result<Output, ToolError> {
    match tools.iter().find(|entry| entry.name == name) {
        Some(entry) => (entry.call)(context, arguments),
        None => Err(ToolError::NotFound(format!("this plugin has no tool `{name}`"))),
    }
}

/// Returns whether all names are unique. Evaluated at compile time.
pub const fn names_differ(tools: &[ToolEntry]) -> bool {
    let mut i = 0;
    while i < tools.len() {
        let mut j = 0;
        while j < i {
            if same(tools[i].name.as_bytes(), tools[j].name.as_bytes()) {
                return false;
            }
            j += 1;
        }
        i += 1;
    }
    true
}

/// `==` on slices is not `const` yet.
const fn same(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    let mut i = 0;
    while i < a.len() {
        if a[i] != b[i] {
            return false;
        }
        i += 1;
    }
    true
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Hints;

    struct Echo;
    struct Who;

    impl Tool for Echo {
        const NAME: &'static str = "echo";

        fn spec() -> ToolSpec {
            ToolSpec {
                name: Self::NAME,
                title: None,
                description: "Says it again.".to_owned(),
                parameters: json!({}),
                output: None,
                hints: Hints::default(),
            }
        }

        fn call(_context: &CallContext, arguments: &str) -> Result<Output, ToolError> {
            Ok(Output::new(json!(arguments)))
        }
    }

    impl Tool for Who {
        const NAME: &'static str = "who";

        fn spec() -> ToolSpec {
            ToolSpec { name: Self::NAME, ..Echo::spec() }
        }

        fn call(context: &CallContext, _arguments: &str) -> Result<Output, ToolError> {
            Ok(Output::new(json!(context.user_id)))
        }
    }

    const TOOLS: &[ToolEntry] = &[ToolEntry::of::<Who>(), ToolEntry::of::<Echo>()];

    #[test]
    fn tools_are_listed_as_written_and_found_by_name() {
        let names: Vec<_> = list(TOOLS).map(|spec| spec.name).collect();
        assert_eq!(names, ["who", "echo"]);

        let context = CallContext { user_id: "kim".to_owned(), ..CallContext::default() };
        assert_eq!(call(TOOLS, &context, "who", "{}"), Ok(Output::new(json!("kim"))));
        assert_eq!(call(TOOLS, &context, "echo", "{}"), Ok(Output::new(json!("{}"))));
        let error = call(TOOLS, &context, "Echo", "{}").unwrap_err();
        assert_eq!(error, ToolError::NotFound("this plugin has no tool `Echo`".to_owned()));
    }

    #[test]
    fn equal_names_are_noticed() {
        const TWICE: &[ToolEntry] = &[ToolEntry::of::<Who>(), TOOLS[1], ToolEntry::of::<Who>()];
        assert!(names_differ(TOOLS));
        assert!(!names_differ(TWICE));
    }
}
