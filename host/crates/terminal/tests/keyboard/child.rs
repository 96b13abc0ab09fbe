//! The child process on the terminal: a conversation that echoes its input.

use std::{
    io::{self, IsTerminal, Write},
    path::Path,
    sync::mpsc,
    thread,
    time::Duration,
};

use rustix::process::{ioctl_tiocsctty, setsid};
use sallyport_contract::{ApprovalRequest, ApprovalSubject, RequestedCall, ToolCallContext};
use sallyport_terminal::{
    attach::LocalFiles,
    card::{ApprovalCard, QuestionPosition},
    editor::{
        CardAnswer, CompletionNames, EditorSettings, InitialInput, InputPrompt, KeyStyle, Keyboard,
        LineInput, TypedAheadInput,
    },
    style::{ColourMode, StyledLine},
    typed_ahead::TypedAhead,
};

/// Longest wait for the end of a conversation. Only one that hangs takes longer.
const LIFE_MAX: Duration = Duration::from_secs(180);

/// Long enough for a line to appear before it is withdrawn.
const A_MOMENT: Duration = Duration::from_millis(400);

/// Reads lines and prints what they are, until one ends the program.
pub(crate) fn converse(folder: &Path) {
    thread::spawn(|| {
        thread::sleep(LIFE_MAX);
        say("it hangs\n");
        std::process::exit(1);
    });
    setsid().unwrap();
    if io::stdin().is_terminal() {
        ioctl_tiocsctty(io::stdin()).unwrap();
    }
    // Output of the test harness is not part of the screen.
    say("\x1b[2J\x1b[H");
    let (keyboard, notices) = Keyboard::start(settings(folder), Box::new(show)).unwrap();
    show(&notices);
    keyboard.set_completion_names(vocabulary());
    loop {
        let input = read(&keyboard, message(), InitialInput::Text(String::new()));
        say(&format!("input: {input:?}\n"));
        let LineInput::Line(line) = input else { continue };
        match line.trim() {
            "card" => say(&format!("answer: {:?}\n", ask(&keyboard))),
            "aside" => {
                let aside = InputPrompt::Other { name: "reason".into() };
                say(&format!(
                    "aside: {:?}\n",
                    read(&keyboard, aside, InitialInput::Text("since ".into()))
                ));
            }
            "print" => drop(keyboard.printer().print_lines(&[StyledLine::plain("told meanwhile")])),
            "withdraw" => withdraw(&keyboard),
            "edit" => {
                let begin = InitialInput::ExternalEditor("cold tea".into());
                say(&format!("edited: {:?}\n", read(&keyboard, message(), begin)));
            }
            "stale" => withdraw_too_late(&keyboard),
            "withdraw-card" => withdraw_card(&keyboard),
            "busy" => busy(),
            "ahead" => say(&format!("ahead: {:?}\n", read_ahead(&keyboard))),
            "leave" => return leave(keyboard),
            _ => {}
        }
    }
}

fn message() -> InputPrompt {
    InputPrompt::Message { model: "test-model".into() }
}

fn settings(folder: &Path) -> EditorSettings {
    EditorSettings {
        folder: Some(folder.join("private")),
        keys: if folder.join("vi").exists() { KeyStyle::Vi } else { KeyStyle::Emacs },
        colour: ColourMode::Off,
        editor: std::fs::read_to_string(folder.join("editor")).ok(),
        local_files: LocalFiles { folder: folder.to_owned(), home: None },
    }
}

fn vocabulary() -> CompletionNames {
    CompletionNames {
        tools: vec![("clock.now".into(), "tells the time".into())],
        plugins: vec!["clock".into()],
        models: vec!["quick".into(), "quiet".into(), "clever".into()],
    }
}

fn read(keyboard: &Keyboard, prompt: InputPrompt, begin: InitialInput) -> LineInput {
    let (sender, answers) = mpsc::channel();
    keyboard.read_line(prompt, begin, move |input| sender.send(input).unwrap());
    answers.recv().unwrap()
}

fn card() -> ApprovalCard {
    let request = ApprovalRequest {
        call: RequestedCall {
            context: ToolCallContext::default(),
            tool: "mail.send".parse().unwrap(),
            arguments: format!(r#"{{"body":"{}","to":"a@x"}}"#, "word ".repeat(1000)),
        },
        subject: ApprovalSubject::Call,
        request: None,
        plugin_version: "1.0.0".into(),
        plugin_digest: "0123456789abcdef".into(),
        reason: "the default".into(),
        rule: None,
        capabilities: vec!["send mail".into()],
    };
    ApprovalCard::new(request, Some(QuestionPosition { index: 1, count: 2 }))
}

fn ask(keyboard: &Keyboard) -> CardAnswer {
    let (sender, answers) = mpsc::channel();
    keyboard.ask_card(card(), move |answer| sender.send(answer).unwrap());
    answers.recv().unwrap()
}

fn withdraw(keyboard: &Keyboard) {
    let (sender, answers) = mpsc::channel();
    let begin = InitialInput::Text("half a line".into());
    let ticket = keyboard.read_line(message(), begin, move |input| sender.send(input).unwrap());
    thread::sleep(A_MOMENT);
    keyboard.withdraw_prompt(ticket);
    say(&format!("withdrawn: {:?}\n", answers.recv().unwrap()));
}

/// Withdraws a line that was already read, while the next one is typed.
fn withdraw_too_late(keyboard: &Keyboard) {
    let (sender, answers) = mpsc::channel();
    let again = sender.clone();
    let begin = |text: &str| InitialInput::Text(text.to_owned());
    let first = keyboard.read_line(message(), begin("first"), move |it| sender.send(it).unwrap());
    answers.recv().unwrap();
    keyboard.read_line(message(), begin("second "), move |it| again.send(it).unwrap());
    thread::sleep(A_MOMENT);
    keyboard.withdraw_prompt(first);
    thread::sleep(A_MOMENT);
    say("too late\n");
    say(&format!("stale: {:?}\n", answers.recv().unwrap()));
}

fn withdraw_card(keyboard: &Keyboard) {
    let (sender, answers) = mpsc::channel();
    let ticket = keyboard.ask_card(card(), move |answer| sender.send(answer).unwrap());
    thread::sleep(A_MOMENT * 2);
    keyboard.withdraw_prompt(ticket);
    say(&format!("withdrawn: {:?}\n", answers.recv().unwrap()));
}

/// A turn without questions.
fn busy() {
    say("busy\n");
    thread::sleep(A_MOMENT * 5);
    say("no longer busy\n");
}

/// Shows every state of what is typed ahead, until Ctrl-D.
fn read_ahead(keyboard: &Keyboard) -> TypedAheadInput {
    let (sender, answers) = mpsc::channel();
    let on_change = |typed: &TypedAhead| {
        say(&format!("typed {:?} {:?} {}\n", typed.queued, typed.line, typed.cursor));
    };
    keyboard.read_ahead(TypedAhead::default(), on_change, move |it| sender.send(it).unwrap());
    answers.recv().unwrap()
}

/// Leaves while a line is being typed.
fn leave(keyboard: Keyboard) {
    keyboard.read_line(message(), InitialInput::Text("not finished".into()), |_| ());
    thread::sleep(A_MOMENT);
    drop(keyboard);
    say("\nleft\n");
    // The test reads the modes while the terminal is still open.
    thread::sleep(Duration::from_secs(60));
}

fn show(lines: &[StyledLine]) {
    lines.iter().for_each(|line| say(&format!("{line}\n")));
}

fn say(text: &str) {
    io::stderr().write_all(text.as_bytes()).unwrap();
}
