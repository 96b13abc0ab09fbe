//! Finds the files that a line mentions.
//!
//! `@notes.md`, `@"two words.md"`, `@two\ words.md`. A mention ends where the word ends. If no such
//! file exists, the punctuation at its end is left out (`@notes.md, please`). `\@name` is never a
//! mention, and the backslash is removed from the text.

use std::path::PathBuf;

use sallyport_contract::text;

use super::files::{FileSource, PathKind};

/// Most mentions looked up per line. A pasted program is full of `@`, and each lookup accesses the
/// disk.
const MENTIONS_MAX: usize = 256;

/// Longest path that is looked up, in bytes. The operating system accepts no longer one.
const PATH_BYTES_MAX: usize = 4096;

/// Most readings of the end of a mention. No sentence ends in more punctuation.
const CANDIDATES_MAX: usize = 8;

/// Most characters of a word in a message to the user.
const WORD_CHARS_MAX: usize = 60;

/// A line and the files that it mentions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileMentions {
    /// The text for the model: the line without the backslashes of `\@`.
    pub text: String,
    /// Paths of the files, in the order of their mentions.
    pub files: Vec<PathBuf>,
    /// Words that look like a mention but are not, each with the reason: `@alice: no such file`.
    /// Escaped.
    pub notes: Vec<String>,
}

/// Finds the files that a line mentions.
pub fn find_mentions(line: &str, files: &dyn FileSource) -> FileMentions {
    let mut found = FileMentions::default();
    let mut lookup_count = 0;
    let mut rest = line;
    while let Some(at) = rest.find('@') {
        let (before, from_mark) = rest.split_at(at);
        if let Some(unescaped) = before.strip_suffix('\\').filter(|b| is_word_start(b, &found.text))
        {
            found.text.push_str(unescaped);
            found.text.push('@');
            rest = &from_mark[1..];
            continue;
        }
        let begins = is_word_start(before, &found.text) && lookup_count < MENTIONS_MAX;
        found.text.push_str(before);
        let length = if begins { resolve_mention(&from_mark[1..], files, &mut found) } else { 0 };
        lookup_count += usize::from(begins);
        found.text.push_str(&from_mark[..=length]);
        rest = &from_mark[1 + length..];
    }
    found.text.push_str(rest);
    found
}

/// Whether a word begins after what was read so far: `user@host` mentions nothing.
fn is_word_start(before: &str, earlier: &str) -> bool {
    let last = before.chars().next_back().or_else(|| earlier.chars().next_back());
    last.is_none_or(|c| c.is_whitespace() || matches!(c, '(' | '[' | '{' | '<' | '"' | '\''))
}

/// Takes the file named after an `@` and returns the number of bytes that name it.
fn resolve_mention(after_mark: &str, files: &dyn FileSource, found: &mut FileMentions) -> usize {
    let Some(word) = MentionWord::parse_word(after_mark) else { return 0 };
    let mut nearest = PathKind::Missing;
    for (length, path) in word.candidate_paths() {
        match files.path_kind(&path) {
            PathKind::File => {
                found.files.push(path);
                return length;
            }
            PathKind::Missing => {}
            other => nearest = other,
        }
    }
    let why = match nearest {
        PathKind::Folder => "a folder, not a file",
        PathKind::Other => "not a regular file",
        PathKind::File | PathKind::Missing => "no such file",
    };
    let shown = text::escape_excerpt(&after_mark[..word.length], WORD_CHARS_MAX);
    found.notes.push(format!("@{shown}: {why}"));
    0
}

/// The word after an `@`.
struct MentionWord {
    /// Length in bytes of the line.
    length: usize,
    /// The name, without quotation marks and backslashes.
    name: String,
    /// Whether quotation marks delimit it, so that no punctuation can be left out.
    is_quoted: bool,
}

impl MentionWord {
    fn parse_word(after_mark: &str) -> Option<Self> {
        let word = match after_mark.chars().next()? {
            quote @ ('"' | '\'') => Self::parse_quoted(after_mark, quote)?,
            _ => Self::parse_bare(after_mark),
        };
        (!word.name.is_empty() && word.name.len() <= PATH_BYTES_MAX).then_some(word)
    }

    fn parse_quoted(after_mark: &str, quote: char) -> Option<Self> {
        let mut name = String::new();
        let mut letters = after_mark.char_indices().skip(1);
        while let Some((at, letter)) = letters.next() {
            match letter {
                '\n' => return None,
                '\\' => name.push(letters.next()?.1),
                _ if letter == quote => {
                    return Some(Self { length: at + 1, name, is_quoted: true });
                }
                _ => name.push(letter),
            }
        }
        None
    }

    fn parse_bare(after_mark: &str) -> Self {
        let mut name = String::new();
        let mut letters = after_mark.char_indices();
        let mut length = after_mark.len();
        while let Some((at, letter)) = letters.next() {
            match letter {
                '\\' => name.extend(letters.next().map(|(_, escaped)| escaped)),
                _ if letter.is_whitespace() => {
                    length = at;
                    break;
                }
                _ => name.push(letter),
            }
        }
        Self { length, name, is_quoted: false }
    }

    /// The path, followed by readings with ever less of the punctuation at its end. Each comes with
    /// its length in bytes.
    fn candidate_paths(&self) -> Vec<(usize, PathBuf)> {
        let mut candidates = vec![(self.length, PathBuf::from(&self.name))];
        let mut name = self.name.as_str();
        while !self.is_quoted && name.ends_with(is_punctuation) && candidates.len() < CANDIDATES_MAX
        {
            name = &name[..name.len() - 1];
            let left_out = self.name.len() - name.len();
            if !name.is_empty() {
                candidates.push((self.length - left_out, PathBuf::from(name)));
            }
        }
        candidates
    }
}

fn is_punctuation(c: char) -> bool {
    matches!(c, '.' | ',' | ';' | ':' | '!' | '?' | ')' | ']' | '}' | '>' | '"' | '\'')
}
