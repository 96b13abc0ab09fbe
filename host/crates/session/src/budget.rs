//! How much a turn and a session may use, and the count of what they have used.
//!
//! A model can ask for the same call for ever or for a thousand calls at once, and every answer
//! costs tokens. The ledger notices; the calls beyond a limit get an outcome that says so, and the
//! turn ends with a reason that a person can read. Time is the one thing that is not waited for:
//! when it is up, whatever is going on is stopped.

use std::{collections::HashMap, fmt, time::Duration};

use sallyport_contract::json;
use sallyport_model::{Cost, Usage};
use serde_json::Value;
use tokio::time::Instant;

use super::{event::TurnUsage, naming::ToolRef};

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
    /// Tokens read and written.
    pub tokens_max: Option<u64>,
    /// What the tokens may cost.
    pub cost_max: Option<Cost>,
    /// Time from the input to the last word, waiting for the person included.
    pub time_max: Option<Duration>,
}

impl Default for Limits {
    /// Enough for long errands (16 answers, 64 calls), small enough to end a loop within a minute;
    /// a call that gave the same three times will not give something else the fourth time. Tokens,
    /// money and time are for the person to limit: no figure fits all models.
    fn default() -> Self {
        Self {
            turns_max: 16,
            calls_max: 64,
            repeats_max: 3,
            tokens_max: None,
            cost_max: None,
            time_max: None,
        }
    }
}

/// How much a whole session may use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SessionLimits {
    /// Tokens read and written.
    pub tokens_max: Option<u64>,
    /// What the tokens may cost.
    pub cost_max: Option<Cost>,
}

/// What was used up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spent {
    /// Tokens read and written.
    pub tokens: u64,
    /// What they cost, as far as prices were known.
    pub cost: Cost,
}

impl Spent {
    /// Adds an exchange with the model.
    pub(crate) fn add(&mut self, usage: &Usage, cost: Option<Cost>) {
        self.tokens = self.tokens.saturating_add(total(usage));
        self.cost = [self.cost, cost.unwrap_or_default()].into_iter().sum();
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
    /// As many tokens were used as may be.
    #[error("at most {tokens_max} tokens per turn")]
    Tokens {
        /// [`Limits::tokens_max`].
        tokens_max: u64,
    },
    /// As much money was spent as may be.
    #[error("at most {} per turn", Dollars(*cost_max))]
    Cost {
        /// [`Limits::cost_max`].
        cost_max: Cost,
    },
    /// It took as long as it may.
    #[error("at most {time_max:?} per turn")]
    Time {
        /// [`Limits::time_max`].
        time_max: Duration,
    },
    /// The session used as many tokens as it may.
    #[error("at most {tokens_max} tokens per session")]
    SessionTokens {
        /// [`SessionLimits::tokens_max`].
        tokens_max: u64,
    },
    /// The session spent as much money as it may.
    #[error("at most {} per session", Dollars(*cost_max))]
    SessionCost {
        /// [`SessionLimits::cost_max`].
        cost_max: Cost,
    },
}

/// Money as people write it: at least cents, and as exact as it is known.
struct Dollars(Cost);

impl fmt::Display for Dollars {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, part) = (self.0.micro_usd / 1_000_000, self.0.micro_usd % 1_000_000);
        let part = format!("{part:06}");
        let (cents, rest) = part.split_at(2);
        write!(f, "${whole}.{cents}{}", rest.trim_end_matches('0'))
    }
}

/// When a turn must be over.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deadline {
    pub(super) at: Instant,
    /// How long it was, from the turn's beginning.
    pub(super) time_max: Duration,
}

/// What the session and its present turn have used so far.
#[derive(Debug)]
pub(super) struct Ledger {
    limits: Limits,
    session_limits: SessionLimits,
    session: Spent,
    turn: Turn,
}

/// What one turn has used so far.
#[derive(Debug)]
struct Turn {
    began: Instant,
    usage: TurnUsage,
    same: HashMap<(ToolRef, Arguments), u32>,
    reached: Option<Budget>,
}

/// Arguments as they are compared: by meaning where they have one.
#[derive(Debug, PartialEq, Eq, Hash)]
enum Arguments {
    Read(Value),
    Unread(String),
}

impl Turn {
    fn begin() -> Self {
        let (usage, same) = (TurnUsage::default(), HashMap::new());
        Self { began: Instant::now(), usage, same, reached: None }
    }

    fn spent(&self) -> Spent {
        let TurnUsage { tokens, cost, .. } = self.usage;
        Spent { tokens: total(&tokens), cost: cost.unwrap_or_default() }
    }
}

impl Ledger {
    /// A ledger of a session that has used something already.
    pub(super) fn new(limits: Limits, session_limits: SessionLimits, session: Spent) -> Self {
        Self { limits, session_limits, session, turn: Turn::begin() }
    }

    /// Begins a turn, which has used nothing yet, and returns when it must be over.
    pub(super) fn begin_turn(&mut self) -> Option<Deadline> {
        self.turn = Turn::begin();
        let time_max = self.limits.time_max?;
        // A time that no clock reaches is no limit.
        let at = self.turn.began.checked_add(time_max)?;
        Some(Deadline { at, time_max })
    }

    /// What the present turn has used.
    pub(super) fn usage(&self) -> TurnUsage {
        TurnUsage { elapsed: self.turn.began.elapsed(), ..self.turn.usage }
    }

    /// Whether what is spent is limited, so that prices have to be known.
    pub(super) fn limits_cost(&self) -> bool {
        self.limits.cost_max.is_some() || self.session_limits.cost_max.is_some()
    }

    /// Counts an exchange with the model.
    pub(super) fn spend(&mut self, usage: &Usage, cost: Option<Cost>) {
        self.session.add(usage, cost);
        let turn = &mut self.turn.usage;
        turn.tokens = sum(&turn.tokens, usage);
        turn.cost = match (turn.cost, cost) {
            (Some(before), Some(cost)) => Some([before, cost].into_iter().sum()),
            (before, cost) => before.or(cost),
        };
    }

    /// Counts one more answer of the model.
    ///
    /// # Errors
    ///
    /// There may be no more, or calls of the last answer were over the budget already.
    pub(super) fn take_turn(&mut self) -> Result<(), Budget> {
        let Limits { turns_max, .. } = self.limits;
        if let Some(reached) = self.turn.reached.take() {
            return Err(reached);
        }
        self.check_spent()?;
        if self.turn.usage.answers >= turns_max {
            return Err(Budget::Turns { turns_max });
        }
        self.turn.usage.answers += 1;
        Ok(())
    }

    /// Counts one more call. A refusal is remembered: it ends the turn.
    ///
    /// # Errors
    ///
    /// There may be no more, or no more of the same, or nothing is left to ask the model again.
    pub(super) fn take_call(&mut self, tool: &ToolRef, arguments: &str) -> Result<(), Budget> {
        let counted = self.check_spent().and_then(|()| self.count_call(tool, arguments));
        if let Err(budget) = &counted {
            self.turn.reached.get_or_insert_with(|| budget.clone());
        }
        counted
    }

    fn count_call(&mut self, tool: &ToolRef, arguments: &str) -> Result<(), Budget> {
        let Limits { calls_max, repeats_max, .. } = self.limits;
        let turn = &mut self.turn;
        if turn.usage.calls >= calls_max {
            return Err(Budget::Calls { calls_max });
        }
        let same = turn.same.entry((tool.clone(), Arguments::read(arguments))).or_default();
        if *same >= repeats_max {
            return Err(Budget::Repeats { tool: tool.clone(), repeats_max });
        }
        *same += 1;
        turn.usage.calls += 1;
        Ok(())
    }

    /// Checks that something is left to ask the model with.
    ///
    /// # Errors
    ///
    /// The first limit that leaves nothing.
    pub(super) fn check_spent(&self) -> Result<(), Budget> {
        let (turn, session) = (self.turn.spent(), self.session);
        let Limits { tokens_max, cost_max, .. } = self.limits;
        reached(turn.tokens, tokens_max, |tokens_max| Budget::Tokens { tokens_max })?;
        reached(turn.cost, cost_max, |cost_max| Budget::Cost { cost_max })?;
        let SessionLimits { tokens_max, cost_max } = self.session_limits;
        reached(session.tokens, tokens_max, |tokens_max| Budget::SessionTokens { tokens_max })?;
        reached(session.cost, cost_max, |cost_max| Budget::SessionCost { cost_max })
    }
}

fn reached<T: PartialOrd + Copy>(
    used: T,
    most: Option<T>,
    budget: impl Fn(T) -> Budget,
) -> Result<(), Budget> {
    most.filter(|most| used >= *most).map_or(Ok(()), |most| Err(budget(most)))
}

/// Tokens read and written.
fn total(usage: &Usage) -> u64 {
    usage.input_tokens.saturating_add(usage.output_tokens)
}

fn sum(a: &Usage, b: &Usage) -> Usage {
    let add = |part: fn(&Usage) -> u64| part(a).saturating_add(part(b));
    Usage {
        input_tokens: add(|usage| usage.input_tokens),
        output_tokens: add(|usage| usage.output_tokens),
        cached_input_tokens: add(|usage| usage.cached_input_tokens),
        cache_write_tokens: add(|usage| usage.cache_write_tokens),
        reasoning_tokens: add(|usage| usage.reasoning_tokens),
    }
}

impl Arguments {
    fn read(text: &str) -> Self {
        json::parse(text, COMPARED_BYTES_MAX)
            .map_or_else(|_| Self::Unread(text.to_owned()), Self::Read)
    }
}
