//! A session on tape: everything that came from outside, to be played again without it.
//!
//! A session is what it makes of its inputs, of its model and of its tools. A [`Recording`] stands
//! between the session and these and writes down what passes; a [`Replay`] takes their place and
//! gives the same again. No network, no plugin and no policy is needed for that, and nobody is
//! asked. What the session then asks its model is compared with what it asked when the tape was
//! made, and the first difference is named.
//!
//! # Format
//!
//! One JSON object a line, each with its kind as `line`. The first is `tape`; from then on, in the
//! order in which it happened:
//!
//! | `line` | what it holds |
//! |---|---|
//! | `tape` | `version` as `{major, minor}`, the session's `options`, `model`, its `price`, all `tools` |
//! | `input` | what the person said |
//! | `cancel` | the person called the turn off |
//! | `request` | what the model is asked: the first `same` messages of the request before, then `messages`; `tools` when they are others than before; `digest`, which tells requests apart |
//! | `answer` | its `deltas`, and how the request of that number ended: `reply`, `failed` or `dropped` |
//! | `decision` | what the gate said to a call: `admitted`, `refused` or `dropped` |
//! | `report` | how a call ended that was let through: `finished` or `dropped` |
//! | `turn` | that the turn has ended, and how long it took |
//! | `noticed` | what a plugin told the person |
//! | `recalls` | that what was said is recalled by what it means |
//! | `recalled` | how asking what bears on the last input ended: `found`, `failed` or `dropped` |
//!
//! `dropped` means that the session did not wait for the end. A reader knows all lines of its own
//! major version up to its own minor one; fields that it does not know mean nothing to it, a line
//! that it does not know is refused. A last line that is cut off, since the host was killed, is not
//! there.
//!
//! Secrets that a [`Redactor`](sallyport_contract::Redactor) knows are taken out of every text before
//! it is written. A replay is made of the rest, so it still fits.
//!
//! # What is not on it
//!
//! Of what the person does, only inputs and cancelling are played again, and what plugins said
//! between two inputs is said again before the second. A turn that was taken back
//! or asked again, another model, other arguments of a call, a summary that was asked for: from there
//! on, a replay differs and says so. So it does where a cancelling came between two steps and stopped
//! neither. Questions of the gate are not asked again; the decision is what
//! was answered then. A tape begins where its session does.

mod clean;
mod difference;
mod form;
mod line;
mod read;
mod recording;
mod replay;
mod schedule;
#[cfg(test)]
mod tests;

pub use difference::Difference;
pub use read::{Tape, TapeError};
pub use recording::Recording;
pub use replay::{Replay, ReplayError};
