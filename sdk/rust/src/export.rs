//! The macro that exports a plugin.

/// Exports the plugin. Call it once, at the end of `lib.rs`.
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
/// The keys name the parts of the plugin, in any order. The component exports those parts and
/// nothing else:
///
/// | key | | |
/// |---|---|---|
/// | `tools` | functions with [`#[tool]`](macro@crate::tool) | what a model can call |
/// | `setup` | `fn() -> Result<(), SetupError>` | runs when the plugin is loaded |
/// | `teardown` | `fn()` | runs when the host shuts down |
/// | `on_timer` | `fn(Firing, &CallContext) -> Result<(), ToolError>` | runs when a timer fires, see [`schedule`](mod@crate::schedule) |
/// | `provider` | `fn(Request) -> Result<Answer, ProviderError>` | answers like a model, see [`provider`](mod@crate::provider) |
/// | `listener` | a type with [`Listener`](crate::listener::Listener) | brings input, see [`listener`](mod@crate::listener) |
/// | `guide` | `fn() -> Persona` | describes the assistant, see [`guide`](mod@crate::guide) |
/// | `ui` | a type with [`Ui`](crate::ui::Ui) | is the user interface, see [`ui`](mod@crate::ui) |
/// | `resources` | a type with [`Resources`](crate::resources::Resources) | offers texts and files, see [`resources`](mod@crate::resources) |
/// | `prompts` | a type with [`Prompts`](crate::prompts::Prompts) | begins conversations, see [`prompts`](mod@crate::prompts) |
/// | `http` | `fn(Request) -> Response` | answers HTTP requests, see [`serve`](mod@crate::serve) |
///
/// A plugin that checks its settings when it is loaded, and runs code at shutdown:
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
/// sallyport_sdk::export_plugin!(setup = check, teardown = bye, tools = [roll]);
/// # fn main() {}
/// ```
///
/// Only functions with [`#[tool]`](macro@crate::tool) can be exported as tools, each under a unique
/// name:
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
///
/// An unknown key, a key that is given twice, and an empty list are errors as well:
///
/// ```compile_fail
/// fn bye() {}
///
/// sallyport_sdk::export_plugin!(farewell = bye);
/// # fn main() {}
/// ```
///
/// ```compile_fail
/// fn bye() {}
///
/// sallyport_sdk::export_plugin!(teardown = bye, teardown = bye);
/// # fn main() {}
/// ```
///
/// ```compile_fail
/// sallyport_sdk::export_plugin!();
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! export_plugin {
    (@next {}) => {};
    (@next { $($hook:item)+ }) => {
        impl $crate::__private::Lifecycle for Exported {
            $($hook)+
        }

        const _: () = {
            $crate::__private::used(&<Exported as $crate::__private::Lifecycle>::setup);
            $crate::__private::used(&<Exported as $crate::__private::Lifecycle>::teardown);
        };

        #[cfg(target_family = "wasm")]
        $crate::__private::export_lifecycle!(Exported with_types_in $crate::__private::lifecycle);
    };
    (@next $hooks:tt tools = [] $($rest:tt)*) => {
        ::core::compile_error!("`tools = []` names no tool; write `tools = [my_tool]`, or leave it out");
    };
    (@next $hooks:tt tools = [$($tool:path),+ $(,)?] $(, $($rest:tt)*)?) => {
        impl $crate::__private::Tools for Exported {
            const TOOLS: &'static [$crate::__private::ToolEntry] =
                &[$($crate::__private::ToolEntry::of::<$tool>()),+];
        }

        const _: () = ::core::assert!(
            $crate::__private::names_differ(<Exported as $crate::__private::Tools>::TOOLS),
            "two tools of this plugin have the same name",
        );

        #[cfg(target_family = "wasm")]
        $crate::__private::export_tools!(Exported with_types_in $crate::__private::tools);

        $crate::export_plugin!(@next $hooks $($($rest)*)?);
    };
    (@next { $($hook:item)* } setup = $setup:path $(, $($rest:tt)*)?) => {
        $crate::export_plugin!(@next {
            $($hook)*
            fn setup() -> ::core::result::Result<(), $crate::SetupError> {
                $setup()
            }
        } $($($rest)*)?);
    };
    (@next { $($hook:item)* } teardown = $teardown:path $(, $($rest:tt)*)?) => {
        $crate::export_plugin!(@next {
            $($hook)*
            fn teardown() {
                $teardown();
            }
        } $($($rest)*)?);
    };
    (@next $hooks:tt on_timer = $on_timer:path $(, $($rest:tt)*)?) => {
        impl $crate::__private::Timed for Exported {
            fn on_timer(
                firing: $crate::schedule::Firing,
                context: &$crate::CallContext,
            ) -> ::core::result::Result<(), $crate::ToolError> {
                $on_timer(firing, context)
            }
        }

        const _: () = $crate::__private::used(&<Exported as $crate::__private::Timed>::on_timer);

        #[cfg(target_family = "wasm")]
        $crate::__private::export_timers!(Exported with_types_in $crate::__private::timers);

        $crate::export_plugin!(@next $hooks $($($rest)*)?);
    };
    (@next $hooks:tt provider = $generate:path $(, $($rest:tt)*)?) => {
        impl $crate::__private::Provider for Exported {
            fn generate(
                request: $crate::provider::Request,
            ) -> ::core::result::Result<
                $crate::provider::Answer,
                $crate::provider::ProviderError,
            > {
                $generate(request)
            }
        }

        const _: () = $crate::__private::used(&<Exported as $crate::__private::Provider>::generate);

        #[cfg(target_family = "wasm")]
        $crate::__private::export_provider!(Exported with_types_in $crate::__private::provider);

        $crate::export_plugin!(@next $hooks $($($rest)*)?);
    };
    (@next $hooks:tt listener = $listener:path $(, $($rest:tt)*)?) => {
        impl $crate::__private::Listens for Exported {
            type Listener = $listener;
        }

        const _: () = $crate::__private::used(&<$listener as ::core::default::Default>::default);

        #[cfg(target_family = "wasm")]
        $crate::__private::export_listener!(Exported with_types_in $crate::__private::listener);

        $crate::export_plugin!(@next $hooks $($($rest)*)?);
    };
    (@next $hooks:tt guide = $describe:path $(, $($rest:tt)*)?) => {
        impl $crate::__private::Guide for Exported {
            fn describe() -> $crate::guide::Persona {
                $describe()
            }
        }

        const _: () = $crate::__private::used(&<Exported as $crate::__private::Guide>::describe);

        #[cfg(target_family = "wasm")]
        $crate::__private::export_guide!(Exported with_types_in $crate::__private::guide);

        $crate::export_plugin!(@next $hooks $($($rest)*)?);
    };
    (@next $hooks:tt ui = $ui:path $(, $($rest:tt)*)?) => {
        impl $crate::__private::Shows for Exported {
            type Ui = $ui;
        }

        const _: () = $crate::__private::used(&<$ui as ::core::default::Default>::default);

        #[cfg(target_family = "wasm")]
        $crate::__private::export_ui!(Exported with_types_in $crate::__private::ui);

        $crate::export_plugin!(@next $hooks $($($rest)*)?);
    };
    (@next $hooks:tt resources = $resources:path $(, $($rest:tt)*)?) => {
        impl $crate::__private::Offers for Exported {
            type Resources = $resources;
        }

        const _: () = $crate::__private::used(&<$resources as $crate::resources::Resources>::list);

        #[cfg(target_family = "wasm")]
        $crate::__private::export_resources!(Exported with_types_in $crate::__private::resources);

        $crate::export_plugin!(@next $hooks $($($rest)*)?);
    };
    (@next $hooks:tt prompts = $prompts:path $(, $($rest:tt)*)?) => {
        impl $crate::__private::Suggests for Exported {
            type Prompts = $prompts;
        }

        const _: () = $crate::__private::used(&<$prompts as $crate::prompts::Prompts>::list);

        #[cfg(target_family = "wasm")]
        $crate::__private::export_prompts!(Exported with_types_in $crate::__private::prompts);

        $crate::export_plugin!(@next $hooks $($($rest)*)?);
    };
    (@next $hooks:tt http = $serve:path $(, $($rest:tt)*)?) => {
        impl $crate::__private::Serves for Exported {
            fn serve(request: $crate::serve::Request) -> $crate::http::Response {
                $serve(request)
            }
        }

        const _: () = $crate::__private::used(&<Exported as $crate::__private::Serves>::serve);

        // Rust's orphan rule: the trait is of another crate, so only the plugin's crate can
        // implement it for its own type.
        #[cfg(target_family = "wasm")]
        impl $crate::__private::wasip2::exports::http::incoming_handler::Guest for Exported {
            fn handle(
                request: $crate::__private::wasip2::http::types::IncomingRequest,
                answer: $crate::__private::wasip2::http::types::ResponseOutparam,
            ) {
                $crate::__private::handle::<Self>(request, answer);
            }
        }

        #[cfg(target_family = "wasm")]
        $crate::__private::export_http!(Exported with_types_in $crate::__private::wasip2);

        $crate::export_plugin!(@next $hooks $($($rest)*)?);
    };
    (@next $hooks:tt $key:ident = $($rest:tt)*) => {
        ::core::compile_error!(::core::concat!(
            "`", ::core::stringify!($key), "` is nothing that a plugin exports, or its value does \
             not fit; there are `tools`, `setup`, `teardown`, `on_timer`, `provider`, `listener`, \
             `guide`, `ui`, `resources`, `prompts` and `http`"
        ));
    };
    () => {
        ::core::compile_error!("a plugin exports at least one thing, such as `tools = [my_tool]`");
    };
    ($key:ident $($rest:tt)*) => {
        const _: () = {
            enum Exported {}

            $crate::export_plugin!(@next {} $key $($rest)*);
        };
    };
}
