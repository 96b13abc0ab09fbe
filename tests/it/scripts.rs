//! Scripts as plugins: folders with a definition and a program, as they are, behind walls.

use std::{
    fs,
    io::Write as _,
    net::TcpListener,
    os::unix::fs::PermissionsExt,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::support::{
    Home, OpenAi, Person, Reply,
    home::{finish, guest, manifest, repository},
};

/// Lets the plugin run, without a question.
const GRANTED: &str =
    "[plugin.tool]\nprocess = true\n\n[[rule]]\ntool = \"tool.*\"\ndecision = \"allow\"\n";

/// How long a test waits for what has to happen soon, on a machine that is busy.
const SOON: Duration = Duration::from_secs(30);

/// A definition of the tool `tool`, with these keys besides or in place of the usual ones.
fn definition(keys: Value) -> String {
    let mut all = json!({ "name": "tool", "description": "Does it.", "parameters": {} });
    all.as_object_mut().unwrap().extend(keys.as_object().cloned().unwrap());
    all.to_string()
}

/// A home with a script in the folder `tool`.
fn home(program: &str, text: impl AsRef<[u8]>, definition: &str) -> Home {
    let home = Home::new().file("plugins/tool/definition.json", definition);
    let home = home.file(&format!("plugins/tool/{program}"), text);
    let path = home.path(&format!("plugins/tool/{program}"));
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    home
}

/// A home with a shell script that may run.
fn shell(body: &str) -> Home {
    home("run.sh", format!("#!/bin/sh\n{body}\n"), &definition(json!({}))).policy(GRANTED)
}

/// A home with a Python program that may run.
fn python(body: &str) -> Home {
    home("run.py", format!("#!/usr/bin/env python3\n{body}\n"), &definition(json!({})))
        .policy(GRANTED)
}

/// Whether a program of the system is there. A test that needs it says so when it is not.
fn is_there(program: &str) -> bool {
    let is_there =
        ["/usr/bin", "/bin"].iter().any(|folder| Path::new(folder).join(program).exists());
    if !is_there {
        let words = format!("skipped: {program} is not installed\n");
        std::io::stderr().write_all(words.as_bytes()).unwrap();
    }
    is_there
}

/// A call of the tool ends like this.
#[track_caller]
fn ends(home: &Home, outcome: &str, words: &[&str]) {
    let (told, _) = home.call("tool.tool", &json!({ "a": 1 }));
    assert_eq!(told["outcome"], outcome, "{told}");
    let text = told["result"].to_string();
    for word in words {
        assert!(text.contains(word), "no {word:?} in {text}");
    }
}

#[test]
fn what_a_script_prints_and_how_it_ends_is_the_outcome() {
    let rows: [(&str, &str, &[&str]); 10] = [
        ("cat", "completed", &["{\"a\":1}"]),
        ("echo '[1, \"two\"]'; echo a remark >&2", "completed", &["[1,\"two\"]"]),
        ("echo hello", "failed", &["gave no answer", "no JSON", "hello"]),
        ("exit 0", "failed", &["printed nothing"]),
        ("echo '{\"a\":1,\"a\":2}'", "failed", &["stands twice"]),
        ("echo '{}'; echo '{}'", "failed", &["no JSON"]),
        (
            "echo '{}'; echo there is no such thing >&2; exit 3",
            "failed",
            &["exit code 3", "no such"],
        ),
        ("printf '\\033[31mred' >&2; exit 1", "failed", &["\\\\u{1b}[31mred"]),
        ("exit 2", "failed", &["exit code 2", "without a message"]),
        ("kill -SEGV $$", "failed", &["signal 11"]),
    ];
    for (body, outcome, words) in rows {
        ends(&shell(body), outcome, words);
    }
}

#[test]
fn a_long_complaint_is_cut_to_its_end() {
    let home = shell("i=0; while [ $i -lt 2000 ]; do echo line $i >&2; i=$((i+1)); done; exit 1");
    let (told, _) = home.call("tool.tool", &json!({}));
    let error = told["result"]["error"].as_str().unwrap();
    assert!(error.contains("line 1999") && !error.contains("line 99\n"), "{error}");
    assert!(error.len() < 2500, "{}", error.len());
}

#[test]
fn the_shorter_of_two_times_holds() {
    let slow = "#!/bin/sh\nsleep 60\n";
    let own = home("run.sh", slow, &definition(json!({ "timeout": 0.3 }))).policy(GRANTED);
    ends(&own, "timed-out", &["300ms"]);
    let policy = GRANTED.replace("process = true", "process = true\nlimits = { time = \"200ms\" }");
    let granted = home("run.sh", slow, &definition(json!({ "timeout": 50 }))).policy(policy);
    ends(&granted, "timed-out", &["200ms"]);
    let ran = granted.run(&["-v", "call", "tool.tool"]);
    ran.remarks(&["its definition asks for 50s", "limits.time of the policy is 200ms"]);
}

#[test]
fn without_the_grant_nothing_runs_and_the_text_of_the_grant_is_shown() {
    let mark = "plugins/tool/mark";
    let home = shell("touch mark").policy("");
    let ran = home.run(&["call", "tool.tool"]).ended(3);
    ran.remarks(&[
        "tool may not run as a program of this machine",
        "sallyport policy grant tool --requested",
    ]);
    assert!(!home.path(mark).exists());
    home.run(&["policy", "check"]).ended(0).answers(&["cannot run", "tool: deny (its policy does"]);
    let explained = home.run(&["policy", "explain", "tool.tool"]).ended(0);
    explained.remarks(&["the call would fail before", "does not grant \"process\""]);
    let denied = home.policy("[plugin.tool]\nprocess = false\n");
    denied.run(&["call", "tool.tool"]).ended(3).hides(&["process = true"]);
    denied.run(&["audit", "show"]).ended(0).answers(&["tool.tool"]);
}

#[test]
fn a_script_that_may_not_run_waits_for_its_grant_at_a_terminal() {
    let rule = GRANTED.replace("[plugin.tool]\nprocess = true\n", "");
    let home = shell("echo '\"it ran\"'").policy(&rule);
    for (answer, code, words) in
        [("no, not today", 3, "the user said no: not today"), ("y", 0, "it ran")]
    {
        let mut person = Person::start(&home, &["call", "tool.tool"]);
        person.sees("grants     process = true");
        person.sees("allow? [y]es, once");
        person.types(&format!("{answer}\r"));
        person.sees(words);
        assert_eq!(person.ends(), code, "{}", person.screen());
        assert_eq!(fs::read_to_string(home.path("policy.toml")).unwrap(), rule);
    }
    let audit = home.run(&["audit", "show"]).ended(0);
    audit.answers(&["yes, once, process = true"]);
}

#[test]
fn a_grant_asks_unless_a_rule_agrees() {
    let home = shell("echo '{}'").policy("[plugin.tool]\nprocess = true\n");
    home.run(&["call", "tool.tool"]).ended(6).remarks(&["no user is connected"]);
}

#[test]
fn what_ran_is_written_down() {
    let home = shell("echo '{}'");
    home.run(&["call", "tool.tool"]).ended(0);
    let audit = home.run(&["audit", "show", "--output", "json"]).ended(0);
    audit.answers(&["process", "run.sh: it ended with code 0"]);
}

#[test]
fn a_script_has_the_files_and_variables_that_its_policy_names() {
    let body = "cat \"$FOLDER/note\" >/dev/null && echo '\"read\"' || echo '\"refused\"'";
    let home = shell(body).user_file("notes/note", "x");
    let folder = home.user_path("notes").display().to_string();
    let home = home.env("FOLDER", &folder);
    let granted =
        |keys: &str| GRANTED.replace("process = true", &format!("process = true\n{keys}"));
    let files = format!("fs = [{{ path = \"{folder}\", access = \"read\" }}]");
    let variable = "env = [\"FOLDER\"]";
    ends(&home, "completed", &["refused"]);
    let home = home.policy(granted(variable));
    ends(&home, "completed", &["refused"]);
    let home = home.policy(granted(&format!("{variable}\n{files}")));
    ends(&home, "completed", &["read"]);
}

#[test]
fn a_definition_becomes_a_plugin_with_one_tool() {
    let keys = json!({ "name": "Disk.Usage", "author": "me" });
    let home = home("run.sh", "#!/bin/sh\ncat", &definition(keys));
    home.run(&["tool", "list"]).ended(0).answers(&["disk_usage.Disk.Usage"]);
    home.run(&["plugin", "show", "disk_usage"]).ended(0).answers(&[
        "script",
        "Does it.",
        "run.sh",
        "run as a program",
        "\"author\" is ignored",
        "the plugin of the tool Disk.Usage is called disk_usage",
    ]);
    home.run(&["plugin", "list"]).ended(0).answers(&["script"]);
    let policy = GRANTED.replace("tool", "disk_usage").replace("disk_usage =", "tool =");
    home.policy(policy)
        .run(&["call", "disk_usage.Disk.Usage", "{\"x\":1}"])
        .ended(0)
        .answers(&["1"]);
}

#[test]
fn a_script_can_be_switched_off() {
    let home = home("run.sh", "#!/bin/sh\ncat", &definition(json!({ "enabled": false })));
    home.run(&["plugin", "list"]).ended(0).answers(&["disabled", "not enabled"]);
    home.run(&["call", "tool.tool"]).ended(3).remarks(&["is disabled"]);
}

#[test]
fn what_is_wrong_with_a_folder_is_said() {
    let rows = [
        (json!({ "name": "my tool" }), "\"name\" has to be"),
        (json!({ "name": "7zip" }), "\"name\" of its definition cannot be used"),
        (json!({ "name": "_x" }), "\"name\" of its definition cannot be used"),
        (json!({ "parameters": { "type": "array" } }), "not an object schema"),
        (json!({ "parameters": { "type": 7 } }), "parameters schema of tool"),
        (json!({ "timeout": "soon" }), "\"timeout\" has to be"),
    ];
    for (keys, words) in rows {
        rejected(&home("run.sh", "#!/bin/sh\ncat", &definition(keys)), words);
    }
    let sound = definition(json!({}));
    rejected(&home("other", "", &sound), "contains no program");
    rejected(&home("run.sh", "#!/bin/sh\ncat", "{"), "not valid JSON");
    let closed = home("run.sh", "#!/bin/sh\ncat", &sound);
    let path = closed.path("plugins/tool/run.sh");
    fs::set_permissions(path, fs::Permissions::from_mode(0o644)).unwrap();
    rejected(&closed, "is not executable");
}

#[track_caller]
fn rejected(home: &Home, words: &str) {
    home.run(&["plugin", "list"]).ended(0).answers(&["rejected", words]);
    let list = home.run(&["plugin", "list", "--output", "json"]).ended(0).json();
    assert!(list["rejected"][0]["hint"].as_str().is_some_and(|hint| !hint.is_empty()), "{list}");
    home.run(&["doctor"]).ended(1).answers(&[words]);
}

#[test]
fn a_changed_script_is_asked_about_anew() {
    let home = shell("echo 1");
    home.run(&["call", "tool.tool"]).ended(0);
    let home = home.file("plugins/tool/run.sh", "#!/bin/sh\necho 2\n");
    home.run(&["call", "tool.tool"]).ended(3).remarks(&["has changed since you accepted it"]);
    home.run(&["plugin", "accept", "tool"]).ended(0);
    home.run(&["call", "tool.tool"]).ended(0).answers(&["2"]);
}

#[test]
fn older_folders_are_found_under_their_variable() {
    let home = shell("cat");
    let folder = home.user_path("elsewhere");
    fs::rename(home.path("plugins"), &folder).unwrap();
    let home = home.env("PLUGIN_DIR", folder.to_str().unwrap());
    ends(&home, "completed", &["{\"a\":1}"]);
}

#[test]
fn a_command_of_webassembly_runs_in_the_sandbox() {
    let call = |home: &Home, act: &str| home.call("tool.tool", &json!({ "act": act })).0;
    let home = home("run.wasm", guest("program"), &definition(json!({ "timeout": 2 })));
    home.run(&["plugin", "show", "tool"]).ended(0).answers(&["command"]);
    let rows = [
        ("echo", "completed", "echo"),
        ("no_json", "failed", "JSON"),
        ("fails", "failed", "no such project"),
        ("lists_root", "completed", "false"),
        ("loops", "timed-out", "2s"),
    ];
    for (act, outcome, words) in rows {
        let told = call(&home, act);
        assert_eq!(told["outcome"], outcome, "{told}");
        assert!(told["result"].to_string().contains(words), "{told}");
    }
    let told = home.run(&["-v", "call", "tool.tool", r#"{"act":"complains_for_ever"}"#]).ended(7);
    told.remarks(&["2s, its time limit", "it does not work"]);
    let manifest = manifest("tool", "[[request.env]]\nname = \"TZ\"\nwhy = \"x\"\n");
    let home = home.file("plugins/tool/plugin.toml", manifest);
    home.run(&["plugin", "show", "tool"]).ended(0).answers(&["tool 1.0.0", "the variable TZ"]);
}

#[test]
fn what_stands_beside_a_component_is_no_script() {
    let home = Home::new().plugins(&["clock"]).file("plugins/clock/definition.json", "{");
    home.run(&["call", "clock.get_time"]).ended(0);
}

#[test]
fn doctor_knows_the_walls() {
    shell("cat").run(&["doctor", "-v"]).answers(&["scripts", "Landlock"]);
}

/// It forks and lets go of its children, which ignore every signal that can be ignored.
#[test]
fn h69_children_that_ignore_signals_are_ended_with_it() {
    let keys = definition(json!({ "timeout": 1 }));
    let mark = format!("h69-{}", std::process::id());
    let body = format!(
        "#!/bin/sh\ntrap '' TERM INT HUP\nfor i in 1 2 3; do\n\
         (trap '' TERM INT HUP; exec sh -c 'while :; do sleep 1; done' {mark}) &\ndone\n\
         while :; do sleep 1; done\n"
    );
    let home = home("run.sh", body, &keys).policy(GRANTED);
    ends(&home, "timed-out", &["1s"]);
    assert!(!is_running(&mark), "a child lives on");
}

/// Whether a process has this word in its command line.
fn is_running(mark: &str) -> bool {
    let lines = fs::read_dir("/proc").unwrap().flatten();
    let lines = lines.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    lines.map(|line| String::from_utf8_lossy(&line).into_owned()).any(|line| line.contains(mark))
}

#[test]
fn h68_a_script_that_is_stopped_from_outside_has_run_all_the_same() {
    let home = shell("true");
    let folder = home.user_path("desk");
    fs::create_dir_all(&folder).unwrap();
    let fs = format!("fs = [{{ path = {folder:?}, access = \"read-write\" }}]");
    let body =
        format!("#!/bin/sh\necho here > {}/begun\nwhile :; do sleep 1; done\n", folder.display());
    let home = home
        .file("plugins/tool/run.sh", body)
        .policy(GRANTED.replace("process = true", &format!("process = true\n{fs}")));
    let args = ["call", "tool.tool"];
    let child = home.start(&args);
    let begin = Instant::now();
    while !folder.join("begun").exists() {
        assert!(begin.elapsed() < SOON, "it does not begin");
        thread::sleep(Duration::from_millis(5));
    }
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    finish(child, &args).ended(130);
    home.run(&["audit", "show"]).answers(&["cancelled", "ended, since the call was"]);
}

#[test]
fn h69_a_fork_bomb_ends_at_its_limit() {
    let home = shell("bomb() { bomb | bomb & }; bomb; while :; do sleep 1; done");
    let (told, _) = home.call("tool.tool", &json!({}));
    // Its own shell may be the first that can start nothing more, so the words differ.
    assert_eq!(told["outcome"], "failed", "it is ended before its time is up: {told}");
    let program = home.path("plugins/tool/run.sh");
    assert!(!is_running(program.to_str().unwrap()), "a child lives on");
}

/// Arguments that fill every buffer, for a program that never looks at them.
#[test]
fn h69_input_that_is_never_read_stops_nothing() {
    let home = shell("echo '\"done\"'");
    let (told, code) = home.call("tool.tool", &json!({ "a": "x".repeat(100_000) }));
    assert_eq!((told["outcome"].as_str(), code), (Some("completed"), 0), "{told}");
}

#[test]
fn h69_output_without_end_is_cut_off() {
    ends(&shell("exec yes"), "failed", &["of output"]);
    ends(&shell("yes >&2 & sleep 0.5; echo '\"done\"'"), "completed", &["done"]);
}

#[test]
fn h69_no_socket_is_opened_without_the_grant() {
    if !is_there("python3") {
        return;
    }
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    let body = format!(
        "import json, socket\ntry:\n    socket.create_connection(('127.0.0.1', {port}), 5)\n    \
         print(json.dumps('connected'))\nexcept OSError as error:\n    \
         print(json.dumps('refused: ' + str(error)))"
    );
    ends(&python(&body), "completed", &["refused"]);
    let policy = GRANTED.replace("process = true", "process = { network = true }");
    ends(&python(&body).policy(policy), "completed", &["connected"]);
}

#[test]
fn h69_nothing_is_written_elsewhere() {
    let body = "for f in \"$TARGET\" ./own /etc/x /tmp/h69-x; do echo x > $f; done 2>/dev/null\n\
                cat \"$SECRET\" 2>/dev/null; echo '\"over\"'";
    let home = shell(body).user_file("secret", "{\"the\": \"secret\"}");
    let path = |name: &str| home.user_path(name).display().to_string();
    let (target, secret) = (path("target"), path("secret"));
    let home = home.env("TARGET", target).env("SECRET", secret);
    let home = home.policy(
        GRANTED.replace("process = true", "process = true\nenv = [\"TARGET\", \"SECRET\"]"),
    );
    ends(&home, "completed", &["over"]);
    assert!(!home.user_path("target").exists() && !home.path("plugins/tool/own").exists());
    assert!(!Path::new("/etc/x").exists() && !Path::new("/tmp/h69-x").exists());
}

#[test]
fn h69_nothing_of_the_hosts_environment_is_passed_on() {
    let home =
        shell("if [ -n \"$SALLYPORT_HOME\" ] || [ -n \"$KEY\" ]; then echo 1; else echo 2; fi");
    ends(&home.env("KEY", "sk-1"), "completed", &["2"]);
}

/// The folders of the repository, as they are.
fn repository_scripts(policy: &str) -> Home {
    let folder = repository().join("plugins-src/scripts");
    Home::new().env("SALLYPORT_PLUGIN_DIR", folder.to_str().unwrap()).policy(policy)
}

#[test]
fn ps_lists_the_processes_of_this_machine() {
    if !is_there("python3") {
        return;
    }
    let policy = "[plugin.ps]\nprocess = true\nfs = [{ path = \"/proc\", access = \"read\", sensitive = true }]\n\n[[rule]]\ntool = \"ps.*\"\ndecision = \"allow\"\n";
    let home = repository_scripts(policy);
    let (told, code) = home.call("ps.ps", &json!({ "sort": "memory", "limit": 3 }));
    assert_eq!(code, 0, "{told}");
    assert_eq!(told["result"]["processes"].as_array().unwrap().len(), 3, "{told}");
    let (told, code) = home.call("ps.ps", &json!({ "sort": "age" }));
    assert_eq!((told["outcome"].as_str(), code), (Some("invalid-arguments"), 2), "{told}");
    let without = repository_scripts("");
    without.run(&["call", "ps.ps"]).ended(3).remarks(&["policy grant ps --requested"]);
}

#[test]
fn task_works_on_a_list_of_tasks() {
    if !is_there("python3") || !is_there("task") {
        return;
    }
    let home = repository_scripts("");
    fs::create_dir(home.user_path("tasks")).unwrap();
    let folder = home.user_path("tasks").display().to_string();
    let policy = format!(
        "[plugin.task]\nprocess = true\nenv = [\"TASKDATA\"]\nfs = [{{ path = \"{folder}\", access = \"read-write\" }}]\n\n[[rule]]\ntool = \"task.*\"\ndecision = \"allow\"\n"
    );
    let home = home.env("TASKDATA", &folder).policy(policy);
    let call = |arguments: Value| {
        let (told, code) = home.call("task.task", &arguments);
        assert_eq!(code, 0, "{told}");
        told["result"].clone()
    };
    let added =
        call(json!({ "action": "add", "description": "Call the plumber", "project": "Home" }));
    let id = added["added"]["uuid"].clone();
    assert_eq!(call(json!({ "action": "list" }))["total"], 1);
    call(json!({ "action": "modify", "id": id, "priority": "H" }));
    assert_eq!(call(json!({ "action": "list" }))["tasks"][0]["priority"], "H");
    call(json!({ "action": "complete", "id": id }));
    assert_eq!(call(json!({ "action": "list" }))["total"], 0);
    let other = call(json!({ "action": "add", "description": "Other" }));
    call(json!({ "action": "delete", "id": other["added"]["uuid"] }));
    assert_eq!(call(json!({ "action": "list", "status": "completed" }))["total"], 1);
    let (told, _) = home.call("task.task", &json!({ "action": "complete" }));
    assert_eq!(told["outcome"], "failed", "{told}");
}

/// Two calls at once, one place: the policy is taken back while the first of them runs.
#[test]
fn h67_a_script_that_waited_for_its_place_has_the_grant_of_that_moment() {
    let calls = ["a", "b"].map(|id| (id, "tool__tool", "{}".to_owned()));
    let model = OpenAi::start(vec![Reply::Calls(calls.to_vec()), Reply::Text("done")]);
    let body = "echo x >> $FOLDER/begun; while [ ! -e $FOLDER/go ]; do sleep 0.02; done; echo 1";
    let home = shell(body).user_file("notes/note", "x");
    let folder = home.user_path("notes");
    let keys = format!(
        "process = true\nenv = [\"FOLDER\"]\nlimits = {{ concurrent-calls = 1 }}\n\
         fs = [{{ path = \"{}\", access = \"read-write\" }}]",
        folder.display()
    );
    let home = home
        .policy(GRANTED.replace("process = true", &keys))
        .env("FOLDER", folder.to_str().unwrap())
        .env("OPENAI_BASE_URL", model.base_url())
        .env("OPENAI_API_KEY", "k");
    let args = ["run", "--model", "m", "go"];
    let mut child = home.start(&args);
    drop(child.stdin.take());
    soon("one of them begins", || folder.join("begun").exists());
    fs::write(home.path("policy.toml"), GRANTED.replace("true", "false")).unwrap();
    fs::write(folder.join("go"), "").unwrap();
    finish(child, &args).ended(0);
    assert_eq!(fs::read_to_string(folder.join("begun")).unwrap(), "x\n");
    let told = model.bodies().pop().unwrap()["messages"].to_string();
    assert!(told.contains("may not run as a program of this machine"), "{told}");
}

/// Whatever becomes of the host, no program of a call is left.
#[test]
fn h69_nothing_is_left_of_it_when_the_host_is_killed() {
    let mark = format!("h69-killed-{}", std::process::id());
    let body = format!("trap '' TERM INT HUP\nexec sh -c 'while :; do sleep 1; done' {mark}");
    let home = shell(&body);
    let mut host = home.start(&["call", "tool.tool"]);
    soon("it starts", || is_running(&mark));
    host.kill().unwrap();
    host.wait().unwrap();
    soon("it ends", || !is_running(&mark));
}

/// Waits for what has to be so soon.
#[track_caller]
fn soon(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + SOON;
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        thread::sleep(Duration::from_millis(10));
    }
}
