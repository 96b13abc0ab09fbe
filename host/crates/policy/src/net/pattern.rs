//! Network patterns: `GET,POST https://api.example.com:8443/v1/**`.
//!
//! Each part of a pattern is compared with the same part of a request, never text with text, so the
//! content of one part cannot be mistaken for another part.

use std::{fmt, str::FromStr};

use url::{Host, Url};

use super::{
    host::HostPattern,
    method::{self, MethodPattern},
    origin::UrlOrigin,
    path::{PathPattern, PlainPath},
    port::{self, PortRange},
    request_text::url_without_secrets,
};
use crate::source::{HintedError, quoted};

/// Longest pattern, in bytes: far longer than anyone can review at a glance.
const PATTERN_BYTES_MAX: usize = 2048;

/// Longest URL that is accepted, in bytes: twice what most servers accept.
const URL_BYTES_MAX: usize = 16 << 10;

const SCHEMES: [(&str, UrlScheme); 2] = [("https", UrlScheme::Https), ("http", UrlScheme::Http)];

/// A set of requests: methods, one scheme, hosts, ports and paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetPattern {
    methods: MethodPattern,
    scheme: UrlScheme,
    host: HostPattern,
    ports: PortRange,
    path: PathPattern,
}

/// A pattern of requests to deny. Its host may be `*`, which is any host, at any port unless the
/// pattern has one, or one level below a domain as wide as `*.com`. `https://**` is short for
/// `https://*/**`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NetDenyPattern(pub(crate) NetPattern);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UrlScheme {
    Http,
    Https,
}

/// A request, split into the parts that patterns compare.
#[derive(Debug)]
pub(crate) struct RequestTarget<'u> {
    method: &'u str,
    scheme: UrlScheme,
    host: Host<&'u str>,
    port: u16,
    path: PlainPath<'u>,
}

/// Why a text is not a network pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NetPatternError {
    /// The text is longer than any sensible pattern.
    #[error("a network pattern of {bytes} bytes is longer than {PATTERN_BYTES_MAX}")]
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// The methods before the URL are missing.
    #[error("{} does not say which methods it allows", quoted(pattern))]
    NoMethods {
        /// The pattern.
        pattern: String,
    },
    /// A method is not known, or never allowed.
    #[error("{} is not a method that can be allowed", quoted(method))]
    Method {
        /// The method.
        method: String,
    },
    /// The scheme is neither `http` nor `https`.
    #[error("{} begins with neither https:// nor http://", quoted(url))]
    Scheme {
        /// The text after the methods.
        url: String,
    },
    /// The text has a user name, a query or a fragment, which patterns do not have.
    #[error("{} holds {part}, which a network pattern does not have", quoted(url))]
    Extra {
        /// The text after the methods.
        url: String,
        /// The part to leave out.
        part: &'static str,
    },
    /// The host would match nearly every host.
    #[error("the host {} would allow nearly the whole internet", quoted(host))]
    WideHost {
        /// The host.
        host: String,
    },
    /// The host is not a host name or address.
    #[error("{} is not a host", quoted(host))]
    Host {
        /// The host.
        host: String,
    },
    /// The host is an address in a misleading notation.
    #[error("{} is an odd way to write the address {canonical}", quoted(host))]
    OddAddress {
        /// The host as written.
        host: String,
        /// The address in its usual form.
        canonical: String,
    },
    /// The port is neither a number from 1 to 65535 nor a range of such numbers.
    #[error("{} is not a port", quoted(port))]
    Port {
        /// The port.
        port: String,
    },
    /// The path is not one that a pattern can have.
    #[error("the path {} cannot match: {reason}", quoted(path))]
    Path {
        /// The path.
        path: String,
        /// What is wrong with it.
        reason: &'static str,
    },
}

/// Why no pattern at all can match a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RequestUrlError {
    #[error("the URL is longer than {URL_BYTES_MAX} bytes")]
    TooLong,
    #[error("the method is never allowed")]
    Method,
    #[error("only http and https are possible")]
    Scheme,
    #[error("the URL holds a user name or password")]
    UserInfo,
    #[error("the host is empty or ends in a dot")]
    Host,
    #[error("the path hides a dot, a slash, a backslash or a control character")]
    HiddenPath,
}

impl HintedError for NetPatternError {
    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::TooLong { .. } => return None,
            Self::NoMethods { pattern } => match pattern.contains("://") {
                true => format!("write {}", quoted(&format!("GET {pattern}"))),
                false => "write \"GET https://api.example.com/v1/**\"".to_owned(),
            },
            Self::Method { method } => match method::suggest_method(method) {
                Some(known) => format!("did you mean {known}?"),
                None => "name methods such as GET,POST, or write * for all".to_owned(),
            },
            Self::Scheme { .. } => "begin with https://, in small letters".to_owned(),
            Self::Extra { part, .. } => format!("leave out {part}"),
            Self::WideHost { .. } => {
                "name the host, or one level below a domain: *.example.com".to_owned()
            }
            Self::Host { .. } => {
                "write a name, an IPv4 address, or an IPv6 address in brackets".to_owned()
            }
            Self::OddAddress { canonical, .. } => format!("write {canonical}"),
            Self::Port { .. } => {
                "write a number from 1 to 65535, a range such as 8000-8100, or leave it out"
                    .to_owned()
            }
            Self::Path { .. } => {
                "use * within one segment, and /** for everything below".to_owned()
            }
        };
        Some(hint)
    }
}

impl FromStr for NetPattern {
    type Err = NetPatternError;

    fn from_str(text: &str) -> Result<Self, NetPatternError> {
        Self::parse(text, HostPattern::parse)
    }
}

impl FromStr for NetDenyPattern {
    type Err = NetPatternError;

    fn from_str(text: &str) -> Result<Self, NetPatternError> {
        NetPattern::parse(text, HostPattern::parse_wide).map(Self)
    }
}

impl NetPattern {
    fn parse(
        text: &str,
        parse_host: impl FnOnce(&str) -> Result<HostPattern, NetPatternError>,
    ) -> Result<Self, NetPatternError> {
        if text.len() > PATTERN_BYTES_MAX {
            return Err(NetPatternError::TooLong { bytes: text.len() });
        }
        let no_methods = || NetPatternError::NoMethods { pattern: text.to_owned() };
        let (methods, url) = text.split_once(' ').ok_or_else(no_methods)?;
        let methods = MethodPattern::parse(methods)?;
        let (scheme, rest) = split_scheme(url)?;
        refuse_extras(url, rest)?;
        let rest = if rest == "**" { "*/**" } else { rest };
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (host, ports) = split_port(authority);
        let host = parse_host(host)?;
        let usual = default_ports(scheme, &host);
        Ok(Self {
            methods,
            scheme,
            host,
            ports: ports.map_or(Ok(usual), PortRange::parse)?,
            path: if path.is_empty() { PathPattern::root() } else { PathPattern::parse(path)? },
        })
    }
}

/// The ports of a pattern that names none. For "any host" these are all ports, because a single
/// default port would deny less than the pattern states.
fn default_ports(scheme: UrlScheme, host: &HostPattern) -> PortRange {
    match host {
        HostPattern::Any => PortRange::ANY,
        HostPattern::Exact(_) | HostPattern::OneLabelBelow(_) => {
            PortRange::from_single(scheme.default_port())
        }
    }
}

/// Checks the methods of a text that is not a whole pattern yet, such as a manifest's template.
pub(crate) fn check_methods(text: &str) -> Result<(), NetPatternError> {
    let no_methods = || NetPatternError::NoMethods { pattern: text.to_owned() };
    let (methods, _) = text.split_once(' ').ok_or_else(no_methods)?;
    MethodPattern::parse(methods).map(|_| ())
}

pub(super) fn split_scheme(url: &str) -> Result<(UrlScheme, &str), NetPatternError> {
    let parts = url.split_once("://");
    let known = |(name, rest)| {
        let scheme = SCHEMES.iter().find(|(known, _)| *known == name)?.1;
        Some((scheme, rest))
    };
    parts.and_then(known).ok_or_else(|| NetPatternError::Scheme { url: url.to_owned() })
}

pub(crate) fn refuse_extras(url: &str, rest: &str) -> Result<(), NetPatternError> {
    let authority = rest.split('/').next().unwrap_or_default();
    let part = match () {
        () if rest.contains(|c: char| c.is_whitespace() || c.is_control()) => "white space",
        () if rest.contains('?') => "a query",
        () if rest.contains('#') => "a fragment",
        () if authority.contains('@') => "a user name",
        () if rest.contains('\\') => "a backslash",
        () => return Ok(()),
    };
    Err(NetPatternError::Extra { url: url.to_owned(), part })
}

/// Splits off the port; the colons of an IPv6 address are inside its brackets.
pub(crate) fn split_port(authority: &str) -> (&str, Option<&str>) {
    match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        Some(_) | None => (authority, None),
    }
}

/// Parses one port.
pub(crate) fn parse_port(text: &str) -> Result<u16, NetPatternError> {
    port::parse_port_number(text).ok_or_else(|| NetPatternError::Port { port: text.to_owned() })
}

impl NetPattern {
    /// Whether the pattern allows a request.
    pub(crate) fn matches(&self, target: &RequestTarget<'_>) -> bool {
        self.matches_except_path(target) && self.path.matches(&target.path)
    }

    /// Whether the pattern denies a request, even if only a lenient server would read the method or
    /// the path that way.
    pub(crate) fn matches_leniently(&self, target: &RequestTarget<'_>) -> bool {
        self.matches_origin(target)
            && self.methods.contains_leniently(target.method)
            && self.path.matches_leniently(&target.path)
    }

    /// Whether the pattern fails to match only because it has no path.
    pub(crate) fn is_missing_path_for(&self, target: &RequestTarget<'_>) -> bool {
        self.path.is_root() && self.matches_except_path(target) && !self.path.matches(&target.path)
    }

    fn matches_except_path(&self, target: &RequestTarget<'_>) -> bool {
        self.matches_origin(target) && self.methods.contains(target.method)
    }

    fn matches_origin(&self, target: &RequestTarget<'_>) -> bool {
        self.scheme == target.scheme
            && self.ports.contains(target.port)
            && self.host.matches(&target.host)
    }

    /// Whether the pattern certainly matches every request of `other`.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        self.scheme == other.scheme
            && self.ports.covers(other.ports)
            && self.host.covers(&other.host)
            && self.methods.covers(&other.methods)
            && self.path.covers(&other.path)
    }

    /// The pattern of the requests that match both, if there can be any. It includes all of them,
    /// and may include too many paths, so use it to describe and not to decide.
    pub(crate) fn intersect_with(&self, other: &Self) -> Option<Self> {
        if self.scheme != other.scheme {
            return None;
        }
        let ports = self.ports.intersect_with(other.ports)?;
        let host = match () {
            () if self.host.covers(&other.host) => other.host.clone(),
            () if other.host.covers(&self.host) => self.host.clone(),
            () => return None,
        };
        let methods = self.methods.intersect_with(&other.methods)?;
        let path = self.path.intersect_with(&other.path)?;
        Some(Self { methods, scheme: self.scheme, host, ports, path })
    }

    /// Whether the pattern matches requests to an origin.
    pub(crate) fn can_reach_origin(&self, origin: &UrlOrigin) -> bool {
        self.scheme == origin.scheme
            && self.ports.contains(origin.port)
            && self.host.covers(&origin.host)
    }

    /// The single origin of all its requests, if a secret may be sent there.
    pub(crate) fn single_origin(&self) -> Option<UrlOrigin> {
        let port = self.ports.single_port()?;
        let is_private = self.scheme == UrlScheme::Https || self.host.is_loopback();
        let is_one = is_private && self.host.is_exact();
        is_one.then(|| UrlOrigin { scheme: self.scheme, host: self.host.clone(), port })
    }

    pub(crate) fn host(&self) -> &HostPattern {
        &self.host
    }
}

impl<'u> RequestTarget<'u> {
    pub(crate) fn new(method: &'u str, url: &'u Url) -> Result<Self, RequestUrlError> {
        if url.as_str().len() > URL_BYTES_MAX {
            return Err(RequestUrlError::TooLong);
        }
        if method::is_never_allowed(method) {
            return Err(RequestUrlError::Method);
        }
        let known = SCHEMES.iter().find(|(name, _)| *name == url.scheme());
        let (_, scheme) = *known.ok_or(RequestUrlError::Scheme)?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(RequestUrlError::UserInfo);
        }
        let host = url.host().filter(is_well_formed).ok_or(RequestUrlError::Host)?;
        let path = PlainPath::new(url.path()).ok_or(RequestUrlError::HiddenPath)?;
        let port = url.port().unwrap_or_else(|| scheme.default_port());
        Ok(Self { method, scheme, host, port, path })
    }

    pub(crate) fn is_encrypted(&self) -> bool {
        self.scheme == UrlScheme::Https
    }

    pub(crate) fn has_host(&self, host: &HostPattern) -> bool {
        host.matches(&self.host)
    }

    /// Whether the host always means this machine.
    pub(crate) fn is_loopback(&self) -> bool {
        HostPattern::Exact(self.host.to_owned()).is_loopback()
    }

    pub(super) fn has_origin(&self, origin: &UrlOrigin) -> bool {
        self.scheme == origin.scheme && self.port == origin.port && origin.host.matches(&self.host)
    }
}

fn is_well_formed(host: &Host<&str>) -> bool {
    match host {
        Host::Domain(name) => !name.split('.').any(str::is_empty),
        Host::Ipv4(_) | Host::Ipv6(_) => true,
    }
}

impl UrlScheme {
    pub(super) fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }
}

impl fmt::Display for NetPattern {
    /// The canonical text, which parses back to the same pattern.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}://{}", self.methods, self.scheme.as_str(), self.host)?;
        if self.ports != default_ports(self.scheme, &self.host) {
            write!(f, ":{}", self.ports)?;
        }
        self.path.fmt(f)
    }
}

/// The pattern that matches one request only, regardless of its query.
pub(crate) fn exact_pattern(method: &str, url: &Url) -> Option<NetPattern> {
    let url = url_without_secrets(url);
    // A star in a URL is literal; in a pattern it would be a wildcard.
    let pattern: NetPattern = format!("{method} {url}").replace('*', "%2A").parse().ok()?;
    let target = RequestTarget::new(method, &url).ok()?;
    pattern.matches(&target).then_some(pattern)
}
