//! Tests of arriving text: when lines become final, and what is shown before.

use super::*;

/// Feeds a text one character at a time. Returns the settled lines and the tail after each.
fn views(text: &str, width: usize) -> Vec<(Vec<String>, Vec<String>)> {
    let mut stream = MarkdownStream::new();
    let mut settled = Vec::new();
    let mut views = Vec::new();
    for c in text.chars() {
        stream.push(&c.to_string());
        settled.extend(texts(&stream.take_final_lines(width)));
        views.push((settled.clone(), texts(&stream.tail_lines(width))));
    }
    views
}

/// No intermediate view contains a mark that later changes its form.
#[track_caller]
fn check_never_seen(text: &str, never: &[&str]) {
    for (settled, tail) in views(text, 60) {
        for line in settled.iter().chain(&tail) {
            assert!(never.iter().all(|mark| !line.contains(mark)), "{line:?} of {text:?}");
        }
    }
}

/// Compares the settled lines and the tail after a text.
#[track_caller]
fn check_parts(text: &str, settled: &[&str], tail: &[&str]) {
    let mut stream = MarkdownStream::new();
    stream.push(text);
    assert_eq!(texts(&stream.take_final_lines(40)), settled, "settled of {text:?}");
    assert_eq!(texts(&stream.tail_lines(40)), tail, "tail of {text:?}");
}

#[test]
fn what_is_closed_is_settled() {
    check_parts("one", &[], &["one"]);
    check_parts("one\n", &[], &["one"]);
    check_parts("one\n\n", &["one"], &[]);
    check_parts("one\n\ntwo", &["one"], &["", "two"]);
    check_parts("one\n- a\n", &["one"], &["• a"]);
    check_parts("- a\n- b\n", &["• a"], &["• b"]);
    check_parts("- a\n\n- b\n\n", &["• a"], &["", "• b"]);
    check_parts("- a\n\n  more", &[], &["• a", "", "  more"]);
    check_parts("- a\n\nb\n", &["• a"], &["", "b"]);
    check_parts("3. a\n3. b\n3. c", &["3. a"], &["4. b", "5. c"]);
    check_parts("```sh\nls\ncd", &["── sh", "  ls"], &["  cd"]);
    check_parts("```sh\nls\n```\n", &["── sh", "  ls"], &[]);
    check_parts("a\n```\n", &["a"], &[]);
    check_parts("> a\n\nb\n", &["│ a"], &["", "b"]);
}

#[test]
fn forms_do_not_flicker() {
    check_never_seen("a **bold** and *it* word", &["*"]);
    check_never_seen("use `code` and ``co`de``", &["``"]);
    check_never_seen("see [text](http://a.b/c) here", &["](", "]("]);
    check_never_seen("a\n\n```rust\nlet x = 1;\n```\nb\n", &["`"]);
    check_never_seen("~~~\nx\n~~~\n\nb ~~gone~~ c", &["~"]);
    check_never_seen("| a | b |\n|---|---|\n| 1 | 2 |\n\nafter", &["|", "--"]);
    check_never_seen("- a\n- b\n  - c\n* d\n", &["- ", "* "]);
    check_never_seen("para\n\n---\n\nmore\n", &["--"]);
    check_never_seen("1. a\n   ```\n   x **y\n   ```\n", &["`", "y**"]);
}

#[test]
fn what_looks_like_a_mark_and_is_none_is_shown_in_the_end() {
    check("2 * 3 * 4", 40, "2 * 3 * 4\n");
    check("ends in **", 40, "ends in **\n");
    check("| no table", 40, "| no table\n");
    check("- ", 40, "•\n");
    check("1984", 40, "1984\n");
    check("```", 40, "");
    check("~/x", 40, "~/x\n");
}

#[test]
fn a_paragraph_without_an_end_is_settled_in_parts() {
    let text = "word ".repeat(20_000);
    let mut stream = MarkdownStream::new();
    let mut settled = 0;
    for piece in text.as_bytes().chunks(1000) {
        stream.push(std::str::from_utf8(piece).unwrap());
        settled += stream.take_final_lines(50).len();
        assert!(stream.tail_lines(50).len() <= 400);
    }
    assert!(settled > 1500, "{settled}");
    assert_eq!(stream.finish(50).len() + settled, render_markdown(&text, 50).len());
}

#[test]
fn no_block_stays_open_for_ever() {
    for line in ["> quoted\n", "| a | b |\n", "- item\n  ", "<pre>\n\n"] {
        let mut stream = MarkdownStream::new();
        stream.push(&line.repeat(20_000));
        assert!(stream.open_bytes() <= 65 << 10, "{line:?}");
    }
}

#[test]
fn a_line_without_an_end_is_cut_between_characters() {
    for text in ["é".repeat(50_000), "```\n".to_owned() + &"é".repeat(200_000)] {
        let shown: String = texts(&render_markdown(&text, 80)).concat();
        assert_eq!(shown.matches('é').count(), text.matches('é').count());
    }
}

#[test]
fn a_line_of_any_length_is_cut_at_the_same_places() {
    for length in [4094, 4095, 4096, 4097, 4098, 9000] {
        for word in ["a", "wo rd ", "é", "漢"] {
            let line: String = word.chars().cycle().take(length / word.len()).collect();
            let text = format!("{line}\n{line}\r\n\n{line}");
            let mut stream = MarkdownStream::new();
            text.chars().for_each(|c| stream.push(c.encode_utf8(&mut [0; 4])));
            assert_eq!(stream.finish(80), render_markdown(&text, 80), "{length} {word:?}");
        }
    }
}

#[test]
fn a_long_list_and_a_long_listing_do_not_wait() {
    let mut stream = MarkdownStream::new();
    stream.push(&"- item\n".repeat(1000));
    assert_eq!(stream.take_final_lines(40).len(), 999);
    let mut stream = MarkdownStream::new();
    stream.push(&("```\n".to_owned() + &"code\n".repeat(1000)));
    assert_eq!(stream.take_final_lines(40).len(), 1000);
}

#[test]
fn line_ends_of_both_kinds_are_one() {
    check("a\r\n\r\n```\r\nb\r\n```\r\n- c\r\n- d", 40, "a\n\n  b\n\n• c\n• d\n");
    for (settled, tail) in views("a\r\n\r\n```\r\nb\r\n```\r\n", 40) {
        assert!(!(settled.concat() + &tail.concat()).contains("\\r"));
    }
}
