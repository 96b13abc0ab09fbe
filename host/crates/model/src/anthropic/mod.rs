//! Models behind Anthropic's `messages`, streamed or whole.
//!
//! A message is a list of blocks: text, thinking with a signature, calls. The whole list is kept
//! and sent back unchanged, because the provider refuses a call that follows thinking without that
//! thinking. The parts of a request that stay the same are marked, so that the provider reads them
//! from its cache.
//!
//! Suggested reading order: `request`, `tuning`, `blocks`, `reply`.

mod blocks;
mod reply;
mod request;
mod tuning;

pub(crate) use self::request::AnthropicFormat;
