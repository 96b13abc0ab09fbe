//! Every encoding of a secret is recognised. The encoded texts here were written by other programs.

use super::redactor;

/// A token as most services issue them.
const TOKEN: &str = "s3cr3t-Tok3n_9";

/// A password with every kind of character that some encoder escapes.
const ODD: &str = "p@ss w0/rd+\"q\\'&<é>=😀\n~";

/// The whole form is removed, and nothing next to it.
#[track_caller]
fn check(secret: &str, form: &str) {
    let redactor = redactor(&[("a", secret)]);
    let text = format!("({form})");
    assert_eq!(redactor.redact_text(&text), "([secret a])", "{form}");
    assert_eq!(redactor.find_secret(text.as_bytes()), Some("a"), "{form}");
}

/// The form is removed except for the few letters at its ends that are not the secret's alone.
#[track_caller]
fn check_within(secret: &str, text: &str, left: (&str, &str)) {
    let want = format!("{}[secret a]{}", left.0, left.1);
    assert_eq!(redactor(&[("a", secret)]).redact_text(text), want, "{text}");
}

#[test]
fn a_token_in_every_spelling() {
    for form in [
        TOKEN,
        "s3cr3t-tok3n_9",
        "S3CR3T-TOK3N_9",
        "733363723374 2d546f6b336e5f39".replace(' ', "").as_str(),
        "733363723374 2D546F6B336E5F39".replace(' ', "").as_str(),
        "%73%33%63%72%33%74%2d%54%6f%6b%33%6e%5f%39",
        "%73%33%63%72%33%74%2D%54%6F%6B%33%6E%5F%39",
        r"\x73\x33\x63\x72\x33\x74\x2d\x54\x6f\x6b\x33\x6e\x5f\x39",
        r"\x73\x33\x63\x72\x33\x74\x2D\x54\x6F\x6B\x33\x6E\x5F\x39",
        r"\u0073\u0033\u0063\u0072\u0033\u0074\u002d\u0054\u006f\u006b\u0033\u006e\u005f\u0039",
        r"\u0073\u0033\u0063\u0072\u0033\u0074\u002D\u0054\u006F\u006B\u0033\u006E\u005F\u0039",
        r"\\u0073\\u0033\\u0063\\u0072\\u0033\\u0074\\u002d\\u0054\\u006f\\u006b\\u0033\\u006e\\u005f\\u0039",
        "&#115;&#51;&#99;&#114;&#51;&#116;&#45;&#84;&#111;&#107;&#51;&#110;&#95;&#57;",
        "&#x73;&#x33;&#x63;&#x72;&#x33;&#x74;&#x2d;&#x54;&#x6f;&#x6b;&#x33;&#x6e;&#x5f;&#x39;",
        "&#x73;&#x33;&#x63;&#x72;&#x33;&#x74;&#x2D;&#x54;&#x6F;&#x6B;&#x33;&#x6E;&#x5F;&#x39;",
        "czNjcjN0LVRvazNuXzk=",
        "czNjcjN0LVRvazNuXzk",
        "czNjcjN0LVRvazNuXzk%3D",
    ] {
        check(TOKEN, form);
    }
}

#[test]
fn escapes_of_urls() {
    for form in [
        "p%40ss%20w0/rd%2B%22q%5C%27%26%3C%C3%A9%3E%3D%F0%9F%98%80%0A~",
        "p%40ss%20w0%2Frd%2B%22q%5C%27%26%3C%C3%A9%3E%3D%F0%9F%98%80%0A~",
        "p%40ss%20w0%2frd%2b%22q%5c%27%26%3c%c3%a9%3e%3d%f0%9f%98%80%0a~",
        "p%40ss+w0%2Frd%2B%22q%5C%27%26%3C%C3%A9%3E%3D%F0%9F%98%80%0A~",
        "p%40ss+w0%2Frd%2B%22q%5C%27%26%3C%C3%A9%3E%3D%F0%9F%98%80%0A%7E",
        "p%40ss%20w0%2Frd%2B%22q%5C'%26%3C%C3%A9%3E%3D%F0%9F%98%80%0A~",
        "p@ss%20w0/rd+%22q%5C'&%3C%C3%A9%3E=%F0%9F%98%80%0A~",
        r"p@ss%20w0/rd+%22q\%27&%3C%C3%A9%3E=%F0%9F%98%80%0A~",
        r"p@ss%20w0/rd+%22q\'&%3C%C3%A9%3E=%F0%9F%98%80%0A~",
        "p%40ss%20w0%2Frd+%22q%5C'&%3C%C3%A9%3E%3D%F0%9F%98%80%0A~",
        "p%2540ss%2520w0%252Frd%252B%2522q%255C%2527%2526%253C%25C3%25A9%253E%253D%25F0%259F%2598%2580%250A~",
    ] {
        check(ODD, form);
    }
}

#[test]
fn escapes_of_json() {
    for form in [
        r#"p@ss w0/rd+\"q\\'&<é>=😀\n~"#,
        r#"p@ss w0\/rd+\"q\\'&<é>=😀\n~"#,
        r#"p@ss w0/rd+\"q\\'&<\u00e9>=\ud83d\ude00\n~"#,
        r#"p@ss w0/rd+\"q\\'&<\u00E9>=\uD83D\uDE00\n~"#,
        r#"p@ss w0\/rd+\"q\\'&<\u00e9>=\ud83d\ude00\n~"#,
        r#"p@ss w0/rd+\"q\\'\u0026\u003cé\u003e=😀\n~"#,
        r#"p@ss w0/rd+\"q\\\u0027\u0026\u003cé\u003e\u003d😀\n~"#,
        r#"p@ss w0/rd\u002B\u0022q\\\u0027\u0026\u003C\u00E9\u003E=\uD83D\uDE00\n~"#,
        r#"p@ss w0/rd+\\\"q\\\\'&<é>=😀\\n~"#,
        r#"p@ss w0/rd+\\\"q\\\\'&<\\u00e9>=\\ud83d\\ude00\\n~"#,
        r#"p@ss w0\\\/rd+\\\"q\\\\'&<é>=😀\\n~"#,
        r#"p%40ss%20w0%2Frd%2B%5C%22q%5C%5C%27%26%3C%C3%A9%3E%3D%F0%9F%98%80%5Cn~"#,
    ] {
        check(ODD, form);
    }
}

#[test]
fn escapes_of_markup_and_of_languages() {
    for form in [
        "p@ss w0/rd+&quot;q\\&#x27;&amp;&lt;é&gt;=😀\n~",
        "p@ss w0/rd+&quot;q\\&#39;&amp;&lt;é&gt;=😀\n~",
        "p@ss w0/rd+&#34;q\\&#39;&amp;&lt;é&gt;=😀\n~",
        "p@ss w0/rd+&quot;q\\&#039;&amp;&lt;&#233;&gt;=&#128512;\n~",
        "p@ss w0/rd+\"q\\'&amp;&lt;é&gt;=😀\n~",
        r#"p@ss w0/rd+\"q\\\'&<\xc3\xa9>=\xf0\x9f\x98\x80\n~"#,
        r#"p@ss w0/rd+"q\\\'&<\xc3\xa9>=\xf0\x9f\x98\x80\n~"#,
        r#"p@ss w0/rd+\"q\\'&<\xc3\xa9>=\xf0\x9f\x98\x80\n~"#,
        r#"p@ss w0/rd+\"q\\\'&<\u{e9}>=\u{1f600}\n~"#,
        r#"p@ss w0/rd+"q\\\'&<é>=😀\n~"#,
        "704073732077302f72642b22715c27263cc3a93e3df09f98800a7e",
    ] {
        check(ODD, form);
    }
}

#[test]
fn base64_wherever_the_secret_begins() {
    let rows = [
        (ODD, "cEBzcyB3MC9yZCsicVwnJjzDqT498J+YgAp+", ("", "")),
        (ODD, "cEBzcyB3MC9yZCsicVwnJjzDqT498J-YgAp-", ("", "")),
        // `user:` before it, as in a basic authentication header; one letter is half a colon.
        (ODD, "dXNlcjpwQHNzIHcwL3JkKyJxXCcmPMOpPj3wn5iACn4=", ("dXNlcjp", "")),
        // `ab` before it and `xyz` after it.
        (ODD, "YWJwQHNzIHcwL3JkKyJxXCcmPMOpPj3wn5iACn54eXo=", ("YWJ", "54eXo=")),
        // `a` before it and `x` after it, in the URL alphabet.
        (ODD, "YXBAc3MgdzAvcmQrInFcJyY8w6k-PfCfmIAKfng=", ("YX", "ng=")),
        // Within JSON that escapes slashes, and within a form.
        ("a?b?c?d?e?", r"YT9iP2M\/ZD9lPw", ("", "")),
        ("a?b?c?d?e?", "YT9iP2M%2FZD9lPw%3D%3D", ("", "")),
    ];
    for (secret, text, left) in rows {
        check_within(secret, text, left);
    }
}

#[test]
fn blanks_around_a_secret_may_be_lost() {
    check(" padded-value\n", " padded-value\n");
    check_within(" padded-value\n", "x=padded-value;", ("x=", ";"));
}

/// No more of the secret is left than the letters that it shares with its neighbours.
#[test]
fn every_neighbourhood_in_base64() {
    let redactor = redactor(&[("a", TOKEN)]);
    for before in ["", "x", "xy", "xyz", "user:"] {
        for behind in ["", "x", "xy", "xyz", ":more"] {
            let data = format!("{before}{TOKEN}{behind}");
            for encoding in [&data_encoding::BASE64, &data_encoding::BASE64URL_NOPAD] {
                let text = encoding.encode(data.as_bytes());
                let clean = redactor.redact_text(&text).into_owned();
                let left = clean.replace("[secret a]", "");
                assert!(clean.contains("[secret a]"), "{data}: {clean}");
                assert!(left.len() <= (before.len() + behind.len()) * 2 + 4, "{data}: {clean}");
            }
        }
    }
}
