//! A question with everything that it is about, under one hash.
//!
//! Whoever answers names the hash of what they have seen. A question that differs in one byte has
//! another hash, and a random part makes sure that no two questions have the same.

use std::time::Duration;

use sallyport_contract::{ApprovalAnswer, ApprovalRequest, FormAnswer, GrantAnswer, GrantScope};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::form_values::check_form_values;
use crate::clock::now_ms;

/// Digits of the hash that are the id of a question: few enough to type.
const ID_CHARS: usize = 10;

/// Random bytes in a question.
const NONCE_BYTES: usize = 16;

/// An answer in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AnswerWord {
    /// Allow this one.
    Once,
    /// Allow the same question until the session ends.
    Session,
    /// Allow it, and add what is shown to the policy.
    Always,
    /// Refuse this one.
    No,
}

/// What comes with an answer.
#[derive(Debug, Clone, Copy, Default)]
pub struct AnswerDetails<'a> {
    /// The folder, for a grant that needs one.
    pub folder: Option<&'a str>,
    /// The reason of a no, for the model.
    pub reason: Option<&'a str>,
    /// The values, for the question of a server.
    pub values: Option<&'a Map<String, Value>>,
}

/// A question as it was when it was asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SealedQuestion {
    /// Distinguishes questions that are otherwise the same, in hexadecimal.
    nonce: String,
    /// When it was asked, in milliseconds since 1970.
    pub asked_ms: u64,
    /// When it expires, in milliseconds since 1970.
    pub expires_ms: u64,
    /// What it is about.
    pub request: ApprovalRequest,
}

/// The text of a question, with its hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuestionSeal {
    /// The beginning of the hash.
    pub id: String,
    /// BLAKE3 of the text, in hexadecimal.
    pub hash: String,
    /// The question as JSON.
    pub text: String,
}

/// The text of a question is not the one that was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the stored question is not the one that was asked")]
pub struct BrokenSealError;

impl AnswerWord {
    /// All words.
    pub const ALL: [Self; 4] = [Self::Once, Self::Session, Self::Always, Self::No];

    /// The word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::Session => "session",
            Self::Always => "always",
            Self::No => "no",
        }
    }

    /// Reads a word. `None` if it is none of them.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.as_str() == word)
    }
}

impl SealedQuestion {
    /// Begins a question that expires after `time_max`.
    pub(crate) fn new(request: ApprovalRequest, time_max: Duration) -> Self {
        let asked_ms = now_ms();
        let time_max_ms = u64::try_from(time_max.as_millis()).unwrap_or(u64::MAX);
        let mut nonce = [0; NONCE_BYTES];
        // Without random bytes the time still distinguishes the questions of one program.
        let _ = rustix::rand::getrandom(&mut nonce, rustix::rand::GetRandomFlags::empty());
        let nonce = blake3::hash(&nonce).to_hex()[..2 * NONCE_BYTES].to_owned();
        Self { nonce, asked_ms, expires_ms: asked_ms.saturating_add(time_max_ms), request }
    }

    /// Returns the text and its hash. `None` if the question has no text, which a valid one has.
    pub(crate) fn seal(&self) -> Option<QuestionSeal> {
        let text = serde_json::to_string(self).ok()?;
        let hash = hash_text(&text);
        Some(QuestionSeal { id: hash[..ID_CHARS].to_owned(), hash, text })
    }

    /// Reads a question from its text.
    ///
    /// # Errors
    ///
    /// The text does not have this hash.
    pub fn open(text: &str, hash: &str) -> Result<Self, BrokenSealError> {
        if hash_text(text) != hash {
            return Err(BrokenSealError);
        }
        serde_json::from_str(text).map_err(|_| BrokenSealError)
    }

    /// Returns the answer that a word stands for, or `None` if the question does not offer it.
    pub fn answer_for_word(
        &self,
        word: AnswerWord,
        details: AnswerDetails<'_>,
    ) -> Option<ApprovalAnswer> {
        let AnswerDetails { folder, reason, values } = details;
        let scope = match word {
            AnswerWord::Once => GrantScope::Once,
            AnswerWord::Session => GrantScope::Session,
            AnswerWord::Always => GrantScope::Always,
            AnswerWord::No => {
                return Some(ApprovalAnswer::No { reason: reason.map(str::to_owned) });
            }
        };
        let answer = match (scope, folder, values) {
            (GrantScope::Once, None, Some(values)) => {
                ApprovalAnswer::Form(FormAnswer { values: values.clone() })
            }
            (_, _, Some(_)) => return None,
            (scope, Some(folder), None) => {
                let folder = Some(folder.to_owned());
                ApprovalAnswer::Grant(GrantAnswer { scope, choice: 0, folder })
            }
            (GrantScope::Once, None, None) => ApprovalAnswer::Once,
            (GrantScope::Session, None, None) => ApprovalAnswer::Session,
            (GrantScope::Always, None, None) => ApprovalAnswer::Always,
        };
        self.offers(&answer).then_some(answer)
    }

    /// The words that the question offers.
    pub fn offered_words(&self) -> &'static [&'static str] {
        match (&self.request.rule, self.request.form_question()) {
            (_, Some(_)) => &["once", "no"],
            (Some(_), None) => &["once", "session", "always", "no"],
            (None, None) => &["once", "session", "no"],
        }
    }

    /// Whether the question offers an answer. Nothing else counts, whoever gives it.
    pub(crate) fn offers(&self, answer: &ApprovalAnswer) -> bool {
        let has_rule = self.request.rule.is_some();
        let (needs_input, form) = (self.request.needs_input(), self.request.form_question());
        match answer {
            ApprovalAnswer::Once => !needs_input,
            ApprovalAnswer::Session => !needs_input && form.is_none(),
            ApprovalAnswer::Always => has_rule && !needs_input && form.is_none(),
            ApprovalAnswer::Form(FormAnswer { values }) => {
                form.is_some_and(|form| check_form_values(form, values).is_ok())
            }
            ApprovalAnswer::Grant(GrantAnswer { scope, folder, .. }) => {
                self.request.grant_question().is_some()
                    && (has_rule || *scope != GrantScope::Always)
                    && (folder.is_some() || !self.request.needs_folder())
            }
            ApprovalAnswer::No { .. } => true,
            ApprovalAnswer::Nobody => false,
        }
    }
}

fn hash_text(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().to_string()
}

#[cfg(test)]
pub(crate) mod tests {
    use sallyport_contract::{
        ApprovalSubject, FieldKind, FormField, FormQuestion, RequestedCall, ToolCallContext,
    };
    use serde_json::json;

    use super::*;

    pub(crate) fn request(rule: Option<&str>) -> ApprovalRequest {
        ApprovalRequest {
            call: RequestedCall {
                context: ToolCallContext::default(),
                tool: "mail.send".parse().unwrap(),
                arguments: r#"{"to":"a@x"}"#.to_owned(),
            },
            subject: ApprovalSubject::Call,
            request: None,
            plugin_version: "1.2.0".to_owned(),
            plugin_digest: "0123456789abcdef".to_owned(),
            reason: "no rule for it".to_owned(),
            rule: rule.map(str::to_owned),
            capabilities: Vec::new(),
        }
    }

    #[test]
    fn a_question_with_one_byte_changed_is_another_one() {
        let question = SealedQuestion::new(request(None), Duration::from_secs(60));
        let seal = question.seal().unwrap();
        assert_eq!(SealedQuestion::open(&seal.text, &seal.hash), Ok(question.clone()));
        for index in 0..seal.text.len() {
            let mut bytes = seal.text.clone().into_bytes();
            bytes[index] ^= 1;
            let Ok(changed) = String::from_utf8(bytes) else { continue };
            assert_eq!(SealedQuestion::open(&changed, &seal.hash), Err(BrokenSealError), "{index}");
        }
        let again = SealedQuestion { asked_ms: question.asked_ms, ..question.clone() };
        assert_eq!(again.seal().unwrap().hash, seal.hash);
        let other = SealedQuestion::new(request(None), Duration::from_secs(60));
        assert_ne!(other.seal().unwrap().hash, seal.hash, "the same question asked twice");
    }

    #[test]
    fn only_offered_answers_exist() {
        let rows = [
            (None, "once", Some(ApprovalAnswer::Once)),
            (None, "session", Some(ApprovalAnswer::Session)),
            (None, "always", None),
            (Some("[[rule]]"), "always", Some(ApprovalAnswer::Always)),
            (None, "no", Some(ApprovalAnswer::No { reason: Some("why".to_owned()) })),
            (None, "yes", None),
            (None, "", None),
            (None, "ONCE", None),
        ];
        for (rule, word, want) in rows {
            let question = SealedQuestion::new(request(rule), Duration::from_secs(60));
            let answer = |folder, reason| {
                let known = AnswerWord::from_word(word)?;
                let details = AnswerDetails { folder, reason, values: None };
                question.answer_for_word(known, details)
            };
            assert_eq!(answer(None, Some("why")), want, "{word} {rule:?}");
            let offered = question.offered_words().contains(&word);
            assert_eq!(offered, want.is_some(), "{word} {rule:?}");
            if word != "no" {
                assert_eq!(answer(Some("/tmp"), None), None, "it is not about a grant: {word}");
            }
        }
    }

    #[test]
    fn a_question_of_a_server_is_answered_with_values_that_fit() {
        let kind = FieldKind::Text { min_chars: None, max_chars: Some(3), format: None };
        let field = FormField {
            name: "a".to_owned(),
            title: None,
            description: None,
            required: true,
            default: None,
            kind,
        };
        let no = Some(ApprovalAnswer::No { reason: None });
        let filled = |values: Value| {
            let values = values.as_object().unwrap().clone();
            Some(ApprovalAnswer::Form(FormAnswer { values }))
        };
        let rows = [
            (true, "once", Some(json!({ "a": "xyz" })), filled(json!({ "a": "xyz" }))),
            (true, "once", Some(json!({ "a": "wxyz" })), None),
            (true, "once", Some(json!({ "a": 1 })), None),
            (true, "once", Some(json!({ "a": "x", "b": 1 })), None),
            (true, "once", Some(json!({})), None),
            (true, "once", None, None),
            (true, "session", Some(json!({ "a": "xyz" })), None),
            (true, "session", None, None),
            (true, "no", None, no.clone()),
            (false, "once", None, Some(ApprovalAnswer::Once)),
            (false, "once", Some(json!({})), filled(json!({}))),
            (false, "once", Some(json!({ "a": "x" })), None),
            (false, "session", None, None),
            (false, "no", None, no),
        ];
        for (has_field, word, values, want) in rows {
            let fields = has_field.then(|| field.clone()).into_iter().collect();
            let form = FormQuestion { message: "Which?".to_owned(), page: None, fields };
            let request = ApprovalRequest { subject: ApprovalSubject::Form(form), ..request(None) };
            let question = SealedQuestion::new(request, Duration::from_secs(60));
            let map = values.as_ref().and_then(Value::as_object);
            let details = AnswerDetails { values: map, ..AnswerDetails::default() };
            let known = AnswerWord::from_word(word).unwrap();
            let answer = question.answer_for_word(known, details);
            assert_eq!(answer, want, "{has_field} {word} {values:?}");
        }
    }
}
