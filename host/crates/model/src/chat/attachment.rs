//! A file that a person sends along with their words.

use std::sync::Arc;

use data_encoding::BASE64;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// A file for the model to look at. Cloning shares the bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attachment {
    /// The file's name, without its folder.
    pub name: String,
    /// Media type, such as `image/png`.
    pub media_type: String,
    /// The bytes of the file.
    #[serde(serialize_with = "to_base64", deserialize_with = "from_base64")]
    pub data: Arc<[u8]>,
}

/// What a model can do with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind<'a> {
    /// Read it.
    Text(&'a str),
    /// Look at it.
    Image,
    /// Hear it.
    Audio,
    /// Nothing that is known here.
    Other,
}

impl Attachment {
    /// What can be done with it. Text that is not UTF-8 is none.
    pub fn kind(&self) -> Kind<'_> {
        match self.media_type.split('/').next() {
            Some("image") => Kind::Image,
            Some("audio") => Kind::Audio,
            Some("text") => std::str::from_utf8(&self.data).map_or(Kind::Other, Kind::Text),
            _ => Kind::Other,
        }
    }

    /// The bytes in the form in which JSON carries them.
    pub fn base64(&self) -> String {
        BASE64.encode(&self.data)
    }
}

fn to_base64<S: Serializer>(data: &Arc<[u8]>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&BASE64.encode(data))
}

fn from_base64<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<[u8]>, D::Error> {
    let text = String::deserialize(deserializer)?;
    BASE64.decode(text.as_bytes()).map(Arc::from).map_err(D::Error::custom)
}
