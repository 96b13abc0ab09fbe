//! A search for tokens in whatever a test has left in its home.
//!
//! The tokens of the identity server have known names, so every test that ends looks for them, in
//! the forms in which a program could have written them by mistake.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::LazyLock,
};

use data_encoding::{BASE64, HEXLOWER};

/// How all tokens of the identity server begin.
const TOKENS: [&str; 2] = ["access-token-0", "refresh-token-0"];

/// The beginnings in all forms.
static FORMS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let mut forms = Vec::new();
    for token in TOKENS.map(str::as_bytes) {
        forms.push(token.to_vec());
        forms.push(HEXLOWER.encode(token).into_bytes());
        forms.push(token.iter().rev().copied().collect());
        // In Base64, what stands before a token shifts its letters; the first and the last ones also
        // depend on the neighbours.
        forms.extend((0..3).map(|shift| {
            let text = BASE64.encode(&[&vec![0; shift], token].concat());
            let end = text.trim_end_matches('=').len() - 1;
            text.as_bytes()[shift + 1..end].to_vec()
        }));
    }
    forms
});

/// The first file below a folder that contains a token. Components are what a test was given, and a
/// link leads to what others own.
pub(super) fn find_token(folder: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(folder).ok()?.flatten();
    entries.map(|entry| entry.path()).find_map(|path| {
        let kind = fs::symlink_metadata(&path).ok()?.file_type();
        if kind.is_dir() {
            return find_token(&path);
        }
        let is_searched = kind.is_file() && path.extension().is_none_or(|end| end != "wasm");
        let bytes = is_searched.then(|| fs::read(&path).ok()).flatten()?;
        FORMS.iter().any(|form| contains(&bytes, form)).then_some(path)
    })
}

fn contains(bytes: &[u8], form: &[u8]) -> bool {
    let mut rest = bytes;
    while let Some(at) = rest.iter().position(|byte| *byte == form[0]) {
        if rest[at..].starts_with(form) {
            return true;
        }
        rest = &rest[at + 1..];
    }
    false
}

#[test]
fn a_token_is_found_in_every_form() {
    let token = "refresh-token-0042";
    let reversed: String = token.chars().rev().collect();
    let texts = [
        token.to_owned(),
        format!("\"{reversed}\""),
        HEXLOWER.encode(token.as_bytes()),
        BASE64.encode(token.as_bytes()),
        BASE64.encode(format!("a:{token}").as_bytes()),
        BASE64.encode(format!("{{{token}}}").as_bytes()),
    ];
    for text in texts {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("below")).unwrap();
        fs::write(folder.path().join("below/file"), format!("before {text} after")).unwrap();
        assert!(find_token(folder.path()).is_some(), "{text}");
    }
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "access-token refresh-token").unwrap();
    assert_eq!(find_token(folder.path()), None);
}
