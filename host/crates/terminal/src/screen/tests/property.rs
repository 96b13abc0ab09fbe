//! Properties of every text, however it arrives.

use proptest::prelude::*;

use super::*;

const PIECES: [&str; 24] = [
    "word ",
    "another ",
    "\n",
    "\n\n",
    "- ",
    "1. ",
    "> ",
    "```\n",
    "**",
    "`",
    "| a | b |\n|---|---|\n",
    "| x | yy |\n",
    "# ",
    "    ",
    "漢字",
    "，",
    "longlonglonglongword ",
    "[a](b) ",
    "---\n",
    "<b>",
    "\x1b[2J",
    "\t",
    "e\u{301}",
    "\u{200b}",
];

/// An operation on a screen.
#[derive(Debug, Clone)]
enum Step {
    Text(&'static str),
    Reasoning(&'static str),
    Note,
    Status(bool),
    Calls(usize),
    Typed(&'static str),
    Tick(u64),
    Resize(u16, u16),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => prop::sample::select(PIECES.as_slice()).prop_map(Step::Text),
        1 => prop::sample::select(PIECES.as_slice()).prop_map(Step::Reasoning),
        1 => Just(Step::Note),
        1 => any::<bool>().prop_map(Step::Status),
        1 => (0usize..9).prop_map(Step::Calls),
        1 => prop::sample::select(PIECES.as_slice()).prop_map(Step::Typed),
        2 => (0u64..5000).prop_map(Step::Tick),
        1 => (1u16..60, 1u16..20).prop_map(|(columns, rows)| Step::Resize(columns, rows)),
    ]
}

fn take(screen: &mut Terminal, step: &Step) {
    match step {
        Step::Text(piece) => screen.show_answer(piece).unwrap(),
        Step::Reasoning(piece) => screen.show_reasoning(piece).unwrap(),
        Step::Note => screen.print_note("a note").unwrap(),
        Step::Status(shown) => screen.set_status(thinking().filter(|_| *shown)).unwrap(),
        Step::Calls(count) => {
            let call = RunningCall { text: "a.b".to_owned(), detail: None, since: Duration::ZERO };
            screen.set_calls(vec![call; *count]).unwrap();
        }
        Step::Typed(piece) => {
            let mut typed = TypedAhead { queued: vec![(*piece).to_owned()], ..Default::default() };
            typed.set_line(piece.repeat(3));
            screen.set_typed_ahead(typed).unwrap();
        }
        Step::Tick(now) => screen.advance_time(Duration::from_millis(*now)).unwrap(),
        Step::Resize(columns, rows) => resize(screen, *columns, *rows),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn in_the_end_the_whole_text_stands_there_once(
        pieces in prop::collection::vec(prop::sample::select(PIECES.as_slice()), 0..60),
        steps in prop::collection::vec(0u64..3, 60),
        columns in 8u16..60,
        rows in 1u16..12,
    ) {
        let mut screen = terminal(columns, rows);
        screen.set_status(thinking()).unwrap();
        for (piece, step) in pieces.iter().zip(steps) {
            screen.show_answer(piece).unwrap();
            screen.advance_time(Duration::from_millis(step * 100)).unwrap();
        }
        screen.finish().unwrap();
        prop_assert_eq!(everything(&mut screen), rendered(&pieces.concat(), columns));
    }

    #[test]
    fn whatever_happens_what_was_there_before_stays(
        steps in prop::collection::vec(step(), 0..60),
    ) {
        let mut screen = terminal(30, 10);
        screen.print_note("$ first").unwrap();
        screen.print_note("$ second").unwrap();
        for step in &steps {
            take(&mut screen, step);
        }
        screen.finish().unwrap();
        let rows = everything(&mut screen);
        // A terminal that does not wrap rows again loses the part cut by a narrow window.
        prop_assert!(rows[0].starts_with('$') && rows[1].starts_with('$'), "{rows:?}");
        prop_assert_eq!(screen.out.screen().cursor_position().1, 0);
    }
}
