//! The example of a program that embeds the host does what it says.

use std::{fs, path::Path, process::Command};

use crate::support::{Home, home::repository};

#[test]
fn another_program_opens_a_host_calls_a_tool_and_holds_a_session() {
    let home = Home::new().plugins(&["clock"]);
    let program = Path::new(env!("CARGO_BIN_EXE_sallyport")).with_file_name("examples/embed");
    assert!(program.is_file(), "run cargo test with --workspace, which builds {program:?}");
    let mut embed = Command::new(program);
    embed.arg(repository().join("plugins-wasm")).env_clear();
    let ran = embed.envs(home.environment()).output().unwrap();
    let told = String::from_utf8(ran.stdout).unwrap();
    assert!(ran.status.success(), "{told}");
    for words in ["tools", "Completed", "Asia/Tokyo", "clock.get_time completed", "Now you know."] {
        assert!(told.contains(words), "{words}: {told}");
    }
    let source = repository().join("host/crates/runtime/examples/embed.rs");
    assert!(
        fs::read_to_string(source).unwrap().lines().count() <= 100,
        "it shows how little it takes"
    );
}
