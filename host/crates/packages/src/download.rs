//! Downloads from the index, with one client and limited response sizes.

use std::time::Duration;

use reqwest::{Client, Response, StatusCode, header, redirect};
use sallyport_contract::services::PackageFetchError;
use sallyport_http_client::{client_builder, read_body};
use url::Url;

/// Maximum wait for a complete response. A guest waits for it within its own time limit.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(120);

/// Maximum number of redirects. Indexes often serve files from another host; a longer chain is a
/// loop.
pub(crate) const REDIRECTS_MAX: usize = 5;

/// Maximum size of a project's page, in bytes. Pages with thousands of files take a few megabytes.
const PAGE_BYTES_MAX: usize = 32 << 20;

/// Maximum size of a wheel, in bytes.
const WHEEL_BYTES_MAX: usize = 32 << 20;

/// Both formats of a page, JSON preferred.
const PAGE_FORMS: &str = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1";

/// A page of the index.
pub(crate) struct IndexPage {
    pub(crate) url: Url,
    pub(crate) media_type: String,
    pub(crate) text: String,
}

/// Builds a client. For a plain http index it trusts no certificate, so a redirect to https fails.
pub(crate) fn build_client(is_https: bool) -> Result<Client, String> {
    let onwards = redirect::Policy::custom(move |attempt| {
        if attempt.previous().len() > REDIRECTS_MAX {
            attempt.error("too many redirects")
        } else if is_https && attempt.url().scheme() != "https" {
            attempt.error("a redirect leads away from https")
        } else {
            attempt.follow()
        }
    });
    let builder = client_builder(is_https).map_err(|error| error.to_string())?;
    let builder = builder.redirect(onwards).timeout(ANSWER_TIME_MAX);
    builder.build().map_err(|error| error.to_string())
}

/// Fetches the page of a project; `None` if the index does not have the project.
pub(crate) async fn fetch_page(
    client: &Client,
    url: Url,
) -> Result<Option<IndexPage>, PackageFetchError> {
    let request = client.get(url).header(header::ACCEPT, PAGE_FORMS);
    let Some(response) = check_response(request.send().await)? else { return Ok(None) };
    let (url, header) = (response.url().clone(), response.headers().get(header::CONTENT_TYPE));
    let media_type = header.and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
    let bytes = read_answer(response, PAGE_BYTES_MAX).await?;
    Ok(Some(IndexPage { url, media_type, text: String::from_utf8_lossy(&bytes).into_owned() }))
}

/// Fetches a wheel; `None` if it does not exist.
pub(crate) async fn fetch_wheel(
    client: &Client,
    url: Url,
) -> Result<Option<Vec<u8>>, PackageFetchError> {
    match check_response(client.get(url).send().await)? {
        Some(response) => read_answer(response, WHEEL_BYTES_MAX).await.map(Some),
        None => Ok(None),
    }
}

fn check_response(
    result: Result<Response, reqwest::Error>,
) -> Result<Option<Response>, PackageFetchError> {
    let response = result.map_err(|error| connection_error(&error))?;
    match response.status() {
        StatusCode::OK => Ok(Some(response)),
        StatusCode::NOT_FOUND | StatusCode::GONE => Ok(None),
        status => Err(index_unavailable(&format!("it answered {status}"))),
    }
}

async fn read_answer(response: Response, bytes_max: usize) -> Result<Vec<u8>, PackageFetchError> {
    let body = read_body(response, bytes_max).await.map_err(|error| connection_error(&error))?;
    let too_long = || index_unavailable(&format!("it sent more than {} MiB", bytes_max >> 20));
    body.ok_or_else(too_long)
}

/// Returns an error for a guest. It omits the address, which may contain the operator's password.
fn connection_error(error: &reqwest::Error) -> PackageFetchError {
    index_unavailable(match error {
        _ if error.is_timeout() => "it did not answer in time",
        _ if error.is_connect() => "it cannot be reached",
        _ if error.is_redirect() => "it redirects too often or to http",
        _ => "the connection was lost",
    })
}

pub(crate) fn index_unavailable(why: &str) -> PackageFetchError {
    PackageFetchError::Unavailable(format!("the package index cannot be used: {why}"))
}
