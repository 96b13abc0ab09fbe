//! Speaks the plugin contract on plain bindings, without the SDK, so that it can break the contract
//! where the SDK would not. What it does stands in its settings: `setup` for the set-up, and the
//! name of the tool for a call.
#![expect(unsafe_code, reason = "the generated exports are functions with raw pointers")]

mod contract {
    wit_bindgen::generate!({
        path: "../../../wit",
        inline: "
            package test:raw;

            world raw {
                include sallyport:plugin/plugin@0.1.0;
                export sallyport:plugin/lifecycle@0.1.0;
                export sallyport:plugin/prompts@0.1.0;
                export sallyport:plugin/resources@0.1.0;
            }
        ",
        world: "test:raw/raw",
        generate_all,
    });
}

use contract::{
    exports::sallyport::plugin::{
        lifecycle::{self, SetupError},
        prompts, resources,
        tools::{self, CallContext, ToolError, ToolOutput, ToolSpec},
    },
    sallyport::plugin::{
        config,
        types::{Blob, Content, Hints, ResourceContents, ResourceData, ResourceLink, SignIn},
    },
};

/// Every tool promises an object with a number `n`, and most break the promise.
const OUTPUT: &str = r#"{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}"#;

/// The data that some tools return, word for word.
const DATA: [(&str, &str); 9] = [
    ("good", r#"{"n": 1}"#),
    ("no_json", "{n: 1}"),
    ("empty", ""),
    ("cut", r#"{"n": 1"#),
    ("twice", r#"{"n": 1, "n": 2}"#),
    ("not_a_number", r#"{"n": NaN}"#),
    ("two_documents", r#"{"n": 1} {"n": 2}"#),
    ("other_type", r#"{"n": "one"}"#),
    ("no_object", "[1, 2]"),
];

const ERRORS: [&str; 7] =
    ["invalid_arguments", "not_found", "denied", "auth_required", "unavailable", "failed", "other"];

const CONTENTS: [&str; 11] = [
    "text",
    "image",
    "audio",
    "link",
    "other_part",
    "broken_part",
    "embedded_text",
    "embedded_image",
    "embedded_audio",
    "embedded_bytes",
    "embedded_other",
];

struct Raw;

contract::export!(Raw with_types_in contract);

impl tools::Guest for Raw {
    fn list_tools() -> Vec<ToolSpec> {
        let data = DATA.iter().map(|(name, _)| spec(name, "data_", Some(OUTPUT)));
        let errors = ERRORS.iter().map(|name| spec(name, "error_", None));
        let contents = CONTENTS.iter().map(|name| spec(name, "content_", None));
        data.chain(errors).chain(contents).chain([spec("context", "", None)]).collect()
    }

    fn call_tool(context: CallContext, name: String, _: String) -> Result<ToolOutput, ToolError> {
        match name.split_once('_') {
            None => Ok(output(&told(&context), Vec::new())),
            Some(("data", name)) => Ok(output(data(name), Vec::new())),
            Some(("error", name)) => Err(error(name)),
            Some(("content", name)) => Ok(output("{}", vec![content(name)])),
            _ => Err(ToolError::NotFound(name)),
        }
    }
}

impl lifecycle::Guest for Raw {
    fn setup() -> Result<(), SetupError> {
        let told = config::get("setup").unwrap_or_default();
        match told.trim_matches('"') {
            "missing-settings" => Err(SetupError::MissingSettings(vec!["account".to_owned()])),
            "unavailable" => Err(SetupError::Unavailable("the sea is rough".to_owned())),
            "other" => Err(SetupError::Other(r#"{"message":"something new"}"#.to_owned())),
            "traps" => core::arch::wasm32::unreachable(),
            "loops" => loop {
                std::hint::black_box(0);
            },
            _ => Ok(()),
        }
    }

    fn teardown() {
        if config::get("teardown").is_some() {
            core::arch::wasm32::unreachable()
        }
    }
}

/// What nothing calls yet: that a component with these exports is a plugin like any other.
impl prompts::Guest for Raw {
    fn list_prompts(_: CallContext, _: Option<String>) -> Result<prompts::PromptPage, ToolError> {
        Ok(prompts::PromptPage { prompts: Vec::new(), next: None, extra: None })
    }

    fn get_prompt(_: CallContext, name: String, _: String) -> Result<prompts::Prompt, ToolError> {
        Err(ToolError::NotFound(name))
    }
}

impl resources::Guest for Raw {
    fn list_resources(
        _: CallContext,
        _: Option<String>,
    ) -> Result<resources::ResourcePage, ToolError> {
        Ok(resources::ResourcePage { resources: Vec::new(), next: None, extra: None })
    }

    fn list_templates(
        _: CallContext,
        _: Option<String>,
    ) -> Result<resources::TemplatePage, ToolError> {
        Ok(resources::TemplatePage { templates: Vec::new(), next: None, extra: None })
    }

    fn read_resource(_: CallContext, uri: String) -> Result<Vec<ResourceContents>, ToolError> {
        Err(ToolError::NotFound(uri))
    }
}

fn spec(name: &str, group: &str, output: Option<&str>) -> ToolSpec {
    ToolSpec {
        name: format!("{group}{name}"),
        title: (name == "context").then(|| "  Who asks\u{202e}  ".to_owned()),
        description: format!("Answers with {name}."),
        parameters: r#"{"type":"object"}"#.to_owned(),
        output: output.map(str::to_owned),
        hints: Hints {
            read_only: None,
            destructive: None,
            idempotent: None,
            open_world: None,
            extra: None,
        },
        extra: None,
    }
}

fn data(name: &str) -> &'static str {
    DATA.iter().find(|(own, _)| *own == name).map_or("null", |(_, data)| data)
}

fn error(name: &str) -> ToolError {
    let text = format!("the words of {name}");
    match name {
        "invalid_arguments" => ToolError::InvalidArguments(text),
        "not_found" => ToolError::NotFound(text),
        "denied" => ToolError::Denied(text),
        "auth_required" => ToolError::AuthRequired(SignIn {
            message: text,
            connection: Some("google-mail".to_owned()),
            scopes: vec!["send".to_owned(), "read".to_owned()],
            extra: None,
        }),
        "unavailable" => ToolError::Unavailable(text),
        "other" => ToolError::Other(r#"{"kind":"odd","message":"the words of other"}"#.to_owned()),
        _ => ToolError::Failed(text),
    }
}

fn content(name: &str) -> Content {
    let blob = |media_type: &str| Blob {
        media_type: media_type.to_owned(),
        data: vec![0, 1, 2],
        name: Some("a.bin".to_owned()),
        extra: None,
    };
    match name {
        "image" => Content::Image(blob("image/png")),
        "audio" => Content::Audio(blob("audio/ogg")),
        "link" => Content::Link(ResourceLink {
            uri: "https://example.com/a".to_owned(),
            media_type: Some("text/html".to_owned()),
            title: None,
            description: Some("A page.".to_owned()),
            extra: None,
        }),
        "embedded_text" => embedded("text/plain", ResourceData::Text("held words".to_owned())),
        "embedded_image" => embedded("image/png", ResourceData::Binary(vec![0, 1, 2])),
        "embedded_audio" => embedded("audio/ogg", ResourceData::Binary(vec![0, 1, 2])),
        "embedded_bytes" => embedded("application/zip", ResourceData::Binary(vec![0, 1, 2])),
        "embedded_other" => embedded("a/b", ResourceData::Other(r#"{"later":1}"#.to_owned())),
        "other_part" => Content::Other(r#"{"type":"chart","points":[1,2]}"#.to_owned()),
        "broken_part" => Content::Other("{".to_owned()),
        _ => Content::Text("some words".to_owned()),
    }
}

fn embedded(media_type: &str, data: ResourceData) -> Content {
    let (uri, media_type) = ("raw://held".to_owned(), Some(media_type.to_owned()));
    Content::Embedded(ResourceContents { uri, media_type, data, extra: None })
}

/// Where a call comes from, as JSON.
fn told(context: &CallContext) -> String {
    let CallContext { call_id, session_id, user_id, conversation_id, deadline_ms, .. } = context;
    let conversation = conversation_id.as_ref().map_or("null".to_owned(), |id| format!("{id:?}"));
    format!(
        r#"{{"call":{call_id:?},"session":{session_id:?},"user":{user_id:?},"conversation":{conversation},"has_deadline":{}}}"#,
        deadline_ms.is_some(),
    )
}

fn output(data: &str, content: Vec<Content>) -> ToolOutput {
    ToolOutput { data: data.to_owned(), content, speech: None, extra: None }
}
