//! Tests of the vault: which values it fetches, when, and which it redacts afterwards.

use std::path::Path;

use super::*;

const TOKEN: &str = "s3cr3t-Tok3n_9";

fn vault() -> Vault {
    Vault::new(Env::from_pairs([("TOKEN", TOKEN), ("EMPTY", ""), ("PIN", "1234")]))
}

fn env(variable: &str) -> SecretSource {
    SecretSource::Env(variable.into())
}

/// A temporary folder, and a path for a value in it.
fn file() -> (tempfile::TempDir, SecretSource) {
    let folder = tempfile::tempdir().unwrap();
    let source = SecretSource::File(folder.path().join("value"));
    (folder, source)
}

fn redacted(vault: &Vault, text: &str) -> String {
    vault.redactor().redact_text(text).into_owned()
}

#[test]
fn a_value_is_fetched_once_and_then_known() {
    let ((folder, file), vault) = (file(), vault());
    assert!(vault.redactor().is_empty());
    assert_eq!(vault.get("token", &env("TOKEN")).unwrap(), Secret::new(TOKEN));
    vault.set("file", &file, &Secret::new("first-value")).unwrap();
    let before = vault.redactor();
    assert_eq!(vault.get("file", &file).unwrap(), Secret::new("first-value"));
    assert_eq!(before.redact_text("first-value"), "first-value");
    std::fs::remove_file(folder.path().join("value")).unwrap();
    assert_eq!(vault.get("file", &file).unwrap(), Secret::new("first-value"));
    let text = format!("first-value {TOKEN}");
    assert_eq!(redacted(&vault, &text), "[secret file] [secret token]");
}

#[test]
fn what_was_fetched_before_a_change_is_still_taken_out() {
    let ((_folder, file), vault) = (file(), vault());
    for value in ["first-value", "other-value", "first-value"] {
        vault.set("key", &file, &Secret::new(value)).unwrap();
        assert_eq!(vault.get("key", &file).unwrap(), Secret::new(value));
    }
    assert_eq!(vault.get("key", &env("TOKEN")).unwrap(), Secret::new(TOKEN));
    let text = format!("first-value other-value {TOKEN}");
    assert_eq!(redacted(&vault, &text), "[secret key] [secret key] [secret key]");
    assert_eq!(vault.lock_state().replaced_values.len(), 2);
}

#[track_caller]
fn check_missing(error: &VaultError, message: &str, hint: &str) {
    assert_eq!(error.to_string(), message);
    assert!(error.hint().unwrap().contains(hint), "{:?}", error.hint());
    assert_eq!(error.model_message(), "the secret x is not available");
}

#[test]
fn a_secret_without_a_value_is_told_with_a_way_out() {
    let ((_folder, file), vault) = (file(), vault());
    for variable in ["EMPTY", "UNSET"] {
        let error = vault.get("x", &env(variable)).unwrap_err();
        let place = format!("the environment variable {variable}");
        let message = format!("the secret x cannot be read from {place}: it is not there");
        check_missing(&error, &message, &format!("set {variable} before"));
    }
    let error = vault.get("x", &file).unwrap_err();
    let SecretSource::File(path) = &file else { unreachable!() };
    let place = format!("the file {}", path.display());
    let message = format!("the secret x cannot be read from {place}: it is not there");
    check_missing(&error, &message, "sallyport secret set x");
    assert!(vault.remove("x", &file).unwrap_err().hint().is_none());
    // A later try finds the value that was written meanwhile.
    vault.set("x", &file, &Secret::new("late-value")).unwrap();
    assert_eq!(vault.get("x", &file).unwrap(), Secret::new("late-value"));
}

#[test]
fn every_problem_that_can_be_mended_says_how() {
    let folder = SecretSource::File("/".into());
    let link = SecretSource::File("/proc/self/exe".into());
    for (source, message, hint) in [
        (folder, "the file /: it is not a regular file", "a file of your own"),
        (link, "the file /proc/self/exe: it is a symbolic link", "the file itself"),
    ] {
        let error = vault().get("x", &source).unwrap_err();
        assert!(error.to_string().ends_with(message), "{error}");
        assert!(error.hint().unwrap().contains(hint), "{:?}", error.hint());
    }
    let exposed = VaultError {
        name: "x".into(),
        action: SecretAction::Read,
        secret_source: SecretSource::File(Path::new("/a").into()),
        problem: SecretProblem::Exposed { mode: 0o640 },
    };
    assert!(exposed.to_string().ends_with("others may open it (mode 640)"), "{exposed}");
    assert!(exposed.hint().unwrap().starts_with("run chmod 600 /a"), "{:?}", exposed.hint());
}

#[test]
fn the_environment_is_not_written_to() {
    let (vault, place) = (vault(), env("TOKEN"));
    let tried = [
        check_writable("token", &place),
        vault.set("token", &place, &Secret::new("x")),
        vault.remove("token", &place),
    ];
    for error in tried.map(Result::unwrap_err) {
        assert!(error.to_string().contains("not this program's to change"), "{error}");
        assert!(error.hint().unwrap().contains("set TOKEN before"), "{:?}", error.hint());
    }
}

#[test]
fn nothing_that_is_printed_holds_a_value() {
    let vault = vault();
    vault.get("token", &env("TOKEN")).unwrap();
    vault.get("pin", &env("PIN")).unwrap();
    assert_eq!(vault.redactor().too_short_names(), ["pin"]);
    let shown = format!("{vault:?}");
    assert!(!shown.contains(TOKEN) && !shown.contains("1234"), "{shown}");
}

/// The entry's name is unique to this process, and it is removed at the end.
#[test]
#[cfg(target_os = "linux")]
fn the_keyring_keeps_a_value_where_the_system_has_one() {
    let service = format!("test-{}", std::process::id());
    let place = SecretSource::Keyring { service, account: "me/too".into() };
    let vault = vault();
    let long = Secret::new("x".repeat(40_000));
    let error = vault.set("key", &place, &long).unwrap_err().to_string();
    assert!(error.ends_with("it is longer than 32767 bytes"), "{error}");
    match vault.set("key", &place, &Secret::new(TOKEN)) {
        // A container may lack a keyring; the error then reports that.
        Err(error) => assert!(error.to_string().contains("keyring cannot be used"), "{error}"),
        Ok(()) => check_keyring(&vault, &place),
    }
}

#[cfg(target_os = "linux")]
fn check_keyring(vault: &Vault, place: &SecretSource) {
    assert_eq!(vault.get("key", place).unwrap(), Secret::new(TOKEN));
    vault.set("key", place, &Secret::new("other-value")).unwrap();
    // Another thread has separate keyrings, as another process does.
    let there = || vault.get("key", place);
    let there = std::thread::scope(|scope| scope.spawn(there).join().unwrap());
    assert_eq!(there.unwrap(), Secret::new("other-value"));
    vault.remove("key", place).unwrap();
    let missing = vault.get("key", place).unwrap_err();
    assert!(missing.to_string().ends_with("it is not there"), "{missing}");
    assert!(missing.hint().unwrap().contains("forgets"), "{:?}", missing.hint());
}

/// A vault whose sources answer as a test defines.
fn answering(
    answer: impl Fn(&str) -> Result<Secret, SecretProblem> + Send + Sync + 'static,
    time_max: Duration,
) -> Vault {
    let read = move |source: &SecretSource| match source {
        SecretSource::Env(variable) => answer(variable),
        SecretSource::File(_) | SecretSource::Keyring { .. } => Err(SecretProblem::Missing),
    };
    Vault::with_reader(Arc::new(read), time_max)
}

fn told(remarks: &[SecretRemark]) -> Vec<String> {
    remarks.iter().map(ToString::to_string).collect()
}

#[test]
fn every_secret_that_the_policy_names_is_known_before_anybody_asks_for_one() {
    let ((_folder, file), vault) = (file(), vault());
    vault.set("filed", &file, &Secret::new("value-of-a-file")).unwrap();
    let (token, unset, pin) = (env("TOKEN"), env("UNSET"), env("PIN"));
    let named = || vec![("filed", &file), ("pin", &pin), ("token", &token), ("unset", &unset)];
    let remarks = told(&vault.fetch_named_secrets(0, named));
    assert_eq!(
        redacted(&vault, &format!("{TOKEN} value-of-a-file")),
        "[secret token] [secret filed]"
    );
    let [missing, short] = remarks.as_slice() else { panic!("{remarks:?}") };
    assert!(missing.contains("the secret unset cannot be read") && missing.contains("set UNSET"));
    assert!(short.contains("pin is shorter than 6 bytes"), "{short}");
    // No remark is reported twice, not even under another edition.
    assert!(
        vault.fetch_named_secrets(0, named).is_empty()
            && vault.fetch_named_secrets(1, named).is_empty()
    );
}

#[test]
fn a_secret_that_the_policy_comes_to_name_is_known_with_its_edition() {
    let vault = vault();
    let (token, pin) = (env("TOKEN"), env("PIN"));
    vault.fetch_named_secrets(0, || vec![("pin", &pin)]);
    assert_eq!(redacted(&vault, TOKEN), TOKEN);
    vault.fetch_named_secrets(1, || vec![("pin", &pin), ("token", &token)]);
    assert_eq!(redacted(&vault, TOKEN), "[secret token]");
    // A value that is no longer named may still pass through the process.
    vault.fetch_named_secrets(2, Vec::new);
    assert_eq!(redacted(&vault, TOKEN), "[secret token]");
}

#[test]
fn of_a_file_that_changes_both_values_are_known() {
    let ((folder, file), vault) = (file(), vault());
    let named = || vec![("key", &file)];
    vault.fetch_named_secrets(0, named);
    for value in ["first-value", "other-value-of-it"] {
        // Writes the file as another process would.
        Vault::new(Env::from_pairs([])).set("key", &file, &Secret::new(value)).unwrap();
        assert!(vault.fetch_named_secrets(0, named).is_empty());
        assert_eq!(vault.get("key", &file).unwrap(), Secret::new(value));
    }
    std::fs::remove_file(folder.path().join("value")).unwrap();
    let remarks = told(&vault.fetch_named_secrets(0, named));
    assert!(remarks.len() == 1 && remarks[0].contains("it is not there"), "{remarks:?}");
    let text = "first-value other-value-of-it";
    assert_eq!(redacted(&vault, text), "[secret key] [secret key]");
}

/// A value that was removed, or that others could open, was sent until the program ended.
#[test]
fn a_value_whose_file_is_gone_or_exposed_is_not_used_any_more() {
    use std::{fs, os::unix::fs::PermissionsExt};

    let set_mode = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    let write = |path: &Path, text: &str| {
        fs::write(path, text).unwrap();
        set_mode(path, 0o600);
    };
    let ((folder, file), vault) = (file(), vault());
    let (path, named) = (folder.path().join("value"), || vec![("key", &file)]);
    let spoilers: [(&dyn Fn(), &str); 4] = [
        (&|| fs::remove_file(&path).unwrap(), "it is not there"),
        (&|| set_mode(&path, 0o644), "others may open it"),
        (&|| write(&path, ""), "it is empty"),
        (
            &|| {
                fs::remove_file(&path).unwrap();
                fs::create_dir(&path).unwrap();
            },
            "it is not a regular file",
        ),
    ];
    for (spoil, want) in spoilers {
        write(&path, "value-of-the-file");
        vault.fetch_named_secrets(0, named);
        assert_eq!(vault.get("key", &file).unwrap(), Secret::new("value-of-the-file"));
        // Two changes within one tick of the kernel's clock have the same stamp.
        std::thread::sleep(Duration::from_millis(20));
        spoil();
        vault.fetch_named_secrets(0, named);
        let error = vault.get("key", &file).unwrap_err().to_string();
        assert!(error.contains(want), "{error}");
        assert_eq!(redacted(&vault, "value-of-the-file"), "[secret key]");
    }
}

#[test]
fn a_value_whose_source_does_not_answer_stays_in_use() {
    let vault = vault();
    let wanted = SecretFetchRequest { name: "token".to_owned(), source: env("TOKEN") };
    vault.get("token", &wanted.source).unwrap();
    let mut state = vault.lock_state();
    let mut fail = |problem| {
        let request = wanted.clone();
        state.store_results(&[SecretFetchResult { request, stamp: None, value: Err(problem) }]);
        state.cached_secret(&wanted)
    };
    assert!(fail(SecretProblem::Late { time: FETCH_TIME_MAX }).is_some());
    assert!(fail(SecretProblem::Io(std::io::ErrorKind::TimedOut.into())).is_some());
    assert!(fail(SecretProblem::Missing).is_none());
}

#[test]
fn a_place_that_does_not_answer_holds_nobody_up_for_good() {
    let (answers, waits) = std::sync::mpsc::channel::<()>();
    let (waits, asked) = (Mutex::new(waits), Arc::new(Mutex::new(0)));
    let counted = Arc::clone(&asked);
    let answer = move |variable: &str| match variable {
        "HANGS" => {
            *counted.lock().unwrap() += 1;
            let _ = waits.lock().unwrap().recv();
            Ok(Secret::new("late-but-here"))
        }
        _ => Ok(Secret::new(TOKEN)),
    };
    let vault = answering(answer, Duration::from_millis(200));
    let (hangs, token) = (env("HANGS"), env("TOKEN"));
    let named = || vec![("hangs", &hangs), ("token", &token)];
    let remarks = told(&vault.fetch_named_secrets(0, named));
    assert!(remarks.len() == 1 && remarks[0].contains("was not read within"), "{remarks:?}");
    // The others are known; this one is unused, and it is not fetched a second time.
    assert_eq!(redacted(&vault, TOKEN), "[secret token]");
    let error = vault.get("hangs", &hangs).unwrap_err();
    assert!(matches!(error.problem, SecretProblem::Late { .. }), "{error}");
    assert_eq!(*asked.lock().unwrap(), 1);
    answers.send(()).unwrap();
    while redacted(&vault, "late-but-here") == "late-but-here" {
        assert!(vault.fetch_named_secrets(0, named).is_empty());
        std::thread::yield_now();
    }
    assert_eq!(vault.get("hangs", &hangs).unwrap(), Secret::new("late-but-here"));
}

#[test]
fn secrets_are_fetched_side_by_side() {
    // Each fetch waits until all have started.
    let together = std::sync::Barrier::new(8);
    let answer = move |variable: &str| {
        together.wait();
        Ok(Secret::new(format!("value-of-{variable}")))
    };
    let vault = answering(answer, Duration::from_secs(60));
    let names: Vec<String> = (0..8).map(|number| format!("V{number}")).collect();
    let sources: Vec<SecretSource> = names.iter().map(|name| env(name)).collect();
    let named = names.iter().map(String::as_str).zip(&sources).collect();
    assert!(vault.fetch_named_secrets(0, || named).is_empty());
    assert_eq!(redacted(&vault, "value-of-V0 value-of-V7"), "[secret V0] [secret V7]");
}

#[test]
fn keys_of_models_are_known_and_called_after_the_policy_where_it_names_them_too() {
    let vault = vault();
    vault.add_redacted_keys([
        ("API_KEY".to_owned(), Secret::new(TOKEN)),
        ("K".to_owned(), Secret::new("other-key")),
    ]);
    assert_eq!(redacted(&vault, &format!("{TOKEN} other-key")), "[secret API_KEY] [secret K]");
    vault.get("token", &env("TOKEN")).unwrap();
    assert_eq!(redacted(&vault, TOKEN), "[secret token]");
}

/// A token that was refreshed each hour made the redactor slower each hour.
#[test]
fn the_tokens_of_an_account_do_not_add_up_and_those_of_others_stay() {
    let vault = vault();
    let token = |number: usize| format!("access-token-of-ann-{number:04}");
    let set = |account: &str, token: &str| {
        let (account, name) = (account.to_owned(), "mail access token".to_owned());
        vault.set_account_token(account, name, Secret::new(token));
    };
    set("mail\nbob", "access-token-of-bob");
    (0..=REPLACED_VALUES_MAX + 1).for_each(|number| set("mail\nann", &token(number)));
    let hidden = "[secret mail access token]";
    for known in [&token(1), &token(REPLACED_VALUES_MAX + 1), "access-token-of-bob"] {
        assert_eq!(redacted(&vault, known), hidden, "{known}");
    }
    assert_eq!(redacted(&vault, &token(0)), token(0), "it ended long ago");
}
