//! Definitions by other authors, if they are available. Nothing in them may cause harm, and a tool
//! is found by its own description.

use std::path::Path;

use sallyport_model::{AssistantMessage, ModelToolDefinition, ToolIndex};
use serde_json::Value;

use crate::say;

/// The number of tools among which one is searched.
const AT_HAND: usize = 50;

/// Least share of tools that must be found, in percent.
const FOUND_PERCENT_MIN: usize = 80;

/// Sentences for every definition: commands, numbers, places, quotations, nonsense.
const SENTENCES: &[&str] = &[
    "calculate 5 and twenty with \"quoted text\" in New York, from /a/b.txt",
    "send bob@example.com 3.5 of https://example.com/x for 1 hour 30 minutes",
    "get all of them: one, two and three; not the last, please!",
    "with no details, in celsius, for tomorrow at 8",
    "東京 🎉 \u{202e} ' “ and",
];

fn definitions() -> Option<Vec<ModelToolDefinition>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../../shared/schemas/bfcl-functions.jsonl");
    let text = std::fs::read_to_string(path).ok()?;
    let definition = |line: &str| {
        let value: Value = serde_json::from_str(line).unwrap();
        ModelToolDefinition {
            name: value["name"].as_str().unwrap().to_owned(),
            description: value["description"].as_str().unwrap().to_owned(),
            parameters: value["parameters"].clone(),
        }
    };
    Some(text.lines().map(definition).collect())
}

fn first_sentence(text: &str) -> &str {
    text.split_once(". ").map_or(text, |(first, _)| first)
}

#[track_caller]
fn check_sound(message: &AssistantMessage, tools: &[ModelToolDefinition]) {
    assert!(message.text.is_empty() != message.calls.is_empty());
    for call in &message.calls {
        let tool = tools.iter().find(|tool| tool.name == call.name).unwrap();
        let arguments: Value = serde_json::from_str(&call.arguments).unwrap();
        let arguments = arguments.as_object().unwrap();
        for required in tool.parameters["required"].as_array().into_iter().flatten() {
            assert!(arguments.contains_key(required.as_str().unwrap()), "{call:?}");
        }
        for name in arguments.keys() {
            assert!(tool.parameters["properties"].get(name).is_some(), "{call:?}");
        }
    }
}

#[test]
fn every_definition_can_be_spoken_to() {
    let Some(tools) = definitions() else {
        println!("SKIPPED: there are no definitions beside the repository");
        return;
    };
    for (number, tool) in tools.iter().enumerate() {
        let alone = std::slice::from_ref(tool);
        check_sound(&say(&tool.name, alone), alone);
        check_sound(&say(&tool.description, alone), alone);
        let sentence = SENTENCES[number % SENTENCES.len()];
        check_sound(&say(&format!("{} {sentence}", tool.description), alone), alone);
    }
    for sentence in SENTENCES {
        check_sound(&say(sentence, &tools), &tools);
    }
}

#[test]
fn a_tool_is_found_by_its_own_description() {
    let Some(tools) = definitions() else {
        println!("SKIPPED: there are no definitions beside the repository");
        return;
    };
    let (mut found, mut asked, mut first_miss) = (0, 0, Vec::new());
    for at_hand in tools.chunks(AT_HAND) {
        let index = ToolIndex::new(at_hand);
        for tool in at_hand {
            let sentence = first_sentence(&tool.description);
            let best = index
                .find_tools(sentence)
                .first()
                .map(|found| at_hand[found.document].name.as_str());
            asked += 1;
            if best == Some(tool.name.as_str()) {
                found += 1;
            } else if first_miss.len() < 10 {
                first_miss.push(format!("{sentence:?}: {best:?}, not {:?}", tool.name));
            }
        }
    }
    println!("{found} of {asked} tools found by their own description, among {AT_HAND} each");
    println!("missed, for example:\n{}", first_miss.join("\n"));
    assert!(found * 100 > asked * FOUND_PERCENT_MIN);
}
