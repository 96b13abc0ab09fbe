//! The key that seals tokens: a private file in the state folder.
//!
//! It is not in the system's keyring, because the keyring of Linux forgets when the machine restarts,
//! and every account would have to be connected again.

use std::{io, path::Path};

use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use sallyport_connections::{TOKEN_KEY_BYTES, TokenCipher};

use crate::{
    atomic_file::create_file,
    secrets::{SecretProblem, read_secret_file},
};

/// The file, in the state folder.
pub const KEY_FILE: &str = "connections.key";

/// Opens the cipher with the key of a file, and makes the key if there is none.
pub(super) fn open_cipher(path: &Path) -> Result<TokenCipher, SecretProblem> {
    let text = match read_secret_file(path) {
        Err(SecretProblem::Missing) => {
            create_key(path)?;
            read_secret_file(path)?
        }
        found => found?,
    };
    let key = decode_key(text.expose()).ok_or(SecretProblem::NotText)?;
    TokenCipher::new(&key).map_err(|_| SecretProblem::NotText)
}

/// Writes a new key. Of several processes, the first one wins, and the others read its key.
fn create_key(path: &Path) -> Result<(), SecretProblem> {
    let random = |error: &dyn std::fmt::Display| io::Error::other(error.to_string());
    let key = TokenCipher::new_key().map_err(|error| random(&error))?;
    match create_file(path, HEXLOWER.encode(&key).as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error.into()),
        _ => Ok(()),
    }
}

fn decode_key(text: &str) -> Option<Vec<u8>> {
    let key = HEXLOWER_PERMISSIVE.decode(text.trim().as_bytes()).ok()?;
    (key.len() == TOKEN_KEY_BYTES).then_some(key)
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use sallyport_contract::Secret;

    use super::*;

    #[test]
    fn a_key_is_made_once_and_is_private() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(KEY_FILE);
        let sealed = open_cipher(&path).unwrap().seal("ann", &Secret::new("token")).unwrap();
        let again = open_cipher(&path).unwrap();
        assert_eq!(again.open("ann", &sealed).unwrap(), Secret::new("token"));
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&path), 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(matches!(open_cipher(&path), Err(SecretProblem::Exposed { .. })));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        for bad in ["", "zz", &"0".repeat(63), &"g".repeat(64)] {
            fs::write(&path, bad).unwrap();
            assert!(open_cipher(&path).is_err(), "{bad}");
        }
    }
}
