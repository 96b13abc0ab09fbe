//! Takes the arguments of a call from a sentence.
//!
//! Parameters are filled one after another, first those whose values are recognizable by their
//! form. A token gives its value to one parameter only. A required parameter without a value is
//! reported, never invented.

use std::ops::Range;

use sallyport_lexical::contains_word;
use sallyport_schedule::TimeExpressionError;
use serde_json::{Map, Number, Value};

use super::{
    language::{self, VerbEffect},
    params::{ParameterKind, ToolParameter},
    sentence::{ParsedSentence, SentenceToken, TokenKind},
    tool::CatalogTool,
};

/// 2^53, up to which every JSON reader keeps whole numbers exact.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// Longest label or place name, in words.
const NAME_TOKENS_MAX: usize = 4;

/// Operators that a sum may contain, as words or signs.
const OPERATORS: &[(&str, &str)] = &[
    ("plus", "+"),
    ("minus", "-"),
    ("times", "*"),
    ("+", "+"),
    ("-", "-"),
    ("*", "*"),
    ("/", "/"),
];

/// The state of filling a tool's parameters from a sentence.
#[derive(Debug)]
pub(super) struct ArgumentExtraction<'c, 's, 't> {
    pub(super) tool: &'c CatalogTool<'c>,
    pub(super) sentence: &'s ParsedSentence<'t>,
    /// The tokens that have been used.
    pub(super) used: Vec<bool>,
    pub(super) is_tail_used: bool,
    /// Whether a value was found by its form: a path or an address.
    pub(super) has_recognized_value: bool,
    /// Whether the code is a sum.
    pub(super) is_sum: bool,
    /// Whether the sentence begins with a verb of the tool.
    pub(super) is_request: bool,
    pub(super) effect: VerbEffect,
    /// Why a time of the sentence cannot be used.
    pub(super) impossible_moment: Option<TimeExpressionError>,
}

impl<'c, 't> ArgumentExtraction<'c, '_, 't> {
    /// Fills the parameters that have no value yet. Returns the required ones for which neither the
    /// sentence nor the schema has a value.
    pub(super) fn extract_arguments(
        &mut self,
        arguments: &mut Map<String, Value>,
    ) -> Vec<ToolParameter<'c>> {
        let mut missing = Vec::new();
        let tool = self.tool;
        for param in &tool.params {
            if arguments.contains_key(param.name) {
                continue;
            }
            let value = self.extract_value(param).filter(|value| is_within_limits(param, value));
            let default = || param.schema.get("default").filter(|_| param.is_required).cloned();
            match value.or_else(default) {
                Some(value) => drop(arguments.insert(param.name.to_owned(), value)),
                None if param.is_required => missing.push(param.clone()),
                None => {}
            }
        }
        missing
    }

    fn extract_value(&mut self, param: &ToolParameter<'_>) -> Option<Value> {
        let text = match &param.kind {
            ParameterKind::Fixed(value) => {
                return Some((*value).clone()).filter(|_| param.is_required);
            }
            ParameterKind::Choice(values) => return self.take_choice(values),
            ParameterKind::Boolean => {
                return self.take_mention(&param.words).then_some(Value::Bool(true));
            }
            ParameterKind::Duration(unit_ms) => return self.take_duration(param, *unit_ms),
            ParameterKind::Number => return self.take_number(param),
            ParameterKind::Url => {
                self.take_recognizable(&[TokenKind::Url, TokenKind::Host]).map(with_url_scheme)
            }
            ParameterKind::Path => self.take_recognizable(&[TokenKind::Path]).map(str::to_owned),
            ParameterKind::Moment => self.take_moment(),
            ParameterKind::Place => self.take_place(),
            ParameterKind::Code => self.take_code(),
            ParameterKind::Content if param.is_required => self.take_content(),
            ParameterKind::Content => self.take_meant_tail(),
            ParameterKind::Label => self.take_label(),
            ParameterKind::Text if param.is_required => self.take_content(),
            ParameterKind::Text | ParameterKind::Other => None,
        };
        text.map(Value::String)
    }

    fn tokens(&self) -> &[SentenceToken<'t>] {
        &self.sentence.tokens
    }

    fn is_unused(&self, at: usize) -> bool {
        self.used.get(at).is_some_and(|used| !used)
    }

    /// Returns true if a token is free, or is the verb, which can also set a mode: "append … to".
    fn is_unused_or_verb(&self, at: usize) -> bool {
        self.is_unused(at) || (self.is_request && at == self.sentence.lead)
    }

    fn is_all_unused(&self, range: &Range<usize>) -> bool {
        range.clone().all(|at| self.is_unused(at))
    }

    fn is_tool_noun(&self, at: usize, effect: VerbEffect) -> bool {
        let token = &self.tokens()[at];
        self.tool.is_noun(&token.lower, &token.root, effect)
    }

    fn take_range(&mut self, range: Range<usize>) -> &'t str {
        self.used[range.clone()].fill(true);
        self.sentence.source_text(&range)
    }

    fn first_unused(&self, kinds: &[TokenKind]) -> Option<usize> {
        (0..self.used.len())
            .find(|&at| self.is_unused(at) && kinds.contains(&self.tokens()[at].kind))
    }

    fn take_recognizable(&mut self, kinds: &[TokenKind]) -> Option<&'t str> {
        let at = self.first_unused(kinds)?;
        self.has_recognized_value = true;
        Some(self.take_range(at..at + 1))
    }

    /// Takes the first value that occurs in the sentence.
    fn take_choice(&mut self, values: &[&Value]) -> Option<Value> {
        let mention = |value: &&&Value| {
            let word = value.as_str()?.to_lowercase();
            let is_it =
                |at: &usize| self.is_unused_or_verb(*at) && self.tokens()[*at].lower == word;
            (0..self.used.len()).find(is_it).filter(|_| word.len() > 2)
        };
        let (at, value) = values.iter().find_map(|value| mention(&value).map(|at| (at, *value)))?;
        self.take_range(at..at + 1);
        Some(value.clone())
    }

    /// Returns true if the sentence contains a word of a name or one of its synonyms.
    fn take_mention(&mut self, name: &[String]) -> bool {
        let is_it = |root: &String| {
            language::is_synonym_of(name, root) && !self.tool.own_words.contains(root)
        };
        let all = 0..self.used.len();
        let found: Vec<usize> = all
            .filter(|&at| self.is_unused_or_verb(at) && is_it(&self.tokens()[at].root))
            .collect();
        // A word that also names the tool stays free for that.
        for &at in &found {
            self.used[at] |= !self.is_tool_noun(at, self.effect);
        }
        !found.is_empty()
    }

    fn take_duration(&mut self, param: &ToolParameter<'_>, unit_ms: u64) -> Option<Value> {
        let mut lengths = self.sentence.lengths.iter();
        let (range, ms) = lengths.find(|(range, _)| self.is_all_unused(range))?;
        let value = convert_number(param, *ms as f64 / unit_ms as f64)?;
        self.take_range(range.clone());
        Some(value)
    }

    /// Takes a time in one part, or in several that form one together: "tomorrow … at 6pm".
    fn take_moment(&mut self) -> Option<String> {
        if let Some((range, error)) = self.sentence.impossible_moments.first() {
            self.impossible_moment = Some(error.clone());
            self.used[range.clone()].fill(true);
            return None;
        }
        let moments = self.sentence.moments.iter();
        let free: Vec<_> = moments.filter(|range| self.is_all_unused(range)).cloned().collect();
        let mention: Vec<String> =
            free.iter().map(|range| self.sentence.corrected_text(range)).collect();
        let mention = mention.join(" ");
        if free.is_empty() || !sallyport_schedule::is_moment(&mention) {
            return None;
        }
        free.into_iter().for_each(|range| self.used[range].fill(true));
        Some(mention)
    }

    /// Takes the first number, if a word before it names the parameter or the parameter is
    /// required.
    fn take_number(&mut self, param: &ToolParameter<'_>) -> Option<Value> {
        let at = self.first_unused(&[TokenKind::Number])?;
        let value = convert_number(param, self.tokens()[at].text.replace(',', "").parse().ok()?)?;
        let is_its = |at: &usize| language::is_synonym_of(&param.words, &self.tokens()[*at].root);
        let name = at.checked_sub(1).filter(is_its);
        if name.is_none() && !param.is_required {
            return None;
        }
        self.used[name.unwrap_or(at)..=at].fill(true);
        Some(value)
    }

    /// Takes the words after a preposition, or capitalized words after the first word.
    fn take_place(&mut self) -> Option<String> {
        let leads = ["in", "for", "at", "near"];
        let tokens = self.tokens();
        let led = (1..tokens.len()).filter(|&at| leads.contains(&tokens[at - 1].lower.as_str()));
        let named = (1..tokens.len()).filter(|&at| is_capitalized(tokens[at].text));
        let place =
            led.chain(named).map(|at| self.name_range(at)).find(|range| !range.is_empty())?;
        Some(self.take_range(place).to_owned())
    }

    fn name_range(&self, at: usize) -> Range<usize> {
        let tokens = self.tokens();
        let capital = |at: usize| tokens.get(at).is_some_and(|token| is_capitalized(token.text));
        let begin = at + usize::from(tokens[at].lower == "the" && capital(at + 1));
        let belongs = |at: usize| {
            let token = &tokens[at];
            let goes_on = at == begin
                || match tokens[at - 1].pause {
                    None => true,
                    Some(',') => capital(at),
                    Some(_) => false,
                };
            let is_inner =
                at > begin && matches!(token.lower.as_str(), "of" | "de") && capital(at + 1);
            goes_on && self.is_name_token(at) || is_inner
        };
        let last = tokens.len().min(begin + NAME_TOKENS_MAX);
        begin..(begin..last).find(|&at| !belongs(at)).unwrap_or(last)
    }

    /// Returns true if a token can be part of a name that the user gives.
    fn is_name_token(&self, at: usize) -> bool {
        let token = &self.tokens()[at];
        let is_time = self.sentence.moments.iter().any(|moment| moment.contains(&at));
        self.is_unused(at)
            && token.kind == TokenKind::Word
            && !is_time
            && !contains_word(language::TIMES, &token.lower)
            && !contains_word(language::FILLERS, &token.lower)
            && !contains_word(language::QUESTION_FILLERS, &token.lower)
            && !contains_word(language::DETERMINERS, &token.lower)
            && !self.is_tool_noun(at, VerbEffect::LooksUp)
    }

    fn is_label_token(&self, at: usize) -> bool {
        self.is_name_token(at) && self.tokens()[at].lower != "new"
    }

    /// Takes code: a quotation, the text after a colon, or a sum, always whole.
    fn take_code(&mut self) -> Option<String> {
        match self.first_unused(&[TokenKind::Quoted]) {
            Some(at) => Some(self.take_range(at..at + 1).to_owned()),
            None => self.take_tail().or_else(|| self.take_sum()),
        }
    }

    fn take_sum(&mut self) -> Option<String> {
        let part = |at: usize| {
            let token = self.tokens().get(at).filter(|_| self.is_unused(at))?;
            let operator = OPERATORS.iter().find(|(word, _)| *word == token.lower);
            match token.kind {
                TokenKind::Number | TokenKind::Sum => Some(token.text.to_owned()),
                _ => operator.map(|(_, sign)| (*sign).to_owned()),
            }
        };
        let begin = (0..self.used.len()).find(|&at| part(at).is_some())?;
        let parts: Vec<String> = (begin..self.used.len()).map_while(part).collect();
        let sum = parts.join(" ");
        let operands = sum.split(|c: char| "+-*/% ^".contains(c)).filter(|part| !part.is_empty());
        let is_ended = sum.ends_with(|c: char| c.is_ascii_digit() || c == ')');
        // Most users do not mean "24/7" and "12-24" as sums.
        let is_plain = parts.len() > 1 || sum.contains(['+', '*', '%', '^']);
        let is_sum = operands.count() > 1 && is_ended && is_plain;
        if !is_sum {
            return None;
        }
        self.take_range(begin..begin + parts.len());
        self.is_sum = true;
        Some(sum.replace('^', "**"))
    }

    fn take_tail(&mut self) -> Option<String> {
        let tail = self.sentence.tail.filter(|_| !self.is_tail_used)?;
        self.is_tail_used = true;
        Some(tail.to_owned())
    }

    fn take_meant_tail(&mut self) -> Option<String> {
        let is_meant = !language::is_retraction(self.sentence.tail?);
        if is_meant { self.take_tail() } else { None }
    }

    /// Takes a quotation, the text after a colon, or one run of unused words.
    fn take_content(&mut self) -> Option<String> {
        if let Some(at) = self.first_unused(&[TokenKind::Quoted]) {
            return Some(self.take_range(at..at + 1).to_owned());
        }
        let verb = self.tokens()[self.sentence.lead].lower.as_str();
        if self.sentence.tail.is_some() || !self.is_request || !self.tool.can_take_text(verb) {
            return self.take_meant_tail();
        }
        let mut runs = self.unused_runs().into_iter().map(|run| (run.start, self.trim_run(run)));
        let (start, run) = runs.find(|(_, run)| !run.is_empty())?;
        if self.tokens()[run.clone()].iter().any(|token| token.kind == TokenKind::Path) {
            return None;
        }
        let leads = |at: &usize| matches!(self.tokens()[*at].lower.as_str(), "about" | "that");
        let lead: Vec<usize> = (start..run.start).filter(leads).collect();
        lead.into_iter().for_each(|at| self.used[at] = true);
        Some(self.take_range(run).to_owned())
    }

    fn unused_runs(&self) -> Vec<Range<usize>> {
        let mut runs: Vec<Range<usize>> = Vec::new();
        for at in (0..self.used.len()).filter(|&at| self.is_unused(at)) {
            match runs.last_mut().filter(|last| last.end == at) {
                Some(last) => last.end = at + 1,
                None => runs.push(at..at + 1),
            }
        }
        runs
    }

    /// Drops words that introduce a text or lead on from it: "to", "a reminder to".
    fn trim_run(&self, mut run: Range<usize>) -> Range<usize> {
        let lower = |at: usize| self.tokens()[at].lower.as_str();
        let is_article = |at: usize| matches!(lower(at), "a" | "an" | "the" | "my");
        let is_noun =
            |at: usize| self.tokens()[at].pause.is_none() && self.is_tool_noun(at, self.effect);
        let leads = |at: usize| {
            matches!(lower(at), "about" | "that")
                || (contains_word(language::FILLERS, lower(at)) && !is_article(at))
        };
        while !run.is_empty() {
            let to_noun = is_article(run.start) && run.len() > 1 && is_noun(run.start + 1);
            if !(leads(run.start) || to_noun || is_noun(run.start)) {
                break;
            }
            run.start += 1;
        }
        let is_last = run.end == self.used.len();
        let ends = |at: usize| match is_last {
            true => matches!(lower(at), "please" | "thanks"),
            false => {
                contains_word(language::FILLERS, lower(at))
                    || (self.tool.has_path_parameter() && is_noun(at))
            }
        };
        while !run.is_empty() && ends(run.end - 1) {
            run.end -= 1;
        }
        run
    }

    /// Takes the words after "called", or directly before the noun that names the tool.
    fn take_label(&mut self) -> Option<String> {
        let tokens = self.tokens();
        let is_call = |at: &usize| matches!(tokens[*at].lower.as_str(), "called" | "named");
        if let Some(call) = (0..tokens.len()).find(is_call) {
            let last = tokens.len().min(call + 1 + NAME_TOKENS_MAX);
            let end = (call + 1..last).find(|&at| !self.is_unused(at)).unwrap_or(last);
            let label = self.take_range(call..end).split_once(char::is_whitespace)?.1;
            return Some(label.trim_matches(['"', '\'']).to_owned());
        }
        let noun = (1..tokens.len()).find(|&at| self.is_tool_noun(at, self.effect))?;
        let begin = (0..noun).rev().take_while(|&at| self.is_label_token(at)).last()?;
        // The first word may be an unknown verb.
        if begin == self.sentence.lead || noun - begin >= NAME_TOKENS_MAX {
            return None;
        }
        Some(self.take_range(begin..noun).to_owned())
    }
}

fn is_capitalized(text: &str) -> bool {
    text.chars().next().is_some_and(char::is_uppercase)
}

fn with_url_scheme(text: &str) -> String {
    if text.contains("://") { text.to_owned() } else { format!("https://{text}") }
}

/// Converts a number to the parameter's type; `None` if it does not fit.
fn convert_number(param: &ToolParameter<'_>, number: f64) -> Option<Value> {
    let types = param.schema.get("type").map(Value::to_string).unwrap_or_default().to_lowercase();
    let is_whole = number.fract() == 0.0 && number.abs() <= EXACT_MAX;
    if is_whole {
        #[expect(clippy::cast_possible_truncation, reason = "whole and within 2^53")]
        let whole = number as i64;
        Some(Value::Number(whole.into()))
    } else if types.contains("int") || types.contains("long") {
        None
    } else {
        Number::from_f64(number).map(Value::Number)
    }
}

/// Returns true if a value is within the limits of its schema.
fn is_within_limits(param: &ToolParameter<'_>, value: &Value) -> bool {
    let limit = |key: &str| param.schema.get(key).and_then(Value::as_f64);
    match value {
        Value::Number(number) => {
            let number = number.as_f64().unwrap_or(f64::NAN);
            limit("minimum").is_none_or(|min| number >= min)
                && limit("maximum").is_none_or(|max| number <= max)
                && limit("exclusiveMinimum").is_none_or(|min| number > min)
                && limit("exclusiveMaximum").is_none_or(|max| number < max)
        }
        Value::String(text) => {
            let length = text.chars().count() as f64;
            limit("minLength").is_none_or(|min| length >= min)
                && limit("maxLength").is_none_or(|max| length <= max)
        }
        _ => true,
    }
}
