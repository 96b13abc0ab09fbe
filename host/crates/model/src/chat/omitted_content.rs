//! The parts of a request that a model does not receive.

use std::fmt;

use sallyport_contract::text;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Something that the model's provider does not accept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OmittedContent {
    /// A tool whose parameters have no form that the provider accepts.
    Tool {
        /// The name that the model would see.
        name: String,
        /// The reason, for the user.
        why: String,
    },
    /// A file of a type that the provider does not accept. The model reads that the file was left
    /// out.
    File {
        /// Its name.
        name: String,
        /// Its media type.
        media_type: String,
        /// Its length in bytes.
        bytes: usize,
    },
}

impl fmt::Display for OmittedContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tool { name, why } => {
                let name = text::escape_line(name);
                write!(f, "the model is not told of the tool {name}: {why}")
            }
            Self::File { name, media_type, bytes } => {
                let (name, kind) = (text::escape_line(name), text::escape_line(media_type));
                write!(
                    f,
                    "the model does not see the file {name:?} ({kind}, {bytes} bytes), because \
                     its provider takes no files of this type"
                )
            }
        }
    }
}
