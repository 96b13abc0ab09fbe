//! A tool that opens web pages in the user's browser.
//!
//! The host decides which pages may be opened, and asks the user. This plugin only completes the
//! address, so that "example.com" works, and explains to the model what is wrong with any other
//! text.

use sallyport_sdk::{
    open_url::{self, Opened},
    prelude::*,
};

/// Maximum length of an address, in bytes. Every browser accepts this much.
const URL_BYTES_MAX: usize = 2_048;

/// Which page.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OpenWebsite {
    /// Address of a web page, such as "https://example.com/news" or "example.com".
    url: String,
}

/// What was opened.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
struct Page {
    /// The address.
    url: String,
    /// False when there is no browser here and the user was shown the address instead.
    opened: bool,
}

/// Opens a web page in the user's browser. Only http and https pages can be opened.
#[tool(destructive = false, idempotent = false, open_world)]
fn open_website(args: OpenWebsite) -> Result<Output<Page>, ToolError> {
    let url = complete(&args.url)
        .map_err(|reason| ToolError::InvalidArguments(format!("argument `url`: {reason}")))?;
    let opened = open_url::open(&url)? == Opened::Browser;
    let host = host(&url);
    let speech = match opened {
        true => format!("Opening {host}."),
        false => format!("There is no browser here; the address of {host} is on the screen."),
    };
    Ok(Output::new(Page { url, opened }).speech(speech))
}

/// Completes an address. A bare host gets https.
fn complete(given: &str) -> Result<String, &'static str> {
    let given = given.trim();
    if given.is_empty() {
        return Err("it is empty");
    }
    if given.len() > URL_BYTES_MAX {
        return Err("it is too long");
    }
    if given.contains(|c: char| c.is_whitespace() || c.is_control() || c == '\\') {
        return Err("an address holds no spaces, control characters or backslashes");
    }
    let (scheme, rest) = split_scheme(given)?;
    let authority = &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())];
    if authority.contains('@') {
        return Err("an address may hold neither a user nor a password");
    }
    if authority.is_empty() || authority.starts_with([':', '.']) {
        return Err("it names no host");
    }
    Ok(format!("{scheme}://{rest}"))
}

/// Splits an address into scheme and rest. The text after the first colon of "localhost:8080/x" is
/// a port; that of "mailto:kim" is not.
fn split_scheme(given: &str) -> Result<(&'static str, &str), &'static str> {
    const ONLY: &str = "only http and https pages can be opened";
    if let Some((scheme, rest)) = given.split_once("://") {
        return match scheme.to_ascii_lowercase().as_str() {
            "https" => Ok(("https", rest)),
            "http" => Ok(("http", rest)),
            // The colon is in the path or query, as in "example.com/?next=https://…".
            _ if scheme.contains(['/', '?', '#']) => Ok(("https", given)),
            _ => Err(ONLY),
        };
    }
    let end = given.find(['/', '?', '#']).unwrap_or(given.len());
    // The colons of "[::1]" are part of the host.
    let host = given[..end].rsplit(']').next().unwrap_or_default();
    match host.split_once(':') {
        Some((_, port)) if port.is_empty() || !port.bytes().all(|b| b.is_ascii_digit()) => {
            Err(ONLY)
        }
        _ => Ok(("https", given)),
    }
}

/// Returns the host as users know it.
fn host(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())];
    authority.strip_prefix("www.").unwrap_or(authority)
}

sallyport_sdk::export_plugin!(tools = [open_website]);

#[cfg(test)]
mod tests {
    use sallyport_sdk::testing::{self, Power};

    use super::*;

    fn open(url: &str) -> Result<Output, ToolError> {
        testing::call::<open_website>(json!({ "url": url }))
    }

    #[test]
    fn pages_are_opened_by_their_whole_address() {
        testing::grant([Power::OpenUrl]);
        for (given, url, speech) in [
            ("https://example.com", "https://example.com", "Opening example.com."),
            ("example.com", "https://example.com", "Opening example.com."),
            (" www.example.com/a?b#c ", "https://www.example.com/a?b#c", "Opening example.com."),
            ("HTTP://Example.com/", "http://Example.com/", "Opening Example.com."),
            ("localhost:8080/x", "https://localhost:8080/x", "Opening localhost:8080."),
            ("[::1]:80", "https://[::1]:80", "Opening [::1]:80."),
            (
                "example.com/?to=https://b",
                "https://example.com/?to=https://b",
                "Opening example.com.",
            ),
            ("bücher.example", "https://bücher.example", "Opening bücher.example."),
        ] {
            let output = open(given).unwrap();
            assert_eq!(output.data, json!({ "url": url, "opened": true }));
            assert_eq!(output.speech.as_deref(), Some(speech));
            assert_eq!(testing::opened(), [url]);
        }
    }

    #[test]
    fn anything_else_is_refused_before_the_host_is_asked() {
        testing::grant([Power::OpenUrl]);
        for given in [
            "",
            " ",
            "javascript:alert(1)",
            "mailto:kim@example.com",
            "file:///etc/passwd",
            "FILE:/etc/passwd",
            "ftp://example.com",
            "data:text/html,hi",
            "https://",
            "https:///x",
            "https://:80",
            "https://user:pw@example.com",
            "example.com@evil.example",
            "https://example.com\\@evil.example",
            "https://example.com/\nx",
            "two words",
            &format!("https://example.com/{}", "x".repeat(URL_BYTES_MAX)),
        ] {
            let error = open(given).unwrap_err();
            assert_eq!(error.kind(), "invalid-arguments", "{given:?}");
        }
        assert_eq!(testing::opened(), [] as [&str; 0]);
    }

    #[test]
    fn a_refusal_is_told_as_one() {
        assert_eq!(open("example.com").unwrap_err().kind(), "denied");
    }
}
