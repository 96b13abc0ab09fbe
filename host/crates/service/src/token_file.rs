//! The file of tokens: names, users, roles, and the hash of each token. It also has the names of the
//! users who are blocked.
//!
//! A token is 256 random bits, so its SHA-256 is as hard to guess as the token, and a slow hash
//! would protect nothing more. The token itself is shown once and stored nowhere.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use data_encoding::{BASE64URL_NOPAD, HEXLOWER};
use sallyport_contract::Secret;
use sallyport_runtime::{
    atomic_file::{WriteLock, replace_user_file},
    clock::now_ms,
};
use sallyport_untrusted_file as untrusted_file;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::role::UserRole;

/// The name of the file in the folder of the configuration.
pub const FILE_NAME: &str = "service-tokens.toml";

/// Size limit of the file: room for the tokens of a large team.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// Most tokens. Each request compares its token with all of them.
const TOKENS_MAX: usize = 10_000;

/// Longest name of a token or a user. The names are shown in lists and in metrics.
const NAME_CHARS_MAX: usize = 64;

/// Longest name of a user who is blocked, who may be one of the identity server.
const BLOCKED_NAME_CHARS_MAX: usize = 256;

/// Random bytes of a token.
const TOKEN_BYTES: usize = 32;

/// What each token begins with, so that scanners for leaked secrets can know it.
const TOKEN_PREFIX: &str = "sallyport_";

/// A token as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredToken {
    /// The user that it belongs to.
    pub user: String,
    /// What the user may do with it.
    pub role: UserRole,
    /// SHA-256 of the token, in hexadecimal.
    pub sha256: String,
    /// When it was made, in milliseconds since 1970.
    pub created_ms: u64,
    /// When it expires, in milliseconds since 1970; never, if this is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_ms: Option<u64>,
}

/// All tokens by their names.
pub type StoredTokens = BTreeMap<String, StoredToken>;

/// The contents of the file.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenDocument {
    /// The users who may not do anything, with their tokens or without.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub blocked: BTreeSet<String>,
    /// The tokens.
    #[serde(default)]
    pub token: StoredTokens,
}

/// A token to make.
#[derive(Debug, Clone)]
pub struct NewToken {
    /// Its name.
    pub name: String,
    /// The user that it belongs to.
    pub user: String,
    /// What the user may do with it.
    pub role: UserRole,
    /// How long it is valid; without end, if this is `None`.
    pub lifetime: Option<Duration>,
}

/// Why the tokens cannot be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum TokenFileError {
    /// The file cannot be read or written, or another user can change it.
    #[error("{path} cannot be used: {source}", path = path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file contains something else.
    #[error("{path} is not a file of tokens: {problem}", path = path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// A name has other characters, or is too long.
    #[error("{name:?} is not a name")]
    Name {
        /// The name.
        name: String,
    },
    /// A token has this name.
    #[error("there is a token {name} already")]
    Exists {
        /// The name.
        name: String,
    },
    /// No token has this name.
    #[error("there is no token {name:?}")]
    NotFound {
        /// The name.
        name: String,
    },
    /// No more tokens can be added.
    #[error("there are {TOKENS_MAX} tokens, which is the limit")]
    TooMany,
    /// No more users can be blocked.
    #[error("there are {TOKENS_MAX} blocked users, which is the limit")]
    TooManyBlocked,
    /// The name cannot be that of a user.
    #[error("{name:?} is not the name of a user")]
    BlockedName {
        /// The name.
        name: String,
    },
    /// The user is not blocked.
    #[error("{name:?} is not blocked")]
    NotBlocked {
        /// The name.
        name: String,
    },
}

impl TokenFileError {
    /// Returns how to fix it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::File { .. } => "the file must belong to you, and only you may write it",
            Self::Content { .. } => "mend the file, or remove it and make new tokens",
            Self::Name { .. } => {
                "use up to 64 letters, digits and . _ @ -, beginning with a letter or a digit"
            }
            Self::Exists { .. } => "remove it first, or choose another name and pass --user",
            Self::NotFound { .. } => "`sallyport serve token list` lists them",
            Self::TooMany | Self::TooManyBlocked => "remove those that nobody uses",
            Self::BlockedName { .. } => "write the name as the audit shows it, such as sso:ann",
            Self::NotBlocked { .. } => "`sallyport serve user list` lists those who are",
        }
    }
}

/// Reads the tokens and the blocked users. A missing file has none.
///
/// # Errors
///
/// The file cannot be read, another user can change it, or it contains something else.
pub fn read_document(path: &Path) -> Result<TokenDocument, TokenFileError> {
    let text = match untrusted_file::read_own_text(path, FILE_BYTES_MAX) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(TokenDocument::default());
        }
        Err(source) => return Err(TokenFileError::File { path: path.to_owned(), source }),
    };
    let content = |problem| TokenFileError::Content { path: path.to_owned(), problem };
    let document: TokenDocument =
        toml::from_str(&text).map_err(|error| content(error.message().to_owned()))?;
    if document.token.len() > TOKENS_MAX {
        return Err(TokenFileError::TooMany);
    }
    for (name, token) in &document.token {
        check_name(name)?;
        check_name(&token.user)?;
        if HEXLOWER.decode(token.sha256.as_bytes()).map_or(0, |hash| hash.len()) != 32 {
            return Err(content(format!("the sha256 of {name} is not a hash")));
        }
    }
    Ok(document)
}

/// Reads the tokens. A missing file has none.
///
/// # Errors
///
/// The file cannot be read, another user can change it, or it contains something else.
pub fn read_tokens(path: &Path) -> Result<StoredTokens, TokenFileError> {
    read_document(path).map(|document| document.token)
}

/// Blocks a user, whether they have a token or log in at the identity server. Programs that serve
/// refuse them at once.
///
/// # Errors
///
/// The name is none, or the file cannot be changed.
pub fn block_user(path: &Path, name: &str) -> Result<(), TokenFileError> {
    let is_name = !name.is_empty()
        && name.len() <= BLOCKED_NAME_CHARS_MAX
        && name.chars().all(|one| one.is_ascii_graphic());
    if !is_name {
        return Err(TokenFileError::BlockedName { name: name.to_owned() });
    }
    change_document(path, |document| {
        if document.blocked.len() >= TOKENS_MAX {
            return Err(TokenFileError::TooManyBlocked);
        }
        document.blocked.insert(name.to_owned());
        Ok(())
    })
}

/// Lets a blocked user in again.
///
/// # Errors
///
/// The user is not blocked, or the file cannot be changed.
pub fn unblock_user(path: &Path, name: &str) -> Result<(), TokenFileError> {
    change_document(path, |document| match document.blocked.remove(name) {
        true => Ok(()),
        false => Err(TokenFileError::NotBlocked { name: name.to_owned() }),
    })
}

/// Makes a token and adds it to the file. Returns the token, which is stored nowhere.
///
/// # Errors
///
/// A name is invalid or taken, or the file cannot be changed.
pub fn add_token(path: &Path, new: NewToken) -> Result<Secret, TokenFileError> {
    let NewToken { name, user, role, lifetime } = new;
    check_name(&name)?;
    check_name(&user)?;
    let token = random_token().map_err(|source| file_error(path, source))?;
    let created_ms = now_ms();
    let lifetime_ms = lifetime.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
    let stored = StoredToken {
        user,
        role,
        sha256: HEXLOWER.encode(&hash_token(token.expose())),
        created_ms,
        expires_ms: lifetime_ms.map(|lifetime_ms| created_ms.saturating_add(lifetime_ms)),
    };
    change_document(path, |document| {
        let tokens = &mut document.token;
        if tokens.len() >= TOKENS_MAX {
            return Err(TokenFileError::TooMany);
        }
        match tokens.insert(name.clone(), stored) {
            Some(_) => Err(TokenFileError::Exists { name }),
            None => Ok(()),
        }
    })?;
    Ok(token)
}

/// Removes a token from the file. Programs that serve refuse it at once.
///
/// # Errors
///
/// No token has this name, or the file cannot be changed.
pub fn remove_token(path: &Path, name: &str) -> Result<(), TokenFileError> {
    change_document(path, |document| match document.token.remove(name) {
        Some(_) => Ok(()),
        None => Err(TokenFileError::NotFound { name: name.to_owned() }),
    })
}

/// Makes a token of random bytes.
///
/// # Errors
///
/// The system has no random bytes.
pub(crate) fn random_token() -> io::Result<Secret> {
    let mut bytes = [0; TOKEN_BYTES];
    let flags = rustix::rand::GetRandomFlags::empty();
    match rustix::rand::getrandom(&mut bytes, flags)? {
        TOKEN_BYTES => Ok(Secret::new(TOKEN_PREFIX.to_owned() + &BASE64URL_NOPAD.encode(&bytes))),
        _ => Err(io::Error::other("the system has too few random bytes")),
    }
}

/// The hash of a token.
pub(crate) fn hash_token(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

fn change_document(
    path: &Path,
    change: impl FnOnce(&mut TokenDocument) -> Result<(), TokenFileError>,
) -> Result<(), TokenFileError> {
    let _lock = WriteLock::take(path).map_err(|source| file_error(path, source))?;
    let mut document = read_document(path)?;
    change(&mut document)?;
    let text = toml::to_string(&document).map_err(|error| TokenFileError::Content {
        path: path.to_owned(),
        problem: error.to_string(),
    })?;
    replace_user_file(path, &text).map_err(|source| file_error(path, source))
}

fn file_error(path: &Path, source: io::Error) -> TokenFileError {
    TokenFileError::File { path: path.to_owned(), source }
}

fn check_name(name: &str) -> Result<(), TokenFileError> {
    let is_plain = |one: char| one.is_ascii_alphanumeric() || matches!(one, '.' | '_' | '@' | '-');
    let is_name = name.len() <= NAME_CHARS_MAX
        && name.starts_with(|one: char| one.is_ascii_alphanumeric())
        && name.chars().all(is_plain);
    is_name.then_some(()).ok_or_else(|| TokenFileError::Name { name: name.to_owned() })
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use super::*;

    fn new_token(name: &str) -> NewToken {
        let (name, user) = (name.to_owned(), "ann".to_owned());
        NewToken { name, user, role: UserRole::User, lifetime: Some(Duration::from_secs(60)) }
    }

    #[test]
    fn a_token_is_kept_as_its_hash_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new").join(FILE_NAME);
        assert_eq!(read_tokens(&path).unwrap(), StoredTokens::new());
        let token = add_token(&path, new_token("laptop")).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert!(!text.contains(token.expose()), "{text}");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let stored = &read_tokens(&path).unwrap()["laptop"];
        assert_eq!(stored.sha256, HEXLOWER.encode(&hash_token(token.expose())));
        assert_eq!(stored.expires_ms, Some(stored.created_ms + 60_000));
        assert!(matches!(
            add_token(&path, new_token("laptop")),
            Err(TokenFileError::Exists { .. })
        ));
        assert_eq!(fs::read_to_string(&path).unwrap(), text, "the first one stays");
        remove_token(&path, "laptop").unwrap();
        assert!(matches!(remove_token(&path, "laptop"), Err(TokenFileError::NotFound { .. })));
    }

    #[test]
    fn a_file_that_is_not_one_of_tokens_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE_NAME);
        let good = "user = \"a\"\nrole = \"user\"\ncreated_ms = 1\n";
        let rows = [
            "token".to_owned(),
            "[token.a]\n".to_owned(),
            format!("[token.a]\nsha256 = \"00\"\n{good}"),
            format!("[token.\"a b\"]\nsha256 = \"{}\"\n{good}", "0".repeat(64)),
            format!("[token.a]\nadmin = true\nsha256 = \"{}\"\n{good}", "0".repeat(64)),
            format!("[tokens.a]\nsha256 = \"{}\"\n{good}", "0".repeat(64)),
        ];
        for text in rows {
            fs::write(&path, &text).unwrap();
            assert!(read_tokens(&path).is_err(), "{text}");
            assert!(add_token(&path, new_token("b")).is_err(), "{text}");
            assert_eq!(fs::read_to_string(&path).unwrap(), text, "nothing was overwritten");
        }
        fs::write(&path, "").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
        assert!(matches!(read_tokens(&path), Err(TokenFileError::File { .. })), "others write it");
    }

    #[test]
    fn blocked_users_stay_beside_the_tokens() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE_NAME);
        for name in ["sso:ann|7", "ben", "ben"] {
            block_user(&path, name).unwrap();
        }
        add_token(&path, new_token("laptop")).unwrap();
        let document = read_document(&path).unwrap();
        assert_eq!(document.blocked, BTreeSet::from(["ben".to_owned(), "sso:ann|7".to_owned()]));
        assert!(document.token.contains_key("laptop"));
        unblock_user(&path, "ben").unwrap();
        assert!(matches!(unblock_user(&path, "ben"), Err(TokenFileError::NotBlocked { .. })));
        remove_token(&path, "laptop").unwrap();
        assert_eq!(read_document(&path).unwrap().blocked.len(), 1);
        for name in ["", "a b", "a\n", "\u{430}", &"a".repeat(257)] {
            let refused = block_user(&path, name);
            assert!(matches!(refused, Err(TokenFileError::BlockedName { .. })), "{name:?}");
        }
    }

    #[test]
    fn names_have_plain_characters() {
        for name in ["", ".", "-a", "a b", "a/b", "ä", "a\n", &"a".repeat(65)] {
            assert!(check_name(name).is_err(), "{name:?}");
        }
        for name in ["a", "Ann", "ann@team.example", "ci-1_x", &"a".repeat(64)] {
            assert!(check_name(name).is_ok(), "{name:?}");
        }
    }
}
