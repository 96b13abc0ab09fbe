//! Values in the system's keyring.
//!
//! On Linux, this is the kernel keyring: it needs no daemon, no separate password and no disk, and
//! is emptied when the machine restarts. An entry is a key of type `user` named
//! `sallyport:SERVICE/ACCOUNT`. An entry made with `keyctl` works as well.

use sallyport_contract::Secret;

use super::SecretProblem;

/// Returns the value of an entry.
#[cfg(target_os = "linux")]
pub(super) fn read(service: &str, account: &str) -> Result<Secret, SecretProblem> {
    let key = kernel::find_key(service, account)?;
    let bytes = key.read_to_vec().map_err(kernel::problem_from_key_error)?;
    super::parse_secret_value(&zeroize::Zeroizing::new(bytes))
}

/// Writes a value to an entry.
#[cfg(target_os = "linux")]
pub(super) fn write(service: &str, account: &str, value: &Secret) -> Result<(), SecretProblem> {
    if value.expose().len() > kernel::VALUE_BYTES_MAX {
        return Err(SecretProblem::TooLong { bytes_max: kernel::VALUE_BYTES_MAX });
    }
    let name = kernel::key_name(service, account);
    kernel::open_keyring()
        .and_then(|ring| ring.add_key(&name, value.expose().as_bytes()))
        .map_err(kernel::problem_from_key_error)?;
    Ok(())
}

/// Removes an entry.
#[cfg(target_os = "linux")]
pub(super) fn remove(service: &str, account: &str) -> Result<(), SecretProblem> {
    kernel::find_key(service, account)?.invalidate().map_err(kernel::problem_from_key_error)
}

#[cfg(target_os = "linux")]
mod kernel {
    use linux_keyutils::{Key, KeyError, KeyRing, KeyRingIdentifier};

    use crate::secrets::SecretProblem;

    /// Longest value of a key of type `user` that the kernel accepts, in bytes.
    pub(super) const VALUE_BYTES_MAX: usize = 32_767;

    /// A service contains no slash, so the names of two entries always differ.
    pub(super) fn key_name(service: &str, account: &str) -> String {
        format!("sallyport:{service}/{account}")
    }

    /// The keyring that outlives a login. A process may use the keys of every keyring linked to its
    /// own, so this also works where no login created a session keyring.
    pub(super) fn open_keyring() -> Result<KeyRing, KeyError> {
        KeyRing::get_persistent(KeyRingIdentifier::Process).or_else(|_| {
            let user = KeyRing::from_special_id(KeyRingIdentifier::User, true)?;
            let own = KeyRing::from_special_id(KeyRingIdentifier::Process, true)?;
            own.link_keyring(user)?;
            Ok(user)
        })
    }

    /// Searches every keyring of this process. A found key stays as long as its keyring.
    pub(super) fn find_key(service: &str, account: &str) -> Result<Key, SecretProblem> {
        open_keyring()
            .and_then(|ring| ring.request_key(&key_name(service, account), None::<&str>))
            .map_err(problem_from_key_error)
    }

    pub(super) fn problem_from_key_error(error: KeyError) -> SecretProblem {
        let message = match error {
            KeyError::KeyDoesNotExist | KeyError::KeyExpired | KeyError::KeyRevoked => {
                return SecretProblem::Missing;
            }
            KeyError::AccessDenied | KeyError::PermissionDenied => "access is denied".to_owned(),
            KeyError::QuotaExceeded => "it holds as much as it may".to_owned(),
            KeyError::OperationNotSupported => "the kernel has none".to_owned(),
            other => format!("{other:?}"),
        };
        SecretProblem::Keyring { message }
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) use elsewhere::{read, remove, write};

#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use sallyport_contract::Secret;

    use crate::secrets::SecretProblem;

    pub(in crate::secrets) fn read(
        _service: &str,
        _account: &str,
    ) -> Result<Secret, SecretProblem> {
        Err(unsupported())
    }

    pub(in crate::secrets) fn write(
        _service: &str,
        _account: &str,
        _value: &Secret,
    ) -> Result<(), SecretProblem> {
        Err(unsupported())
    }

    pub(in crate::secrets) fn remove(_service: &str, _account: &str) -> Result<(), SecretProblem> {
        Err(unsupported())
    }

    fn unsupported() -> SecretProblem {
        SecretProblem::Keyring { message: "only that of Linux is supported".to_owned() }
    }
}
