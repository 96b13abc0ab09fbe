//! Servers that misbehave: each is bounded and told, and the others are unaffected.

use std::fs;

use serde_json::json;

use super::{GRANTED, ends, home};
use crate::support::{Home, McpClient, patience::until_so};

/// How a server behaves, what else is configured, how a call ends, and what it says.
type Behaviour = (&'static str, &'static str, &'static str, &'static [&'static str]);

#[test]
fn however_a_server_behaves_its_call_ends() {
    const SHORT: &str = "time = \"1s\"";
    let rows: [Behaviour; 20] = [
        ("good", "", "completed", &["{\\\"a\\\": 1}"]),
        ("late", "", "completed", &["{\\\"a\\\": 1}"]),
        ("twice", "", "completed", &["{\\\"a\\\": 1}"]),
        ("noise", "", "completed", &["{\\\"a\\\": 1}"]),
        ("schema", "", "completed", &["{\\\"a\\\": 1}"]),
        ("leaves", "", "completed", &["{\\\"a\\\": 1}"]),
        ("sampling", "", "completed", &["it was refused"]),
        ("elicit", "", "failed", &["the server of fake is not available"]),
        ("form", "", "completed", &["decline"]),
        ("page", "", "completed", &["decline"]),
        ("input", "", "completed", &["decline"]),
        ("input-again", "", "failed", &["the server of fake is not available"]),
        ("input-more", "", "failed", &["the server of fake is not available"]),
        ("input-samples", "", "failed", &["it asks for an answer of a model (sampling)"]),
        ("roots", "", "completed", &["it was refused"]),
        ("mute", SHORT, "timed-out", &["1s"]),
        ("fails", "", "failed", &["echo failed: {"]),
        ("refuses", "", "invalid-arguments", &["refused the arguments: no such thing"]),
        ("big", "", "failed", &["2000002 bytes, at most 1048576"]),
        ("dies", "", "failed", &["the server of fake is not available"]),
    ];
    for (mode, more, outcome, words) in rows {
        ends(&home(mode, more), outcome, words);
    }
}

/// The user reads why; the model does not, because the texts are the server's.
#[test]
fn the_user_reads_why_a_server_is_gone() {
    let rows: [(&str, &[&str]); 6] = [
        ("elicit", &["it asked the user more than 8 times in one call"]),
        ("input-again", &["it asked the user more than 8 times in one call"]),
        ("dies", &["code 7", "I give up"]),
        ("flood", &["more than 2000 lines a second"]),
        ("huge", &["a message of more than 8388608 bytes"]),
        ("forks", &["processes and threads"]),
    ];
    for (mode, words) in rows {
        let ran = home(mode, "").run(&["-v", "call", "fake.echo"]).ended(7);
        ran.remarks(&["the server of fake is not available"]).remarks(words);
    }
}

#[test]
fn a_server_that_does_not_begin_is_told_with_its_reason() {
    let rows: [(&str, &str, &[&str]); 4] = [
        ("early", "", &["it ended with code 3", "no such module"]),
        ("silent", "start_time = \"1s\"", &["did not answer within 1s"]),
        ("many", "", &["it lists more than 256 tools"]),
        ("long", "", &["its list of tools has more than 16777216 bytes"]),
    ];
    for (mode, more, words) in rows {
        home(mode, more).run(&["mcp", "check", "fake"]).ended(9).remarks(words);
    }
}

#[test]
fn what_a_server_asks_for_is_refused_and_told() {
    let rows = [
        ("sampling", "the server asked for an answer of a model (sampling), which was refused"),
        ("page", "asked: the server asked: Pay here.: refused: nobody could answer"),
        ("hidden-page", "refused: the address of its page is not a plain http"),
        ("roots", "the server asked for the user's folders (roots), which was refused"),
        ("noise", "not a message to its standard output: \"starting the call"),
    ];
    for (mode, words) in rows {
        home(mode, "").run(&["-v", "call", "fake.echo"]).ended(0).remarks(&[words]);
    }
}

#[test]
fn a_server_reaches_only_what_it_is_granted() {
    let home = home("good", "").user_file("notes/note", "x");
    let program = fs::read_to_string(home.path("server.py")).unwrap();
    let folder = home.user_path("notes").display().to_string();
    let body = format!("return str(os.path.exists('{folder}') and os.listdir('{folder}'))");
    let program = program.replace("return json.dumps(arguments)", &body);
    let home = home.file("server.py", program);
    ends(&home, "failed", &["not available"]);
    let files = format!("process = true\nfs = [{{ path = \"{folder}\", access = \"read\" }}]");
    let home = home.policy(GRANTED.replace("process = true", &files));
    ends(&home, "completed", &["['note']"]);
    let home = home.policy("");
    home.run(&["call", "fake.echo"]).ended(3).remarks(&["may not run as a program"]);
}

/// One server that dies or floods leaves the others of the same host as they are.
#[test]
fn the_others_are_unaffected() {
    for mode in ["dies", "flood", "huge", "mute"] {
        let home = home(mode, "time = \"1s\"");
        let config = fs::read_to_string(home.path("sallyport.toml")).unwrap();
        let other = config.replace("[mcp.fake]", "[mcp.other]").replace(mode, "good");
        let policy = format!("{GRANTED}{}", GRANTED.replace("fake", "other"));
        let home = home.config(format!("{config}{other}")).policy(policy);
        let mut client = McpClient::greeted(&home, &[], &json!({}));
        let failed = client.call("fake__echo", &json!({}));
        assert_eq!(failed["isError"], true, "{failed}");
        let answered = client.call("other__echo", &json!({}));
        assert_eq!(answered["content"][0]["text"], "{}", "{answered}");
    }
}

/// The number of processes with this variable.
pub(super) fn alive(mark: &str) -> usize {
    let environment = |entry: fs::DirEntry| fs::read(entry.path().join("environ")).ok();
    let processes = fs::read_dir("/proc").unwrap().flatten().filter_map(environment);
    processes.filter(|bytes| String::from_utf8_lossy(bytes).contains(mark)).count()
}

#[test]
fn no_process_of_a_server_is_left_however_the_host_ends() {
    let marked = |mode: &str| -> (Home, String) {
        let home = home(mode, "");
        let folder = home.folder.path().file_name().unwrap().to_string_lossy().replace('.', "_");
        let mark = format!("MARK_{folder}");
        let config = fs::read_to_string(home.path("sallyport.toml")).unwrap();
        (home.config(format!("{config}env = {{ {mark} = \"1\" }}\n")), mark)
    };
    for mode in ["good", "leaves", "stays"] {
        let (home, mark) = marked(mode);
        ends(&home, "completed", &[]);
        until_so("the end of all processes", || alive(&mark) == 0);
    }
    let (home, mark) = marked("mute");
    let mut killed = home.start(&["call", "fake.echo"]);
    until_so("the server", || alive(&mark) > 0);
    killed.kill().unwrap();
    killed.wait().unwrap();
    until_so("the end of all processes", || alive(&mark) == 0);
}
