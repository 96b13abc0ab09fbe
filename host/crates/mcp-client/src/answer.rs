//! The result of a call, in the types of the host.

use data_encoding::BASE64;
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents as WireContents};
use sallyport_contract::{ContentPart, ResourceContents, ResourceData, ToolOutput};
use serde_json::Value;

/// The answer of a server to a call.
#[derive(Debug, Clone, PartialEq)]
pub enum ServerAnswer {
    /// The tool's result.
    Completed(ToolOutput),
    /// The tool reports that it failed.
    Failed(String),
}

impl From<CallToolResult> for ServerAnswer {
    fn from(result: CallToolResult) -> Self {
        let parts = result.content.into_iter().map(content_part).collect();
        if result.is_error == Some(true) {
            return Self::Failed(join_texts(parts));
        }
        Self::Completed(match result.structured_content {
            Some(data) => ToolOutput { content: without_copy(parts, &data), data, speech: None },
            None => output_without_data(parts),
        })
    }
}

/// The length of an output in bytes, as far as it counts for a limit.
pub fn output_bytes(output: &ToolOutput) -> u64 {
    let parts = output.content.iter().map(|part| match part {
        ContentPart::Text { text } => text.len(),
        ContentPart::Image { data, .. } | ContentPart::Audio { data, .. } => data.len(),
        ContentPart::Resource { uri, title, .. } => {
            uri.len() + title.as_ref().map_or(0, String::len)
        }
        ContentPart::Embedded(resource) => resource.byte_count(),
    });
    (parts.sum::<usize>() + output.data.to_string().len()) as u64
}

/// A single text is the data, because a model reads data first.
fn output_without_data(mut parts: Vec<ContentPart>) -> ToolOutput {
    let data = match parts.as_mut_slice() {
        [ContentPart::Text { text }] => Value::String(std::mem::take(text)),
        _ => return ToolOutput { content: parts, ..ToolOutput::default() },
    };
    ToolOutput { data, ..ToolOutput::default() }
}

/// Servers repeat structured data as text, for clients that read only text.
fn without_copy(mut parts: Vec<ContentPart>, data: &Value) -> Vec<ContentPart> {
    parts.retain(|part| match part {
        ContentPart::Text { text } => {
            serde_json::from_str::<Value>(text).map_or(true, |copy| copy != *data)
        }
        _ => true,
    });
    parts
}

fn join_texts(parts: Vec<ContentPart>) -> String {
    let texts = parts.into_iter().filter_map(|part| match part {
        ContentPart::Text { text } => Some(text),
        _ => None,
    });
    let text = texts.collect::<Vec<_>>().join("\n");
    if text.trim().is_empty() { "the server gave no reason".to_owned() } else { text }
}

fn content_part(block: ContentBlock) -> ContentPart {
    match block {
        ContentBlock::Text(text) => ContentPart::Text { text: text.text },
        ContentBlock::Image(image) => decode(&image.data, "image", |data| ContentPart::Image {
            media_type: image.mime_type.clone(),
            data,
        }),
        ContentBlock::Audio(audio) => decode(&audio.data, "sound", |data| ContentPart::Audio {
            media_type: audio.mime_type.clone(),
            data,
        }),
        ContentBlock::Resource(embedded) => resource_part(embedded.resource),
        ContentBlock::ResourceLink(link) => ContentPart::Resource {
            title: link.title.or(Some(link.name)),
            uri: link.uri,
            media_type: link.mime_type,
        },
        _ => unknown_part(),
    }
}

/// A kind of content that a newer version of the protocol may have.
fn unknown_part() -> ContentPart {
    ContentPart::Text { text: "[a part of an unknown kind]".to_owned() }
}

/// A picture or sound, or a remark in its place, so that the rest of the result is not lost.
fn decode(base64: &str, what: &str, part: impl FnOnce(Vec<u8>) -> ContentPart) -> ContentPart {
    match BASE64.decode(base64.as_bytes()) {
        Ok(data) => part(data),
        Err(_) => ContentPart::Text { text: format!("[the {what} is not valid base64]") },
    }
}

fn resource_part(resource: WireContents) -> ContentPart {
    match resource {
        WireContents::TextResourceContents { uri, mime_type, text, .. } => {
            let data = ResourceData::Text(text);
            ContentPart::Embedded(ResourceContents { uri, media_type: mime_type, data })
        }
        WireContents::BlobResourceContents { uri, mime_type, blob, .. } => {
            decode(&blob, "resource", |data| {
                let data = ResourceData::Binary(data);
                ContentPart::Embedded(ResourceContents { uri, media_type: mime_type, data })
            })
        }
        _ => unknown_part(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(result: Value, want: ServerAnswer) {
        let result: CallToolResult = serde_json::from_value(result).unwrap();
        assert_eq!(ServerAnswer::from(result), want);
    }

    fn completed(data: Value, content: Vec<ContentPart>) -> ServerAnswer {
        ServerAnswer::Completed(ToolOutput { data, content, speech: None })
    }

    fn text(text: &str) -> ContentPart {
        ContentPart::Text { text: text.to_owned() }
    }

    #[test]
    fn results_keep_their_parts() {
        let png = ContentPart::Image { media_type: "image/png".into(), data: vec![1, 2] };
        let link = |title: Option<&str>| ContentPart::Resource {
            uri: "file:///a".into(),
            media_type: None,
            title: title.map(str::to_owned),
        };
        let embedded = |data| {
            let uri = "file:///a".into();
            ContentPart::Embedded(ResourceContents { uri, media_type: None, data })
        };
        let image = json!({"type": "image", "data": "AQI=", "mimeType": "image/png"});
        let rows = [
            (json!([{"type": "text", "text": "hi"}]), completed(json!("hi"), vec![])),
            (json!([]), completed(Value::Null, vec![])),
            (
                json!([{"type": "text", "text": "a"}, image]),
                completed(Value::Null, vec![text("a"), png]),
            ),
            (
                json!([{"type": "image", "data": "!", "mimeType": "image/png"}]),
                completed(json!("[the image is not valid base64]"), vec![]),
            ),
            (
                json!([{"type": "resource_link", "uri": "file:///a", "name": "a"}]),
                completed(Value::Null, vec![link(Some("a"))]),
            ),
            (
                json!([{"type": "resource", "resource": {"uri": "file:///a", "blob": "AA=="}}]),
                completed(Value::Null, vec![embedded(ResourceData::Binary(vec![0]))]),
            ),
            (
                json!([{"type": "resource", "resource": {"uri": "file:///a", "text": "hi"}}]),
                completed(Value::Null, vec![embedded(ResourceData::Text("hi".into()))]),
            ),
        ];
        for (content, want) in rows {
            check(json!({"content": content}), want);
        }
    }

    #[test]
    fn structured_data_is_not_repeated() {
        let data = json!({"n": 1});
        let content = json!([{"type": "text", "text": "{\"n\":1}"}, {"type": "text", "text": "x"}]);
        check(
            json!({"content": content, "structuredContent": data}),
            completed(data, vec![text("x")]),
        );
    }

    #[test]
    fn a_failure_has_its_reason() {
        let failed = |text: &str| ServerAnswer::Failed(text.to_owned());
        let content = json!([{"type": "text", "text": "no"}, {"type": "text", "text": "way"}]);
        check(json!({"content": content, "isError": true}), failed("no\nway"));
        check(json!({"content": [], "isError": true}), failed("the server gave no reason"));
    }
}
