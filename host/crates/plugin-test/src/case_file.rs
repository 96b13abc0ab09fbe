//! Reads `cases.json`, and writes actual results into it.

use std::{collections::BTreeMap, io, path::Path};

use jiff::Timestamp;
use sallyport_policy::SourceError;
use sallyport_untrusted_file as untrusted_file;
use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::{Map, Value, value::RawValue};

use crate::{
    effect_match::ExpectedEffect,
    expectation::Expectation,
    json_values::{present, spaced},
};

/// Size limit of a file of cases in bytes.
const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// The cases of a plugin, with the text that they were read from.
#[derive(Debug)]
pub struct CaseFile {
    text: String,
    /// The cases, in order.
    pub cases: Vec<PluginCase>,
}

/// A call, the world around it, and its expected end.
#[derive(Debug)]
pub struct PluginCase {
    /// What it shows.
    pub name: String,
    /// The tool, without the plugin's name.
    pub tool: String,
    pub(crate) arguments: Value,
    pub(crate) world: CaseWorld,
    pub(crate) expect: Expectation,
    pub(crate) effects: Vec<ExpectedEffect>,
    pub(crate) files_after: BTreeMap<String, Option<String>>,
    /// Where the text of `expect` begins and ends in the file, in bytes.
    expect_span: (usize, usize),
}

/// Everything that a call can see or use.
#[derive(Debug, Default)]
pub(crate) struct CaseWorld {
    pub(crate) before: Vec<EarlierCall>,
    pub(crate) grant: Map<String, Value>,
    pub(crate) settings: Map<String, Value>,
    pub(crate) environment: BTreeMap<String, String>,
    pub(crate) secrets: BTreeMap<String, String>,
    pub(crate) files: BTreeMap<String, String>,
    pub(crate) now: Option<Timestamp>,
    pub(crate) http: Vec<ScriptedAnswer>,
}

/// A call that comes first, in the same session, and has to succeed.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EarlierCall {
    pub(crate) tool: String,
    #[serde(default = "empty_object")]
    pub(crate) arguments: Value,
}

/// The answer to one request.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ScriptedAnswer {
    pub(crate) request: RequestLine,
    /// Headers that the request must have.
    #[serde(default)]
    pub(crate) sent_headers: BTreeMap<String, String>,
    /// The body that the request must have.
    #[serde(default, deserialize_with = "present")]
    pub(crate) sent_json: Option<Value>,
    pub(crate) sent_body: Option<String>,
    #[serde(default = "ok_status")]
    pub(crate) status: u16,
    #[serde(default)]
    pub(crate) headers: BTreeMap<String, String>,
    #[serde(default, deserialize_with = "present")]
    pub(crate) json: Option<Value>,
    pub(crate) body: Option<String>,
    /// Closes the connection without an answer.
    #[serde(default)]
    pub(crate) fails: bool,
}

/// A method and a URL: `GET https://api.example.com/x?y=1`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct RequestLine(String);

impl RequestLine {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn new(method: &str, url: &str) -> Self {
        Self(format!("{method} {url}"))
    }
}

impl TryFrom<String> for RequestLine {
    type Error = String;

    /// Brings the URL into the form that requests have, such as with a slash after the host.
    fn try_from(text: String) -> Result<Self, String> {
        let form = "write a request as METHOD URL, such as GET https://example.com/";
        let (method, url) = text.split_once(' ').ok_or(form)?;
        let is_method = !method.is_empty() && method.bytes().all(|byte| byte.is_ascii_uppercase());
        let url = url::Url::parse(url).map_err(|error| format!("{url:?}: {error}; {form}"))?;
        let is_web = matches!(url.scheme(), "http" | "https");
        if is_method && is_web { Ok(Self::new(method, url.as_str())) } else { Err(form.to_owned()) }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileText<'a> {
    #[serde(borrow)]
    cases: Vec<CaseText<'a>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CaseText<'a> {
    name: String,
    tool: String,
    #[serde(default = "empty_object")]
    arguments: Value,
    #[serde(default)]
    before: Vec<EarlierCall>,
    #[serde(default)]
    grant: Map<String, Value>,
    #[serde(default)]
    settings: Map<String, Value>,
    #[serde(default)]
    environment: BTreeMap<String, String>,
    #[serde(default)]
    secrets: BTreeMap<String, String>,
    #[serde(default)]
    files: BTreeMap<String, String>,
    #[serde(default, deserialize_with = "timestamp")]
    now: Option<Timestamp>,
    #[serde(default)]
    http: Vec<ScriptedAnswer>,
    #[serde(borrow)]
    expect: &'a RawValue,
    #[serde(default)]
    effects: Vec<ExpectedEffect>,
    #[serde(default)]
    files_after: BTreeMap<String, Option<String>>,
}

fn empty_object() -> Value {
    Value::Object(Map::new())
}

fn ok_status() -> u16 {
    200
}

/// Reads a time such as `2026-01-31T12:00:00Z`.
fn timestamp<'de, D: Deserializer<'de>>(reader: D) -> Result<Option<Timestamp>, D::Error> {
    String::deserialize(reader)?.parse().map(Some).map_err(D::Error::custom)
}

impl CaseFile {
    /// Reads a file of cases.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or has a mistake. A mistake comes with its place.
    pub fn read(path: &Path) -> io::Result<Result<Self, SourceError>> {
        let text = untrusted_file::read_text(path, FILE_BYTES_MAX)?;
        Ok(Self::parse(&path.display().to_string(), text))
    }

    /// Parses cases. `file` names them in errors.
    ///
    /// # Errors
    ///
    /// Anything that is not understood completely.
    pub fn parse(file: &str, text: String) -> Result<Self, SourceError> {
        let read: FileText<'_> =
            serde_json::from_str(&text).map_err(|error| source_error(file, (1, 0), &error))?;
        let cases = read.cases.into_iter().map(|case| read_case(file, &text, case));
        let cases = cases.collect::<Result<Vec<_>, _>>()?;
        if cases.is_empty() {
            let error = mistake(file, 1, 1, "there is no case in this file");
            return Err(error.with_hint("add one to \"cases\""));
        }
        Ok(Self { text, cases })
    }

    /// Returns the text of the file with other values for `expect`. Everything else stays as it is.
    pub fn with_actual_results<'v>(
        &self,
        results: impl IntoIterator<Item = (&'v PluginCase, Value)>,
    ) -> String {
        let mut text = self.text.clone();
        let mut results: Vec<_> = results.into_iter().collect();
        // From the last to the first, so that the places before stay right.
        results.sort_by_key(|(case, _)| std::cmp::Reverse(case.expect_span));
        for (case, value) in results {
            let (start, end) = case.expect_span;
            text.replace_range(start..end, &indented(&value, line_indent(&self.text, start)));
        }
        text
    }
}

/// Converts a case, and reads its expectation, whose place in the file is kept.
fn read_case(file: &str, text: &str, case: CaseText<'_>) -> Result<PluginCase, SourceError> {
    let expect_text = case.expect.get();
    let start = expect_text.as_ptr() as usize - text.as_ptr() as usize;
    let before = place(text, start);
    let expect =
        Expectation::parse(expect_text).map_err(|error| source_error(file, before, &error))?;
    if !case.arguments.is_object() && !case.arguments.is_string() {
        let (line, column) = before;
        let message = format!("the arguments of \"{}\" are not an object", case.name);
        return Err(mistake(file, line, column, &message));
    }
    let world = CaseWorld {
        before: case.before,
        grant: case.grant,
        settings: case.settings,
        environment: case.environment,
        secrets: case.secrets,
        files: case.files,
        now: case.now,
        http: case.http,
    };
    Ok(PluginCase {
        name: case.name,
        tool: case.tool,
        arguments: case.arguments,
        world,
        expect,
        effects: case.effects,
        files_after: case.files_after,
        expect_span: (start, start + expect_text.len()),
    })
}

/// The line of a byte, from 1, and the number of bytes before it on that line.
fn place(text: &str, byte: usize) -> (usize, usize) {
    let before = &text[..byte];
    let line_start = before.rfind('\n').map_or(0, |end| end + 1);
    (before.matches('\n').count() + 1, byte - line_start)
}

/// An error of the reader, whose own place counts from `start`.
fn source_error(file: &str, start: (usize, usize), error: &serde_json::Error) -> SourceError {
    let (line, column) = (error.line(), error.column());
    let message = error.to_string();
    let suffix = format!(" at line {line} column {column}");
    let message = message.strip_suffix(&suffix).unwrap_or(&message);
    let column = if line <= 1 { start.1 + column } else { column };
    mistake(file, start.0 + line.saturating_sub(1), column.max(1), message)
}

fn mistake(file: &str, line: usize, column: usize, message: &str) -> SourceError {
    SourceError { file: file.to_owned(), line, column, message: message.to_owned(), hint: None }
}

/// The white space at the beginning of a byte's line.
fn line_indent(text: &str, byte: usize) -> &str {
    let line = text[..byte].rfind('\n').map_or(text, |end| &text[end + 1..]);
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

/// A value as JSON whose lines after the first are indented. A short one is on one line.
fn indented(value: &Value, indent: &str) -> String {
    let short = spaced(value);
    if short.len() + indent.len() <= 90 && !short.contains('\n') {
        return short;
    }
    let long = serde_json::to_string_pretty(value).unwrap_or_default();
    long.replace('\n', &format!("\n{indent}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const TWO: &str = r#"{
  "cases": [
    {
      "name": "one", "tool": "a",
      "expect": {"data":1}
    },
    { "name": "two",   "tool": "b", "expect": { "text": "x" }, "effects": [] }
  ]
}
"#;

    #[test]
    fn only_the_expectation_is_rewritten() {
        let file = CaseFile::parse("cases.json", TWO.to_owned()).unwrap();
        let [one, two] = file.cases.as_slice() else { panic!("two cases") };
        assert_eq!(file.with_actual_results([]), TWO);
        let second = file.with_actual_results([(two, json!({ "data": null }))]);
        assert_eq!(second, TWO.replace(r#"{ "text": "x" }"#, r#"{ "data": null }"#));
        let long = "y".repeat(100);
        let both =
            file.with_actual_results([(one, json!({ "text": long })), (two, json!({ "data": 2 }))]);
        let pretty = format!("{{\n        \"text\": \"{long}\"\n      }}");
        let want = TWO.replace(r#"{"data":1}"#, &pretty);
        assert_eq!(both, want.replace(r#"{ "text": "x" }"#, r#"{ "data": 2 }"#));
        CaseFile::parse("cases.json", both).unwrap();
    }

    #[test]
    fn a_mistake_is_reported_with_its_place() {
        let case = |inside: &str| format!("{{\"cases\": [\n  {{\"name\": \"a\", {inside}}}\n]}}");
        let expect = |inside: &str| case(&format!("\"tool\": \"t\", \"expect\": {inside}"));
        let http = |request: &str| {
            case(&format!(
                "\"tool\": \"t\", \"expect\": {{\"data\": 1}}, \"http\": [{{\"request\": \"{request}\"}}]"
            ))
        };
        let rows = [
            (String::new(), (1, 1), "EOF"),
            ("{\"cases\": []}".to_owned(), (1, 1), "there is no case"),
            ("{\"case\": []}".to_owned(), (1, 7), "unknown field `case`, expected `cases`"),
            (case("\"tool\": \"t\""), (2, 28), "missing field `expect`"),
            (
                case("\"tol\": \"t\""),
                (2, 21),
                "unknown field `tol`, expected one of `name`, `tool`",
            ),
            (expect("{}"), (2, 39), "expects nothing"),
            (expect("{\"dat\": 1}"), (2, 45), "unknown field `dat`"),
            (expect("{\"error\": {\"kind\": \"bad\"}}"), (2, 64), "unknown variant `bad`"),
            (expect("{\"data\": 1, \"denied\": \"net\"}"), (2, 39), "either"),
            (expect("{\"denied\": \"nett\"}"), (2, 56), "unknown variant `nett`"),
            (expect("{\n\n \"x\": 1}"), (4, 4), "unknown field `x`"),
            (http("https://a.example"), (2, 93), "METHOD URL"),
            (http("GET ftp://a.example"), (2, 95), "METHOD URL"),
            (case("\"tool\": \"t\", \"now\": \"yesterday\""), (2, 48), ""),
        ];
        let wrong: Vec<String> = rows
            .into_iter()
            .filter_map(|(text, place, message)| {
                let error = CaseFile::parse("cases.json", text.clone()).unwrap_err();
                let is_right =
                    (error.line, error.column) == place && error.message.contains(message);
                (!is_right).then(|| format!("{text}: {error}, not {place:?} {message}"))
            })
            .collect();
        assert_eq!(wrong, [""; 0]);
    }
}
