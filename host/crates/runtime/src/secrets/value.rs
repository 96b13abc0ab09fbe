//! The rules for a valid value, regardless of its source.

use sallyport_contract::Secret;

use super::SecretProblem;

/// Longest value in bytes. Keys, tokens and certificates have a few kilobytes; a longer file is a
/// mistake.
pub const VALUE_BYTES_MAX: usize = 64 * 1024;

/// Parses bytes as a value: UTF-8 text, without the trailing line break that editors and shells
/// add.
///
/// # Errors
///
/// The value is empty, too long, or not UTF-8.
pub fn parse_secret_value(bytes: &[u8]) -> Result<Secret, SecretProblem> {
    if bytes.len() > VALUE_BYTES_MAX {
        return Err(SecretProblem::TooLong { bytes_max: VALUE_BYTES_MAX });
    }
    let text = str::from_utf8(bytes).map_err(|_| SecretProblem::NotText)?;
    let line = text.strip_suffix('\n').unwrap_or(text);
    let value = line.strip_suffix('\r').unwrap_or(line);
    if value.is_empty() { Err(SecretProblem::Empty) } else { Ok(Secret::new(value)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_break_at_the_end_is_no_part_of_a_value() {
        for (bytes, want) in [
            ("v", "v"),
            ("v\n", "v"),
            ("v\r\n", "v"),
            ("v\n\n", "v\n"),
            (" v \n", " v "),
            ("a\nb\n", "a\nb"),
            ("ß漢\n", "ß漢"),
        ] {
            assert_eq!(
                parse_secret_value(bytes.as_bytes()).unwrap(),
                Secret::new(want),
                "{bytes:?}"
            );
        }
        assert_eq!(
            parse_secret_value(&[b'v'; VALUE_BYTES_MAX]).unwrap().expose().len(),
            VALUE_BYTES_MAX
        );
    }

    #[test]
    fn what_is_no_value_is_named_without_showing_it() {
        for (bytes, want) in [
            (b"".to_vec(), "it is empty"),
            (b"\n".to_vec(), "it is empty"),
            (b"\r\n".to_vec(), "it is empty"),
            (b"hush\xff".to_vec(), "it is not UTF-8 text"),
            (vec![b'v'; VALUE_BYTES_MAX + 1], "it is longer than 65536 bytes"),
        ] {
            assert_eq!(parse_secret_value(&bytes).unwrap_err().to_string(), want);
        }
    }
}
