//! The attribute behind `sallyport_sdk::tool`.
//!
//! A crate of its own only because Rust wants procedural macros apart; use it through
//! `sallyport-sdk`, which also holds the code that the expansion calls.

mod attributes;
mod function;

use proc_macro::TokenStream;
use syn::{ItemFn, parse_macro_input};

/// Makes a tool of a function.
///
/// The name of the function becomes the name of the tool, its doc comment the description that the
/// model reads, the type of its argument the schema, and its return value the result.
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
/// It takes one struct of arguments or none, and then, when it wants to know who is asking,
/// `&CallContext`. It returns any `Serialize` data, an `Output` of such data, or a `Result` of
/// either: with a `ToolError`, with an error that converts into one, or with one that has words
/// (`Display`), such as `String`. When the data derives `JsonSchema` and is an object, the tool declares
/// the schema of its result as well.
///
/// Beside the function stands a type of the same name, the tool, so `greet::spec()` works; a module
/// or another type of that name cannot stand there too.
///
/// # The hints
///
/// `read_only`, `destructive`, `idempotent` and `open_world` are claims about the tool, each alone or
/// with `= true` or `= false`. `name = "…"` gives the tool another name than the function's,
/// `title = "…"` a name for people.
///
/// # What does not compile
///
/// A tool without a doc comment, since a model chooses tools by their description:
///
/// ```compile_fail
/// use sallyport_sdk::prelude::*;
///
/// #[tool]
/// fn silent() {}
/// ```
///
/// A hint that does not exist, a name that no tool may have:
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
/// Arguments that cannot be read or described, results that cannot be written:
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
/// Arguments without names, which a model could not give:
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
/// An error that says nothing; one that has words is a failure of the call:
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
/// Several arguments side by side, `async`, generics, methods:
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
    let function = parse_macro_input!(item as ItemFn);
    function::expand(&attributes, &function).unwrap_or_else(|e| e.into_compile_error()).into()
}
