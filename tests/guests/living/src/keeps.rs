//! Steps with what is kept from one call to the next, where the instance lives that long.

use std::{
    cell::RefCell,
    fs::{self, File},
    hint::black_box,
    io::{Read, Seek, Write},
};

use wasip2::{
    clocks::monotonic_clock::{now, subscribe_duration},
    http::{
        outgoing_handler::handle,
        types::{Fields, FutureIncomingResponse, IncomingBody, OutgoingRequest, Scheme},
    },
    io::{
        poll::Pollable,
        streams::{InputStream, StreamError},
    },
};

/// Bytes of a mebibyte.
const MIB: usize = 1 << 20;

/// What is kept.
#[derive(Default)]
struct Kept {
    count: u64,
    file: Option<File>,
    memory: Vec<Vec<u8>>,
    request: Option<FutureIncomingResponse>,
    /// A stream goes before what it reads from.
    body: Option<(InputStream, IncomingBody)>,
    timer: Option<Pollable>,
    time: u64,
}

thread_local! {
    static KEPT: RefCell<Kept> = RefCell::default();
}

/// Does a step with what is kept.
pub(crate) fn step(words: &[&str]) -> Option<String> {
    KEPT.with_borrow_mut(|kept| {
        kept.on_files(words).or_else(|| kept.on_network(words)).or_else(|| kept.on_itself(words))
    })
}

impl Kept {
    fn on_files(&mut self, words: &[&str]) -> Option<String> {
        Some(match *words {
            ["put", path, text] => told(fs::write(path, text)),
            ["fill", path, n] => told(fs::write(path, vec![b'x'; n.parse().unwrap()])),
            ["cat", path] => match fs::read_to_string(path) {
                Ok(text) => text,
                Err(error) => format!("! {error}"),
            },
            ["rm", path] => told(fs::remove_file(path)),
            ["hold", path] => {
                let opened = File::options().read(true).write(true).create(true).open(path);
                told(opened.map(|file| self.file = Some(file)))
            }
            ["write", text] => told(self.file.as_ref().unwrap().write_all(text.as_bytes())),
            ["write-bytes", n] => {
                told(self.file.as_ref().unwrap().write_all(&vec![b'x'; n.parse().unwrap()]))
            }
            ["read"] => {
                let mut text = String::new();
                let mut file = self.file.as_ref().unwrap();
                match file.rewind().and_then(|()| file.read_to_string(&mut text)) {
                    Ok(_) => text,
                    Err(error) => format!("! {error}"),
                }
            }
            _ => return None,
        })
    }

    fn on_network(&mut self, words: &[&str]) -> Option<String> {
        Some(match *words {
            ["request", authority, path] => {
                let request = OutgoingRequest::new(Fields::new());
                request.set_scheme(Some(&Scheme::Http)).unwrap();
                request.set_authority(Some(authority)).unwrap();
                request.set_path_with_query(Some(path)).unwrap();
                match handle(request, None) {
                    Ok(response) => {
                        self.request = Some(response);
                        "ok".to_owned()
                    }
                    Err(error) => format!("! {error:?}"),
                }
            }
            ["wait"] => {
                let request = self.request.take().unwrap();
                request.subscribe().block();
                match request.get().unwrap().unwrap() {
                    Ok(response) => {
                        let body = response.consume().unwrap();
                        self.body = Some((body.stream().unwrap(), body));
                        response.status().to_string()
                    }
                    Err(error) => format!("! {error:?}"),
                }
            }
            ["pull", n] => match self.body.as_ref().unwrap().0.blocking_read(n.parse().unwrap()) {
                Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
                Err(StreamError::Closed) => "! closed".to_owned(),
                Err(StreamError::LastOperationFailed(error)) => format!("! {error:?}"),
            },
            _ => return None,
        })
    }

    fn on_itself(&mut self, words: &[&str]) -> Option<String> {
        Some(match *words {
            ["count"] => {
                self.count += 1;
                self.count.to_string()
            }
            ["grow", n] => {
                self.memory.push(vec![1; n.parse::<usize>().unwrap() * MIB]);
                black_box(&self.memory).len().to_string()
            }
            ["dirty", n] => {
                new_memory(n.parse().unwrap()).fill(0xa5);
                "ok".to_owned()
            }
            ["find-dirt", n] => {
                let memory = new_memory(n.parse().unwrap());
                memory.iter().filter(|byte| **byte != 0).count().to_string()
            }
            ["try-grow", n] => {
                let mut memory = Vec::<u8>::new();
                memory.try_reserve_exact(n.parse::<usize>().unwrap() * MIB).is_ok().to_string()
            }
            ["print", text] => {
                print!("{text}");
                std::io::stdout().flush().unwrap();
                "ok".to_owned()
            }
            ["timer", ms] => {
                self.timer = Some(subscribe_duration(ms.parse::<u64>().unwrap() * 1_000_000));
                "ok".to_owned()
            }
            ["ring"] => {
                self.timer.take().unwrap().block();
                "ok".to_owned()
            }
            ["later"] => {
                let before = std::mem::replace(&mut self.time, now());
                (self.time > before).to_string()
            }
            ["env", name] => std::env::var(name).unwrap_or_else(|_| "nothing".to_owned()),
            ["trap"] => core::arch::wasm32::unreachable(),
            ["exit"] => std::process::exit(0),
            ["spin"] => loop {
                black_box(0);
            },
            _ => return None,
        })
    }
}

/// Memory that this instance has never used, in mebibytes: the allocator knows nothing of it.
fn new_memory(mebibytes: usize) -> &'static mut [u8] {
    let (pages, page_bytes) = (mebibytes * 16, 64 * 1024);
    let first = core::arch::wasm32::memory_grow::<0>(pages);
    assert_ne!(first, usize::MAX, "the memory does not grow");
    let start = std::ptr::with_exposed_provenance_mut(first * page_bytes);
    // Safety: the memory has just grown by these pages.
    unsafe { std::slice::from_raw_parts_mut(start, pages * page_bytes) }
}

fn told(done: std::io::Result<()>) -> String {
    match done {
        Ok(()) => "ok".to_owned(),
        Err(error) => format!("! {error}"),
    }
}
