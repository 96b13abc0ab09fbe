//! Compiled components and their metadata on disk, so that a second start compiles nothing.
//!
//! A compiled component is native code, so the folder is part of what must be trusted: it belongs to
//! this user, nobody else may write to it, and what is in it is checked against its hash before it
//! is mapped. Anything doubtful is compiled again and replaced; nothing doubtful is ever run.
//!
//! Layout: `KEY.cwasm` and `KEY.sum`, where the key covers the component's digest and the engine's
//! settings; `DIGEST.json` for the metadata. Files appear by renaming, so two processes that fill
//! the cache at once, one of them killed, leave whole files only.

use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions},
    hash::{Hash, Hasher},
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use wasmtime::component::Component;

use crate::{compile::Compiler, component::ComponentFile, error::LoadError};

/// Metadata of one plugin is some kilobytes; a file larger than this is not ours.
const METADATA_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// How often the cache could serve, and how often it could not, since the start of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheUse {
    /// Compiled components that were mapped from disk.
    pub hits: usize,
    /// Components that had to be compiled.
    pub compiled: usize,
}

/// The folder of compiled components. Without one, what was compiled is kept for this process.
pub(crate) struct Cache {
    pub(crate) compiler: Compiler,
    folder: Option<PathBuf>,
    kept: Mutex<BTreeMap<String, Component>>,
    hits: AtomicUsize,
    compiled: AtomicUsize,
}

impl Cache {
    /// Uses a folder if it is private, or can be made so.
    ///
    /// # Errors
    ///
    /// The folder cannot be used; the text says why. The caller may go on without one.
    pub(crate) fn open(folder: &Path, compiler: &Compiler) -> io::Result<Self> {
        make_private(folder)?;
        Ok(Self::at(Some(folder.to_owned()), compiler.clone()))
    }

    /// A cache that keeps nothing on disk.
    pub(crate) fn none(compiler: Compiler) -> Self {
        Self::at(None, compiler)
    }

    fn at(folder: Option<PathBuf>, compiler: Compiler) -> Self {
        Self {
            compiler,
            folder,
            kept: Mutex::new(BTreeMap::new()),
            hits: AtomicUsize::new(0),
            compiled: AtomicUsize::new(0),
        }
    }

    pub(crate) fn uses(&self) -> CacheUse {
        CacheUse {
            hits: self.hits.load(Ordering::Relaxed),
            compiled: self.compiled.load(Ordering::Relaxed),
        }
    }

    /// Returns the compiled component, from disk when that is possible.
    ///
    /// # Errors
    ///
    /// The component cannot be compiled.
    pub(crate) fn component(
        &self,
        engine: &wasmtime::Engine,
        file: &ComponentFile,
    ) -> Result<Component, LoadError> {
        let Some(folder) = &self.folder else { return self.kept_or_compiled(engine, file) };
        let key = key(engine, file);
        let path = folder.join(format!("{key}.cwasm"));
        if let Some(component) = map_checked(engine, &path) {
            self.hits.fetch_add(1, Ordering::Relaxed);
            return Ok(component);
        }
        let code = self.compile(file)?;
        let component = copy(engine, &code)?;
        // A full disk costs the next start its speed, not this one its work.
        let _ = store(&path, &code);
        // What is mapped needs no memory of its own.
        Ok(map_checked(engine, &path).unwrap_or(component))
    }

    fn kept_or_compiled(
        &self,
        engine: &wasmtime::Engine,
        file: &ComponentFile,
    ) -> Result<Component, LoadError> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(component) = kept.get(file.digest()) {
            return Ok(component.clone());
        }
        let component = copy(engine, &self.compile(file)?)?;
        kept.insert(file.digest().to_owned(), component.clone());
        Ok(component)
    }

    /// Returns the metadata that was kept for a digest, when it is whole.
    pub(crate) fn metadata(&self, digest: &str) -> Option<String> {
        let path = self.folder.as_ref()?.join(format!("{digest}.json"));
        let mut text = String::new();
        open_private(&path).ok()?.take(METADATA_BYTES_MAX).read_to_string(&mut text).ok()?;
        Some(text)
    }

    /// Keeps metadata for a digest.
    pub(crate) fn keep_metadata(&self, digest: &str, text: &str) {
        if let Some(folder) = &self.folder {
            let _ = write_whole(&folder.join(format!("{digest}.json")), text.as_bytes());
        }
    }

    fn compile(&self, file: &ComponentFile) -> Result<Vec<u8>, LoadError> {
        self.compiled.fetch_add(1, Ordering::Relaxed);
        self.compiler.compile(file)
    }
}

/// The same component compiled with other settings, or by another version, is another artefact.
fn key(engine: &wasmtime::Engine, file: &ComponentFile) -> String {
    struct Blake(blake3::Hasher);
    impl Hasher for Blake {
        fn finish(&self) -> u64 {
            0
        }
        fn write(&mut self, bytes: &[u8]) {
            self.0.update(bytes);
        }
    }
    let mut hasher = Blake(blake3::Hasher::new());
    engine.precompile_compatibility_hash().hash(&mut hasher);
    file.digest().hash(&mut hasher);
    hasher.0.finalize().to_hex().to_string()
}

/// Maps a compiled component if it is whole and ours; otherwise it does not count.
fn map_checked(engine: &wasmtime::Engine, path: &Path) -> Option<Component> {
    let mut file = open_private(path).ok()?;
    let mut hasher = blake3::Hasher::new();
    io::copy(&mut file, &mut hasher).ok()?;
    let mut sum = String::new();
    open_private(&path.with_extension("sum")).ok()?.take(64).read_to_string(&mut sum).ok()?;
    if hasher.finalize().to_hex().as_str() != sum {
        return None;
    }
    map(engine, path)
}

#[expect(unsafe_code, reason = "mapping native code; the caller has checked owner and hash")]
fn map(engine: &wasmtime::Engine, path: &Path) -> Option<Component> {
    // SAFETY: the file was written by `store` with what the compiler answered, stands in a folder
    // that only this user can write to, is a regular file of this user, and its hash was right a
    // moment ago. wasmtime itself checks version and settings.
    unsafe { Component::deserialize_file(engine, path) }.ok()
}

#[expect(unsafe_code, reason = "native code that the compiler has just made")]
fn copy(engine: &wasmtime::Engine, code: &[u8]) -> Result<Component, LoadError> {
    // SAFETY: the code came from a compiler that was started for it, and has been nowhere else.
    // wasmtime itself checks version and settings.
    let component = unsafe { Component::deserialize(engine, code) };
    component.map_err(|error| LoadError::Compiler { message: format!("{error:#}") })
}

/// The sum goes last: code without a sum does not count.
fn store(path: &Path, code: &[u8]) -> io::Result<()> {
    write_whole(path, code)?;
    write_whole(&path.with_extension("sum"), blake3::hash(code).to_hex().as_bytes())
}

fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(bytes)?;
    file.persist(path)?;
    Ok(())
}

/// Opens a file that only this user can have written. Links are not followed.
fn open_private(path: &Path) -> io::Result<File> {
    let flags = rustix::fs::OFlags::NOFOLLOW.bits() as i32;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let info = file.metadata()?;
    if info.is_file() && is_private(&info) {
        return Ok(file);
    }
    Err(io::Error::other("not a private file of this user"))
}

fn make_private(folder: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let info = fs::symlink_metadata(folder)?;
    if info.is_dir() && is_private(&info) {
        return Ok(());
    }
    Err(io::Error::other("the folder is not private: others own it or can write to it"))
}

fn is_private(info: &fs::Metadata) -> bool {
    let others_write = info.permissions().mode() & 0o022 != 0;
    info.uid() == rustix::process::geteuid().as_raw() && !others_write
}
