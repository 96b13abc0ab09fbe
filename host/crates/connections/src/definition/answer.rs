//! The answer of a service: where its result, its error and its next page are.

use sallyport_policy::SourceError;
use serde_json::{Value, json};
use url::Url;

use super::{
    failure::FailureFacts,
    file::{PagesSection, RequestSection},
    request::{ServiceRequest, TemplateReader},
};

/// Most pages of one call. A model reads no more than that.
const PAGES_MAX: u32 = 20;

/// The pages of one call, unless the definition sets another number.
const PAGES_DEFAULT: u32 = 3;

/// Most characters of a service's own message.
const MESSAGE_CHARS_MAX: usize = 500;

/// Longest text that names the next page. Services encode whole queries in it.
const PAGE_TEXT_BYTES_MAX: usize = 16 << 10;

/// Where services usually say what went wrong, and its code.
const USUAL_MESSAGES: [&str; 5] =
    ["error.message", "error_description", "message", "errors.0.message", "error"];
const USUAL_CODES: [&str; 5] = ["error.status", "error.code", "errors.0.code", "code", "error"];

/// What an answer means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerTemplate {
    result: Option<String>,
    error: Option<String>,
    error_code: Option<String>,
    pages: Option<Pages>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Pages {
    next: NextPage,
    max: u32,
}

/// Where the next page is.
#[derive(Debug, Clone, PartialEq, Eq)]
enum NextPage {
    /// In the header `Link`.
    Link,
    /// It has the next number, in this value of the query.
    Number(String),
    /// A token at a place of the answer, for this value of the query.
    Token(String, String),
    /// An address at a place of the answer.
    Address(String),
}

/// An answer as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceAnswer {
    /// Its status.
    pub status: u16,
    /// The media type, without its parameters.
    pub media_type: String,
    /// The header `Link`.
    pub link: Option<String>,
    /// The seconds of the header `Retry-After`, or its date, as written.
    pub retry_after: Option<String>,
    /// Whether a header reports that no request is left (`X-RateLimit-Remaining: 0`).
    pub is_quota_used: bool,
    /// The body.
    pub body: Vec<u8>,
}

/// An answer that is no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerFailure {
    /// The message for the model.
    pub message: String,
    /// What a definition's own messages can be about.
    pub facts: FailureFacts,
}

/// The pages of a call so far.
#[derive(Debug, Clone, PartialEq)]
pub struct PageState {
    items: Vec<Value>,
    pages: u32,
    first_count: usize,
}

impl AnswerTemplate {
    pub(super) fn read(
        section: &RequestSection,
        reader: &TemplateReader<'_>,
    ) -> Result<Self, SourceError> {
        let pages = section.pages.as_ref().map(|pages| Pages::read(pages, reader)).transpose()?;
        Ok(Self {
            result: section.result.clone(),
            error: section.error.clone(),
            error_code: section.error_code.clone(),
            pages,
        })
    }

    /// Whether the answer has pages.
    pub fn has_pages(&self) -> bool {
        self.pages.is_some()
    }

    /// The result in an answer.
    ///
    /// # Errors
    ///
    /// The service reports an error, or the answer is not what it should be.
    pub fn read_result(&self, answer: &ServiceAnswer) -> Result<Value, AnswerFailure> {
        let is_success = (200..300).contains(&answer.status);
        let body =
            match (is_success && answer.body.is_empty(), serde_json::from_slice(&answer.body)) {
                (true, _) => Value::Null,
                (false, Ok(body)) => body,
                (false, Err(_)) => return Err(answer.unreadable()),
            };
        // Some services report an error with the status of a success.
        let own_error = self.error.as_deref().and_then(|path| at_path(&body, path));
        if !is_success || own_error.is_some_and(|error| !error.is_null()) {
            return Err(self.failure(answer, &body));
        }
        match &self.result {
            None => Ok(body),
            Some(path) => at_path(&body, path).cloned().ok_or_else(|| {
                answer.failed(format!("the answer of the service has no \"{path}\""), None)
            }),
        }
    }

    fn failure(&self, answer: &ServiceAnswer, body: &Value) -> AnswerFailure {
        let text = |own: &Option<String>, usual: &[&str]| {
            let paths = own.iter().map(String::as_str).chain(usual.iter().copied());
            let mut texts = paths.filter_map(|path| short_text(at_path(body, path)?));
            texts.next()
        };
        let message =
            text(&self.error, &USUAL_MESSAGES).unwrap_or_else(|| "without a message".to_owned());
        answer.failed(
            format!("the service answered {}: {message}", answer.status),
            text(&self.error_code, &USUAL_CODES),
        )
    }

    /// Adds a page, and returns the request for the next one if there is one.
    ///
    /// # Errors
    ///
    /// The page is no list, or the next one would be at another server.
    pub fn add_page(
        &self,
        state: &mut PageState,
        request: &ServiceRequest,
        answer: &ServiceAnswer,
    ) -> Result<Option<ServiceRequest>, AnswerFailure> {
        let Value::Array(items) = self.read_result(answer)? else {
            return Err(answer.failed("a page of the answer is not a list".to_owned(), None));
        };
        let Some(pages) = &self.pages else { return Ok(None) };
        let count = items.len();
        state.items.extend(items);
        state.pages += 1;
        if state.pages == 1 {
            state.first_count = count;
        }
        let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        let next = match count {
            0 => None,
            _ => pages.next.url(state, request, answer, &body),
        };
        let Some(url) = next else { return Ok(None) };
        if url.origin() != request.url.origin() {
            let message = "the next page is at another server, which is not asked";
            return Err(answer.failed(message.to_owned(), None));
        }
        Ok(Some(ServiceRequest { url, ..request.clone() }))
    }

    /// Whether another page may be fetched.
    pub fn may_continue(&self, state: &PageState) -> bool {
        self.pages.as_ref().is_some_and(|pages| state.pages < pages.max)
    }
}

impl Pages {
    fn read(section: &PagesSection, reader: &TemplateReader<'_>) -> Result<Self, SourceError> {
        let max = section.max.unwrap_or(PAGES_DEFAULT);
        if !(1..=PAGES_MAX).contains(&max) {
            let message = format!("a call fetches 1 to {PAGES_MAX} pages");
            return Err(reader.error(&["pages", "max"], &message));
        }
        let next = match (section.next.as_str(), section.query.clone()) {
            ("link", _) => NextPage::Link,
            ("number", Some(query)) => NextPage::Number(query),
            ("number", None) => {
                let error = reader.error(&["pages"], "\"number\" needs \"query\"");
                return Err(error.with_hint("name the value of the query that has the number"));
            }
            (path, Some(query)) => NextPage::Token(path.to_owned(), query),
            (path, None) => NextPage::Address(path.to_owned()),
        };
        Ok(Self { next, max })
    }
}

impl NextPage {
    fn url(
        &self,
        state: &PageState,
        request: &ServiceRequest,
        answer: &ServiceAnswer,
        body: &Value,
    ) -> Option<Url> {
        let text = |path: &str| page_text(at_path(body, path)?);
        match self {
            Self::Link => request.url.join(&next_link(answer.link.as_deref()?)?).ok(),
            Self::Number(query) => {
                let is_full = state.items.len() >= state.first_count * state.pages as usize;
                let number = (state.pages + 1).to_string();
                is_full.then(|| with_query_value(&request.url, query, &number))
            }
            Self::Token(path, query) => Some(with_query_value(&request.url, query, &text(path)?)),
            Self::Address(path) => request.url.join(&text(path)?).ok(),
        }
    }
}

impl PageState {
    /// No page yet.
    pub fn new() -> Self {
        Self { items: Vec::new(), pages: 0, first_count: 0 }
    }

    /// The result of all pages.
    pub fn into_result(self, has_more: bool) -> Value {
        json!({ "items": self.items, "has_more": has_more })
    }
}

impl Default for PageState {
    fn default() -> Self {
        Self::new()
    }
}

impl ServiceAnswer {
    fn failed(&self, message: String, code: Option<String>) -> AnswerFailure {
        let is_waited_for = matches!(self.status, 403 | 429 | 503);
        let message = match self.retry_after.as_deref().filter(|_| is_waited_for) {
            Some(wait) if wait.parse::<u64>().is_ok() => {
                format!("{message} (try again after {wait} seconds)")
            }
            Some(date) => format!("{message} (try again after {date})"),
            None => message,
        };
        let facts = FailureFacts::from_answer(self.status, code);
        // Some services answer 403 instead of 429.
        let is_limited = self.status == 403 && (self.retry_after.is_some() || self.is_quota_used);
        let facts = if is_limited { facts.with_rate_limit() } else { facts };
        AnswerFailure { message, facts }
    }

    /// The failure of an answer that is not JSON.
    fn unreadable(&self) -> AnswerFailure {
        let what = match (self.body.is_empty(), self.media_type.as_str()) {
            (true, _) => "nothing".to_owned(),
            (false, "text/html") => "an HTML page".to_owned(),
            (false, _) => "something other than JSON".to_owned(),
        };
        self.failed(format!("the service answered {} with {what}", self.status), None)
    }
}

/// The value at a dotted path; numbers are places in a list.
fn at_path<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    path.split('.').try_fold(value, |value, key| match value {
        Value::Array(items) => items.get(key.parse::<usize>().ok()?),
        _ => value.get(key),
    })
}

/// A text, a number or a truth, shortened.
fn short_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.chars().take(MESSAGE_CHARS_MAX).collect()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// What names the next page: a text or a number. A longer one than any service has is none.
fn page_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if (1..=PAGE_TEXT_BYTES_MAX).contains(&text.len()) => {
            Some(text.clone())
        }
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// The address with the relation "next" in the header `Link`. An address may have commas.
fn next_link(header: &str) -> Option<String> {
    header.split('<').find_map(|link| {
        let (address, parameters) = link.split_once('>')?;
        let is_next = parameters.split([';', ',']).any(is_next_relation);
        is_next.then(|| address.to_owned())
    })
}

/// Whether a parameter of a link is `rel` with the word `next`.
fn is_next_relation(parameter: &str) -> bool {
    let Some((name, value)) = parameter.split_once('=') else { return false };
    let mut relations = value.trim().trim_matches('"').split_whitespace();
    name.trim().eq_ignore_ascii_case("rel")
        && relations.any(|relation| relation.eq_ignore_ascii_case("next"))
}

/// The address with another value of its query.
fn with_query_value(url: &Url, name: &str, value: &str) -> Url {
    let kept: Vec<(String, String)> =
        url.query_pairs().into_owned().filter(|(own, _)| own != name).collect();
    let mut url = url.clone();
    url.query_pairs_mut().clear().extend_pairs(kept).append_pair(name, value);
    url
}
