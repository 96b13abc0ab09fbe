//! The cache of compiled components and their metadata on disk, so that a second start compiles
//! nothing.
//!
//! A compiled component is native code, so the folder must be trustworthy. It belongs to this user,
//! no other user can write to it, and every file is checked against its hash before it is mapped,
//! unless its stamp is the same as at an earlier check. A file that fails a check is never run: its
//! component is compiled again and the file replaced.
//!
//! Layout:
//!
//! - `KEY.cwasm` and `KEY.sum`: the code, and its hash with the stamp of the last check. The key covers the component's digest and
//!   the engine's settings.
//! - `KEY-LIMITS.refused`: present if compiling would end in the same refusal again.
//! - `KEY.lock`: present while a process compiles the component.
//! - `DIGEST.json`: the metadata.
//! - `digests`: the digests of files, see the module `digest_cache`.
//!
//! Files are created by renaming, so two processes that fill the cache at the same time leave only
//! complete files, even if one of them is killed.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File, OpenOptions},
    hash::{Hash, Hasher},
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::SystemTime,
};

use sallyport_untrusted_file::FileStamp;
use serde::{Deserialize, Serialize};
use wasmtime::component::Component;

use crate::{
    compile::{CompileFailure, Compiler},
    component::ComponentFile,
    error::LoadError,
    mutex::lock_mutex,
};

/// Most metadata of a component, in bytes. That of a usual plugin takes a few kilobytes.
pub(crate) const METADATA_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// A stored refusal is one sentence of the compiler; at most this much of a file is read.
const REFUSAL_BYTES_MAX: u64 = 64 * 1024;

/// At most this much of a sum is read.
const SUM_BYTES_MAX: u64 = 4 * 1024;

/// Cache hits and misses since the process started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheStatistics {
    /// Compiled components that were mapped from disk.
    pub hits: usize,
    /// Components that had to be compiled.
    pub compiled: usize,
}

/// The cache of compiled components. Without a folder, they are kept in memory for this process.
pub(crate) struct ComponentCache {
    pub(crate) compiler: Compiler,
    folder: Option<PathBuf>,
    /// Components that the queue compiled for this process and that have not been requested yet, so
    /// that their first request does not count as a hit.
    fresh: Mutex<BTreeSet<String>>,
    in_memory: Mutex<BTreeMap<String, Result<Component, CompileFailure>>>,
    hits: AtomicUsize,
    compiled: AtomicUsize,
}

impl ComponentCache {
    /// Opens a cache in a folder that is private to this user, and creates the folder if needed.
    ///
    /// # Errors
    ///
    /// The folder cannot be used; the error states why. The caller may continue without one.
    pub(crate) fn open(folder: &Path, compiler: &Compiler) -> io::Result<Self> {
        create_private_folder(folder)?;
        Ok(Self::with_folder(Some(folder.to_owned()), compiler.clone()))
    }

    /// A cache that stores nothing on disk.
    pub(crate) fn without_folder(compiler: Compiler) -> Self {
        Self::with_folder(None, compiler)
    }

    fn with_folder(folder: Option<PathBuf>, compiler: Compiler) -> Self {
        Self {
            compiler,
            folder,
            fresh: Mutex::default(),
            in_memory: Mutex::default(),
            hits: AtomicUsize::new(0),
            compiled: AtomicUsize::new(0),
        }
    }

    /// The folder, if the cache has one.
    pub(crate) fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    pub(crate) fn statistics(&self) -> CacheStatistics {
        CacheStatistics {
            hits: self.hits.load(Ordering::Relaxed),
            compiled: self.compiled.load(Ordering::Relaxed),
        }
    }

    /// Returns the compiled component, from disk if possible.
    ///
    /// # Errors
    ///
    /// The component cannot be compiled, or was refused at an earlier start with the same limits.
    pub(crate) fn load_or_compile(
        &self,
        engine: &wasmtime::Engine,
        file: &ComponentFile,
    ) -> Result<Component, LoadError> {
        if let Some(known) = self.find_compiled(engine, file) {
            return known;
        }
        let component = self.compile_and_store(engine, file)?;
        match self.entry_paths(engine, file) {
            // Mapped code needs no memory of its own.
            Some(entry) => Ok(map_verified(engine, &entry.code).unwrap_or(component)),
            None => {
                lock_mutex(&self.in_memory).insert(file.digest().to_owned(), Ok(component.clone()));
                Ok(component)
            }
        }
    }

    /// Maps a component that is already in the folder, without compiling and without counting.
    pub(crate) fn map_existing(
        &self,
        engine: &wasmtime::Engine,
        file: &ComponentFile,
    ) -> Option<Component> {
        map_verified(engine, &self.entry_paths(engine, file)?.code)
    }

    /// The component or its refusal, if either is known without compiling.
    fn find_compiled(
        &self,
        engine: &wasmtime::Engine,
        file: &ComponentFile,
    ) -> Option<Result<Component, LoadError>> {
        let component = match self.entry_paths(engine, file) {
            Some(entry) => map_verified(engine, &entry.code).inspect(|_| {
                if !lock_mutex(&self.fresh).remove(file.digest()) {
                    self.hits.fetch_add(1, Ordering::Relaxed);
                }
            }),
            None => lock_mutex(&self.in_memory)
                .get(file.digest())
                .and_then(|stored| stored.clone().ok()),
        };
        component.map(Ok).or_else(|| self.stored_refusal(engine, file).map(Err))
    }

    /// Records that another process compiled a component for this one.
    pub(crate) fn record_compiled(&self, digest: &str) {
        self.compiled.fetch_add(1, Ordering::Relaxed);
        lock_mutex(&self.fresh).insert(digest.to_owned());
    }

    /// Whether the result of compiling a component is known, so that requesting it starts no
    /// compiler.
    pub(crate) fn has_result(&self, engine: &wasmtime::Engine, file: &ComponentFile) -> bool {
        match self.entry_paths(engine, file) {
            // The sum is written last. Whether it matches the code is checked when the code is
            // mapped.
            Some(entry) => {
                entry.code.with_extension("sum").exists() || entry.read_refusal().is_some()
            }
            None => lock_mutex(&self.in_memory).contains_key(file.digest()),
        }
    }

    /// The error of an earlier attempt to compile the component, if one was refused.
    pub(crate) fn stored_refusal(
        &self,
        engine: &wasmtime::Engine,
        file: &ComponentFile,
    ) -> Option<LoadError> {
        let failure = match self.entry_paths(engine, file) {
            Some(entry) => entry.read_refusal(),
            None => lock_mutex(&self.in_memory).get(file.digest()).cloned()?.err(),
        };
        failure.map(|failure| failure.into_load_error(file.path()))
    }

    /// Compiles a component into the folder, unless this or another process has already done so.
    ///
    /// # Errors
    ///
    /// The lock file cannot be created, locked or removed. A failed compilation is not an error
    /// here: a final refusal is stored in the folder.
    pub(crate) fn compile_into_folder(
        &self,
        engine: &wasmtime::Engine,
        file: &ComponentFile,
    ) -> io::Result<()> {
        let Some(entry) = self.entry_paths(engine, file) else { return Ok(()) };
        // Held until the end, so that two starts at the same time compile a component only once.
        let lock = File::create(&entry.lock)?;
        lock.lock()?;
        if !self.has_result(engine, file) {
            // A failure that is not final recurs, and is reported, when the component is requested.
            let _ = self.compile_and_store(engine, file);
        }
        fs::remove_file(&entry.lock)
    }

    /// Returns the metadata stored for a digest, if its file can be read.
    pub(crate) fn read_metadata(&self, digest: &str) -> Option<String> {
        let path = self.folder.as_ref()?.join(format!("{digest}.json"));
        let mut text = String::new();
        open_private(&path).ok()?.take(METADATA_BYTES_MAX).read_to_string(&mut text).ok()?;
        Some(text)
    }

    /// Stores the metadata of a digest.
    pub(crate) fn write_metadata(&self, digest: &str, text: &str) {
        if let Some(folder) = &self.folder {
            let _ = write_atomically(&folder.join(format!("{digest}.json")), text.as_bytes());
        }
    }

    /// Compiles, and stores the code, or the refusal if it is final.
    fn compile_and_store(
        &self,
        engine: &wasmtime::Engine,
        file: &ComponentFile,
    ) -> Result<Component, LoadError> {
        self.compiled.fetch_add(1, Ordering::Relaxed);
        let entry = self.entry_paths(engine, file);
        // Errors of the cache are ignored: with a full disk the next start is slow, and this one
        // still works.
        match self.compiler.compile(&file.bytes()?) {
            Ok(code) => {
                let component = copy_component(engine, &code)?;
                let _ = entry.map(|entry| store_code(&entry.code, &code));
                Ok(component)
            }
            Err(failure) => {
                match entry {
                    Some(entry) => drop(entry.write_refusal(&failure)),
                    None if failure.is_final() => {
                        lock_mutex(&self.in_memory)
                            .insert(file.digest().to_owned(), Err(failure.clone()));
                    }
                    None => {}
                }
                Err(failure.into_load_error(file.path()))
            }
        }
    }

    /// The paths of a component's files, whether or not they exist.
    fn entry_paths(&self, engine: &wasmtime::Engine, file: &ComponentFile) -> Option<CacheEntry> {
        let folder = self.folder.as_ref()?;
        let key = cache_key(engine, file);
        // The limits are part of the name: a component that exceeds one limit may fit another.
        let limits = hash_value(&self.compiler.limits());
        Some(CacheEntry {
            code: folder.join(format!("{key}.cwasm")),
            refusal: folder.join(format!("{key}-{}.refused", &limits[..16])),
            lock: folder.join(format!("{key}.lock")),
        })
    }
}

/// The paths of one component's files.
struct CacheEntry {
    code: PathBuf,
    refusal: PathBuf,
    lock: PathBuf,
}

impl CacheEntry {
    /// The refusal that an earlier start stored, if any.
    fn read_refusal(&self) -> Option<CompileFailure> {
        let mut text = String::new();
        let file = open_private(&self.refusal).ok()?;
        file.take(REFUSAL_BYTES_MAX).read_to_string(&mut text).ok()?;
        serde_json::from_str(&text).ok()
    }

    fn write_refusal(&self, failure: &CompileFailure) -> io::Result<()> {
        if !failure.is_final() {
            return Ok(());
        }
        write_atomically(&self.refusal, &serde_json::to_vec(failure)?)
    }
}

/// The key of a component: other engine settings or another wasmtime version give another key.
fn cache_key(engine: &wasmtime::Engine, file: &ComponentFile) -> String {
    hash_value(&(engine.precompile_compatibility_hash(), file.digest()))
}

fn hash_value(value: &impl Hash) -> String {
    struct Blake3Hasher(blake3::Hasher);
    impl Hasher for Blake3Hasher {
        fn finish(&self) -> u64 {
            0
        }
        fn write(&mut self, bytes: &[u8]) {
            self.0.update(bytes);
        }
    }
    let mut hasher = Blake3Hasher(blake3::Hasher::new());
    value.hash(&mut hasher);
    hasher.0.finalize().to_hex().to_string()
}

/// Maps a compiled component if its file is complete and private; otherwise treats it as missing.
fn map_verified(engine: &wasmtime::Engine, path: &Path) -> Option<Component> {
    if is_intact(path) { map_component(engine, path) } else { None }
}

/// The file beside compiled code that describes what it has to be.
#[derive(Serialize, Deserialize)]
struct CodeSum {
    /// The hash of the code, in hexadecimal.
    hash: String,
    /// The stamp of the file when its contents had this hash.
    #[serde(default)]
    stamp: Option<FileStamp>,
}

impl CodeSum {
    fn read(path: &Path) -> io::Result<Self> {
        let mut text = String::new();
        open_private(path)?.take(SUM_BYTES_MAX).read_to_string(&mut text)?;
        Ok(serde_json::from_str(&text)?)
    }

    fn write(&self, path: &Path) -> io::Result<()> {
        write_atomically(path, &serde_json::to_vec(self)?)
    }
}

/// Whether compiled code is that of its sum. Code whose stamp is the one of an earlier comparison is
/// not read again, because the code of an interpreter takes longer to hash than to run.
fn is_intact(path: &Path) -> bool {
    let compare = || {
        let file = open_private(path)?;
        // Read before the code, so that newer code is not trusted by this stamp.
        let stamp = FileStamp::from(&file.metadata()?);
        let sum_path = path.with_extension("sum");
        let known = CodeSum::read(&sum_path)?;
        if known.stamp == Some(stamp) {
            return io::Result::Ok(true);
        }
        let mut hasher = blake3::Hasher::new();
        hasher.update_reader(file)?;
        let is_same = hasher.finalize().to_hex().as_str() == known.hash;
        if is_same && stamp.is_settled(SystemTime::now()) {
            // If it cannot be kept, the next start reads the code again.
            let _ = CodeSum { stamp: Some(stamp), ..known }.write(&sum_path);
        }
        Ok(is_same)
    };
    compare().unwrap_or(false)
}

#[expect(unsafe_code, reason = "mapping native code; the caller has checked owner and hash")]
fn map_component(engine: &wasmtime::Engine, path: &Path) -> Option<Component> {
    // SAFETY: `store` wrote the file with the compiler's output, it is in a folder that only this
    // user can write to, it is a regular file of this user, and its hash matched a moment ago or
    // when its stamp was the same.
    // wasmtime itself checks version and settings.
    unsafe { Component::deserialize_file(engine, path) }.ok()
}

#[expect(unsafe_code, reason = "native code that the compiler has just made")]
fn copy_component(engine: &wasmtime::Engine, code: &[u8]) -> Result<Component, LoadError> {
    // SAFETY: the code came from a compiler that was started for it, and has been nowhere else.
    // wasmtime itself checks version and settings.
    let component = unsafe { Component::deserialize(engine, code) };
    component.map_err(|error| LoadError::Compiler { message: format!("{error:#}") })
}

/// Stores the code, then its sum. Code without a sum is ignored.
fn store_code(path: &Path, code: &[u8]) -> io::Result<()> {
    write_atomically(path, code)?;
    let hash = blake3::hash(code).to_hex().to_string();
    CodeSum { hash, stamp: None }.write(&path.with_extension("sum"))
}

pub(crate) fn write_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(bytes)?;
    file.persist(path)?;
    Ok(())
}

/// Opens a file that only this user can have written. Symbolic links are not followed.
pub(crate) fn open_private(path: &Path) -> io::Result<File> {
    let flags = rustix::fs::OFlags::NOFOLLOW.bits() as i32;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let info = file.metadata()?;
    if info.is_file() && is_private(&info) {
        return Ok(file);
    }
    Err(io::Error::other("not a private file of this user"))
}

fn create_private_folder(folder: &Path) -> io::Result<()> {
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
