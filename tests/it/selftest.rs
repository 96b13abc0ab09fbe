//! `sallyport selftest`: everyday sentences through the whole line.

use serde_json::Value;

use crate::support::{Home, Ran};

/// The plugins that the list of the program is about.
const PLUGINS: [&str; 5] = ["clock", "files", "open-website", "system-info", "timer"];

/// Runs a list of a test.
fn run(home: &Home, list: &str, more: &[&str]) -> Ran {
    let path = home.user_path("list.toml");
    std::fs::write(&path, list).unwrap();
    let path = path.to_str().unwrap().to_owned();
    home.run(&[&["selftest", "--file", &path], more].concat())
}

fn verdicts(told: &Value) -> Vec<&str> {
    let sentences = told["sentences"].as_array().unwrap();
    sentences.iter().map(|row| row["verdict"].as_str().unwrap()).collect()
}

#[test]
fn everyday_sentences_come_out_as_they_should() {
    let ran = Home::new().plugins(&PLUGINS).run(&["selftest", "--output", "json"]);
    let told = ran.json();
    assert_eq!(told["failed"], 0, "{told:#}");
    assert_eq!(told["audit"]["whole"], true);
    assert!(told["passed"].as_u64().unwrap() >= 18, "{told:#}");
    ran.ended(0);
}

/// With every plugin of a release, `read /etc/passwd` could also mean one that looks at the sandbox.
#[test]
fn a_plugin_that_the_list_does_not_name_fails_no_sentence() {
    let home = Home::new().plugins(&PLUGINS).plugins(&["sandbox-fs", "webhook"]);
    let told = home.run(&["selftest", "--output", "json"]).ended(0).json();
    assert_eq!(told["failed"], 0, "{told:#}");
}

#[test]
fn a_plugin_that_is_not_there_is_passed_over_for_all_to_see() {
    let home = Home::new().plugins(&["clock"]);
    let ran = home.run(&["selftest"]).ended(0);
    let ran = ran.answers(&["passed  what time is it?", "clock.get_time", "It is "]);
    ran.answers(&["skipped read /notes/todo.txt", "there is no plugin \"files\"", " 0 failed, "]);
}

#[test]
fn a_list_of_which_nothing_ran_fails() {
    let ran = Home::new().run(&["selftest", "--file", "list.toml"]).ended(3);
    ran.remarks(&["list.toml"]);
    let list = "[[sentence]]\nsay = 'what time is it?'\ntool = 'clock.get_time'\n";
    run(&Home::new(), list, &[]).ended(1).remarks(&["none of the plugins", "--plugin-dir"]);
}

#[test]
fn what_comes_out_otherwise_is_a_failure() {
    let row = |say: &str, rest: &str| format!("[[sentence]]\nsay = '{say}'\n{rest}\n");
    let time = "tool = 'clock.get_time'";
    let list = [
        row("what time is it?", time),
        row("what time is it?", ""),
        row("what time is it?", "tool = 'clock.get_date'"),
        row("tell me something nice", time),
        row("what time is it?", "tool = 'files.read'"),
        row("what time is it in Tokyo?", &format!("{time}\narguments = {{ timezone = 'Rome' }}")),
        row("what time is it?", &format!("{time}\noutcome = 'denied'")),
        row("what time is it?", &format!("{time}\nanswer = 'tea'")),
    ];
    let home = Home::new().plugins(&["clock", "files"]);
    let ran = run(&home, &list.concat(), &["--output", "json"]).ended(1);
    let told = ran.json();
    assert_eq!(verdicts(&told)[0], "passed");
    assert_eq!(verdicts(&told)[1..], ["failed"; 7], "{told:#}");
    let why = |row: usize| told["sentences"][row]["why"].as_str().unwrap().to_owned();
    assert!(why(2).contains("has no tool \"get_date\""), "{told:#}");
    assert!(why(4).contains("files.read alone should be called, clock.get_time was"), "{told:#}");
}

#[test]
fn a_list_brings_its_own_policy_and_files() {
    let list = r#"
        policy = '''
            [plugin.files]
            fs = [{ path = "{folder}/a", mount = "/a", access = "read" }]
        '''
        [files]
        "a/b/c.txt" = "the words"
        [[sentence]]
        say = "read /a/b/c.txt"
        tool = "files.read"
        answer = "the words"
        [[sentence]]
        say = 'write "x" to /a/y.txt'
        tool = "files.write"
        outcome = "denied"
    "#;
    let home = Home::new().plugins(&["files"]).policy("[plugin.files]\nfs = []\n");
    run(&home, list, &[]).ended(0).answers(&["2 passed, 0 failed, 0 skipped"]);
    run(&home, list, &["--show-policy"]).ended(0).answers(&["[plugin.files]", "/a\", mount"]);
    assert!(!home.path("state").exists(), "nothing of the user's own is touched");
    assert!(!home.path("sallyport.lock").exists());
}

#[test]
fn a_plugin_that_cannot_be_used_is_a_failure() {
    let home = Home::new().plugins(&["clock"]).component("files", "name = \"files\"", b"\0asm");
    let list = "[[sentence]]\nsay = 'read /a'\ntool = 'files.read'\n";
    run(&home, list, &[]).ended(1).answers(&["failed  read /a", "plugin.toml"]);
}

#[test]
fn a_list_that_cannot_be_laid_out_is_told_with_its_file() {
    let home = Home::new().plugins(&["clock"]);
    let list = "[files]\na = ''\n'a/b' = ''\n[[sentence]]\nsay = 'hi'\n";
    run(&home, list, &[]).ended(1).remarks(&["cannot write the list's a/b: "]);
}

/// A device gives as much as anybody takes.
#[test]
fn a_list_without_an_end_is_not_read() {
    let home = Home::new().plugins(&["clock"]);
    home.run(&["selftest", "--file", "/dev/zero"])
        .ended(3)
        .remarks(&["a device, not a regular file"]);
}
