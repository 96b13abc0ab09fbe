//! The proxy for requests, `[proxy]`.
//!
//! Only a policy can configure one. The proxy variables of the environment are ignored, because
//! anyone who can set them would see every request.

use std::str::FromStr;

use url::Url;

use crate::{
    document::Item,
    net::{
        PatternError,
        host::HostPattern,
        pattern::{Target, parse_port, refuse_extras, split_port},
    },
    source::{Mistake, Place, SourceError, quoted},
    tier::Tier,
};

/// The `[proxy]` table: the proxy for each kind of request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proxy {
    http: Option<ProxyAddress>,
    https: Option<ProxyAddress>,
    bypass: Vec<HostPattern>,
    place: Place,
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
    Several { url: String },
    #[error(transparent)]
    Part(#[from] PatternError),
}

struct WrittenAddress(ProxyAddress);

struct BypassedHost(HostPattern);

impl Mistake for ProxyError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Part(error) => error.hint(),
            Self::Credentials | Self::Scheme { .. } | Self::Path { .. } | Self::Several { .. } => {
                Some("write it like http://proxy.example.com:3128".to_owned())
            }
        }
    }
}

impl FromStr for BypassedHost {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        HostPattern::parse(text).map(Self)
    }
}

impl FromStr for WrittenAddress {
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
                Err(ProxyError::Several { url: url() })
            }
        }
    }
}

fn read_address(item: Item<'_>) -> Result<ProxyAddress, SourceError> {
    item.parsed().map(|WrittenAddress(address)| address)
}

impl Proxy {
    pub(crate) fn read(item: Item<'_>, tier: Tier) -> Result<Self, SourceError> {
        let place = item.place();
        tier.granting(item)?.section(|section| {
            let http = section.optional("http", read_address)?;
            let https = section.optional("https", read_address)?;
            let bypass = section.list("bypass", |item| item.parsed().map(|BypassedHost(h)| h))?;
            if http.is_none() && https.is_none() {
                let message = "a proxy has to say \"http\" or \"https\"";
                return Err(section.lacks(&["http", "https"], message));
            }
            Ok(Self { http, https, bypass, place })
        })
    }

    /// Combines the tables of all files.
    ///
    /// # Errors
    ///
    /// A second table: it would be unclear which one applies.
    pub(crate) fn joined(
        proxies: impl IntoIterator<Item = Self>,
    ) -> Result<Option<Self>, SourceError> {
        let mut proxies = proxies.into_iter();
        let first = proxies.next();
        match (first, proxies.next()) {
            (Some(first), Some(second)) => {
                let message = format!("there is a proxy at {}", first.place);
                let error = second.place.error(message);
                Err(error.with_hint("all plugins use the same one: leave out one of the two"))
            }
            (first, _) => Ok(first),
        }
    }

    /// The place of the table.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// Returns the proxy for a request to this URL, if there is one.
    ///
    /// A request to this machine never uses a proxy: it would reach the proxy's machine instead.
    pub fn for_url(&self, url: &Url) -> Option<&ProxyAddress> {
        let target = Target::new("GET", url).ok()?;
        if target.is_loopback() || self.bypass.iter().any(|host| target.is_at(host)) {
            return None;
        }
        if target.is_encrypted() { self.https.as_ref() } else { self.http.as_ref() }
    }
}
