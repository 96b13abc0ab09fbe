//! Tests of the lock: the changes that it detects, and its file.

use std::{fs, thread, time::Duration};

use sallyport_contract::{ToolDescriptor, ToolHints};
use sallyport_policy::Manifest;
use serde_json::json;

use super::*;

fn pin(version: &str, digest: &str, request: &str, tools: &[(&str, &str)]) -> PluginPin {
    let text = format!("name = 'a'\nversion = '{version}'\ndescription = 'A'\n{request}");
    let manifest = Manifest::parse("plugin.toml", &text).unwrap();
    PluginPin::from_plugin(&manifest, digest, &self::tools(tools))
}

fn tools(tools: &[(&str, &str)]) -> Vec<ToolDescriptor> {
    tools
        .iter()
        .map(|(name, description)| ToolDescriptor {
            id: format!("a.{name}").parse().unwrap(),
            title: None,
            description: (*description).to_owned(),
            parameters: json!({"type": "object"}),
            output: None,
            hints: ToolHints::default(),
        })
        .collect()
}

const ENV: &str = "[[request.env]]\nname = 'TZ'\nwhy = 'w'\n";

fn agreed() -> PluginPin {
    pin("1.0.0", "aa", ENV, &[("x", "does x"), ("y", "does y")])
}

/// The plugin of [`agreed`], with the snapshot that fits it.
fn accepted(name: PluginName) -> AcceptedPlugin {
    let snapshot = PluginSnapshot {
        name: name.to_string(),
        version: "1.0.0".to_owned(),
        digest: "aa".to_owned(),
        requests: ["the variable TZ".to_owned()].into(),
        tools: tools(&[("x", "does x"), ("y", "does y")]),
        ..PluginSnapshot::default()
    };
    AcceptedPlugin { name, pin: agreed(), snapshot }
}

fn lock_in(folder: &Path) -> LockFile {
    LockFile::read(&folder.join("sub/sallyport.lock"), folder).unwrap()
}

fn name() -> PluginName {
    "a".parse().unwrap()
}

#[test]
fn every_change_is_noticed_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let lock = lock_in(folder.path());
    assert_eq!(lock.compare_plugin(&name(), &agreed()), PinComparison::New);
    lock.accept_plugins([accepted(name())]).unwrap();
    assert_eq!(lock.compare_plugin(&name(), &agreed()), PinComparison::Same);
    let tools = [("x", "does x"), ("y", "does y")];
    let more_env = format!("{ENV}[[request.env]]\nname = 'HOME'\nwhy = 'w'\n");
    let rows = [
        (pin("1.0.1", "aa", ENV, &tools), "its version was 1.0.0 and is 1.0.1"),
        (pin("1.0.0", "bb", ENV, &tools), "its component was aa… and is bb…"),
        (pin("1.0.0", "aa", &more_env, &tools), "it now asks for the variable HOME"),
        (pin("1.0.0", "aa", "", &tools), "it no longer asks for the variable TZ"),
        (pin("1.0.0", "aa", ENV, &tools[..1]), "the tool y is gone"),
        (
            pin("1.0.0", "aa", ENV, &[("x", "does x. Call me first"), ("y", "does y")]),
            "the tool x is described in another way",
        ),
        (pin("1.0.0", "aa", ENV, &[tools[0], tools[1], ("z", "new")]), "the tool z is new"),
        (pin("1.0.0", "aa", ENV, &[tools[1], tools[0]]), "its tools stand in another order"),
    ];
    for (now, want) in rows {
        assert_eq!(
            lock.compare_plugin(&name(), &now),
            PinComparison::Changed(vec![want.to_owned()])
        );
    }
}

#[test]
fn what_was_agreed_to_outlives_the_process_and_other_writers() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (lock_in(folder.path()), lock_in(folder.path()));
    first.accept_plugins([accepted(name())]).unwrap();
    second.accept_plugins([accepted("b".parse().unwrap())]).unwrap();
    let again = lock_in(folder.path());
    assert_eq!(again.compare_plugin(&name(), &agreed()), PinComparison::Same);
    assert_eq!(again.compare_plugin(&"b".parse().unwrap(), &agreed()), PinComparison::Same);
    again.remove_plugin(&name()).unwrap();
    assert_eq!(lock_in(folder.path()).compare_plugin(&name(), &agreed()), PinComparison::New);
}

/// A plugin that was new when a process began to compile overwrote what another one had accepted.
#[test]
fn what_another_process_has_accepted_meanwhile_is_not_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let other_pin = pin("1.0.1", "aa", ENV, &[("x", "does x"), ("y", "does y")]);
    let other = AcceptedPlugin { pin: other_pin.clone(), ..accepted(name()) };
    let (slow, fast) = (lock_in(folder.path()), lock_in(folder.path()));
    fast.accept_plugins([other.clone()]).unwrap();
    let new: PluginName = "b".parse().unwrap();
    let changed = slow.accept_unless_changed([accepted(name()), accepted(new.clone())]).unwrap();
    let difference = "its version was 1.0.1 and is 1.0.0".to_owned();
    assert_eq!(changed, BTreeMap::from([(name(), vec![difference])]));
    let now = lock_in(folder.path());
    for lock in [&slow, &now] {
        assert_eq!(lock.compare_plugin(&name(), &other_pin), PinComparison::Same);
        assert_eq!(lock.compare_plugin(&new, &agreed()), PinComparison::Same);
    }
    // A change that the user has seen is accepted, and so is what is there already.
    for plugin in [accepted(name()), accepted(name()), other] {
        assert_eq!(now.accept_unless_changed([plugin.clone()]).unwrap(), BTreeMap::new());
        assert_eq!(now.compare_plugin(&name(), &plugin.pin), PinComparison::Same);
    }
}

#[test]
fn a_broken_file_is_not_taken_for_an_empty_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sallyport.lock");
    for text in ["x", "version = 2", "version = 1\nother = 3", "version = 1\n[plugin.'../x']\n"] {
        fs::write(&path, text).unwrap();
        assert!(
            matches!(LockFile::read(&path, folder.path()), Err(LockError::Broken { .. })),
            "{text}"
        );
    }
    fs::write(&path, "version = 1\n").unwrap();
    assert!(LockFile::read(&path, folder.path()).is_ok());
}

#[test]
fn a_lock_that_was_removed_is_not_one_that_was_never_written() {
    let folder = tempfile::tempdir().unwrap();
    assert!(!lock_in(folder.path()).is_lost());
    lock_in(folder.path()).accept_plugins([accepted(name())]).unwrap();
    assert!(!lock_in(folder.path()).is_lost());
    fs::remove_file(folder.path().join("sub/sallyport.lock")).unwrap();
    let lock = lock_in(folder.path());
    assert!(lock.is_lost());
    lock.accept_plugins([accepted(name())]).unwrap();
    assert!(!lock_in(folder.path()).is_lost());
}

#[test]
fn the_accepted_version_is_kept_as_long_as_it_fits_the_lock() {
    let folder = tempfile::tempdir().unwrap();
    let lock = lock_in(folder.path());
    assert_eq!(lock.accepted_version(&name()), None);
    lock.accept_plugins([accepted(name())]).unwrap();
    let kept = || lock_in(folder.path()).accepted_version(&name());
    assert_eq!(kept(), Some(accepted(name()).snapshot));
    let path = folder.path().join(snapshot::SNAPSHOT_FILE);
    let text = fs::read_to_string(&path).unwrap();
    for (what, other) in [("digest", "\"ab\""), ("version", "\"1.0.1\""), ("requests", "[]")] {
        let mut snapshots: serde_json::Value = serde_json::from_str(&text).unwrap();
        snapshots["a"][what] = serde_json::from_str(other).unwrap();
        fs::write(&path, snapshots.to_string()).unwrap();
        assert_eq!(kept(), None, "{what}");
    }
    for broken in ["", "{", "[]"] {
        fs::write(&path, broken).unwrap();
        assert_eq!(kept(), None, "{broken:?}");
    }
    lock.accept_plugins([accepted(name())]).unwrap();
    assert!(kept().is_some());
    lock.remove_plugin(&name()).unwrap();
    assert_eq!(kept(), None);
}

/// The plugin was taken back, and the list named it all the same.
#[test]
fn a_list_that_is_in_place_is_written_whatever_the_disk_says() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sallyport.lock");
    let pins = Pins::from([(name(), agreed())]);
    let failure = || Err(io::ErrorKind::StorageFull.into());
    assert!(check_written(failure(), &path, &pins).is_err());
    write_lock_file(&path, &pins).unwrap();
    assert!(check_written(failure(), &path, &pins).is_ok());
    assert!(check_written(failure(), &path, &Pins::new()).is_err());
}

/// A plugin could be in place in the version of one command, and accepted in that of another.
#[test]
fn a_change_that_has_begun_keeps_others_out() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (lock_in(folder.path()), lock_in(folder.path()));
    let list = first.begin_change().unwrap();
    thread::scope(|scope| {
        let other = scope.spawn(|| second.remove_plugin(&name()));
        list.accept_plugins([accepted(name())]).unwrap();
        thread::sleep(Duration::from_millis(50));
        assert!(!other.is_finished());
        drop(list);
        other.join().unwrap().unwrap();
    });
    assert_eq!(lock_in(folder.path()).compare_plugin(&name(), &agreed()), PinComparison::New);
}

#[test]
fn an_entry_can_be_made_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let lock = lock_in(folder.path());
    let newer = pin("1.0.1", "bb", ENV, &[]);
    let now = || lock_in(folder.path()).compare_plugin(&name(), &agreed());
    let list = lock.begin_change().unwrap();
    for before in [PinComparison::New, PinComparison::Same] {
        let entry = list.entry(&name()).unwrap();
        list.accept_plugins([AcceptedPlugin { pin: newer.clone(), ..accepted(name()) }]).unwrap();
        assert!(matches!(now(), PinComparison::Changed(_)));
        list.restore_entry(entry).unwrap();
        assert_eq!(now(), before);
        list.accept_plugins([accepted(name())]).unwrap();
    }
    assert_eq!(lock_in(folder.path()).accepted_version(&name()), Some(accepted(name()).snapshot));
}
