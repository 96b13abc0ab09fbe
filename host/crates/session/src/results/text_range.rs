//! Parts of a text, by lines and by bytes.
//!
//! Positions are byte offsets from 0 and lines from 1; a negative one counts from the end. A part
//! that a model receives is measured as JSON, because quotes, line breaks and control characters
//! take more bytes there.

/// Returns the number of lines; a line break at the end begins no further one.
pub(super) fn count_lines(text: &str) -> u64 {
    let breaks = count_breaks(text);
    breaks + u64::from(!text.is_empty() && !text.ends_with('\n'))
}

/// Returns the line of an offset, from 1.
pub(super) fn line_at(text: &str, offset: usize) -> u64 {
    count_breaks(&text[..offset]) + 1
}

fn count_breaks(text: &str) -> u64 {
    text.bytes().filter(|byte| *byte == b'\n').count() as u64
}

/// Returns the offset at which a line begins. A line after the last is the end of the text, a line
/// before the first its beginning.
pub(super) fn line_start(text: &str, line: i64) -> usize {
    let index = match u64::try_from(line) {
        Ok(line) => line.saturating_sub(1),
        Err(_) => count_lines(text).saturating_sub(line.unsigned_abs()),
    };
    end_of_lines(text, 0, index)
}

/// Returns the offset after `count` lines from an offset on.
pub(super) fn end_of_lines(text: &str, start: usize, count: u64) -> usize {
    let Some(nth) = count.checked_sub(1).and_then(|nth| usize::try_from(nth).ok()) else {
        return start;
    };
    let breaks = text.bytes().enumerate().skip(start).filter(|(_, byte)| *byte == b'\n');
    breaks.map(|(offset, _)| offset + 1).nth(nth).unwrap_or(text.len())
}

/// Returns the offset of a byte, moved back to the begin of its character.
pub(super) fn byte_offset(text: &str, byte: i64) -> usize {
    let distance = usize::try_from(byte.unsigned_abs()).unwrap_or(usize::MAX);
    let offset =
        if byte < 0 { text.len().saturating_sub(distance) } else { distance.min(text.len()) };
    text.floor_char_boundary(offset)
}

/// Returns the longest beginning that takes at most `bytes_max` bytes as the inside of a JSON
/// string.
pub(crate) fn json_prefix(text: &str, bytes_max: usize) -> &str {
    &text[..fitting_bytes(text.chars(), bytes_max)]
}

/// Returns the longest end that takes at most `bytes_max` bytes as the inside of a JSON string.
pub(super) fn json_suffix(text: &str, bytes_max: usize) -> &str {
    &text[text.len() - fitting_bytes(text.chars().rev(), bytes_max)..]
}

/// Returns how many bytes of the characters fit.
fn fitting_bytes(chars: impl Iterator<Item = char>, bytes_max: usize) -> usize {
    let (mut json_bytes, mut bytes) = (0, 0);
    for char in chars {
        json_bytes += json_bytes_of(char);
        if json_bytes > bytes_max {
            break;
        }
        bytes += char.len_utf8();
    }
    bytes
}

/// Returns how many bytes a character takes in a JSON string.
fn json_bytes_of(char: char) -> usize {
    match char {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..='\u{1f}' => 6,
        char => char.len_utf8(),
    }
}
