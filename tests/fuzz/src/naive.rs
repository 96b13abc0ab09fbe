//! A second opinion on network patterns: written from their description, slow and plain, and with
//! nothing of the real ones in it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use url::{Host, Url};

/// How often a path is decoded on its way: by a server, and by the one behind it.
const DECODINGS: usize = 3;

/// Whether a pattern that parses matches a request.
pub fn matches(pattern: &str, method: &str, url: &Url) -> bool {
    let (methods, place) = pattern.split_once(' ').expect("a pattern begins with methods");
    let (scheme, rest) = place.split_once("://").expect("a pattern has a scheme");
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let (host, port) =
        match authority.rfind(':').filter(|at| *at > authority.rfind(']').unwrap_or(0)) {
            Some(colon) => (&authority[..colon], Some(&authority[colon + 1..])),
            None => (authority, None),
        };
    (methods == "*" || methods.split(',').any(|known| known == method))
        && scheme == url.scheme()
        && host_matches(host, url)
        && port_matches(port, scheme, url)
        && path_matches(path, url.path())
}

fn host_matches(pattern: &str, url: &Url) -> bool {
    let Some(host) = url.host_str() else { return false };
    let plain = |text: &str| {
        let parsed = Url::parse(&format!("http://{text}/")).expect("a pattern's host is one");
        parsed.host_str().unwrap_or_default().to_owned()
    };
    match pattern.strip_prefix("*.") {
        None => plain(pattern) == host,
        Some(domain) => match url.host() {
            Some(Host::Domain(name)) => {
                let labels: Vec<_> = name.splitn(2, '.').collect();
                labels.len() == 2 && !labels[0].is_empty() && labels[1] == plain(domain)
            }
            _ => false,
        },
    }
}

fn port_matches(pattern: Option<&str>, scheme: &str, url: &Url) -> bool {
    let asked = u32::from(url.port_or_known_default().unwrap_or(0));
    let number = |text: &str| text.parse::<u32>().expect("a pattern's port is a number");
    match pattern.map(|text| text.split_once('-').unwrap_or((text, text))) {
        Some((first, last)) => number(first) <= asked && asked <= number(last),
        None => asked == if scheme == "https" { 443 } else { 80 },
    }
}

fn path_matches(pattern: &str, path: &str) -> bool {
    let pattern = if pattern.is_empty() { "/" } else { pattern };
    let mut wanted: Vec<&str> = pattern.split('/').skip(1).collect();
    let given: Vec<&str> = path.split('/').skip(1).collect();
    let is_open = wanted.last() == Some(&"**");
    if is_open {
        wanted.pop();
    }
    let fits = if is_open { given.len() >= wanted.len() } else { given.len() == wanted.len() };
    fits && wanted.iter().zip(&given).all(|(wanted, given)| segment_matches(wanted, given))
}

fn segment_matches(pattern: &str, text: &str) -> bool {
    let text = decoded(text.as_bytes());
    let pieces: Vec<_> = pattern.split('*').map(|piece| decoded(piece.as_bytes())).collect();
    if pattern == "*" {
        return !text.is_empty();
    }
    // For each length: whether that much of the text is matched by the pieces so far.
    let mut reached = vec![false; text.len() + 1];
    reached[0] = true;
    for (index, piece) in pieces.iter().enumerate() {
        if index > 0 {
            let first = reached.iter().position(|is_reached| *is_reached);
            reached = (0..=text.len()).map(|at| first.is_some_and(|first| first <= at)).collect();
        }
        let ends_piece = |at: usize| text[..at].ends_with(piece) && reached[at - piece.len()];
        reached = (0..=text.len()).map(ends_piece).collect();
    }
    reached[text.len()]
}

fn decoded(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        let hex = after.get(..2).filter(|hex| hex.iter().all(u8::is_ascii_hexdigit));
        let hex = hex.and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.filter(|_| *first == b'%').and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => (bytes.push(byte), rest = &after[2..]),
            None => (bytes.push(*first), rest = after),
        };
    }
    bytes
}

/// Whether a URL has nothing in it that any pattern could object to.
pub fn is_plain(method: &str, url: &Url) -> bool {
    let host_is_plain = match url.host() {
        Some(Host::Domain(name)) => !name.split('.').any(str::is_empty),
        Some(Host::Ipv4(_) | Host::Ipv6(_)) => true,
        None => false,
    };
    let path = url.path();
    host_is_plain
        && url.username().is_empty()
        && url.password().is_none()
        && !path.contains(['%', ';', '\\'])
        && url.as_str().len() < 16_000
        && !["CONNECT", "TRACE"].contains(&method.to_ascii_uppercase().as_str())
}

/// Whether a path reads otherwise to a server that decodes it once or more: with a dot, a slash or
/// the like that was not there before.
pub fn hides(path: &str) -> bool {
    let telling = |bytes: &[u8]| {
        let tells = |byte: &&u8| matches!(byte, b'.' | b'/' | b'\\') || byte.is_ascii_control();
        bytes.iter().filter(tells).count()
    };
    let mut bytes = path.as_bytes().to_vec();
    for _ in 0..DECODINGS {
        bytes = decoded(&bytes);
    }
    telling(&bytes) != telling(path.as_bytes())
}

/// Whether the standard library already knows that an address is no public one.
pub fn is_surely_private(addr: IpAddr) -> bool {
    match addr.to_canonical() {
        IpAddr::V4(addr) => is_surely_private_v4(addr),
        IpAddr::V6(addr) => is_surely_private_v6(addr),
    }
}

fn is_surely_private_v4(addr: Ipv4Addr) -> bool {
    addr.is_loopback()
        || addr.is_private()
        || addr.is_link_local()
        || addr.is_multicast()
        || addr.is_unspecified()
        || addr.is_broadcast()
        || addr.is_documentation()
}

fn is_surely_private_v6(addr: Ipv6Addr) -> bool {
    addr.is_loopback()
        || addr.is_unspecified()
        || addr.is_multicast()
        || addr.is_unique_local()
        || addr.is_unicast_link_local()
}
