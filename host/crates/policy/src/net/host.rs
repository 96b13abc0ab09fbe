//! The host of a pattern: one host, all names one label below a domain, or (to deny) any host.

use std::{fmt, net::IpAddr};

use ipnet::IpNet;
use url::Host;

use super::{address, pattern::NetPatternError};

/// The host of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HostPattern {
    /// Exactly this host.
    Exact(Host<String>),
    /// `*.domain`: names with exactly one label before the domain.
    OneLabelBelow(String),
    /// `*`: every name and every address.
    Any,
}

impl HostPattern {
    /// Parses the host of a pattern that grants.
    pub(crate) fn parse(text: &str) -> Result<Self, NetPatternError> {
        let host = Self::parse_wide(text)?;
        match host.is_wide() {
            true => Err(NetPatternError::WideHost { host: text.to_owned() }),
            false => Ok(host),
        }
    }

    /// Parses the host of a pattern that denies, which may match nearly every host.
    pub(crate) fn parse_wide(text: &str) -> Result<Self, NetPatternError> {
        match text.strip_prefix("*.") {
            Some(domain) => parse_one_label_below(domain, text),
            None if text == "*" => Ok(Self::Any),
            None => parse_exact_host(text).map(Self::Exact),
        }
    }

    /// Whether the pattern is too wide for anyone to intend as a grant.
    fn is_wide(&self) -> bool {
        match self {
            Self::Exact(_) => false,
            Self::OneLabelBelow(domain) => !domain.contains('.'),
            Self::Any => true,
        }
    }

    pub(crate) fn matches(&self, host: &Host<&str>) -> bool {
        match (self, host) {
            (Self::Exact(Host::Domain(own)), Host::Domain(name)) => own == name,
            (Self::Exact(Host::Ipv4(own)), Host::Ipv4(addr)) => own == addr,
            (Self::Exact(Host::Ipv6(own)), Host::Ipv6(addr)) => own == addr,
            (Self::OneLabelBelow(domain), Host::Domain(name)) => is_one_label_below(name, domain),
            (Self::Any, _) => true,
            (Self::Exact(_) | Self::OneLabelBelow(_), _) => false,
        }
    }

    /// Whether the pattern matches every host of `other`.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        match other {
            Self::Exact(host) => self.matches(&borrow_host(host)),
            Self::OneLabelBelow(_) | Self::Any => self == other || *self == Self::Any,
        }
    }

    /// The addresses that the host determines: the address of a literal, the loopback of
    /// `localhost`.
    pub(crate) fn determined_ranges(&self) -> Option<Vec<IpNet>> {
        match self {
            Self::Exact(Host::Ipv4(addr)) => {
                Some(vec![address::single_address_range(IpAddr::V4(*addr))])
            }
            Self::Exact(Host::Ipv6(addr)) => {
                Some(vec![address::single_address_range(IpAddr::V6(*addr))])
            }
            Self::Exact(Host::Domain(name)) if name == "localhost" => {
                Some(address::loopback_ranges())
            }
            Self::Exact(Host::Domain(_)) | Self::OneLabelBelow(_) | Self::Any => None,
        }
    }

    /// Whether the pattern matches a single host only.
    pub(crate) fn is_exact(&self) -> bool {
        matches!(self, Self::Exact(_))
    }

    /// Whether the host always means this machine.
    pub(crate) fn is_loopback(&self) -> bool {
        let loops = |range: &IpNet| range.addr().is_loopback();
        self.determined_ranges().is_some_and(|ranges| ranges.iter().all(loops))
    }

    /// Whether the host always means addresses that are not public.
    pub(crate) fn is_private(&self) -> bool {
        let private = |range: &IpNet| !address::is_public_address(range.addr());
        self.determined_ranges().is_some_and(|ranges| ranges.iter().all(private))
    }
}

fn borrow_host(host: &Host<String>) -> Host<&str> {
    match host {
        Host::Domain(name) => Host::Domain(name),
        Host::Ipv4(addr) => Host::Ipv4(*addr),
        Host::Ipv6(addr) => Host::Ipv6(*addr),
    }
}

fn is_one_label_below(name: &str, domain: &str) -> bool {
    let label = name.strip_suffix(domain).and_then(|front| front.strip_suffix('.'));
    label.is_some_and(|label| !label.is_empty() && !label.contains('.'))
}

fn parse_one_label_below(domain: &str, written: &str) -> Result<HostPattern, NetPatternError> {
    match parse_exact_host(domain)? {
        Host::Domain(domain) => Ok(HostPattern::OneLabelBelow(domain)),
        Host::Ipv4(_) | Host::Ipv6(_) => Err(NetPatternError::Host { host: written.to_owned() }),
    }
}

fn parse_exact_host(text: &str) -> Result<Host<String>, NetPatternError> {
    let refused = || NetPatternError::Host { host: text.to_owned() };
    // The parser would percent-decode the text, and so find another host than a reader does.
    if text.contains(['*', '%']) {
        return Err(refused());
    }
    let host = Host::parse(text).map_err(|_| refused())?;
    match &host {
        Host::Ipv4(addr) if addr.to_string() != text => {
            Err(NetPatternError::OddAddress { host: text.to_owned(), canonical: addr.to_string() })
        }
        Host::Domain(name) if name.split('.').any(str::is_empty) => Err(refused()),
        Host::Domain(_) | Host::Ipv4(_) | Host::Ipv6(_) => Ok(host),
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(host) => host.fmt(f),
            Self::OneLabelBelow(domain) => write!(f, "*.{domain}"),
            Self::Any => f.write_str("*"),
        }
    }
}
