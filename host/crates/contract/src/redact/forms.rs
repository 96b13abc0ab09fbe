//! What is looked for: each secret as three readers of a text would see it.
//!
//! Escapes are undone before a text gets here (see [`escape`](super::escape)), so a secret needs no
//! form for every encoder and every mixture of them. What is left are three ways to look at the same
//! bytes, each with few forms:
//!
//! - as text: without regard to the case of its letters, since hosts and headers lose it; a blank is
//!   as good as a plus, as forms write it; and zero bytes between the letters count for nothing,
//!   which is how UTF-16 writes most of them, in either order of its bytes;
//! - as base64, in either alphabet, wherever in the encoded data the secret begins, and however its
//!   lines are broken;
//! - as hexadecimal digits, also with what is usually put between them.

use std::collections::BTreeSet;

use data_encoding::{BASE64, HEXLOWER};

use super::{REDACTED_BYTES_MIN, escape};

/// How often escapes within a secret itself are undone.
const UNDONE_TIMES_MAX: usize = 3;

/// How many bytes stand before the secret in its group of three, and how many letters of base64 mix
/// their bits with its own.
const BEGINNINGS: [(usize, usize); 3] = [(0, 0), (1, 2), (2, 3)];

/// A way to look at bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum View {
    /// As text.
    Text,
    /// As base64.
    Base64,
    /// As hexadecimal digits.
    Hex,
}

impl View {
    pub(super) const ALL: [Self; 3] = [Self::Text, Self::Base64, Self::Hex];

    /// What a byte counts as; nothing where it is as if it were not there.
    pub(super) fn fold(self, byte: u8) -> Option<u8> {
        match (self, byte) {
            (_, 0) | (Self::Base64 | Self::Hex, b'\r' | b'\n' | b'\t' | b' ') => None,
            (Self::Text, b'+') => Some(b' '),
            (Self::Text | Self::Hex, byte) if byte.is_ascii_hexdigit() || self == Self::Text => {
                Some(byte.to_ascii_lowercase())
            }
            (Self::Hex, b':' | b'-' | b',' | b'.' | b'_') => None,
            // No form holds it, so it ends whatever stood before it.
            (Self::Hex, _) => Some(0),
            (Self::Base64, b'-') => Some(b'+'),
            (Self::Base64, b'_') => Some(b'/'),
            (_, byte) => Some(byte),
        }
    }

    /// Returns the forms of a secret, as this view sees them. Blanks around it are lost in headers
    /// and at the ends of lines, so it is known without them too.
    pub(super) fn forms(self, secret: &str) -> BTreeSet<Vec<u8>> {
        let values = BTreeSet::from([secret, secret.trim()]);
        let forms = values.into_iter().flat_map(|value| match self {
            Self::Text => texts(value),
            Self::Base64 => BEGINNINGS.iter().flat_map(|place| base64(value, *place)).collect(),
            Self::Hex => vec![HEXLOWER.encode(value.as_bytes()).into_bytes()],
        });
        let folded = forms.map(|form| self.folded(&form));
        folded.filter(|form| form.len() >= REDACTED_BYTES_MIN).collect()
    }

    fn folded(self, bytes: &[u8]) -> Vec<u8> {
        bytes.iter().filter_map(|byte| self.fold(*byte)).collect()
    }
}

/// A secret as it is, in UTF-16, and as it is when what looks like an escape in it is undone, since
/// whoever undoes those of an encoder undoes its own as well.
fn texts(value: &str) -> Vec<Vec<u8>> {
    let units = || value.encode_utf16();
    let mut texts = vec![
        value.as_bytes().to_vec(),
        units().flat_map(u16::to_le_bytes).collect(),
        units().flat_map(u16::to_be_bytes).collect(),
    ];
    let mut plain = value.as_bytes().to_vec();
    for _ in 0..UNDONE_TIMES_MAX {
        plain = escape::undone(&plain);
        texts.push(plain.clone());
    }
    texts
}

/// The letters that are the secret's alone; and, for a secret that ends the data, with its last
/// letter, and with the padding.
fn base64(value: &str, (before, shared): (usize, usize)) -> [Vec<u8>; 3] {
    let data = [&[0; 2][..before], value.as_bytes()].concat();
    let padded = BASE64.encode(&data)[shared..].to_owned();
    let ending = padded.trim_end_matches('=');
    let mixed = usize::from(!data.len().is_multiple_of(3));
    let alone = ending.as_bytes()[..ending.len() - mixed].to_vec();
    [alone, ending.as_bytes().to_vec(), padded.into_bytes()]
}
