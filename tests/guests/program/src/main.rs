//! Reads a JSON object with an `act`, and does that: what programs do that are used as tools, and
//! what they should not.

use std::io::{Read, Write, stderr, stdin, stdout};

fn main() {
    let mut arguments = String::new();
    if stdin().read_to_string(&mut arguments).is_err() {
        std::process::exit(9);
    }
    match act(&arguments) {
        "echo" => say(&arguments),
        "nothing" => {}
        "no_json" => say("all is well"),
        "fails" => fail(2, "no such project\n"),
        "fails_silently" => fail(3, ""),
        "exits_well" => {
            say("[true]");
            std::process::exit(0);
        }
        "warns" => {
            let _ = stderr().write_all(b"a warning\n");
            say("{}");
        }
        "prints_for_ever" => loop {
            let _ = stdout().write_all(&[b'1'; 4096]);
        },
        "complains_for_ever" => loop {
            let _ = stderr().write_all(b"it does not work\n");
        },
        "loops" => loop {
            std::hint::black_box(0);
        },
        "reads_on" => say(&format!("{}", stdin().read(&mut [0; 8]).unwrap_or(99))),
        "lists_root" => say(&format!("{}", std::fs::read_dir("/").is_ok())),
        "shows_environment" => {
            say(&format!("[{}, {}]", std::env::args().count(), std::env::vars().count()))
        }
        "eats_memory" => std::hint::black_box(vec![1u8; 1 << 30]).clear(),
        "panics" => panic!("the words of the panic"),
        "traps" => core::arch::wasm32::unreachable(),
        _ => fail(1, "unknown act"),
    }
}

/// The word of the act, without a parser of JSON.
fn act(arguments: &str) -> &str {
    let rest = arguments.split("\"act\":\"").nth(1).unwrap_or_default();
    rest.split('"').next().unwrap_or_default()
}

fn say(text: &str) {
    let _ = stdout().write_all(text.as_bytes());
}

fn fail(code: i32, text: &str) {
    let _ = stderr().write_all(text.as_bytes());
    std::process::exit(code);
}
