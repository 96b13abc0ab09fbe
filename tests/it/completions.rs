//! Completions: the generated scripts run in the shells that are there, and ask the program for names.

use std::process::{Command, Stdio};

use crate::support::{Home, Ran, patience::until_so};

/// Loads the script and completes the words of `$WORDS`, one per line, the last of which is typed.
const IN_BASH: &str = r#"
PATH="$PROGRAM_FOLDER:$PATH"
source <(sallyport completions bash) || exit 1
complete -p sallyport > /dev/null || exit 1
mapfile -t COMP_WORDS <<< "$WORDS"
COMP_CWORD=$(( ${#COMP_WORDS[@]} - 1 ))
_sallyport sallyport "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
printf '%s\n' "${COMPREPLY[@]}"
"#;

const IN_FISH: &str = r#"
set -p PATH $PROGRAM_FOLDER
sallyport completions fish | source
complete --do-complete (string join ' ' (string split \n -- $WORDS))
"#;

const IN_ZSH: &str = r#"
path=($PROGRAM_FOLDER $path)
compdef() { : }
_describe() { print -l -- ${(P)3%%:*} }
_files() { print paths }
source <(sallyport completions zsh)
words=("${(@f)WORDS}")
CURRENT=${#words}
_sallyport
"#;

fn complete_in(shell: &[&str], home: &Home, words: &[&str]) -> Option<Ran> {
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_sallyport"));
    let run = Command::new(shell[0])
        .args(&shell[1..])
        .env_clear()
        .envs(home.environment())
        .env("PROGRAM_FOLDER", program.parent().unwrap())
        .env("WORDS", [&["sallyport"], words].concat().join("\n"))
        .current_dir(home.path(""))
        .stdin(Stdio::null())
        .output()
        .ok()?;
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Some(Ran { stdout: text(run.stdout), stderr: text(run.stderr), code: run.status.code()? })
}

fn in_bash(home: &Home, words: &[&str]) -> Vec<String> {
    let shell = ["bash", "--norc", "-c", IN_BASH];
    let ran = complete_in(&shell, home, words).expect("bash is everywhere").ended(0);
    assert_eq!(ran.stderr, "", "{words:?}");
    ran.stdout.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

/// A home whose tools are known. A digest is stored only once its file has not changed for a moment.
fn home() -> Home {
    let home = Home::new()
        .plugins(&["clock", "files"])
        .config("[model.fast]\nprovider = 'ollama'\nmodel = 'small'\n");
    until_so("the list of the tools of clock", || {
        home.run(&["tool", "list"]).ended(0);
        let ask = ["__complete", "zsh", "2", "--", "sallyport", "call", "clock."];
        home.run(&ask).stdout.contains("clock.get_time")
    });
    home
}

#[test]
fn names_are_completed_in_bash() {
    let home = home();
    home.run(&["run", "--model", "offline", "what time is it?"]).ended(0);
    let session = home.run(&["session", "list", "--output", "json"]).json()[0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let elsewhere = Home::new().plugins(&["weather"]);
    let plugins = elsewhere.path("plugins").to_str().unwrap().to_owned();
    let other_folder = format!("--plugin-dir={plugins}");
    let rows: [(&[&str], &[&str]); 22] = [
        (&["call", "clock.get"], &["clock.get_time"]),
        (&["call", "cl"], &["clock.get_time"]),
        (&["tool", "show", "reminder.c"], &["reminder.create", "reminder.cancel"]),
        (&["plugin", "show", "f"], &["files"]),
        (&["plugin", "remove", ""], &["clock", "files", "reminder"]),
        (&["plugin", "accept", "clock", "f"], &["files"]),
        (&["policy", "grant", "fi"], &["files"]),
        (&["policy", "revoke", "fi"], &["files"]),
        (&["policy", "learn", "fi"], &["files"]),
        (&["policy", "learn", "clock", "--", "call", "clock."], &["clock.get_time"]),
        (&["policy", "explain", "clo"], &["clock", "clock.get_time"]),
        (&["chat", "--session", ""], &[&session]),
        (&["session", "resume", ""], &[&session]),
        (&["chat", "--model", ""], &["fast", "offline"]),
        (&["chat", "-m", "fa"], &["fast"]),
        // Bash splits at the sign, and replaces only what follows it.
        (&["chat", "--model", "=", "fa"], &["fast"]),
        (&["chat", "--model", "="], &["fast", "offline"]),
        (&["--plugin-dir", &plugins, "plugin", "show", "w"], &["weather"]),
        (&["plugin", "show", &other_folder, "w"], &["weather"]),
        (&["help", "gr"], &["grants"]),
        (&["completions", "b"], &["bash"]),
        (&["call", "nothing-like-it"], &[]),
    ];
    for (words, want) in rows {
        assert_eq!(in_bash(&home, words), want, "{words:?}");
    }
    let commands = in_bash(&home, &[""]);
    assert!(
        commands.contains(&"doctor".to_owned())
            && !commands.iter().any(|word| word.starts_with('-')),
        "{commands:?}"
    );
    assert!(in_bash(&home, &["chat", "--max"]).contains(&"--max-cost".to_owned()));
}

/// A completion that prints an error would print it into the line that the user types.
#[test]
fn what_goes_wrong_completes_nothing_and_says_nothing() {
    let wrong = home().config("no toml");
    assert_eq!(in_bash(&wrong, &["call", "clock."]), [""; 0]);
    assert_eq!(in_bash(&wrong, &["doct"]), ["doctor"]);
    for words in [
        &["__complete"][..],
        &["__complete", "bash", "x"],
        &["__complete", "bash", "99999999999", "--"],
    ] {
        let ran = wrong.run(words).ended(0);
        assert_eq!(ran.stderr, "", "{words:?}");
    }
}

/// Tools that no start has asked for yet are not completed, since that would compile them.
#[test]
fn nothing_is_compiled_or_created_for_a_completion() {
    let home = Home::with_own_cache().plugins(&["clock"]);
    assert_eq!(in_bash(&home, &["plugin", "show", "c"]), ["clock"]);
    assert_eq!(in_bash(&home, &["call", "clock."]), [""; 0]);
    // There is no session, so only flags fit.
    let flags = in_bash(&home, &["session", "show", ""]);
    assert!(flags.iter().all(|word| word.starts_with("--")), "{flags:?}");
    for folder in ["cache", "state", "data"] {
        assert!(!home.path(folder).exists(), "{folder}");
    }
}

#[test]
fn other_shells_complete_names_if_they_are_there() {
    let home = home();
    let rows: [(&[&str], &str); 2] =
        [(&["zsh", "-f", "-c", IN_ZSH], "zsh"), (&["fish", "--no-config", "-c", IN_FISH], "fish")];
    for (shell, name) in rows {
        match complete_in(shell, &home, &["call", "clock."]) {
            Some(ran) => {
                ran.ended(0).answers(&["clock.get_time"]);
            }
            None => eprintln!("skipped: there is no {name}"),
        }
    }
}
