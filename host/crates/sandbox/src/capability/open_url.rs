//! `open-url`: pages in the user's browser. Each page passes the gate like a request: a rule allows
//! it, or the user is asked while the guest's clock is paused.

use sallyport_contract::{Decision, Denial, DenialReason, services::UrlOpenResult};
use sallyport_policy::Capability;
use url::{Position, Url};
use wasmtime_wasi::runtime::spawn_blocking;

use super::{HostCall, HostCallError, HostCallLimit, other_case_json};
use crate::{
    authorizer::OutboundAccessKind,
    bindings::v0_1::sallyport::plugin::open_url::{Error, Host, Opened},
};

/// Longest address in bytes. Browsers commonly accept no more.
const URL_BYTES_MAX: usize = 2048;

/// Pages that one run opens. Each one asks for the user's attention.
const PAGES: HostCallLimit = HostCallLimit { calls_max: 20, unit: "pages" };

impl Host for HostCall<'_> {
    async fn open(&mut self, url: String) -> Result<Opened, Error> {
        let url = parse_address(&url)?;
        let what = format!("open {}", &url[..Position::AfterPath]);
        let decision = self.check_page(&url).await?;
        self.count_call(&PAGES)?;
        let opener =
            self.require_service(|services| services.url_opener, "pages cannot be opened here")?;
        let kind = OutboundAccessKind::Page { url: &url, decision };
        let authorized = self.run_context.authorize_access(&what, kind).await;
        authorized.map_err(HostCallError::Refused)?;
        // The policy may have changed while the user was deciding.
        self.check_page(&url).await?;
        let work = spawn_blocking(move || opener.open_page(url.as_str()));
        let outcome = |opened: &UrlOpenResult| {
            Some(match opened {
                UrlOpenResult::Browser => " (in the browser)".to_owned(),
                UrlOpenResult::Shown => " (shown to the person)".to_owned(),
            })
        };
        Ok(match self.record_use(Capability::OpenUrl, what, work, outcome).await {
            UrlOpenResult::Browser => Opened::Browser,
            UrlOpenResult::Shown => Opened::Shown,
        })
    }
}

impl HostCall<'_> {
    /// Makes sure that the current grant allows the page and that the address contains no secret.
    async fn check_page(&self, url: &Url) -> Result<Decision, HostCallError> {
        let decision = self.require_permission(|grant| grant.check_page(url)).await?;
        match self.run_context.authorizer().redactor().find_secret(url.as_str().as_bytes()) {
            None => Ok(decision),
            Some(name) => {
                let reason = DenialReason::CarriesSecret { name: name.to_owned(), to: None };
                let plugin = self.run_context.initial_grant().plugin();
                let subject = format!("{plugin} may not open an address");
                Err(self.refuse(Denial::new(subject, reason)))
            }
        }
    }
}

/// Parses an address. An address that looks as if it led to another host is refused.
fn parse_address(text: &str) -> Result<Url, Error> {
    let invalid = |why: &str| Err(Error::Invalid(why.to_owned()));
    if text.len() > URL_BYTES_MAX {
        return invalid("the address is too long");
    }
    let Ok(url) = Url::parse(text) else { return invalid("it is not an address") };
    match url.scheme() {
        "http" | "https" if !url.username().is_empty() || url.password().is_some() => {
            invalid("the address names a user, which can hide where it leads")
        }
        "http" | "https" => Ok(url),
        _ => invalid("only http and https can be opened"),
    }
}

impl From<HostCallError> for Error {
    fn from(error: HostCallError) -> Self {
        match error {
            HostCallError::Refused(denial) => Self::Denied(denial.reason.to_string()),
            HostCallError::LimitReached(text) => Self::Denied(text),
            HostCallError::Unavailable(text) => Self::Other(other_case_json(text)),
        }
    }
}
