//! The manifest inside of a component, in a custom section.
//!
//! Only the heads of the sections are read, so that listing a folder of components stays quick.
//! Whatever is wrong with the file otherwise is reported when it is loaded.

use std::{
    io::{self, BufReader, Read},
    path::Path,
};

use sallyport_policy::MANIFEST_SECTION;
use sallyport_untrusted_file as untrusted_file;

/// How a component begins: the magic number, and the version that is no module's.
const COMPONENT_HEAD: [u8; 8] = *b"\0asm\x0d\0\x01\0";

/// Most sections that are passed over. A component of a real plugin has about a hundred.
const SECTIONS_MAX: usize = 10_000;

/// Size limit of an embedded manifest in bytes, as of one beside the component.
const MANIFEST_BYTES_MAX: u64 = 1024 * 1024;

/// Number of custom sections.
const CUSTOM_SECTION: u8 = 0;

/// Returns the text of the manifest in a component, if it has one.
///
/// # Errors
///
/// The file cannot be read, is cut off, or its manifest is too large or not text.
pub fn read_embedded_manifest(path: &Path) -> io::Result<Option<String>> {
    let mut file = BufReader::new(untrusted_file::open_regular(path)?);
    let mut head = [0; COMPONENT_HEAD.len()];
    if file.read_exact(&mut head).is_err() || head != COMPONENT_HEAD {
        return Ok(None);
    }
    for _ in 0..SECTIONS_MAX {
        let mut id = [0];
        if file.read(&mut id)? == 0 {
            return Ok(None);
        }
        let (length, _) = read_number(&mut file)?;
        let left = match id[0] {
            CUSTOM_SECTION => match read_section(&mut file, length)? {
                SectionContent::Manifest(text) => return Ok(Some(text)),
                SectionContent::Other { left } => left,
            },
            _ => length,
        };
        file.seek_relative(i64::try_from(left).map_err(io::Error::other)?)?;
    }
    Ok(None)
}

/// A custom section, as far as it is of interest.
enum SectionContent {
    Manifest(String),
    /// Another one, with the bytes of it that are left.
    Other {
        left: u64,
    },
}

fn read_section(file: &mut impl Read, length: u64) -> io::Result<SectionContent> {
    let cut = || io::Error::from(io::ErrorKind::InvalidData);
    let (name_length, head_length) = read_number(file)?;
    let left = length.checked_sub(head_length).ok_or_else(cut)?;
    if name_length != MANIFEST_SECTION.len() as u64 {
        return Ok(SectionContent::Other { left });
    }
    let left = left.checked_sub(name_length).ok_or_else(cut)?;
    let mut name = [0; MANIFEST_SECTION.len()];
    file.read_exact(&mut name)?;
    if name != MANIFEST_SECTION.as_bytes() {
        return Ok(SectionContent::Other { left });
    }
    if left > MANIFEST_BYTES_MAX {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let mut text = String::new();
    match file.take(left).read_to_string(&mut text)? as u64 {
        read if read == left => Ok(SectionContent::Manifest(text)),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// Reads a number in groups of seven bits (LEB128), of at most 32 bits. Returns it with the count of
/// bytes that it takes.
fn read_number(file: &mut impl Read) -> io::Result<(u64, u64)> {
    let mut number = 0;
    for group in 0..5 {
        let mut byte = [0];
        file.read_exact(&mut byte)?;
        number |= u64::from(byte[0] & 0x7f) << (7 * group);
        if byte[0] & 0x80 == 0 {
            return Ok((number, group + 1));
        }
    }
    Err(io::ErrorKind::InvalidData.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A section with this name, whose length is right unless `extra` bytes are promised.
    fn section(id: u8, name: &str, content: &[u8], extra: usize) -> Vec<u8> {
        let inner = [&[u8::try_from(name.len()).unwrap()], name.as_bytes(), content].concat();
        let length = inner.len() + extra;
        assert!(length < 0x4000, "two groups of seven bits are enough here");
        let length = [(length & 0x7f) as u8 | 0x80, (length >> 7) as u8];
        [&[id], &length[..], &inner].concat()
    }

    fn component(sections: &[Vec<u8>]) -> Vec<u8> {
        [COMPONENT_HEAD.to_vec(), sections.concat()].concat()
    }

    fn read(bytes: &[u8]) -> Result<Option<String>, io::ErrorKind> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        read_embedded_manifest(file.path()).map_err(|error| error.kind())
    }

    #[test]
    fn the_manifest_is_found_among_other_sections() {
        let text = "name = \"x\"";
        let manifest = || section(CUSTOM_SECTION, MANIFEST_SECTION, text.as_bytes(), 0);
        let found = || Ok(Some(text.to_owned()));
        assert_eq!(read(&component(&[manifest()])), found());
        let others = [section(1, "xyz", &[7; 300], 0), section(CUSTOM_SECTION, "name", b"", 0)];
        assert_eq!(read(&component(&[&others[..], &[manifest()]].concat())), found());
        let same_length = "x".repeat(MANIFEST_SECTION.len());
        let other = section(CUSTOM_SECTION, &same_length, b"rest", 0);
        assert_eq!(read(&component(&[other, manifest()])), found());
    }

    #[test]
    fn what_has_no_manifest_has_none_and_what_is_broken_is_an_error() {
        for none in
            [&b""[..], b"\0asm", b"\0asm\x01\0\0\0", b"text, and more of it", &COMPONENT_HEAD]
        {
            assert_eq!(read(none), Ok(None));
        }
        let manifest = |content: &[u8], extra| {
            component(&[section(CUSTOM_SECTION, MANIFEST_SECTION, content, extra)])
        };
        assert_eq!(read(&manifest(b"x", 9)), Err(io::ErrorKind::UnexpectedEof));
        assert_eq!(read(&manifest(b"\xff", 0)), Err(io::ErrorKind::InvalidData));
        let endless = [&COMPONENT_HEAD[..], &[1, 0xff, 0xff, 0xff, 0xff, 0xff]].concat();
        assert_eq!(read(&endless), Err(io::ErrorKind::InvalidData));
        let nameless = [&COMPONENT_HEAD[..], &[0, 0]].concat();
        assert_eq!(read(&nameless), Err(io::ErrorKind::UnexpectedEof));
        assert!(read_embedded_manifest(Path::new("/nowhere")).is_err());
    }
}
