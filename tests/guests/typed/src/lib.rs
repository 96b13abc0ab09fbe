//! A component of its own interface: every type comes back as it went in, and every way to fail is
//! there. Nothing here names Sallyport, as in a component that was written for no host.
#![expect(unsafe_code, reason = "the generated exports are functions with raw pointers")]
#![expect(clippy::type_complexity, reason = "the types are what is tested")]

mod bindings {
    wit_bindgen::generate!({ path: "wit", world: "typed", generate_all });
}

use std::{
    cell::Cell,
    hint::black_box,
    sync::atomic::{AtomicU32, Ordering},
};

use bindings::exports::acme::typed::{acts, counters, echo};

struct Typed;

bindings::export!(Typed with_types_in bindings);

/// The calls of `count-once` in this instance.
static COUNT: AtomicU32 = AtomicU32::new(0);

impl bindings::Guest for Typed {
    fn greet(name: String, greeting: Option<String>) -> String {
        format!("{}, {name}!", greeting.as_deref().unwrap_or("Hello"))
    }
}

impl echo::Guest for Typed {
    fn integers(
        a: i8,
        b: u8,
        c: i16,
        d: u16,
        e: i32,
        f: u32,
        g: i64,
        h: u64,
    ) -> (i8, u8, i16, u16, i32, u32, i64, u64) {
        (a, b, c, d, e, f, g, h)
    }

    fn floats(narrow: f32, wide: f64) -> (f32, f64) {
        (narrow, wide)
    }

    fn texts(letter: char, text: String, truth: bool) -> (char, String, bool) {
        (letter, text, truth)
    }

    fn bytes(bytes: Vec<u8>) -> Vec<u8> {
        bytes
    }

    fn places(places: Vec<echo::Place>) -> Vec<echo::Place> {
        places
    }

    fn shapes(shapes: Vec<echo::Shape>) -> Vec<echo::Shape> {
        shapes
    }

    fn choices(colour: echo::Colour, days: echo::Days) -> (echo::Colour, echo::Days) {
        (colour, days)
    }

    fn options(
        plain: Option<u32>,
        nested: Option<Option<String>>,
    ) -> (Option<u32>, Option<Option<String>>) {
        (plain, nested)
    }

    fn results(
        outcome: Result<u32, String>,
        empty: Result<(), ()>,
    ) -> (Result<u32, String>, Result<(), ()>) {
        (outcome, empty)
    }
}

impl acts::Guest for Typed {
    fn divide(dividend: i64, divisor: i64) -> Result<i64, String> {
        dividend
            .checked_div(divisor)
            .ok_or_else(|| format!("{dividend} cannot be divided by {divisor}"))
    }

    fn find(count: u32) -> Result<String, acts::Problem> {
        match count {
            0 => Err(acts::Problem::NotFound),
            1 => Ok("found".to_owned()),
            more => Err(acts::Problem::TooMany(more)),
        }
    }

    fn refuse() -> Result<(), ()> {
        Err(())
    }

    fn nothing() {}

    fn trap() {
        panic!("typed panics on request");
    }

    fn spin() {
        loop {
            black_box(());
        }
    }

    fn grow() {
        let mut held: Vec<Vec<u8>> = Vec::new();
        loop {
            held.push(black_box(vec![1; 1 << 20]));
        }
    }

    fn long(bytes: u32) -> String {
        "x".repeat(bytes as usize)
    }

    fn read_file(path: String) -> Result<String, String> {
        std::fs::read_to_string(path).map_err(|error| error.to_string())
    }
}

struct Counter(Cell<u32>);

impl counters::GuestCounter for Counter {
    fn new(start: u32) -> Self {
        Self(Cell::new(start))
    }

    fn next(&self) -> u32 {
        self.0.replace(self.0.get() + 1)
    }
}

impl counters::Guest for Typed {
    type Counter = Counter;

    fn open_counter() -> counters::Counter {
        counters::Counter::new(Counter(Cell::new(0)))
    }

    fn count_once() -> u32 {
        COUNT.fetch_add(1, Ordering::Relaxed) + 1
    }
}
