//! Scripts without spaces between words.

/// Unicode blocks of these scripts, in order: Thai and Lao, Tibetan, Myanmar, Khmer, the Tai
/// scripts, Chinese and Japanese, and their compatibility blocks.
const UNSPACED: [(char, char); 12] = [
    ('\u{e00}', '\u{eff}'),
    ('\u{f00}', '\u{fff}'),
    ('\u{1000}', '\u{109f}'),
    ('\u{1780}', '\u{17ff}'),
    ('\u{1950}', '\u{19df}'),
    ('\u{1a20}', '\u{1aaf}'),
    ('\u{2e80}', '\u{2fdf}'),
    ('\u{3005}', '\u{3007}'),
    ('\u{3041}', '\u{30ff}'),
    ('\u{31f0}', '\u{4dbf}'),
    ('\u{4e00}', '\u{9fff}'),
    ('\u{f900}', '\u{faff}'),
];

/// The range of the supplementary planes for Chinese characters.
const IDEOGRAPHS: (char, char) = ('\u{20000}', '\u{3ffff}');

/// Returns whether a character belongs to a script without spaces. Such a character is a word of
/// its own.
pub fn is_unspaced(c: char) -> bool {
    let within = |&(first, last): &(char, char)| (first..=last).contains(&c);
    c >= UNSPACED[0].0 && UNSPACED.iter().chain([&IDEOGRAPHS]).any(within)
}
