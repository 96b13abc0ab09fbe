//! Models behind OpenAI's `chat/completions`, streamed or whole.
//!
//! OpenAI, DeepSeek, Mistral, OpenRouter, llama.cpp, Ollama and many others implement this
//! protocol, each with small deviations. The adapter reads all of them and ignores fields that it
//! does not know.
//!
//! Suggested reading order: `request`, `reply`.

mod calls;
mod merge;
mod reply;
mod request;
mod short_ids;

pub(crate) use self::request::ChatCompletionsFormat;
pub use self::request::tool_definition;
