//! Unusual encodings: mixtures, wrapped lines, other letter widths, the escapes of template
//! engines.

use super::{redactor, scanned};

/// With every sign that template engines escape, and few letters.
const KEY: &str = "sk/Ab+c=d`e'f\"g<h>&1";

/// A token as most services issue them.
const TOKEN: &str = "s3cr3t-Tok3n_9";

/// The form is removed except for the rest at its ends; nothing else of it leaves.
#[track_caller]
fn check(secret: &str, form: &[u8], left: (&[u8], &[u8])) {
    let redactor = redactor(&[("a", secret)]);
    let text = [b"(", form, b")"].concat();
    let want = [b"(", left.0, b"[secret a]", left.1, b")"].concat();
    let shown = String::from_utf8_lossy(form);
    assert_eq!(
        String::from_utf8_lossy(&redactor.redact_bytes(&text)),
        String::from_utf8_lossy(&want)
    );
    for size in [1, 3, text.len()] {
        let (gone, is_all) = scanned(&redactor, text.chunks(size));
        assert!(!is_all, "{shown}");
        assert!([b"(", left.0].concat().starts_with(&gone), "{shown}: {gone:?}");
    }
}

#[track_caller]
fn check_whole(secret: &str, forms: &[&str]) {
    for form in forms {
        check(secret, form.as_bytes(), (b"", b""));
    }
}

#[test]
fn markup_as_template_engines_write_it_is_recognised() {
    check_whole(
        KEY,
        &[
            // Signs by names and numbers of both kinds; slashes, equals signs and backticks too.
            "sk&#x2F;Ab+c&#x3D;d&#x60;e&#39;f&quot;g&lt;h&gt;&amp;1",
            "sk/Ab+c&#x3D;d&#x60;e&#x27;f&quot;g&lt;h&gt;&amp;1",
            "sk/Ab&#43;c=d`e&#39;f&#34;g&lt;h&gt;&amp;1",
            "sk/Ab+c=d`e&#39;f&#34;g&lt;h&gt;&amp;1",
            "sk/Ab+c=d`e&#039;f&quot;g&lt;h&gt;&amp;1",
            "sk&sol;Ab&plus;c&equals;d&grave;e&apos;f&quot;g&lt;h&gt;&amp;1",
            "sk&#0047;Ab&#00043;c&#x003d;d&#X60;e&#x00000027;f&quot;g&LT;h&GT;&AMP;1",
            // Browsers accept these without a semicolon.
            "sk/Ab&#43c=d`e'f&quotg&lth&gt&amp1",
        ],
    );
}

#[test]
fn any_mixture_of_escapes_is_recognised() {
    check_whole(
        KEY,
        &[
            "s%6b/Ab+c=d`e'f\"g<h>&1",
            "%73k%2fAb%2Bc%3d%64`e'f\"g<h>%261",
            r#"\u0073k/A\u0062+c\u003Dd`e\u0027f\"g\u003ch\u003e\u00261"#,
            r#"sk\/Ab+c=d`e'f\"g<h>&1"#,
            r#"%73k\u002fAb&#43;c=d`e'f%22g<h>&amp;1"#,
            r#"sk\\\/Ab+c=d`e'f\\\"g<h>&1"#,
            r#"sk\\u002fAb+c=d`e'f\\u0022g<h>&1"#,
            "sk%252FAb%252Bc%253Dd%2560e%2527f%2522g%253Ch%253E%25261",
            "sk%5Cu002fAb+c=d`e'f%5C%22g<h>&1",
            "sk&amp;#x2F;Ab+c=d`e'f&amp;quot;g&amp;lt;h&amp;gt;&amp;amp;1",
            r#"sk\u0026#x2F;Ab+c\u0026#x3D;d`e'f\u0026quot;g\u0026lt;h\u0026gt;\u0026amp;1"#,
        ],
    );
    check_whole(TOKEN, &["S3Cr3T-tOK3N_9", "%733CR3T-%54ok3n%5F9"]);
    check_whole("two words here", &["two+words+here", "two%20words+here", "two+words%2bhere"]);
}

#[test]
fn what_looks_like_an_escape_in_a_secret_hides_nothing() {
    check_whole(
        r#"a%41b"c\nd&lt;e"#,
        &[
            r#"a%41b"c\nd&lt;e"#,
            r#"a%41b\"c\\nd&lt;e"#,
            r#"a%2541b%22c%5Cnd%26lt%3Be"#,
            r#"a%41b&quot;c\nd&amp;lt;e"#,
            r#"a%41b\\\"c\\\\nd&lt;e"#,
        ],
    );
    // The text before it would combine with its first letters to an escape.
    check("41secret", b"%4%31secret", (b"%", b""));
    check("41secret", b"%41sec%72et", (b"%", b""));
}

#[test]
fn a_backslash_before_an_escaped_secret_hides_nothing() {
    // The backslash in front pairs with the first one of the secret, so the escape behind it would
    // be read as letters.
    for (secret, form) in [
        (r"\Aa!aA", r"\\\\x41a\x21a\x41"),
        (r"\Aa!aA", r"\\\\u0041a!\u0061A"),
        (r"\Aa!aA", r"\\\\u{41}a\x21aA"),
        (r"\😀a!aA", r"\\\\ud83d\ude00a!aA"),
        (r"\\Aa!aA", r"\\\\\\x41a!aA"),
        ("\\\n!secret", r"\\\\n\x21secret"),
        // The even number of backslashes is the secret's own.
        (r"\\x41a!aA", r"\\\\x41a!aA"),
        (r"\\x41a!aA", r"\\\\x41a\x21aA"),
    ] {
        check(secret, form.as_bytes(), (b"", b""));
    }
}

#[test]
fn base64_in_lines_of_any_width_is_recognised() {
    let secret = "a key that is longer than one line: >>>???~~~";
    let whole = data_encoding::BASE64.encode(secret.as_bytes());
    for end in ["\n", "\r\n", "\r\n ", "\\r\\n", "\\n", "%0A", "&#10;", "=\r\n"] {
        for width in [4, 5, 19, 57, 64, 76] {
            let lines = whole.as_bytes().chunks(width).map(String::from_utf8_lossy);
            let form = lines.collect::<Vec<_>>().join(end);
            check(secret, form.as_bytes(), (b"", b""));
        }
    }
    // If a line breaks within the first letters of a form, these are passed on when receiving,
    // because every line end would otherwise wait for the next letter.
    let redactor = redactor(&[("a", TOKEN)]);
    assert_eq!(redactor.redact_text("cz\nNjcjN0LVRvazNuXzk="), "cz\n[secret a]");
    assert_eq!(redactor.scan_stream().push(b"cz\n").as_deref(), Ok(b"".as_slice()));
}

#[test]
fn hexadecimal_digits_with_something_between_them_are_recognised() {
    let bytes = |between: &str| {
        let digits: Vec<String> = TOKEN.bytes().map(|byte| format!("{byte:02X}")).collect();
        digits.join(between)
    };
    for between in ["", ":", "-", " ", ", ", ".", "%3A"] {
        check_whole(TOKEN, &[&bytes(between), &bytes(between).to_ascii_lowercase()]);
    }
    check_whole(TOKEN, &["7333637233742D546f6b336e5F39"]);
}

#[test]
fn letters_of_two_bytes_are_recognised() {
    for secret in [TOKEN, "münze-ß-漢字-😀-end", KEY] {
        let units: Vec<u16> = secret.encode_utf16().collect();
        let little: Vec<u8> = units.iter().flat_map(|unit| unit.to_le_bytes()).collect();
        let big: Vec<u8> = units.iter().flat_map(|unit| unit.to_be_bytes()).collect();
        check(secret, &little, (b"", b"\0"));
        check(secret, &big, (b"\0", b""));
    }
}

#[test]
fn mail_is_recognised() {
    check_whole(
        KEY,
        &[
            "sk/Ab+c=3Dd`e'f\"g<h>&1",
            "sk/Ab+c=3Dd=\r\n`e'f\"g<=\nh>&1",
            "=73=6B=2F=41=62=2B=63=3D=64=60=65=27=66=22=67=3C=68=3E=26=31",
            r#"sk/Ab+c=3Dd=\r\n`e'f\"g<h>&1"#,
        ],
    );
}

/// At the end of a stream, bytes that could still have become an escape are read verbatim.
#[test]
fn a_form_that_ends_the_stream_is_recognised() {
    let redactor = redactor(&[("a", "abcde/"), ("b", "12345&")]);
    assert_eq!(redactor.redact_text("x abcde&#47"), "x [secret a]");
    assert_eq!(redactor.redact_text("x 12345&amp"), "x [secret b]");
    assert_eq!(redactor.redact_text("x abcde%2"), "x abcde%2");
    assert!(!scanned(&redactor, [b"abcde&#".as_slice(), b"47"]).1);
}
