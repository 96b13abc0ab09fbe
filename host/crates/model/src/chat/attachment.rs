//! A file that the user sends with a message.

use std::sync::Arc;

use data_encoding::BASE64;
use sallyport_contract::text;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// A file for the model to read. Cloning shares the bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileAttachment {
    /// The file's name, without its folder.
    pub name: String,
    /// The media type, such as `image/png`.
    pub media_type: String,
    /// The content of the file.
    #[serde(serialize_with = "to_base64", deserialize_with = "from_base64")]
    pub data: Arc<[u8]>,
}

/// The kinds of file, by how a model reads them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttachmentKind<'a> {
    /// Text, with its content.
    Text(&'a str),
    /// A picture.
    Image,
    /// Sound.
    Audio,
    /// Any other file.
    Other,
}

impl FileAttachment {
    /// Returns the kind of the file. Text that is not valid UTF-8 is `AttachmentKind::Other`.
    pub fn kind(&self) -> AttachmentKind<'_> {
        match self.essence().split_once('/') {
            Some((family, kind)) if is_text_type(family, kind) => {
                std::str::from_utf8(&self.data).map_or(AttachmentKind::Other, AttachmentKind::Text)
            }
            Some(("image", _)) => AttachmentKind::Image,
            Some(("audio", _)) => AttachmentKind::Audio,
            _ => AttachmentKind::Other,
        }
    }

    /// Returns `wav` or `mp3`, the audio formats that models take; `None` for any other file.
    pub fn audio_format(&self) -> Option<&'static str> {
        match self.essence() {
            "audio/wav" | "audio/wave" | "audio/x-wav" | "audio/vnd.wave" => Some("wav"),
            "audio/mpeg" | "audio/mp3" => Some("mp3"),
            _ => None,
        }
    }

    /// Describes the file as text, for a model or a protocol that cannot take it unchanged. A text
    /// file is inlined; for any other file, the text states that it was left out.
    pub fn describe_as_text(&self) -> String {
        let name = text::escape_line(&self.name);
        match self.kind() {
            AttachmentKind::Text(content) => format!("<file name=\"{name}\">\n{content}\n</file>"),
            _ => {
                let (kind, bytes) = (text::escape_line(&self.media_type), self.data.len());
                let file = format!("the file \"{name}\" ({kind}, {bytes} bytes)");
                format!("[{file} was left out: it cannot be sent to this model]")
            }
        }
    }

    /// Returns the file as a `data:` URL.
    pub fn data_url(&self) -> String {
        format!("data:{};base64,{}", self.essence(), self.base64())
    }

    /// Returns the media type without its parameters.
    pub fn essence(&self) -> &str {
        self.media_type.split(';').next().unwrap_or_default().trim()
    }

    /// Returns the content in base64, the form that JSON carries.
    pub fn base64(&self) -> String {
        BASE64.encode(&self.data)
    }
}

/// Returns true for text types, many of which are not under `text/`.
fn is_text_type(family: &str, kind: &str) -> bool {
    let words = ["json", "xml", "yaml", "x-yaml", "toml", "javascript", "x-sh", "sql"];
    let ends = ["+json", "+xml", "+yaml"];
    family == "text"
        || ends.iter().any(|end| kind.ends_with(end))
        || (family == "application" && words.contains(&kind))
}

fn to_base64<S: Serializer>(data: &Arc<[u8]>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&BASE64.encode(data))
}

fn from_base64<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<[u8]>, D::Error> {
    let text = String::deserialize(deserializer)?;
    BASE64.decode(text.as_bytes()).map(Arc::from).map_err(D::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(media_type: &str, data: &[u8]) -> FileAttachment {
        FileAttachment {
            name: "a\nb".to_owned(),
            media_type: media_type.to_owned(),
            data: data.into(),
        }
    }

    #[test]
    fn kinds_are_told_by_the_media_type() {
        let rows = [
            ("text/plain", AttachmentKind::Text("x")),
            ("text/plain; charset=utf-8", AttachmentKind::Text("x")),
            ("application/json", AttachmentKind::Text("x")),
            ("application/ld+json", AttachmentKind::Text("x")),
            ("image/svg+xml", AttachmentKind::Text("x")),
            ("image/png", AttachmentKind::Image),
            ("audio/ogg", AttachmentKind::Audio),
            ("application/pdf", AttachmentKind::Other),
            ("image", AttachmentKind::Other),
            ("", AttachmentKind::Other),
        ];
        for (media_type, want) in rows {
            assert_eq!(file(media_type, b"x").kind(), want, "{media_type}");
        }
        assert_eq!(file("text/plain", b"\xff").kind(), AttachmentKind::Other);
    }

    #[test]
    fn what_cannot_go_along_is_told_in_words() {
        let inlined = file("text/plain", b"words\n").describe_as_text();
        assert!(inlined.starts_with("<file name=\"a") && inlined.contains("words\n"), "{inlined}");
        let left_out = file("application/zip", b"PK").describe_as_text();
        assert!(left_out.contains("left out") && left_out.contains("2 bytes"), "{left_out}");
        assert!(!left_out.contains('\n'));
    }
}
