//! Limits of a turn and a session, and their usage.
//!
//! A model can repeat the same call forever or request a thousand calls in one answer, and every
//! answer costs tokens. The ledger counts; calls beyond a limit get an outcome that states it, and
//! the turn ends with a readable reason. Only the time limit takes effect immediately: when it is
//! reached, any running work is stopped.

use std::{collections::HashMap, fmt, time::Duration};

use sallyport_contract::{SpentBudget, json, milliseconds};
use sallyport_model::{TokenCost, TokenUsage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::time::Instant;

use super::tool_names::ToolRef;

/// Longest arguments, in bytes, that are compared as JSON; longer ones are compared as text,
/// because parsing them again would cost more than the comparison is worth.
const COMPARED_BYTES_MAX: usize = 64 * 1024;

/// Limits of one turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TurnLimits {
    /// Answers of the model to one input.
    pub turns_max: u32,
    /// Calls for one input, over all its answers.
    pub calls_max: u32,
    /// Calls of the same tool with the same arguments for one input.
    pub repeats_max: u32,
    /// Input and output tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_max: Option<u64>,
    /// Cost of the tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_max: Option<TokenCost>,
    /// Time from the input to the end, including waits for the user.
    #[serde(
        default,
        rename = "time_max_ms",
        with = "milliseconds::option",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<u64>")]
    pub time_max: Option<Duration>,
}

impl Default for TurnLimits {
    /// Enough for long tasks (16 answers, 64 calls), small enough to end a loop within a minute; a
    /// call that returned the same result three times will not return another the fourth time.
    /// Tokens, money and time have no default: no value fits all models.
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

/// Limits of a whole session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionLimits {
    /// Input and output tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_max: Option<u64>,
    /// Cost of the tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_max: Option<TokenCost>,
}

/// Used tokens and money.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ModelSpending {
    /// Input and output tokens.
    pub tokens: u64,
    /// Their cost, as far as prices were known.
    pub cost: TokenCost,
}

impl ModelSpending {
    /// Adds an exchange with the model.
    pub(crate) fn add_usage(&mut self, usage: &TokenUsage, cost: Option<TokenCost>) {
        self.tokens = self.tokens.saturating_add(total_tokens(usage));
        self.cost = [self.cost, cost.unwrap_or_default()].into_iter().sum();
    }
}

/// The usage of a turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TurnUsage {
    /// How many answers were requested from the model.
    pub answers: u32,
    /// Calls made.
    pub calls: u32,
    /// Tokens, including those of summaries; estimated where the provider does not report them.
    pub tokens: TokenUsage,
    /// Their cost in millionths of a US dollar, when the price is known.
    #[serde(
        default,
        rename = "cost_micro_usd",
        alias = "cost",
        skip_serializing_if = "Option::is_none"
    )]
    pub cost: Option<TokenCost>,
    /// Time from the input to the end, including waits for the user.
    #[serde(rename = "elapsed_ms", with = "milliseconds")]
    #[schemars(with = "u64")]
    pub elapsed: Duration,
}

/// A limit that was reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum BudgetLimit {
    /// The model has given all answers that one turn allows.
    #[error("at most {turns_max} answers of the model per turn")]
    Turns {
        /// [`TurnLimits::turns_max`].
        turns_max: u32,
    },
    /// All calls that one turn allows were made.
    #[error("at most {calls_max} tool calls per turn")]
    Calls {
        /// [`TurnLimits::calls_max`].
        calls_max: u32,
    },
    /// The same call was made too often.
    #[error("{tool} was called with the same arguments {repeats_max} times in this turn")]
    Repeats {
        /// The tool.
        tool: ToolRef,
        /// [`TurnLimits::repeats_max`].
        repeats_max: u32,
    },
    /// The turn reached its token limit.
    #[error("at most {tokens_max} tokens per turn")]
    Tokens {
        /// [`TurnLimits::tokens_max`].
        tokens_max: u64,
    },
    /// The turn reached its cost limit.
    #[error("at most {} per turn", DollarAmount(*cost_max))]
    Cost {
        /// [`TurnLimits::cost_max`].
        cost_max: TokenCost,
    },
    /// The turn reached its time limit.
    #[error("at most {time_max:?} per turn")]
    Time {
        /// [`TurnLimits::time_max`].
        #[serde(rename = "time_max_ms", with = "milliseconds")]
        #[schemars(with = "u64")]
        time_max: Duration,
    },
    /// The session reached its token limit.
    #[error("at most {tokens_max} tokens per session")]
    SessionTokens {
        /// [`SessionLimits::tokens_max`].
        tokens_max: u64,
    },
    /// The session reached its cost limit.
    #[error("at most {} per session", DollarAmount(*cost_max))]
    SessionCost {
        /// [`SessionLimits::cost_max`].
        cost_max: TokenCost,
    },
    /// A budget of the user over all sessions is used up.
    #[error("{spent}")]
    User {
        /// The budget.
        spent: SpentBudget,
    },
    /// What the user has used over all sessions cannot be read.
    #[error("what the user has used cannot be read now")]
    UserUnreadable,
}

/// An amount of money in dollars: with cents, and as many digits as are known.
struct DollarAmount(TokenCost);

impl fmt::Display for DollarAmount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, part) = (self.0.micro_usd / 1_000_000, self.0.micro_usd % 1_000_000);
        let part = format!("{part:06}");
        let (cents, rest) = part.split_at(2);
        write!(f, "${whole}.{cents}{}", rest.trim_end_matches('0'))
    }
}

/// The deadline of a turn.
#[derive(Debug, Clone, Copy)]
pub(super) struct TurnDeadline {
    pub(super) at: Instant,
    /// The time limit, from the turn's start.
    pub(super) time_max: Duration,
}

/// The usage of the session and its current turn so far.
#[derive(Debug)]
pub(super) struct UsageTracker {
    limits: TurnLimits,
    session_limits: SessionLimits,
    session: ModelSpending,
    turn: TurnTracker,
}

/// The usage of one turn so far.
#[derive(Debug)]
struct TurnTracker {
    started: Instant,
    usage: TurnUsage,
    repeat_counts: HashMap<(ToolRef, ComparableArguments), u32>,
    reached_limit: Option<BudgetLimit>,
}

/// Arguments for comparison: as JSON if they are valid.
#[derive(Debug, PartialEq, Eq, Hash)]
enum ComparableArguments {
    Parsed(Value),
    Unparsed(String),
}

impl TurnTracker {
    fn new() -> Self {
        let (usage, repeat_counts) = (TurnUsage::default(), HashMap::new());
        Self { started: Instant::now(), usage, repeat_counts, reached_limit: None }
    }

    fn spending(&self) -> ModelSpending {
        let TurnUsage { tokens, cost, .. } = self.usage;
        ModelSpending { tokens: total_tokens(&tokens), cost: cost.unwrap_or_default() }
    }
}

impl UsageTracker {
    /// Creates the ledger of a session with earlier usage.
    pub(super) fn new(
        limits: TurnLimits,
        session_limits: SessionLimits,
        session: ModelSpending,
    ) -> Self {
        Self { limits, session_limits, session, turn: TurnTracker::new() }
    }

    /// Begins a turn without usage and returns its deadline.
    pub(super) fn begin_turn(&mut self) -> Option<TurnDeadline> {
        self.turn = TurnTracker::new();
        let time_max = self.limits.time_max?;
        // A time beyond the range of the clock is not a limit.
        let at = self.turn.started.checked_add(time_max)?;
        Some(TurnDeadline { at, time_max })
    }

    /// Returns the usage of the current turn.
    pub(super) fn turn_usage(&self) -> TurnUsage {
        TurnUsage { elapsed: self.turn.started.elapsed(), ..self.turn.usage }
    }

    /// Whether the cost is limited, so that prices must be known.
    pub(super) fn has_cost_limit(&self) -> bool {
        self.limits.cost_max.is_some() || self.session_limits.cost_max.is_some()
    }

    /// Counts an exchange with the model.
    pub(super) fn record_usage(&mut self, usage: &TokenUsage, cost: Option<TokenCost>) {
        self.session.add_usage(usage, cost);
        let turn = &mut self.turn.usage;
        turn.tokens = sum_usage(&turn.tokens, usage);
        turn.cost = match (turn.cost, cost) {
            (Some(before), Some(cost)) => Some([before, cost].into_iter().sum()),
            (before, cost) => before.or(cost),
        };
    }

    /// Counts one more answer of the model.
    ///
    /// # Errors
    ///
    /// The limit of answers is reached, tokens or money are used up, or a call of the last answer
    /// was over the budget.
    pub(super) fn charge_answer(&mut self) -> Result<(), BudgetLimit> {
        let TurnLimits { turns_max, .. } = self.limits;
        if let Some(reached_limit) = self.turn.reached_limit.take() {
            return Err(reached_limit);
        }
        self.check_spending()?;
        if self.turn.usage.answers >= turns_max {
            return Err(BudgetLimit::Turns { turns_max });
        }
        self.turn.usage.answers += 1;
        Ok(())
    }

    /// Counts one more call. A refusal is stored and ends the turn.
    ///
    /// # Errors
    ///
    /// The limit of calls or of repeated calls is reached, or tokens or money are used up.
    pub(super) fn charge_call(
        &mut self,
        tool: &ToolRef,
        arguments: &str,
    ) -> Result<(), BudgetLimit> {
        let charged =
            self.check_spending().and_then(|()| self.check_and_count_call(tool, arguments));
        if let Err(budget) = &charged {
            self.turn.reached_limit.get_or_insert_with(|| budget.clone());
        }
        charged
    }

    fn check_and_count_call(&mut self, tool: &ToolRef, arguments: &str) -> Result<(), BudgetLimit> {
        let TurnLimits { calls_max, repeats_max, .. } = self.limits;
        let turn = &mut self.turn;
        if turn.usage.calls >= calls_max {
            return Err(BudgetLimit::Calls { calls_max });
        }
        let repeat_counts = turn
            .repeat_counts
            .entry((tool.clone(), ComparableArguments::parse(arguments)))
            .or_default();
        if *repeat_counts >= repeats_max {
            return Err(BudgetLimit::Repeats { tool: tool.clone(), repeats_max });
        }
        *repeat_counts += 1;
        turn.usage.calls += 1;
        Ok(())
    }

    /// Checks that tokens and money for another request are left.
    ///
    /// # Errors
    ///
    /// The first limit that is reached.
    pub(super) fn check_spending(&self) -> Result<(), BudgetLimit> {
        let (turn, session) = (self.turn.spending(), self.session);
        let TurnLimits { tokens_max, cost_max, .. } = self.limits;
        check_limit(turn.tokens, tokens_max, |tokens_max| BudgetLimit::Tokens { tokens_max })?;
        check_limit(turn.cost, cost_max, |cost_max| BudgetLimit::Cost { cost_max })?;
        let SessionLimits { tokens_max, cost_max } = self.session_limits;
        check_limit(session.tokens, tokens_max, |tokens_max| BudgetLimit::SessionTokens {
            tokens_max,
        })?;
        check_limit(session.cost, cost_max, |cost_max| BudgetLimit::SessionCost { cost_max })
    }
}

fn check_limit<T: PartialOrd + Copy>(
    used: T,
    limit: Option<T>,
    budget: impl Fn(T) -> BudgetLimit,
) -> Result<(), BudgetLimit> {
    limit.filter(|limit| used >= *limit).map_or(Ok(()), |limit| Err(budget(limit)))
}

/// Input and output tokens.
fn total_tokens(usage: &TokenUsage) -> u64 {
    usage.input_tokens.saturating_add(usage.output_tokens)
}

fn sum_usage(a: &TokenUsage, b: &TokenUsage) -> TokenUsage {
    let add = |part: fn(&TokenUsage) -> u64| part(a).saturating_add(part(b));
    TokenUsage {
        input_tokens: add(|usage| usage.input_tokens),
        output_tokens: add(|usage| usage.output_tokens),
        cached_input_tokens: add(|usage| usage.cached_input_tokens),
        cache_write_tokens: add(|usage| usage.cache_write_tokens),
        reasoning_tokens: add(|usage| usage.reasoning_tokens),
    }
}

impl ComparableArguments {
    fn parse(text: &str) -> Self {
        json::parse_json(text, COMPARED_BYTES_MAX)
            .map_or_else(|_| Self::Unparsed(text.to_owned()), Self::Parsed)
    }
}
