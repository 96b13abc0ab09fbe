//! Origins: the exact recipients of something that is sent.

use std::{fmt, str::FromStr};

use url::Url;

use super::{
    host::HostPattern,
    pattern::{
        NetPatternError, RequestTarget, UrlScheme, parse_port, refuse_extras, split_port,
        split_scheme,
    },
};
use crate::source::{HintedError, quoted};

/// One scheme, one host, one port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UrlOrigin {
    pub(super) scheme: UrlScheme,
    /// Always an exact host.
    pub(super) host: HostPattern,
    pub(super) port: u16,
}

/// Why a text is not an origin that a secret can be sent to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UrlOriginError {
    /// A part of it is not valid.
    #[error(transparent)]
    Part(#[from] NetPatternError),
    /// It has a path.
    #[error("{} holds a path, and what is sent to a host is sent to all of it", quoted(text))]
    Path {
        /// The text.
        text: String,
        /// The text without the path.
        origin: String,
    },
    /// The host is a pattern for several hosts.
    #[error("{} names more than one host", quoted(text))]
    MultipleHosts {
        /// The text.
        text: String,
    },
    /// It is neither encrypted nor this machine.
    #[error("{} is neither encrypted nor this machine", quoted(text))]
    Unencrypted {
        /// The text.
        text: String,
    },
}

impl HintedError for UrlOriginError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Part(error) => error.hint(),
            Self::Path { origin, .. } => Some(format!("write {}", quoted(origin))),
            Self::MultipleHosts { .. } => Some("write an entry for each host".to_owned()),
            Self::Unencrypted { .. } => Some("write https://".to_owned()),
        }
    }
}

impl FromStr for UrlOrigin {
    type Err = UrlOriginError;

    fn from_str(text: &str) -> Result<Self, UrlOriginError> {
        let (scheme, rest) = split_scheme(text)?;
        refuse_extras(text, rest)?;
        if let Some((authority, _)) = rest.split_once('/') {
            let origin = format!("{}://{authority}", scheme.as_str());
            return Err(UrlOriginError::Path { text: text.to_owned(), origin });
        }
        let (host, port) = split_port(rest);
        let host = HostPattern::parse(host)?;
        let port = port.map_or(Ok(scheme.default_port()), parse_port)?;
        match scheme {
            _ if !host.is_exact() => Err(UrlOriginError::MultipleHosts { text: text.to_owned() }),
            UrlScheme::Http if !host.is_loopback() => {
                Err(UrlOriginError::Unencrypted { text: text.to_owned() })
            }
            UrlScheme::Http | UrlScheme::Https => Ok(Self { scheme, host, port }),
        }
    }
}

impl UrlOrigin {
    /// Whether a URL belongs to this origin.
    pub fn matches_url(&self, url: &Url) -> bool {
        // The method does not affect the result.
        RequestTarget::new("GET", url).is_ok_and(|target| target.has_origin(self))
    }
}

impl fmt::Display for UrlOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme.as_str(), self.host)?;
        match self.port == self.scheme.default_port() {
            true => Ok(()),
            false => write!(f, ":{}", self.port),
        }
    }
}
