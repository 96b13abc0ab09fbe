//! The regular expressions of a condition, compiled when the policy is read.
//!
//! `matches` takes its pattern as a literal text only. So a pattern is never a model's, a mistake
//! in one has a place, and matching costs time in proportion to the text.

use std::{collections::BTreeMap, sync::Arc};

use cel::{Context, ExecutionError, extractors::This};
use regex::{Error, Regex, RegexBuilder};
use sallyport_contract::text::excerpt;

use super::ConditionError;
use crate::source::quoted;

/// The function that takes a pattern.
pub(super) const MATCHES: &str = "matches";

/// What a compiled pattern may take, in bytes, by steps. The last is the most: a policy file can
/// hold dozens of patterns, and a call can be about a long text.
const COMPILED_BYTES: [usize; 5] = [16 << 10, 32 << 10, 64 << 10, 128 << 10, 256 << 10];

/// How many bytes of a compiled pattern cost one step for each step's worth of text.
const COMPILED_BYTES_PER_STEP: usize = 512;

/// Most characters that an error repeats of what is wrong with a pattern.
const DETAIL_CHARS_MAX: usize = 120;

/// The patterns of one condition by their texts.
#[derive(Debug)]
pub(super) struct Patterns(Arc<BTreeMap<String, Pattern>>);

#[derive(Debug)]
struct Pattern {
    regex: Regex,
    /// The most bytes that it takes.
    bytes: usize,
}

impl Patterns {
    pub(super) fn compile(texts: Vec<String>) -> Result<Self, ConditionError> {
        let compiled = texts.into_iter().map(|text| Ok((text.clone(), Pattern::compile(&text)?)));
        compiled.collect::<Result<_, _>>().map(|patterns| Self(Arc::new(patterns)))
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The steps that a pattern takes for each step's worth of text.
    pub(super) fn steps(&self, pattern: &str) -> u64 {
        let bytes = self.0.get(pattern).map_or(0, |pattern| pattern.bytes);
        (bytes / COMPILED_BYTES_PER_STEP) as u64
    }

    /// Lets a condition call `matches`.
    pub(super) fn add_to(&self, context: &mut Context<'_, '_>) {
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

impl Pattern {
    fn compile(text: &str) -> Result<Self, ConditionError> {
        for bytes in COMPILED_BYTES {
            match RegexBuilder::new(text).size_limit(bytes).dfa_size_limit(bytes).build() {
                Ok(regex) => return Ok(Self { regex, bytes }),
                Err(Error::CompiledTooBig(_)) => {}
                Err(error) => return Err(flaw(text, &error)),
            }
        }
        Err(ConditionError::Flaw {
            flaw: format!("the pattern {} is too large", quoted(text)),
            hint: Some("write [a-z0-9_] in place of \\w, and + in place of a count".to_owned()),
        })
    }
}

fn flaw(text: &str, error: &Error) -> ConditionError {
    // It draws the pattern over several lines; the last one says what is wrong.
    let drawn = error.to_string();
    let reason = drawn.lines().last().unwrap_or_default().trim_start_matches("error: ");
    let reason = excerpt(reason, DETAIL_CHARS_MAX);
    ConditionError::Flaw {
        flaw: format!("{} is not a pattern: {reason}", quoted(text)),
        hint: None,
    }
}
