//! The Debian package: an `ar` archive with a version, a description and the files.

use anyhow::{Context, Result};

use super::tree::FileTree;

/// Begins every version of the C library's symbols in a program.
const GLIBC: &[u8] = b"GLIBC_";

/// A Debian package.
pub(super) struct DebianPackage {
    version: String,
    architecture: &'static str,
    files: FileTree,
    libc_version: String,
    time: u64,
}

impl DebianPackage {
    /// `program` is read for the version of the C library that it needs.
    pub(super) fn new(version: &str, program: &[u8], files: FileTree, time: u64) -> Result<Self> {
        let architecture = match std::env::consts::ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            other => other,
        };
        let libc_version = needed_libc_version(program).context("the program needs no libc")?;
        Ok(Self { version: version.to_owned(), architecture, files, libc_version, time })
    }

    pub(super) fn file_name(&self) -> String {
        format!("sallyport_{}_{}.deb", self.version, self.architecture)
    }

    pub(super) fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut control = FileTree::default();
        control.add_file("control", self.control_text().into_bytes());
        let mut package = b"!<arch>\n".to_vec();
        self.append_member(&mut package, "debian-binary", b"2.0\n");
        self.append_member(&mut package, "control.tar.gz", &control.to_archive("", self.time)?);
        self.append_member(&mut package, "data.tar.gz", &self.files.to_archive("usr", self.time)?);
        Ok(package)
    }

    fn control_text(&self) -> String {
        format!(
            "Package: sallyport\n\
             Version: {}\n\
             Architecture: {}\n\
             Maintainer: The Sallyport developers <sallyport@localhost>\n\
             Installed-Size: {}\n\
             Depends: libc6 (>= {}), libgcc-s1\n\
             Section: utils\n\
             Priority: optional\n\
             Description: tools for language models in WebAssembly sandboxes\n\
             \u{20}Runs the tools of a language model as sandboxed WebAssembly components, each with\n\
             \u{20}only the network and files that a policy grants.\n",
            self.version,
            self.architecture,
            self.files.total_bytes().div_ceil(1024),
            self.libc_version,
        )
    }

    /// Appends a member with the fixed-width header of the `ar` format.
    fn append_member(&self, package: &mut Vec<u8>, name: &str, bytes: &[u8]) {
        let header = format!(
            "{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n",
            self.time,
            0,
            0,
            "100644",
            bytes.len()
        );
        package.extend(header.as_bytes());
        package.extend(bytes);
        if bytes.len() % 2 == 1 {
            package.push(b'\n');
        }
    }
}

/// Returns the newest version of the C library that a program names, such as `2.34`.
pub(super) fn needed_libc_version(program: &[u8]) -> Option<String> {
    let ends = program.windows(GLIBC.len()).enumerate().filter(|(_, window)| *window == GLIBC);
    let versions = ends.filter_map(|(at, _)| {
        let rest = &program[at + GLIBC.len()..];
        let length = rest.iter().position(|byte| !byte.is_ascii_digit() && *byte != b'.')?;
        let text = std::str::from_utf8(&rest[..length]).ok()?;
        let (major, minor) = text.split_once('.')?;
        let minor = minor.split('.').next()?;
        Some((major.parse::<u32>().ok()?, minor.parse::<u32>().ok()?))
    });
    versions.max().map(|(major, minor)| format!("{major}.{minor}"))
}
