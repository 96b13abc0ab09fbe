//! `open-url`: pages in the user's browser. Each page passes the gate like a request: a rule allows
//! it, or the user is asked while the guest's clock is paused.

use sallyport_contract::{Denial, services};
use sallyport_policy::Capability;
use url::{Position, Url};

use super::{other_case_json, run_blocking};
use crate::{
    authorizer::OutboundAccessKind,
    bindings::v0_1::sallyport::plugin::open_url::{Error, Host, Opened},
    guest::Guest,
};

/// Longest address in bytes. Browsers commonly accept no more.
const URL_BYTES_MAX: usize = 2048;

impl Host for Guest {
    async fn open(&mut self, url: String) -> wasmtime::Result<Result<Opened, Error>> {
        Ok(self.open_page(&url).await)
    }
}

impl Guest {
    async fn open_page(&mut self, text: &str) -> Result<Opened, Error> {
        let url = parse_address(text)?;
        let what = format!("open {}", &url[..Position::AfterPath]);
        self.check_page_access(&url, &what)?;
        self.count_page()?;
        let Some(opener) = self.run_context.authorizer().services().url_opener else {
            return Err(Error::Other(other_case_json("pages cannot be opened here")));
        };
        let kind = OutboundAccessKind::OpenUrl { url: &url };
        self.run_context
            .authorize_access(&what, kind)
            .await
            .map_err(|denial| denial_error(&denial))?;
        // The policy may have changed while the user was deciding.
        self.check_page_access(&url, &what)?;
        let capability_use = self.run_context.effect_log.begin_use(Capability::OpenUrl, what);
        let (opened, how) = match run_blocking(move || opener.open_url(url.as_str())).await {
            services::UrlOpenResult::Browser => (Opened::Browser, " (in the browser)"),
            services::UrlOpenResult::Shown => (Opened::Shown, " (shown to the person)"),
        };
        capability_use.record_outcome(how);
        Ok(opened)
    }

    /// Makes sure that the current grant allows the page and that the address contains no secret.
    fn check_page_access(&self, url: &Url, what: &str) -> Result<(), Error> {
        let grant = self.run_context.current_grant();
        let checked = match grant.open_url() {
            Some(pages) => pages.check_url(url).map(drop),
            None => Err(grant.deny_capability(Capability::OpenUrl, what)),
        };
        let secret = || {
            let redactor = self.run_context.authorizer().redactor();
            let name = redactor.find_secret(url.as_str().as_bytes())?;
            Some(Denial {
                what: format!("{} may not open an address", grant.plugin()),
                why: format!("it would carry the secret {name}"),
                fix: None,
                nobody_to_ask: false,
            })
        };
        checked.and_then(|()| secret().map_or(Ok(()), Err)).map_err(|denial| {
            let guest_error = denial_error(&denial);
            self.run_context.effect_log.record_refusal(denial);
            guest_error
        })
    }

    fn count_page(&mut self) -> Result<(), Error> {
        if self.counters.pages.try_count() {
            return Ok(());
        }
        let limit = self.counters.pages.limit_text("pages");
        self.run_context.effect_log.record_limit(limit.clone());
        Err(Error::Denied(format!("the limit of {limit} is reached")))
    }
}

/// Parses an address. An address that looks as if it led to another host is refused.
fn parse_address(text: &str) -> Result<Url, Error> {
    let invalid = |why: &str| Err(Error::Invalid(why.to_owned()));
    if text.len() > URL_BYTES_MAX {
        return invalid("the address is too long");
    }
    let Ok(url) = Url::parse(text) else { return invalid("it is no address") };
    match url.scheme() {
        "http" | "https" if !url.username().is_empty() || url.password().is_some() => {
            invalid("the address names a user, which can hide where it leads")
        }
        "http" | "https" => Ok(url),
        _ => invalid("only http and https can be opened"),
    }
}

fn denial_error(denial: &Denial) -> Error {
    Error::Denied(denial.why.clone())
}
