//! A plugin as a table of tools, and the macro that exports it.

use crate::{CallContext, Output, SetupError, Tool, ToolError, ToolSpec};

/// One row of the table.
#[derive(Debug, Clone, Copy)]
pub struct ToolEntry {
    name: &'static str,
    spec: fn() -> ToolSpec,
    call: fn(&CallContext, &str) -> Result<Output, ToolError>,
}

impl ToolEntry {
    /// Makes the row of a tool.
    pub const fn of<T: Tool>() -> Self {
        Self { name: T::NAME, spec: T::spec, call: T::call }
    }
}

/// What [`export_plugin!`](crate::export_plugin) makes of its list.
pub trait Plugin {
    /// The tools, in the order in which they were written.
    const TOOLS: &'static [ToolEntry];

    /// Runs when the plugin is loaded.
    ///
    /// # Errors
    ///
    /// Why the plugin cannot be used for now.
    fn setup() -> Result<(), SetupError> {
        Ok(())
    }

    /// Runs when the host shuts down.
    fn teardown() {}
}

/// Lists the tools.
pub fn list(tools: &[ToolEntry]) -> impl Iterator<Item = ToolSpec> {
    tools.iter().map(|entry| (entry.spec)())
}

/// Runs the tool of that name.
///
/// # Errors
///
/// A tool that does not exist, or what the tool returned.
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

/// Tells whether every tool has a name of its own; checked while the plugin is compiled.
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

/// Exports the plugin: stands once, at the end of `lib.rs`.
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
/// sallyport_sdk::export_plugin!(tools = [roll]);
/// # fn main() {}
/// ```
///
/// A plugin that wants to look at its settings before it is used, or to say goodbye, names the
/// functions; only then does the component export the contract's `lifecycle`.
///
/// ```
/// use sallyport_sdk::{prelude::*, settings};
///
/// /// Rolls a die.
/// #[tool]
/// fn roll() -> Result<u8, ToolError> {
///     Ok(settings::get("sides")?)
/// }
///
/// fn check() -> Result<(), SetupError> {
///     settings::get::<u8>("sides")?;
///     Ok(())
/// }
///
/// fn bye() {}
///
/// sallyport_sdk::export_plugin!(tools = [roll], setup = check, teardown = bye);
/// # fn main() {}
/// ```
///
/// Only functions with [`#[tool]`](macro@crate::tool) can be exported, each under a name of its own:
///
/// ```compile_fail
/// fn roll() -> u8 {
///     4
/// }
///
/// sallyport_sdk::export_plugin!(tools = [roll]);
/// # fn main() {}
/// ```
///
/// ```compile_fail
/// use sallyport_sdk::prelude::*;
///
/// /// Rolls a die.
/// #[tool]
/// fn roll() -> u8 {
///     4
/// }
///
/// sallyport_sdk::export_plugin!(tools = [roll, roll]);
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! export_plugin {
    (tools = [$($tool:path),+ $(,)?] $(,)?) => {
        const _: () = {
            $crate::export_plugin!(@plugin [$($tool),+] {});
            #[cfg(target_family = "wasm")]
            $crate::__private::export_tools!(Exported with_types_in $crate::__private::tools);
        };
    };
    (
        tools = [$($tool:path),+ $(,)?]
        $(, setup = $setup:path)?
        $(, teardown = $teardown:path)?
        $(,)?
    ) => {
        const _: () = {
            $crate::export_plugin!(@plugin [$($tool),+] {
                $(fn setup() -> ::core::result::Result<(), $crate::SetupError> {
                    $setup()
                })?
                $(fn teardown() {
                    $teardown();
                })?
            });
            #[cfg(target_family = "wasm")]
            $crate::__private::export_tools!(Exported with_types_in $crate::__private::tools);
            #[cfg(target_family = "wasm")]
            $crate::__private::export_lifecycle!(
                Exported with_types_in $crate::__private::lifecycle
            );
        };
    };
    (@plugin [$($tool:path),+] { $($hook:item)* }) => {
        enum Exported {}

        impl $crate::__private::Plugin for Exported {
            const TOOLS: &'static [$crate::__private::ToolEntry] =
                &[$($crate::__private::ToolEntry::of::<$tool>()),+];
            $($hook)*
        }

        const _: () = ::core::assert!(
            $crate::__private::names_differ(<Exported as $crate::__private::Plugin>::TOOLS),
            "two tools of this plugin have the same name",
        );
    };
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

        let context = CallContext { user_id: Some("kim".to_owned()), ..CallContext::default() };
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
