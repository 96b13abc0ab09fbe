//! The preview of a request that the user sees before approving it.

use http::{HeaderMap, header};
use sallyport_contract::{BodyPreview, Redactor, RequestPreview};
use sallyport_policy::{Grant, SecretUse};
use sallyport_sandbox::{BodyBufferError, OutboundAccessKind};
use url::{Position, Url};

/// Returns the preview of an access, with the whole body of a request.
///
/// # Errors
///
/// The body cannot be shown, so the request cannot be approved.
pub(super) async fn build_preview(
    kind: &OutboundAccessKind<'_>,
    grant: &Grant,
    redactor: &Redactor,
) -> Result<RequestPreview, BodyBufferError> {
    let redact = |text: &str| redactor.redact_text(text).into_owned();
    let (method, url, headers, body) = match kind {
        OutboundAccessKind::Request { method, url, headers, body, .. } => {
            let bytes = body.buffered_body().await?;
            let body = body_preview(headers, &redactor.redact_bytes(&bytes), redactor);
            (Some(redact(method)), *url, header_lines(headers, grant, url, redactor), body)
        }
        OutboundAccessKind::Page { url, .. } => (None, *url, Vec::new(), None),
    };
    let mut preview = RequestPreview {
        method,
        address: redact(&url[..Position::AfterPath]),
        query: redact(&url[Position::AfterPath..]),
        headers,
        body,
        digest: String::new(),
    };
    preview.digest = preview_digest(&preview);
    Ok(preview)
}

fn body_preview(headers: &HeaderMap, bytes: &[u8], redactor: &Redactor) -> Option<BodyPreview> {
    let media_type =
        headers.get(header::CONTENT_TYPE).map(|value| redacted_text(value.as_bytes(), redactor));
    let digest = blake3::hash(bytes).to_hex().to_string();
    (!bytes.is_empty()).then(|| BodyPreview::new(media_type, bytes, digest))
}

/// The guest's headers. Where the host sets a secret into a header, the line shows the secret's
/// name.
fn header_lines(
    headers: &HeaderMap,
    grant: &Grant,
    url: &Url,
    redactor: &Redactor,
) -> Vec<(String, String)> {
    let injected: Vec<(String, String)> = grant
        .secrets()
        .iter()
        .filter_map(|entry| match &entry.usage {
            SecretUse::Inject(injection) if injection.applies_to_url(url) => {
                let name = injection.header_name().to_ascii_lowercase();
                Some((name, format!("(the secret {})", entry.name)))
            }
            SecretUse::Inject(_) | SecretUse::Reveal => None,
        })
        .collect();
    let is_guest_header = |name: &str| !injected.iter().any(|(set, _)| set == name);
    let guest_headers = headers.iter().filter(|(name, _)| is_guest_header(name.as_str()));
    let guest_headers = guest_headers.map(|(name, value)| {
        (
            redactor.redact_text(name.as_str()).into_owned(),
            redacted_text(value.as_bytes(), redactor),
        )
    });
    let guest_headers: Vec<_> = guest_headers.collect();
    guest_headers.into_iter().chain(injected).collect()
}

fn redacted_text(bytes: &[u8], redactor: &Redactor) -> String {
    String::from_utf8_lossy(&redactor.redact_bytes(bytes)).into_owned()
}

/// Hashes the preview. Each part follows its length, so that different requests have different
/// digests.
fn preview_digest(preview: &RequestPreview) -> String {
    let mut hasher = blake3::Hasher::new();
    let mut add = |part: &str| {
        hasher.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
    };
    add(preview.method.as_deref().unwrap_or_default());
    add(&preview.address);
    add(&preview.query);
    preview.headers.iter().flat_map(|(name, value)| [name, value]).for_each(|part| add(part));
    add(preview.body.as_ref().map_or("", |body| &body.digest));
    hasher.finalize().to_hex().to_string()
}

#[cfg(test)]
mod tests {
    use sallyport_contract::Secret;

    use super::*;

    #[test]
    fn a_body_and_headers_are_shown_without_secrets() {
        let secret = Secret::new("correct-horse-battery");
        let redactor = Redactor::new([("key", &secret)]);
        let mut headers = HeaderMap::new();
        headers.insert("x-own", "a correct-horse-battery".parse().unwrap());
        headers.insert("content-type", "text/plain".parse().unwrap());
        let bytes = redactor.redact_bytes(b"say correct-horse-battery");
        let body = body_preview(&headers, &bytes, &redactor).unwrap();
        assert_eq!(body.media_type.as_deref(), Some("text/plain"));
        assert!(body.content.starts_with("say ") && !body.content.contains("horse"));
        assert!(!redacted_text(headers["x-own"].as_bytes(), &redactor).contains("horse"));
        assert_eq!(body_preview(&headers, b"", &redactor), None);
        let binary = body_preview(&headers, &[0xff, 0x00], &redactor).unwrap();
        assert_eq!((binary.content.as_str(), binary.length_bytes), ("ff00", 2));
    }

    #[test]
    fn any_other_request_has_another_digest() {
        let of = |address: &str, query: &str, headers: &[(&str, &str)]| {
            let headers = headers.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
            let (address, query) = (address.to_owned(), query.to_owned());
            let (method, body, digest) = (Some("GET".to_owned()), None, String::new());
            digest_of(&RequestPreview { method, address, query, headers, body, digest })
        };
        fn digest_of(preview: &RequestPreview) -> String {
            super::preview_digest(preview)
        }
        let all = [
            of("https://a.example/", "", &[]),
            of("https://a.example/", "?q", &[]),
            of("https://a.example", "/?q", &[]),
            of("https://a.example/", "", &[("a", "bc")]),
            of("https://a.example/", "", &[("ab", "c")]),
            of("https://a.example/", "", &[("a", "b"), ("c", "")]),
        ];
        let different: std::collections::BTreeSet<_> = all.iter().collect();
        assert_eq!(different.len(), all.len());
    }
}
