//! The attribute behind `sallyport_sdk::tool`.
//!
//! Rust requires a separate crate for procedural macros. Use it through `sallyport-sdk`, which
//! contains the code that the expansion calls.

mod attributes;
mod function;

use proc_macro::TokenStream;
use syn::{ItemFn, parse_macro_input};

/// Turns a function into a tool.
///
/// The function's name becomes the tool's name, its doc comment the description that the model
/// reads, its argument type the schema, and its return value the result.
///
/// ```
/// use sallyport_sdk::{prelude::*, testing};
///
/// /// What to greet.
/// #[derive(Deserialize, JsonSchema)]
/// struct Greet {
///     /// A name.
///     name: String,
/// }
///
/// /// Greets somebody by name.
/// #[tool(read_only, idempotent, open_world = false)]
/// fn greet(args: Greet) -> String {
///     format!("Good morning, {}!", args.name)
/// }
///
/// assert_eq!(greet(Greet { name: "Kim".to_owned() }), "Good morning, Kim!");
/// assert_eq!(greet::spec().description, "Greets somebody by name.");
/// assert_eq!(
///     testing::call::<greet>(json!({})).unwrap_err().message(),
///     "missing field `name`",
/// );
/// ```
///
/// # The function
///
/// It takes at most one struct of arguments, and then optionally a `&CallContext` that describes
/// the call. It returns any `Serialize` data, an `Output` of such data, or a `Result` of either.
/// The error of a `Result` is a `ToolError`, converts into one, or implements `Display`, as
/// `String` does. If the data derives `JsonSchema` and is an object, the tool also declares the
/// schema of its result.
///
/// The macro keeps the function and adds a type of the same name, the tool, so `greet::spec()`
/// works. A module or another type of that name would conflict with it.
///
/// # The hints
///
/// `read_only`, `destructive`, `idempotent` and `open_world` are claims about the tool, each
/// written alone or with `= true` or `= false`. `name = "…"` gives the tool a name other than the
/// function's. `title = "…"` sets the name that users see.
///
/// # What does not compile
///
/// A tool without a doc comment, because a model chooses tools by their descriptions:
///
/// ```compile_fail
/// use sallyport_sdk::prelude::*;
///
/// #[tool]
/// fn silent() {}
/// ```
///
/// An unknown hint, or an invalid tool name:
///
/// ```compile_fail
/// use sallyport_sdk::prelude::*;
///
/// /// Does it.
/// #[tool(readonly)]
/// fn act() {}
/// ```
///
/// ```compile_fail
/// use sallyport_sdk::prelude::*;
///
/// /// Does it.
/// #[tool(name = "do it")]
/// fn act() {}
/// ```
///
/// Arguments that cannot be deserialized or described, and results that cannot be serialized:
///
/// ```compile_fail
/// use sallyport_sdk::prelude::*;
///
/// struct Opaque;
///
/// /// Does it.
/// #[tool]
/// fn act(args: Opaque) {}
/// ```
///
/// Arguments without names, which a model cannot pass:
///
/// ```compile_fail
/// use sallyport_sdk::prelude::*;
///
/// /// Doubles a number.
/// #[tool]
/// fn double(n: u64) -> u64 {
///     2 * n
/// }
/// ```
///
/// ```compile_fail
/// use sallyport_sdk::prelude::*;
///
/// /// Counts words.
/// #[tool]
/// fn count(words: Vec<String>) -> usize {
///     words.len()
/// }
/// ```
///
/// An error type without a message. A type that has one makes the call fail with that message:
///
/// ```compile_fail
/// use sallyport_sdk::prelude::*;
///
/// #[derive(Serialize)]
/// struct Silent;
///
/// /// Does it.
/// #[tool]
/// fn act() -> Result<u8, Silent> {
///     Err(Silent)
/// }
/// ```
///
/// ```
/// use sallyport_sdk::prelude::*;
///
/// /// Does it.
/// #[tool]
/// fn act() -> Result<u8, String> {
///     Err("the lamp is broken".to_owned())
/// }
///
/// let error = act::call(&CallContext::default(), "{}").unwrap_err();
/// assert_eq!(error, ToolError::Failed("the lamp is broken".to_owned()));
/// ```
///
/// ```compile_fail
/// use sallyport_sdk::prelude::*;
///
/// struct Opaque;
///
/// /// Does it.
/// #[tool]
/// fn act() -> Opaque {
///     Opaque
/// }
/// ```
///
/// Several arguments without a struct, `async`, generics, methods:
///
/// ```compile_fail
/// use sallyport_sdk::prelude::*;
///
/// /// Adds.
/// #[tool]
/// fn add(a: i64, b: i64) -> i64 {
///     a + b
/// }
/// ```
#[proc_macro_attribute]
pub fn tool(attributes: TokenStream, item: TokenStream) -> TokenStream {
    let attributes = parse_macro_input!(attributes);
    let Ok(function) = syn::parse::<ItemFn>(item.clone()) else {
        return not_a_function(item);
    };
    function::expand(&attributes, &function).unwrap_or_else(|e| e.into_compile_error()).into()
}

/// Keeps the item, so that it causes no errors of its own.
fn not_a_function(item: TokenStream) -> TokenStream {
    let tokens = proc_macro2::TokenStream::from(item.clone());
    let message = "`#[tool]` belongs above a function, which is what the tool does";
    let error: TokenStream = syn::Error::new_spanned(tokens, message).into_compile_error().into();
    error.into_iter().chain(item).collect()
}
