//! The resources and prompts.

use sallyport_sdk::{
    CallContext, Content, ToolError,
    prompts::{Arguments, Filled, Prompt, Prompts, Role},
    resources::{Contents, Resource, Resources, Template},
};

use crate::DOT_PNG;

/// The addresses of a template, before and after the part that is filled in.
const TEMPLATE: (&str, &str) = ("test://template/", "/data");

/// The media type of a page of a tool.
const PAGE_TYPE: &str = "text/html;profile=mcp-app";

/// The page of a tool, one that is of another type when it is read, and one of another plugin.
const PAGES: [(&str, &str); 3] = [
    ("ui://reference/echo", PAGE_TYPE),
    ("ui://reference/greet", "text/html"),
    ("ui://clock/get_time", PAGE_TYPE),
];

/// Two resources, pages and a template.
pub(crate) enum Texts {}

impl Resources for Texts {
    fn list(_context: &CallContext) -> Result<Vec<Resource>, ToolError> {
        let pages = PAGES.map(|(uri, _)| Resource::new(uri, "page").media_type(PAGE_TYPE));
        let texts = vec![
            Resource::new("test://static-text", "static-text")
                .title("A text")
                .description("A text that never changes.")
                .media_type("text/plain"),
            Resource::new("test://static-binary", "static-binary")
                .description("A picture that never changes.")
                .media_type("image/png")
                .size_bytes(DOT_PNG.len() as u64),
            Resource::new("test://watched-resource", "watched")
                .description("A text to subscribe to.")
                .media_type("text/plain"),
        ];
        Ok(texts.into_iter().chain(pages).collect())
    }

    fn templates(_context: &CallContext) -> Result<Vec<Template>, ToolError> {
        let (before, after) = TEMPLATE;
        Ok(vec![
            Template::new(format!("{before}{{id}}{after}"), "data")
                .description("The data of an id.")
                .media_type("application/json"),
        ])
    }

    fn read(uri: &str, _context: &CallContext) -> Result<Vec<Contents>, ToolError> {
        let contents = match uri {
            "test://static-text" => {
                let text = "This is the content of the static text resource.";
                Contents::text(uri, "text/plain", text)
            }
            "test://static-binary" => Contents::binary(uri, "image/png", DOT_PNG.to_vec()),
            "test://watched-resource" => Contents::text(uri, "text/plain", "Nothing new."),
            _ => match PAGES.iter().find(|(page, _)| *page == uri) {
                Some((_, media_type)) => Contents::text(uri, *media_type, "<!doctype html>"),
                None => filled_template(uri)?,
            },
        };
        Ok(vec![contents])
    }
}

fn filled_template(uri: &str) -> Result<Contents, ToolError> {
    let (before, after) = TEMPLATE;
    let id = uri.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
    let id = id.ok_or_else(|| ToolError::NotFound(format!("there is no {uri}")))?;
    let text = format!(r#"{{"id":"{id}","templateTest":true,"data":"Data for ID: {id}"}}"#);
    Ok(Contents::text(uri, "application/json", text))
}

/// The prompts.
pub(crate) enum Greetings {}

impl Prompts for Greetings {
    fn list(_context: &CallContext) -> Result<Vec<Prompt>, ToolError> {
        Ok(vec![
            Prompt::new("test_simple_prompt").description("A text."),
            Prompt::new("test_prompt_with_arguments")
                .description("A text with two arguments.")
                .needs("arg1", "The first argument.")
                .needs("arg2", "The second argument."),
            Prompt::new("test_prompt_with_embedded_resource")
                .description("A text with a resource.")
                .needs("resourceUri", "The address of the resource."),
            Prompt::new("test_prompt_with_image").description("A text with a picture."),
        ])
    }

    fn get(name: &str, arguments: &Arguments, _: &CallContext) -> Result<Filled, ToolError> {
        let argument = |name: &str| arguments.get(name).cloned().unwrap_or_default();
        Ok(match name {
            "test_simple_prompt" => Filled::new().user("This is a simple prompt for testing."),
            "test_prompt_with_arguments" => {
                let (one, two) = (argument("arg1"), argument("arg2"));
                Filled::new().user(format!("Prompt with arguments: arg1='{one}', arg2='{two}'"))
            }
            "test_prompt_with_embedded_resource" => {
                let text = "Embedded resource content for testing.";
                let contents = Contents::text(argument("resourceUri"), "text/plain", text);
                Filled::new()
                    .message(Role::User, Content::Embedded(contents))
                    .user("Please process the embedded resource above.")
            }
            "test_prompt_with_image" => {
                let (media_type, data) = ("image/png".to_owned(), DOT_PNG.to_vec());
                Filled::new()
                    .message(Role::User, Content::Image { media_type, data })
                    .user("Please analyze the image above.")
            }
            _ => return Err(ToolError::NotFound(format!("there is no prompt {name}"))),
        })
    }
}
