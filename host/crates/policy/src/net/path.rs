//! Paths of URLs and the globs over them.
//!
//! Both sides are compared segment by segment after percent-decoding, so that `%73ecret` does not
//! get past a pattern for `secret`. A path with an encoded dot, slash or backslash means different
//! things to different servers, so no pattern matches it.

use std::{borrow::Cow, fmt};

use percent_encoding::percent_decode_str;

use super::pattern::NetPatternError;

/// Most times that a path is decoded: a server decodes once, a careless chain of servers two or
/// three times.
const DECODINGS_MAX: usize = 4;

/// The decoded path of a URL, without hidden characters.
#[derive(Debug)]
pub(crate) struct PlainPath<'u>(Cow<'u, [u8]>);

/// The path of a pattern: segments, and whether more segments may follow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PathPattern {
    segments: Vec<SegmentPattern>,
    matches_below: bool,
}

/// One segment of a pattern. `pieces` are the decoded texts between its stars; a single piece is a
/// literal.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SegmentPattern {
    text: String,
    pieces: Vec<Vec<u8>>,
}

impl<'u> PlainPath<'u> {
    /// Decodes the canonical path of a URL; `None` if the path hides something.
    pub(crate) fn new(path: &'u str) -> Option<Self> {
        let plain = Self(percent_decode_str(path).into());
        let is_hiding = path.contains('\\')
            || plain.segments().any(is_dot_segment)
            || has_hidden_character(path);
        (!is_hiding).then_some(plain)
    }

    fn segments(&self) -> impl Iterator<Item = &[u8]> {
        self.0.split(|byte| *byte == b'/').skip(1)
    }
}

/// Whether every server reads a path in the same way: it has no dot segments, no empty segments,
/// and no encoded dot, slash, backslash or control character.
///
/// ```
/// use sallyport_policy::is_plain_path;
///
/// assert!(is_plain_path("/hooks/caf%C3%A9/"));
/// assert!(!is_plain_path("/hooks/../x") && !is_plain_path("/hooks/%2e%2e/x"));
/// ```
pub fn is_plain_path(path: &str) -> bool {
    path.starts_with('/') && !path.contains("//") && PlainPath::new(path).is_some()
}

/// Whether any of several decodings reveals a hidden character. A path that still changes after all
/// of them was crafted to do so, and counts as hiding one.
fn has_hidden_character(path: &str) -> bool {
    let mut text = path.to_owned();
    for _ in 0..DECODINGS_MAX {
        if has_encoded_separator(&text) {
            return true;
        }
        match percent_decode_str(&text).decode_utf8() {
            // Bytes that are not UTF-8 are overlong forms of some character to some server.
            Err(_) => return true,
            Ok(decoded) if decoded == text => return false,
            Ok(decoded) => text = decoded.into_owned(),
        }
    }
    true
}

/// Whether a dot, a slash, a backslash or a control character is percent-encoded, once or several
/// times.
fn has_encoded_separator(path: &str) -> bool {
    path.match_indices('%').any(|(at, _)| {
        let mut code = &path[at + 1..];
        while let Some(inner) = code.strip_prefix("25") {
            code = inner;
        }
        let byte = code.get(..2).and_then(|hex| u8::from_str_radix(hex, 16).ok());
        byte.is_some_and(|byte| matches!(byte, b'.' | b'/' | b'\\') || byte.is_ascii_control())
    })
}

/// Whether some server reads a segment as `.` or `..`; a few ignore the text after a semicolon.
fn is_dot_segment(segment: &[u8]) -> bool {
    let name = segment.split(|byte| *byte == b';').next().unwrap_or_default();
    name == b"." || name == b".."
}

/// A segment as the most lenient server reads it.
fn lenient_segment(segment: &[u8]) -> Vec<u8> {
    let name = segment.split(|byte| *byte == b';').next().unwrap_or_default();
    name.trim_ascii().to_ascii_lowercase()
}

impl PathPattern {
    /// The pattern of a URL without a path: `/` and nothing else.
    pub(crate) fn root() -> Self {
        let root = SegmentPattern { text: String::new(), pieces: vec![Vec::new()] };
        Self { segments: vec![root], matches_below: false }
    }

    pub(crate) fn parse(path: &str) -> Result<Self, NetPatternError> {
        let refused = |reason| NetPatternError::Path { path: path.to_owned(), reason };
        if let Some(reason) = find_path_fault(path) {
            return Err(refused(reason));
        }
        let (closed, matches_below) = match path.strip_suffix("/**") {
            Some(front) => (front, true),
            None => (path, false),
        };
        if closed.contains("**") {
            return Err(refused("`**` can only be the whole last segment"));
        }
        let segments = closed.split('/').skip(1).map(SegmentPattern::parse).collect();
        Ok(Self { segments, matches_below })
    }

    pub(crate) fn is_root(&self) -> bool {
        *self == Self::root()
    }

    pub(crate) fn matches(&self, path: &PlainPath<'_>) -> bool {
        self.matches_segments(path.segments())
    }

    /// Whether the path matches as it is, or as a lenient server reads it: without empty segments,
    /// without the text after a semicolon, and regardless of case. For denials, where the wider
    /// reading is the safe one.
    pub(crate) fn matches_leniently(&self, path: &PlainPath<'_>) -> bool {
        if self.matches(path) {
            return true;
        }
        let segments: Vec<Vec<u8>> = path.segments().map(lenient_segment).collect();
        let filled = segments.iter().map(Vec::as_slice).filter(|segment| !segment.is_empty());
        self.to_lenient().matches_segments(filled)
    }

    /// The pattern as a lenient server would read it as a path.
    fn to_lenient(&self) -> Self {
        Self {
            segments: self.segments.iter().filter_map(SegmentPattern::to_lenient).collect(),
            matches_below: self.matches_below,
        }
    }

    fn matches_segments<'p>(&self, mut path: impl Iterator<Item = &'p [u8]>) -> bool {
        for segment in &self.segments {
            if !path.next().is_some_and(|bytes| segment.matches(bytes)) {
                return false;
            }
        }
        self.matches_below || path.next().is_none()
    }

    /// Whether the pattern certainly matches every path of `other`.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        let mut others = other.segments.iter();
        for segment in &self.segments {
            if !others.next().is_some_and(|other| segment.covers(other)) {
                return false;
            }
        }
        self.matches_below || (!other.matches_below && others.next().is_none())
    }

    /// The pattern of the paths that match both. It is exact, except for two globs at the same
    /// position that overlap without one covering the other: there it keeps the first.
    pub(crate) fn intersect_with(&self, other: &Self) -> Option<Self> {
        let length = self.segments.len().max(other.segments.len());
        let at = |index: usize| match (self.segments.get(index), other.segments.get(index)) {
            (Some(own), Some(others)) => own.intersect_with(others),
            (Some(own), None) => other.matches_below.then(|| own.clone()),
            (None, Some(others)) => self.matches_below.then(|| others.clone()),
            (None, None) => None,
        };
        let segments = (0..length).map(at).collect::<Option<_>>()?;
        Some(Self { segments, matches_below: self.matches_below && other.matches_below })
    }
}

/// The reason why the text of a path pattern is invalid.
fn find_path_fault(path: &str) -> Option<&'static str> {
    if !path.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Some("write other than plain characters percent-encoded");
    }
    if path.contains(['{', '}']) {
        return Some("braces are not part of a path");
    }
    if PlainPath::new(path).is_none() {
        return Some("dot segments and encoded dots, slashes or control characters are refused");
    }
    let encoded = |(at, _)| path.get(at + 1..at + 3).is_some_and(is_hex);
    (!path.match_indices('%').all(encoded)).then_some("`%` takes two hexadecimal digits")
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

impl SegmentPattern {
    fn parse(text: &str) -> Self {
        let pieces = text.split('*').map(|piece| percent_decode_str(piece).collect()).collect();
        Self { text: text.to_owned(), pieces }
    }

    /// The segment as a lenient server reads it. It passes over an empty one.
    fn to_lenient(&self) -> Option<Self> {
        let pieces: Vec<Vec<u8>> = match self.as_literal() {
            Some(literal) => vec![lenient_segment(literal)],
            None => self.pieces.iter().map(|piece| piece.to_ascii_lowercase()).collect(),
        };
        let is_empty = pieces.iter().all(Vec::is_empty) && pieces.len() == 1;
        (!is_empty).then(|| Self { text: self.text.to_ascii_lowercase(), pieces })
    }

    fn as_literal(&self) -> Option<&[u8]> {
        match self.pieces.as_slice() {
            [only] => Some(only),
            _ => None,
        }
    }

    /// Whether the segment is `*`, which matches any text except the empty one.
    fn is_star(&self) -> bool {
        self.text == "*"
    }

    fn matches(&self, bytes: &[u8]) -> bool {
        let Some((last, front)) = self.pieces.split_last() else {
            return false;
        };
        let Some((first, middle)) = front.split_first() else {
            return last == bytes;
        };
        if self.is_star() {
            return !bytes.is_empty();
        }
        let Some(mut rest) = bytes.strip_prefix(first.as_slice()) else {
            return false;
        };
        for piece in middle {
            match find_piece_end(rest, piece) {
                Some(end) => rest = &rest[end..],
                None => return false,
            }
        }
        rest.ends_with(last)
    }

    fn covers(&self, other: &Self) -> bool {
        match other.as_literal() {
            Some(literal) => self.matches(literal),
            None => self.pieces == other.pieces || (self.is_star() && other.needs_character()),
        }
    }

    fn needs_character(&self) -> bool {
        self.is_star() || self.pieces.iter().any(|piece| !piece.is_empty())
    }

    fn intersect_with(&self, other: &Self) -> Option<Self> {
        if self.covers(other) {
            Some(other.clone())
        } else if other.covers(self) || self.may_overlap(other) {
            Some(self.clone())
        } else {
            None
        }
    }

    /// Whether two globs can match the same text, judged by their beginnings and ends.
    fn may_overlap(&self, other: &Self) -> bool {
        let both_globs = self.as_literal().is_none() && other.as_literal().is_none();
        both_globs
            && ends_agree(self.pieces.first(), other.pieces.first(), |a, b| a.starts_with(b))
            && ends_agree(self.pieces.last(), other.pieces.last(), |a, b| a.ends_with(b))
    }
}

fn ends_agree(
    a: Option<&Vec<u8>>,
    b: Option<&Vec<u8>>,
    has: impl Fn(&[u8], &[u8]) -> bool,
) -> bool {
    a.zip(b).is_some_and(|(a, b)| has(a, b) || has(b, a))
}

/// The end of the first occurrence of a piece.
fn find_piece_end(bytes: &[u8], piece: &[u8]) -> Option<usize> {
    if piece.is_empty() {
        return Some(0);
    }
    let start = bytes.windows(piece.len()).position(|window| window == piece)?;
    Some(start + piece.len())
}

impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for segment in &self.segments {
            write!(f, "/{}", segment.text)?;
        }
        f.write_str(if self.matches_below { "/**" } else { "" })
    }
}
