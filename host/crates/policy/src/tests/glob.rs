//! Globs over paths: the files that each element of a pattern denies, and the moves that would
//! reveal them.

use std::path::Path;

use super::{check_error, parse_policy};
use crate::GlobSet;

/// A pattern, paths that it denies, and paths that it does not.
const ROWS: &[(&str, &str, &str)] = &[
    // Names.
    (".env", ".env .env/x .env/x/y ./.env .env/ .env//x", "x/.env .envx .en env"),
    ("a/b", "a/b a/b/c a//b a/./b", "a b a/c x/a/b a/bb"),
    ("é", "é é/x", "e e\u{300}"),
    // Names that some file systems treat as equal.
    (".env", ".ENV .Env .en\u{200b}v .env. .env.. .ENV/x", ".env.x .enw"),
    (".ENV", ".env .ENV", ".en"),
    ("é", "e\u{301} É E\u{301}", "è"),
    ("e\u{301}", "é É", "e"),
    ("straße", "STRASSE strasse STRAßE", "strase"),
    ("[a-c].txt", "A.txt C.TXT", "d.txt D.TXT"),
    ("a?c", "A\u{e9}C aÉc", "ac"),
    ("x.", "x. X. x", "x.y"),
    ("*.", "a. b.", "a b"),
    ("*.KEY", "a.key a.Key x.key.", "a.keys"),
    ("σ", "Σ ς", "s"),
    ("K", "\u{212a} k", "l"),
    // Stars.
    (".env*", ".env .env.local .envrc/x", "x/.env xenv .en"),
    ("*.key", "a.key .key *.key a.b.key", "a.keys key a.key~ x/a.key"),
    ("*", "a a/b .x", ""),
    ("a*/b", "a/b ax/b axx/b/c", "a ax ax/c b/b"),
    ("a*b*c", "abc axbxc abcbc abbc", "ab acb abcd xabc"),
    ("*ab*ab", "abab xababab ababab", "ab aab abba"),
    // Single characters.
    ("a?c", "abc aéc a?c", "ac abbc"),
    ("a[bc]d", "abd acd", "ad aed a[bc]d abcd"),
    ("[a-c].txt", "a.txt b.txt c.txt", "d.txt -.txt"),
    ("[!a-c]", "d é - ! A", "a b c"),
    ("[-x]", "- x", "a"),
    ("[[]x", "[x", "x"),
    ("[*?]", "* ?", "a **"),
    // Any depth.
    ("**/.git/**", ".git .git/config x/.git x/y/.git/HEAD", "git .gitignore x/.gitx/y"),
    ("**/.git", ".git .git/config x/.git/HEAD", ".gitignore"),
    ("**/.env*", ".env x/.env.local x/.env.d/deep/file", "x/env x.env"),
    ("a/**/b", "a/b a/x/b a/x/y/b/z", "b a x/b x/a/b a/bb"),
    ("a/**", "a a/b a/b/c", "b ab b/a"),
    ("**/a/**/b/**", "a/b x/a/b a/x/b/y x/a/y/b", "b/a a ab/b"),
    ("a/*/**", "a/b a/b/c", "a b/c"),
    ("**", "a a/b", ""),
];

fn globs(pattern: &str) -> GlobSet {
    GlobSet::parse([pattern]).unwrap()
}

#[test]
fn each_element_of_a_pattern_denies_one_thing_and_not_its_neighbour() {
    for (pattern, denied, others) in ROWS {
        let globs = globs(pattern);
        for path in denied.split(' ') {
            assert_eq!(
                globs.find_denying_pattern(Path::new(path)),
                Some(*pattern),
                "{pattern} {path}"
            );
        }
        for path in others.split_whitespace() {
            assert_eq!(globs.find_denying_pattern(Path::new(path)), None, "{pattern} {path}");
        }
        let own = globs.find_denying_pattern(Path::new("")).is_some();
        assert_eq!(own, *pattern == "**", "the mount itself and {pattern}");
    }
}

#[test]
fn without_a_pattern_nothing_is_denied() {
    let none = GlobSet::empty();
    assert!(none.is_empty() && none.to_string() == "[]");
    for path in ["", "a", "../a", "/a"] {
        assert_eq!(none.find_denying_pattern(Path::new(path)), None);
    }
}

#[test]
fn what_cannot_be_compared_is_denied() {
    let deep = "x/".repeat(3000);
    for path in ["../a", "a/../b", "/a", "/", "..", &deep] {
        assert_eq!(globs("zzz").find_denying_pattern(Path::new(path)), Some("zzz"), "{path}");
    }
}

#[cfg(unix)]
#[test]
fn names_that_are_no_text_are_denied() {
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt};
    for name in [&b".env\xff"[..], b"\xff", b"a/\xc0\xae/b", b"ok/\xed\xa0\x80"] {
        let path = Path::new(OsStr::from_bytes(name));
        assert_eq!(globs("zzz").find_denying_pattern(path), Some("zzz"), "{name:?}");
    }
}

#[test]
fn hostile_names_and_patterns_take_no_noticeable_time() {
    let stars = format!("{}b", "*a".repeat(100));
    let deep = ["**/*a*a"; 9].join("/");
    let globs = GlobSet::parse([stars.as_str(), deep.as_str()]).unwrap();
    let name = "a".repeat(4000);
    for _ in 0..20 {
        assert_eq!(globs.find_denying_pattern(Path::new(&name)), None);
        assert!(globs.find_denying_pattern(Path::new(&"aa/".repeat(1300))).is_some());
    }
}

/// The folder to move, its new path, and the pattern that would deny less afterwards.
#[test]
fn a_move_may_not_lay_open_what_is_denied() {
    let rows = [
        ("**/.env", "a", "b", None),
        ("**/.env", "a", "b/c/d", None),
        ("a/.env", "a", "b", Some("a/.env")),
        ("a/.env", "b", "c", None),
        ("a/.env", "b", "a", None),
        ("a/**/x", "a/b", "a/c", None),
        ("a/**/x", "a/b", "c", Some("a/**/x")),
        ("**/a/x", "a", "b", Some("**/a/x")),
        ("**/a/x", "b/a", "c/a", None),
        ("**/a/x", "b", "c", None),
        ("*/x", "a", "b", None),
        ("*/x", "a", "b/c", Some("*/x")),
        ("a", "a/b", "c", Some("a")),
        ("a", "a/b", "a/c", None),
        ("a*/x", "a1", "a2", None),
        ("a*/x", "a1", "b1", Some("a*/x")),
        ("x", "a", "../b", None),
        ("**/x", "a", "../b", Some("**/x")),
        ("**/x", "../a", "b", Some("**/x")),
    ];
    for (pattern, from, to, lost) in rows {
        let globs = globs(pattern);
        let found = globs.pattern_lost_by_move(Path::new(from), &globs, Path::new(to));
        assert_eq!(found, lost, "{pattern}: {from} to {to}");
    }
    let (one, two) = (globs("**/x"), GlobSet::parse(["**/y", "**/x"]).unwrap());
    let path = Path::new("a");
    assert_eq!(one.pattern_lost_by_move(path, &two, path), None);
    assert_eq!(two.pattern_lost_by_move(path, &one, path), Some("**/y"));
    assert_eq!(one.pattern_lost_by_move(path, &GlobSet::empty(), path), Some("**/x"));
    assert_eq!(GlobSet::empty().pattern_lost_by_move(path, &one, path), None);
}

#[test]
fn mistakes_in_patterns() {
    let long = "x".repeat(257);
    let deep = ["x"; 33].join("/");
    let rows = [
        ("", "it is empty", "write a pattern such as **/.env"),
        (
            "/.env",
            "it begins with a slash",
            "leave the slash out: patterns are relative to the folder",
        ),
        (
            ".git/",
            "it ends with a slash",
            "leave the slash out: what is in a folder is denied with it",
        ),
        ("a//b", "it makes a detour", "write the path without empty segments and dots"),
        ("./a", "it makes a detour", "write the path without empty segments and dots"),
        ("a/../b", "it makes a detour", "write the path without empty segments and dots"),
        ("a**", "`**` has to be a whole segment", "write **/ before a name, or a single *"),
        ("a/***", "`**` has to be a whole segment", "write **/ before a name, or a single *"),
        ("*.{key,pem}", "braces are not part of a pattern", "write one pattern for each choice"),
        ("a]", "`]` closes no bracket", "write [abc]"),
        ("[abc", "`[` is not closed", "write [abc], or [[] for the bracket itself"),
        ("[a/b]", "`[` is not closed", "write [abc], or [[] for the bracket itself"),
        ("[]", "a range of characters is empty", "write ranges upwards, such as [a-z]"),
        ("[!]", "a range of characters is empty", "write ranges upwards, such as [a-z]"),
        ("[z-a]", "a range of characters is empty", "write ranges upwards, such as [a-z]"),
        ("a\\b", "a backslash has no meaning", "write [*] for a star, and / between folders"),
        ("a\u{7}", "it holds a control character", "write ? in the place of the character"),
        (&long, "it is too long", "write a shorter one"),
        (&deep, "it is too long", "write a shorter one"),
    ];
    for (pattern, reason, hint) in rows {
        let entry = format!("path = '/srv', access = 'read', deny = [{:?}]", pattern);
        let text = format!("[plugin.weather]\nfs = [{{ {entry} }}]").replace("\\u{7}", "\\u0007");
        let quoted = crate::source::quoted(pattern);
        let want = format!("policy.toml:2:49: the pattern {quoted} cannot match: {reason}");
        check_error(parse_policy(&text), &want, hint);
    }
    let many = vec!["'x'"; 65].join(", ");
    let text =
        format!("[plugin.weather]\nfs = [{{ path = '/s', access = 'read', deny = [{many}] }}]");
    let want = "policy.toml:2:46: a folder can deny 64 patterns at most";
    check_error(parse_policy(&text), want, "");
}

#[test]
fn the_text_of_patterns_reads_back() {
    let patterns = ["**/.git/**", "a\"b", "[!a-z]*", "é?"];
    let mut globs = GlobSet::parse(patterns).unwrap();
    globs.deny_project_files();
    assert_eq!(globs.to_string(), r#"["**/.git/**", "a\"b", "[!a-z]*", "é?"]"#);
    let text =
        format!("[plugin.weather]\nfs = [{{ path = '/s', access = 'read', deny = {globs} }}]");
    let any = "[[request.fs]]\naccess = 'read'\nwhy = 'w'";
    assert_eq!(super::grant(&text, any).fs()[0].deny, globs);
}
