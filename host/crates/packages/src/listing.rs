//! The page of a project: its files and their digests.
//!
//! Indexes answer in JSON or HTML with the same contents. A page is untrusted until a file's bytes
//! match its digest. The file is then as trustworthy as the index that the operator chose.

use std::{cmp::Reverse, str::FromStr};

use data_encoding::HEXLOWER_PERMISSIVE;
use html5gum::{Token, Tokenizer};
use pep440_rs::Version;
use serde::Deserialize;
use serde_json::Value;
use url::Url;

use crate::{
    project::{Project, is_same_version, normal_name},
    wheel::WheelName,
};

/// Length of a SHA-256 digest, in bytes.
const DIGEST_BYTES: usize = 32;

/// The end of a JSON page's media type.
const JSON: &str = "json";

/// A SHA-256 digest.
pub(crate) type Digest = [u8; DIGEST_BYTES];

/// One file of a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) name: WheelName,
    pub(crate) url: Url,
    /// A file without a digest is not accepted.
    pub(crate) digest: Option<Digest>,
    /// The project has withdrawn the file.
    pub(crate) is_yanked: bool,
    /// The page uses https, but the file does not. Such a file is never downloaded.
    pub(crate) leaves_https: bool,
}

/// Parses the wheels on a page. Invalid entries are skipped.
pub(crate) fn read(page: &Url, media_type: &str, text: &str) -> Vec<Entry> {
    let media_type = media_type.split(';').next().unwrap_or_default().trim();
    if media_type.ends_with(JSON) { read_json(page, text) } else { read_html(page, text) }
}

/// Chooses the file to download.
pub(crate) fn choose<'e>(entries: &'e [Entry], project: &Project) -> Option<&'e Entry> {
    let fits = |entry: &&Entry| {
        normal_name(&entry.name.project) == project.name
            && is_same_version(&entry.name.version, &project.version)
            && entry.name.is_pure
            && !entry.leaves_https
    };
    // A yanked file still matches, since a user may have pinned it, but any other is preferred.
    entries.iter().filter(fits).min_by_key(|entry| (entry.is_yanked, entry.digest.is_none()))
}

/// Returns the available versions of a project, the newest first, without duplicates. Yanked files
/// are skipped, and versions that cannot be parsed come last.
pub(crate) fn releases(entries: &[Entry], project: &str) -> Vec<String> {
    let fits = |entry: &&Entry| {
        normal_name(&entry.name.project) == project
            && entry.name.is_pure
            && entry.digest.is_some()
            && !entry.leaves_https
            && !entry.is_yanked
    };
    let mut versions: Vec<&str> =
        entries.iter().filter(fits).map(|entry| entry.name.version.as_str()).collect();
    versions.sort_by_cached_key(|version| Reverse(Version::from_str(version).ok()));
    versions.dedup();
    versions.into_iter().map(str::to_owned).collect()
}

#[derive(Deserialize)]
struct Page {
    files: Vec<File>,
}

#[derive(Deserialize)]
struct File {
    filename: String,
    url: String,
    #[serde(default)]
    hashes: Hashes,
    /// `false`, `true`, or the reason as text.
    #[serde(default)]
    yanked: Value,
}

#[derive(Default, Deserialize)]
struct Hashes {
    sha256: Option<String>,
}

fn read_json(page: &Url, text: &str) -> Vec<Entry> {
    let files = serde_json::from_str::<Page>(text).map(|page| page.files).unwrap_or_default();
    let entry = |file: File| {
        let url = page.join(&file.url).ok()?;
        Some(Entry {
            name: WheelName::parse(&file.filename)?,
            leaves_https: leaves_https(page, &url),
            url,
            digest: file.hashes.sha256.as_deref().and_then(digest),
            is_yanked: !matches!(file.yanked, Value::Null | Value::Bool(false)),
        })
    };
    files.into_iter().filter_map(entry).collect()
}

/// Parses an HTML page. A file's name is the last segment of its URL, and its digest is the
/// fragment.
fn read_html(page: &Url, text: &str) -> Vec<Entry> {
    let mut entries = Vec::new();
    for token in Tokenizer::new(text) {
        let Ok(Token::StartTag(tag)) = token else { continue };
        if tag.name.as_slice() != b"a" {
            continue;
        }
        let attribute = |name: &[u8]| {
            let value = tag.attributes.iter().find(|(key, _)| key.as_slice() == name)?.1;
            std::str::from_utf8(value.as_slice()).ok()
        };
        let url = attribute(b"href").and_then(|href| page.join(href).ok());
        entries.extend(url.and_then(|url| linked(page, url, attribute(b"data-yanked").is_some())));
    }
    entries
}

fn linked(page: &Url, mut url: Url, is_yanked: bool) -> Option<Entry> {
    let digest = url.fragment().and_then(|f| f.strip_prefix("sha256=")).and_then(digest);
    url.set_fragment(None);
    let name = WheelName::parse(url.path_segments()?.next_back()?)?;
    let leaves_https = leaves_https(page, &url);
    Some(Entry { name, url, digest, is_yanked, leaves_https })
}

fn leaves_https(page: &Url, file: &Url) -> bool {
    page.scheme() == "https" && file.scheme() != "https"
}

fn digest(text: &str) -> Option<Digest> {
    HEXLOWER_PERMISSIVE.decode(text.as_bytes()).ok()?.try_into().ok()
}
