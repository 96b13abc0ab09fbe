//! Schemas that some provider refuses, and their fitted forms.

use serde_json::{Value, json};

use super::*;
use crate::chat::{AssistantMessage, OpaqueMessage, ToolResultMessage};

const ANTHROPIC: SchemaDialect = SchemaDialect { limits_names: true, ..SchemaDialect::GENEROUS };

const ALL: [SchemaDialect; 3] = [SchemaDialect::GENEROUS, ANTHROPIC, SchemaDialect::STRICTEST];

fn tool(parameters: Value) -> ModelToolDefinition {
    ModelToolDefinition { name: "t".to_owned(), description: "Draws.".to_owned(), parameters }
}

fn fit(parameters: &Value, dialect: SchemaDialect) -> FittedTools {
    FittedTools::new(&[tool(parameters.clone())], dialect)
}

/// Compares the fitted parameters, and the note in the description.
#[track_caller]
fn check(parameters: Value, dialect: SchemaDialect, want: Value, note: &str) {
    let fit = fit(&parameters, dialect);
    assert_eq!(fit.omitted_tools(), []);
    let [fitted] = fit.tools() else { panic!("not one tool") };
    assert_eq!(fitted.parameters, want);
    let description =
        if note.is_empty() { "Draws.".to_owned() } else { format!("Draws.\n\n{note}") };
    assert_eq!(fitted.description, description);
    assert!(
        acceptance::is_accepted_schema(&fitted.parameters, SchemaDialect::STRICTEST),
        "{}",
        fitted.parameters
    );
}

#[test]
fn a_schema_that_every_provider_takes_stays_as_it_is() {
    let schema = json!({
        "type": "object", "title": "T", "$schema": "https://json-schema.org/draft/2020-12/schema",
        "properties": {
            "a": { "type": "array", "items": { "type": "string", "enum": ["x"] } },
            "b": { "anyOf": [{ "type": "null" }, { "$ref": "#/$defs/B" }] },
            "type": { "type": "string", "format": "date-time", "pattern": "^a$" },
        },
        "required": ["a"], "additionalProperties": false, "$defs": { "B": { "type": "integer" } },
    });
    for dialect in [
        SchemaDialect::GENEROUS,
        ANTHROPIC,
        SchemaDialect { ignores_references: false, ..SchemaDialect::STRICTEST },
    ] {
        let fit = fit(&schema, dialect);
        assert_eq!(fit.tools(), [tool(schema.clone())]);
    }
}

#[test]
fn the_four_ways_of_writing_a_rust_enum_become_one_object() {
    let circle =
        json!({ "type": "object", "properties": { "r": { "type": "number" } }, "required": ["r"] });
    let number = json!({ "type": "number" });
    // Externally tagged. A variant without fields is not an object, so no call can have it.
    check(
        json!({ "type": "object", "properties": {}, "$defs": { "Circle": circle }, "oneOf": [
            { "type": "object", "properties": { "Circle": { "$ref": "#/$defs/Circle" } },
              "required": ["Circle"], "additionalProperties": false },
            { "type": "object", "properties": { "Line": number }, "required": ["Line"],
              "additionalProperties": false },
            { "type": "string", "enum": ["Nothing"] },
        ] }),
        ANTHROPIC,
        json!({ "type": "object", "properties": { "Circle": circle, "Line": number } }),
        r#"The arguments have one of these forms: {"Circle"} or {"Line"}"#,
    );
    // Internally tagged, one variant by reference.
    check(
        json!({ "type": "object", "$defs": { "Circle": circle }, "oneOf": [
            { "type": "object", "$ref": "#/$defs/Circle",
              "properties": { "kind": { "type": "string", "const": "circle" } }, "required": ["kind"] },
            { "type": "object", "properties": { "kind": { "type": "string", "const": "line" }, "to": number },
              "required": ["kind"] },
        ] }),
        SchemaDialect::GENEROUS,
        json!({
            "type": "object",
            "properties": {
                "kind": { "type": "string", "enum": ["circle", "line"] }, "r": number, "to": number,
            },
            "required": ["kind"],
        }),
        r#"The arguments have one of these forms: {"kind": "circle", "r"} or {"kind": "line", "to" (optional)}"#,
    );
    // Adjacently tagged.
    check(
        json!({ "type": "object", "oneOf": [
            { "properties": { "t": { "const": "A" }, "c": { "type": "integer" } }, "required": ["t", "c"] },
            { "properties": { "t": { "const": "B" }, "c": { "type": "string" } }, "required": ["t", "c"] },
        ] }),
        SchemaDialect::GENEROUS,
        json!({
            "type": "object",
            "properties": {
                "c": { "anyOf": [{ "type": "integer" }, { "type": "string" }] },
                "t": { "type": "string", "enum": ["A", "B"] },
            },
            "required": ["t", "c"],
        }),
        r#"The arguments have one of these forms: {"c", "t": "A"} or {"c", "t": "B"}"#,
    );
    // Untagged, and flattened into a struct.
    check(
        json!({ "type": "object", "properties": { "id": number }, "required": ["id"],
            "unevaluatedProperties": false, "$defs": { "Circle": circle },
            "anyOf": [{ "$ref": "#/$defs/Circle" }, { "type": "null" }, circle] }),
        SchemaDialect::GENEROUS,
        json!({
            "type": "object", "properties": { "id": number, "r": number }, "required": ["id", "r"],
        }),
        "",
    );
}

#[test]
fn what_one_provider_refuses_is_told_in_another_way() {
    let object = |properties: Value| json!({ "type": "object", "properties": properties });
    let rows = [
        (json!({ "type": "object" }), object(json!({}))),
        (
            object(json!({ "a": { "type": "array" }, "b": { "type": ["array", "null"] } })),
            object(json!({
                "a": { "type": "array", "items": {} }, "b": { "type": ["array", "null"], "items": {} },
            })),
        ),
        (
            object(
                json!({ "a": { "type": "array", "items": [{ "type": "string" }, { "type": "integer" }] } }),
            ),
            object(json!({ "a": {
                "type": "array", "items": { "anyOf": [{ "type": "string" }, { "type": "integer" }] },
            } })),
        ),
        (object(json!({ "a": true, "b": false })), object(json!({ "a": {} }))),
        (
            object(json!({ "a": { "type": "integer", "minimum": 1, "exclusiveMinimum": true } })),
            object(json!({ "a": { "type": "integer", "minimum": 1 } })),
        ),
        (
            json!({ "type": "object", "properties": {}, "allOf": [
                { "properties": { "a": { "type": "string" } }, "required": ["a"] },
                { "properties": { "b": {} }, "required": ["b"] },
            ] }),
            json!({
                "type": "object", "properties": { "a": { "type": "string" }, "b": {} },
                "required": ["a", "b"],
            }),
        ),
        (
            json!({ "type": "object", "properties": { "a": {} }, "if": { "required": ["a"] },
                "then": { "properties": { "b": {} } } }),
            object(json!({ "a": {}, "b": {} })),
        ),
    ];
    for (given, want) in rows {
        for dialect in ALL {
            let fit = fit(&given, dialect);
            assert_eq!(fit.tools()[0].parameters, want, "{given}");
        }
    }
    check(
        object(json!({
            "a": { "type": "string", "pattern": "a+", "description": "Words." },
            "b": { "const": true }, "c": { "enum": ["x", ""] }, "d": { "const": 3 },
            "e": { "type": "string", "format": "uri" },
            "f": { "oneOf": [
                { "type": "string", "const": "n", "description": "North." },
                { "type": "string", "const": "s" },
            ] },
        })),
        SchemaDialect::STRICTEST,
        object(json!({
            "a": { "type": "string", "description": "Words. (pattern: \"a+\")" },
            "b": { "description": "one of [true]" }, "c": { "description": "one of [\"x\",\"\"]" },
            "d": { "type": "number", "enum": [3] },
            "e": { "type": "string", "description": "format: \"uri\"" },
            "f": { "type": "string", "enum": ["n", "s"], "description": "\"n\": North." },
        })),
        "",
    );
}

#[test]
fn depth_recursion_and_size_are_bounded() {
    let mut deep = json!({ "type": "string" });
    for _ in 0..95 {
        deep = json!({ "type": "object", "properties": { "a": deep } });
    }
    let tree = json!({
        "type": "object", "properties": { "root": { "$ref": "#/$defs/Tree" } },
        "$defs": { "Tree": { "type": "object", "properties": {
            "left": { "$ref": "#/$defs/Tree" },
            "children": { "type": "array", "items": { "$ref": "#/$defs/Tree" } },
        } } },
    });
    let selves = json!({ "type": "object", "properties": { "a": { "$ref": "#" } }, "oneOf": [{ "$ref": "#" }] });
    let many: Vec<Value> =
        (0..40).map(|n| json!({ "properties": { format!("p{n}"): {} } })).collect();
    let product = json!({ "type": "object", "allOf": [{ "anyOf": many }, { "oneOf": many }, { "anyOf": many }] });
    for schema in [deep, tree, selves, product] {
        for dialect in ALL {
            let fit = fit(&schema, dialect);
            assert_eq!(fit.omitted_tools(), []);
            assert!(
                acceptance::is_accepted_schema(&fit.tools()[0].parameters, dialect),
                "{schema}"
            );
            assert!(fit.tools()[0].parameters.to_string().len() < 64 * 1024);
        }
    }
}

#[test]
fn a_tool_that_no_object_can_be_given_to_is_left_out_alone() {
    let no = json!({ "type": "object", "oneOf": [{ "type": "string" }, { "const": "x" }, false] });
    let yes = json!({ "type": "object", "properties": {} });
    for dialect in ALL {
        let fit = FittedTools::new(&[tool(no.clone()), tool(yes.clone())], dialect);
        assert_eq!(fit.tools(), [tool(yes.clone())]);
        let [OmittedContent::Tool { name, why }] = fit.omitted_tools() else {
            panic!("not left out")
        };
        assert!(name == "t" && why.contains("no object"), "{why}");
    }
}

#[test]
fn names_that_a_provider_refuses_go_out_and_come_back() {
    let long = "x".repeat(70);
    let schema = json!({
        "type": "object",
        "properties": {
            "größe": { "type": "object", "properties": { "höhe (m)": { "type": "number" } } },
            "gr__e": {}, "": {}, "$filter": {}, "a.b-c": {}, &long: {},
        },
        "required": ["größe"],
    });
    let fit = fit(&schema, ANTHROPIC);
    let fitted = &fit.tools()[0].parameters;
    let names: Vec<&String> = fitted["properties"].as_object().unwrap().keys().collect();
    assert!(
        names.iter().all(|name| acceptance::is_property_name(name)) && names.len() == 6,
        "{names:?}"
    );
    let own = json!({ "größe": { "höhe (m)": 1.5 }, "gr__e": 1, "": 2, "$filter": [{}], "a.b-c": 3, &long: 4 });
    let call = |arguments: &Value| ModelCallRequest {
        id: "a".to_owned(),
        name: "t".to_owned(),
        arguments: arguments.to_string(),
    };
    let said = AssistantMessage { calls: vec![call(&own)], ..AssistantMessage::default() };
    let messages = [ChatMessage::Assistant(said)];
    let history = fit.fit_history(&messages, "x/y");
    let [ChatMessage::Assistant(out)] = &*history else { panic!("no answer") };
    let seen: Value = serde_json::from_str(&out.calls[0].arguments).unwrap();
    for name in seen.as_object().unwrap().keys() {
        assert!(fitted["properties"].get(name).is_some(), "{name}");
    }
    let required = fitted["required"][0].as_str().unwrap();
    assert!(seen.get(required).is_some() && required != "gr__e", "{seen}");
    let mut calls = out.calls.clone();
    fit.restore_arguments(&mut calls);
    assert_eq!(serde_json::from_str::<Value>(&calls[0].arguments).unwrap(), own);
    // Names stay if the provider does not limit them.
    assert!(
        FittedTools::new(&[tool(schema.clone())], SchemaDialect::GENEROUS).tools()[0].parameters
            == schema
    );
}

#[test]
fn calls_and_results_keep_together_when_they_are_mended() {
    let call = |id: &str, name: &str, arguments: &str| ModelCallRequest {
        id: id.to_owned(),
        name: name.to_owned(),
        arguments: arguments.to_owned(),
    };
    let result = |id: &str, name: &str| {
        ChatMessage::Tool(ToolResultMessage {
            call_id: id.to_owned(),
            name: name.to_owned(),
            content: "{}".to_owned(),
            failed: false,
        })
    };
    let said = |origin: &str, calls| {
        let opaque = Some(OpaqueMessage { origin: origin.to_owned(), body: json!({}) });
        ChatMessage::Assistant(AssistantMessage { calls, opaque, ..AssistantMessage::default() })
    };
    let own = "functions.x:0";
    let foreign = format!("functions.x:{}", "1".repeat(50));
    let messages = [
        said("a/b", vec![call(own, "7 x", "{\"cut")]),
        result(own, "7 x"),
        said("c/d", vec![call(&foreign, "y", "{}")]),
        result(&foreign, "y"),
    ];
    let history = FittedTools::default().fit_history(&messages, "a/b");
    let calls: Vec<ModelCallRequest> = history
        .iter()
        .filter_map(|message| match message {
            ChatMessage::Assistant(said) => Some(said.calls[0].clone()),
            _ => None,
        })
        .collect();
    let results: Vec<(&str, &str)> = history
        .iter()
        .filter_map(|message| match message {
            ChatMessage::Tool(result) => Some((result.call_id.as_str(), result.name.as_str())),
            _ => None,
        })
        .collect();
    assert_eq!(calls[0], call(own, "_7_x", r#"{"INVALID_JSON":"{\"cut"}"#));
    assert!(calls[1].id.len() <= 40 && calls[1].id != foreign);
    let kept: Vec<_> = calls.iter().map(|call| (call.id.as_str(), call.name.as_str())).collect();
    assert_eq!(results, kept);
    let sound = [said("c/d", vec![call("a", "y", "{\"k\": 1}")]), result("a", "y")];
    assert!(matches!(FittedTools::default().fit_history(&sound, "x/y"), Cow::Borrowed(_)));
}

/// Replaces types that authors often write by the valid ones.
fn settled(schema: &mut Value) {
    let kind = schema.get("type").and_then(Value::as_str).map(|kind| match kind {
        "dict" | "HashMap" | "Hashtable" | "Dictionary" => "object",
        "float" | "double" | "long" => "number",
        "tuple" | "list" | "ArrayList" | "Array" | "set" => "array",
        "String" | "char" | "any" => "string",
        "bool" | "Boolean" => "boolean",
        "byte" | "short" => "integer",
        other => other,
    });
    if let Some(kind) = kind.map(str::to_owned) {
        schema["type"] = json!(kind);
    }
    match schema {
        Value::Object(fields) => fields.values_mut().for_each(settled),
        Value::Array(items) => items.iter_mut().for_each(settled),
        _ => {}
    }
}

#[test]
fn definitions_that_people_wrote_all_have_a_form() {
    let path =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../../../shared/schemas/bfcl-functions.jsonl");
    let Ok(text) = std::fs::read_to_string(path) else {
        println!("SKIPPED: there are no definitions beside the repository");
        return;
    };
    for line in text.lines() {
        let mut parameters = serde_json::from_str::<Value>(line).unwrap()["parameters"].take();
        settled(&mut parameters);
        for dialect in ALL {
            let fit = fit(&parameters, dialect);
            assert_eq!(fit.omitted_tools(), [], "{parameters}");
            assert!(
                acceptance::is_accepted_schema(&fit.tools()[0].parameters, dialect),
                "{parameters}"
            );
        }
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "the types are the rows")]
fn enums_as_schemars_describes_them_all_have_a_form() {
    #[derive(schemars::JsonSchema)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Circle {
        /// How far from the middle.
        radius: f64,
        parts: Vec<Shape>,
    }
    #[derive(schemars::JsonSchema)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    enum Shape {
        Nothing,
        Circle(Box<Circle>),
        Line { from: (i32, i32), to: Option<Side> },
    }
    #[derive(schemars::JsonSchema)]
    #[serde(tag = "kind")]
    #[expect(dead_code, reason = "only its schema is looked at")]
    enum Internal {
        Nothing,
        Circle(Circle),
        Line { to: u8 },
    }
    #[derive(schemars::JsonSchema)]
    #[serde(tag = "t", content = "c")]
    #[expect(dead_code, reason = "only its schema is looked at")]
    enum Adjacent {
        Nothing,
        Circle(Circle),
        Number(u64),
    }
    #[derive(schemars::JsonSchema)]
    #[serde(untagged)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    enum Untagged {
        Circle(Circle),
        Line { to: Internal },
    }
    #[derive(schemars::JsonSchema)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Flat {
        name: String,
        #[serde(flatten)]
        shape: Internal,
        extra: serde_json::Value,
    }
    #[derive(schemars::JsonSchema)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    enum Side {
        /// Up.
        North,
        South,
    }
    let rows: [(Value, &[&str]); 5] = [
        (schemars::schema_for!(Shape).into(), &["Circle", "Line"]),
        (schemars::schema_for!(Internal).into(), &["kind", "radius", "parts", "to"]),
        (schemars::schema_for!(Adjacent).into(), &["t", "c"]),
        (schemars::schema_for!(Untagged).into(), &["radius", "parts", "to"]),
        (schemars::schema_for!(Flat).into(), &["name", "kind", "radius", "parts", "to", "extra"]),
    ];
    for (mut schema, names) in rows {
        // As plugins send it.
        schema.as_object_mut().unwrap().entry("type").or_insert_with(|| "object".into());
        for dialect in ALL {
            let fit = fit(&schema, dialect);
            assert_eq!(fit.omitted_tools(), [], "{schema}");
            let fitted = &fit.tools()[0].parameters;
            assert!(acceptance::is_accepted_schema(fitted, dialect), "{fitted}");
            let mut told: Vec<&str> =
                fitted["properties"].as_object().unwrap().keys().map(String::as_str).collect();
            let mut want = names.to_vec();
            told.sort_unstable();
            want.sort_unstable();
            assert_eq!(told, want, "{schema}");
        }
    }
}

#[test]
fn a_description_that_is_too_long_goes_on_with_the_parameters() {
    let dialect = SchemaDialect { description_chars_max: Some(12), ..SchemaDialect::GENEROUS };
    let parameters = json!({ "type": "object", "properties": {}, "description": "Args." });
    let long = ModelToolDefinition {
        description: "Größe müßte man haben.".to_owned(),
        ..tool(parameters)
    };
    let fit = FittedTools::new(&[long], dialect);
    let [fitted] = fit.tools() else { panic!("not one tool") };
    assert_eq!(fitted.description, "Größe müßte");
    assert_eq!(fitted.parameters["description"], json!("man haben.\n\nArgs."));
}
