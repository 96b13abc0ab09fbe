//! The escapes of programming languages, as logs and error messages show them: `\x41`, `\'`.

use std::collections::BTreeSet;

use super::Case;

pub(super) fn forms(value: &str) -> BTreeSet<String> {
    let mut forms = BTreeSet::from([value.escape_default().to_string()]);
    // Controls as bytes or by name, what is beyond ASCII as bytes or as it is.
    for spelt in [value.as_bytes().escape_ascii().to_string(), value.escape_debug().to_string()] {
        forms.extend(['"', '\''].map(|other| with_bare(&spelt, other)));
        forms.insert(spelt);
    }
    forms.extend(Case::BOTH.map(|case| every_byte(value, case)));
    forms
}

/// Between quotes of one kind, the other kind needs no escape.
fn with_bare(spelt: &str, quote: char) -> String {
    spelt.replace(&format!("\\{quote}"), &quote.to_string())
}

fn every_byte(value: &str, case: Case) -> String {
    value.bytes().map(|byte| format!("\\x{}", case.two_digits(byte))).collect()
}
