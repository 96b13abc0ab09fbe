//! Base64, wherever in the encoded data the secret begins.
//!
//! Three bytes make four letters, so a secret has three spellings, by what stands before it. The
//! letters at its ends mix its bits with those of its neighbours; the letters between do not, and
//! they are the form.

use std::collections::BTreeSet;

use data_encoding::{BASE64, BASE64URL, Encoding};

/// How many bytes stand before the secret in its group of three, and how many letters of the group
/// depend on them.
const BEGINNINGS: [(usize, usize); 3] = [(0, 0), (1, 2), (2, 3)];

pub(super) fn forms(value: &str) -> BTreeSet<String> {
    let mut forms = BTreeSet::new();
    for alphabet in [BASE64, BASE64URL] {
        for beginning in BEGINNINGS {
            forms.extend(spellings(value, &alphabet, beginning));
        }
    }
    forms
}

/// The letters that are the secret's alone; and, for a secret that ends the data, with its last
/// letter, and with the padding.
fn spellings(value: &str, alphabet: &Encoding, (before, shared): (usize, usize)) -> [String; 3] {
    let data = [&[0; 2][..before], value.as_bytes()].concat();
    let padded = alphabet.encode(&data)[shared..].to_owned();
    let ending = padded.trim_end_matches('=').to_owned();
    let mixed = usize::from(!data.len().is_multiple_of(3));
    [ending[..ending.len() - mixed].to_owned(), ending, padded]
}
