//! The files of a certificate and its key.

use std::{
    fs::Metadata,
    io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use rustls::{
    Error, InconsistentKeys,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    sign::CertifiedKey,
};
use sallyport_untrusted_file::{self as untrusted_file, FileStamp};

use super::{certified_key, validity::Validity};

/// Longest file: a chain of some certificates has a few kilobytes.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The permissions of all users.
const OF_ALL: u32 = 0o007;

/// The permissions of the group except to read.
const OF_GROUP_BUT_READ: u32 = 0o030;

/// The permissions of the group.
const OF_GROUP: u32 = 0o070;

/// Where the certificate of a server and its key are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The certificate, followed by those that lead to a known authority (PEM).
    pub certificate: PathBuf,
    /// The key of the certificate (PEM).
    pub key: PathBuf,
}

/// One of the two files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CertificatePart {
    /// The certificate.
    Certificate,
    /// Its key.
    Key,
}

/// What is wrong with a file.
#[derive(Debug, thiserror::Error)]
pub enum FileProblem {
    /// It cannot be read.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// Other users can read the key.
    #[error("other users can read it (mode {mode:03o})")]
    Exposed {
        /// Its permission bits.
        mode: u32,
    },
    /// The key belongs to another user, who could read it or put another one in its place.
    #[error("it belongs to another user (uid {uid})")]
    ForeignOwner {
        /// The number of the user.
        uid: u32,
    },
    /// It has no part of this kind in PEM.
    #[error("it has no {part} in PEM")]
    Empty {
        /// What is looked for.
        part: CertificatePart,
    },
    /// A part in PEM is broken.
    #[error("it is damaged: {0}")]
    Damaged(String),
}

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CertificateFileError {
    /// One of the files cannot be used.
    #[error("the {part} {path} cannot be used: {problem}", path = path.display())]
    File {
        /// Which of the two.
        part: CertificatePart,
        /// Its path.
        path: PathBuf,
        /// What is wrong with it.
        problem: FileProblem,
    },
    /// The key is that of another certificate.
    #[error(
        "the key {key} does not belong to the certificate {certificate}",
        key = files.key.display(),
        certificate = files.certificate.display()
    )]
    Mismatch {
        /// The two files.
        files: CertificateFiles,
    },
    /// TLS cannot use them.
    #[error(
        "TLS cannot use the certificate {certificate} with the key {key}: {source}",
        key = files.key.display(),
        certificate = files.certificate.display()
    )]
    Unusable {
        /// The two files.
        files: CertificateFiles,
        /// Why.
        source: Error,
    },
}

impl std::fmt::Display for CertificatePart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Certificate => "certificate",
            Self::Key => "key",
        })
    }
}

impl CertificateFileError {
    /// What the operator can do.
    pub fn hint(&self) -> String {
        match self {
            Self::File { problem: FileProblem::Exposed { .. }, path, .. } => {
                format!("chmod 600 {}", path.display())
            }
            Self::File { problem: FileProblem::ForeignOwner { .. }, path, .. } => {
                format!("chown it to the user of this program, or to root: {}", path.display())
            }
            Self::Mismatch { .. } => "name the key with which the certificate was requested; the \
                                      certificate of the server is the first one in its file"
                .to_owned(),
            _ => "name files in PEM with a certificate and its key without a password".to_owned(),
        }
    }
}

/// The stamps of both files, by which a change is noticed. A file that is missing has none.
pub(super) type FileStamps = [Option<FileStamp>; 2];

/// What the two files contain.
pub(super) struct CertificateContents {
    pub(super) key: CertifiedKey,
    pub(super) validity: Validity,
}

impl CertificateFiles {
    pub(super) fn stamps(&self) -> FileStamps {
        [&self.certificate, &self.key].map(|path| FileStamp::read(path).ok())
    }

    pub(super) fn read(&self) -> Result<CertificateContents, CertificateFileError> {
        let chain = read_chain(&self.certificate);
        let chain = chain.map_err(self.failed(CertificatePart::Certificate))?;
        let key = read_key(&self.key).map_err(self.failed(CertificatePart::Key))?;
        let damaged = || FileProblem::Damaged("its first certificate cannot be read".to_owned());
        let validity = chain.first().and_then(Validity::read).ok_or_else(damaged);
        let validity = validity.map_err(self.failed(CertificatePart::Certificate))?;
        let key = certified_key(chain, key).map_err(|source| self.unusable(source))?;
        Ok(CertificateContents { key, validity })
    }

    pub(super) fn unusable(&self, source: Error) -> CertificateFileError {
        let files = self.clone();
        match source {
            Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
                CertificateFileError::Mismatch { files }
            }
            source => CertificateFileError::Unusable { files, source },
        }
    }

    fn failed(&self, part: CertificatePart) -> impl FnOnce(FileProblem) -> CertificateFileError {
        let path = match part {
            CertificatePart::Certificate => self.certificate.clone(),
            CertificatePart::Key => self.key.clone(),
        };
        move |problem| CertificateFileError::File { part, path, problem }
    }
}

fn read_chain(path: &Path) -> Result<Vec<CertificateDer<'static>>, FileProblem> {
    let bytes = untrusted_file::read_bytes(path, FILE_BYTES_MAX)?;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    let chain = chain.map_err(|error| FileProblem::Damaged(error.to_string()))?;
    let part = CertificatePart::Certificate;
    if chain.is_empty() { Err(FileProblem::Empty { part }) } else { Ok(chain) }
}

/// Reads the key. What is checked is the file that is read, wherever a symbolic link leads: programs
/// that renew certificates keep links to the newest ones.
fn read_key(path: &Path) -> Result<PrivateKeyDer<'static>, FileProblem> {
    let file = untrusted_file::open_regular(path)?;
    check_private(&file.metadata()?, rustix::process::geteuid().as_raw())?;
    let bytes = untrusted_file::read_open_file(&file, FILE_BYTES_MAX)?;
    match PrivateKeyDer::from_pem_slice(&bytes) {
        Ok(key) => Ok(key),
        Err(rustls::pki_types::pem::Error::NoItemsFound) => {
            Err(FileProblem::Empty { part: CertificatePart::Key })
        }
        Err(error) => Err(FileProblem::Damaged(error.to_string())),
    }
}

/// Refuses a key that other users can read. A group may read one that belongs to root, because that is
/// how systems give a key to some of their services.
fn check_private(info: &Metadata, own_uid: u32) -> Result<(), FileProblem> {
    let (uid, mode) = (info.uid(), info.mode() & 0o777);
    let forbidden = match uid == 0 && own_uid != 0 {
        true => OF_ALL | OF_GROUP_BUT_READ,
        false => OF_ALL | OF_GROUP,
    };
    if uid != own_uid && uid != 0 {
        return Err(FileProblem::ForeignOwner { uid });
    }
    if mode & forbidden != 0 { Err(FileProblem::Exposed { mode }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use rcgen::{CertificateParams, KeyPair, generate_simple_self_signed};

    use super::*;

    /// Writes these texts as certificate and key, and reads them.
    fn check(certificate: &str, key: &str, mode: u32, want: Option<&str>) {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let files = CertificateFiles { certificate: path("c.pem"), key: path("k.pem") };
        fs::write(&files.certificate, certificate).unwrap();
        fs::write(&files.key, key).unwrap();
        fs::set_permissions(&files.key, fs::Permissions::from_mode(mode)).unwrap();
        let found = files.read().err().map(|error| (error.to_string(), error.hint()));
        match (&found, want) {
            (None, None) => {}
            (Some((error, hint)), Some(want)) => {
                assert!(error.contains(want) && !hint.is_empty(), "{error} {hint}");
                assert!(!error.contains("PRIVATE KEY"), "{error}");
            }
            _ => panic!("{found:?} {want:?}"),
        }
    }

    #[test]
    fn a_certificate_is_refused_with_its_reason() {
        let made = generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
        let other = KeyPair::generate().unwrap().serialize_pem();
        let (half, half_key) = (&certificate[..certificate.len() / 2], &key[..key.len() / 2]);
        let both = format!("{certificate}{key}");
        let chain = format!("{certificate}{certificate}");
        let junk = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        check(&certificate, &key, 0o600, None);
        check(&both, &both, 0o400, None);
        check(&chain, &key, 0o600, None);
        check(&certificate, &other, 0o600, Some("does not belong to the certificate"));
        check(&certificate, &key, 0o604, Some("other users can read it (mode 604)"));
        check(&certificate, &key, 0o640, Some("other users can read it (mode 640)"));
        check(&certificate, &certificate, 0o600, Some("has no key in PEM"));
        check(&key, &key, 0o600, Some("has no certificate in PEM"));
        check("", "", 0o600, Some("has no certificate in PEM"));
        check(half, &key, 0o600, Some("it is damaged"));
        check(&certificate, half_key, 0o600, Some("it is damaged"));
        check(junk, &key, 0o600, Some("its first certificate cannot be read"));
    }

    #[test]
    fn files_that_are_not_there_are_named() {
        let files = CertificateFiles { certificate: "/no/c.pem".into(), key: "/no/k.pem".into() };
        let error = files.read().err().unwrap().to_string();
        assert!(error.starts_with("the certificate /no/c.pem cannot be used: No such"), "{error}");
        assert_eq!(files.stamps(), [None, None]);
    }

    #[test]
    fn a_certificate_for_any_name_has_a_validity() {
        let mut params = CertificateParams::new(["a.example".to_owned()]).unwrap();
        params.not_after = rcgen::date_time_ymd(2040, 1, 2);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        let validity = Validity::read(certificate.der()).unwrap();
        let ends = validity.ends.duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
        assert_eq!(ends, 2_209_075_200, "2040-01-02");
    }
}
