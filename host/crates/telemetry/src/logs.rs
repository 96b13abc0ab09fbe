//! Log records: what an operator watches for, made of finished spans and of notices of the program.
//!
//! The table [`names::LOGS`](crate::names::LOGS) says which spans make one, and which of their
//! attributes it has. A record has no content; the text of a notice is sent only if the operator
//! wants it.

use sallyport_contract::TraceParent;

use crate::{
    names::{LOGS, LogRule, LogSeverity, NOTICE_EVENT, NOTICE_KIND},
    span::{FieldValue, FinishedSpan, RedactText, shorten},
};

/// Longest text of a notice in bytes.
const NOTICE_BYTES_MAX: usize = 2048;

/// A log record as it is sent.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LogRecord {
    /// When it happened, in nanoseconds since 1970.
    pub(crate) time_ns: u64,
    pub(crate) severity: LogSeverity,
    /// What happened, in one word.
    pub(crate) event: &'static str,
    /// The text, if there is one.
    pub(crate) body: Option<String>,
    /// The span that it belongs to.
    pub(crate) place: Option<TraceParent>,
    pub(crate) attributes: Vec<(&'static str, FieldValue)>,
}

/// A notice of the program about itself.
#[derive(Debug, Clone, Copy)]
pub struct NoticeLog<'a> {
    /// What it is about, in one word of the program's own.
    pub kind: &'static str,
    /// How important it is.
    pub severity: LogSeverity,
    /// The text for the operator.
    pub text: Option<&'a str>,
}

impl LogRecord {
    /// The record of a span that has ended, if the table has one.
    pub(crate) fn of_span(span: &FinishedSpan) -> Option<Self> {
        let rule = LOGS.iter().find(|rule| applies(rule, span))?;
        let attributes = span.attributes.iter().filter(|(name, _)| rule.attributes.contains(name));
        Some(Self {
            time_ns: span.end_ns,
            severity: if span.has_failed { rule.severity_of_failure } else { LogSeverity::Info },
            event: rule.event,
            body: None,
            place: Some(span.place),
            attributes: attributes.cloned().collect(),
        })
    }

    /// The record of a notice at a time in nanoseconds since 1970. `redact` is absent if its text is
    /// not to be sent.
    pub(crate) fn of_notice(
        notice: NoticeLog<'_>,
        time_ns: u64,
        place: Option<TraceParent>,
        redact: Option<RedactText<'_>>,
    ) -> Self {
        let body = redact.and_then(|redact| redact(notice.text?));
        Self {
            time_ns,
            severity: notice.severity,
            event: NOTICE_EVENT,
            body: body.map(|text| shorten(text, NOTICE_BYTES_MAX)),
            place,
            attributes: vec![(NOTICE_KIND, FieldValue::Text(notice.kind.to_owned()))],
        }
    }
}

fn applies(rule: &LogRule, span: &FinishedSpan) -> bool {
    let has = |name| span.attribute(name).is_some();
    rule.spans.contains(&span.source)
        && rule.only_with.is_none_or(has)
        && (span.has_failed || !rule.only_failures)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::{ERROR_TYPE, SpanKind};

    const PLACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn span(source: &'static str, words: &[&'static str], has_failed: bool) -> FinishedSpan {
        let text = |name: &&'static str| (*name, FieldValue::Text("x".to_owned()));
        FinishedSpan {
            source,
            place: PLACE.parse().unwrap(),
            parent: None,
            name: source.to_owned(),
            kind: SpanKind::Internal,
            start_ns: 1,
            end_ns: 2,
            attributes: words.iter().map(text).collect(),
            has_failed,
        }
    }

    #[test]
    fn the_table_says_which_spans_are_logged_and_what_of_them() {
        let outcome = "sallyport.outcome";
        let rows: [(_, &[&str], _, _); 7] = [
            ("call", &["gen_ai.tool.name", outcome], false, "sallyport.call info 2"),
            ("decide", &["gen_ai.tool.name", outcome, ERROR_TYPE], true, "sallyport.call warn 3"),
            ("decide", &["gen_ai.tool.name"], false, ""),
            ("turn", &["gen_ai.conversation.id"], false, "sallyport.turn info 1"),
            ("model_request", &["gen_ai.usage.input_tokens"], false, ""),
            ("service_request", &[ERROR_TYPE, "url.scheme"], true, "sallyport.request error 1"),
            ("http_request", &["server.address", ERROR_TYPE], true, ""),
        ];
        for (source, attributes, has_failed, want) in rows {
            let record = LogRecord::of_span(&span(source, attributes, has_failed));
            let found = record.map(|record| {
                let count = record.attributes.len();
                format!("{} {} {count}", record.event, record.severity.as_str().to_lowercase())
            });
            assert_eq!(found.unwrap_or_default(), want, "{source} {attributes:?}");
        }
    }

    #[test]
    fn the_text_of_a_notice_is_sent_only_if_it_is_wanted_and_after_the_redactor() {
        let long = "é".repeat(NOTICE_BYTES_MAX);
        let redact = |text: &str| (text != "unknown").then(|| text.replace("s3cret", "[redacted]"));
        let rows: [(Option<&str>, bool, Option<usize>); 5] = [
            (Some("a s3cret"), true, Some("a [redacted]".len())),
            (Some("a s3cret"), false, None),
            (Some("unknown"), true, None),
            (Some(&long), true, Some(NOTICE_BYTES_MAX)),
            (None, true, None),
        ];
        for (text, is_wanted, want) in rows {
            let notice = NoticeLog { kind: "warning", severity: LogSeverity::Warn, text };
            let redact: Option<RedactText<'_>> = if is_wanted { Some(&redact) } else { None };
            let record = LogRecord::of_notice(notice, 1, None, redact);
            assert_eq!(record.body.map(|body| body.len()), want, "{text:?}");
        }
    }
}
