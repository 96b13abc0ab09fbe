//! How long a certificate is valid.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustls::pki_types::CertificateDer;
use x509_cert::{Certificate, der::Decode as _, time::Time};

/// A certificate that ends within this time should have been renewed: programs that renew them begin
/// a month before the end.
const SOON: Duration = Duration::from_secs(14 * 24 * 60 * 60);

/// The part of its life in which a certificate of a few days counts as about to end.
const LAST_PART: u32 = 6;

/// The first and the last moment of a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Validity {
    pub(super) begins: SystemTime,
    pub(super) ends: SystemTime,
}

/// Where a certificate is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CertificateLife {
    /// It begins later, by the clock of this machine.
    NotYet {
        /// Its first moment.
        begins: SystemTime,
    },
    /// It is valid.
    Valid {
        /// Its last moment.
        ends: SystemTime,
    },
    /// It is valid, and should have been renewed.
    EndsSoon {
        /// Its last moment.
        ends: SystemTime,
    },
    /// It has ended.
    Ended {
        /// Its last moment.
        ends: SystemTime,
    },
}

impl Validity {
    /// Reads the validity of a certificate. `None` if it is not a certificate.
    pub(super) fn read(certificate: &CertificateDer<'_>) -> Option<Self> {
        let certificate = Certificate::from_der(certificate).ok()?;
        let validity = certificate.tbs_certificate.validity;
        Some(Self { begins: moment(validity.not_before), ends: moment(validity.not_after) })
    }

    pub(super) fn life(&self, now: SystemTime) -> CertificateLife {
        let Self { begins, ends } = *self;
        let whole = ends.duration_since(begins).unwrap_or_default();
        let soon = SOON.min(whole / LAST_PART);
        match ends.duration_since(now) {
            Err(_) => CertificateLife::Ended { ends },
            Ok(_) if now < begins => CertificateLife::NotYet { begins },
            Ok(left) if left < soon => CertificateLife::EndsSoon { ends },
            Ok(_) => CertificateLife::Valid { ends },
        }
    }
}

fn moment(time: Time) -> SystemTime {
    UNIX_EPOCH + time.to_unix_duration()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = 24 * 60 * 60;

    fn day(number: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(number * DAY)
    }

    #[test]
    fn a_certificate_ends_soon_in_the_last_two_weeks_or_the_last_part_of_its_life() {
        let rows = [
            ((100, 190), 99, "not yet"),
            ((100, 190), 100, "valid"),
            ((100, 190), 175, "valid"),
            ((100, 190), 177, "soon"),
            ((100, 190), 191, "ended"),
            ((100, 106), 104, "valid"),
            ((100, 112), 111, "soon"),
            ((100, 99), 100, "ended"),
        ];
        for ((begins, ends), now, want) in rows {
            let validity = Validity { begins: day(begins), ends: day(ends) };
            let found = match validity.life(day(now)) {
                CertificateLife::NotYet { .. } => "not yet",
                CertificateLife::Valid { .. } => "valid",
                CertificateLife::EndsSoon { .. } => "soon",
                CertificateLife::Ended { .. } => "ended",
            };
            assert_eq!(found, want, "{begins} {ends} {now}");
        }
    }

    #[test]
    fn what_is_not_a_certificate_has_no_validity() {
        for bytes in [&b""[..], b"\x30", b"\x30\x80", b"text"] {
            assert_eq!(Validity::read(&CertificateDer::from(bytes)), None, "{bytes:?}");
        }
    }
}
