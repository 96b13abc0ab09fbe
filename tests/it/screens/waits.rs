//! What is shown while the program waits, and of an answer that never ends.

use super::{SIZES, Scenario, Stage, Step::Sees, check};
use crate::support::{Home, Person, Reply};

const RUN: &[&str] = &["run", "--model", "m", "go"];

#[test]
fn a_run_was_silent_while_its_provider_could_not_answer() {
    for (rows, columns) in SIZES {
        let script = vec![Reply::Status(503), Reply::Silence];
        let stage = Stage::with_model(Home::new().plugins(&["clock"]), script);
        let mut person = Person::start_sized(&stage.home, RUN, rows, columns);
        Sees("retrying in").go(&mut person);
    }
}

#[test]
fn what_had_arrived_when_a_stream_broke_was_not_printed() {
    let scenario = Scenario {
        name: "a_stream_that_breaks",
        before: "the error alone, without what had arrived",
        args: RUN,
        steps: &[],
        code: Some(1),
    };
    check(&scenario, || Stage::with_model(Home::new().plugins(&["clock"]), vec![Reply::Cut]));
}

#[test]
fn the_first_start_was_a_blank_screen() {
    for (rows, columns) in SIZES {
        let home = Home::with_own_cache().plugins(&["python"]).env("SALLYPORT_COMPILE_WAIT", "0s");
        let mut person = Person::start_sized(&home, &["doctor"], rows, columns);
        Sees("Preparing 1 plugin (once)").go(&mut person);
    }
}
