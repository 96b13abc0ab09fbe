//! Pieces: the output is the same wherever a stream is cut, and no more is held back than
//! necessary.

use super::{redactor, scanned, streamed};
use crate::redact::{
    REDACTED_BYTES_MIN, Redactor, escape::ESCAPE_BYTES_MAX, table::HEAD_BYTES_MAX,
};

const TOKEN: &str = "s3cr3t-Tok3n_9";

/// Whole, byte by byte, and cut at every position into two and into three.
#[track_caller]
fn check(redactor: &Redactor, data: &[u8], want: &[u8]) {
    let found = redactor.find_secret(data).is_some();
    assert_eq!(*redactor.redact_bytes(data), *want);
    let check = |pieces: &[&[u8]]| {
        let out = streamed(redactor, pieces.iter().copied());
        assert_eq!(out, want, "{:?}", String::from_utf8_lossy(&out));
        let (left, is_all) = scanned(redactor, pieces.iter().copied());
        assert_eq!(is_all, !found);
        // Bytes that left before a secret preceded it, and so they precede its replacement.
        let before = want.iter().zip(&left).take_while(|(want, left)| want == left).count();
        assert!(before == left.len(), "{:?}", String::from_utf8_lossy(&left));
    };
    check(&data.chunks(1).collect::<Vec<_>>());
    for cut in 0..=data.len() {
        let (begin, end) = data.split_at(cut);
        check(&[begin, end]);
        let (middle, end) = end.split_at(end.len() / 2);
        check(&[begin, middle, b"", end]);
    }
}

#[test]
fn any_cut_gives_the_same() {
    let secrets = [("a", TOKEN), ("b", "abcdef"), ("c", "abcdefghij"), ("d", "hijklmno")];
    let rows: [(&str, &str); 9] = [
        ("", ""),
        ("nothing to see", "nothing to see"),
        ("{\"token\":\"s3cr3t-Tok3n_9\"}", "{\"token\":\"[secret a]\"}"),
        ("s3cr3t-s3cr3t-Tok3n_9s3cr3t-", "s3cr3t-[secret a]s3cr3t-"),
        ("s3cr3t-Tok3n_9s3cr3t-Tok3n_9", "[secret a][secret a]"),
        ("xabcdefghi.abcdefghijklmno.abcde", "x[secret b]ghi.[secret c].abcde"),
        (r"\u0073\u0033\u0063\u0072\u0033\u0074-", r"\u0073\u0033\u0063\u0072\u0033\u0074-"),
        ("c2czNjcjN0LVRvazNuXzk=", "c2[secret a]"),
        ("%73%33%63%72%33%74%2D%54%6F%6B%33%6E%5F%39%", "[secret a]%"),
    ];
    for (text, want) in rows {
        check(&redactor(&secrets), text.as_bytes(), want.as_bytes());
    }
}

/// A short secret within an encoding of a long one: first the short one is found, then the long one
/// continues, or breaks off.
#[test]
fn a_secret_within_another() {
    let redactor =
        redactor(&[("outer", "11-222222-333333-44"), ("inner", "222222"), ("i", "333333")]);
    let rows = [
        ("11-222222-333333-44", "[secret outer]"),
        ("11-222222-333333-4", "11-[secret inner]-[secret i]-4"),
        ("11-222222-333333-11-222222-333333-44", "11-[secret inner]-[secret i]-[secret outer]"),
        ("11-222222-", "11-[secret inner]-"),
    ];
    for (text, want) in rows {
        check(&redactor, text.as_bytes(), want.as_bytes());
    }
}

#[test]
fn unicode_is_cut_within_its_characters() {
    let redactor = redactor(&[("a", "münze-ß-漢字-😀")]);
    let text = "é münze-ß-漢字-😀 é münze-ß-漢字-😁";
    check(&redactor, text.as_bytes(), "é [secret a] é münze-ß-漢字-😁".as_bytes());
}

#[test]
fn a_long_secret_in_pieces() {
    let secret: String = (0..160).map(|i| format!("{i:x}é")).collect();
    let redactor = redactor(&[("a", &secret)]);
    check(&redactor, format!("<{secret}|{secret}>").as_bytes(), b"<[secret a]|[secret a]>");
}

#[test]
fn only_what_may_begin_a_secret_is_held_back() {
    let redactor = redactor(&[("a", TOKEN)]);
    let mut stream = redactor.redact_stream();
    let mut check = |piece: &str, want: &str| {
        assert_eq!(String::from_utf8_lossy(&stream.push(piece.as_bytes())), want, "{piece}");
    };
    check("data: hello\n\n", "data: hello\n\n");
    check("data: s3cr3t-", "data: ");
    check("Tok", "");
    check("en\n\n", "s3cr3t-Token\n\n");
    check("data: s3cr3t-Tok3n_9", "data: [secret a]");
    check(&TOKEN[..13], "");
    check("\n\n", "s3cr3t-Tok3n_\n\n");
}

/// A whole head, each byte of it escaped as long as possible, once in each layer.
const HELD_BYTES_MAX: usize = HEAD_BYTES_MAX * ESCAPE_BYTES_MAX * 3;

/// The held bytes are bounded for every secret.
#[test]
fn what_is_held_back_is_bounded() {
    let secrets = ["a".repeat(REDACTED_BYTES_MIN), "a".repeat(60_000), "\"\\".repeat(5000)];
    for secret in secrets {
        let redactor = redactor(&[("a", &secret)]);
        let mut stream = redactor.redact_stream();
        let (mut pushed, mut passed) = (0, 0);
        for piece in format!("{}\"\\\"\\", "a\\".repeat(9000)).as_bytes().chunks(7) {
            pushed += piece.len();
            passed += stream.push(piece).len();
            assert!(pushed - passed < HELD_BYTES_MAX);
        }
    }
}

#[test]
fn without_secrets_everything_passes_as_it_is() {
    let none = Redactor::empty();
    let mut stream = none.redact_stream();
    let piece = b"s3cr3t-Tok3n_9".as_slice();
    assert!(
        matches!(stream.push(piece), std::borrow::Cow::Borrowed(same) if same.as_ptr() == piece.as_ptr())
    );
    assert!(stream.finish().is_empty());
    assert!(
        matches!(none.scan_stream().push(piece), Ok(std::borrow::Cow::Borrowed(same)) if same == piece)
    );
}

#[test]
fn a_scan_names_the_secret_and_lets_nothing_more_leave() {
    let redactor = redactor(&[("a", TOKEN), ("b", "abcdef")]);
    let mut scan = redactor.scan_stream();
    let mut push = |piece: &str| {
        scan.push(piece.as_bytes()).map(|part| String::from_utf8_lossy(&part).into_owned())
    };
    let left = ["x s3cr3t-", "Token abc", " s3cr3t", "-Tok3n_9", "", "abcdef"].map(&mut push);
    let (text, a) = (|text: &str| Ok(text.to_owned()), || Err("a".to_owned()));
    assert_eq!(left, [text("x "), text("s3cr3t-Token "), text("abc "), a(), a(), a()]);
    assert_eq!(scan.finish(), Err("a".to_owned()));
}

#[test]
fn a_secret_that_may_leave_hides_no_other() {
    let redactor = redactor(&[("a", TOKEN), ("b", "abcdef")]);
    let text = format!("{TOKEN}{TOKEN}abcdef");
    let rows: [(&[&str], Option<&str>); 4] =
        [(&[], Some("a")), (&["a"], Some("b")), (&["b"], Some("a")), (&["a", "b"], None)];
    for (spared, want) in rows {
        let spared: Vec<String> = spared.iter().map(|name| (*name).to_owned()).collect();
        assert_eq!(redactor.find_secret_except(text.as_bytes(), &spared), want);
        let mut scan = redactor.scan_stream_except(&spared);
        assert_eq!(scan.push(text.as_bytes()).err().as_deref(), want);
    }
}
