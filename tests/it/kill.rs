//! A program that is killed at any moment leaves a session that can be shown and gone on with.

use std::{
    process::Child,
    thread,
    time::{Duration, Instant},
};

use serde_json::json;

use crate::support::{Home, OpenAi, Reply, dice::Dice, home::finish, transcript};

/// How often the program is killed.
const KILLS: u64 = 50;

/// The moments are the same in each run of the test; what the program does at them is not.
const SEED: u64 = 0x5a11_7090;

const RUN: [&str; 4] = ["run", "-m", "scripted", "--continue"];

/// Two calls at once, one more, and an answer, again and again.
fn script() -> Vec<Reply> {
    let zone = |zone: &str| json!({ "timezone": zone }).to_string();
    let round = |n: usize| {
        let ids: [&'static str; 3] =
            [["a0", "b0", "c0"], ["a1", "b1", "c1"], ["a2", "b2", "c2"]][n % 3];
        [
            Reply::Calls(vec![
                (ids[0], "clock__get_time", zone("UTC")),
                (ids[1], "clock__get_time", zone("Asia/Tokyo")),
            ]),
            Reply::Calls(vec![(ids[2], "clock__get_time", zone("Europe/Oslo"))]),
            Reply::Text("It is one time in three places."),
        ]
    };
    (0..200).flat_map(round).collect()
}

fn start(home: &Home, question: &str) -> Child {
    let mut child = home.start(&[&RUN[..], &[question]].concat());
    drop(child.stdin.take());
    child
}

/// How long a whole run takes here, the longest of a few.
fn whole_run(home: &Home) -> Duration {
    let time = |_| {
        let begin = Instant::now();
        finish(start(home, "how long?"), &RUN).ended(0);
        begin.elapsed()
    };
    (0..3).map(time).max().unwrap()
}

#[test]
fn a_killed_program_leaves_a_session_that_goes_on() {
    let model = OpenAi::start(script());
    let home = Home::new().plugins(&["clock"]).env("OPENAI_BASE_URL", model.base_url());
    home.run(&["run", "-m", "scripted", "begin"]).ended(0);
    let whole = whole_run(&home).as_micros() as u64;
    let mut dice = Dice(SEED);
    let mut interrupted = 0;
    for kill in 0..KILLS {
        let mut child = start(&home, &format!("question {kill}"));
        thread::sleep(Duration::from_micros(dice.roll(whole)));
        child.kill().unwrap();
        child.wait().unwrap();
        interrupted += usize::from(is_interrupted(&home));
        let checked = model.bodies().len();
        home.run(&[&RUN[..], &["go on"]].concat()).ended(0).answers(&["three places"]);
        transcript::check(&model.bodies()[checked..]);
    }
    assert!(interrupted > 0, "no kill hit a turn");
}

/// Whether the last turn of the only session has no end.
fn is_interrupted(home: &Home) -> bool {
    let list = home.run(&["session", "list", "--output", "json"]).ended(0).json();
    let [session] = list.as_array().unwrap().as_slice() else { panic!("not one session: {list}") };
    let show = ["session", "show", session["id"].as_str().unwrap(), "--output", "json"];
    let shown = home.run(&show).ended(0).json();
    shown["turns"].as_array().unwrap().last().unwrap()["end"].is_null()
}
