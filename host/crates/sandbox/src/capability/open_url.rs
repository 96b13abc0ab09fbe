//! `open-url`: pages in the user's browser. Each page passes the gate like a request: a rule allows
//! it, or the user is asked while the guest's clock is paused.

use sallyport_contract::{Denial, services};
use sallyport_policy::Capability;
use url::{Position, Url};

use super::{apart, message_case};
use crate::{
    bindings::v0_1::sallyport::plugin::open_url::{Error, Host, Opened},
    guest::Guest,
    warden::AccessKind,
};

/// Longest address in bytes. Browsers commonly accept no more.
const URL_BYTES_MAX: usize = 2048;

impl Host for Guest {
    async fn open(&mut self, url: String) -> wasmtime::Result<Result<Opened, Error>> {
        Ok(self.open_url(&url).await)
    }
}

impl Guest {
    async fn open_url(&mut self, text: &str) -> Result<Opened, Error> {
        let url = address(text)?;
        let what = format!("open {}", &url[..Position::AfterPath]);
        self.may_open(&url, &what)?;
        self.count_page()?;
        let Some(opener) = self.case.warden().services().opener else {
            return Err(Error::Other(message_case("pages cannot be opened here")));
        };
        let kind = AccessKind::OpenUrl { url: &url };
        self.case.agree(&what, kind).await.map_err(|denial| denied(&denial))?;
        // The policy may have changed while the user was deciding.
        self.may_open(&url, &what)?;
        let going_on = self.case.ledger.using(Capability::OpenUrl, what);
        let (opened, how) = match apart(move || opener.open_url(url.as_str())).await {
            services::UrlOpenResult::Browser => (Opened::Browser, " (in the browser)"),
            services::UrlOpenResult::Shown => (Opened::Shown, " (shown to the person)"),
        };
        going_on.ended(how);
        Ok(opened)
    }

    /// Makes sure that the current grant allows the page and that the address contains no secret.
    fn may_open(&self, url: &Url, what: &str) -> Result<(), Error> {
        let grant = self.case.grant();
        let checked = match grant.open_url() {
            Some(pages) => pages.check_url(url).map(drop),
            None => Err(grant.deny_capability(Capability::OpenUrl, what)),
        };
        let secret = || {
            let redactor = self.case.warden().redactor();
            let name = redactor.find_secret(url.as_str().as_bytes())?;
            Some(Denial {
                what: format!("{} may not open an address", grant.plugin()),
                why: format!("it would carry the secret {name}"),
                fix: None,
                nobody_to_ask: false,
            })
        };
        checked.and_then(|()| secret().map_or(Ok(()), Err)).map_err(|denial| {
            let told = denied(&denial);
            self.case.ledger.refused(denial);
            told
        })
    }

    fn count_page(&mut self) -> Result<(), Error> {
        if self.uses.pages.take() {
            return Ok(());
        }
        let limit = self.uses.pages.limit("pages");
        self.case.ledger.limit_reached(limit.clone());
        Err(Error::Denied(format!("the limit of {limit} is reached")))
    }
}

/// Parses an address. An address that looks as if it led to another host is refused.
fn address(text: &str) -> Result<Url, Error> {
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

fn denied(denial: &Denial) -> Error {
    Error::Denied(denial.why.clone())
}
