//! The names of the variables that are read.

/// Puts configuration, plugins, policy and cache under one folder.
pub const HOME: &str = "SALLYPORT_HOME";
/// Folders of plugins, separated as in `PATH`.
pub const PLUGIN_DIR: &str = "SALLYPORT_PLUGIN_DIR";
/// The same, under the name that older setups use.
pub const PLUGIN_DIR_SHORT: &str = "PLUGIN_DIR";
/// The model to talk to.
pub const MODEL: &str = "SALLYPORT_MODEL";
/// The key for an OpenAI-compatible endpoint.
pub const OPENAI_API_KEY: &str = "OPENAI_API_KEY";
/// The address of an OpenAI-compatible endpoint.
pub const OPENAI_BASE_URL: &str = "OPENAI_BASE_URL";
/// The key for Anthropic.
pub const ANTHROPIC_API_KEY: &str = "ANTHROPIC_API_KEY";
/// The key for Gemini.
pub const GEMINI_API_KEY: &str = "GEMINI_API_KEY";
/// The key for Gemini, under the name that Google's other programs use.
pub const GOOGLE_API_KEY: &str = "GOOGLE_API_KEY";
/// The key for Mistral.
pub const MISTRAL_API_KEY: &str = "MISTRAL_API_KEY";
/// The key for DeepSeek.
pub const DEEPSEEK_API_KEY: &str = "DEEPSEEK_API_KEY";
/// The key for OpenRouter.
pub const OPENROUTER_API_KEY: &str = "OPENROUTER_API_KEY";
/// The address of an Ollama server.
pub const OLLAMA_BASE_URL: &str = "OLLAMA_BASE_URL";
/// A model of the Ollama server.
pub const OLLAMA_MODEL: &str = "OLLAMA_MODEL";
/// Timeout of one answer of a model, in seconds.
pub const LLM_TIMEOUT: &str = "LLM_TIMEOUT";
/// How pages are opened: a program, or `none`.
pub const BROWSER: &str = "SALLYPORT_BROWSER";
/// How long a start waits for plugins that are not compiled yet, such as `10s`.
pub const COMPILE_WAIT: &str = "SALLYPORT_COMPILE_WAIT";

/// Cargo's own folder, for builds of plugins.
pub const CARGO_HOME: &str = "CARGO_HOME";
/// A Python that has componentize-py, for builds of plugins.
pub const PYTHON: &str = "SALLYPORT_PYTHON";
/// A folder with the npm packages that build JavaScript plugins.
pub const NODE_MODULES: &str = "SALLYPORT_NODE_MODULES";
/// The Zig compiler, for builds of C and C++ plugins.
pub const ZIG: &str = "SALLYPORT_ZIG";
/// The Go compiler, for builds of plugins.
pub const GO: &str = "SALLYPORT_GO";
