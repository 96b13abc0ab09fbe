//! The values of secrets: put away, looked after, and never shown.

use std::{
    fs::{self, Permissions},
    io::Write,
    os::unix::fs::PermissionsExt,
    path::Path,
};

use rustix::process::Signal;
use serde_json::json;

use crate::support::{Home, Terminal};

const VALUE: &str = "s3cr3t-Tok3n_9";

const POLICY: &str = "[secret.filed]\nfile = \"~/values/filed\"\n[secret.given]\nenv = \"GIVEN\"\n";

fn home() -> Home {
    Home::new().policy(POLICY)
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_value_is_put_into_a_file_of_its_own_and_taken_away() {
    let home = home().env("GIVEN", VALUE);
    let set = home.run_with_input(&["secret", "set", "filed"], &format!("{VALUE}\n")).ended(0);
    assert_eq!(set.hides(&[VALUE]).stdout, "");
    let file = home.user_path("values/filed");
    assert_eq!((fs::read_to_string(&file).unwrap().as_str(), mode(&file)), (VALUE, 0o600));
    assert_eq!(mode(file.parent().unwrap()), 0o700);
    let ready = ["filed", "ready", "values/filed", "given", "variable GIVEN"];
    home.run(&["secret", "list"]).ended(0).answers(&ready).hides(&[VALUE, "no value"]);
    home.run(&["secret", "check"]).ended(0).answers(&["filed is ready", "given is ready"]);
    home.run(&["secret", "remove", "filed"]).ended(0).remarks(&["Removed the value"]);
    assert!(!file.exists());
    home.run(&["secret", "remove", "filed"]).ended(3).remarks(&["it is not there"]);
}

#[test]
fn secrets_are_listed_for_programs() {
    let home = home().env("GIVEN", VALUE);
    let list = home.run(&["secret", "list", "--output", "json"]).ended(0).hides(&[VALUE]).json();
    let given = json!({ "name": "given", "source": "env", "place": "GIVEN", "ready": true, "problem": null });
    assert_eq!(list[1], given);
    assert_eq!((&list[0]["source"], &list[0]["ready"]), (&json!("file"), &json!(false)));
    assert!(list[0]["problem"].as_str().unwrap().ends_with("it is not there"), "{list}");
    Home::new().run(&["secret", "list"]).ended(0).remarks(&["names no secret"]);
}

#[test]
fn every_secret_without_a_value_is_told_with_its_remedy() {
    let home = home();
    home.run(&["secret", "check"]).ended(3).remarks(&[
        "the secret filed cannot be read",
        "sallyport secret set filed",
        "the secret given cannot be read",
        "set GIVEN before",
    ]);
    home.run(&["secret", "check", "given"]).ended(3).hides(&["filed"]);
    let home = home.user_file("values/filed", VALUE);
    fs::set_permissions(home.user_path("values/filed"), Permissions::from_mode(0o644)).unwrap();
    let open = home.run(&["secret", "check", "filed"]).ended(3).hides(&[VALUE]);
    open.remarks(&["others may open it (mode 644)", "chmod 600"]);
}

#[test]
fn what_cannot_be_a_value_changes_nothing() {
    let home = home();
    home.run_with_input(&["secret", "set", "filed"], VALUE).ended(0);
    let long = "x".repeat(70_000);
    for (input, words) in [("", "it is empty"), ("\n", "it is empty"), (&long, "longer than")] {
        home.run_with_input(&["secret", "set", "filed"], input).ended(2).remarks(&[words]);
    }
    for (args, code, words) in [
        (&["secret", "set", "given"][..], 3, "not this program's to change"),
        (&["secret", "remove", "given"], 3, "not this program's to change"),
        (&["secret", "set", "other"], 3, "[secret.other]"),
        (&["secret", "remove", "other"], 3, "[secret.other]"),
        (&["secret", "check", "other"], 3, "[secret.other]"),
        (&["secret", "set", "filed", "in-an-argument"], 2, "unexpected argument"),
        (&["secret", "set"], 2, "<NAME>"),
    ] {
        home.run_with_input(args, "another-value").ended(code).remarks(&[words]);
    }
    assert_eq!(fs::read_to_string(home.user_path("values/filed")).unwrap(), VALUE);
}

#[test]
fn a_value_that_is_too_short_to_be_recognised_is_told() {
    let home = home().env("GIVEN", "1234");
    let short = &["shorter than 6 bytes"];
    home.run_with_input(&["secret", "set", "filed"], "12345").ended(0).remarks(short);
    home.run(&["secret", "check"]).ended(0).remarks(short).hides(&["1234"]);
}

#[test]
fn no_plugin_is_granted_the_folder_of_a_value() {
    for (folder, code) in [("~/values", 3), ("~/other", 0)] {
        let grant = format!("{{ path = \"{folder}\", mount = \"/x\", access = \"read\" }}");
        let policy = format!("{POLICY}[plugin.x]\nfs = [{grant}]\n");
        let home = home().user_file("other/file", "").policy(policy);
        home.run_with_input(&["policy", "check"], "").ended(code);
    }
}

#[test]
fn what_is_typed_at_a_terminal_is_not_shown() {
    let home = home();
    let mut terminal = Terminal::start(&home, &["secret", "set", "filed"]);
    terminal.read_to("not shown");
    assert!(!terminal.shows_what_is_typed());
    writeln!(terminal.outer, "{VALUE}").unwrap();
    let shown = terminal.read_to("filed is in");
    assert!(!shown.contains(VALUE), "{shown}");
    assert!(terminal.ends().success());
    assert!(terminal.shows_what_is_typed());
    assert_eq!(fs::read_to_string(home.user_path("values/filed")).unwrap(), VALUE);
}

#[test]
fn a_line_that_a_terminal_would_cut_is_refused() {
    let home = home();
    let mut terminal = Terminal::start(&home, &["secret", "set", "filed"]);
    terminal.read_to("not shown");
    writeln!(terminal.outer, "{}", "x".repeat(4200)).unwrap();
    terminal.read_to("too long for a terminal line");
    assert_eq!(terminal.ends().code(), Some(2));
    assert!(!home.user_path("values/filed").exists());
}

#[test]
fn an_interrupted_question_leaves_the_terminal_as_it_was() {
    for signal in [Signal::INT, Signal::TERM] {
        let home = home();
        let mut terminal = Terminal::start(&home, &["secret", "set", "filed"]);
        terminal.read_to("not shown");
        write!(terminal.outer, "half of it").unwrap();
        terminal.send(signal);
        assert_eq!(terminal.ends().code(), Some(130));
        assert!(terminal.shows_what_is_typed());
        assert!(!home.user_path("values/filed").exists());
    }
}
