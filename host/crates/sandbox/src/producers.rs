//! The languages that a component was written in, as compilers note in the custom section
//! `producers`.

use sallyport_contract::text::escape_excerpt;
use wasmparser::{KnownCustom, Parser, Payload, ProducersSectionReader};

/// The field of the section that names languages.
const LANGUAGE_FIELD: &str = "language";

/// Most languages that are named, and most characters of each. Anybody can write the section.
const LANGUAGES_MAX: usize = 4;
const LANGUAGE_CHARS_MAX: usize = 40;

/// The languages of a component. What its own section names counts; without one, what the sections
/// of the modules inside of it name. Empty if nothing is noted or the bytes are not well formed.
pub fn component_languages(bytes: &[u8]) -> Vec<String> {
    let (mut own, mut inner, mut depth) = (Vec::new(), Vec::new(), 0_usize);
    for payload in Parser::new(0).parse_all(bytes) {
        match payload {
            Ok(Payload::ModuleSection { .. } | Payload::ComponentSection { .. }) => depth += 1,
            Ok(Payload::End(_)) => depth = depth.saturating_sub(1),
            Ok(Payload::CustomSection(section)) => {
                if let KnownCustom::Producers(producers) = section.as_known() {
                    add_languages(producers, if depth == 0 { &mut own } else { &mut inner });
                }
            }
            Ok(_) => {}
            Err(_) => break,
        }
    }
    if own.is_empty() { inner } else { own }
}

fn add_languages(producers: ProducersSectionReader<'_>, found: &mut Vec<String>) {
    for field in producers.into_iter().flatten().filter(|field| field.name == LANGUAGE_FIELD) {
        for value in field.values.into_iter().flatten() {
            let name = escape_excerpt(value.name, LANGUAGE_CHARS_MAX);
            if found.len() < LANGUAGES_MAX && !found.contains(&name) {
                found.push(name);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, want: &[&str]) {
        let bytes = wat::parse_str(text).unwrap();
        assert_eq!(component_languages(&bytes), want, "{text}");
    }

    #[test]
    fn the_outermost_section_counts() {
        check("(component)", &[]);
        let inner = r#"(core module (@producers (language "C11" "")))"#;
        check(&format!("(component {inner})"), &["C11"]);
        check(&format!("(component {inner} {inner})"), &["C11"]);
        let other = r#"(core module (@producers (processed-by "x" "1") (language "Rust" "1.95")))"#;
        check(&format!("(component {inner} {other})"), &["C11", "Rust"]);
        check(&format!(r#"(component {inner} (@producers (language "Go" "")))"#), &["Go"]);
        assert_eq!(component_languages(b"\0asm\x0d\0\x01\0\x00\x7f"), Vec::<String>::new());
        assert_eq!(component_languages(b"text"), Vec::<String>::new());
    }
}
