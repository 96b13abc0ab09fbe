//! The OpenAPI document. Its schemas are those of the types that are sent, which the other front
//! ends publish, too.

use schemars::{Schema, SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value, json};

use crate::{
    access::RouteAccess,
    idempotency::KEY_HEADER,
    problem::{PROBLEM_TYPE, Problem},
    route_spec::{RouteAnswer, RouteSpec},
};

/// The version of the format.
const OPENAPI_VERSION: &str = "3.1.0";

/// Where the schemas are in the document.
const SCHEMAS_PATH: &str = "/components/schemas";

/// Describes what the names in paths stand for.
const PATH_PARAMETERS: [(&str, &str); 4] = [
    ("session_id", "The ID of a session."),
    ("approval_id", "The ID of a question."),
    ("tool", "A tool, as PLUGIN.TOOL."),
    ("plugin", "A plugin, by its name."),
];

/// Describes these routes as an OpenAPI document.
pub(crate) fn describe_routes(routes: &[RouteSpec]) -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.definitions_path = SCHEMAS_PATH.into();
    settings.meta_schema = None;
    let mut generator = SchemaGenerator::new(settings);
    let mut paths = Map::new();
    for route in routes {
        let operation = operation(route, &mut generator);
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method.as_str().to_ascii_lowercase()] = operation;
    }
    let problem = generator.subschema_for::<Problem>();
    json!({
        "openapi": OPENAPI_VERSION,
        "info": {
            "title": "Sallyport",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Sessions, tools, approvals and the audit of a host, for many users.",
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "security": [{ "token": [] }],
        "paths": paths,
        "components": {
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
            "responses": { "problem": {
                "description": "What went wrong.",
                "content": { PROBLEM_TYPE: { "schema": problem } },
            } },
            "schemas": generator.take_definitions(true),
        },
    })
}

fn operation(route: &RouteSpec, generator: &mut SchemaGenerator) -> Value {
    let mut responses = Map::new();
    for answer in &route.answers {
        responses.insert(answer.status.to_string(), response(answer, generator));
    }
    for range in ["4XX", "5XX"] {
        responses.insert(range.to_owned(), json!({ "$ref": "#/components/responses/problem" }));
    }
    let mut operation = json!({
        "operationId": route.name,
        "summary": route.summary,
        "parameters": parameters(route, generator),
        "responses": responses,
        "x-role": match route.access {
            RouteAccess::Open => Value::Null,
            RouteAccess::Role(role) => json!(role),
        },
    });
    if route.access == RouteAccess::Open {
        operation["security"] = json!([]);
    }
    if let Some(body) = route.body {
        let schema = body(generator);
        let content = json!({ "application/json": { "schema": schema } });
        operation["requestBody"] = json!({ "required": true, "content": content });
    }
    operation
}

fn response(answer: &RouteAnswer, generator: &mut SchemaGenerator) -> Value {
    let content = answer.content.iter().map(|(media_type, schema)| {
        ((*media_type).to_owned(), json!({ "schema": schema(generator) }))
    });
    let content: Map<String, Value> = content.collect();
    match content.is_empty() {
        true => json!({ "description": "Done." }),
        false => json!({ "description": "Done.", "content": content }),
    }
}

fn parameters(route: &RouteSpec, generator: &mut SchemaGenerator) -> Vec<Value> {
    let in_path = PATH_PARAMETERS
        .into_iter()
        .filter(|(name, _)| route.path.contains(&format!("{{{name}}}")))
        .map(|(name, words)| parameter("path", name, words, json!({ "type": "string" })));
    let mut parameters: Vec<Value> = in_path.collect();
    if let Some(query) = route.query {
        parameters.extend(query_parameters(query(generator)));
    }
    if route.takes_key {
        let words = "A text of your choice. Repeated with the same key, the request is done once.";
        let schema = json!({ "type": "string", "minLength": 1, "maxLength": 255 });
        parameters.push(parameter("header", KEY_HEADER, words, schema));
    }
    if route.takes_event_id {
        let words = "The last event that you have; the stream begins with the next one.";
        parameters.push(parameter("header", "last-event-id", words, json!({ "type": "string" })));
    }
    parameters
}

fn parameter(place: &str, name: &str, words: &str, schema: Value) -> Value {
    json!({
        "in": place,
        "name": name,
        "description": words,
        "required": place == "path",
        "schema": schema,
    })
}

/// Turns the fields of an object into parameters.
fn query_parameters(schema: Schema) -> Vec<Value> {
    let fields = schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
    let parameters = fields.into_iter().map(|(name, mut schema)| {
        let words = schema.as_object_mut().and_then(|fields| fields.remove("description"));
        let words = words.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned();
        parameter("query", &name, &words, schema)
    });
    parameters.collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::routes::{all_routes, openapi_document};

    #[test]
    fn every_route_is_described() {
        let routes = all_routes();
        let names: BTreeSet<&str> = routes.iter().map(|route| route.name).collect();
        assert_eq!(names.len(), routes.len(), "a name is used twice, or missing: {names:?}");
        for route in &routes {
            assert!(route.summary.ends_with('.') && !route.answers.is_empty(), "{}", route.path);
            let named = route.path.matches('{').count();
            let described = PATH_PARAMETERS
                .iter()
                .filter(|(name, _)| route.path.contains(&format!("{{{name}}}")));
            assert_eq!(described.count(), named, "{}", route.path);
        }
    }

    /// A problem without a list of errors was one that the document forbade.
    #[test]
    fn what_is_left_out_of_a_problem_is_not_required() {
        let document = openapi_document();
        let required = &document["components"]["schemas"]["Problem"]["required"];
        assert_eq!(*required, json!(["type", "status", "title"]));
    }

    #[test]
    fn every_reference_leads_somewhere() {
        let document = openapi_document();
        let mut references = BTreeSet::new();
        collect_references(&document, &mut references);
        assert!(references.len() > 20, "{references:?}");
        for reference in references {
            let target = document.pointer(reference.strip_prefix('#').unwrap());
            assert!(target.is_some(), "{reference}");
        }
    }

    fn collect_references(value: &Value, references: &mut BTreeSet<String>) {
        match value {
            Value::Object(fields) => {
                if let Some(Value::String(reference)) = fields.get("$ref") {
                    references.insert(reference.clone());
                }
                fields.values().for_each(|field| collect_references(field, references));
            }
            Value::Array(items) => {
                items.iter().for_each(|item| collect_references(item, references));
            }
            _ => {}
        }
    }
}
