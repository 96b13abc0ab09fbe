//! The spellings of a secret: how programs write a text that passes through them.
//!
//! Encoders disagree about which characters need an escape. Each file here holds a table of the
//! habits that are common; whatever two habits spell alike counts once, so a secret of letters and
//! digits has few forms and one full of signs has many.

mod base64;
mod escape;
mod json;
mod markup;
mod percent;

use std::{collections::BTreeSet, iter};

use super::REDACTED_BYTES_MIN;

/// The two ways to write the digits of a hexadecimal number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Case {
    Lower,
    Upper,
}

impl Case {
    const BOTH: [Self; 2] = [Self::Lower, Self::Upper];

    fn two_digits(self, value: u8) -> String {
        match self {
            Self::Lower => format!("{value:02x}"),
            Self::Upper => format!("{value:02X}"),
        }
    }

    fn four_digits(self, value: u16) -> String {
        match self {
            Self::Lower => format!("{value:04x}"),
            Self::Upper => format!("{value:04X}"),
        }
    }
}

/// Returns every form of a secret. Blanks around it are lost in headers and at the ends of lines, so
/// it is known without them too.
pub(super) fn of(secret: &str) -> BTreeSet<String> {
    let values = BTreeSet::from([secret, secret.trim()]);
    let forms: BTreeSet<String> = values.into_iter().flat_map(of_value).collect();
    debug_assert!(forms.iter().all(|form| form.len() >= REDACTED_BYTES_MIN));
    forms
}

fn of_value(value: &str) -> BTreeSet<String> {
    let mut forms = BTreeSet::new();
    for text in iter::once(value.to_owned()).chain(base64::forms(value)) {
        forms.extend(carried(text));
    }
    // Names of hosts and headers lose their case.
    forms.extend([value.to_ascii_lowercase(), value.to_ascii_uppercase()]);
    for case in Case::BOTH {
        forms.insert(value.bytes().map(|byte| case.two_digits(byte)).collect());
        forms.insert(percent::every_byte(value, case));
        let spelt = json::every_unit(value, case);
        forms.insert(json::minimal(&spelt));
        forms.insert(spelt);
    }
    forms.extend(escape::forms(value));
    forms.extend(markup::forms(value));
    forms
}

/// A text as it is and as URLs and JSON carry it, once and once within the other.
fn carried(text: String) -> BTreeSet<String> {
    // Most tokens and most of base64 are of signs that nobody escapes.
    if text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)) {
        return BTreeSet::from([text]);
    }
    let mut forms = BTreeSet::new();
    for once in percent::forms(&text).into_iter().chain(json::forms(&text)) {
        forms.insert(percent::component(&once));
        forms.insert(once);
    }
    forms.extend(json::forms_within(&text));
    forms.insert(text);
    forms
}
