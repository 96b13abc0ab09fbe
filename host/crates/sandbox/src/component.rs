//! A component on disk: bytes that are read, recognised and hashed once.
//!
//! The bytes that are compiled always have the digest, so swapping the file between hashing and
//! loading has no effect. If the digest was known before, the bytes are read and hashed only when
//! something needs them, see the module `digest_cache`.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use sallyport_untrusted_file as untrusted_file;

use crate::error::LoadError;

/// Largest component that is read, in bytes. A Python interpreter in a component takes 18 MB; three
/// times that leaves room for its packages and keeps a mistaken path from filling the memory.
pub const COMPONENT_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// The first bytes of every WebAssembly binary.
const WASM_MAGIC: &[u8] = b"\0asm";

/// The bytes after the magic in a component: version 13, layer 1.
const COMPONENT_VERSION: &[u8] = &[0x0d, 0x00, 0x01, 0x00];

/// A component with its digest.
#[derive(Debug, Clone)]
pub struct ComponentFile {
    path: PathBuf,
    /// `None` until they are needed, if the digest was known.
    bytes: Option<Arc<Vec<u8>>>,
    size_bytes: u64,
    digest: String,
}

impl ComponentFile {
    /// Reads a file of at most [`COMPONENT_BYTES_MAX`] bytes and makes sure that it is a component.
    ///
    /// # Errors
    ///
    /// The file cannot be read, is not a regular file, is too large, or is not a component. The
    /// error states what the file is instead.
    pub fn read(path: &Path) -> Result<Self, LoadError> {
        let failed = |source| LoadError::Unreadable { path: path.to_owned(), source };
        let bytes = untrusted_file::read_bytes(path, COMPONENT_BYTES_MAX).map_err(|error| {
            match error.kind() {
                io::ErrorKind::InvalidInput => not_a_component(path, "not a regular file"),
                io::ErrorKind::FileTooLarge => {
                    let limit = COMPONENT_BYTES_MAX / (1024 * 1024);
                    not_a_component(path, &format!("larger than {limit} MiB"))
                }
                _ => failed(error),
            }
        })?;
        Self::new(path, bytes)
    }

    /// Creates a component from bytes. `path` is used in messages and is not read.
    ///
    /// # Errors
    ///
    /// The bytes are not a component.
    pub fn new(path: &Path, bytes: Vec<u8>) -> Result<Self, LoadError> {
        match check_is_component(&bytes) {
            Ok(()) => {
                let digest = blake3::hash(&bytes).to_hex().to_string();
                let size_bytes = bytes.len() as u64;
                Ok(Self { path: path.to_owned(), bytes: Some(Arc::new(bytes)), size_bytes, digest })
            }
            Err(what) => Err(not_a_component(path, what)),
        }
    }

    /// A component whose digest is known from an earlier reading.
    pub(crate) fn with_known_digest(path: &Path, size_bytes: u64, digest: String) -> Self {
        Self { path: path.to_owned(), bytes: None, size_bytes, digest }
    }

    /// The same component, without its bytes.
    pub(crate) fn without_bytes(&self) -> Self {
        Self { bytes: None, ..self.clone() }
    }

    /// The path that the component was read from.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The bytes. They are read now if only the digest was needed so far.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or no longer has this digest.
    pub fn bytes(&self) -> Result<Arc<Vec<u8>>, LoadError> {
        if let Some(bytes) = &self.bytes {
            return Ok(Arc::clone(bytes));
        }
        let file = Self::read(&self.path)?;
        let unchanged = file.bytes.filter(|_| file.digest == self.digest);
        unchanged.ok_or_else(|| LoadError::Changed { path: self.path.clone() })
    }

    /// Whether the bytes are in memory.
    #[cfg(test)]
    pub(crate) fn is_read(&self) -> bool {
        self.bytes.is_some()
    }

    /// The number of bytes.
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// The BLAKE3 digest of the bytes, in hexadecimal.
    pub fn digest(&self) -> &str {
        &self.digest
    }
}

fn not_a_component(path: &Path, what: &str) -> LoadError {
    LoadError::NotAComponent { path: path.to_owned(), what: what.to_owned() }
}

/// Checks that the bytes are a component. The error states what they are instead.
fn check_is_component(bytes: &[u8]) -> Result<(), &'static str> {
    if let Some(rest) = bytes.strip_prefix(WASM_MAGIC) {
        return match rest.get(..4) {
            Some(version) if version == COMPONENT_VERSION => Ok(()),
            Some([1, 0, 0, 0]) => Err("a core WebAssembly module, not a component"),
            Some(_) => Err("WebAssembly of an unknown version, not a component"),
            None => Err("cut short in its first eight bytes"),
        };
    }
    Err(match bytes {
        [] => "an empty file",
        [0x7f, b'E', b'L', b'F', ..] => "a native (ELF) program, not a component",
        [b'P', b'K', 3 | 5, 4 | 6, ..] => "a zip archive, not a component",
        _ if looks_like_wat(bytes) => "WebAssembly text, and only the binary format is loaded",
        _ => "not a WebAssembly file",
    })
}

fn looks_like_wat(bytes: &[u8]) -> bool {
    let text = bytes.trim_ascii_start();
    text.starts_with(b"(component") || text.starts_with(b"(module") || text.starts_with(b";;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_a_file_is_when_it_is_no_component() {
        let rows: [(&[u8], &str); 8] = [
            (b"", "x.wasm is an empty file"),
            (b"\0asm\x01\0\0\0", "a core WebAssembly module"),
            (b"\0asm\x0d\0", "cut short"),
            (b"\0asm\x63\0\x01\0", "unknown version"),
            (b"\x7fELF\x02", "native (ELF)"),
            (b"PK\x03\x04", "zip"),
            (b"\n (component)", "WebAssembly text"),
            (b"#!/bin/sh", "x.wasm is not a WebAssembly file"),
        ];
        for (bytes, want) in rows {
            let error = ComponentFile::new(Path::new("x.wasm"), bytes.to_vec()).unwrap_err();
            assert!(error.to_string().contains(want), "{error}");
        }
    }

    #[test]
    fn a_device_or_a_folder_is_never_read() {
        for path in ["/dev/zero", "/tmp"] {
            let error = ComponentFile::read(Path::new(path)).unwrap_err();
            assert!(error.to_string().contains("not a regular file"), "{error}");
        }
    }
}
