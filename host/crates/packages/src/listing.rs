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
    project::{ProjectVersion, is_same_version, normalize_name},
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
pub(crate) struct WheelEntry {
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
pub(crate) fn parse_page(page: &Url, media_type: &str, text: &str) -> Vec<WheelEntry> {
    let media_type = media_type.split(';').next().unwrap_or_default().trim();
    if media_type.ends_with(JSON) {
        parse_json_page(page, text)
    } else {
        parse_html_page(page, text)
    }
}

/// Chooses the file to download.
pub(crate) fn choose_entry<'e>(
    entries: &'e [WheelEntry],
    project: &ProjectVersion,
) -> Option<&'e WheelEntry> {
    let fits = |entry: &&WheelEntry| {
        normalize_name(&entry.name.project) == project.name
            && is_same_version(&entry.name.version, &project.version)
            && entry.name.is_pure
            && !entry.leaves_https
    };
    // A yanked file still matches, since a user may have pinned it, but any other is preferred.
    entries.iter().filter(fits).min_by_key(|entry| (entry.is_yanked, entry.digest.is_none()))
}

/// Returns the available versions of a project, the newest first, without duplicates. Yanked files
/// are skipped, and versions that cannot be parsed come last.
pub(crate) fn available_versions(entries: &[WheelEntry], project: &str) -> Vec<String> {
    let fits = |entry: &&WheelEntry| {
        normalize_name(&entry.name.project) == project
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
struct SimpleApiPage {
    files: Vec<SimpleApiFile>,
}

#[derive(Deserialize)]
struct SimpleApiFile {
    filename: String,
    url: String,
    #[serde(default)]
    hashes: SimpleApiHashes,
    /// `false`, `true`, or the reason as text.
    #[serde(default)]
    yanked: Value,
}

#[derive(Default, Deserialize)]
struct SimpleApiHashes {
    sha256: Option<String>,
}

fn parse_json_page(page: &Url, text: &str) -> Vec<WheelEntry> {
    let files =
        serde_json::from_str::<SimpleApiPage>(text).map(|page| page.files).unwrap_or_default();
    let entry = |file: SimpleApiFile| {
        let url = page.join(&file.url).ok()?;
        Some(WheelEntry {
            name: WheelName::parse(&file.filename)?,
            leaves_https: leaves_https(page, &url),
            url,
            digest: file.hashes.sha256.as_deref().and_then(parse_digest),
            is_yanked: !matches!(file.yanked, Value::Null | Value::Bool(false)),
        })
    };
    files.into_iter().filter_map(entry).collect()
}

/// Parses an HTML page. A file's name is the last segment of its URL, and its digest is the
/// fragment.
fn parse_html_page(page: &Url, text: &str) -> Vec<WheelEntry> {
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
        entries.extend(
            url.and_then(|url| entry_from_link(page, url, attribute(b"data-yanked").is_some())),
        );
    }
    entries
}

fn entry_from_link(page: &Url, mut url: Url, is_yanked: bool) -> Option<WheelEntry> {
    let digest = url.fragment().and_then(|f| f.strip_prefix("sha256=")).and_then(parse_digest);
    url.set_fragment(None);
    let name = WheelName::parse(url.path_segments()?.next_back()?)?;
    let leaves_https = leaves_https(page, &url);
    Some(WheelEntry { name, url, digest, is_yanked, leaves_https })
}

fn leaves_https(page: &Url, file: &Url) -> bool {
    page.scheme() == "https" && file.scheme() != "https"
}

fn parse_digest(text: &str) -> Option<Digest> {
    HEXLOWER_PERMISSIVE.decode(text.as_bytes()).ok()?.try_into().ok()
}
