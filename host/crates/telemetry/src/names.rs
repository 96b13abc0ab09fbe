//! The tables of names: which spans, metrics and log records leave, under which names, and with which
//! attributes.
//!
//! The names are those of the semantic conventions for generative AI and MCP, which are still in
//! development, and of the stable ones for HTTP. A later version changes this module only. Names
//! that begin with `sallyport.` are our own.

/// The conventions whose names the table has.
pub const CONVENTIONS: &str = "OpenTelemetry GenAI 0.1.0, semantic conventions 1.45.0";

/// The name of the instrumentation scope.
pub const SCOPE: &str = "sallyport";

/// The attribute of a resource that names the program.
pub const SERVICE_NAME: &str = "service.name";

/// The attribute of a resource that has the program's version.
pub const SERVICE_VERSION: &str = "service.version";

/// The field of our spans that holds the caller's place in a trace. It is never sent as a text.
pub const TRACE_PARENT_FIELD: &str = "traceparent";

/// The field of our spans with the reason, in one word, why an operation failed.
pub const ERROR_FIELD: &str = "error";

/// The attribute of [`ERROR_FIELD`].
pub const ERROR_TYPE: &str = "error.type";

/// The role of a span in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanKind {
    /// Work inside of the program.
    Internal = 1,
    /// The answer to a request of another program.
    Server = 2,
    /// A request to another program.
    Client = 3,
}

/// One row: a span of ours, and what is sent of it.
#[derive(Debug)]
pub struct SpanRule {
    /// The name of our span.
    pub span: &'static str,
    /// The row applies only if this field was recorded.
    pub only_with: Option<&'static str>,
    /// The fields that form the name, after [`operation`](Self::operation) if there is one.
    pub name_fields: &'static [&'static str],
    /// The first word of the name.
    pub operation: Option<&'static str>,
    /// The role.
    pub kind: SpanKind,
    /// Attributes with one value.
    pub constants: &'static [(&'static str, &'static str)],
    /// Our fields, each with its attribute. Other fields are not sent.
    pub fields: &'static [(&'static str, &'static str)],
}

/// One metric: a histogram over spans of ours.
#[derive(Debug)]
pub struct MetricRule {
    /// Its name.
    pub name: &'static str,
    /// What it is, for people.
    pub description: &'static str,
    /// Its unit, as UCUM writes it.
    pub unit: &'static str,
    /// The names of our spans.
    pub spans: &'static [&'static str],
    /// Only spans with this attribute count.
    pub only_with: Option<&'static str>,
    /// The attributes of a span that its series have.
    pub attributes: &'static [&'static str],
    /// What is read of each span.
    pub readings: &'static [MetricReading],
    /// The upper bounds of the ranges.
    pub bounds: &'static [f64],
}

/// One kind of log records: which spans make one when they end.
#[derive(Debug)]
pub struct LogRule {
    /// The name of the event.
    pub event: &'static str,
    /// The names of our spans.
    pub spans: &'static [&'static str],
    /// Only spans with this attribute count.
    pub only_with: Option<&'static str>,
    /// Only spans that failed count.
    pub only_failures: bool,
    /// The severity of a span that failed; that of others is `INFO`.
    pub severity_of_failure: LogSeverity,
    /// The attributes of a span that its record has.
    pub attributes: &'static [&'static str],
}

/// How important a log record is, with the number that the protocol gives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogSeverity {
    /// Something happened that is expected.
    Info = 9,
    /// An operator may want to look.
    Warn = 13,
    /// Something broke.
    Error = 17,
}

impl LogSeverity {
    /// Its usual name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Info => "INFO",
            Self::Warn => "WARN",
            Self::Error => "ERROR",
        }
    }
}

/// What a metric reads of a span.
#[derive(Debug)]
pub enum MetricReading {
    /// How long it took.
    Seconds,
    /// An attribute that is a number, with an attribute that tells it from other readings.
    Number {
        /// The attribute.
        attribute: &'static str,
        /// The name and the value of the other one.
        also: (&'static str, &'static str),
    },
}

const OPERATION: &str = "gen_ai.operation.name";

/// The bounds that the conventions advise for requests to models, in seconds.
const MODEL_SECONDS: &[f64] =
    &[0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];

/// The bounds that the conventions advise for HTTP, in seconds, with two more for calls in memory.
const REQUEST_SECONDS: &[f64] = &[
    0.0005, 0.001, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0,
];

/// The bounds that the conventions advise for tokens.
const TOKENS: &[f64] = &[
    1.0,
    4.0,
    16.0,
    64.0,
    256.0,
    1024.0,
    4096.0,
    16384.0,
    65536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
    67_108_864.0,
];

const MODEL_SPANS: &[&str] = &["model_request", "model_summary"];

const MODEL_ATTRIBUTES: &[&str] =
    &[OPERATION, "gen_ai.provider.name", "gen_ai.request.model", ERROR_TYPE];

/// All metrics.
pub const METRICS: &[MetricRule] = &[
    MetricRule {
        name: "gen_ai.client.operation.duration",
        description: "Requests to models, with their retries.",
        unit: "s",
        spans: MODEL_SPANS,
        only_with: None,
        attributes: MODEL_ATTRIBUTES,
        readings: &[MetricReading::Seconds],
        bounds: MODEL_SECONDS,
    },
    MetricRule {
        name: "gen_ai.client.token.usage",
        description: "Tokens that models read and wrote.",
        unit: "{token}",
        spans: MODEL_SPANS,
        only_with: None,
        attributes: MODEL_ATTRIBUTES,
        readings: &[
            MetricReading::Number {
                attribute: "gen_ai.usage.input_tokens",
                also: ("gen_ai.token.type", "input"),
            },
            MetricReading::Number {
                attribute: "gen_ai.usage.output_tokens",
                also: ("gen_ai.token.type", "output"),
            },
        ],
        bounds: TOKENS,
    },
    MetricRule {
        name: "sallyport.turn.duration",
        description: "Turns of sessions, with the waits for approvals.",
        unit: "s",
        spans: &["turn"],
        only_with: None,
        attributes: &["sallyport.turn.end", ERROR_TYPE],
        readings: &[MetricReading::Seconds],
        bounds: MODEL_SECONDS,
    },
    MetricRule {
        name: "sallyport.tool.duration",
        description: "Calls of tools, and checks of calls that were refused.",
        unit: "s",
        spans: &["call", "decide"],
        only_with: Some("sallyport.outcome"),
        attributes: &["gen_ai.tool.name", "sallyport.outcome", "sallyport.denied", ERROR_TYPE],
        readings: &[MetricReading::Seconds],
        bounds: REQUEST_SECONDS,
    },
    MetricRule {
        name: "http.client.request.duration",
        description: "Requests of plugins.",
        unit: "s",
        spans: &["http_request"],
        only_with: None,
        attributes: &[
            "http.request.method",
            "server.address",
            "server.port",
            "http.response.status_code",
            ERROR_TYPE,
        ],
        readings: &[MetricReading::Seconds],
        bounds: REQUEST_SECONDS,
    },
    MetricRule {
        name: "http.server.request.duration",
        description: "Requests to the service.",
        unit: "s",
        spans: &["service_request"],
        only_with: None,
        attributes: &[
            "http.request.method",
            "http.route",
            "http.response.status_code",
            "url.scheme",
            ERROR_TYPE,
        ],
        readings: &[MetricReading::Seconds],
        bounds: REQUEST_SECONDS,
    },
    MetricRule {
        name: "mcp.server.operation.duration",
        description: "Requests of MCP clients.",
        unit: "s",
        spans: &["mcp_request"],
        only_with: None,
        attributes: &["mcp.method.name", "gen_ai.tool.name", ERROR_TYPE],
        readings: &[MetricReading::Seconds],
        bounds: REQUEST_SECONDS,
    },
];

/// All kinds of log records that spans make.
pub const LOGS: &[LogRule] = &[
    LogRule {
        event: "sallyport.call",
        spans: &["call", "decide"],
        only_with: Some("sallyport.outcome"),
        only_failures: false,
        severity_of_failure: LogSeverity::Warn,
        attributes: &[
            "gen_ai.tool.name",
            "gen_ai.tool.call.id",
            "sallyport.outcome",
            "sallyport.denied",
            ERROR_TYPE,
        ],
    },
    LogRule {
        event: "sallyport.turn",
        spans: &["turn"],
        only_with: None,
        only_failures: false,
        severity_of_failure: LogSeverity::Warn,
        attributes: &["gen_ai.conversation.id", "sallyport.turn.end", ERROR_TYPE],
    },
    LogRule {
        event: "sallyport.model",
        spans: MODEL_SPANS,
        only_with: None,
        only_failures: true,
        severity_of_failure: LogSeverity::Warn,
        attributes: MODEL_ATTRIBUTES,
    },
    LogRule {
        event: "sallyport.request",
        spans: &["service_request"],
        only_with: None,
        only_failures: true,
        severity_of_failure: LogSeverity::Error,
        attributes: &["http.request.method", "http.route", "http.response.status_code", ERROR_TYPE],
    },
];

/// The event of a notice of the program about itself.
pub const NOTICE_EVENT: &str = "sallyport.notice";

/// The attribute with what a notice is about.
pub const NOTICE_KIND: &str = "sallyport.notice.kind";

const MODEL_FIELDS: &[(&str, &str)] = &[
    ("model", "gen_ai.request.model"),
    ("provider", "gen_ai.provider.name"),
    ("input_tokens", "gen_ai.usage.input_tokens"),
    ("output_tokens", "gen_ai.usage.output_tokens"),
];

const CALL_FIELDS: &[(&str, &str)] = &[
    ("tool", "gen_ai.tool.name"),
    ("call", "gen_ai.tool.call.id"),
    ("outcome", "sallyport.outcome"),
    ("denied", "sallyport.denied"),
];

const NOTHING: SpanRule = SpanRule {
    span: "",
    only_with: None,
    name_fields: &[],
    operation: None,
    kind: SpanKind::Internal,
    constants: &[],
    fields: &[],
};

/// A request to a model.
const CHAT: SpanRule = SpanRule {
    operation: Some("chat"),
    name_fields: &["model"],
    kind: SpanKind::Client,
    constants: &[(OPERATION, "chat")],
    fields: MODEL_FIELDS,
    ..NOTHING
};

/// A call of a tool.
const EXECUTE_TOOL: SpanRule = SpanRule {
    operation: Some("execute_tool"),
    name_fields: &["tool"],
    constants: &[(OPERATION, "execute_tool"), ("gen_ai.tool.type", "function")],
    fields: CALL_FIELDS,
    ..NOTHING
};

/// All rows. The first one that applies to a span counts.
pub const RULES: &[SpanRule] = &[
    SpanRule {
        span: "turn",
        operation: Some("invoke_agent"),
        name_fields: &[],
        constants: &[(OPERATION, "invoke_agent"), ("gen_ai.agent.name", "sallyport")],
        fields: &[("session", "gen_ai.conversation.id"), ("end", "sallyport.turn.end")],
        ..NOTHING
    },
    SpanRule { span: "model_request", ..CHAT },
    SpanRule { span: "model_summary", ..CHAT },
    SpanRule { span: "call", ..EXECUTE_TOOL },
    // A call that was not admitted ends with its decision, so that is its span.
    SpanRule { span: "decide", only_with: Some("outcome"), ..EXECUTE_TOOL },
    SpanRule {
        span: "decide",
        operation: Some("decide"),
        name_fields: &["tool"],
        fields: CALL_FIELDS,
        ..NOTHING
    },
    SpanRule {
        span: "http_request",
        name_fields: &["method"],
        kind: SpanKind::Client,
        fields: &[
            ("method", "http.request.method"),
            ("host", "server.address"),
            ("port", "server.port"),
            ("status", "http.response.status_code"),
        ],
        ..NOTHING
    },
    SpanRule {
        span: "service_request",
        name_fields: &["method", "route"],
        kind: SpanKind::Server,
        fields: &[
            ("method", "http.request.method"),
            ("route", "http.route"),
            ("scheme", "url.scheme"),
            ("status", "http.response.status_code"),
        ],
        ..NOTHING
    },
    SpanRule {
        span: "mcp_request",
        only_with: Some("tool"),
        name_fields: &["method", "tool"],
        kind: SpanKind::Server,
        constants: &[(OPERATION, "execute_tool")],
        fields: MCP_FIELDS,
        ..NOTHING
    },
    SpanRule {
        span: "mcp_request",
        name_fields: &["method"],
        kind: SpanKind::Server,
        fields: MCP_FIELDS,
        ..NOTHING
    },
];

const MCP_FIELDS: &[(&str, &str)] = &[
    ("method", "mcp.method.name"),
    ("protocol", "mcp.protocol.version"),
    ("tool", "gen_ai.tool.name"),
];

/// Words of ours that the conventions have another word for: field, ours, theirs.
const WORDS: &[(&str, &str, &str)] =
    &[("provider", "openai-responses", "openai"), ("provider", "gemini", "gcp.gemini")];

/// The word of the conventions for a value of a field.
pub fn conventional_word<'a>(field: &str, word: &'a str) -> &'a str {
    let found = WORDS.iter().find(|(of, ours, _)| (*of, *ours) == (field, word));
    found.map_or(word, |(_, _, theirs)| theirs)
}

/// Whether spans of this name are sent.
pub fn is_sent(span: &str) -> bool {
    RULES.iter().any(|rule| rule.span == span)
}

/// The row of a span that has these fields.
pub fn find_rule(span: &str, has_field: impl Fn(&str) -> bool) -> Option<&'static SpanRule> {
    RULES.iter().find(|rule| rule.span == span && rule.only_with.is_none_or(&has_field))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// A metric that names what no span has would be empty for ever.
    #[test]
    fn each_metric_is_made_of_what_its_spans_have() {
        for metric in METRICS {
            for span in metric.spans {
                let rules = || RULES.iter().filter(|rule| rule.span == *span);
                assert!(rules().next().is_some(), "{} has no span {span}", metric.name);
                let has = |name: &str| {
                    let is_own = |(_, own): &(&str, &str)| *own == name;
                    let is_constant = |(own, _): &(&str, &str)| *own == name;
                    name == ERROR_TYPE
                        || rules().any(|rule| {
                            rule.fields.iter().any(is_own) || rule.constants.iter().any(is_constant)
                        })
                };
                let numbers = metric.readings.iter().filter_map(|reading| match reading {
                    MetricReading::Seconds => None,
                    MetricReading::Number { attribute, .. } => Some(*attribute),
                });
                let named =
                    metric.attributes.iter().copied().chain(numbers).chain(metric.only_with);
                named.for_each(|name| assert!(has(name), "{} {span} {name}", metric.name));
            }
            assert!(metric.bounds.is_sorted(), "{}", metric.name);
        }
    }

    /// What a record of a span has is what the span has, and nothing else could leave by it.
    #[test]
    fn each_log_record_has_what_its_spans_have() {
        for log in LOGS {
            for span in log.spans {
                let rules: Vec<_> = RULES.iter().filter(|rule| rule.span == *span).collect();
                assert!(!rules.is_empty(), "{} has no span {span}", log.event);
                let has = |name: &&str| {
                    let is_own = |(_, own): &(&str, &str)| own == name;
                    let is_constant = |(own, _): &(&str, &str)| own == name;
                    let mut pairs = rules.iter();
                    *name == ERROR_TYPE
                        || pairs.any(|rule| {
                            rule.fields.iter().any(is_own) || rule.constants.iter().any(is_constant)
                        })
                };
                let named = log.attributes.iter().chain(&log.only_with);
                named.for_each(|name| assert!(has(name), "{} {span} {name}", log.event));
            }
        }
    }

    #[test]
    fn each_span_has_a_row_for_all_its_fields_and_no_row_is_hidden_by_another() {
        let mut without_condition = BTreeSet::new();
        for rule in RULES {
            assert!(!without_condition.contains(rule.span), "{rule:?} never applies");
            if rule.only_with.is_none() {
                without_condition.insert(rule.span);
            }
            let has = |field: &&str| rule.fields.iter().any(|(own, _)| own == field);
            assert!(rule.name_fields.iter().all(has), "{rule:?}");
            let attributes: BTreeSet<_> = rule.fields.iter().map(|(_, name)| name).collect();
            assert_eq!(attributes.len(), rule.fields.len(), "{rule:?}");
        }
        assert!(RULES.iter().all(|rule| without_condition.contains(rule.span)));
    }
}
