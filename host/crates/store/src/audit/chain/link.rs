//! The links of the chain: a record's number, with the hash over the record and everything before
//! it.

use std::{fmt, str::FromStr};

use blake3::Hash;
use sallyport_contract::text;
use serde::{Deserialize, Serialize};

use crate::error::StoreError;

/// Most characters of a text that an error quotes; a link is shorter.
const QUOTE_CHARS_MAX: usize = 90;

/// A record's number and hash, written `NUMBER:HASH`.
///
/// With a copy of the last record's link kept elsewhere, a later check detects any change up to
/// that record, even one made with the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct ChainLink {
    /// The record's number; 0 before the first.
    pub(crate) seq: u64,
    /// The hash.
    pub(crate) hash: Hash,
}

/// Why a text is not a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a head: it is written as NUMBER:HASH")]
pub(crate) struct ChainLinkError;

impl ChainLink {
    /// The link before the first record.
    pub(crate) const GENESIS: Self = Self { seq: 0, hash: Hash::from_bytes([0; blake3::OUT_LEN]) };

    /// Parses a link that the user kept.
    ///
    /// # Errors
    ///
    /// The text is not a link.
    pub(crate) fn parse_expected(text: &str) -> Result<Self, StoreError> {
        let quoted = || text::escape_excerpt(text, QUOTE_CHARS_MAX);
        text.trim().parse().map_err(|_| StoreError::InvalidHead { text: quoted() })
    }
}

impl fmt::Display for ChainLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.seq, self.hash)
    }
}

impl FromStr for ChainLink {
    type Err = ChainLinkError;

    fn from_str(text: &str) -> Result<Self, ChainLinkError> {
        let (seq, hash) = text.split_once(':').ok_or(ChainLinkError)?;
        let seq = seq.parse().map_err(|_| ChainLinkError)?;
        Ok(Self { seq, hash: Hash::from_hex(hash).map_err(|_| ChainLinkError)? })
    }
}

impl TryFrom<String> for ChainLink {
    type Error = ChainLinkError;

    fn try_from(text: String) -> Result<Self, ChainLinkError> {
        text.parse()
    }
}

impl From<ChainLink> for String {
    fn from(link: ChainLink) -> Self {
        link.to_string()
    }
}
