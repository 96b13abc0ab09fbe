//! Tests of the files that a program can access.

use std::{fs, path::Path};

use sallyport_process::{ProcessExit, RunError};

use crate::{Tool, secret, shown};

/// Runs a script whose action must fail.
#[track_caller]
fn check_denied(what: &str, tool: &Tool) {
    let finished = tool.run(b"{}").unwrap();
    assert!(!matches!(finished.exit, ProcessExit::Code(0)), "{what}: {finished:?}");
    let told = finished.stderr.to_lowercase();
    let denied = ["denied", "not permitted", "cannot create", "cannot open", "cross-device"];
    assert!(denied.iter().any(|words| told.contains(words)), "{what}: {finished:?}");
    assert!(!finished.stdout.windows(6).any(|text| text == b"secret"), "{what}: {finished:?}");
}

#[test]
fn h69_files_that_are_not_granted_cannot_be_read() {
    let (folder, file) = secret();
    let (file, folder) = (shown(&file), shown(folder.path()));
    let this = std::process::id();
    for body in [
        "cat /etc/shadow".to_owned(),
        format!("cat {file}"),
        format!("ls {folder}"),
        format!("cd {folder} && cat id_ed25519"),
        format!("ln -s {file} $TMPDIR/link && cat $TMPDIR/link"),
        format!("cat /proc/self/root{file}"),
        format!("ln {file} $TMPDIR/link"),
        format!("mv {file} $TMPDIR/"),
        format!("cat /proc/{this}/environ"),
        format!("exec 3<{file}"),
        "read -r line < /proc/self/net/unix".to_owned(),
        "read -r line < /proc/self/task/$$/net/tcp".to_owned(),
        "ls /tmp".to_owned(),
        "ls /home /root".to_owned(),
    ] {
        check_denied(&body, &Tool::script(&body));
    }
    assert_eq!(fs::read_to_string(file).unwrap(), "the secret");
}

#[test]
fn h69_nothing_can_be_written_elsewhere() {
    let (folder, file) = secret();
    let (file, folder) = (shown(&file), shown(folder.path()));
    for body in [
        format!("echo x > {file}"),
        format!("echo x >> {file}"),
        format!("echo x > {folder}/new"),
        format!("mkdir {folder}/new"),
        format!("rm {file}"),
        format!("truncate -s 0 {file}"),
        format!("mv {file} {folder}/other"),
        format!("ln -s {file} $TMPDIR/link && echo x > $TMPDIR/link"),
        format!("ln -s {folder} $TMPDIR/link && echo x > $TMPDIR/link/new"),
        format!("chmod 777 {file}"),
        format!("touch -d @0 {file}"),
        format!("cd {folder} && echo x > id_ed25519"),
        "echo x > own".to_owned(),
        "echo x >> run.sh".to_owned(),
        "rm run.sh".to_owned(),
        "echo x > /usr/x".to_owned(),
        "echo x > /tmp/x".to_owned(),
        "mknod $TMPDIR/device c 1 3".to_owned(),
        "echo x > /proc/self/oom_score_adj".to_owned(),
    ] {
        check_denied(&body, &Tool::script(&body));
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), "the secret");
    assert_eq!(fs::read_dir(folder).unwrap().count(), 1);
}

#[test]
fn a_granted_folder_is_readable_and_no_more() {
    let (folder, file) = secret();
    let (name, place) = (shown(&file), shown(folder.path()));
    let reads =
        |body: &str| Tool::script(body).with(|spec| spec.reads.push(folder.path().to_owned()));
    assert_eq!(reads(&format!("cat {name} && ls {place}")).prints(), "the secretid_ed25519\n");
    for body in [
        format!("echo x > {name}"),
        format!("echo x > {place}/new"),
        format!("chmod 600 {name}"),
        format!("rm {name}"),
        format!("ln {name} {place}/new"),
    ] {
        check_denied(&body, &reads(&body));
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), "the secret");
}

#[test]
fn a_granted_folder_is_writable_as_folders_are() {
    let (folder, file) = secret();
    let place = shown(folder.path());
    let body = format!(
        "cd {place} && cat id_ed25519 && echo new > a && mkdir b && mv a b/c && ln -s b/c d && \
         cat d && rm d id_ed25519 && ls"
    );
    let tool = Tool::script(&body).with(|spec| spec.writes.push(folder.path().to_owned()));
    assert_eq!(tool.prints(), "the secretnew\nb\n");
    assert!(!file.exists());
}

#[test]
fn a_single_file_can_be_granted() {
    let (folder, file) = secret();
    let (name, place) = (shown(&file), shown(folder.path()));
    let tool = |body: &str| Tool::script(body).with(|spec| spec.writes.push(file.clone()));
    assert_eq!(tool(&format!("echo x >> {name} && cat {name}")).prints(), "the secretx\n");
    check_denied("its folder", &tool(&format!("ls {place}")));
    check_denied("its neighbour", &tool(&format!("echo x > {place}/new")));
}

#[test]
fn a_grant_of_what_is_not_there_is_told() {
    let (folder, _) = secret();
    let gone = folder.path().join("gone");
    for tool in [
        Tool::script("true").with(|spec| spec.reads.push(gone.clone())),
        Tool::script("true").with(|spec| spec.writes.push(gone.clone())),
    ] {
        let error = tool.run(b"{}").unwrap_err();
        let RunError::Grant { path, message } = &error else { panic!("{error:?}") };
        assert_eq!(Path::new(path), gone);
        assert!(message.contains("No such file"), "{message}");
    }
}

#[test]
fn a_folder_that_is_removed_meanwhile_is_an_error_of_the_program() {
    let tool = Tool::script("mkdir $TMPDIR/a && cd $TMPDIR/a && rmdir $TMPDIR/a && echo x > file");
    let finished = tool.run(b"{}").unwrap();
    assert!(!matches!(finished.exit, ProcessExit::Code(0)), "{finished:?}");
}

#[test]
fn the_private_folder_is_its_own_and_gone_afterwards() {
    let body = "test \"$HOME\" = \"$TMPDIR\" && echo x > $HOME/.file && mkdir $HOME/d && \
                echo y > $HOME/d/file && stat -c %a $HOME && echo $HOME";
    let printed = Tool::script(body).prints();
    let (mode, place) = printed.trim().split_once('\n').unwrap();
    assert_eq!(mode, "700");
    assert!(!Path::new(place).exists(), "{place}");
}

#[test]
fn what_cannot_be_named_is_removed_too() {
    // It may be killed before it ends, for having too much in its folder.
    let body = "echo $HOME; cd $TMPDIR && i=0; while [ $i -lt 2000 ]; do mkdir d && cd d || \
                exit 1; i=$((i + 1)); done; sleep 60";
    let finished = Tool::script(body).run(b"{}").unwrap();
    let home = std::str::from_utf8(&finished.stdout).unwrap().trim();
    assert!(home.starts_with('/') && !Path::new(home).exists(), "{finished:?}");
}

#[test]
fn what_is_granted_of_proc_tells_nothing_of_the_environment_of_others() {
    let this = std::process::id();
    let tool = |body: &str| Tool::script(body).with(|spec| spec.reads.push("/proc".into()));
    let name = tool(&format!("cat /proc/{this}/comm")).prints();
    assert!(!name.is_empty());
    for file in ["environ", "mem", "maps"] {
        check_denied(file, &tool(&format!("cat /proc/{this}/{file}")));
    }
}
