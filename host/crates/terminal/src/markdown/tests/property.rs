//! Properties of every text.

use proptest::prelude::*;

use super::*;
use crate::{markdown::theme, wrap::split_into_rows};

/// Pieces of Markdown syntax, and look-alikes.
const PIECES: [&str; 64] = [
    "\n",
    "\n",
    "\n\n",
    " ",
    "  ",
    "    ",
    "\t",
    "- ",
    "* ",
    "1. ",
    "7) ",
    "> ",
    "# ",
    "###### ",
    "```",
    "```\n",
    "~~~rust\n",
    "`",
    "``",
    "*",
    "**",
    "_",
    "__",
    "~~",
    "[",
    "]",
    "](",
    ")",
    "![",
    "<http://a.b>",
    "[a]: /b\n",
    "| a | b |\n|---|:-:|\n",
    "|",
    "| x | y | z |\n",
    "---\n",
    "===\n",
    "- - -\n",
    "<b>",
    "</b>",
    "<br>",
    "<!--",
    "-->",
    "<pre>\n",
    "<div>\n",
    "\\",
    "$",
    "&amp;",
    "&#x1b;[2J",
    "\x1b]0;t\x07",
    "\x1b[31m",
    "\u{9b}31m",
    "\u{202e}",
    "\u{200b}",
    "\r\n",
    "\r",
    "漢字",
    "，",
    "👍🏽",
    "❤\u{fe0f}",
    "e\u{301}",
    "[x] ",
    "[^1]",
    "> [!NOTE]\n",
    "longwordlongword",
];

fn markdown() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => prop::sample::select(PIECES.as_slice()).prop_map(str::to_owned),
        2 => "[a-z]{1,9} ",
        1 => any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

/// Pieces with distinct words: `w0x`, `w1x` …
fn numbered() -> impl Strategy<Value = String> {
    let piece = prop_oneof![prop::sample::select(PIECES.as_slice()).prop_map(Some), Just(None),];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| {
        let word = |(index, piece): (usize, Option<&str>)| match piece {
            Some(piece) => piece.to_owned(),
            None => format!("w{index}x"),
        };
        pieces.into_iter().enumerate().map(word).collect()
    })
}

/// Whether a line is code, which may be wider than the layout.
fn is_code(line: &StyledLine) -> bool {
    match line.spans.as_slice() {
        [.., indent, code] => code.style == theme::CODE && indent.text.ends_with("  "),
        _ => false,
    }
}

fn words(text: &str) -> Vec<&str> {
    let starts = text.match_indices('w').map(|(start, _)| start);
    let word = |start: usize| {
        let digits = text[start + 1..].bytes().take_while(u8::is_ascii_digit).count();
        let end = start + 1 + digits;
        (digits > 0 && text[end..].starts_with('x')).then(|| &text[start..=end])
    };
    starts.filter_map(word).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn no_line_is_wider_than_it_may_be(text in markdown(), width in 1usize..200) {
        for line in render_markdown(&text, width) {
            let fits = line.width() <= width.max(WIDTH_COLUMNS_MIN);
            prop_assert!(fits || is_code(&line), "{line:?}");
        }
    }

    #[test]
    fn nothing_that_a_terminal_obeys_comes_out(text in markdown(), width in 1usize..200) {
        for line in render_markdown(&text, width) {
            let text = line.text();
            prop_assert_eq!(sallyport_contract::text::escape_line(&text), text);
        }
    }

    #[test]
    fn every_word_is_kept(text in numbered()) {
        let shown: String = texts(&render_markdown(&text, 200)).join("\n");
        for word in words(&text) {
            prop_assert!(shown.contains(word), "{word} of {text:?}\n{shown}");
        }
    }

    #[test]
    fn every_split_gives_the_same_lines(
        text in markdown(),
        width in 1usize..100,
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let mut places: Vec<_> = cuts.iter().map(|cut| text.floor_char_boundary(cut.index(text.len() + 1))).collect();
        places.extend([0, text.len()]);
        places.sort_unstable();
        let mut stream = MarkdownStream::new();
        let mut lines = Vec::new();
        for ends in places.windows(2) {
            stream.push(&text[ends[0]..ends[1]]);
            lines.extend(stream.take_final_lines(width));
            for line in stream.tail_lines(width) {
                prop_assert!(line.width() <= width.max(WIDTH_COLUMNS_MIN) || is_code(&line));
            }
        }
        lines.extend(stream.finish(width));
        prop_assert_eq!(lines, render_markdown(&text, width));
    }

    #[test]
    fn rows_hold_the_line_and_fit(text in ".{0,80}", width in 2usize..40) {
        let line = StyledLine::plain(sallyport_contract::text::escape_line(&text));
        let rows = split_into_rows(&line, width);
        prop_assert_eq!(texts(&rows).concat(), line.text());
        // A cluster of many wide characters is never broken.
        prop_assert!(rows.iter().all(|row| row.width() <= width || !row.text().is_ascii()));
    }
}
