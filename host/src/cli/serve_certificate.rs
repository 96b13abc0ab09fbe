//! The certificate of `sallyport serve`: where it is, and what the operator learns about it.

use std::{convert::Infallible, future, time::SystemTime};

use jiff::Timestamp;
use sallyport_http_server::{
    CertificateFileError, CertificateFiles, CertificateLife, CertificateNews, RenewedCertificate,
};
use sallyport_runtime::config::{HostSettings, ServeSettings};

use super::{
    exit::{CommandFailure, ExitStatus},
    output::CliOutput,
};

/// What to do about a certificate whose time is over, or nearly so.
const RENEW: &str = "renew it; the new one is used without a restart";

/// Reads the certificate of `[serve]`, if there is one, and warns if its time is over.
pub(super) fn read_certificate(
    settings: &HostSettings,
    out: &CliOutput,
) -> Result<Option<RenewedCertificate>, CommandFailure> {
    let Some(serve) = &settings.serve else { return Ok(None) };
    let file = settings.config_file.display();
    let failure = |problem: String| {
        let message = format!("nobody could connect by [serve] in {file}: {problem}");
        CommandFailure::new(ExitStatus::Usage, message)
    };
    let files = certificate_files(serve, settings).map_err(failure)?;
    let certificate = RenewedCertificate::read(files);
    let certificate = certificate.map_err(|error: CertificateFileError| {
        failure(error.to_string()).with_hint(error.hint())
    })?;
    warn_of_age(certificate.life(), out);
    Ok(Some(certificate))
}

fn certificate_files(
    serve: &ServeSettings,
    settings: &HostSettings,
) -> Result<CertificateFiles, String> {
    let certificate = serve.certificate_path(&settings.env)?;
    Ok(CertificateFiles { certificate, key: serve.key_path(&settings.env)? })
}

/// Uses a renewed certificate as soon as it is there, for as long as it is polled.
pub(super) async fn keep_current(
    certificate: Option<RenewedCertificate>,
    out: &CliOutput,
) -> Infallible {
    match certificate {
        Some(certificate) => certificate.keep_current(|news| print_news(&news, out)).await,
        None => future::pending().await,
    }
}

fn print_news(news: &CertificateNews, out: &CliOutput) {
    match news {
        CertificateNews::Renewed(CertificateLife::Valid { ends }) => {
            out.print_note(&format!("Certificate renewed. It is valid until {}.", shown(*ends)));
        }
        CertificateNews::Renewed(life) | CertificateNews::Aged(life) => warn_of_age(*life, out),
        CertificateNews::Refused(error) => {
            out.print_warning(&format!("the certificate stays as it was: {error}"));
            out.print_hint(&error.hint());
        }
    }
}

fn warn_of_age(life: CertificateLife, out: &CliOutput) {
    let (words, hint) = match life {
        CertificateLife::Valid { .. } => return,
        CertificateLife::EndsSoon { ends } => {
            (format!("the certificate ends on {}", shown(ends)), RENEW)
        }
        CertificateLife::Ended { ends } => {
            (format!("the certificate ended on {}, so clients refuse it", shown(ends)), RENEW)
        }
        CertificateLife::NotYet { begins } => (
            format!("the certificate is valid from {} on, so clients refuse it", shown(begins)),
            "check the clock of this machine",
        ),
    };
    out.print_warning(&words);
    out.print_hint(hint);
}

fn shown(moment: SystemTime) -> String {
    Timestamp::try_from(moment).map_or_else(|_| "no date".to_owned(), |at| format!("{at:.0}"))
}
