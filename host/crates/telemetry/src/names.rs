//! The table of names: which spans leave, under which names, and with which attributes.
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

/// The field of our spans that says in one word why an operation failed.
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

const OPERATION: &str = "gen_ai.operation.name";

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
        constants: &[("url.scheme", "http")],
        fields: &[
            ("method", "http.request.method"),
            ("route", "http.route"),
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
