//! The ports of a pattern: one, or a range.

use std::fmt;

use super::pattern::NetPatternError;

/// The ports of a pattern, from the first to the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PortRange {
    first: u16,
    last: u16,
}

impl PortRange {
    /// Every port.
    pub(crate) const ANY: Self = Self { first: 1, last: u16::MAX };

    pub(crate) const fn from_single(port: u16) -> Self {
        Self { first: port, last: port }
    }

    /// Parses `8080` or `8000-8100`.
    pub(crate) fn parse(text: &str) -> Result<Self, NetPatternError> {
        let ports = match text.split_once('-') {
            None => parse_port_number(text).map(Self::from_single),
            Some((first, last)) => parse_port_number(first)
                .zip(parse_port_number(last))
                .filter(|(first, last)| first < last)
                .map(|(first, last)| Self { first, last }),
        };
        ports.ok_or_else(|| NetPatternError::Port { port: text.to_owned() })
    }

    /// The port, if there is only one.
    pub(crate) fn single_port(self) -> Option<u16> {
        (self.first == self.last).then_some(self.first)
    }

    pub(crate) fn contains(self, port: u16) -> bool {
        (self.first..=self.last).contains(&port)
    }

    /// Whether every port of `other` is included.
    pub(crate) fn covers(self, other: Self) -> bool {
        self.first <= other.first && other.last <= self.last
    }

    /// The common ports, if there are any.
    pub(crate) fn intersect_with(self, other: Self) -> Option<Self> {
        let (first, last) = (self.first.max(other.first), self.last.min(other.last));
        (first <= last).then_some(Self { first, last })
    }
}

/// Parses a port in its only spelling: no sign, no leading zero.
pub(super) fn parse_port_number(text: &str) -> Option<u16> {
    text.parse().ok().filter(|port: &u16| *port != 0 && port.to_string() == text)
}

impl fmt::Display for PortRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.first == self.last {
            true => self.first.fmt(f),
            false => write!(f, "{}-{}", self.first, self.last),
        }
    }
}
