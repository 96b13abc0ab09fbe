//! A secret that the host adds to a header of requests to one origin.

use std::{fmt, str::FromStr};

use url::Url;

use crate::{
    document::{TomlItem, TomlSection},
    net::UrlOrigin,
    source::{HintedError, SourceError, quoted},
    toml_text::toml_string,
};

/// Longest name of a header and longest format, in bytes: longer than any in use.
const HEADER_BYTES_MAX: usize = 256;

/// The placeholder for the value in a format.
const SLOT: &str = "{}";

/// Headers of the connection and of message framing, whose values decide where a message goes and
/// where it ends.
const RESERVED: [&str; 13] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "http2-settings",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// The origin that gets a secret, and the header that carries it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretInjection {
    origin: UrlOrigin,
    header: SecretHeader,
}

/// The header that carries a secret, and the format of its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretHeader {
    name: SecretHeaderName,
    format: HeaderValueFormat,
}

/// The name of a header, in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SecretHeaderName(String);

/// The value of a header, with one placeholder for the secret.
#[derive(Debug, Clone, PartialEq, Eq)]
struct HeaderValueFormat {
    before: String,
    after: String,
}

#[derive(Debug, thiserror::Error)]
enum HeaderNameError {
    #[error("{} is not the name of a header", quoted(name))]
    Form { name: String },
    #[error("the header {} belongs to the connection", quoted(name))]
    Reserved { name: String },
}

#[derive(Debug, thiserror::Error)]
enum HeaderFormatError {
    #[error("the format {} does not say {SLOT} exactly once", quoted(format))]
    Slot { format: String },
    #[error("the format {} holds what a header cannot hold", quoted(format))]
    Characters { format: String },
}

impl HintedError for HeaderNameError {
    fn hint(&self) -> Option<String> {
        Some("write a header that carries credentials, such as \"Authorization\"".to_owned())
    }
}

impl HintedError for HeaderFormatError {
    fn hint(&self) -> Option<String> {
        Some("write it like \"Bearer {}\": {} stands for the secret".to_owned())
    }
}

impl FromStr for SecretHeaderName {
    type Err = HeaderNameError;

    fn from_str(text: &str) -> Result<Self, HeaderNameError> {
        let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
        let name = text.to_ascii_lowercase();
        if name.is_empty() || name.len() > HEADER_BYTES_MAX || !name.bytes().all(token) {
            return Err(HeaderNameError::Form { name: text.to_owned() });
        }
        match RESERVED.contains(&name.as_str()) {
            true => Err(HeaderNameError::Reserved { name }),
            false => Ok(Self(name)),
        }
    }
}

impl FromStr for HeaderValueFormat {
    type Err = HeaderFormatError;

    fn from_str(text: &str) -> Result<Self, HeaderFormatError> {
        let format = || text.to_owned();
        let plain = |b: u8| b.is_ascii_graphic() || b == b' ';
        if text.len() > HEADER_BYTES_MAX || !text.bytes().all(plain) || text.trim() != text {
            return Err(HeaderFormatError::Characters { format: format() });
        }
        match text.split_once(SLOT) {
            Some((before, after)) if !after.contains(SLOT) => {
                Ok(Self { before: before.to_owned(), after: after.to_owned() })
            }
            Some(_) | None => Err(HeaderFormatError::Slot { format: format() }),
        }
    }
}

impl SecretInjection {
    /// Reads the rest of an entry; `origin` is the value of its `to` key.
    pub(super) fn from_toml(
        origin: UrlOrigin,
        section: &mut TomlSection<'_>,
    ) -> Result<Self, SourceError> {
        let name = section.read_required("header", TomlItem::read_parsed)?;
        Ok(Self { origin, header: SecretHeader::with_format(name, section)? })
    }

    /// The origin that gets the secret.
    pub fn origin(&self) -> &UrlOrigin {
        &self.origin
    }

    /// The header that carries it, in lower case.
    pub fn header_name(&self) -> &str {
        &self.header.name.0
    }

    /// Whether a request to this URL carries the secret.
    pub fn applies_to_url(&self, url: &Url) -> bool {
        self.origin.matches_url(url)
    }

    /// Returns the value of the header for a value of the secret.
    pub fn header_value(&self, secret: &str) -> String {
        let HeaderValueFormat { before, after } = &self.header.format;
        format!("{before}{secret}{after}")
    }

    /// Whether both fill the same header of the same requests.
    pub(super) fn conflicts_with(&self, other: &Self) -> bool {
        self.origin == other.origin && self.header.name == other.header.name
    }
}

impl HeaderValueFormat {
    /// The format that consists of the secret only.
    fn secret_only() -> Self {
        Self { before: String::new(), after: String::new() }
    }
}

impl fmt::Display for HeaderValueFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{SLOT}{}", self.before, self.after)
    }
}

impl fmt::Display for SecretInjection {
    /// The keys of an entry, as TOML.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "to = {}, {}", toml_string(&self.origin.to_string()), self.header)
    }
}

impl SecretHeader {
    /// The header's name, in lower case.
    pub(crate) fn name(&self) -> &str {
        &self.name.0
    }

    /// The header's value, with a placeholder for the secret.
    pub(crate) fn format_text(&self) -> String {
        self.format.to_string()
    }

    /// Reads the optional header of a section.
    pub(crate) fn from_toml(section: &mut TomlSection<'_>) -> Result<Option<Self>, SourceError> {
        match section.read_optional("header", TomlItem::read_parsed)? {
            Some(name) => Self::with_format(name, section).map(Some),
            None => Ok(None),
        }
    }

    fn with_format(
        name: SecretHeaderName,
        section: &mut TomlSection<'_>,
    ) -> Result<Self, SourceError> {
        let format = section.read_optional("format", TomlItem::read_parsed)?;
        Ok(Self { name, format: format.unwrap_or_else(HeaderValueFormat::secret_only) })
    }
}

impl fmt::Display for SecretHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, format) = (toml_string(&self.name.0), toml_string(&self.format.to_string()));
        write!(f, "header = {name}, format = {format}")
    }
}
