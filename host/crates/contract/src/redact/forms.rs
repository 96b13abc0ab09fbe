//! The forms of each secret, as three readers of a text see it.
//!
//! Escapes are undone before a text gets here (see [`escape`](super::escape)), so a secret needs no
//! form for every encoder and every mixture of encoders. Three views of the same bytes remain, each
//! with few forms:
//!
//! - as text, ignoring the case of letters, which hosts and headers lose; a space equals a plus, as
//!   forms write it; and zero bytes between the letters are ignored, which covers most of UTF-16 in
//!   either byte order;
//! - as base64, in either alphabet, at any offset within the encoded data, and with any line
//!   breaks;
//! - as hexadecimal digits, also with the usual separators between them.

use std::collections::BTreeSet;

use data_encoding::{BASE64, HEXLOWER};

use super::{REDACTED_BYTES_MIN, escape};

/// How many times escapes within a secret itself are undone.
const DECODING_PASSES_MAX: usize = 3;

/// The number of bytes before the secret in its group of three, and the number of base64 letters
/// that mix their bits with its own.
const BASE64_ALIGNMENTS: [(usize, usize); 3] = [(0, 0), (1, 2), (2, 3)];

/// A view of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ByteView {
    /// As text.
    Text,
    /// As base64.
    Base64,
    /// As hexadecimal digits.
    Hex,
}

impl ByteView {
    pub(super) const ALL: [Self; 3] = [Self::Text, Self::Base64, Self::Hex];

    /// Returns the byte that this view compares, or `None` for a byte that it ignores.
    pub(super) fn fold_byte(self, byte: u8) -> Option<u8> {
        match (self, byte) {
            (_, 0) | (Self::Base64 | Self::Hex, b'\r' | b'\n' | b'\t' | b' ') => None,
            (Self::Text, b'+') => Some(b' '),
            (Self::Text | Self::Hex, byte) if byte.is_ascii_hexdigit() || self == Self::Text => {
                Some(byte.to_ascii_lowercase())
            }
            (Self::Hex, b':' | b'-' | b',' | b'.' | b'_') => None,
            // No form contains it, so it ends any form before it.
            (Self::Hex, _) => Some(0),
            (Self::Base64, b'-') => Some(b'+'),
            (Self::Base64, b'_') => Some(b'/'),
            (_, byte) => Some(byte),
        }
    }

    /// Returns the forms of a secret in this view. A secret is also known without the blanks around
    /// it, which headers and line ends lose.
    pub(super) fn secret_forms(self, secret: &str) -> BTreeSet<Vec<u8>> {
        let values = BTreeSet::from([secret, secret.trim()]);
        let forms = values.into_iter().flat_map(|value| match self {
            Self::Text => text_forms(value),
            Self::Base64 => {
                BASE64_ALIGNMENTS.iter().flat_map(|place| base64_forms(value, *place)).collect()
            }
            Self::Hex => vec![HEXLOWER.encode(value.as_bytes()).into_bytes()],
        });
        let folded = forms.map(|form| self.fold_bytes(&form));
        folded.filter(|form| form.len() >= REDACTED_BYTES_MIN).collect()
    }

    fn fold_bytes(self, bytes: &[u8]) -> Vec<u8> {
        bytes.iter().filter_map(|byte| self.fold_byte(*byte)).collect()
    }
}

/// A secret verbatim, in UTF-16, and with its own escapes undone: a reader that undoes an encoder's
/// escapes undoes the secret's as well.
fn text_forms(value: &str) -> Vec<Vec<u8>> {
    let units = || value.encode_utf16();
    let mut texts = vec![
        value.as_bytes().to_vec(),
        units().flat_map(u16::to_le_bytes).collect(),
        units().flat_map(u16::to_be_bytes).collect(),
    ];
    let mut plain = value.as_bytes().to_vec();
    for _ in 0..DECODING_PASSES_MAX {
        plain = escape::undo_escapes(&plain);
        texts.push(plain.clone());
    }
    texts
}

/// The letters that encode the secret alone; and, for a secret at the end of the data, also with
/// its last letter, and with the padding.
fn base64_forms(value: &str, (before, shared): (usize, usize)) -> [Vec<u8>; 3] {
    let data = [&[0; 2][..before], value.as_bytes()].concat();
    let padded = BASE64.encode(&data)[shared..].to_owned();
    let ending = padded.trim_end_matches('=');
    let mixed = usize::from(!data.len().is_multiple_of(3));
    let alone = ending.as_bytes()[..ending.len() - mixed].to_vec();
    [alone, ending.as_bytes().to_vec(), padded.into_bytes()]
}
