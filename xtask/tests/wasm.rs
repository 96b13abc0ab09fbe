//! A component has the same bytes in whatever folder it is built, since people accept its digest.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::disallowed_methods, reason = "the test runs the task")]

use std::{fs, path::Path, process::Command};

const PACKAGE: &str = "version = \"1.0.0\"\nedition = \"2024\"\n";

/// Lays out a plugin and, outside its workspace, the library that it uses, as the SDK is used.
fn lay_out(root: &Path) {
    for (path, text) in [
        ("sdk/Cargo.toml", format!("[workspace]\n[package]\nname = \"sdk\"\n{PACKAGE}")),
        (
            "sdk/src/lib.rs",
            "use std::fmt::Debug;\n\
             pub fn show<T: Debug>(value: T) -> usize { format!(\"{value:?}\").len() }\n\
             pub fn place() -> &'static str { std::panic::Location::caller().file() }\n\
             // Depends on the identity of this crate, as the order of what is compiled does.\n\
             pub fn kind() -> impl Debug { std::any::TypeId::of::<One>() }\n\
             #[derive(Debug)] pub struct One(pub u8);\n"
                .to_owned(),
        ),
        (
            "plugins/Cargo.toml",
            format!(
                "[workspace]\n[package]\nname = \"small\"\n{PACKAGE}[lib]\ncrate-type = [\"cdylib\"]\n\
                 [dependencies]\nsdk = {{ path = \"../sdk\" }}\n[profile.release]\nlto = true\nstrip = true\n"
            ),
        ),
        (
            "plugins/src/lib.rs",
            "#[unsafe(no_mangle)]\n\
             pub extern \"C\" fn act(n: u8) -> usize {\n\
                 if n > 200 { panic!(\"{} {}\", sdk::place(), file!()) }\n\
                 sdk::show(sdk::One(n)) + sdk::show(vec![n]) + sdk::show(sdk::kind())\n}\n"
                .to_owned(),
        ),
    ] {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

/// Builds the plugin below a folder of this name, and returns its bytes.
fn built(name: &str) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap().join(name);
    lay_out(&root);
    let plugins = root.join("plugins");
    let mut task = Command::new(env!("CARGO_BIN_EXE_xtask"));
    assert!(task.arg("wasm").args([&root, &plugins]).status().unwrap().success());
    fs::read(plugins.join("target/wasm32-wasip2/release/small.wasm")).unwrap()
}

#[test]
fn a_component_is_the_same_bytes_in_whatever_folder_it_is_built() {
    let (here, there) = (built("here"), built("a/longer/path/to/it"));
    assert!(here == there, "{} and {} bytes differ", here.len(), there.len());
    let text = String::from_utf8_lossy(&here);
    assert!(text.contains("/sallyport/sdk/src/lib.rs"), "the panic names the source");
    assert!(!text.contains("/longer/path"), "and nothing of the folder");
}
