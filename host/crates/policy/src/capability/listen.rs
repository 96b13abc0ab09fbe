//! The addresses that a plugin may listen on: local addresses with a path, or standard input.
//!
//! The host owns the sockets. An address must be a loopback one, unless its entry has `public =
//! true`.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    str::FromStr,
};

use url::{Host, Url};

use super::{
    Capability, CapabilityKind, HeldCapability, RequestedCapability,
    kind::{CapabilityEntry, EntryValue, GrantedEntries, ValueShape, entry_values},
    table::CapabilityTable,
};
use crate::{
    document::{TomlItem, TomlSection},
    folder::FsEntry,
    net::{
        NetPatternError,
        host::HostPattern,
        path::PlainPath,
        pattern::{refuse_extras, split_port},
    },
    source::{HintedError, SourceError, SourceLocation, quoted},
    tier::PolicyTier,
    toml_text::toml_string,
};

/// Most entries of one plugin: each can open a socket.
const LISTENS_MAX: usize = 16;

/// Longest address, in bytes.
const ADDRESS_BYTES_MAX: usize = 1024;

/// The word for standard input.
const STDIN: &str = "stdin";

/// A kind of external signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ListenKind {
    /// HTTP requests.
    Http,
    /// WebSocket connections.
    WebSocket,
    /// Lines of standard input.
    Stdin,
}

/// An address, or standard input, that a plugin may listen on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListenGrant {
    /// The kind of signals.
    pub kind: ListenKind,
    /// The address; `None` is standard input.
    pub address: Option<ListenAddress>,
    /// The place of the entry.
    pub place: SourceLocation,
}

/// An address with a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListenAddress {
    /// The address; port 0 is any free port.
    pub socket_address: SocketAddr,
    /// The path. It is served with everything below it, except what another entry serves more
    /// specifically.
    pub path: String,
    /// Whether other machines may reach it.
    pub public: bool,
}

/// Why a text is not a listen address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum ListenError {
    #[error("an address of {bytes} bytes is longer than {ADDRESS_BYTES_MAX}")]
    TooLong { bytes: usize },
    #[error("{} begins with neither http:// nor ws://", quoted(text))]
    Scheme { text: String },
    #[error("{} is not the address of a machine", quoted(host))]
    Name { host: String },
    #[error("{} says no port", quoted(text))]
    NoPort { text: String },
    #[error("{} is not a port", quoted(port))]
    Port { port: String },
    #[error("the path {} is not one that is asked for as it stands", quoted(path))]
    Path { path: String },
    #[error(transparent)]
    Part(#[from] NetPatternError),
}

impl HintedError for ListenError {
    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::TooLong { .. } => return None,
            Self::Scheme { text } => match text.split_once("://") {
                Some(("https" | "wss", _)) => {
                    "what listens here is not encrypted: write http:// or ws://".to_owned()
                }
                Some(_) | None => {
                    "write it like http://127.0.0.1:8077/hooks, ws://127.0.0.1:8078/chat, or stdin"
                        .to_owned()
                }
            },
            Self::Name { .. } => "write 127.0.0.1, [::1] or localhost".to_owned(),
            Self::NoPort { .. } => "add a port, such as :8077, or :0 for any".to_owned(),
            Self::Port { .. } => "write a number from 1 to 65535, or 0 for any".to_owned(),
            Self::Path { .. } => "write plain segments, without dots, stars or %".to_owned(),
            Self::Part(error) => return error.hint(),
        })
    }
}

/// A parsed entry, not yet checked against its `public` key.
#[derive(Debug)]
struct ParsedListenAddress {
    kind: ListenKind,
    address: Option<(SocketAddr, String)>,
}

impl ListenKind {
    const WORDS: [(&str, Self); 3] =
        [("http", Self::Http), ("websocket", Self::WebSocket), (STDIN, Self::Stdin)];

    /// The word that manifests use for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::WebSocket => "websocket",
            Self::Stdin => STDIN,
        }
    }

    fn from_word(word: &str) -> Option<Self> {
        Self::WORDS.into_iter().find_map(|(known, kind)| (known == word).then_some(kind))
    }

    /// The plugin's action, as a verb phrase.
    fn action_phrase(self) -> &'static str {
        match self {
            Self::Http => "listen to HTTP requests",
            Self::WebSocket => "listen to WebSocket connections",
            Self::Stdin => "read standard input",
        }
    }

    fn url_scheme(self) -> Option<&'static str> {
        match self {
            Self::Http => Some("http"),
            Self::WebSocket => Some("ws"),
            Self::Stdin => None,
        }
    }
}

impl FromStr for ParsedListenAddress {
    type Err = ListenError;

    fn from_str(text: &str) -> Result<Self, ListenError> {
        if text == STDIN {
            return Ok(Self { kind: ListenKind::Stdin, address: None });
        }
        if text.len() > ADDRESS_BYTES_MAX {
            return Err(ListenError::TooLong { bytes: text.len() });
        }
        let scheme = || ListenError::Scheme { text: text.to_owned() };
        let (word, rest) = text.split_once("://").ok_or_else(scheme)?;
        let kinds = [ListenKind::Http, ListenKind::WebSocket];
        let kind =
            kinds.into_iter().find(|kind| kind.url_scheme() == Some(word)).ok_or_else(scheme)?;
        refuse_extras(text, rest)?;
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (host, port) = split_port(authority);
        let port = port.ok_or_else(|| ListenError::NoPort { text: text.to_owned() })?;
        let addr =
            SocketAddr::new(parse_listen_host(host)?.to_canonical(), parse_listen_port(port)?);
        Ok(Self { kind, address: Some((addr, parse_listen_path(path)?)) })
    }
}

/// Parses a host that is an address or `localhost`. Other names are refused: their owner decides
/// what they resolve to.
fn parse_listen_host(host: &str) -> Result<IpAddr, ListenError> {
    let name = || ListenError::Name { host: host.to_owned() };
    match HostPattern::parse_wide(host)? {
        HostPattern::Exact(Host::Ipv4(addr)) => Ok(addr.into()),
        HostPattern::Exact(Host::Ipv6(addr)) => Ok(addr.into()),
        HostPattern::Exact(Host::Domain(name)) if name == "localhost" => {
            Ok(Ipv4Addr::LOCALHOST.into())
        }
        HostPattern::Exact(Host::Domain(_)) | HostPattern::OneLabelBelow(_) | HostPattern::Any => {
            Err(name())
        }
    }
}

fn parse_listen_port(text: &str) -> Result<u16, ListenError> {
    let plain = |port: &u16| port.to_string() == text;
    text.parse().ok().filter(plain).ok_or_else(|| ListenError::Port { port: text.to_owned() })
}

/// Parses a path that no client and no server rewrites.
fn parse_listen_path(path: &str) -> Result<String, ListenError> {
    let path = if path.is_empty() { "/" } else { path };
    let is_stable = || {
        let url = Url::parse(&format!("http://127.0.0.1{path}")).ok()?;
        (url.path() == path && PlainPath::new(path).is_some()).then_some(())
    };
    let odd = path.contains(['*', '%', ';']) || path.contains("//") || is_stable().is_none();
    match odd {
        true => Err(ListenError::Path { path: path.to_owned() }),
        false if path.len() > 1 => Ok(path.strip_suffix('/').unwrap_or(path).to_owned()),
        false => Ok(path.to_owned()),
    }
}

impl ListenGrant {
    fn from_toml(item: TomlItem<'_>) -> Result<Self, SourceError> {
        let place = item.place();
        if !item.is_table() {
            return Self::from_parsed_address(item.read_parsed()?, false, place);
        }
        item.read_section(|section| {
            let written = section.read_required("at", TomlItem::read_parsed)?;
            let public = section.read_optional("public", TomlItem::read_bool)?.unwrap_or(false);
            Self::from_parsed_address(written, public, place)
        })
    }

    fn from_parsed_address(
        written: ParsedListenAddress,
        public: bool,
        place: SourceLocation,
    ) -> Result<Self, SourceError> {
        let ParsedListenAddress { kind, address: at } = written;
        let is_loopback = at.as_ref().is_none_or(|(addr, _)| addr.ip().is_loopback());
        if public && is_loopback {
            let error =
                place.into_error("\"public\" has no effect on what only this machine reaches");
            return Err(error.with_hint("leave it out"));
        }
        if !public && !is_loopback {
            let message = "other machines could reach this address";
            let hint = "write 127.0.0.1 or [::1], or add public = true to say that you mean it";
            return Err(place.into_error(message).with_hint(hint));
        }
        let at = at.map(|(addr, path)| ListenAddress { socket_address: addr, path, public });
        Ok(Self { kind, address: at, place })
    }

    /// Returns the entry that a fix proposes: any free port on this machine.
    fn default_for_kind(kind: ListenKind, place: SourceLocation) -> Self {
        let addr = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0);
        let at = ListenAddress { socket_address: addr, path: "/".to_owned(), public: false };
        Self { kind, address: kind.url_scheme().map(|_| at), place }
    }

    /// Returns the canonical form of an address, if the text is one.
    pub(crate) fn canonical_text(text: &str) -> Option<String> {
        let ParsedListenAddress { kind, address: at } = text.parse().ok()?;
        let at = at.map(|(addr, path)| ListenAddress { socket_address: addr, path, public: false });
        let place = SourceLocation::unwritten();
        Some(Self { kind, address: at, place }.to_string())
    }

    /// Whether another entry has the same kind and address.
    fn is_duplicate_of(&self, other: &Self) -> bool {
        (self.kind, &self.address) == (other.kind, &other.address)
    }

    /// Why the entry conflicts with another one, if it does.
    fn conflict_with(&self, other: &Self) -> Option<&'static str> {
        let (Some(own), Some(theirs)) = (&self.address, &other.address) else {
            return self.is_duplicate_of(other).then_some("says the same");
        };
        match () {
            () if self.is_duplicate_of(other) => Some("says the same"),
            () if own.socket_address.port() != theirs.socket_address.port()
                || own.socket_address.port() == 0 =>
            {
                None
            }
            () if own.socket_address == theirs.socket_address => {
                (own.path == theirs.path).then_some("serves the same")
            }
            () if own.covers_socket(theirs) || theirs.covers_socket(own) => {
                Some("takes the same port")
            }
            () => None,
        }
    }

    /// The power that it gives the plugin, for the user who decides.
    fn permission_line(&self) -> String {
        match &self.address {
            None => self.kind.action_phrase().to_owned(),
            Some(ListenAddress { public: false, .. }) => format!("listen at {self}"),
            Some(ListenAddress { public: true, .. }) => {
                format!("listen at {self}, where other machines can reach it")
            }
        }
    }
}

impl EntryValue for ListenGrant {
    fn to_toml(&self) -> String {
        let at = toml_string(&self.to_string());
        match &self.address {
            Some(ListenAddress { public: true, .. }) => format!("{{ at = {at}, public = true }}"),
            Some(_) | None => at,
        }
    }
}

/// The capability.
pub(crate) struct Listen;

impl CapabilityKind for Listen {
    fn word(&self) -> &'static str {
        "listen"
    }

    fn shape(&self) -> ValueShape {
        ValueShape::List(LISTENS_MAX)
    }

    fn danger(&self) -> Option<&'static str> {
        Some("be reached from outside")
    }

    fn action_phrase(&self, detail: Option<&str>) -> String {
        let kind = detail.and_then(ListenKind::from_word);
        kind.map(ListenKind::action_phrase).unwrap_or_default().to_owned()
    }

    fn read_request_detail(
        &self,
        section: &mut TomlSection<'_>,
    ) -> Result<Option<String>, SourceError> {
        let kind = section.read_required("kind", |item| item.read_choice(&ListenKind::WORDS))?;
        Ok(Some(kind.as_str().to_owned()))
    }

    fn read_entry(
        &self,
        item: TomlItem<'_>,
        _tier: PolicyTier,
    ) -> Result<CapabilityEntry, SourceError> {
        let place = item.place();
        ListenGrant::from_toml(item).map(|entry| CapabilityEntry::new(entry, place))
    }

    fn is_about(&self, entry: &CapabilityEntry, detail: Option<&str>) -> bool {
        entry.value().is_some_and(|entry: &ListenGrant| Some(entry.kind.as_str()) == detail)
    }

    fn check_conflicts(
        &self,
        table: &CapabilityTable,
        _folders: &[FsEntry],
    ) -> Result<(), SourceError> {
        let entries: Vec<&ListenGrant> = entry_values(table.grants(Capability::Listen)).collect();
        for (index, entry) in entries.iter().enumerate() {
            let mut others = entries[..index].iter();
            let conflict =
                others.find_map(|other| Some((entry.conflict_with(other)?, &other.place)));
            if let Some((does, at)) = conflict {
                let message = format!("the entry at {at} {does}");
                let error = entry.place.clone().into_error(message);
                return Err(error.with_hint("leave out one of the two, or change its port or path"));
            }
        }
        Ok(())
    }

    fn hold(&self, granted: &GrantedEntries<'_>) -> Option<HeldCapability> {
        let grants: Vec<ListenGrant> = granted.values();
        let lines = grants.iter().map(ListenGrant::permission_line).collect();
        Some(HeldCapability::new(grants, lines, self.danger()))
    }

    fn satisfies(&self, held: &HeldCapability, detail: Option<&str>) -> bool {
        let grants: Option<&Vec<ListenGrant>> = held.value();
        grants.into_iter().flatten().any(|grant| Some(grant.kind.as_str()) == detail)
    }

    /// A loopback address for each kind that is requested and not held.
    fn missing_entries(
        &self,
        table: &CapabilityTable,
        _folders: &[FsEntry],
        requests: &[&RequestedCapability],
    ) -> Vec<CapabilityEntry> {
        let known = entry_values(table.grants(Capability::Listen));
        let mut kinds: Vec<ListenKind> = known.map(|entry: &ListenGrant| entry.kind).collect();
        let mut new = Vec::new();
        let requested = requests.iter().filter_map(|request| request.detail.as_deref());
        for kind in requested.filter_map(ListenKind::from_word) {
            if !kinds.contains(&kind) {
                kinds.push(kind);
                let place = SourceLocation::unwritten();
                let entry = ListenGrant::default_for_kind(kind, place);
                new.push(CapabilityEntry::proposed(entry));
            }
        }
        new
    }

    fn item_noun(&self) -> &'static str {
        "address to listen to"
    }

    fn is_operators_choice(&self) -> bool {
        true
    }

    fn item_phrase(&self, item: &str) -> String {
        format!("listening to {item}")
    }

    fn item_key(&self) -> &'static str {
        "at"
    }

    fn canonical_item(&self, item: &str) -> String {
        ListenGrant::canonical_text(item).unwrap_or_else(|| item.to_owned())
    }

    fn grant_flags(&self, _detail: Option<&str>) -> String {
        "--listen ADDRESS".to_owned()
    }
}

impl ListenAddress {
    /// Whether a path is served here: it equals the address's path or is below it.
    pub fn serves_path(&self, path: &str) -> bool {
        match path.strip_prefix(self.path.trim_end_matches('/')) {
            Some(below) => below.is_empty() || below.starts_with('/'),
            None => false,
        }
    }

    /// Whether its socket also covers another address on the same port.
    fn covers_socket(&self, other: &Self) -> bool {
        let (own, theirs) = (self.socket_address.ip(), other.socket_address.ip());
        own.is_unspecified() && (own.is_ipv6() || theirs.is_ipv4())
    }
}

impl fmt::Display for ListenGrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.address, self.kind.url_scheme()) {
            (Some(ListenAddress { socket_address: addr, path, .. }), Some(scheme)) => {
                write!(f, "{scheme}://{addr}{path}")
            }
            (Some(_), None) | (None, _) => f.write_str(STDIN),
        }
    }
}
