//! The tokens that requests show, as they are at this moment.

use std::{
    collections::BTreeSet,
    io,
    path::PathBuf,
    sync::{Mutex, MutexGuard, PoisonError},
    time::SystemTime,
};

use constant_time_eq::constant_time_eq;
use data_encoding::HEXLOWER;
use sallyport_contract::{LOCAL_USER, Secret};
use sallyport_runtime::clock::now_ms;
use sallyport_untrusted_file::FileStamp;

use crate::{
    role::{ServiceUser, UserRole},
    token_file::{
        StoredToken, TokenDocument, TokenFileError, hash_token, random_token, read_document,
    },
};

/// The tokens of a file, which is read again when it has changed: a token that was removed is
/// refused by the next request.
#[derive(Debug)]
pub struct TokenBook {
    path: PathBuf,
    /// A token that is in no file.
    one_time: Option<KnownToken>,
    read: Mutex<ReadTokens>,
}

/// The tokens as they were last read.
#[derive(Debug, Default)]
struct ReadTokens {
    /// The file then. `None` if it was missing, or may have changed since without a trace.
    stamp: Option<FileStamp>,
    tokens: Vec<KnownToken>,
    blocked: BTreeSet<String>,
    /// Why the file cannot be read.
    problem: Option<String>,
}

/// A token that is accepted.
#[derive(Debug, Clone)]
struct KnownToken {
    hash: [u8; 32],
    expires_ms: Option<u64>,
    user: ServiceUser,
}

impl TokenBook {
    /// Reads the tokens of a file.
    ///
    /// # Errors
    ///
    /// The file cannot be read, another user can change it, or it contains something else.
    pub fn open(path: PathBuf) -> Result<Self, TokenFileError> {
        read_document(&path)?;
        Ok(Self { path, one_time: None, read: Mutex::default() })
    }

    /// Whether there is no token that is valid.
    pub fn is_empty(&self) -> bool {
        let now_ms = now_ms();
        let read = self.current();
        !read.tokens.iter().chain(&self.one_time).any(|token| token.is_valid(now_ms))
    }

    /// Adds an operator's token for the user of the terminal. It ends with the program.
    ///
    /// # Errors
    ///
    /// The system has no random bytes.
    pub fn add_one_time_token(&mut self) -> io::Result<Secret> {
        let token = random_token()?;
        let user = ServiceUser { name: LOCAL_USER.to_owned(), role: UserRole::Operator };
        self.one_time =
            Some(KnownToken { hash: hash_token(token.expose()), expires_ms: None, user });
        Ok(token)
    }

    /// Returns the user of the token with a hash, if it is valid at this moment. Compares it with all
    /// tokens, so the time does not depend on which one it is like.
    pub fn find_user_of_hash(&self, hash: &[u8; 32]) -> Option<ServiceUser> {
        let now_ms = now_ms();
        let read = self.current();
        let known = read.tokens.iter().chain(&self.one_time);
        let found = known.fold(None, |found, token| {
            let is_equal = constant_time_eq(&token.hash, hash) && token.is_valid(now_ms);
            if is_equal { Some(token.user.clone()) } else { found }
        });
        found.filter(|user| !read.blocked.contains(&user.name))
    }

    /// Whether a user of the identity server may be let in: they are not blocked, and the file that
    /// says so can be read.
    pub fn admits(&self, user: &str) -> bool {
        let read = self.current();
        read.problem.is_none() && !read.blocked.contains(user)
    }

    /// Returns the names of all users.
    pub fn users(&self) -> BTreeSet<String> {
        let read = self.current();
        read.tokens.iter().chain(&self.one_time).map(|token| token.user.name.clone()).collect()
    }

    /// Returns why the file cannot be read. Its tokens are refused until it can be.
    pub fn problem(&self) -> Option<String> {
        self.current().problem.clone()
    }

    fn current(&self) -> MutexGuard<'_, ReadTokens> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let stamp = FileStamp::read(&self.path).ok();
        if stamp.is_none() || read.stamp != stamp {
            *read = self.read_again(stamp);
        }
        read
    }

    fn read_again(&self, stamp: Option<FileStamp>) -> ReadTokens {
        let stamp = stamp.filter(|stamp| stamp.is_settled(SystemTime::now()));
        match read_document(&self.path) {
            Ok(TokenDocument { token, blocked }) => {
                let tokens = token.into_values().filter_map(KnownToken::from_stored).collect();
                ReadTokens { stamp, tokens, blocked, problem: None }
            }
            Err(error) => {
                ReadTokens { stamp, problem: Some(error.to_string()), ..ReadTokens::default() }
            }
        }
    }
}

impl KnownToken {
    fn from_stored(stored: StoredToken) -> Option<Self> {
        let StoredToken { user, role, sha256, expires_ms, .. } = stored;
        let hash = HEXLOWER.decode(sha256.as_bytes()).ok()?.try_into().ok()?;
        Some(Self { hash, expires_ms, user: ServiceUser { name: user, role } })
    }

    fn is_valid(&self, now_ms: u64) -> bool {
        self.expires_ms.is_none_or(|expires_ms| now_ms < expires_ms)
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, time::Duration};

    use super::*;
    use crate::token_file::{NewToken, add_token, block_user, remove_token, unblock_user};

    fn add(path: &std::path::Path, name: &str, lifetime: Option<Duration>) -> Secret {
        let role = UserRole::Approver;
        let new = NewToken { name: name.to_owned(), user: "ann".to_owned(), role, lifetime };
        add_token(path, new).unwrap()
    }

    fn find_user(book: &TokenBook, token: &str) -> Option<ServiceUser> {
        book.find_user_of_hash(&hash_token(token))
    }

    #[test]
    fn a_token_counts_from_its_making_to_its_removal() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens.toml");
        let mut book = TokenBook::open(path.clone()).unwrap();
        assert!(book.is_empty());
        let token = add(&path, "laptop", None);
        let user = ServiceUser { name: "ann".to_owned(), role: UserRole::Approver };
        assert_eq!(find_user(&book, token.expose()), Some(user));
        for wrong in ["", "sallyport_", &token.expose()[1..], &format!("{} ", token.expose())] {
            assert_eq!(find_user(&book, wrong), None, "{wrong}");
        }
        let expired = add(&path, "old", Some(Duration::ZERO));
        assert_eq!(find_user(&book, expired.expose()), None, "it has expired");
        remove_token(&path, "laptop").unwrap();
        assert_eq!(find_user(&book, token.expose()), None, "it was removed");
        assert!(book.is_empty());
        let one_time = book.add_one_time_token().unwrap();
        assert_eq!(find_user(&book, one_time.expose()).unwrap().role, UserRole::Operator);
    }

    #[test]
    fn a_blocked_user_is_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens.toml");
        let book = TokenBook::open(path.clone()).unwrap();
        let token = add(&path, "laptop", None);
        assert!(find_user(&book, token.expose()).is_some() && book.admits("sso:ann"));
        for user in ["ann", "sso:ann"] {
            block_user(&path, user).unwrap();
        }
        assert!(find_user(&book, token.expose()).is_none() && !book.admits("sso:ann"));
        assert!(book.admits("sso:ben"));
        unblock_user(&path, "ann").unwrap();
        assert!(find_user(&book, token.expose()).is_some() && !book.admits("sso:ann"));
        fs::write(&path, "broken").unwrap();
        assert!(!book.admits("sso:ben"), "nobody knows whether they are blocked");
    }

    #[test]
    fn a_file_that_was_broken_meanwhile_lets_nobody_in() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens.toml");
        let book = TokenBook::open(path.clone()).unwrap();
        let token = add(&path, "laptop", None);
        let whole = fs::read(&path).unwrap();
        fs::write(&path, "broken").unwrap();
        assert_eq!(find_user(&book, token.expose()), None);
        assert!(book.problem().is_some());
        fs::write(&path, whole).unwrap();
        assert!(find_user(&book, token.expose()).is_some());
        assert_eq!(book.problem(), None);
    }
}
