//! A span while it is open, and when it has ended.

use std::{
    fmt,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use sallyport_contract::TraceParent;
use tracing::field::{Field, Visit};

use crate::names::{self, ERROR_FIELD, ERROR_TYPE, SpanKind, SpanRule, TRACE_PARENT_FIELD};

/// Longest text of an attribute in bytes. Names of tools, models and hosts are shorter.
const TEXT_BYTES_MAX: usize = 256;

/// A value of an attribute.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum FieldValue {
    Text(String),
    Number(i64),
    Flag(bool),
}

/// Removes secrets from a text. `None` if it cannot tell any more, and the text must not leave.
pub(crate) type RedactText<'a> = &'a dyn Fn(&str) -> Option<String>;

/// A span that has not ended yet.
#[derive(Debug)]
pub(crate) struct RunningSpan {
    /// The place of the span itself.
    pub(crate) place: TraceParent,
    pub(crate) parent: Option<TraceParent>,
    pub(crate) started_at: SystemTime,
    pub(crate) started: Instant,
    pub(crate) fields: SpanFields,
}

/// What was recorded in a span, under our own names.
#[derive(Debug, Default)]
pub(crate) struct SpanFields {
    values: Vec<(&'static str, FieldValue)>,
    /// The caller's place in a trace, if the span has a valid one.
    pub(crate) trace_parent: Option<TraceParent>,
}

/// A span as it is sent.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FinishedSpan {
    /// The name of our span.
    pub(crate) source: &'static str,
    pub(crate) place: TraceParent,
    pub(crate) parent: Option<TraceParent>,
    pub(crate) name: String,
    pub(crate) kind: SpanKind,
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
    pub(crate) attributes: Vec<(&'static str, FieldValue)>,
    pub(crate) has_failed: bool,
}

impl SpanFields {
    fn get(&self, field: &str) -> Option<&FieldValue> {
        self.values.iter().find(|(name, _)| *name == field).map(|(_, value)| value)
    }

    fn set(&mut self, field: &'static str, value: FieldValue) {
        self.values.retain(|(name, _)| *name != field);
        self.values.push((field, value));
    }
}

impl Visit for SpanFields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.record_str(field, &format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            TRACE_PARENT_FIELD => self.trace_parent = value.parse().ok(),
            name => self.set(name, FieldValue::Text(value.to_owned())),
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.set(field.name(), FieldValue::Number(i64::try_from(value).unwrap_or(i64::MAX)));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.set(field.name(), FieldValue::Number(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.set(field.name(), FieldValue::Flag(value));
    }
}

impl RunningSpan {
    /// Ends the span. `None` if the table has no row for it.
    pub(crate) fn finish(self, span: &str, redact: RedactText<'_>) -> Option<FinishedSpan> {
        let rule = names::find_rule(span, |field| self.fields.get(field).is_some())?;
        let start_ns = unix_ns(self.started_at);
        let elapsed = u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        Some(FinishedSpan {
            source: rule.span,
            name: self.fields.span_name(rule, redact),
            kind: rule.kind,
            start_ns,
            end_ns: start_ns.saturating_add(elapsed),
            attributes: self.fields.attributes(rule, redact),
            has_failed: self.fields.get(ERROR_FIELD).is_some(),
            place: self.place,
            parent: self.parent,
        })
    }
}

impl FinishedSpan {
    /// The value of an attribute.
    pub(crate) fn attribute(&self, name: &str) -> Option<&FieldValue> {
        self.attributes.iter().find(|(own, _)| *own == name).map(|(_, value)| value)
    }
}

impl SpanFields {
    fn span_name(&self, rule: &SpanRule, redact: RedactText<'_>) -> String {
        let fields = rule.name_fields.iter().filter_map(|field| self.redacted(field, redact));
        let texts = fields.filter_map(|value| match value {
            FieldValue::Text(text) => Some(text),
            FieldValue::Number(_) | FieldValue::Flag(_) => None,
        });
        let words: Vec<String> =
            rule.operation.map(str::to_owned).into_iter().chain(texts).collect();
        match words.is_empty() {
            true => rule.span.to_owned(),
            false => words.join(" "),
        }
    }

    fn attributes(
        &self,
        rule: &SpanRule,
        redact: RedactText<'_>,
    ) -> Vec<(&'static str, FieldValue)> {
        let constants = rule.constants.iter();
        let constants =
            constants.map(|(name, value)| (*name, FieldValue::Text((*value).to_owned())));
        let error = [(ERROR_FIELD, ERROR_TYPE)];
        let fields = rule.fields.iter().chain(&error);
        let recorded =
            fields.filter_map(|(field, name)| Some((*name, self.redacted(field, redact)?)));
        constants.chain(recorded).collect()
    }

    /// The value of a field as it may leave.
    fn redacted(&self, field: &str, redact: RedactText<'_>) -> Option<FieldValue> {
        match self.get(field)? {
            FieldValue::Text(text) => {
                let word = names::conventional_word(field, text);
                Some(FieldValue::Text(shorten(redact(word)?, TEXT_BYTES_MAX)))
            }
            value => Some(value.clone()),
        }
    }
}

/// Cuts after redaction, because a cut secret is one that no redactor knows.
pub(crate) fn shorten(mut text: String, bytes_max: usize) -> String {
    text.truncate(text.floor_char_boundary(bytes_max));
    text
}

pub(crate) fn unix_ns(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(span: &str, fields: &[(&'static str, FieldValue)], want: (&str, &str)) {
        let fields = SpanFields { values: fields.to_vec(), trace_parent: None };
        let redact = |text: &str| (text != "unknown").then(|| text.replace("s3cret", "[redacted]"));
        let place = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".parse().unwrap();
        let (started_at, started) = (SystemTime::now(), Instant::now());
        let open = RunningSpan { place, parent: None, started_at, started, fields };
        let ended = open.finish(span, &redact).unwrap();
        let attributes = ended.attributes.iter().map(|(name, value)| match value {
            FieldValue::Text(text) => format!("{name}={text}"),
            FieldValue::Number(number) => format!("{name}={number}"),
            FieldValue::Flag(flag) => format!("{name}={flag}"),
        });
        let attributes = attributes.collect::<Vec<_>>().join(" ");
        assert_eq!((&*ended.name, &*attributes), want, "{span}");
        assert_eq!(ended.has_failed, attributes.contains("error.type"), "{span}");
    }

    fn text(value: &str) -> FieldValue {
        FieldValue::Text(value.to_owned())
    }

    #[test]
    fn only_what_the_table_names_leaves_and_only_after_the_redactor() {
        check(
            "http_request",
            &[("method", text("GET")), ("host", text("s3cret.example")), ("path", text("/a"))],
            ("GET", "http.request.method=GET server.address=[redacted].example"),
        );
        check(
            "http_request",
            &[
                ("method", text("GET")),
                ("host", text("unknown")),
                ("port", FieldValue::Number(443)),
            ],
            ("GET", "http.request.method=GET server.port=443"),
        );
        check(
            "decide",
            &[("tool", text("clock.get_time"))],
            ("decide clock.get_time", "gen_ai.tool.name=clock.get_time"),
        );
        check(
            "decide",
            &[
                ("tool", text("a.b")),
                ("outcome", text("denied")),
                ("denied", FieldValue::Flag(true)),
                ("error", text("denied")),
            ],
            (
                "execute_tool a.b",
                "gen_ai.operation.name=execute_tool gen_ai.tool.type=function \
                 gen_ai.tool.name=a.b sallyport.outcome=denied sallyport.denied=true \
                 error.type=denied",
            ),
        );
        check(
            "model_request",
            &[("model", text("m")), ("provider", text("gemini"))],
            (
                "chat m",
                "gen_ai.operation.name=chat gen_ai.request.model=m \
                 gen_ai.provider.name=gcp.gemini",
            ),
        );
        check(
            "mcp_request",
            &[("method", text("tools/list"))],
            ("tools/list", "mcp.method.name=tools/list"),
        );
    }

    #[test]
    fn long_texts_are_cut_at_a_character_after_redaction() {
        let rows = [
            ("x".repeat(300), 256),
            ("é".repeat(300), 256),
            (format!("{}é", "x".repeat(255)), 255),
            ("short".to_owned(), 5),
        ];
        for (long, length) in rows {
            assert_eq!(shorten(long, TEXT_BYTES_MAX).len(), length);
        }
    }
}
