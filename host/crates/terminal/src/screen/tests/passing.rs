//! Tests of output without a movable cursor.

use super::*;

#[test]
fn where_codes_are_obeyed() {
    let rows = [
        (true, Some("xterm-256color"), None, Look::Live(Colour::On)),
        (true, Some("xterm"), Some(""), Look::Live(Colour::On)),
        (true, Some("xterm"), Some("1"), Look::Live(Colour::Off)),
        (true, Some("dumb"), None, Look::Passing),
        (true, Some(""), None, Look::Passing),
        (false, Some("xterm"), None, Look::Passing),
        (false, None, Some("1"), Look::Passing),
    ];
    for (is_terminal, term, no_color, want) in rows {
        assert_eq!(Look::of(is_terminal, term, no_color), want, "{term:?} {no_color:?}");
    }
}

#[test]
fn text_passes_as_it_comes() {
    let mut screen = Screen::new(Vec::new(), size(10, 5), Look::Passing);
    let mut check = |step: &dyn Fn(&mut Screen<Vec<u8>>) -> io::Result<()>, want: &str| {
        step(&mut screen).unwrap();
        assert_eq!(String::from_utf8(std::mem::take(&mut screen.out)).unwrap(), want);
    };
    check(&|screen| screen.status(thinking()), "");
    check(&|screen| screen.tick(Duration::from_secs(9)), "");
    check(&|screen| screen.text("# A **long** li"), "# A **long** li");
    check(&|screen| screen.text("ne\x1b[2J\r"), "ne\\u{1b}[2J");
    check(&|screen| screen.text("\nnext\rx"), "\nnext\\rx");
    check(&|screen| screen.text("\r"), "");
    check(&|screen| screen.text("y"), "\\ry");
    check(&|screen| screen.resize(size(5, 5)), "");
    check(&|screen| screen.note("note\ntwo"), "\nnote\ntwo\n");
    check(&|screen| screen.text("more"), "more");
    check(&|screen| screen.reasoning("why"), "\n\nwhy");
    check(&|screen| screen.settle(), "\n");
    check(&|screen| screen.settle(), "");
    check(&|screen| screen.text("end\n"), "end\n");
    check(&|screen| screen.finish(), "");
}
