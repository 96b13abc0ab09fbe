//! A recorded session: everything that came from outside, to be replayed without it.
//!
//! A session depends only on its inputs, its model and its tools. A [`SessionRecorder`] wraps these
//! and records the traffic; a [`SessionReplay`] replaces them and returns the same again. A replay
//! needs no network, no plugin and no policy, and asks the user nothing. The session's requests to
//! its model are compared with the recorded ones, and the first difference is reported.
//!
//! # Format
//!
//! One JSON object a line, each with its kind as `line`. The first is `tape`; the others follow in
//! chronological order:
//!
//! | `line` | contents |
//! |---|---|
//! | `tape` | `version` as `{major, minor}`, `options`, `model`, its `price`, all `tools` |
//! | `input` | an input of the user |
//! | `cancel` | the user cancelled the turn |
//! | `request` | `same` messages of the last request, then `messages`; changed `tools`; `digest` |
//! | `answer` | its `deltas`, and how that request ended: `reply`, `failed` or `dropped` |
//! | `decision` | the gate's decision about a call: `admitted`, `refused` or `dropped` |
//! | `report` | how an admitted call ended: `finished` or `dropped` |
//! | `turn` | the turn has ended, and its duration |
//! | `noticed` | a plugin's message to the user |
//! | `recalls` | the session recalls earlier turns by meaning |
//! | `recalled` | how the recall for the last input ended: `found`, `failed` or `dropped` |
//!
//! `dropped` means that the session did not wait for the end. A request repeats the first `same`
//! messages of the one before; `digest` identifies it. A reader supports all lines of its own major
//! version up to its own minor one; it ignores unknown fields and refuses unknown lines. A last
//! line that is cut off by a kill of the host is ignored.
//!
//! Secrets that a [`Redactor`](sallyport_contract::Redactor) knows are removed from every text
//! before it is written. A replay is compared with the redacted texts, so it still matches.
//!
//! # What is not on it
//!
//! Of the user's actions, only inputs and cancellations are replayed; a plugin's message between
//! two inputs is repeated before the second. After an undo or a retry, a change of the model, an
//! edit of a call's arguments or a requested summary, a replay differs and reports it. The same
//! applies to a cancellation that came between two steps and stopped neither. Questions of the gate
//! are not repeated; the decision is the recorded answer. A tape begins where its session does.

mod clean;
mod difference;
mod line;
mod reader;
mod recorder;
mod replay;
mod schedule;
#[cfg(test)]
mod tests;

pub use difference::ReplayDifference;
pub use reader::{RecordingError, SessionRecording};
pub use recorder::SessionRecorder;
pub use replay::{ReplayError, SessionReplay};
