//! The content of the conversations: a thousand tools, and the answers of a model that calls one.

use sallyport_contract::{ToolDescriptor, ToolHints};
use serde_json::{Value, json};

/// The number of plugins, and of tools in each.
const PLUGINS: usize = 50;
const TOOLS: usize = 20;

/// Words of an answer, each in a separate event.
const WORDS: usize = 60;

/// Letters of the arguments per event.
const FRAGMENT_BYTES: usize = 12;

/// The model's behaviour in each turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Script {
    /// It sees all tools and calls one.
    Listed,
    /// It sees the search and calls a tool that it already knows.
    Used,
    /// It sees the search and searches.
    Searched,
}

impl Script {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Listed => "turn with 1,000 tools, all schemas in each request",
            Self::Used => "turn with 1,000 tools, tool search, a call",
            Self::Searched => "turn with 1,000 tools, tool search, a search",
        }
    }

    /// Returns the events of an answer: index 0 has the call, index 1 the text.
    pub(crate) fn answer(self, index: usize) -> Vec<String> {
        let events = if index.is_multiple_of(2) { self.call(index) } else { words() };
        events.iter().map(Value::to_string).collect()
    }

    fn call(self, index: usize) -> Vec<Value> {
        let arguments = json!({ "place": "Copenhagen", "unit": "metric", "days": 3 });
        let (name, arguments) = match self {
            Self::Listed => ("plugin_7__tool_11", arguments),
            Self::Used => {
                ("use_tool", json!({ "name": "plugin_7__tool_11", "arguments": arguments }))
            }
            Self::Searched => ("search_tools", json!({ "query": "forecast of days for a place" })),
        };
        let arguments = arguments.to_string();
        let id = format!("call_{index}");
        let begun = json!({ "index": 0, "id": id, "type": "function",
            "function": { "name": name, "arguments": "" } });
        let fragments = arguments.as_bytes().chunks(FRAGMENT_BYTES).map(|fragment| {
            let fragment = String::from_utf8_lossy(fragment);
            json!({ "index": 0, "function": { "arguments": fragment } })
        });
        let calls = [begun].into_iter().chain(fragments);
        let deltas = calls.map(|call| json!({ "tool_calls": [call] }));
        ended(deltas, "tool_calls")
    }
}

fn words() -> Vec<Value> {
    let word = |index| json!({ "content": format!("word{index} ") });
    ended((0..WORDS).map(word), "stop")
}

fn ended(deltas: impl Iterator<Item = Value>, finish: &str) -> Vec<Value> {
    let begin = json!({ "role": "assistant", "content": null });
    let mut events: Vec<Value> =
        [begin].into_iter().chain(deltas).map(|delta| event(&delta, Value::Null)).collect();
    events.push(event(&json!({}), finish.into()));
    let mut last = event(&json!({}), Value::Null);
    last["choices"] = json!([]);
    last["usage"] = json!({ "prompt_tokens": 120_000, "completion_tokens": 80,
        "total_tokens": 120_080, "prompt_tokens_details": { "cached_tokens": 118_000 } });
    events.push(last);
    events
}

/// An event with everything that providers put around a few letters.
fn event(delta: &Value, finish: Value) -> Value {
    json!({
        "id": "chatcmpl-CJTX4d7Yx0y4l1wQ8rE2bS5zVnGkP",
        "object": "chat.completion.chunk",
        "created": 1_763_792_000,
        "model": "bench-2026-01-01",
        "service_tier": "default",
        "system_fingerprint": "fp_44709d6fcb",
        "choices": [{ "index": 0, "delta": delta, "logprobs": null, "finish_reason": finish }],
        "usage": null,
    })
}

/// A thousand tools whose definitions take some 500 KB.
pub(crate) fn tools() -> Vec<ToolDescriptor> {
    let pairs = (0..PLUGINS).flat_map(|plugin| (0..TOOLS).map(move |tool| (plugin, tool)));
    pairs.map(|(plugin, tool)| spec(plugin, tool)).collect()
}

fn spec(plugin: usize, tool: usize) -> ToolDescriptor {
    ToolDescriptor {
        id: format!("plugin_{plugin}.tool_{tool}").parse().expect("a name"),
        title: None,
        description: format!(
            "Returns the forecast number {tool} of service {plugin} for a place, for up to some days."
        ),
        parameters: json!({
            "type": "object",
            "properties": {
                "place": { "type": "string", "description": "City and country." },
                "unit": { "type": "string", "enum": ["metric", "imperial"] },
                "days": { "type": "integer", "minimum": 1, "maximum": 14,
                    "description": "How many days to look ahead." },
            },
            "required": ["place"],
            "additionalProperties": false,
        }),
        output: None,
        hints: ToolHints::default(),
    }
}

/// The result of the tool: three days with the hours of each, some 2 KB.
pub(crate) fn result() -> Value {
    let hour = |hour| json!({ "hour": hour, "temperature": 17.5, "wind": "SW 4", "rain": 0.2 });
    let day = |day| json!({ "day": day, "hours": (0..12).map(hour).collect::<Vec<_>>() });
    json!({ "place": "Copenhagen, Denmark", "days": (0..3).map(day).collect::<Vec<_>>() })
}
