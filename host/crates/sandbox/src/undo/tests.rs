//! Steps are made by changing files under a recorder, and put back.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, chown, symlink},
    path::Path,
    sync::{Arc, Mutex},
};

use super::{
    recorder::{ChangingPath, RecorderState, StepRecorder},
    restore::{RestoreAction, restore_paths},
    *,
};
use crate::files::FolderUsageTable;

/// A granted folder, and the history of a session.
struct Desk {
    home: tempfile::TempDir,
    history: UndoHistory,
}

impl Desk {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir(home.path().join("notes")).unwrap();
        let history = UndoHistory::of_session(&home.path().join("undo"), "s-1").unwrap();
        Self { home, history }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.home.path().join("notes").join(path)
    }

    fn write(&self, path: &str, text: &str) {
        fs::write(self.path(path), text).unwrap();
    }

    fn read(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.path(path)).ok()
    }

    fn begin(&self) -> StepRecorder {
        let (history, tool) = (self.history.clone(), "files.write".to_owned());
        StepRecorder(Mutex::new(RecorderState::Waiting { history, tool }))
    }

    fn keep(&self, recorder: &StepRecorder, path: &str, is_moved_folder: bool) {
        let root: Arc<OwnedFd> = Arc::new(File::open(self.path("")).unwrap().into());
        let relative = Path::new(path);
        let (folder, name) = open_parent(&root, relative).unwrap();
        let (host, guest) = (&*self.path(""), format!("/notes/{path}"));
        let (folder, name) = (&folder, &*name);
        let root = &root;
        let path = ChangingPath { root, host, relative, guest, folder, name, is_moved_folder };
        recorder.keep(&path).unwrap();
    }

    /// Makes a call that changes these paths.
    fn call(&self, paths: &[&str], change: impl FnOnce()) {
        let recorder = self.begin();
        paths.iter().for_each(|path| self.keep(&recorder, path, false));
        change();
        recorder.finish();
    }

    /// Undoes the last call. Returns the reasons why paths stay, and those that failed.
    fn undo(&self) -> (Vec<String>, Vec<String>) {
        let step = self.history.steps().into_iter().next().expect("a step");
        let paths = self.history.plan(&step);
        let stays = paths.iter().filter_map(|path| path.action.clone().err()).collect();
        let table = FolderUsageTable::default();
        let change_folder = |folder: &OwnedFd, change: &dyn Fn() -> io::Result<()>| {
            table.change_folder(folder, change)
        };
        let failed = restore_paths(&self.history, &step, &paths, &change_folder);
        (stays, failed.into_iter().map(|(path, error)| format!("{path}: {error}")).collect())
    }

    #[track_caller]
    fn undoes(&self) {
        assert_eq!(self.undo(), (Vec::new(), Vec::new()));
    }
}

#[test]
fn what_a_call_did_to_files_is_undone_step_by_step() {
    let desk = Desk::new();
    desk.write("a", "one");
    fs::set_permissions(desk.path("a"), fs::Permissions::from_mode(0o640)).unwrap();
    // Only root can give a file away.
    let _ = chown(desk.path("a"), Some(1234), None);
    let owner = fs::metadata(desk.path("a")).unwrap().uid();
    desk.call(&["a"], || desk.write("a", "two"));
    desk.call(&["a", "b"], || {
        desk.write("a", "three");
        desk.write("b", "new");
    });
    desk.call(&["a"], || fs::remove_file(desk.path("a")).unwrap());
    desk.call(&["d"], || fs::create_dir(desk.path("d")).unwrap());
    desk.call(&["d/in"], || desk.write("d/in", "x"));
    assert_eq!(desk.history.steps().len(), 5);
    desk.undoes();
    assert_eq!(desk.read("d/in"), None);
    desk.undoes();
    assert!(!desk.path("d").exists());
    desk.undoes();
    assert_eq!(desk.read("a").as_deref(), Some("three"));
    desk.undoes();
    assert_eq!((desk.read("a").as_deref(), desk.read("b")), (Some("two"), None));
    desk.undoes();
    assert_eq!(desk.read("a").as_deref(), Some("one"));
    assert_eq!(fs::metadata(desk.path("a")).unwrap().mode() & 0o777, 0o640);
    assert_eq!(fs::metadata(desk.path("a")).unwrap().uid(), owner);
    assert!(desk.history.steps().is_empty());
    assert_eq!(fs::read_dir(&desk.history.folder).unwrap().count(), 0, "copies are left");
    assert_eq!(fs::read_dir(desk.path("")).unwrap().count(), 1, "something is left beside it");
}

#[test]
fn a_removed_tree_comes_back() {
    let desk = Desk::new();
    fs::create_dir(desk.path("d")).unwrap();
    desk.write("d/x", "x");
    desk.call(&["d/x", "d"], || fs::remove_dir_all(desk.path("d")).unwrap());
    desk.undoes();
    assert_eq!(desk.read("d/x").as_deref(), Some("x"));
}

#[test]
fn what_somebody_else_changed_stays() {
    let changed = "it was changed after the call".to_owned();
    type Change = fn(&Desk);
    let rows: [(Change, &str); 4] = [
        (|desk| desk.write("a", "theirs"), "theirs"),
        (|desk| fs::remove_file(desk.path("a")).unwrap(), ""),
        (
            |desk| {
                fs::remove_file(desk.path("a")).unwrap();
                symlink("b", desk.path("a")).unwrap();
            },
            "untouched",
        ),
        (
            |desk| {
                fs::remove_file(desk.path("a")).unwrap();
                fs::create_dir(desk.path("a")).unwrap();
            },
            "",
        ),
    ];
    for (change, left) in rows {
        let desk = Desk::new();
        desk.write("a", "one");
        desk.write("b", "untouched");
        desk.call(&["a", "c"], || {
            desk.write("a", "two");
            desk.write("c", "new");
        });
        change(&desk);
        assert_eq!(desk.undo(), (vec![changed.clone()], Vec::new()));
        assert_eq!(desk.read("a").unwrap_or_default(), left);
        assert_eq!(desk.read("b").as_deref(), Some("untouched"));
        assert_eq!(desk.read("c"), None, "what is as the call left it goes back all the same");
    }
}

/// A folder on the way that was swapped for a link must not lead out of the granted folder.
#[test]
fn undo_follows_no_link() {
    let desk = Desk::new();
    fs::create_dir(desk.path("d")).unwrap();
    desk.write("d/x", "one");
    desk.call(&["d/x"], || desk.write("d/x", "two"));
    let outside = desk.home.path().join("outside");
    fs::rename(desk.path("d"), &outside).unwrap();
    symlink(&outside, desk.path("d")).unwrap();
    assert_eq!(desk.undo().0, ["it was changed after the call"]);
    assert_eq!(fs::read_to_string(outside.join("x")).unwrap(), "two");

    let desk = Desk::new();
    desk.write("x", "one");
    desk.call(&["x"], || desk.write("x", "two"));
    fs::rename(desk.path(""), desk.home.path().join("moved")).unwrap();
    fs::create_dir(desk.path("")).unwrap();
    desk.write("x", "two");
    assert_eq!(desk.undo().0, ["its folder cannot be used: another folder has taken its place"]);
    assert_eq!(desk.read("x").as_deref(), Some("two"));
}

#[test]
fn what_has_no_copy_is_named() {
    let desk = Desk::new();
    File::create(desk.path("large")).unwrap().set_len(COPY_BYTES_MAX + 1).unwrap();
    desk.call(&["large"], || desk.write("large", "small"));
    let (stays, _) = desk.undo();
    assert!(stays[0].contains("copies of at most"), "{stays:?}");
    symlink("large", desk.path("link")).unwrap();
    desk.call(&["link"], || fs::remove_file(desk.path("link")).unwrap());
    assert_eq!(desk.undo().0, ["it was not a regular file"]);
    fs::create_dir(desk.path("d")).unwrap();
    let recorder = desk.begin();
    desk.keep(&recorder, "d", true);
    fs::rename(desk.path("d"), desk.path("e")).unwrap();
    recorder.finish();
    assert_eq!(desk.undo().0, ["the folder was renamed; rename it back yourself"]);
    assert!(desk.path("e").exists());
}

#[test]
fn copies_are_private_and_a_call_without_changes_leaves_none() {
    let desk = Desk::new();
    desk.write("a", "secret");
    desk.call(&["a"], || {});
    assert_eq!(fs::read_dir(&desk.history.folder).unwrap().count(), 0);
    desk.call(&["a"], || desk.write("a", "two"));
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
    assert_eq!(mode(&desk.history.folder), 0o700);
    for entry in fs::read_dir(&desk.history.folder).unwrap() {
        assert_eq!(mode(&entry.unwrap().path()), 0o600);
    }
    desk.history.remove();
    assert!(!desk.history.folder.exists());
}

/// The program may be killed after the copy, during the change, or while the step is written.
#[test]
fn a_killed_call_can_be_undone() {
    let desk = Desk::new();
    desk.write("a", "one");
    let recorder = desk.begin();
    desk.keep(&recorder, "a", false);
    desk.write("a", "half");
    assert!(desk.history.steps().is_empty(), "the call still runs");
    drop(recorder);
    let file = desk.history.step_file(1);
    let whole = fs::read_to_string(&file).unwrap();
    fs::write(&file, format!("{whole}{{\"after\":[{{\"fi")).unwrap();
    let step = desk.history.steps().remove(0);
    let plan = desk.history.plan(&step);
    assert!(matches!(&plan[0].action, Ok(RestoreAction::Write { .. })), "{plan:?}");
    assert!(step.is_cut_off());
    desk.undoes();
    assert_eq!(desk.read("a").as_deref(), Some("one"));
}

#[test]
fn the_oldest_steps_are_given_up() {
    let desk = Desk::new();
    for number in 0..STEPS_MAX + 3 {
        desk.write("a", &number.to_string());
        desk.call(&["a"], || desk.write("a", "other"));
    }
    let steps = desk.history.steps();
    assert_eq!(steps.len(), STEPS_MAX);
    assert_eq!(steps[0].number as usize, STEPS_MAX + 3);
    let files = (SESSION_BYTES_MAX / COPY_BYTES_MAX) as usize + 2;
    for number in 0..files {
        File::create(desk.path("large")).unwrap().set_len(COPY_BYTES_MAX).unwrap();
        desk.call(&["large"], || desk.write("large", &number.to_string()));
    }
    assert!(desk.history.copied_bytes() <= SESSION_BYTES_MAX);
    desk.undoes();
    assert_eq!(fs::metadata(desk.path("large")).unwrap().len(), COPY_BYTES_MAX);
}

/// After a crash of the machine the newest blocks of a file may be missing.
#[test]
fn a_damaged_copy_is_not_put_back() {
    let desk = Desk::new();
    desk.write("a", "one");
    desk.write("b", "one");
    desk.call(&["a", "b"], || {
        desk.write("a", "two");
        desk.write("b", "two");
    });
    fs::write(desk.history.copy_file(1, 0), "").unwrap();
    assert_eq!(desk.undo().0, ["its copy cannot be read: it is damaged"]);
    assert_eq!((desk.read("a").as_deref(), desk.read("b").as_deref()), (Some("two"), Some("one")));
    assert_eq!(desk.history.steps().len(), 1, "what stays can still be seen");
}

#[test]
fn a_call_with_too_many_paths_says_so() {
    let desk = Desk::new();
    let names: Vec<String> = (0..PATHS_MAX + 2).map(|number| format!("f{number}")).collect();
    let paths: Vec<&str> = names.iter().map(String::as_str).collect();
    desk.call(&paths, || paths.iter().for_each(|path| desk.write(path, "x")));
    assert!(desk.history.steps()[0].is_partial);
    desk.undoes();
    assert_eq!(fs::read_dir(desk.path("")).unwrap().count(), 2);
}

#[test]
fn a_large_new_file_is_removed_unless_it_was_changed() {
    let desk = Desk::new();
    let resize = |bytes| {
        let file = fs::OpenOptions::new().create(true).append(true).open(desk.path("large"));
        file.unwrap().set_len(bytes).unwrap();
    };
    desk.call(&["large"], || resize(COPY_BYTES_MAX + 1));
    resize(COPY_BYTES_MAX + 2);
    assert_eq!(desk.undo().0, ["it was changed after the call"]);
    desk.call(&["large"], || fs::remove_file(desk.path("large")).unwrap());
    desk.call(&["large"], || resize(COPY_BYTES_MAX + 1));
    desk.undoes();
    assert!(!desk.path("large").exists());
}

#[test]
fn copies_that_cannot_be_kept_do_not_stop_a_call() {
    let desk = Desk::new();
    fs::write(desk.home.path().join("undo"), "a file is in the way").unwrap();
    desk.write("a", "one");
    let recorder = desk.begin();
    let root: Arc<OwnedFd> = Arc::new(File::open(desk.path("")).unwrap().into());
    let path = ChangingPath {
        root: &root,
        host: &desk.path(""),
        relative: Path::new("a"),
        guest: "/notes/a".to_owned(),
        folder: &root,
        name: OsStr::new("a"),
        is_moved_folder: false,
    };
    assert!(recorder.keep(&path).is_err());
    assert!(recorder.keep(&path).is_ok(), "the reason is given once");
    recorder.finish();
    assert!(desk.history.steps().is_empty());
}

/// A session id comes from whoever embeds the host.
#[test]
fn an_id_that_is_a_path_has_no_history() {
    for no in ["", ".", "..", "a/b", "../x", "a\0", &"x".repeat(200)] {
        assert!(UndoHistory::of_session(Path::new("/tmp"), no).is_none(), "{no:?}");
    }
}
