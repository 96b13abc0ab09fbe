//! The mistakes.

/// A mistake in the code of a plugin. `//~` marks the line that the message has to point at.
pub(crate) struct Mistake {
    pub(crate) name: &'static str,
    pub(crate) message: &'static str,
    pub(crate) code: &'static str,
}

const fn mistake(name: &'static str, message: &'static str, code: &'static str) -> Mistake {
    Mistake { name, message, code }
}

pub(crate) const MISTAKES: &[Mistake] = &[
    mistake("no_description", "write a doc comment", "#[tool]\nfn act() {} //~"),
    mistake(
        "bare_number",
        "make this the field of a struct",
        "/// Doubles.\n#[tool]\nfn double(n: u64) -> u64 { 2 * n } //~",
    ),
    mistake(
        "bare_list",
        "make this the field of a struct",
        "/// Counts.\n#[tool]\nfn count(words: Vec<String>) -> usize { words.len() } //~",
    ),
    mistake(
        "bare_option",
        "make this the field of a struct",
        "/// Greets.\n#[tool]\nfn greet(name: Option<String>) -> String { name.unwrap_or_default() } //~",
    ),
    mistake(
        "two_arguments",
        "into the struct",
        "/// Adds.\n#[tool]\nfn add(a: i64, b: i64) -> i64 { a + b } //~",
    ),
    mistake(
        "borrowed_argument",
        "a tool owns its arguments",
        "/// Measures.\n#[tool]\nfn length(text: &str) -> usize { text.len() } //~",
    ),
    mistake(
        "context_first",
        "then perhaps `&CallContext`",
        "#[derive(Deserialize, JsonSchema)]\nstruct Args {}\n/// Acts.\n#[tool]\n\
         fn act(context: &CallContext, args: Args) {} //~",
    ),
    mistake(
        "context_by_value",
        "take it as `&CallContext`",
        "/// Acts.\n#[tool]\nfn act(context: CallContext) {} //~",
    ),
    mistake("async_tool", "may simply block", "/// Acts.\n#[tool]\nasync fn act() {} //~"),
    mistake(
        "generic_tool",
        "no type or lifetime parameters",
        "/// Acts.\n#[tool]\nfn act<T>() {} //~",
    ),
    mistake(
        "method",
        "a tool is not a method",
        "struct Lamp;\nimpl Lamp {\n/// Acts.\n#[tool]\nfn act(&self) {} //~\n}",
    ),
    mistake(
        "not_a_function",
        "`#[tool]` belongs above a function",
        "/// A lamp. //~\n#[tool]\nstruct Lamp;",
    ),
    mistake(
        "hidden_result",
        "name the type",
        "/// Acts.\n#[tool]\nfn act() -> impl Serialize { 1 } //~",
    ),
    mistake(
        "silent_error",
        "implements `Display`",
        "#[derive(Serialize)]\nstruct Silent;\n/// Acts.\n#[tool] //~\n\
         fn act() -> Result<u8, Silent> { Err(Silent) }",
    ),
    mistake(
        "result_without_serialize",
        "Serialize",
        "struct Opaque;\n/// Acts.\n#[tool] //~\nfn act() -> Opaque { Opaque }",
    ),
    mistake(
        "arguments_without_deserialize",
        "Deserialize",
        "#[derive(JsonSchema)]\nstruct Args {}\n/// Acts.\n#[tool]\nfn act(args: Args) {} //~",
    ),
    mistake(
        "arguments_without_schema",
        "JsonSchema",
        "#[derive(Deserialize)]\nstruct Args {}\n/// Acts.\n#[tool]\nfn act(args: Args) {} //~",
    ),
    mistake(
        "unknown_hint",
        "there are `read_only`",
        "/// Acts.\n#[tool(readonly)] //~\nfn act() {}",
    ),
    mistake(
        "hint_twice",
        "is given twice",
        "/// Acts.\n#[tool(read_only, read_only = false)] //~\nfn act() {}",
    ),
    mistake(
        "contradiction",
        "cannot be both `read_only` and `destructive`",
        "/// Acts.\n#[tool(read_only, destructive)] //~\nfn act() {}",
    ),
    mistake(
        "bad_name",
        "is not a name of a tool",
        "/// Acts.\n#[tool(name = \"do it\")] //~\nfn act() {}",
    ),
    mistake(
        "hint_with_text",
        "expected boolean literal",
        "/// Acts.\n#[tool(read_only = \"yes\")] //~\nfn act() {}",
    ),
    mistake(
        "two_tools_of_one_name",
        "two tools of this plugin have the same name",
        "/// Acts.\n#[tool]\nfn act() {}\n/// Acts.\n#[tool(name = \"act\")]\nfn again() {}\n\
         sallyport_sdk::export_plugin!(tools = [act, again]); //~",
    ),
    mistake(
        "exported_without_tool",
        "`act` is a function item, not a type",
        "fn act() {}\nsallyport_sdk::export_plugin!(tools = [act]); //~",
    ),
    mistake(
        "exported_and_unknown",
        "cannot find type `lost`",
        "sallyport_sdk::export_plugin!(tools = [lost]); //~",
    ),
    mistake(
        "unknown_part",
        "there are `tools`",
        "fn bye() {}\nsallyport_sdk::export_plugin!(farewell = bye); //~",
    ),
    mistake(
        "nothing_exported",
        "a plugin exports at least one thing",
        "sallyport_sdk::export_plugin!(); //~",
    ),
    mistake(
        "no_tools_in_the_list",
        "`tools = []` names no tool",
        "sallyport_sdk::export_plugin!(tools = []); //~",
    ),
    mistake(
        "setup_of_another_form",
        "SetupError",
        "fn check() {}\nsallyport_sdk::export_plugin!(setup = check); //~",
    ),
];
