//! Components that were damaged at random: the compiler and what comes after it take them or refuse
//! them, and that is all.
//!
//! `SALLYPORT_FUZZ_SECONDS` says how long it goes on, `SALLYPORT_FUZZ_SEED` where it begins: with
//! the seed that a failure names, its input comes first.

use std::{
    collections::BTreeMap,
    fs,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    sync::Arc,
    time::{Duration, Instant, UNIX_EPOCH},
};

use sallyport_policy::Manifest;
use sallyport_sandbox::{
    Compiler, ComponentFile, LoadError, Sandbox, SandboxOptions, SystemResolver,
    compile::{CompileLimits, ExceededCompileLimit},
};

use crate::support::{
    home::{guest, manifest, plugin_component},
    patience,
};

/// How long the test runs among the others.
const USUAL_SECONDS: u64 = 5;

/// Where it begins among the others: the same inputs every time.
const USUAL_SEED: u64 = 1;

/// Most that is done to one component, one thing after the other.
const DAMAGES_MAX: usize = 4;

/// Most bytes that one damage is about. A section is as long as it is.
const PIECE_BYTES_MAX: usize = 512;

/// Where the first section of a component begins.
const HEADER_BYTES: usize = 8;

/// What one compilation may cost. The amount of memory tells the workers of this process from all
/// others.
fn limits() -> CompileLimits {
    CompileLimits {
        time: Duration::from_secs(60),
        cpu_time: Duration::from_secs(10),
        memory_bytes: 900 * 1024 * 1024 + u64::from(std::process::id()),
        code_bytes: 32 * 1024 * 1024,
    }
}

#[test]
fn damaged_components_are_taken_or_refused() {
    let number = |name| std::env::var(name).ok().map(|text: String| text.parse::<u64>().unwrap());
    let seconds = number("SALLYPORT_FUZZ_SECONDS");
    let now = || UNIX_EPOCH.elapsed().unwrap().as_secs() << 20;
    let usual = seconds.map_or(USUAL_SEED, |_| now());
    let first = number("SALLYPORT_FUZZ_SEED").unwrap_or(usual);
    println!("the first seed is {first}");
    let end = Instant::now() + Duration::from_secs(seconds.unwrap_or(USUAL_SECONDS));
    let (sandbox, sound) = (sandbox(), sound_components());
    let mut ends: BTreeMap<&str, usize> = BTreeMap::new();
    for seed in first.. {
        let bytes = damaged(&sound, seed);
        let caught = catch_unwind(AssertUnwindSafe(|| inspect(&sandbox, bytes)));
        let end_of_it = caught.unwrap_or_else(|_| panic!("the host panics at seed {seed}"));
        *ends.entry(word(end_of_it, seed)).or_default() += 1;
        assert!(!a_worker_is_left(), "a worker of seed {seed} is left");
        if Instant::now() >= end {
            break;
        }
    }
    println!("{} components: {ends:?}", ends.values().sum::<usize>());
}

fn sandbox() -> Arc<Sandbox> {
    let compiler =
        Compiler::Worker { program: env!("CARGO_BIN_EXE_sallyport").into(), limits: limits() };
    let resolver = Arc::new(SystemResolver::default());
    Sandbox::new(SandboxOptions { cache_dir: None, compiler, resolver }).0
}

/// Loads a component as far as its list of tools.
fn inspect(sandbox: &Arc<Sandbox>, bytes: Vec<u8>) -> Result<(), LoadError> {
    let file = ComponentFile::new(Path::new("damaged.wasm"), bytes)?;
    let manifest = Manifest::parse("plugin.toml", &manifest("damaged", "")).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    patience::run(&runtime, sandbox.inspect_component(&file, &manifest)).map(drop)
}

/// How loading a damaged component ended, if in a way that it may.
#[track_caller]
#[expect(clippy::print_stdout, reason = "the seed of a fallen worker is worth a look")]
fn word(loaded: Result<(), LoadError>, seed: u64) -> &'static str {
    let Err(error) = loaded else { return "loaded" };
    assert!(error.to_string().len() < 64 * 1024, "seed {seed}: {} bytes", error.to_string().len());
    match error {
        LoadError::NotAComponent { .. } => "no component",
        LoadError::Invalid { .. } => "invalid",
        LoadError::NewerWasi { .. } => "newer WASI",
        LoadError::CompileLimit { limit, .. } => {
            assert!(is_ours(limit), "seed {seed}: {limit}");
            "too dear"
        }
        LoadError::MissingExport { .. } => "no tools",
        LoadError::UnknownImports { .. } => "unknown imports",
        LoadError::UnrequestedCapability { .. } => "unrequested",
        LoadError::InterfaceMismatch { .. } => "mismatch",
        LoadError::ToolListFailed { .. } => "bad tools",
        LoadError::InvalidTools { .. } => "impossible tools",
        LoadError::NothingCallable { .. } => "nothing callable",
        // A worker may fall, as that is what it is there for; the host must not notice otherwise.
        LoadError::Compiler { message } => {
            println!("the worker of seed {seed} fell: {message}");
            "fallen worker"
        }
        LoadError::Unreadable { .. } | LoadError::Changed { .. } | LoadError::Engine { .. } => {
            panic!("seed {seed}: {error}")
        }
    }
}

/// Whether a limit is one of those that were set.
fn is_ours(limit: ExceededCompileLimit) -> bool {
    let ours = limits();
    match limit {
        ExceededCompileLimit::Time(time) => time == ours.time,
        ExceededCompileLimit::CpuTime(time) => time == ours.cpu_time,
        ExceededCompileLimit::Memory(bytes) => bytes == ours.memory_bytes,
        ExceededCompileLimit::Code(bytes) => bytes == ours.code_bytes,
        ExceededCompileLimit::Stack => true,
    }
}

/// Whether a process is there that was told the limits of this one.
fn a_worker_is_left() -> bool {
    let told = limits().memory_bytes.to_string();
    let folders = fs::read_dir("/proc").unwrap().flatten();
    let lines = folders.filter_map(|folder| fs::read_to_string(folder.path().join("cmdline")).ok());
    let mut workers = lines.filter(|line| line.contains("__compile-worker"));
    workers.any(|line| line.contains(&told))
}

/// Components as compilers make them; the small ones are compiled often.
fn sound_components() -> Vec<Vec<u8>> {
    let plugins = ["system-info", "files", "weather"].map(plugin_component);
    let guests = ["raw", "raw", "raw", "secretive"].map(guest);
    plugins.into_iter().chain(guests).collect()
}

/// Marsaglia's xorshift: numbers that repeat with their seed.
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        // Neighbouring seeds shall differ, and none shall be zero.
        let mut random = Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        for _ in 0..8 {
            random.next();
        }
        random
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number below another, which is 0 for 0.
    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % (end.max(1) as u64)).unwrap()
    }
}

/// The component of a seed.
fn damaged(sound: &[Vec<u8>], seed: u64) -> Vec<u8> {
    let mut random = Random::new(seed);
    let mut bytes = sound[random.below(sound.len())].clone();
    for _ in 0..=random.below(DAMAGES_MAX) {
        let other = &sound[random.below(sound.len())];
        match random.below(6) {
            0 | 1 => flip(&mut bytes, &mut random),
            2 => splice(&mut bytes, other, &mut random),
            3 => cut(&mut bytes, &mut random),
            4 => bytes = shuffled(&bytes, &bytes, &mut random),
            _ => bytes = shuffled(&bytes, other, &mut random),
        }
    }
    bytes
}

/// Changes a few bytes.
fn flip(bytes: &mut [u8], random: &mut Random) {
    for _ in 0..=random.below(8) {
        let at = random.below(bytes.len());
        if let Some(byte) = bytes.get_mut(at) {
            *byte ^= 1 << random.below(8);
        }
    }
}

/// Puts a piece of a component somewhere into another, over what is there or between it.
fn splice(bytes: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    let length = random.below(PIECE_BYTES_MAX).min(other.len());
    let from = random.below(other.len() - length + 1);
    let at = random.below(bytes.len() + 1);
    let over = if random.below(2) == 0 { length.min(bytes.len() - at) } else { 0 };
    bytes.splice(at..at + over, other[from..from + length].iter().copied());
}

/// Takes the end off, or a piece out.
fn cut(bytes: &mut Vec<u8>, random: &mut Random) {
    let from = random.below(bytes.len() + 1);
    let length = if random.below(2) == 0 { bytes.len() } else { random.below(PIECE_BYTES_MAX) };
    bytes.drain(from..bytes.len().min(from + length));
}

/// Takes a section of another component in the place of one, or beside it.
fn shuffled(bytes: &[u8], other: &[u8], random: &mut Random) -> Vec<u8> {
    let (mut own, others) = (sections(bytes), sections(other));
    if own.is_empty() || others.is_empty() {
        return bytes.to_vec();
    }
    let at = random.below(own.len());
    let taken = others[random.below(others.len())];
    match random.below(4) {
        0 => own[at] = taken,
        1 => own.insert(at, taken),
        2 => {
            own.remove(at);
        }
        _ => {
            let with = random.below(own.len());
            own.swap(at, with);
        }
    }
    own.insert(0, &bytes[..HEADER_BYTES]);
    own.concat()
}

/// The sections of a component, each with its number and its length; what is none ends the list.
fn sections(bytes: &[u8]) -> Vec<&[u8]> {
    let mut rest = bytes.get(HEADER_BYTES..).unwrap_or_default();
    let mut sections = Vec::new();
    while let Some((section, after)) = section_length(rest).and_then(|at| rest.split_at_checked(at))
    {
        sections.push(section);
        rest = after;
    }
    sections
}

/// How long the first section is: a byte with its number, the length of the rest, and the rest.
fn section_length(bytes: &[u8]) -> Option<usize> {
    let mut length = 0_u64;
    for (index, byte) in bytes.iter().skip(1).take(5).enumerate() {
        length |= u64::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return Some(2 + index + usize::try_from(length).ok()?);
        }
    }
    None
}
