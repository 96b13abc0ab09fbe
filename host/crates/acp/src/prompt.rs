//! The prompt of a client as the input of a turn.

use data_encoding::BASE64;
use sallyport_model::{FileAttachment, UserInputMessage};
use serde::Deserialize;

use crate::rpc::RpcError;

/// The type of a file that the client does not describe.
const UNKNOWN_TEXT_TYPE: &str = "text/plain";

/// A part of a prompt.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum ContentBlock {
    Text {
        text: String,
    },
    #[serde(rename_all = "camelCase")]
    Image {
        data: String,
        mime_type: String,
        uri: Option<String>,
    },
    #[serde(rename_all = "camelCase")]
    Audio {
        data: String,
        mime_type: String,
    },
    ResourceLink {
        uri: String,
    },
    Resource {
        resource: EmbeddedResource,
    },
}

/// A file whose content is part of the prompt.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EmbeddedResource {
    uri: String,
    mime_type: Option<String>,
    text: Option<String>,
    blob: Option<String>,
}

/// Returns the input. A link becomes a mention in the text: only a tool with a grant can read it.
pub(crate) fn input_from_blocks(blocks: Vec<ContentBlock>) -> Result<UserInputMessage, RpcError> {
    let mut input = UserInputMessage::default();
    for block in blocks {
        match block {
            ContentBlock::Text { text } => input.text += &text,
            ContentBlock::ResourceLink { uri } => input.text += &mention(&uri),
            ContentBlock::Image { data, mime_type, uri } => {
                let name = uri.unwrap_or_else(|| "image".to_owned());
                input.attachments.push(binary_file(name, mime_type, &data)?);
            }
            ContentBlock::Audio { data, mime_type } => {
                input.attachments.push(binary_file("audio".to_owned(), mime_type, &data)?);
            }
            ContentBlock::Resource { resource } => {
                input.text += &mention(&resource.uri);
                input.attachments.push(resource.into_file()?);
            }
        }
    }
    Ok(input)
}

/// The words for a file, apart from what stands before and after.
fn mention(uri: &str) -> String {
    format!(" @{} ", uri.strip_prefix("file://").unwrap_or(uri))
}

fn binary_file(name: String, media_type: String, data: &str) -> Result<FileAttachment, RpcError> {
    let data = BASE64.decode(data.as_bytes());
    let data = data.map_err(|_| RpcError::invalid_params(format!("{name} is not base64")))?;
    Ok(FileAttachment { name, media_type, data: data.into() })
}

impl EmbeddedResource {
    fn into_file(self) -> Result<FileAttachment, RpcError> {
        let Self { uri, mime_type, text, blob } = self;
        let media_type = mime_type.unwrap_or_else(|| UNKNOWN_TEXT_TYPE.to_owned());
        match (text, blob) {
            // Whatever type a text is said to have, the model can read it.
            (Some(text), _) => Ok(FileAttachment {
                name: uri,
                media_type: UNKNOWN_TEXT_TYPE.to_owned(),
                data: text.into_bytes().into(),
            }),
            (None, Some(blob)) => binary_file(uri, media_type, &blob),
            (None, None) => {
                Err(RpcError::invalid_params(format!("{uri} has neither text nor blob")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn input(blocks: Value) -> Result<UserInputMessage, RpcError> {
        input_from_blocks(serde_json::from_value(blocks).unwrap())
    }

    #[test]
    fn every_part_of_a_prompt_reaches_the_model() {
        let read = input(json!([
            { "type": "text", "text": "look at" },
            { "type": "resource_link", "name": "a.rs", "uri": "file:///p/a.rs" },
            { "type": "text", "text": "and" },
            { "type": "resource", "resource": { "uri": "file:///p/b.rs", "mimeType": "text/x-rust", "text": "fn b" } },
            { "type": "image", "data": "UE5H", "mimeType": "image/png" },
            { "type": "audio", "data": "V0FW", "mimeType": "audio/wav" },
            { "type": "resource", "resource": { "uri": "c.bin", "mimeType": "application/zip", "blob": "UEs=" } },
        ]))
        .unwrap();
        assert_eq!(read.text, "look at @/p/a.rs and @/p/b.rs  @c.bin ");
        let files: Vec<(&str, &str, &[u8])> = read
            .attachments
            .iter()
            .map(|file| (file.name.as_str(), file.media_type.as_str(), &*file.data))
            .collect();
        assert_eq!(
            files,
            [
                ("file:///p/b.rs", "text/plain", &b"fn b"[..]),
                ("image", "image/png", b"PNG"),
                ("audio", "audio/wav", b"WAV"),
                ("c.bin", "application/zip", b"PK"),
            ]
        );
    }

    #[test]
    fn a_part_that_cannot_be_read_refuses_the_prompt() {
        for block in [
            json!({ "type": "image", "data": "not base64!", "mimeType": "image/png" }),
            json!({ "type": "resource", "resource": { "uri": "a" } }),
        ] {
            assert!(input(json!([block])).is_err(), "{block}");
        }
    }
}
