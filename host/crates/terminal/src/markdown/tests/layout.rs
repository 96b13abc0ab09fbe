//! Tests of the layout, one row per Markdown construct.

use anstyle::Style;

use super::*;
use crate::{
    markdown::theme,
    style::{ColourMode, StyledSpan},
};

#[test]
fn paragraphs_are_filled() {
    check("", 20, "");
    check(" \n\n \n", 20, "");
    check("one\ntwo three", 20, "one two three\n");
    check("one two three four", 9, "one two\nthree\nfour\n");
    check("one\n\n\n\ntwo", 20, "one\n\ntwo\n");
    check("hard  \nbreak and\\\nanother", 20, "hard\nbreak and\nanother\n");
    check("an abcdefghijklmnop", 8, "an\nabcdefgh\nijklmnop\n");
    check("https://example.com/a/long/path", 12, "https://exam\nple.com/a/lo\nng/path\n");
    check("nowhere narrower", 1, "nowhere\nnarrower\n");
    check("tab\tand\u{a0}space", 40, "tab and\u{a0}space\n");
    check("&lt;b&gt; &amp; \\* 1 &copy;", 40, "<b> & * 1 ©\n");
}

#[test]
fn wide_characters_break_anywhere_but_before_what_closes() {
    check("漢字漢字漢字", 8, "漢字漢字\n漢字\n");
    check("a漢字漢字b", 8, "a漢字漢\n字b\n");
    check("漢字漢字，漢字", 8, "漢字漢\n字，漢字\n");
    check("word 漢字", 8, "word 漢\n字\n");
    check("👍🏽👍🏽👍🏽", 8, "👍🏽👍🏽\n👍🏽\n");
    check(
        "e\u{301}e\u{301}e\u{301}e\u{301}e\u{301} e\u{301}",
        8,
        "e\u{301}e\u{301}e\u{301}e\u{301}e\u{301} e\u{301}\n",
    );
}

#[test]
fn headings_and_rules_are_told_by_their_text_too() {
    check("# One\ntext\n## Two ##\n\n### Three", 20, "# One\ntext\n\n## Two\n\n### Three\n");
    check("One\n===\nTwo\n---", 20, "# One\n\n## Two\n");
    check("Title\n-", 20, "## Title\n");
    check("#", 20, "#\n");
    check("a\n\n---\nb", 8, "a\n\n────────\n\nb\n");
    check("***", 100, &("─".repeat(40) + "\n"));
}

#[test]
fn lists_hang() {
    check("- one\n- two", 20, "• one\n• two\n");
    check("- one two three\n+ four", 9, "• one two\n  three\n• four\n");
    check("- one\n\n- two", 20, "• one\n\n• two\n");
    check(
        "9. nine\n1. ten ten ten\n\n   more",
        9,
        "9. nine\n10. ten\n    ten\n    ten\n\n    more\n",
    );
    check("1) one\n2) two\n   - a\n     - b\n3) c", 20, "1. one\n2. two\n   • a\n     • b\n3. c\n");
    check("- [x] done\n- [ ] open", 20, "• [x] done\n• [ ] open\n");
    check("text\n- item\nlazy\n\nafter", 20, "text\n• item lazy\n\nafter\n");
    check("-\n- a", 20, "•\n• a\n");
    check("- a\n\n  ```sh\n  ls\n  ```\n- b", 20, "• a\n\n  ── sh\n    ls\n• b\n");
    check("1. one\n```\ncode\n```\n2. two", 20, "1. one\n\n  code\n\n2. two\n");
    check("2026. A year", 20, "2026. A year\n");
}

#[test]
fn quotations_have_a_bar() {
    check("> one\ntwo\n> > three\n>\n> - four", 20, "│ one two\n│\n│ │ three\n│\n│ • four\n");
    check("> [!WARNING]\n> careful", 20, "│ Warning\n│ careful\n");
    check("> one two three four", 10, "│ one two\n│ three\n│ four\n");
}

#[test]
fn code_is_never_broken() {
    let long = "x".repeat(30);
    check(
        &format!("```rust\n{long}\n\n\ty\n```\nafter"),
        10,
        &format!("── rust\n  {long}\n\n      y\n\nafter\n"),
    );
    check("~~~\n```\n~~~~", 20, "  ```\n");
    check("```\nnever closed", 20, "  never closed\n");
    check("a\n```\nb\n```\nc", 20, "a\n\n  b\n\nc\n");
    check("  ```\n    two\n one\n  ```", 20, "    two\n  one\n");
    check("    indented\n\n      more", 20, "  indented\n\n    more\n");
    check("```a`b` not a fence", 30, "```ab not a fence\n");
    check("> ```\n> a\n> ```", 20, "│   a\n");
    check("\tab\tc", 20, "  ab  c\n");
}

#[test]
fn an_address_is_always_shown() {
    check("[text](http://a.b)", 40, "text (http://a.b)\n");
    check("[http://good](http://evil)", 40, "http://good (http://evil)\n");
    check("[http://a.b](http://a.b) <http://c.d>", 40, "http://a.b http://c.d\n");
    check("[a](/b \"title\") [c](<> \"only\")", 40, "a (/b \"title\") c (\"only\")\n");
    check("![alt](i.png) ![](j.png)", 40, "alt (i.png) (j.png)\n");
    check("[![alt](i.png)](http://a.b)", 40, "alt (i.png) (http://a.b)\n");
    check("<me@a.b>", 40, "me@a.b\n");
    check("[a][n] [n]\n\n[n]: http://a.b 'title'", 40, "[a][n] [n]\n\n[n]: http://a.b 'title'\n");
    check("> [n]: /a\n\n- [n]: /b", 40, "│ [n]: /a\n\n• [n]: /b\n");
    check("[^1]\n\n[^1]: note", 40, "[^1]\n\n[^1]: note\n");
}

#[test]
fn html_and_mathematics_are_text() {
    check("a <b>bold</b> <!-- hidden -->", 40, "a <b>bold</b> <!-- hidden -->\n");
    check("<div>\n*raw*\n</div>\n\n*text*", 40, "<div>\n*raw*\n</div>\n\ntext\n");
    check("<!-- a\n\n- b -->\n- c", 40, "<!-- a\n\n- b -->\n• c\n");
    check("a<br>b<br />c", 40, "a\nb\nc\n");
    check("$a*b$ and $$c*d$$ cost $5 or $6", 40, "$a*b$ and $$c*d$$ cost $5 or $6\n");
}

#[test]
fn tables_are_aligned() {
    let table = "| a | bb | ccc |\n|:--|:-:|--:|\n| long | x | 1 |\n| 漢字 | | 22 |\n";
    check(table, 40, "a    │ bb │ ccc\n─────┼────┼────\nlong │ x  │   1\n漢字 │    │  22\n");
    let table = "a | b\n--|--\none two three four | five six seven\n1|2|three\n";
    check(
        table,
        20,
        "a        │ b\n─────────┼─────────\none two  │ five six\nthree    │ seven\nfour     │\n1        │ 2 |\n         │ three\n",
    );
    check(
        "|a|b|c|\n|-|-|-|\n|one two|2|three four five|\n|x||z|",
        12,
        "a: one two\nb: 2\nc: three\nfour five\n\na: x\nb:\nc: z\n",
    );
    check("|a|\n|-|", 20, "a\n─\n");
    check("|abcd||\n|-|-|", 8, "abcd │\n─────┼──\n");
    check("|a|\n|-|\n|x<br>y|", 20, "a\n─\nx\ny\n");
}

#[test]
fn however_deep_it_nests_it_can_be_read() {
    let deep = "> ".repeat(500) + "word";
    let lines = render_markdown(&deep, 20);
    assert_eq!(texts(&lines), ["│ │ │ │ │ word"]);
    let deep: String = (0..100).map(|depth| " ".repeat(depth * 2) + "- x\n").collect();
    assert!(render_markdown(&deep, 20).iter().all(|line| line.width() <= 20));
}

#[test]
fn what_a_terminal_would_obey_is_shown() {
    check("\x1b[2Jhi &#27;[31m", 60, "\\u{1b}[2Jhi \\u{1b}[31m\n");
    check(
        "```\x1b]0;x\x07\n\x1b[1mcode\u{202e}\n```",
        60,
        "── \\u{1b}]0;x\\u{7}\n  \\u{1b}[1mcode\\u{202e}\n",
    );
    check("[a](http://\u{202e}b)", 60, "a (http://\\u{202e}b)\n");
    check("a\rb", 60, "a b\n");
    check("x\u{200d}y", 60, "x\\u{200d}y\n");
}

#[test]
fn joiners_and_marks_that_a_script_needs_stay_in_answers() {
    for word in ["می\u{200c}خواهم", "👩\u{200d}👧", "שלום\u{200f}!", "**क्\u{200d}ष**"]
    {
        check(word, 60, &format!("{}\n", word.trim_matches('*')));
    }
}

#[test]
fn a_line_break_of_another_kind_is_one() {
    check("    - \n\rword", 60, "  -\n\nword\n");
}

#[test]
fn styles_add_up() {
    let lines = render_markdown("# a *b*\n\n**c *d* `e`** ~~f~~ [g](h)", 40);
    let bold = Style::new().bold();
    assert_eq!(
        lines[0].spans,
        [StyledSpan::new("# a ", theme::HEADING), StyledSpan::new("b", theme::HEADING.italic())]
    );
    assert_eq!(
        lines[2].spans,
        [
            StyledSpan::new("c ", bold),
            StyledSpan::new("d", bold.italic()),
            StyledSpan::new(" ", bold),
            StyledSpan::new("e", theme::CODE.bold()),
            StyledSpan::new(" ", Style::new()),
            StyledSpan::new("f", Style::new().strikethrough()),
            StyledSpan::new(" g (", Style::new()),
            StyledSpan::new("h", Style::new().underline()),
            StyledSpan::new(")", Style::new()),
        ]
    );
    assert_eq!(lines[2].to_terminal_text(ColourMode::Off), "c d e f g (h)");
    assert!(lines[2].to_terminal_text(ColourMode::On).starts_with("\x1b[1mc \x1b[0m"));
}
