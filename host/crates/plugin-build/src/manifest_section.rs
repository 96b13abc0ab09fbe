//! The custom sections that a build adds: the manifest, so that a component is a plugin without a
//! file beside it, and the language.

use sallyport_policy::MANIFEST_SECTION;

/// How every component begins: the magic number, and the version that is no module's.
const COMPONENT_HEAD: &[u8] = b"\0asm\x0d\0\x01\0";

/// Whether these are the bytes of a component, and not of a core module or of something else.
pub(crate) fn is_component(bytes: &[u8]) -> bool {
    bytes.starts_with(COMPONENT_HEAD)
}

/// Adds the manifest to a component. It must have none yet.
pub(crate) fn append_manifest(component: &mut Vec<u8>, manifest: &str) {
    append_section(component, MANIFEST_SECTION, manifest.as_bytes());
}

/// Notes the language of the sources, because linkers drop what compilers have noted. The section
/// lists one field, `language`, with one value and no version.
pub(crate) fn append_language(component: &mut Vec<u8>, language: &str) {
    let mut fields = vec![1];
    push_text(&mut fields, "language");
    fields.push(1);
    push_text(&mut fields, language);
    push_text(&mut fields, "");
    append_section(component, "producers", &fields);
}

fn append_section(component: &mut Vec<u8>, name: &str, bytes: &[u8]) {
    let mut content = Vec::new();
    push_text(&mut content, name);
    content.extend(bytes);
    component.push(0);
    push_length(component, content.len());
    component.extend(content);
}

fn push_text(bytes: &mut Vec<u8>, text: &str) {
    push_length(bytes, text.len());
    bytes.extend(text.as_bytes());
}

/// Writes a length as WebAssembly does, in groups of seven bits (LEB128).
fn push_length(bytes: &mut Vec<u8>, mut length: usize) {
    while length >= 0x80 {
        bytes.push((length & 0x7f) as u8 | 0x80);
        length >>= 7;
    }
    bytes.push(length as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_written_in_groups_of_seven_bits() {
        let check = |length: usize, bytes: &[u8]| {
            let mut written = Vec::new();
            push_length(&mut written, length);
            assert_eq!(written, bytes, "{length}");
        };
        check(0, &[0]);
        check(0x7f, &[0x7f]);
        check(0x80, &[0x80, 1]);
        let mut component = Vec::new();
        append_language(&mut component, "Go");
        assert_eq!(component, b"\0\x19\x09producers\x01\x08language\x01\x02Go\0");
        check(624_485, &[0xe5, 0x8e, 0x26]);
    }
}
