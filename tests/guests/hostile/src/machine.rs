//! Time, memory and the ways to fall over.

use std::{
    hint::black_box,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use sallyport_sdk::{log, prelude::*};
use wasip2::{clocks::monotonic_clock::subscribe_duration, io::poll::poll};

use crate::{Amount, disk::OnePath};

/// Bytes of one page of a WebAssembly memory.
const PAGE_BYTES: usize = 64 * 1024;

/// Runs in a circle.
#[tool]
pub(crate) fn loops_forever() -> u64 {
    let mut n = 0_u64;
    loop {
        n = black_box(n.wrapping_add(1));
    }
}

/// Polls timers of no length, again and again.
#[tool]
pub(crate) fn spins_on_zero_timers() -> u64 {
    loop {
        let timer = subscribe_duration(0);
        black_box(poll(&[&timer]));
    }
}

/// Sleeps for an hour.
#[tool]
pub(crate) fn sleeps_an_hour() -> bool {
    std::thread::sleep(Duration::from_secs(3600));
    true
}

/// Copies its memory from one place to another for ever.
#[tool]
pub(crate) fn copies_memory() -> u8 {
    let from = vec![1_u8; 32 << 20];
    let mut to = vec![0_u8; 32 << 20];
    loop {
        to.copy_from_slice(black_box(&from));
        black_box(&to);
    }
}

/// Takes memory until there is none, as a program does that knows no limit.
#[tool]
pub(crate) fn eats_memory() -> usize {
    let mut held = Vec::new();
    loop {
        held.push(black_box(vec![1_u8; 1 << 20]));
    }
}

/// Asks for n mebibytes and tells whether they were given.
#[tool]
pub(crate) fn grows_memory(args: Amount) -> bool {
    let pages = usize::try_from(args.n).unwrap_or(usize::MAX).saturating_mul(1 << 20) / PAGE_BYTES;
    core::arch::wasm32::memory_grow::<0>(pages) != usize::MAX
}

/// Executes an instruction that traps.
#[tool]
pub(crate) fn traps() -> u8 {
    core::arch::wasm32::unreachable()
}

/// Panics with a message.
#[tool]
pub(crate) fn panics() -> u8 {
    panic!("the ship is sinking")
}

/// Calls itself until there is no stack.
#[tool]
pub(crate) fn recurses() -> u64 {
    deeper(1, &mut |_| ())
}

/// Calls itself until there is no stack, and the host at every step.
#[tool]
pub(crate) fn recurses_into_the_host() -> u64 {
    deeper(1, &mut log::debug)
}

/// Calls itself until there is no stack, and looks at a file at every step.
#[tool]
pub(crate) fn recurses_onto_the_disk(args: OnePath) -> u64 {
    deeper(1, &mut |_| drop(black_box(std::fs::metadata(&args.path))))
}

/// Keeps nothing in memory, so that it is the stack of the machine that ends, not the one in the
/// guest's own memory.
#[inline(never)]
fn deeper(n: u64, visit: &mut dyn FnMut(u64)) -> u64 {
    if n == u64::MAX {
        return 0;
    }
    visit(n);
    deeper(n + 1, visit).wrapping_mul(3) ^ n
}

/// Ends the program.
#[tool]
pub(crate) fn exits(args: Amount) -> u8 {
    std::process::exit(i32::try_from(args.n).unwrap_or(i32::MAX))
}

static CALLS: AtomicU64 = AtomicU64::new(0);

/// Tells how often it was called in this instance.
#[tool]
pub(crate) fn counts() -> u64 {
    CALLS.fetch_add(1, Ordering::Relaxed) + 1
}
