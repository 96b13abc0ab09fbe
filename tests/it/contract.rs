//! The plugin contract: what is frozen stays as it is, and who a call is made for is told to
//! guests, rules and the audit alike.

use std::{collections::BTreeMap, fs, path::Path};

use data_encoding::HEXLOWER;
use serde_json::Value;
use sha2::{Digest, Sha256};
use wit_parser::Resolve;

use crate::support::{Home, Tools, home::repository, registry::data};

/// Each frozen version with the digest of its text.
const FROZEN: [(&str, &str); 1] =
    [("0.1", "4e16a14ba6d4761b565003d0808c80e8622f2698f9a91b059e23a677097a9d8b")];

const NEXT_VERSION: &str = "the text of a released version never changes, because components are \
    built against it. For a new version of the contract: restore wit/released/ from version \
    control, raise the version of `package sallyport:plugin` in wit/world.wit, change wit/, add a \
    module for it under host/crates/sandbox/src/abi/, and on its release copy wit/*.wit to \
    wit/released/X.Y/ and add its digest to FROZEN in tests/it/contract.rs";

/// The files of a folder by their names.
fn files(folder: &Path) -> BTreeMap<String, String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let wit = entries.filter(|path| path.extension().is_some_and(|end| end == "wit"));
    wit.map(|path| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        (name, fs::read_to_string(path).unwrap())
    })
    .collect()
}

/// The version of the contract that is in development, without its last part.
fn version_of(files: &BTreeMap<String, String>) -> String {
    let package = files["world.wit"]
        .lines()
        .find_map(|line| line.strip_prefix("package sallyport:plugin@")?.strip_suffix(';'));
    package.unwrap().rsplit_once('.').unwrap().0.to_owned()
}

#[test]
fn a_released_version_of_the_contract_never_changes() {
    let wit = repository().join("wit");
    for (version, digest) in FROZEN {
        let mut hasher = Sha256::new();
        for (name, text) in files(&wit.join("released").join(version)) {
            hasher.update(format!("{name} {}\n{text}", text.len()));
        }
        let found = HEXLOWER.encode(&hasher.finalize());
        assert_eq!(found, digest, "wit/released/{version} has changed: {NEXT_VERSION}");
    }
    let released = fs::read_dir(wit.join("released")).unwrap().count();
    assert_eq!(released, FROZEN.len(), "each folder of wit/released/ has its digest in FROZEN");
}

#[test]
fn the_contract_in_use_is_the_frozen_one_of_its_version() {
    let wit = repository().join("wit");
    let current = files(&wit);
    let version = version_of(&current);
    if FROZEN.iter().any(|(frozen, _)| *frozen == version) {
        let frozen = files(&wit.join("released").join(&version));
        for name in current.keys().chain(frozen.keys()) {
            let same = current.get(name) == frozen.get(name);
            assert!(same, "wit/{name} is not what was released as {version}: {NEXT_VERSION}");
        }
    }
}

/// What can never be widened: these say all there is to say.
const CLOSED: [&str; 1] = ["level"];

#[test]
fn everything_in_the_contract_has_room_to_grow() {
    let mut resolve = Resolve::default();
    resolve.push_path(repository().join("wit")).unwrap();
    for (_, ty) in resolve.types.iter() {
        let name = ty.name.as_deref().unwrap_or_default();
        match &ty.kind {
            wit_parser::TypeDefKind::Record(record) => {
                let last = &record.fields.last().unwrap().name;
                assert_eq!(last, "extra", "the record {name}");
            }
            wit_parser::TypeDefKind::Variant(variant) => {
                let last = &variant.cases.last().unwrap().name;
                assert_eq!(last, "other", "the variant {name}");
            }
            wit_parser::TypeDefKind::Enum(_) | wit_parser::TypeDefKind::Flags(_) => {
                assert!(CLOSED.contains(&name), "the enum {name} can never have another case");
            }
            _ => {}
        }
    }
}

#[test]
fn a_guest_is_told_whose_call_it_is() {
    let tools = Tools::of(&Home::new().guest("raw", ""));
    let told = data(&tools.call("raw.context", &Value::Object(Default::default()))).clone();
    assert_eq!((&told["user"], &told["has_deadline"]), (&"local".into(), &true.into()));

    let home = Home::new().guest("raw", "");
    let ran = home.run(&["call", "raw.context", "{}"]).ended(0);
    let told: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((&told["user"], &told["conversation"]), (&"local".into(), &Value::Null));
}

#[test]
fn a_rule_knows_the_user_and_the_conversation() {
    let deny = |when: &str| {
        let rule = format!("[[rule]]\ntool = \"raw.context\"\nwhen = \"{when}\"\n");
        Home::new().guest("raw", "").policy(format!("{rule}decision = \"deny\"\n"))
    };
    for (when, code) in [
        ("context.user_id == 'local'", 3),
        ("context.user_id == 'ann'", 0),
        ("context.user_id == null", 0),
        ("context.conversation_id == null", 3),
    ] {
        deny(when).run(&["call", "raw.context", "{}"]).ended(code);
    }
}
