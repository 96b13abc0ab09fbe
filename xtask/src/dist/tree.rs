//! The files of a release, and how they are packed.

use std::{collections::BTreeMap, fs, io::Write, os::unix::fs::PermissionsExt, path::Path};

use anyhow::{Context, Result};
use flate2::{Compression, GzBuilder};
use tar::{EntryType, Header};

use super::sha256_hex;

/// List of all files with their checksums, in the form that `sha256sum` reads. The installer checks
/// it, and removes by it.
pub(super) const CHECKSUMS: &str = "share/sallyport/SHA256SUMS";

/// Files by their path below the root of the installation. They have sorted paths, so that equal
/// trees have equal archives.
#[derive(Debug, Clone, Default)]
pub(super) struct FileTree(BTreeMap<String, PackedFile>);

#[derive(Debug, Clone)]
struct PackedFile {
    bytes: Vec<u8>,
    is_program: bool,
}

impl FileTree {
    pub(super) fn add_program(&mut self, path: &str, bytes: Vec<u8>) {
        self.0.insert(path.to_owned(), PackedFile { bytes, is_program: true });
    }

    pub(super) fn add_file(&mut self, path: &str, bytes: Vec<u8>) {
        self.0.insert(path.to_owned(), PackedFile { bytes, is_program: false });
    }

    /// Adds all files of a folder and its subfolders. Programs stay executable.
    pub(super) fn add_folder(&mut self, path: &str, folder: &Path) -> Result<()> {
        let entries = fs::read_dir(folder).with_context(|| format!("cannot read {folder:?}"))?;
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name();
            let name = name.to_str().with_context(|| format!("{name:?} is not text"))?;
            let below = format!("{path}/{name}");
            if entry.file_type()?.is_dir() {
                self.add_folder(&below, &entry.path())?;
            } else {
                let is_program = entry.metadata()?.permissions().mode() & 0o100 != 0;
                let bytes = fs::read(entry.path())?;
                self.0.insert(below, PackedFile { bytes, is_program });
            }
        }
        Ok(())
    }

    /// The same files with the list of their checksums and the installer.
    pub(super) fn with_installer(&self, installer: &str) -> Self {
        let mut tree = self.clone();
        let lines =
            self.0.iter().map(|(path, file)| format!("{}  {path}\n", sha256_hex(&file.bytes)));
        tree.add_file(CHECKSUMS, lines.collect::<String>().into_bytes());
        tree.add_program("install.sh", installer.as_bytes().to_vec());
        tree
    }

    #[cfg(test)]
    pub(super) fn paths(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// The size of all files in bytes.
    pub(super) fn total_bytes(&self) -> u64 {
        self.0.values().map(|file| file.bytes.len() as u64).sum()
    }

    /// Packs the files into a compressed tar archive in which all paths begin with `root`, unless it
    /// is empty. Folders have entries of their own, because a Debian package needs them. `time` is in seconds.
    pub(super) fn to_archive(&self, root: &str, time: u64) -> Result<Vec<u8>> {
        let gzip = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
        let mut archive = tar::Builder::new(gzip);
        let mut folders = std::collections::BTreeSet::new();
        for (path, file) in &self.0 {
            let path = format!("{root}/{path}").trim_start_matches('/').to_owned();
            let above = path.match_indices('/').map(|(end, _)| &path[..=end]);
            for folder in above {
                if folders.insert(folder.to_owned()) {
                    let mut header = new_header(EntryType::Directory, 0o755, 0, time);
                    archive.append_data(&mut header, folder, &[][..])?;
                }
            }
            let mode = if file.is_program { 0o755 } else { 0o644 };
            let mut header = new_header(EntryType::Regular, mode, file.bytes.len(), time);
            archive.append_data(&mut header, &path, &file.bytes[..])?;
        }
        let mut gzip = archive.into_inner()?;
        gzip.flush()?;
        Ok(gzip.finish()?)
    }
}

fn new_header(entry_type: EntryType, mode: u32, bytes: usize, time: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(entry_type);
    header.set_mode(mode);
    header.set_size(bytes as u64);
    header.set_mtime(time);
    header.set_uid(0);
    header.set_gid(0);
    header
}
