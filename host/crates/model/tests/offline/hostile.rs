//! Harmful sentences and tools.

use sallyport_model::ModelToolDefinition;
use serde_json::{Value, json};

use crate::everyday::tools;
use crate::say;

/// The longest permitted sentence, in bytes.
const LONG: usize = 64 << 10;

fn repeated(part: &str) -> String {
    part.repeat(LONG / part.len())
}

/// The time for a long sentence is linear in its length; quadratic time would not end here.
#[test]
fn long_sentences_are_read() {
    let parts = [
        "a",
        " ",
        "time ",
        "and then ",
        "weather in ",
        "\"",
        " 'a",
        "“",
        "5 minutes ",
        "one ",
        "; ",
        "/a ",
        "x.y ",
        "https://a ",
        "🎉",
        "é",
        "a and ",
        "twenty ",
        "not forecast ",
        "in Paris, ",
        "one hundred ",
        "called the ",
        "to ",
        "that ",
        "path is ",
        "label the ",
    ];
    for part in parts {
        say(&repeated(part), &tools());
        let content = repeated(part);
        let content = &content[..content.floor_char_boundary(LONG - 100)];
        say(&format!("write to /notes/a.txt: {content}"), &tools());
    }
    let too_long = say(&format!("{} ", repeated("a")).repeat(2), &tools());
    assert!(too_long.text.contains("at most 65536 bytes"), "{too_long:?}");
}

#[test]
fn content_is_never_cut() {
    let content = repeated("milk ")[..LONG - 100].trim().to_owned();
    let message = say(&format!("write \"{content}\" to /notes/a.txt"), &tools());
    let arguments: Value = serde_json::from_str(&message.calls[0].arguments).unwrap();
    assert_eq!(arguments["text"], json!(content));
}

#[test]
fn odd_schemas_do_no_harm() {
    let deep = (0..100).fold(
        json!({ "type": "string" }),
        |inner, _| json!({ "type": "object", "properties": { "x": inner }, "required": ["x"] }),
    );
    let wide: serde_json::Map<String, Value> =
        (0..10_000).map(|n| (format!("p{n}"), json!({ "enum": ["a", "b"] }))).collect();
    let schemas = [
        json!(null),
        json!(true),
        json!([]),
        json!({ "properties": [], "required": {} }),
        json!({ "properties": { "x": 3, "": {}, "_": { "type": [] } }, "required": ["x", "", "_", "gone"] }),
        json!({ "properties": { "x": { "$ref": "#" } }, "required": ["x"] }),
        json!({ "properties": { "x": { "anyOf": [{ "anyOf": [] }] } }, "required": ["x"] }),
        json!({ "properties": { "x": { "enum": [] }, "y": { "enum": [{}, [], null] } }, "required": ["x", "y"] }),
        json!({ "properties": { "x": { "type": "integer", "minimum": 5, "maximum": 1 } }, "required": ["x"] }),
        json!({ "properties": { "x": { "type": "array", "items": { "type": "array", "items": {} } } }, "required": ["x"] }),
        json!({ "properties": wide }),
        deep,
    ];
    for parameters in schemas {
        for name in ["spin__wheel", "", "__", "🎉", "a__b__c"] {
            let tool = ModelToolDefinition {
                name: name.to_owned(),
                description: "Spins the wheel five times in Paris. ".repeat(10_000),
                parameters: parameters.clone(),
            };
            for sentence in ["spin the wheel 7 times", "spin wheel x, y and z", "wheel", ""] {
                let message = say(sentence, std::slice::from_ref(&tool));
                assert!(message.text.is_empty() != message.calls.is_empty());
                assert!(message.text.len() < 20_000, "{}", message.text.len());
            }
        }
    }
}

#[test]
fn limits_of_a_schema_are_kept() {
    let tool = |schema: Value| ModelToolDefinition {
        name: "spin__wheel".to_owned(),
        description: "Spins the wheel.".to_owned(),
        parameters: json!({ "properties": { "times": schema }, "required": ["times"] }),
    };
    let rows = [
        (json!({ "type": "integer" }), "spin the wheel 7 times", Some(json!(7))),
        (json!({ "type": "integer" }), "spin the wheel 2.5 times", None),
        (json!({ "type": "number" }), "spin the wheel 2.5 times", Some(json!(2.5))),
        (json!({ "type": "integer", "maximum": 5 }), "spin the wheel 7 times", None),
        (json!({ "type": "integer", "exclusiveMinimum": 7 }), "spin the wheel 7 times", None),
        (json!({ "type": "integer", "default": 1 }), "spin the wheel", Some(json!(1))),
        (json!({ "enum": ["once", "twice"] }), "spin the wheel twice", Some(json!("twice"))),
        (json!({ "enum": ["once", "twice"] }), "spin the wheel", None),
        (json!({ "const": 3 }), "spin the wheel", Some(json!(3))),
        (json!({ "type": "string", "maxLength": 3 }), "spin the wheel forever", None),
    ];
    for (schema, sentence, want) in rows {
        let message = say(sentence, &[tool(schema.clone())]);
        let got = message
            .calls
            .first()
            .map(|call| serde_json::from_str::<Value>(&call.arguments).unwrap()["times"].clone());
        assert_eq!(got, want, "{schema} {sentence:?}: {}", message.text);
    }
}
