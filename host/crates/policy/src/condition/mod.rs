//! The condition of a rule: `when = "size(args.recipients.to) > 50"`.
//!
//! Conditions are written in CEL, the Common Expression Language. A policy file may be untrusted
//! and the arguments always come from a model, so the cost of a condition is bounded at every
//! stage. Its text is short. Its nesting is checked before it is parsed ([`nesting`]), and its names
//! and types when the file is read ([`type_check`]). The work on the actual arguments is estimated
//! before it is done ([`cost`]).
//!
//! A condition sees three variables: `args`, the call's arguments; `context`, texts about the
//! origin of the call; `grants`, the plugin's grants.

use std::{fmt, sync::Arc};

use cel::{Context, ExecutionError, IdedExpr, Value, parser::Parser};
use sallyport_contract::text::escape_excerpt;

use crate::{
    argument_names::{ArgumentNames, NameMeaningError},
    document::TomlItem,
    source::{HintedError, SourceError, quoted},
};

mod author_names;
mod cost;
mod facts;
mod nesting;
mod patterns;
mod type_check;

use author_names::replace_names;
pub(crate) use facts::ConditionFacts;
use patterns::CompiledPatterns;

/// Longest condition, in bytes: the longest that anyone can still read.
const CONDITION_BYTES_MAX: usize = 2048;

/// Most characters of a parser message that an error quotes.
const DETAIL_CHARS_MAX: usize = 120;

/// A parsed condition. Two are equal if their texts are.
#[derive(Clone)]
pub(crate) struct Condition {
    text: String,
    compiled: Arc<CompiledCondition>,
}

struct CompiledCondition {
    expression: IdedExpr,
    patterns: CompiledPatterns,
}

/// Why a text is not a condition.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConditionError {
    #[error("a condition of {bytes} bytes is longer than {CONDITION_BYTES_MAX}")]
    TooLong { bytes: usize },
    #[error("the condition nests too deeply")]
    TooDeep,
    #[error("the condition holds a text that does not end, or an escape that is not known")]
    Text,
    #[error("the condition is not understood at {line}:{column} of it: {reason}")]
    Syntax { line: isize, column: isize, reason: String },
    #[error(transparent)]
    Name(#[from] NameMeaningError),
    #[error("{flaw}")]
    Flaw { flaw: String, hint: Option<String> },
}

/// Why a condition could not be evaluated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum EvaluationError {
    #[error("it would take too much work")]
    TooMuchWork,
    #[error("there is no {}", quoted(name))]
    Missing { name: String },
    #[error("a value is not of the type that it needs")]
    Type,
    #[error("a number is out of range, or divided by zero")]
    Number,
    #[error("its result is neither true nor false")]
    NotBoolean,
}

impl HintedError for ConditionError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Flaw { hint, .. } => hint.clone(),
            Self::Name(error) => error.hint(),
            Self::TooDeep => Some("write several rules".to_owned()),
            Self::TooLong { .. } | Self::Text | Self::Syntax { .. } => None,
        }
    }
}

impl Condition {
    pub(crate) fn from_toml(item: TomlItem<'_>) -> Result<Self, SourceError> {
        let place = item.place();
        let text = item.read_nonblank_string()?;
        Self::parse(text).map_err(|parse_error| place.into_hinted_error(&parse_error))
    }

    fn parse(written: String) -> Result<Self, ConditionError> {
        Self::parse_rewritten(written, |_| Ok(()))
    }

    /// Parses a condition of an author, who may use the names of parameters.
    pub(crate) fn parse_with_names(
        written: String,
        names: &ArgumentNames,
    ) -> Result<Self, ConditionError> {
        Self::parse_rewritten(written, |expression| replace_names(expression, names, &[]))
    }

    fn parse_rewritten(
        written: String,
        rewrite: impl FnOnce(&mut IdedExpr) -> Result<(), NameMeaningError>,
    ) -> Result<Self, ConditionError> {
        if written.len() > CONDITION_BYTES_MAX {
            return Err(ConditionError::TooLong { bytes: written.len() });
        }
        nesting::check_nesting(&written)?;
        let mut expression = parse_expression(&written)?;
        rewrite(&mut expression)?;
        let patterns = type_check::check_types(&expression)?;
        Ok(Self { text: written, compiled: Arc::new(CompiledCondition { expression, patterns }) })
    }

    /// The length of its text, in bytes.
    pub(crate) fn text_bytes(&self) -> usize {
        self.text.len()
    }

    /// The number of its regular expressions.
    pub(crate) fn pattern_count(&self) -> usize {
        self.compiled.patterns.len()
    }

    /// Whether the condition holds.
    ///
    /// # Errors
    ///
    /// The condition cannot be evaluated with these facts, or would take too many steps.
    pub(crate) fn evaluate(&self, facts: &ConditionFacts<'_>) -> Result<bool, EvaluationError> {
        let CompiledCondition { expression, patterns } = &*self.compiled;
        let variables = facts.variables()?;
        facts.spend_steps(cost::max_evaluation_steps(expression, patterns, variables))?;
        let mut context = Context::with_env(facts::condition_environment());
        context.set_variable_resolver(variables);
        patterns.add_matches_function(&mut context);
        // Not `resolve_val`: it is always inlined, and in a build without optimisation it would
        // make the frames several times larger.
        match Value::resolve(expression, &context) {
            Ok(Value::Bool(boolean)) => Ok(boolean),
            Ok(_) => Err(EvaluationError::NotBoolean),
            Err(error) => Err(evaluation_error(&error)),
        }
    }
}

/// Parses a text whose nesting has been checked.
fn parse_expression(text: &str) -> Result<IdedExpr, ConditionError> {
    let levels = u16::try_from(nesting::LEVELS_MAX).unwrap_or(u16::MAX);
    Parser::new().max_recursion_depth(levels).parse(text).map_err(|errors| {
        // Later errors are often consequences of the first.
        let first = errors.errors.first();
        let (line, column) = first.map_or((1, 1), |error| error.pos);
        let reason = first.map_or_else(String::new, |error| shorten_parser_message(&error.msg));
        ConditionError::Syntax { line, column, reason }
    })
}

/// The parser's message, without its list of expected tokens.
fn shorten_parser_message(message: &str) -> String {
    let reason_text = message.trim_start_matches("Syntax error: ");
    let reason_text =
        reason_text.split_once(" expecting ").map_or(reason_text, |(reason_text, _)| reason_text);
    match reason_text {
        "mismatched input '<EOF>'" => "the condition is incomplete".to_owned(),
        _ => escape_excerpt(reason_text, DETAIL_CHARS_MAX),
    }
}

/// The reason of a failure, without the values in the evaluator's message: these may be megabytes
/// long, and they come from a model.
fn evaluation_error(error: &ExecutionError) -> EvaluationError {
    use ExecutionError::{DivisionByZero, IndexOutOfBounds, NoSuchKey, Overflow, RemainderByZero};
    if let NoSuchKey(name) = error {
        return EvaluationError::Missing { name: name.to_string() };
    }
    if matches!(error, IndexOutOfBounds(_)) {
        return EvaluationError::Missing { name: "entry".to_owned() };
    }
    let is_number = matches!(error, DivisionByZero(_) | RemainderByZero(_) | Overflow(..));
    if is_number { EvaluationError::Number } else { EvaluationError::Type }
}

impl PartialEq for Condition {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Condition {}

impl fmt::Debug for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Condition").field(&self.text).finish()
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
