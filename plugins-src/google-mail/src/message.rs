//! Builds the message in the form of RFC 5322.
//!
//! There is no `From`: the service sets it to the account's own address, which this plugin does not
//! know.

use email_address::{EmailAddress, Options};
use mail_builder::{MessageBuilder, headers::address::Address};
use sallyport_sdk::ToolError;

use crate::SendEmail;

/// Returns the bytes of a message.
///
/// # Errors
///
/// There are no recipients, or an address or the subject cannot be part of a message.
pub(crate) fn build_message(args: &SendEmail) -> Result<Vec<u8>, ToolError> {
    let recipients = &args.recipients;
    let subject = args.content.subject.trim();
    if let Some(sign) = subject.chars().find(|sign| sign.is_control()) {
        return Err(invalid(format!("the subject contains the control character {sign:?}")));
    }
    if recipients.to.is_empty() {
        return Err(invalid("recipients.to has no address".to_owned()));
    }
    let mut message = MessageBuilder::new();
    for (header, texts) in
        [("To", &recipients.to), ("Cc", &recipients.cc), ("Bcc", &recipients.bcc)]
    {
        if !texts.is_empty() {
            let addresses = texts.iter().map(|text| read_address(header, text));
            let addresses = addresses.collect::<Result<Vec<_>, _>>()?;
            message = message.header(header, Address::new_list(addresses));
        }
    }
    let message = message.subject(subject).text_body(args.content.body.as_str());
    let mut bytes = Vec::new();
    message.serialize(&mut bytes);
    Ok(bytes)
}

/// Reads `ann@example.com` or `Ann Lee <ann@example.com>`.
fn read_address(header: &str, text: &str) -> Result<Address<'static>, ToolError> {
    let field = header.to_ascii_lowercase();
    let refuse = |why: &str| invalid(format!("recipients.{field} has {text:?}, which {why}"));
    if text.chars().any(char::is_control) {
        return Err(refuse("contains a control character"));
    }
    let options = Options::default().without_domain_literal().with_required_tld();
    let address = EmailAddress::parse_with_options(text.trim(), options)
        .map_err(|error| refuse(&format!("is not an address: {error}")))?;
    let plain = address.email().to_owned();
    if !plain.is_ascii() {
        let why = "has other letters than a to z in its address; write the domain as xn--…";
        return Err(refuse(why));
    }
    let name = address.display_part().trim().trim_matches('"').to_owned();
    Ok(Address::new_address((!name.is_empty()).then_some(name), plain))
}

fn invalid(message: String) -> ToolError {
    ToolError::InvalidArguments(message)
}

#[cfg(test)]
mod tests {
    use mail_parser::{HeaderName, MessageParser};

    use super::*;
    use crate::{Content, Recipients};

    fn args(to: &[&str], cc: &[&str], bcc: &[&str], subject: &str, body: &str) -> SendEmail {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        SendEmail {
            recipients: Recipients { to: owned(to), cc: owned(cc), bcc: owned(bcc) },
            content: Content { subject: subject.to_owned(), body: body.to_owned() },
        }
    }

    /// What another library reads in the message: names and addresses, the subject, the body.
    type ReadMessage = (Vec<(String, String)>, String, String);

    fn read_back(bytes: &[u8]) -> ReadMessage {
        let message = MessageParser::new().parse(bytes).unwrap();
        let mut people = Vec::new();
        for header in [HeaderName::To, HeaderName::Cc, HeaderName::Bcc] {
            let Some(addresses) = message.header(header).and_then(|found| found.as_address())
            else {
                continue;
            };
            people.extend(addresses.iter().map(|address| {
                let text = |part: Option<&str>| part.unwrap_or_default().to_owned();
                (text(address.name()), text(address.address()))
            }));
        }
        let body = message.body_text(0).unwrap_or_default().replace("\r\n", "\n");
        (people, message.subject().unwrap_or_default().to_owned(), body)
    }

    #[track_caller]
    fn check(args: &SendEmail, people: &[(&str, &str)]) {
        let bytes = build_message(args).unwrap();
        let text = str::from_utf8(&bytes).unwrap();
        assert!(text.is_ascii(), "{text}");
        for line in text.split("\r\n") {
            assert!(line.len() <= 998 && !line.contains(['\r', '\n']), "{line:?}");
        }
        let people: Vec<_> = people.iter().map(|(a, b)| (a.to_string(), b.to_string())).collect();
        let want = (people, args.content.subject.clone(), args.content.body.clone());
        assert_eq!(read_back(&bytes), want, "{text}");
        for header in ["Date: ", "Message-ID: ", "MIME-Version: 1.0", "Content-Type: text/plain"] {
            assert!(text.contains(header), "{header} in {text}");
        }
        assert!(!text.contains("From:"), "{text}");
    }

    #[test]
    fn another_library_reads_what_was_written() {
        let plain = [("", "ann@example.com")];
        check(&args(&["ann@example.com"], &[], &[], "Hello", "Hi Ann\n"), &plain);
        check(&args(&["ann@example.com"], &[], &[], "Grüße aus Köln 👋", "Schöne Grüße\n"), &plain);
        check(
            &args(
                &["Ann Lee <ann@example.com>", "José Núñez <jose@example.com>"],
                &["\"Lee, Bob\" <bob@example.com>"],
                &["eve@example.com"],
                "long words ".repeat(20).trim(),
                "one\n",
            ),
            &[
                ("Ann Lee", "ann@example.com"),
                ("José Núñez", "jose@example.com"),
                ("Lee, Bob", "bob@example.com"),
                ("", "eve@example.com"),
            ],
        );
        // A single line that is longer than a line of a message may be.
        check(&args(&["ann@example.com"], &[], &[], "Long", &"x".repeat(5000)), &plain);
        check(&args(&["ann@example.com"], &[], &[], "Dots", ".\n..\n.hidden\n"), &plain);
        let many: Vec<String> = (0..50).map(|n| format!("user{n}@example.com")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let want: Vec<(&str, &str)> = many.iter().map(|address| ("", *address)).collect();
        check(&args(&many, &[], &[], "Many", "hi\n"), &want);
    }

    #[test]
    fn a_header_cannot_be_injected_and_a_wrong_address_is_named() {
        for (to, subject, want) in [
            ("ann@example.com\r\nBcc: eve@example.com", "s", "contains a control character"),
            ("Ann\nBcc: eve@example.com <ann@example.com>", "s", "contains a control character"),
            ("ann@example.com", "Hi\r\nBcc: eve@example.com", "the subject contains"),
            ("ann@example.com", "Hi\u{85}x", "the subject contains"),
            ("ann", "s", "recipients.to has \"ann\""),
            ("", "s", "is not an address"),
            ("a@b@c.example", "s", "is not an address"),
            ("ann@localhost", "s", "is not an address"),
            ("ann@example.com, eve@example.com", "s", "is not an address"),
            ("ann@exämple.com", "s", "write the domain as xn--"),
        ] {
            let error = build_message(&args(&[to], &[], &[], subject, "")).unwrap_err();
            assert_eq!(error.kind(), "invalid-arguments");
            assert!(error.message().contains(want), "{to:?} {subject:?}: {error}");
        }
        let nobody = build_message(&args(&[], &["ann@example.com"], &[], "s", "")).unwrap_err();
        assert_eq!(nobody.message(), "recipients.to has no address");
        let hidden = build_message(&args(&["a@example.com"], &["x"], &[], "s", "")).unwrap_err();
        assert!(hidden.message().contains("recipients.cc"), "{hidden}");
    }
}
