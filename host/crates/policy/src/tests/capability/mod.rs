//! Capabilities: requests and grants, parsing, several files, and refusals.

use std::time::Duration;

use serde_json::Map;

use super::{GREEDY, grant, manifest, policy};
use crate::{
    Capability, Grant, InstanceLifetime, Manifest, PluginRole, ProcessGrant, ScratchGrant,
    StateGrant, UiGrant,
};

mod decide;
mod explain;
mod fix;
mod listen;
mod mistakes;
mod tiers;

/// A plugin's table that grants every capability in its simplest form.
const ALL: &str = "[plugin.weather]\nstate = true\nschedule = true\nnotify = true\n\
                   progress = true\nopen-url = true\npackages = ['six']\n\
                   scratch = [{ name = 'sandbox' }]\nlisten = ['stdin']\nui = true\nprocess = true\n";

/// A request for one capability.
fn request(of: Capability) -> String {
    let more = match of {
        Capability::Scratch => "name = 'sandbox'\n",
        Capability::Listen => "kind = 'stdin'\n",
        Capability::State
        | Capability::Schedule
        | Capability::Notify
        | Capability::Progress
        | Capability::OpenUrl
        | Capability::Packages
        | Capability::Ui
        | Capability::Process => "",
    };
    format!("[[request.{of}]]\n{more}why = 'w'\n")
}

fn held(grant: &Grant) -> Vec<Capability> {
    Capability::ALL.into_iter().filter(|of| grant.has_capability(*of)).collect()
}

#[test]
fn every_capability_needs_both_keys() {
    for of in Capability::ALL {
        let (asked, unasked) = (grant(ALL, &request(of)), grant("", &request(of)));
        assert_eq!(held(&asked), [of]);
        assert_eq!(held(&unasked), []);
        assert_eq!(
            (asked.permission_lines().len(), unasked.permission_lines().len()),
            (1, 0),
            "{of}"
        );
        assert_eq!(held(&asked.without_permissions()), []);
        assert_eq!(asked.without_permissions().permission_lines(), [""; 0]);
        // All others are granted without a request, which a note states.
        let notes = asked.notes();
        assert_eq!(notes.len(), Capability::ALL.len() - 1, "{notes:?}");
        assert!(!notes.iter().any(|note| note.contains(&format!("grants {of} ="))), "{notes:?}");
    }
    assert_eq!(held(&grant(ALL, GREEDY)), Capability::ALL);
    assert_eq!(held(&Grant::empty("x".parse().unwrap())), []);
}

#[test]
fn without_a_word_about_how_much_the_standard_holds() {
    let grant = grant(ALL, GREEDY);
    let (quota_bytes, value_bytes_max) = (1 << 20, 64 << 10);
    assert_eq!(grant.state(), Some(&StateGrant { quota_bytes, value_bytes_max }));
    let schedule = grant.schedule().unwrap();
    assert_eq!((schedule.timers_max, schedule.interval_min), (64, Duration::from_secs(60)));
    assert_eq!(grant.notify().unwrap().per_minute, 10);
    let (name, mount, quota_bytes) = ("sandbox".to_owned(), "/sandbox".to_owned(), 64 << 20);
    assert_eq!(grant.scratch(), [ScratchGrant { name, mount, quota_bytes }]);
    assert_eq!(grant.ui(), Some(UiGrant { confirm: false }));
    assert_eq!(grant.process(), Some(&ProcessGrant { network: false, unsandboxed: false }));
}

#[test]
fn a_value_is_never_longer_than_all_of_them_together() {
    let grant = grant("[plugin.weather]\nstate = { quota = '1KiB' }", GREEDY);
    assert_eq!(grant.state().unwrap().value_bytes_max, 1024);
}

#[test]
fn a_power_reads_as_a_sentence() {
    let rows = [
        ("state = true", "keep up to 1MiB of state"),
        ("schedule = { interval = '5s' }", "set up to 64 timers, each at most every 5s"),
        ("notify = true", "send you up to 10 messages a minute"),
        ("progress = true", "show its progress"),
        ("open-url = true", "open any page in the browser (asks)"),
        (
            "open-url = { allow = ['https://*.a.io/**'], decision = 'allow' }",
            "open https://*.a.io/** in the browser",
        ),
        ("packages = ['Six', 'a_b == 1.0']", "fetch the packages six, a-b==1.0"),
        ("packages = ['six', '*']", "fetch any package"),
        (
            "scratch = [{ name = 'sandbox', mount = '/work' }]",
            "use the scratch sandbox, seen as /work, up to 64MiB",
        ),
        ("listen = ['http://localhost:8077/a/']", "listen at http://127.0.0.1:8077/a"),
        (
            "listen = [{ at = 'ws://[::]:0', public = true }]",
            "listen at ws://[::]:0/, where other machines can reach it",
        ),
        ("listen = ['stdin']", "read standard input"),
        ("ui = true", "watch the session and give it input"),
        ("ui = { confirm = true }", "watch the session, give it input and answer its questions"),
        ("process = true", "run as a program of this machine, without network"),
        (
            "process = { network = true, unwalled = true }",
            "run as a program of this machine, with network, without walls where the kernel has none",
        ),
    ];
    for (line, want) in rows {
        assert_eq!(
            grant(&format!("[plugin.weather]\n{line}"), GREEDY).permission_lines(),
            [want],
            "{line}"
        );
    }
}

#[test]
fn what_can_change_or_leak_is_asked_about() {
    let rows = [
        ("state = true", false),
        ("schedule = true", false),
        ("progress = true", false),
        ("scratch = [{ name = 'sandbox' }]", false),
        ("open-url = true", false),
        ("open-url = { decision = 'allow' }", true),
        ("notify = true", true),
        ("packages = ['six']", true),
        ("listen = ['stdin']", true),
        ("ui = true", true),
        ("process = true", true),
        ("process = false", false),
    ];
    for (line, want) in rows {
        let grant = grant(&format!("[plugin.weather]\n{line}"), GREEDY);
        assert_eq!(grant.can_change_or_leak(), want, "{line}");
        let is_idle = ["progress = true", "process = false"].contains(&line);
        assert_eq!(grant.can_act(), !is_idle, "{line}");
    }
}

#[test]
fn only_what_is_requested_is_held() {
    let text = "[plugin.weather]\nscratch = [{ name = 'a' }, { name = 'b' }]\n\
                listen = ['stdin', 'ws://127.0.0.1:80']\nui = { confirm = true }";
    let asks = "[[request.scratch]]\nname = 'b'\nwhy = 'w'\n[[request.listen]]\nkind = 'websocket'\n\
                why = 'w'\n[[request.ui]]\nwhy = 'w'\n[[request.ui]]\nwhy = 'x'";
    let grant = grant(text, asks);
    assert_eq!(grant.scratch()[0].name, "b");
    assert_eq!(grant.listen()[0].to_string(), "ws://127.0.0.1:80/");
    assert_eq!((grant.scratch().len(), grant.listen().len()), (1, 1));
    assert_eq!(grant.ui(), Some(UiGrant { confirm: false }));
    assert_eq!(
        grant.notes(),
        [
            "the manifest requests twice to watch the session and give it input",
            "policy.toml:2 grants scratch = { name = \"a\", mount = \"/a\" }, which the manifest does not request",
            "policy.toml:3 grants listen = \"stdin\", which the manifest does not request",
            "policy.toml:4 grants confirm, which the manifest does not request",
        ]
    );
}

#[test]
fn a_scratch_that_is_shared_has_one_quota() {
    let text = "[plugin.weather]\nscratch = [{ name = 'sandbox' }]\n\
                [plugin.other]\nscratch = [{ name = 'sandbox', quota = '9KiB' }]\n\
                [plugin.third]\nscratch = [{ name = 'sandbox', quota = '10KiB' }]";
    assert_eq!(grant(text, GREEDY).scratch()[0].quota_bytes, 9 << 10);
}

#[test]
fn a_script_asks_to_run_and_for_what_its_operator_names() {
    let script = Manifest::for_script("weather".parse().unwrap(), "a script".into());
    let text = "[plugin.weather]\nprocess = true\nenv = ['HOME']\n\
                fs = [{ path = '/srv/tasks', access = 'read-write' }]\nstate = true";
    let grant = policy(text).effective_grant(&script, &Map::new());
    assert_eq!(held(&grant), [Capability::Process]);
    assert_eq!((grant.env(), grant.fs().len()), (&["HOME".to_owned()][..], 1));
    assert_eq!(policy("").effective_grant(&script, &Map::new()).permission_lines(), [""; 0]);
    assert!(grant.deny_unsandboxed("run").fix.unwrap().toml.contains("unwalled = true"));
}

#[test]
fn roles_and_instances_are_read() {
    let usual = manifest("");
    assert_eq!(
        (usual.roles.as_slice(), usual.instance),
        (&[PluginRole::Tools][..], InstanceLifetime::Call)
    );
    let text = "roles = ['tools', 'provider', 'listener', 'guide', 'ui']\ninstance = 'session'";
    let all = manifest(text);
    assert_eq!(all.instance, InstanceLifetime::Session);
    assert_eq!(
        all.roles,
        [
            PluginRole::Tools,
            PluginRole::Provider,
            PluginRole::Listener,
            PluginRole::Guide,
            PluginRole::Ui
        ]
    );
    assert_eq!(
        policy("").effective_grant(&all, &Map::new()).notes(),
        [
            "the role \"listener\" has no effect: plugin.toml does not request listen",
            "the role \"ui\" has no effect: plugin.toml does not request ui",
        ]
    );
}
