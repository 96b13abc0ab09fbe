//! Tests of output without a movable cursor.

use super::*;

#[test]
fn where_codes_are_obeyed() {
    let rows = [
        (true, Some("xterm-256color"), None, OutputCapabilities::Live(ColourMode::On)),
        (true, Some("xterm"), Some(""), OutputCapabilities::Live(ColourMode::On)),
        (true, Some("xterm"), Some("1"), OutputCapabilities::Live(ColourMode::Off)),
        (true, Some("dumb"), None, OutputCapabilities::Plain),
        (true, Some(""), None, OutputCapabilities::Plain),
        (false, Some("xterm"), None, OutputCapabilities::Plain),
        (false, None, Some("1"), OutputCapabilities::Plain),
    ];
    for (is_terminal, term, no_color, want) in rows {
        assert_eq!(
            OutputCapabilities::from_environment(is_terminal, term, no_color),
            want,
            "{term:?} {no_color:?}"
        );
    }
}

#[test]
fn text_passes_as_it_comes() {
    let mut screen = TerminalScreen::new(Vec::new(), size(10, 5), OutputCapabilities::Plain);
    let mut check = |step: &dyn Fn(&mut TerminalScreen<Vec<u8>>) -> io::Result<()>, want: &str| {
        step(&mut screen).unwrap();
        assert_eq!(String::from_utf8(std::mem::take(&mut screen.out)).unwrap(), want);
    };
    check(&|screen| screen.set_status(thinking()), "");
    check(&|screen| screen.advance_time(Duration::from_secs(9)), "");
    check(&|screen| screen.show_answer("# A **long** li"), "# A **long** li");
    check(&|screen| screen.show_answer("ne\x1b[2J\r"), "ne\\u{1b}[2J");
    check(&|screen| screen.show_answer("\nnext\rx"), "\nnext\\rx");
    check(&|screen| screen.show_answer("\r"), "");
    check(&|screen| screen.show_answer("y"), "\\ry");
    check(&|screen| screen.resize(size(5, 5)), "");
    check(&|screen| screen.print_note("note\ntwo"), "\nnote\ntwo\n");
    check(&|screen| screen.show_answer("more"), "more");
    check(&|screen| screen.show_reasoning("why"), "\n\nwhy");
    check(&|screen| screen.finish_text(), "\n");
    check(&|screen| screen.finish_text(), "");
    check(&|screen| screen.show_answer("end\n"), "end\n");
    check(&|screen| screen.finish(), "");
}
