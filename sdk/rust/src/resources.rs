//! The resources role: texts and files that a plugin offers under addresses of its own.
//!
//! The manifest names the role, `roles = ["tools", "resources"]`. Each question is decided and
//! recorded like a call of a tool, and runs with the plugin's grant.
//!
//! ```
//! use sallyport_sdk::{
//!     CallContext, ToolError,
//!     resources::{Contents, Resource, Resources, Template},
//! };
//!
//! /// Offers one note a day.
//! enum Notes {}
//!
//! impl Resources for Notes {
//!     fn list(_context: &CallContext) -> Result<Vec<Resource>, ToolError> {
//!         Ok(vec![Resource::new("notes://today", "today").description("Today's note.")])
//!     }
//!
//!     fn templates(_context: &CallContext) -> Result<Vec<Template>, ToolError> {
//!         Ok(vec![Template::new("notes://{day}", "day").media_type("text/plain")])
//!     }
//!
//!     fn read(uri: &str, _context: &CallContext) -> Result<Vec<Contents>, ToolError> {
//!         match uri.strip_prefix("notes://") {
//!             Some(day) => Ok(vec![Contents::text(uri, "text/plain", format!("Note of {day}."))]),
//!             None => Err(ToolError::NotFound(format!("there is no {uri}"))),
//!         }
//!     }
//! }
//!
//! sallyport_sdk::export_plugin!(resources = Notes);
//!
//! # fn main() {
//! let read = Notes::read("notes://monday", &CallContext::default()).unwrap();
//! assert_eq!(read, [Contents::text("notes://monday", "text/plain", "Note of monday.")]);
//! # }
//! ```

use crate::{CallContext, ToolError};

/// A plugin that offers resources.
pub trait Resources {
    /// Lists the resources.
    ///
    /// # Errors
    ///
    /// They cannot be listed; the error states why.
    fn list(context: &CallContext) -> Result<Vec<Resource>, ToolError>;

    /// Lists the templates of addresses. Without this, there are none.
    ///
    /// # Errors
    ///
    /// They cannot be listed; the error states why.
    fn templates(context: &CallContext) -> Result<Vec<Template>, ToolError> {
        let _ = context;
        Ok(Vec::new())
    }

    /// Reads a resource. A folder may answer with several contents.
    ///
    /// # Errors
    ///
    /// [`ToolError::NotFound`] if there is no such resource, or another reason.
    fn read(uri: &str, context: &CallContext) -> Result<Vec<Contents>, ToolError>;
}

/// A resource that can be read.
///
/// ```
/// use sallyport_sdk::resources::Resource;
///
/// let note = Resource::new("notes://today", "today").media_type("text/plain").size_bytes(12);
/// assert_eq!(note.media_type.as_deref(), Some("text/plain"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    /// Its address.
    pub uri: String,
    /// A name for programs.
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// What it contains and when to read it, for a model.
    pub description: Option<String>,
    /// Its media type, if known.
    pub media_type: Option<String>,
    /// Its size in bytes, if known.
    pub size_bytes: Option<u64>,
}

impl Resource {
    /// Makes a resource from its address and its name.
    pub fn new(uri: impl Into<String>, name: impl Into<String>) -> Self {
        let (uri, name) = (uri.into(), name.into());
        let (title, description, media_type, size_bytes) = (None, None, None, None);
        Self { uri, name, title, description, media_type, size_bytes }
    }

    /// Sets the name for people.
    pub fn title(self, title: impl Into<String>) -> Self {
        Self { title: Some(title.into()), ..self }
    }

    /// Sets what it contains and when to read it.
    pub fn description(self, description: impl Into<String>) -> Self {
        Self { description: Some(description.into()), ..self }
    }

    /// Sets the media type.
    pub fn media_type(self, media_type: impl Into<String>) -> Self {
        Self { media_type: Some(media_type.into()), ..self }
    }

    /// Sets the size in bytes.
    pub fn size_bytes(self, size_bytes: u64) -> Self {
        Self { size_bytes: Some(size_bytes), ..self }
    }
}

/// Addresses that are made by filling in a template.
///
/// ```
/// use sallyport_sdk::resources::Template;
///
/// let template = Template::new("notes://{day}", "day").description("The note of a day.");
/// assert_eq!(template.uri_template, "notes://{day}");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    /// A URI template by RFC 6570.
    pub uri_template: String,
    /// A name for programs.
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// What is found there, for a model.
    pub description: Option<String>,
    /// The media type of everything that is found there, if it is the same.
    pub media_type: Option<String>,
}

impl Template {
    /// Makes a template from its addresses and its name.
    pub fn new(uri_template: impl Into<String>, name: impl Into<String>) -> Self {
        let (uri_template, name) = (uri_template.into(), name.into());
        Self { uri_template, name, title: None, description: None, media_type: None }
    }

    /// Sets the name for people.
    pub fn title(self, title: impl Into<String>) -> Self {
        Self { title: Some(title.into()), ..self }
    }

    /// Sets what is found there.
    pub fn description(self, description: impl Into<String>) -> Self {
        Self { description: Some(description.into()), ..self }
    }

    /// Sets the media type.
    pub fn media_type(self, media_type: impl Into<String>) -> Self {
        Self { media_type: Some(media_type.into()), ..self }
    }
}

/// The data of a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Data {
    /// Text.
    Text(String),
    /// Bytes.
    Binary(Vec<u8>),
}

/// A resource with what it contains.
///
/// ```
/// use sallyport_sdk::resources::{Contents, Data};
///
/// let dot = Contents::binary("test://dot", "image/png", vec![0x89]);
/// assert_eq!(dot.data, Data::Binary(vec![0x89]));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contents {
    /// Its address.
    pub uri: String,
    /// Its media type, if known.
    pub media_type: Option<String>,
    /// What it contains.
    pub data: Data,
}

impl Contents {
    /// Makes contents of text.
    pub fn text(
        uri: impl Into<String>,
        media_type: impl Into<String>,
        text: impl Into<String>,
    ) -> Self {
        let (uri, data) = (uri.into(), Data::Text(text.into()));
        Self { uri, media_type: Some(media_type.into()), data }
    }

    /// Makes contents of bytes.
    pub fn binary(uri: impl Into<String>, media_type: impl Into<String>, data: Vec<u8>) -> Self {
        let (uri, data) = (uri.into(), Data::Binary(data));
        Self { uri, media_type: Some(media_type.into()), data }
    }
}
