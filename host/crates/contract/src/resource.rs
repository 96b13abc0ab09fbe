//! Resources: texts and files that a plugin offers under addresses of its own.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A question to a plugin that offers resources.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "ask", rename_all = "kebab-case")]
pub enum ResourceQuery {
    /// One page of its resources: the first one, or the one that `after` names. The answer's data
    /// is a page with `items` of [`ResourceSpec`].
    List {
        /// What the page before returned.
        after: Option<String>,
    },
    /// One page of its templates. The answer's data is a page with `items` of [`ResourceTemplate`].
    Templates {
        /// What the page before returned.
        after: Option<String>,
    },
    /// The contents of a resource. The answer has them as its further parts.
    Read {
        /// The address.
        uri: String,
    },
}

/// One page of a list that a plugin answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfferPage<T> {
    /// What the page lists.
    pub items: Vec<T>,
    /// What to pass for the next page; `None` for the last one.
    #[serde(default = "Option::default", skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// A resource that can be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceSpec {
    /// Its address, such as `notes://today`.
    pub uri: String,
    /// A name for programs.
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// What it contains, and when to read it.
    pub description: Option<String>,
    /// Its media type, when known.
    pub media_type: Option<String>,
    /// Its size in bytes, when known.
    pub size_bytes: Option<u64>,
}

/// Addresses that are made by filling in a template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceTemplate {
    /// A URI template by RFC 6570, such as `notes://{day}`.
    pub uri_template: String,
    /// A name for programs.
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// What is found there.
    pub description: Option<String>,
    /// The media type of everything that is found there, if it is the same.
    pub media_type: Option<String>,
}

/// A resource with what it contains.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ResourceContents {
    /// Its address.
    pub uri: String,
    /// Its media type, when known.
    pub media_type: Option<String>,
    /// What it contains.
    pub data: ResourceData,
}

/// The data of a resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ResourceData {
    /// Text.
    Text(String),
    /// Bytes.
    Binary(Vec<u8>),
}

impl ResourceContents {
    /// The length of everything in it, in bytes.
    pub fn byte_count(&self) -> usize {
        let data = match &self.data {
            ResourceData::Text(text) => text.len(),
            ResourceData::Binary(data) => data.len(),
        };
        data + self.uri.len() + self.media_type.as_ref().map_or(0, String::len)
    }
}
