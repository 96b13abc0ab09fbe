//! The page of one project: which files there are, and what their bytes must hash to.
//!
//! Indexes answer in JSON or in HTML; both say the same. A page is untrusted until a file's bytes fit
//! the digest that stands on it, and then it is as good as the index that the operator chose.

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

/// Length of a SHA-256 digest.
const DIGEST_BYTES: usize = 32;

/// What the media type of a JSON page ends with.
const JSON: &str = "json";

/// A digest of SHA-256.
pub(crate) type Digest = [u8; DIGEST_BYTES];

/// One file of a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) name: WheelName,
    pub(crate) url: Url,
    /// Without one, a file is not believed.
    pub(crate) digest: Option<Digest>,
    /// The project has taken it back.
    pub(crate) is_yanked: bool,
    /// The page came over https, and the file would not. It is never fetched.
    pub(crate) leaves_https: bool,
}

/// Reads the wheels off a page. What is not understood is left out.
pub(crate) fn read(page: &Url, media_type: &str, text: &str) -> Vec<Entry> {
    let media_type = media_type.split(';').next().unwrap_or_default().trim();
    if media_type.ends_with(JSON) { read_json(page, text) } else { read_html(page, text) }
}

/// Chooses the file to take.
pub(crate) fn choose<'e>(entries: &'e [Entry], project: &Project) -> Option<&'e Entry> {
    let fits = |entry: &&Entry| {
        normal_name(&entry.name.project) == project.name
            && is_same_version(&entry.name.version, &project.version)
            && entry.name.is_pure
            && !entry.leaves_https
    };
    // One that was taken back is still what somebody pinned, but never in place of a better one.
    entries.iter().filter(fits).min_by_key(|entry| (entry.is_yanked, entry.digest.is_none()))
}

/// The versions of a project that can be taken, the newest first and each once. What was taken back
/// is left out, and what no version can be read of stands last.
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

/// The file's name is the last part of its address; its digest stands behind the `#`.
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
