//! Seals tokens before they are stored: ChaCha20-Poly1305 with a random nonce.
//!
//! The name of the user and the plugin is authenticated with each token, so a token that is copied
//! into another row of the database cannot be opened there.

use ring::{
    aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey},
    rand::{SecureRandom, SystemRandom},
};
use sallyport_contract::Secret;

/// The length of a key in bytes.
pub const TOKEN_KEY_BYTES: usize = 32;

/// A token cannot be sealed or opened. It contains nothing of the token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CipherError {
    /// The key has another length.
    #[error("the key has another length than {TOKEN_KEY_BYTES} bytes")]
    Key,
    /// The token was sealed with another key, or was changed.
    #[error("a stored token cannot be read with this key")]
    Open,
    /// The system gives no random numbers.
    #[error("the system gives no random numbers")]
    Random,
}

/// Seals and opens tokens with one key.
pub struct TokenCipher {
    key: LessSafeKey,
    random: SystemRandom,
}

impl TokenCipher {
    /// A cipher with a key.
    ///
    /// # Errors
    ///
    /// The key has another length.
    pub fn new(key: &[u8]) -> Result<Self, CipherError> {
        let key = UnboundKey::new(&CHACHA20_POLY1305, key).map_err(|_| CipherError::Key)?;
        Ok(Self { key: LessSafeKey::new(key), random: SystemRandom::new() })
    }

    /// A new key.
    ///
    /// # Errors
    ///
    /// The system gives no random numbers.
    pub fn new_key() -> Result<[u8; TOKEN_KEY_BYTES], CipherError> {
        let mut key = [0; TOKEN_KEY_BYTES];
        SystemRandom::new().fill(&mut key).map_err(|_| CipherError::Random)?;
        Ok(key)
    }

    /// Seals a token for its owner.
    ///
    /// # Errors
    ///
    /// The system gives no random numbers.
    pub fn seal(&self, owner: &str, token: &Secret) -> Result<Vec<u8>, CipherError> {
        let mut nonce = [0; NONCE_LEN];
        self.random.fill(&mut nonce).map_err(|_| CipherError::Random)?;
        let mut text = token.expose().as_bytes().to_vec();
        let sealed = Nonce::assume_unique_for_key(nonce);
        self.key
            .seal_in_place_append_tag(sealed, Aad::from(owner.as_bytes()), &mut text)
            .map_err(|_| CipherError::Random)?;
        Ok([nonce.as_slice(), &text].concat())
    }

    /// Opens a token of its owner.
    ///
    /// # Errors
    ///
    /// It was sealed with another key or for another owner, or was changed.
    pub fn open(&self, owner: &str, sealed: &[u8]) -> Result<Secret, CipherError> {
        let (nonce, text) = sealed.split_at_checked(NONCE_LEN).ok_or(CipherError::Open)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| CipherError::Open)?;
        let mut text = text.to_vec();
        let opened = self.key.open_in_place(nonce, Aad::from(owner.as_bytes()), &mut text);
        let opened = opened.map_err(|_| CipherError::Open)?;
        let text = str::from_utf8(opened).map_err(|_| CipherError::Open)?;
        Ok(Secret::new(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_opened_by_its_owner_with_its_key_only() {
        let key = TokenCipher::new_key().unwrap();
        let cipher = TokenCipher::new(&key).unwrap();
        let token = Secret::new("the-token");
        let sealed = cipher.seal("ann/mail", &token).unwrap();
        assert_eq!(cipher.open("ann/mail", &sealed), Ok(token.clone()));
        assert!(!sealed.windows(5).any(|part| part == b"token"));
        assert_ne!(cipher.seal("ann/mail", &token).unwrap(), sealed, "each has its own nonce");
        let other = TokenCipher::new(&TokenCipher::new_key().unwrap()).unwrap();
        assert_eq!(other.open("ann/mail", &sealed), Err(CipherError::Open));
        assert_eq!(cipher.open("bob/mail", &sealed), Err(CipherError::Open));
        for at in [0, NONCE_LEN, sealed.len() - 1] {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert_eq!(cipher.open("ann/mail", &changed), Err(CipherError::Open), "{at}");
        }
        for cut in [0, 5, NONCE_LEN, sealed.len() - 1] {
            assert_eq!(cipher.open("ann/mail", &sealed[..cut]), Err(CipherError::Open), "{cut}");
        }
        assert_eq!(TokenCipher::new(&key[1..]).err(), Some(CipherError::Key));
    }
}
