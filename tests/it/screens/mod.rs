//! What a user sees, as whole screens at three sizes: for each thing that once went wrong at a
//! terminal, the scenario that shows it, and the screen as it is now. Each snapshot's description
//! says what was shown before.
//!
//! What no screen can show is elsewhere: a tool whose `Err` counted as success does not compile
//! (`sdk/rust/tests/returns.rs`), and the user of a call is data (`principals.rs`).
//! `INSTA_UPDATE=always` writes the screens anew; read them before you commit them.

mod cards;
mod chats;
mod commands;
mod waits;

use std::rc::Rc;

use crate::support::{Home, OpenAi, Person, Reply, patience::until_so};

/// The sizes of terminals, as rows and columns.
const SIZES: [(u16, u16); 3] = [(15, 40), (24, 80), (40, 120)];

/// What stands in front of a line that is typed.
const PROMPT: &str = "openai/m>";

/// Ctrl-C.
const INTERRUPT: &str = "\u{3}";

/// What a person does at a terminal.
#[derive(Clone, Copy)]
enum Step {
    /// Waits until this is on the screen, wherever its lines break.
    Sees(&'static str),
    /// Waits until the last line begins with this.
    SeesLast(&'static str),
    /// Types keys.
    Types(&'static str),
}

/// One thing that once went wrong, and the way to it.
struct Scenario {
    name: &'static str,
    /// What was shown before.
    before: &'static str,
    args: &'static [&'static str],
    steps: &'static [Step],
    /// The exit code, if the program ends after the steps.
    code: Option<i32>,
}

/// A home for the program, and the model that it talks to.
struct Stage {
    home: Home,
    model: Option<OpenAi>,
}

impl Stage {
    fn new(home: Home) -> Rc<Self> {
        Rc::new(Self { home, model: None })
    }

    /// A home with a model that follows a script.
    fn with_model(home: Home, script: Vec<Reply>) -> Rc<Self> {
        let model = OpenAi::start(script);
        let home = home.env("OPENAI_BASE_URL", model.base_url()).env("OPENAI_API_KEY", "k");
        Rc::new(Self { home, model: Some(model) })
    }
}

/// Compares the screens of a scenario with those on record.
#[track_caller]
fn check(scenario: &Scenario, stage: impl Fn() -> Rc<Stage>) {
    let screens = SIZES.map(|(rows, columns)| {
        let stage = stage();
        let mut person = Person::start_sized(&stage.home, scenario.args, rows, columns);
        scenario.steps.iter().for_each(|step| step.go(&mut person));
        if let Some(code) = scenario.code {
            assert_eq!(person.ends(), code, "{}: {}", scenario.name, person.screen());
        }
        format!("{columns} × {rows}\n{}\n", normalised(&person.rows(), &stage))
    });
    let mut settings = insta::Settings::clone_current();
    settings.set_description(format!("before: {}", scenario.before));
    settings.set_omit_expression(true);
    settings.set_prepend_module_to_snapshot(false);
    settings.bind(|| insta::assert_snapshot!(scenario.name, screens.join("\n")));
}

impl Step {
    #[track_caller]
    fn go(self, person: &mut Person) {
        match self {
            Self::Types(keys) => person.types(keys),
            Self::Sees(text) => {
                let is_there =
                    |person: &Person| squeezed(&person.screen()).contains(&squeezed(text));
                wait(text, person, is_there);
            }
            Self::SeesLast(text) => wait(text, person, |person| {
                person.screen().lines().next_back().is_some_and(|line| line.starts_with(text))
            }),
        }
    }
}

#[track_caller]
fn wait(text: &str, person: &Person, is_there: impl Fn(&Person) -> bool) {
    let begin = std::time::Instant::now();
    until_so(text, || {
        let is_late = begin.elapsed() > super::support::patience::PATIENCE / 2;
        assert!(!is_late, "no {text:?} on\n{}", person.screen());
        is_there(person)
    });
}

/// A text without its white space, which differs with the width of the terminal.
fn squeezed(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

/// A screen without what differs from run to run: the name of the home, ports, times, digests,
/// sizes of builds and the ids of sessions. What takes its place has the same width, or ends its
/// line.
fn normalised(screen: &str, stage: &Stage) -> String {
    let folder = stage.home.folder.path().to_string_lossy().into_owned();
    let (_, random) = folder.rsplit_once('-').unwrap();
    let mut screen = screen.replace(random, &"X".repeat(random.len()));
    if let Some(model) = &stage.model {
        let url = model.base_url();
        let port = url.rsplit(':').next().and_then(|rest| rest.split('/').next()).unwrap();
        screen = screen.replace(port, &"9".repeat(port.len()));
    }
    let mut lines: Vec<String> = Vec::new();
    for line in screen.lines() {
        match lines.last_mut().filter(|last| is_call(last) && line.starts_with("  ")) {
            // The time of a call may have moved to a line of its own.
            Some(last) => *last = format!("{last} {}", line.trim_start()),
            None => lines.push(line.to_owned()),
        }
    }
    lines.iter().map(|line| normalised_line(line)).collect::<Vec<_>>().join("\n")
}

fn is_call(line: &str) -> bool {
    line.starts_with(['✓', '✗'])
}

fn normalised_line(line: &str) -> String {
    if line.starts_with(|c| ('\u{2800}'..='\u{28ff}').contains(&c)) {
        let words = line.split(' ').nth(1).unwrap_or_default();
        return format!("⠿ {words} …");
    }
    if line.starts_with("size  ") {
        return line.replace(|c: char| c.is_ascii_digit(), "0");
    }
    let line = match line.rsplit_once(" · ") {
        Some((head, time)) if is_call(line) && time.ends_with('s') => format!("{head} · TIME"),
        _ => line.to_owned(),
    };
    line.split_inclusive([' ', '"', '…']).map(normalised_word).collect()
}

fn normalised_word(word: &str) -> String {
    let bare = word.trim_end_matches([' ', '"', '…']);
    let is_hex = bare.len() >= 11 && bare.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-');
    let is_clock = bare.len() == 5 && bare.as_bytes()[2] == b':';
    let is_time = (bare.len() >= 8 || is_clock)
        && bare.bytes().all(|b| b.is_ascii_digit() || b"-:Z".contains(&b));
    let is_digit = |c: char| c.is_ascii_digit();
    match (is_time, is_hex) {
        (true, _) => word.replace(is_digit, "0"),
        (_, true) => word.replace(|c: char| c.is_ascii_hexdigit(), "d"),
        _ => word.to_owned(),
    }
}
