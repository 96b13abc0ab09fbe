//! The messages of JSON-RPC 2.0, one per line.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Number, Value, json};

/// The client has to configure a model first.
const AUTH_REQUIRED: i64 = -32000;

/// There is no such session.
const RESOURCE_NOT_FOUND: i64 = -32002;

/// The key of `_meta` with the sender's place in a trace (W3C Trace Context).
pub(crate) const TRACE_PARENT: &str = "traceparent";

/// The id of a request.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum RequestId {
    Number(Number),
    Text(String),
}

/// Why a request fails.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct RpcError {
    pub(crate) code: i64,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Value>,
}

/// A message of the client.
#[derive(Debug, PartialEq)]
pub(crate) enum IncomingMessage {
    Request { id: RequestId, method: String, params: Value },
    Notification { method: String, params: Value },
    Answer { id: RequestId, result: Result<Value, Value> },
}

impl RpcError {
    fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    pub(crate) fn parse(message: impl Into<String>) -> Self {
        Self::new(-32700, message)
    }

    pub(crate) fn invalid_request(message: impl Into<String>) -> Self {
        Self::new(-32600, message)
    }

    pub(crate) fn method_not_found(method: &str) -> Self {
        Self::new(-32601, "there is no such method").with_data(json!({ "method": method }))
    }

    pub(crate) fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(-32602, message)
    }

    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(-32603, message)
    }

    pub(crate) fn auth_required(message: impl Into<String>) -> Self {
        Self::new(AUTH_REQUIRED, message)
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(RESOURCE_NOT_FOUND, message)
    }

    /// Adds what the user can do about it. Clients show only the message.
    pub(crate) fn with_hint(mut self, hint: Option<impl AsRef<str>>) -> Self {
        if let Some(hint) = hint {
            self.message = format!("{}. To fix: {}", self.message, hint.as_ref());
        }
        self
    }

    fn with_data(self, data: Value) -> Self {
        Self { data: Some(data), ..self }
    }
}

/// A message as it is written; which kind it is depends on the fields that it has.
#[derive(Deserialize)]
struct MessageFields {
    jsonrpc: String,
    #[serde(default, deserialize_with = "present")]
    id: Option<Value>,
    method: Option<String>,
    #[serde(default)]
    params: Value,
    #[serde(default, deserialize_with = "present")]
    result: Option<Value>,
    error: Option<Value>,
}

/// Tells `null` from a field that is missing.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// Parses a line. An error names the request if the line has its id.
pub(crate) fn parse_message(line: &[u8]) -> Result<IncomingMessage, (RpcError, Option<RequestId>)> {
    let value: Value = serde_json::from_slice(line)
        .map_err(|error| (RpcError::parse(format!("this is not JSON: {error}")), None))?;
    let id = value.get("id").and_then(|id| serde_json::from_value(id.clone()).ok());
    classify_message(value).ok_or_else(|| {
        let text = "this is not a request, a notification or an answer of JSON-RPC 2.0";
        (RpcError::invalid_request(text), id)
    })
}

fn classify_message(value: Value) -> Option<IncomingMessage> {
    if !value.is_object() {
        return None;
    }
    let fields: MessageFields = serde_json::from_value(value).ok()?;
    if fields.jsonrpc != "2.0" {
        return None;
    }
    let id = match fields.id {
        Some(id) => Some(serde_json::from_value(id).ok()?),
        None => None,
    };
    let params = fields.params;
    match (id, fields.method, fields.result, fields.error) {
        (Some(id), Some(method), None, None) => {
            Some(IncomingMessage::Request { id, method, params })
        }
        (None, Some(method), None, None) => Some(IncomingMessage::Notification { method, params }),
        (Some(id), None, Some(result), None) => {
            Some(IncomingMessage::Answer { id, result: Ok(result) })
        }
        (Some(id), None, None, Some(error)) => {
            Some(IncomingMessage::Answer { id, result: Err(error) })
        }
        _ => None,
    }
}

/// The line of an answer.
pub(crate) fn answer_line(id: Option<&RequestId>, result: &Result<Value, RpcError>) -> String {
    match result {
        Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string(),
        Err(error) => json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string(),
    }
}

/// The line of a notification.
pub(crate) fn notification_line(method: &str, params: &Value) -> String {
    json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string()
}

/// The line of a request.
pub(crate) fn request_line(id: &RequestId, method: &str, params: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_message_or_an_error_that_names_its_request() {
        let number = |number: i64| RequestId::Number(number.into());
        let refused = [
            ("{", -32700, None),
            ("garbage", -32700, None),
            ("[]", -32600, None),
            ("7", -32600, None),
            ("{}", -32600, None),
            (r#"{"jsonrpc":"1.0","id":3,"method":"a"}"#, -32600, Some(number(3))),
            (r#"{"jsonrpc":"2.0","id":{},"method":"a"}"#, -32600, None),
            (r#"{"jsonrpc":"2.0","id":null,"method":"a"}"#, -32600, None),
            (r#"{"jsonrpc":"2.0","id":4,"method":"a","result":1}"#, -32600, Some(number(4))),
            (r#"{"jsonrpc":"2.0","id":5,"method":7}"#, -32600, Some(number(5))),
            (r#"{"jsonrpc":"2.0","id":6}"#, -32600, Some(number(6))),
        ];
        for (line, code, id) in refused {
            let (error, told_id) = parse_message(line.as_bytes()).unwrap_err();
            assert_eq!((error.code, told_id), (code, id), "{line}");
        }
        let text = RequestId::Text("a".to_owned());
        let method = || "m".to_owned();
        let read = [
            (
                r#"{"jsonrpc":"2.0","id":"a","method":"m","params":[1]}"#,
                IncomingMessage::Request { id: text, method: method(), params: json!([1]) },
            ),
            (
                r#"{"jsonrpc":"2.0","method":"m"}"#,
                IncomingMessage::Notification { method: method(), params: Value::Null },
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"result":null}"#,
                IncomingMessage::Answer { id: number(1), result: Ok(Value::Null) },
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"error":{}}"#,
                IncomingMessage::Answer { id: number(1), result: Err(json!({})) },
            ),
        ];
        for (line, want) in read {
            assert_eq!(parse_message(line.as_bytes()).unwrap(), want, "{line}");
        }
    }
}
