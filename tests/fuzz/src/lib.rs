//! What the fuzz targets share: inputs that a person can read and write, situations to decide
//! about, and a second opinion on network patterns.
//!
//! An input is text in parts, with a line `----` between two of them, so that a seed reads like the
//! files it stands for and the fuzzer can move whole parts about. Each target says which parts it
//! takes; those that are missing are empty.

pub mod naive;
pub mod situation;

/// What stands between two parts of an input.
const BETWEEN_PARTS: &str = "\n----\n";

/// Cuts an input into its parts.
pub fn parts<const COUNT: usize>(input: &str) -> [&str; COUNT] {
    let mut parts = input.splitn(COUNT, BETWEEN_PARTS);
    std::array::from_fn(|_| parts.next().unwrap_or_default())
}

/// Returns a text as TOML; JSON escapes all that TOML's basic strings do, and as they do.
pub fn toml_string(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}
