//! Mistakes of authors: each fails to compile, with a message at the line of the mistake that says
//! what to do.
#![expect(clippy::disallowed_methods, reason = "the compiler is what is tested")]
#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

mod table;

use std::{fs, path::Path, process::Command};

use serde_json::Value;
use table::{MISTAKES, Mistake};

/// The comment that marks the line which an error has to point at.
const MARK: &str = "//~";

/// An error of the compiler: its example, all of its text, and the lines that it points at.
struct CompilerError {
    example: String,
    text: String,
    lines: Vec<u64>,
}

/// Writes a project with an example for each mistake. It has the versions of the workspace, so that
/// nothing is downloaded.
fn write_project(folder: &Path) {
    let sdk = Path::new(env!("CARGO_MANIFEST_DIR"));
    let manifest = format!(
        "[workspace]\n[package]\nname = \"mistakes\"\nedition = \"2024\"\n[dependencies]\n\
         sallyport-sdk.path = {:?}\nschemars = \"1.2\"\nserde = {{ version = \"1\", features = \
         [\"derive\"] }}\nserde_json = \"1\"\n",
        sdk.display().to_string(),
    );
    let _ = fs::remove_dir_all(folder.join("examples"));
    fs::create_dir_all(folder.join("examples")).unwrap();
    fs::create_dir_all(folder.join("src")).unwrap();
    fs::write(folder.join("src/lib.rs"), "").unwrap();
    fs::write(folder.join("Cargo.toml"), manifest).unwrap();
    fs::copy(sdk.join("../../Cargo.lock"), folder.join("Cargo.lock")).unwrap();
    for Mistake { name, code, .. } in MISTAKES {
        fs::write(folder.join(format!("examples/{name}.rs")), source(code)).unwrap();
    }
}

fn source(code: &str) -> String {
    format!("use sallyport_sdk::prelude::*;\n{code}\nfn main() {{}}\n")
}

fn compile(folder: &Path) -> Vec<CompilerError> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["check", "--examples", "--keep-going", "--offline", "--quiet"]);
    cargo.args(["--message-format", "json"]).current_dir(folder);
    let output = cargo.env("CARGO_TARGET_DIR", folder.join("target")).output().unwrap();
    let messages = String::from_utf8(output.stdout).unwrap();
    let errors: Vec<_> = messages.lines().filter_map(read_error).collect();
    assert!(!errors.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    errors
}

fn read_error(line: &str) -> Option<CompilerError> {
    let message: Value = serde_json::from_str(line).ok()?;
    let found = &message["message"];
    if found["level"] != "error" || message["target"]["kind"][0] != "example" {
        return None;
    }
    let spans = found["spans"].as_array()?;
    let said = [found].into_iter().chain(found["children"].as_array()?);
    let said = said.map(|part| &part["message"]).chain(spans.iter().map(|span| &span["label"]));
    let text: Vec<&str> = said.filter_map(Value::as_str).collect();
    Some(CompilerError {
        example: message["target"]["name"].as_str()?.to_owned(),
        text: text.join("\n"),
        lines: spans.iter().filter_map(author_line).collect(),
    })
}

/// The line in the author's file. A span inside of a macro leads to where the macro is used.
fn author_line(span: &Value) -> Option<u64> {
    let is_authors = span["file_name"].as_str()?.starts_with("examples/");
    match &span["expansion"]["span"] {
        outer if outer.is_object() && !is_authors => author_line(outer),
        _ => span["line_start"].as_u64().filter(|_| is_authors),
    }
}

/// What is wrong with the compiler's answer to a mistake.
fn objection(mistake: &Mistake, errors: &[CompilerError]) -> Option<String> {
    let own: Vec<&CompilerError> = errors.iter().filter(|e| e.example == mistake.name).collect();
    let code = source(mistake.code);
    let marked = code.lines().position(|line| line.contains(MARK));
    let line = marked.unwrap_or_else(|| panic!("{} marks no line", mistake.name)) as u64 + 1;
    let is_wanted =
        |e: &&&CompilerError| e.text.contains(mistake.message) && e.lines.contains(&line);
    if own.iter().any(|error| is_wanted(&error)) {
        return None;
    }
    let said: Vec<String> =
        own.iter().map(|e| format!("  at {:?}: {}", e.lines, e.text.trim())).collect();
    let (name, message) = (mistake.name, mistake.message);
    Some(format!("{name}: no error at line {line} with {message:?}, but\n{}", said.join("\n")))
}

#[test]
fn every_mistake_is_explained_at_its_line() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mistakes");
    write_project(&folder);
    let errors = compile(&folder);
    let objections: Vec<String> =
        MISTAKES.iter().filter_map(|mistake| objection(mistake, &errors)).collect();
    assert!(objections.is_empty(), "{}", objections.join("\n"));
}
