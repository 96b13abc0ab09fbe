//! Models behind OpenAI's `responses`, streamed or whole.
//!
//! An answer is a list of items: thoughts, messages, calls. The list is kept unchanged and sent
//! back with the next request. The provider stores nothing, so the model's thoughts are sent back
//! too, encrypted.
//!
//! Suggested reading order: `request`, `reply`.

mod reply;
mod request;
#[cfg(test)]
mod tests;

pub(crate) use self::request::ResponsesFormat;
