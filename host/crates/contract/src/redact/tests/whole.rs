//! Texts, values and names: what is removed, what is named, what stays unchanged.

use serde_json::{Value, json};

use super::redactor;
use crate::{
    redact::{Redactor, table::HEAD_BYTES_MAX},
    secret::Secret,
};

#[test]
fn several_secrets_that_touch_overlap_or_contain_each_other() {
    let secrets = [
        ("short", "abcdef"),
        ("long", "abcdefghij"),
        ("next", "hijklmno"),
        ("inner", "cdefgh"),
        ("again", "abcdef"),
    ];
    let rows = [
        ("abcdef", "[secret short]"),
        ("abcdefg", "[secret short]g"),
        ("abcdefgh", "[secret short]"),
        ("abcdefghij", "[secret long]"),
        ("abcdefghijklmno", "[secret long]"),
        ("abcdefghijklmn", "[secret long]klmn"),
        ("abcdefabcdef", "[secret short][secret short]"),
        ("xcdefghx", "x[secret inner]x"),
        ("abcdehijklmno", "abcde[secret next]"),
        ("hijklmnoabcdef-abcdefghi", "[secret next][secret short]-[secret short]i"),
    ];
    for (text, want) in rows {
        assert_eq!(redactor(&secrets).redact_text(text), want, "{text}");
    }
}

#[test]
fn ordinary_text_is_left_alone() {
    let redactor = redactor(&[("a", "s3cr3t-Tok3n_9"), ("b", "münze-ß-漢字"), ("c", "00000000")]);
    let long = "s3cr3t-Tok3n_".repeat(1000);
    for text in [
        "",
        "s3cr3t-Tok3n_",
        "3cr3t-Tok3n_9",
        "s3cr3t-Tok3n 9",
        "s3cr3t-Tok3n%5",
        "münze-ß-漢",
        "0000000 0000000",
        "czNjcjN0LVRvazNuX",
        "[secret a]",
        "\0\u{ff}\u{10ffff}",
        &long,
    ] {
        assert!(matches!(redactor.redact_text(text), std::borrow::Cow::Borrowed(_)), "{text}");
        assert_eq!(redactor.find_secret(text.as_bytes()), None, "{text}");
    }
}

#[test]
fn bytes_that_are_no_text() {
    let redactor = redactor(&[("a", "s3cr3t-Tok3n_9")]);
    let data = [b"\xff\x00s3cr3t-Tok3n_9\xfe".as_slice(), b"\xc3"].concat();
    assert_eq!(*redactor.redact_bytes(&data), *b"\xff\x00[secret a]\xfe\xc3");
}

#[test]
fn values_lose_secrets_in_strings_keys_and_numbers() {
    let redactor = redactor(&[("a", "s3cr3t-Tok3n_9"), ("pin", "12345678")]);
    let mut value = json!({
        "s3cr3t-Tok3n_9": 1,
        "S3CR3T-TOK3N_9": 2,
        "list": ["x", {"deep": "is s3cr3t-Tok3n_9."}, null, true, 1234567, 12345678, -9123456780i64],
        "inner": r#"{"k":"\u00733cr3t-Tok3n_9","l":"czNjcjN0LVRvazNuXzk="}"#,
    });
    redactor.redact_value(&mut value);
    let want = json!({
        "[secret a]": 2,
        "[secret a]'": 1,
        "list": ["x", {"deep": "is [secret a]."}, null, true, 1234567, "[secret pin]", "-9[secret pin]0"],
        "inner": r#"{"k":"[secret a]","l":"[secret a]"}"#,
    });
    assert_eq!(value, want);
}

#[test]
fn short_secrets_are_named_and_not_looked_for() {
    let five = redactor(&[("a", "12345"), ("b", ""), ("c", "  1234  ")]);
    assert_eq!(five.too_short_names(), ["a", "b", "c"]);
    assert!(five.is_empty());
    assert_eq!(five.redact_text("12345"), "12345");
    let mixed = redactor(&[("a", "12345"), ("b", "123456")]);
    assert_eq!(mixed.too_short_names(), ["a"]);
    assert_eq!(mixed.redact_text("12345 123456"), "12345 [secret b]");
    assert!(Redactor::empty().is_empty() && Redactor::empty().too_short_names().is_empty());
}

#[test]
fn a_mark_gives_no_secret_away() {
    let redactor = redactor(&[("spotify", "spotify"), ("b", "secret"), ("c", "unrelated")]);
    assert_eq!(redactor.redact_text("spotify secret unrelated"), "[***] [***] [***]");
}

#[test]
fn nothing_that_is_printed_holds_a_secret() {
    let redactor = redactor(&[("a", "s3cr3t-Tok3n_9")]);
    let mut stream = redactor.redact_stream();
    stream.push(b"s3cr3t-Tok3n_");
    assert_eq!(format!("{redactor:?}"), r#"Redactor(["a"])"#);
    assert_eq!(
        format!("{stream:?} {:?}", redactor.scan_stream()),
        "RedactStream { .. } ScanStream { .. }"
    );
}

#[test]
fn a_long_secret_is_followed_to_its_end_and_as_far_as_it_goes() {
    let secret: String = (0..5000).map(|i| format!("{:x}-", i * 7919)).collect();
    let redactor = redactor(&[("key", &secret)]);
    let half = &secret[..secret.len() / 2];
    let json = Value::String(secret.clone()).to_string();
    let base64 = data_encoding::BASE64.encode(secret.as_bytes());
    for (text, want) in [
        (format!("<{secret}>"), "<[secret key]>"),
        (format!("<{secret}{secret}>"), "<[secret key][secret key]>"),
        (format!("<{half}>"), "<[secret key]>"),
        (format!("<{half}{secret}>"), "<[secret key][secret key]>"),
        (json, "\"[secret key]\""),
        (base64, "[secret key]"),
    ] {
        assert_eq!(redactor.redact_text(&text), want);
    }
    let beginning = &secret[..HEAD_BYTES_MAX - 1];
    assert_eq!(redactor.redact_text(beginning), beginning);
}

#[test]
fn a_long_secret_may_break_off_within_a_character() {
    let secret = format!("{}é and so on", "0123456789".repeat(60));
    let text = secret.replace('é', "è");
    let clean = redactor(&[("a", &secret)]).redact_text(&text).into_owned();
    assert_eq!(clean, "[secret a]\u{fffd} and so on");
}

/// A secret that repeats itself is found as often as it can be, in bounded memory.
#[test]
fn a_secret_of_one_letter_repeated() {
    let secret = "a".repeat(3000);
    let redactor = redactor(&[("a", &secret)]);
    assert_eq!(redactor.redact_text(&format!("x{}x", "a".repeat(20_000))), "x[secret a]x");
}

#[test]
fn of_one_value_under_two_names_the_first_is_shown() {
    let secret = Secret::new("s3cr3t-Tok3n_9");
    let redactor = Redactor::new([("z", &secret), ("a", &secret)]);
    assert_eq!(redactor.redact_text("s3cr3t-Tok3n_9"), "[secret z]");
}
