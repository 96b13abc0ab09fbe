//! Definitions by other authors, if they are beside the repository: each is offered to models under a
//! name that leads back to it, or is refused with a reason.
#![expect(clippy::print_stderr, reason = "the counts are what a reader wants to know")]

use std::{collections::BTreeSet, fs, os::unix::fs::PermissionsExt};

use sallyport_contract::{ToolId, mangle::NameTable};
use sallyport_model::{FittedTools, ModelToolDefinition, OmittedContent};
use serde_json::Value;

use crate::support::{Home, home::repository};

/// A home with a script for each definition.
fn home(definitions: &[String]) -> Home {
    definitions.iter().enumerate().fold(Home::new(), |home, (number, definition)| {
        let folder = format!("plugins/d{number:03}");
        let home = home
            .file(&format!("{folder}/definition.json"), definition.as_str())
            .file(&format!("{folder}/run.sh"), "#!/bin/sh\necho {}\n");
        let program = home.path(&format!("{folder}/run.sh"));
        fs::set_permissions(program, fs::Permissions::from_mode(0o755)).unwrap();
        home
    })
}

/// The ids of all tools that scripts have.
fn tool_ids(plugins: &Value) -> Vec<ToolId> {
    let scripts = plugins.as_array().unwrap().iter().filter(|plugin| plugin["kind"] == "script");
    let ids = scripts.flat_map(|plugin| {
        let name = plugin["name"].as_str().unwrap();
        let tools = plugin["tools"].as_array().unwrap().iter();
        tools.map(move |tool| format!("{name}.{}", tool.as_str().unwrap()).parse().unwrap())
    });
    ids.collect()
}

/// The definitions as models see them.
fn offered(listed: &Value) -> Vec<ModelToolDefinition> {
    let functions = listed.as_array().unwrap().iter().map(|tool| &tool["function"]);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let offered = functions.map(|function| ModelToolDefinition {
        name: text(&function["name"]),
        description: text(&function["description"]),
        parameters: function["parameters"].clone(),
    });
    offered.collect()
}

/// Replaces the types of other languages by those of JSON Schema.
fn use_standard_types(schema: &mut Value) {
    let standard = schema["type"].as_str().map(|kind| match kind {
        "dict" | "HashMap" | "Hashtable" => "object",
        "float" | "double" | "long" => "number",
        "tuple" | "list" | "ArrayList" | "Array" | "set" => "array",
        "String" | "char" | "any" => "string",
        "bool" | "Boolean" => "boolean",
        "byte" | "short" => "integer",
        other => other,
    });
    if let Some(standard) = standard.map(str::to_owned) {
        schema["type"] = standard.into();
    }
    match schema {
        Value::Object(fields) => fields.values_mut().for_each(use_standard_types),
        Value::Array(items) => items.iter_mut().for_each(use_standard_types),
        _ => {}
    }
}

fn with_standard_types(definition: &str) -> String {
    let mut definition: Value = serde_json::from_str(definition).unwrap();
    use_standard_types(&mut definition["parameters"]);
    definition.to_string()
}

/// Loads the definitions, and checks the names and the reasons. Returns how many are offered.
fn check(title: &str, definitions: &[String]) -> usize {
    let home = home(definitions);
    let plugins = home.run(&["plugin", "list", "--output", "json"]).json();
    let (ids, rejected) = (tool_ids(&plugins["plugins"]), plugins["rejected"].as_array().unwrap());
    // Several definitions of one name are one problem, which names all of their files.
    let listed = plugins.to_string();
    for number in 0..definitions.len() {
        assert!(listed.contains(&format!("/plugins/d{number:03}")), "{number} is not listed");
    }
    for problem in rejected {
        assert!(problem["message"].as_str().unwrap().len() > 20, "{problem}");
    }
    let table = NameTable::new(&ids).unwrap();
    let names: BTreeSet<&str> = table.model_names().collect();
    assert_eq!(names.len(), ids.len());
    for name in &names {
        assert!(table.resolve(name).is_some_and(|id| ids.contains(id)), "{name}");
    }
    let offered = offered(&home.run(&["tool", "list", "--output", "json"]).json());
    let of_scripts = offered.iter().filter(|tool| names.contains(tool.name.as_str()));
    assert_eq!(of_scripts.count(), ids.len());
    let fitted = FittedTools::with_strictest_dialect(&offered);
    for omitted in fitted.omitted_tools() {
        let OmittedContent::Tool { why, .. } = omitted else { panic!("{omitted:?}") };
        assert!(!why.is_empty(), "{omitted:?}");
    }
    eprintln!(
        "{} definitions {title}: {} offered, {} refused, {} left out for some provider",
        definitions.len(),
        ids.len(),
        rejected.len(),
        fitted.omitted_tools().len(),
    );
    rejected.iter().take(3).for_each(|problem| eprintln!("for example: {}", problem["message"]));
    ids.len()
}

#[test]
fn definitions_that_people_wrote_are_offered_or_refused_with_a_reason() {
    let path = repository().join("../shared/schemas/bfcl-functions.jsonl");
    let Ok(text) = fs::read_to_string(path) else {
        eprintln!("SKIPPED: there are no definitions beside the repository");
        return;
    };
    let definitions: Vec<String> = text.lines().map(str::to_owned).collect();
    // Their types are those of several languages, and not of JSON Schema.
    check("as they are written", &definitions);
    let standard: Vec<String> = text.lines().map(with_standard_types).collect();
    assert!(check("with the types of JSON Schema", &standard) > 0);
}
