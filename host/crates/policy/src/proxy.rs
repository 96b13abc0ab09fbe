//! The proxy for requests, `[proxy]`.
//!
//! Only a policy can configure one. The proxy variables of the environment are ignored, because
//! anyone who can set them would see every request.

use std::str::FromStr;

use url::Url;

use crate::{
    document::TomlItem,
    net::{
        NetPatternError,
        host::HostPattern,
        pattern::{RequestTarget, parse_port, refuse_extras, split_port},
    },
    source::{HintedError, SourceError, SourceLocation, quoted},
    tier::PolicyTier,
};

/// The `[proxy]` table: the proxy for each kind of request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxyTable {
    http: Option<ProxyAddress>,
    https: Option<ProxyAddress>,
    bypass: Vec<HostPattern>,
    place: SourceLocation,
}

/// A proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxyAddress {
    /// Its name or address.
    pub host: url::Host<String>,
    /// Its port.
    pub port: u16,
}

#[derive(Debug, thiserror::Error)]
enum ProxyError {
    #[error("{} does not begin with http://", quoted(url))]
    Scheme { url: String },
    // The text is not quoted: it contains a password.
    #[error("the address of a proxy cannot hold a user name or a password")]
    Credentials,
    #[error("{} is more than the address of a proxy", quoted(url))]
    Path { url: String },
    #[error("{} names more than one host", quoted(url))]
    MultipleHosts { url: String },
    #[error(transparent)]
    Part(#[from] NetPatternError),
}

struct ParsedProxyAddress(ProxyAddress);

struct ProxyBypassHost(HostPattern);

impl HintedError for ProxyError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Part(error) => error.hint(),
            Self::Credentials
            | Self::Scheme { .. }
            | Self::Path { .. }
            | Self::MultipleHosts { .. } => {
                Some("write it like http://proxy.example.com:3128".to_owned())
            }
        }
    }
}

impl FromStr for ProxyBypassHost {
    type Err = NetPatternError;

    fn from_str(text: &str) -> Result<Self, NetPatternError> {
        HostPattern::parse(text).map(Self)
    }
}

impl FromStr for ParsedProxyAddress {
    type Err = ProxyError;

    fn from_str(text: &str) -> Result<Self, ProxyError> {
        let url = || text.to_owned();
        let rest = text.strip_prefix("http://").ok_or_else(|| ProxyError::Scheme { url: url() })?;
        if rest.contains('@') {
            return Err(ProxyError::Credentials);
        }
        refuse_extras(text, rest)?;
        let authority = rest.strip_suffix('/').unwrap_or(rest);
        if authority.contains('/') {
            return Err(ProxyError::Path { url: url() });
        }
        let (host, port) = split_port(authority);
        let port = port.map_or(Ok(80), parse_port)?;
        match HostPattern::parse(host)? {
            HostPattern::Exact(host) => Ok(Self(ProxyAddress { host, port })),
            HostPattern::OneLabelBelow(_) | HostPattern::Any => {
                Err(ProxyError::MultipleHosts { url: url() })
            }
        }
    }
}

fn read_proxy_address(item: TomlItem<'_>) -> Result<ProxyAddress, SourceError> {
    item.read_parsed().map(|ParsedProxyAddress(address)| address)
}

impl ProxyTable {
    pub(crate) fn from_toml(item: TomlItem<'_>, tier: PolicyTier) -> Result<Self, SourceError> {
        let place = item.place();
        tier.check_may_grant(item)?.read_section(|section| {
            let http = section.read_optional("http", read_proxy_address)?;
            let https = section.read_optional("https", read_proxy_address)?;
            let bypass = section
                .read_list("bypass", |item| item.read_parsed().map(|ProxyBypassHost(h)| h))?;
            if http.is_none() && https.is_none() {
                let message = "a proxy has to say \"http\" or \"https\"";
                return Err(section.missing_keys_error(&["http", "https"], message));
            }
            Ok(Self { http, https, bypass, place })
        })
    }

    /// Combines the tables of all files.
    ///
    /// # Errors
    ///
    /// A second table: it would be unclear which one applies.
    pub(crate) fn merge_tables(
        proxies: impl IntoIterator<Item = Self>,
    ) -> Result<Option<Self>, SourceError> {
        let mut proxies = proxies.into_iter();
        let first = proxies.next();
        match (first, proxies.next()) {
            (Some(first), Some(second)) => {
                let message = format!("there is a proxy at {}", first.place);
                let error = second.place.into_error(message);
                Err(error.with_hint("all plugins use the same one: leave out one of the two"))
            }
            (first, _) => Ok(first),
        }
    }

    /// The place of the table.
    pub fn place(&self) -> &SourceLocation {
        &self.place
    }

    /// Returns the proxy for a request to this URL, if there is one.
    ///
    /// A request to this machine never uses a proxy: it would reach the proxy's machine instead.
    pub fn address_for_url(&self, url: &Url) -> Option<&ProxyAddress> {
        let target = RequestTarget::new("GET", url).ok()?;
        if target.is_loopback() || self.bypass.iter().any(|host| target.has_host(host)) {
            return None;
        }
        if target.is_encrypted() { self.https.as_ref() } else { self.http.as_ref() }
    }
}
