//! The regular expressions of a condition, compiled when the policy is read.
//!
//! `matches` accepts only a literal pattern. So a pattern never comes from a model, an invalid one
//! is reported with its place, and the time of a match is linear in the text.

use std::{collections::BTreeMap, sync::Arc};

use cel::{Context, ExecutionError, extractors::This};
use regex::{Error, Regex, RegexBuilder};
use sallyport_contract::text::escape_excerpt;

use super::ConditionError;
use crate::source::quoted;

/// The name of the function with a pattern.
pub(super) const MATCHES: &str = "matches";

/// Size limits of a compiled pattern, in bytes, tried in order. The last one is the maximum: a
/// policy file may contain dozens of patterns, and a call may contain a long text.
const COMPILED_BYTES: [usize; 5] = [16 << 10, 32 << 10, 64 << 10, 128 << 10, 256 << 10];

/// Bytes of a compiled pattern that cost one step for each step's worth of text.
const COMPILED_BYTES_PER_STEP: usize = 512;

/// Most characters of a pattern's error that a message quotes.
const DETAIL_CHARS_MAX: usize = 120;

/// The patterns of one condition, by their texts.
#[derive(Debug)]
pub(super) struct CompiledPatterns(Arc<BTreeMap<String, CompiledPattern>>);

#[derive(Debug)]
struct CompiledPattern {
    regex: Regex,
    /// The upper bound of its size.
    bytes: usize,
}

impl CompiledPatterns {
    pub(super) fn compile(texts: Vec<String>) -> Result<Self, ConditionError> {
        let compiled =
            texts.into_iter().map(|text| Ok((text.clone(), CompiledPattern::compile(&text)?)));
        compiled.collect::<Result<_, _>>().map(|patterns| Self(Arc::new(patterns)))
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The steps of a pattern for each step's worth of text.
    pub(super) fn match_steps(&self, pattern: &str) -> u64 {
        let bytes = self.0.get(pattern).map_or(0, |pattern| pattern.bytes);
        (bytes / COMPILED_BYTES_PER_STEP) as u64
    }

    /// Adds the function `matches` to the context of a condition.
    pub(super) fn add_matches_function(&self, context: &mut Context<'_, '_>) {
        if self.0.is_empty() {
            return;
        }
        let patterns = Arc::clone(&self.0);
        let matches = move |This(text): This<Arc<String>>, pattern: Arc<String>| {
            let pattern = patterns.get(pattern.as_str());
            let pattern = pattern.ok_or_else(|| ExecutionError::undeclared_reference(MATCHES))?;
            Ok::<bool, ExecutionError>(pattern.regex.is_match(&text))
        };
        context.add_function(MATCHES, matches).expect("the environment has no such function");
    }
}

impl CompiledPattern {
    fn compile(text: &str) -> Result<Self, ConditionError> {
        for bytes in COMPILED_BYTES {
            match RegexBuilder::new(text).size_limit(bytes).dfa_size_limit(bytes).build() {
                Ok(regex) => return Ok(Self { regex, bytes }),
                Err(Error::CompiledTooBig(_)) => {}
                Err(error) => return Err(pattern_flaw(text, &error)),
            }
        }
        Err(ConditionError::Flaw {
            flaw: format!("the pattern {} is too large", quoted(text)),
            hint: Some("write [a-z0-9_] instead of \\w, and + instead of a count".to_owned()),
        })
    }
}

fn pattern_flaw(text: &str, error: &Error) -> ConditionError {
    // The error draws the pattern over several lines; its last line states the reason.
    let error_text = error.to_string();
    let reason = error_text.lines().last().unwrap_or_default().trim_start_matches("error: ");
    let reason = escape_excerpt(reason, DETAIL_CHARS_MAX);
    ConditionError::Flaw {
        flaw: format!("{} is not a pattern: {reason}", quoted(text)),
        hint: None,
    }
}
