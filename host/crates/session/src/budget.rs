//! How much a turn may use, and the count of what it has used.
//!
//! A model can ask for the same call for ever or for a thousand calls at once. The ledger of a
//! turn notices, the calls beyond it get an outcome that says so, and the turn ends with a reason
//! that a person can read.

use std::collections::HashMap;

use sallyport_contract::json;
use serde_json::Value;

use super::naming::ToolRef;

/// Longest arguments, in bytes, that are compared by meaning; longer ones are compared as text,
/// since reading them twice would cost more than the comparison is worth.
const COMPARED_BYTES_MAX: usize = 64 * 1024;

/// How much one turn may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Answers of the model to one input.
    pub turns_max: u32,
    /// Calls made for one input, those of one answer included.
    pub calls_max: u32,
    /// Calls with the same tool and the same arguments for one input.
    pub repeats_max: u32,
}

impl Default for Limits {
    /// Enough for long errands (16 answers, 64 calls), small enough to end a loop within a minute;
    /// a call that gave the same three times will not give something else the fourth time.
    fn default() -> Self {
        Self { turns_max: 16, calls_max: 64, repeats_max: 3 }
    }
}

/// A limit that was reached.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Budget {
    /// The model was asked as often as it may be.
    #[error("at most {turns_max} answers of the model per turn")]
    Turns {
        /// [`Limits::turns_max`].
        turns_max: u32,
    },
    /// As many calls were made as may be.
    #[error("at most {calls_max} tool calls per turn")]
    Calls {
        /// [`Limits::calls_max`].
        calls_max: u32,
    },
    /// One call was made again and again.
    #[error("{tool} was called with the same arguments {repeats_max} times in this turn")]
    Repeats {
        /// The tool.
        tool: ToolRef,
        /// [`Limits::repeats_max`].
        repeats_max: u32,
    },
}

/// What a turn has used so far.
#[derive(Debug)]
pub(super) struct Ledger {
    limits: Limits,
    turns: u32,
    calls: u32,
    same: HashMap<(ToolRef, Arguments), u32>,
    reached: Option<Budget>,
}

/// Arguments as they are compared: by meaning where they have one.
#[derive(Debug, PartialEq, Eq, Hash)]
enum Arguments {
    Read(Value),
    Unread(String),
}

impl Ledger {
    pub(super) fn new(limits: Limits) -> Self {
        Self { limits, turns: 0, calls: 0, same: HashMap::new(), reached: None }
    }

    /// Counts one more answer of the model.
    ///
    /// # Errors
    ///
    /// There may be no more, or calls of the last answer were over the budget already.
    pub(super) fn take_turn(&mut self) -> Result<(), Budget> {
        let Limits { turns_max, .. } = self.limits;
        if let Some(reached) = self.reached.take() {
            return Err(reached);
        }
        if self.turns >= turns_max {
            return Err(Budget::Turns { turns_max });
        }
        self.turns += 1;
        Ok(())
    }

    /// Counts one more call. A refusal is remembered: it ends the turn.
    ///
    /// # Errors
    ///
    /// There may be no more, or no more of the same.
    pub(super) fn take_call(&mut self, tool: &ToolRef, arguments: &str) -> Result<(), Budget> {
        let counted = self.count_call(tool, arguments);
        if let Err(budget) = &counted {
            self.reached.get_or_insert_with(|| budget.clone());
        }
        counted
    }

    fn count_call(&mut self, tool: &ToolRef, arguments: &str) -> Result<(), Budget> {
        let Limits { calls_max, repeats_max, .. } = self.limits;
        if self.calls >= calls_max {
            return Err(Budget::Calls { calls_max });
        }
        let same = self.same.entry((tool.clone(), Arguments::read(arguments))).or_default();
        if *same >= repeats_max {
            return Err(Budget::Repeats { tool: tool.clone(), repeats_max });
        }
        *same += 1;
        self.calls += 1;
        Ok(())
    }
}

impl Arguments {
    fn read(text: &str) -> Self {
        json::parse(text, COMPARED_BYTES_MAX)
            .map_or_else(|_| Self::Unread(text.to_owned()), Self::Read)
    }
}
