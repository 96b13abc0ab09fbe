//! A certificate that is read again when its files change, so that a renewed one needs no restart.

use std::{
    convert::Infallible,
    time::{Duration, SystemTime},
};

use super::{
    ServerTls,
    files::{CertificateContents, CertificateFileError, CertificateFiles, FileStamps},
    validity::{CertificateLife, Validity},
};

/// How often the files are looked at. A renewed certificate is there weeks before the old one ends.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// A certificate in files.
#[derive(Debug)]
pub struct RenewedCertificate {
    files: CertificateFiles,
    tls: ServerTls,
    validity: Validity,
    /// The files when they were last read.
    read: FileStamps,
}

/// What has become of a certificate.
#[derive(Debug)]
pub enum CertificateNews {
    /// New connections get another one.
    Renewed(CertificateLife),
    /// The files have changed and cannot be used; the certificate is the one from before.
    Refused(CertificateFileError),
    /// Time has passed for the one that is shown.
    Aged(CertificateLife),
}

impl RenewedCertificate {
    /// Reads a certificate and its key. One that has ended is read, too: see [`life`](Self::life).
    ///
    /// # Errors
    ///
    /// A file cannot be used, others can read the key, or the two do not belong together.
    pub fn read(files: CertificateFiles) -> Result<Self, CertificateFileError> {
        // Before the files are read, so that a change in between is not missed.
        let read = files.stamps();
        let CertificateContents { key, validity } = files.read()?;
        let tls = ServerTls::with_key(key).map_err(|source| files.unusable(source))?;
        Ok(Self { files, tls, validity, read })
    }

    /// The TLS that shows the certificate of each moment.
    pub fn tls(&self) -> ServerTls {
        self.tls.clone()
    }

    /// Where the certificate is in its life now.
    pub fn life(&self) -> CertificateLife {
        self.validity.life(SystemTime::now())
    }

    /// Reads the files again when they have changed, for as long as it is polled, and reports what
    /// has become of the certificate.
    pub async fn keep_current(mut self, mut report: impl FnMut(CertificateNews)) -> Infallible {
        let mut before = self.read;
        let mut known = self.life();
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let seen = self.look().await;
            // Two files are seldom replaced in one moment.
            if seen != self.read && seen == before {
                self.read = seen;
                if let Some(news) = self.renew().await {
                    report(news);
                }
                known = self.life();
            }
            before = seen;
            let life = self.life();
            if life != known {
                known = life;
                report(CertificateNews::Aged(life));
            }
        }
    }

    async fn look(&self) -> FileStamps {
        let files = self.files.clone();
        let looked = tokio::task::spawn_blocking(move || files.stamps()).await;
        looked.unwrap_or(self.read)
    }

    /// Reads the files. `None` if the runtime ends meanwhile.
    async fn renew(&mut self) -> Option<CertificateNews> {
        let files = self.files.clone();
        Some(match tokio::task::spawn_blocking(move || files.read()).await.ok()? {
            Ok(CertificateContents { key, validity }) => {
                self.tls.show(key);
                self.validity = validity;
                CertificateNews::Renewed(self.life())
            }
            Err(error) => CertificateNews::Refused(error),
        })
    }
}
