//! The custom section with the manifest, so that a component is a plugin without a file beside it.

use sallyport_policy::MANIFEST_SECTION;

/// How every component begins: the magic number, and the version that is no module's.
const COMPONENT_HEAD: &[u8] = b"\0asm\x0d\0\x01\0";

/// Whether these are the bytes of a component, and not of a core module or of something else.
pub(crate) fn is_component(bytes: &[u8]) -> bool {
    bytes.starts_with(COMPONENT_HEAD)
}

/// Adds the manifest to a component. It must have none yet.
pub(crate) fn append_manifest(component: &mut Vec<u8>, manifest: &str) {
    let mut content = Vec::new();
    push_length(&mut content, MANIFEST_SECTION.len());
    content.extend(MANIFEST_SECTION.as_bytes());
    content.extend(manifest.as_bytes());
    component.push(0);
    push_length(component, content.len());
    component.extend(content);
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
        check(624_485, &[0xe5, 0x8e, 0x26]);
    }
}
