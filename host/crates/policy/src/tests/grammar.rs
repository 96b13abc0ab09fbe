//! Every key of a policy, in both directions: a file in which it permits something, and one in
//! which it does not.
//!
//! The readers themselves report their keys, so a new key without rows fails here.

use std::{
    cell::RefCell,
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use sallyport_contract::Decision;
use serde_json::Map;
use url::Url;

use super::{GREEDY, decide, grammar_rules, manifest, parse_policy, reaches, send};
use crate::{
    Capability,
    FsAccess::{self, ReadWrite},
    GlobalLimits, Grant, MachineFacts, PluginLimits, Policy, SecretSource, SecretUse, SourceError,
    TomlSection,
};

/// A table, a key in it, a file in which the key decides about a power, that power, and whether the
/// plugin has it.
type Row = (&'static str, &'static str, &'static str, Power, bool);

/// An action of a plugin, or of the host for it.
enum Power {
    /// Sends a request.
    Send(&'static str),
    /// Sends a request to a host with an address.
    Reach(&'static str, &'static str),
    /// Sends a request without a question.
    SendUnasked(&'static str),
    /// Accesses a guest path.
    Touch(&'static str, FsAccess),
    /// Stores this many bytes in its first mount.
    Fill(u64),
    /// Sees a variable.
    See(&'static str),
    /// Reads a secret.
    Read(&'static str),
    /// Adds a header to a request to a URL.
    Carry(&'static str, &'static str),
    /// Uses this source for the secret `pin`.
    ComeFrom(fn() -> SecretSource),
    /// Sends this many requests in a call.
    SendMany(u32),
    /// Holds a capability, or part of it.
    Hold(Capability),
    /// Keeps a value of this many bytes.
    Keep(u64),
    /// Sets this many timers that repeat after this many seconds.
    Plan(u32, u64),
    /// Sends this many messages in a minute.
    Tell(u32),
    /// Opens a page.
    Open(&'static str),
    /// Opens a page without a question.
    OpenUnasked(&'static str),
    /// Stores this many bytes in the scratch at a path.
    Store(&'static str, u64),
    /// Listens on an address.
    Hear(&'static str),
    /// Answers questions.
    Confirm,
    /// Runs as a native program.
    Process { network: bool, unwalled: bool },
    /// Sends a request past the proxy.
    Bypass(&'static str),
    /// Runs a tool without a question.
    Run,
    /// Starts, on a machine where `/guarded` belongs to the host.
    Start,
}

use Power::{
    Bypass, Carry, ComeFrom, Confirm, Fill, Hear, Hold, Keep, Open, OpenUnasked, Plan, Process,
    Reach, Read, Run, See, Send, SendMany, SendUnasked, Start, Store, Tell, Touch,
};

const GET: &str = "GET https://api.example.com/a";
const LOCAL: &str = "GET http://localhost:8080/a";
const INTERN: &str = "GET https://intern.example/a";
const API: &str = "https://api.example.com/a";
const WWW: &str = "https://www.example.com/a";

#[rustfmt::skip]
const ROWS: &[Row] = &[
    ("file", "plugin", "[plugin.weather]\nenv = ['TZ']", See("TZ"), true),
    ("file", "plugin", "[plugin.other]\nenv = ['TZ']", See("TZ"), false),
    ("file", "rule", "[[rule]]\ntool = 'weather.*'\ndecision = 'allow'", Run, true),
    ("file", "rule", "[[rule]]\ntool = 'weather.*'\ndecision = 'deny'", Run, false),
    ("file", "secret", "[plugin.weather]\nsecrets = [{ name = 'pin', reveal = true }]\n[secret.pin]\nenv = 'P'", Read("pin"), true),
    ("file", "secret", "[plugin.weather]\nsecrets = [{ name = 'pin', reveal = true }]", Read("pin"), false),
    ("file", "proxy", "[proxy]\nhttps = 'http://p.example'", Bypass("http://a.io/"), true),
    ("file", "proxy", "[proxy]\nhttps = 'http://p.example'", Bypass("https://a.io/"), false),

    ("plugin", "net", "[plugin.weather]\nnet = ['GET https://api.example.com/a']", Send(GET), true),
    ("plugin", "net", "[plugin.weather]\nnet = ['GET https://api.example.com/b']", Send(GET), false),
    ("plugin", "fs", "[plugin.weather]\nfs = [{ path = '/n', access = 'read' }]", Touch("/n/x", FsAccess::Read), true),
    ("plugin", "fs", "[plugin.weather]\nfs = [{ path = '/m', access = 'read' }]", Touch("/n/x", FsAccess::Read), false),
    ("plugin", "env", "[plugin.weather]\nenv = ['TZ']", See("TZ"), true),
    ("plugin", "env", "[plugin.weather]\nenv = ['LANG']", See("TZ"), false),
    ("plugin", "secrets", "[plugin.weather]\nsecrets = [{ name = 'pin', reveal = true }]\n[secret.pin]\nenv = 'P'", Read("pin"), true),
    ("plugin", "secrets", "[plugin.weather]\nsecrets = []\n[secret.pin]\nenv = 'P'", Read("pin"), false),
    ("plugin", "limits", "[plugin.weather]\nlimits = { http-requests = 5 }", SendMany(5), true),
    ("plugin", "limits", "[plugin.weather]\nlimits = { http-requests = 5 }", SendMany(6), false),

    ("plugin", "state", "[plugin.weather]\nstate = true", Hold(Capability::State), true),
    ("plugin", "state", "[plugin.weather]\nstate = false", Hold(Capability::State), false),
    ("plugin", "schedule", "[plugin.weather]\nschedule = true", Hold(Capability::Schedule), true),
    ("plugin", "schedule", "[plugin.weather]\nschedule = false", Hold(Capability::Schedule), false),
    ("plugin", "notify", "[plugin.weather]\nnotify = {}", Hold(Capability::Notify), true),
    ("plugin", "notify", "[plugin.weather]\nnotify = false", Hold(Capability::Notify), false),
    ("plugin", "progress", "[plugin.weather]\nprogress = true", Hold(Capability::Progress), true),
    ("plugin", "progress", "[plugin.weather]\nprogress = false", Hold(Capability::Progress), false),
    ("plugin", "open-url", "[plugin.weather]\nopen-url = true", Hold(Capability::OpenUrl), true),
    ("plugin", "open-url", "[plugin.weather]\nopen-url = false", Hold(Capability::OpenUrl), false),
    ("plugin", "packages", "[plugin.weather]\npackages = ['*']", Hold(Capability::Packages), true),
    ("plugin", "packages", "[plugin.weather]\npackages = []", Hold(Capability::Packages), false),
    ("plugin", "scratch", "[plugin.weather]\nscratch = [{ name = 'sandbox' }]", Hold(Capability::Scratch), true),
    ("plugin", "scratch", "[plugin.weather]\nscratch = [{ name = 'other' }]", Hold(Capability::Scratch), false),
    ("plugin", "listen", "[plugin.weather]\nlisten = ['stdin']", Hold(Capability::Listen), true),
    ("plugin", "listen", "[plugin.weather]\nlisten = []", Hold(Capability::Listen), false),
    ("plugin", "ui", "[plugin.weather]\nui = true", Hold(Capability::Ui), true),
    ("plugin", "ui", "[plugin.weather]\nui = false", Hold(Capability::Ui), false),
    ("plugin", "process", "[plugin.weather]\nprocess = true", Hold(Capability::Process), true),
    ("plugin", "process", "[plugin.weather]\nprocess = false", Hold(Capability::Process), false),

    ("state", "quota", "[plugin.weather]\nstate = { quota = '9KiB' }", Keep(9 << 10), true),
    ("state", "quota", "[plugin.weather]\nstate = { quota = '8KiB' }", Keep(9 << 10), false),
    ("state", "value", "[plugin.weather]\nstate = { value = '9KiB' }", Keep(9 << 10), true),
    ("state", "value", "[plugin.weather]\nstate = { value = '8KiB' }", Keep(9 << 10), false),
    ("schedule", "timers", "[plugin.weather]\nschedule = { timers = 5 }", Plan(5, 60), true),
    ("schedule", "timers", "[plugin.weather]\nschedule = { timers = 4 }", Plan(5, 60), false),
    ("schedule", "interval", "[plugin.weather]\nschedule = { interval = '5s' }", Plan(1, 5), true),
    ("schedule", "interval", "[plugin.weather]\nschedule = { interval = '6s' }", Plan(1, 5), false),
    ("notify", "per-minute", "[plugin.weather]\nnotify = { per-minute = 5 }", Tell(5), true),
    ("notify", "per-minute", "[plugin.weather]\nnotify = { per-minute = 4 }", Tell(5), false),
    ("open-url", "allow", "[plugin.weather]\nopen-url = { allow = ['https://*.example.com/**'] }", Open(API), true),
    ("open-url", "allow", "[plugin.weather]\nopen-url = { allow = ['https://*.example.com/b'] }", Open(API), false),
    ("open-url", "decision", "[plugin.weather]\nopen-url = { decision = 'allow' }", OpenUnasked(API), true),
    ("open-url", "decision", "[plugin.weather]\nopen-url = { decision = 'ask' }", OpenUnasked(API), false),
    ("scratch", "name", "[plugin.weather]\nscratch = [{ name = 'sandbox' }]", Store("/sandbox", 1), true),
    ("scratch", "name", "[plugin.weather]\nscratch = [{ name = 'sandbax' }]", Store("/sandbox", 1), false),
    ("scratch", "mount", "[plugin.weather]\nscratch = [{ name = 'sandbox', mount = '/work' }]", Store("/work", 1), true),
    ("scratch", "mount", "[plugin.weather]\nscratch = [{ name = 'sandbox', mount = '/wark' }]", Store("/work", 1), false),
    ("scratch", "quota", "[plugin.weather]\nscratch = [{ name = 'sandbox', quota = '9KiB' }]", Store("/sandbox", 9 << 10), true),
    ("scratch", "quota", "[plugin.weather]\nscratch = [{ name = 'sandbox', quota = '8KiB' }]", Store("/sandbox", 9 << 10), false),
    ("listen", "at", "[plugin.weather]\nlisten = [{ at = 'http://127.0.0.1:8077/a' }]", Hear("http://127.0.0.1:8077/a"), true),
    ("listen", "at", "[plugin.weather]\nlisten = [{ at = 'http://127.0.0.1:8077/b' }]", Hear("http://127.0.0.1:8077/a"), false),
    ("listen", "public", "[plugin.weather]\nlisten = [{ at = 'http://0.0.0.0:8077/a', public = true }]", Hear("http://0.0.0.0:8077/a"), true),
    ("listen", "public", "[plugin.weather]\nlisten = [{ at = 'http://0.0.0.0:8077/a', public = false }]", Hear("http://0.0.0.0:8077/a"), false),
    ("ui", "confirm", "[plugin.weather]\nui = { confirm = true }", Confirm, true),
    ("ui", "confirm", "[plugin.weather]\nui = { confirm = false }", Confirm, false),
    ("process", "network", "[plugin.weather]\nprocess = { network = true }", Process { network: true, unwalled: false }, true),
    ("process", "network", "[plugin.weather]\nprocess = { network = false }", Process { network: true, unwalled: false }, false),
    ("process", "unwalled", "[plugin.weather]\nprocess = { unwalled = true }", Process { network: false, unwalled: true }, true),
    ("process", "unwalled", "[plugin.weather]\nprocess = { unwalled = false }", Process { network: false, unwalled: true }, false),

    ("net", "allow", "[plugin.weather]\nnet = [{ allow = 'GET https://*.example.com:400-500/**' }]", Send(GET), true),
    ("net", "allow", "[plugin.weather]\nnet = [{ allow = 'GET https://*.example.com:444-500/**' }]", Send(GET), false),
    ("net", "deny", "[plugin.weather]\nnet = ['GET https://api.example.com/**', { deny = '* https://*/b' }]", Send(GET), true),
    ("net", "deny", "[plugin.weather]\nnet = ['GET https://api.example.com/**', { deny = '* https://**' }]", Send(GET), false),
    ("net", "to-private", "[plugin.weather]\nnet = [{ allow = 'GET http://localhost:8080/**', to-private = true }]", Reach(LOCAL, "127.0.0.1"), true),
    ("net", "to-private", "[plugin.weather]\nnet = [{ allow = 'GET http://localhost:8080/**', to-private = false }]", Reach(LOCAL, "127.0.0.1"), false),
    ("net", "range", "[plugin.weather]\nnet = [{ allow = 'GET https://intern.example/**', to-private = true, range = '10.0.0.0/8' }]", Reach(INTERN, "10.1.2.3"), true),
    ("net", "range", "[plugin.weather]\nnet = [{ allow = 'GET https://intern.example/**', to-private = true, range = '10.2.0.0/16' }]", Reach(INTERN, "10.1.2.3"), false),
    ("net", "decision", "[plugin.weather]\nnet = [{ allow = 'GET https://api.example.com/**', decision = 'allow' }]", SendUnasked(GET), true),
    ("net", "decision", "[plugin.weather]\nnet = [{ allow = 'GET https://api.example.com/**', decision = 'ask' }]", SendUnasked(GET), false),

    ("fs", "path", "[plugin.weather]\nfs = [{ path = '/srv', access = 'read' }]", Start, true),
    ("fs", "path", "[plugin.weather]\nfs = [{ path = '/guarded', access = 'read' }]", Start, false),
    ("fs", "access", "[plugin.weather]\nfs = [{ path = '/n', access = 'read-write' }]", Touch("/n/x", ReadWrite), true),
    ("fs", "access", "[plugin.weather]\nfs = [{ path = '/n', access = 'read' }]", Touch("/n/x", ReadWrite), false),
    ("fs", "mount", "[plugin.weather]\nfs = [{ path = '/n', access = 'read', mount = '/m' }]", Touch("/m/x", FsAccess::Read), true),
    ("fs", "mount", "[plugin.weather]\nfs = [{ path = '/n', access = 'read', mount = '/m' }]", Touch("/n/x", FsAccess::Read), false),
    ("fs", "deny", "[plugin.weather]\nfs = [{ path = '/n', access = 'read', deny = ['**/.env*'] }]", Touch("/n/x/env", FsAccess::Read), true),
    ("fs", "deny", "[plugin.weather]\nfs = [{ path = '/n', access = 'read', deny = ['**/.env*'] }]", Touch("/n/x/.env/y", FsAccess::Read), false),
    ("fs", "quota", "[plugin.weather]\nfs = [{ path = '/n', access = 'read-write', quota = '1KiB' }]", Fill(1024), true),
    ("fs", "quota", "[plugin.weather]\nfs = [{ path = '/n', access = 'read-write', quota = '1KiB' }]", Fill(1025), false),
    ("fs", "sensitive", "[plugin.weather]\nfs = [{ path = '/guarded', access = 'read', sensitive = true }]", Start, true),
    ("fs", "sensitive", "[plugin.weather]\nfs = [{ path = '/guarded', access = 'read', sensitive = false }]", Start, false),

    ("secrets", "name", "[plugin.weather]\nsecrets = [{ name = 'pin', reveal = true }]\n[secret.pin]\nenv = 'P'\n[secret.key]\nenv = 'K'", Read("pin"), true),
    ("secrets", "name", "[plugin.weather]\nsecrets = [{ name = 'key', reveal = true }]\n[secret.pin]\nenv = 'P'\n[secret.key]\nenv = 'K'", Read("pin"), false),
    ("secrets", "reveal", "[plugin.weather]\nsecrets = [{ name = 'pin', reveal = true }]\n[secret.pin]\nenv = 'P'", Read("pin"), true),
    ("secrets", "reveal", "[plugin.weather]\nsecrets = [{ name = 'pin', reveal = false, to = 'https://a.io', header = 'X' }]\n[secret.pin]\nenv = 'P'", Read("pin"), false),
    ("secrets", "to", "[plugin.weather]\nsecrets = [{ name = 'pin', to = 'https://api.example.com', header = 'X' }]\n[secret.pin]\nenv = 'P'", Carry(API, "x: s3"), true),
    ("secrets", "to", "[plugin.weather]\nsecrets = [{ name = 'pin', to = 'https://api.example.com', header = 'X' }]\n[secret.pin]\nenv = 'P'", Carry(WWW, "x: s3"), false),
    ("secrets", "header", "[plugin.weather]\nsecrets = [{ name = 'pin', to = 'https://api.example.com', header = 'Y' }]\n[secret.pin]\nenv = 'P'", Carry(API, "y: s3"), true),
    ("secrets", "header", "[plugin.weather]\nsecrets = [{ name = 'pin', to = 'https://api.example.com', header = 'Host' }]\n[secret.pin]\nenv = 'P'", Carry(API, "host: s3"), false),
    ("secrets", "format", "[plugin.weather]\nsecrets = [{ name = 'pin', to = 'https://api.example.com', header = 'X', format = 'Bearer {}' }]\n[secret.pin]\nenv = 'P'", Carry(API, "x: Bearer s3"), true),
    ("secrets", "format", "[plugin.weather]\nsecrets = [{ name = 'pin', to = 'https://api.example.com', header = 'X', format = 'Basic {}' }]\n[secret.pin]\nenv = 'P'", Carry(API, "x: Bearer s3"), false),

    ("secret", "env", "[secret.pin]\nenv = 'PIN'", ComeFrom(|| SecretSource::Env("PIN".into())), true),
    ("secret", "env", "[secret.pin]\nenv = 'PAN'", ComeFrom(|| SecretSource::Env("PIN".into())), false),
    ("secret", "file", "[secret.pin]\nfile = '~/pin'", ComeFrom(|| SecretSource::File("/home/me/pin".into())), true),
    ("secret", "file", "[secret.pin]\nfile = 'home/me/pin'", ComeFrom(|| SecretSource::File("/home/me/pin".into())), false),
    ("secret", "keyring", "[secret.pin]\nkeyring = 'a/b'", ComeFrom(|| SecretSource::Keyring { service: "a".into(), account: "b".into() }), true),
    ("secret", "keyring", "[secret.pin]\nkeyring = 'b/a'", ComeFrom(|| SecretSource::Keyring { service: "a".into(), account: "b".into() }), false),

    ("file", "limits", "[limits]\nhttp-requests = 3", SendMany(3), true),
    ("file", "limits", "[limits]\nhttp-requests = 3", SendMany(4), false),

    ("proxy", "http", "[proxy]\nhttp = 'http://p.example'", Bypass("https://a.io/"), true),
    ("proxy", "http", "[proxy]\nhttp = 'http://p.example'", Bypass("http://a.io/"), false),
    ("proxy", "https", "[proxy]\nhttps = 'http://p.example'", Bypass("http://a.io/"), true),
    ("proxy", "https", "[proxy]\nhttps = 'http://p.example'", Bypass("https://a.io/"), false),
    ("proxy", "bypass", "[proxy]\nhttp = 'http://p.example'\nbypass = ['a.io']", Bypass("http://a.io/"), true),
    ("proxy", "bypass", "[proxy]\nhttp = 'http://p.example'\nbypass = ['b.io']", Bypass("http://a.io/"), false),
];

/// A limit as a file states it, the field that it sets, and the resulting value.
type LimitRow = (&'static str, &'static str, fn(&PluginLimits) -> u64, u64);

fn ms(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap()
}

const LIMITS: &[LimitRow] = &[
    ("time", "'2s'", |limits| ms(limits.time), 2000),
    ("cpu", "'1s'", |limits| limits.cpu.map_or(u64::MAX, ms), 1000),
    ("memory", "'1MiB'", |limits| limits.memory_bytes, 1 << 20),
    ("output", "'1KiB'", |limits| limits.output_bytes, 1024),
    ("log", "100", |limits| limits.log_bytes, 100),
    ("host-call", "'8KiB'", |limits| limits.host_call_bytes, 8192),
    ("handles", "20", |limits| limits.handles.into(), 20),
    ("files", "2", |limits| limits.files.into(), 2),
    ("concurrent-calls", "3", |limits| limits.concurrent_calls.into(), 3),
    ("queue-time", "'5s'", |limits| ms(limits.queue_time), 5000),
    ("calls-per-minute", "7", |limits| limits.calls_per_minute.map_or(u64::MAX, u64::from), 7),
    ("http-requests", "9", |limits| limits.http_requests.into(), 9),
    ("http-body", "'2KiB'", |limits| limits.http_body_bytes, 2048),
    ("http-total", "'4KiB'", |limits| limits.http_total_bytes, 4096),
    ("http-redirects", "4", |limits| limits.http_redirects.into(), 4),
    ("http-time", "'3s'", |limits| ms(limits.http_time), 3000),
    ("approval-time", "'1m'", |limits| ms(limits.approval_time), 60_000),
    ("idle", "'20m'", |limits| ms(limits.idle), 1_200_000),
    ("prepared-instances", "2", |limits| limits.prepared_instances.into(), 2),
];

fn started(file: &str) -> Result<(Policy, Grant), SourceError> {
    let policy = parse_policy(file)?;
    let own = [PathBuf::from("/guarded")];
    policy.check_guarded_folders(&MachineFacts {
        host_paths: &own,
        home: None,
        resolve_links: &Path::to_path_buf,
        find_links: &|_| Vec::new(),
    })?;
    let grant = policy.effective_grant(&manifest(GREEDY), &Map::new());
    Ok((policy, grant))
}

/// Whether the plugin has the power under a file. Under a refused file it has none.
fn passes(file: &str, power: &Power) -> bool {
    let Ok((policy, grant)) = started(file) else { return false };
    match power {
        Send(request) => send(&grant, request).is_ok(),
        Reach(request, addr) => reaches(&grant, request, addr),
        SendUnasked(request) => {
            let (method, url) = request.split_once(' ').unwrap();
            let permit = grant.net().check_request(method, &Url::parse(url).unwrap());
            permit.is_ok_and(|permit| permit.decision() == Decision::Allow)
        }
        Touch(path, wanted) => touches(&grant, Path::new(path), *wanted),
        Fill(bytes) => grant.fs()[0].quota_bytes.is_none_or(|most| *bytes <= most),
        See(name) => grant.env().iter().any(|seen| seen == name),
        Read(name) => {
            let reads = |grant: &crate::SecretGrant| grant.usage == SecretUse::Reveal;
            grant.secrets().iter().any(|secret| reads(secret) && secret.name.as_str() == *name)
        }
        Carry(url, line) => carries(&grant, &Url::parse(url).unwrap(), line),
        ComeFrom(source) => policy.secret_source(&"pin".parse().unwrap()) == Some(&source()),
        SendMany(requests) => *requests <= grant.limits().http_requests,
        Bypass(url) => policy.proxy().unwrap().address_for_url(&Url::parse(url).unwrap()).is_none(),
        Hold(capability) => grant.has_capability(*capability),
        Keep(bytes) => grant.state().is_some_and(|state| state.value_bytes_max >= *bytes),
        Plan(timers, seconds) => grant.schedule().is_some_and(|schedule| {
            schedule.timers_max >= *timers && schedule.interval_min.as_secs() <= *seconds
        }),
        Tell(messages) => grant.notify().is_some_and(|notify| notify.per_minute >= *messages),
        Open(url) => opens(&grant, url).is_some(),
        OpenUnasked(url) => opens(&grant, url) == Some(Decision::Allow),
        Store(path, bytes) => {
            let mut scratches = grant.scratch().iter();
            scratches.any(|scratch| scratch.mount == *path && scratch.quota_bytes >= *bytes)
        }
        Hear(at) => grant.listen().iter().any(|entry| entry.to_string() == *at),
        Confirm => grant.ui().is_some_and(|ui| ui.confirm),
        Process { network, unwalled } => grant
            .process()
            .is_some_and(|process| process.network == *network && process.unsandboxed == *unwalled),
        Run => decide(&policy, &grant, "weather.get").0 == Decision::Allow,
        Start => true,
    }
}

fn opens(grant: &Grant, url: &str) -> Option<Decision> {
    grant.open_url()?.check_url(&Url::parse(url).unwrap()).ok()
}

fn touches(grant: &Grant, path: &Path, wanted: FsAccess) -> bool {
    grant.fs().iter().any(|mount| {
        let below = path.strip_prefix(&mount.guest);
        below.is_ok_and(|below| {
            mount.access >= wanted && mount.deny.find_denying_pattern(below).is_none()
        })
    })
}

fn carries(grant: &Grant, url: &Url, line: &str) -> bool {
    let headers = grant.secrets().iter().filter_map(|secret| match &secret.usage {
        SecretUse::Inject(injection) if injection.applies_to_url(url) => {
            Some(format!("{}: {}", injection.header_name(), injection.header_value("s3")))
        }
        SecretUse::Inject(_) | SecretUse::Reveal => None,
    });
    headers.into_iter().any(|header| header == line)
}

thread_local! {
    /// Each table that was read on this thread, with a key that its reader asked for.
    static ASKED_FOR: RefCell<BTreeSet<(String, &'static str)>> = RefCell::default();
}

/// Returns a reader that does the same and records the keys that it asked for.
pub(crate) fn noting<'d, T>(
    label: String,
    read: impl FnOnce(&mut TomlSection<'d>) -> T,
) -> impl FnOnce(&mut TomlSection<'d>) -> T {
    move |section| {
        let value = read(section);
        let table = match label.trim_start_matches("an entry of ").trim_matches('"') {
            "" => "file",
            "weather" | "other" => "plugin",
            "pin" | "key" => "secret",
            table => table,
        };
        let keys = section.known().iter().map(|key| (table.to_owned(), *key));
        ASKED_FOR.with_borrow_mut(|asked| asked.extend(keys));
        value
    }
}

/// The keys with a row in which a power is granted, or with one in which it is not.
fn covered(passing: bool) -> BTreeSet<(String, &'static str)> {
    let rows = ROWS.iter().filter(|row| row.4 == passing).map(|row| (row.0, row.1));
    let rules = grammar_rules::ROWS.iter().filter(|row| row.2 == passing);
    let rules = rules.map(|row| ("rule", row.0));
    let limits = LIMITS.iter().map(|row| ("limits", row.0));
    rows.chain(rules).chain(limits).map(|(table, key)| (table.to_owned(), key)).collect()
}

/// Every key that a reader asks for while it reads the files of the rows.
fn asked_for() -> BTreeSet<(String, &'static str)> {
    ASKED_FOR.take();
    for (_, _, file, ..) in ROWS {
        // Some of the files are refused; their keys count too.
        let _ = parse_policy(file);
    }
    // A group grants nothing. Its keys have their tests in `group`.
    let mut asked = ASKED_FOR.take();
    asked.retain(|(_, key)| *key != "group");
    asked
}

#[test]
fn every_key_allows_and_denies_as_it_says() {
    for (table, key, file, power, passing) in ROWS {
        assert!(file.contains(&format!("{key} = ")) || *table == "file", "{file}");
        assert_eq!(passes(file, power), *passing, "{table} {key}: {file}");
    }
    for (key, value, allowed, most) in LIMITS {
        let file = format!("[plugin.weather]\nlimits = {{ {key} = {value} }}");
        let (_, grant) = started(&file).unwrap();
        assert_eq!(allowed(grant.limits()), *most, "{file}");
        assert_ne!(allowed(&PluginLimits::with_defaults()), *most, "{file}");
        // A limit for all plugins applies to each of them, except for those that count all calls
        // together.
        let (policy, grant) = started(&format!("[limits]\n{key} = {value}")).unwrap();
        let is_shared = ["calls-per-minute", "concurrent-calls"].contains(key);
        assert_eq!(allowed(grant.limits()) == *most, !is_shared, "{key} for all");
        let GlobalLimits { calls_per_minute, concurrent_calls } = policy.shared_limits();
        let shared = calls_per_minute.or(concurrent_calls).map(u64::from);
        assert_eq!(shared, is_shared.then_some(*most), "{key} for all");
    }
}

#[test]
fn every_key_has_a_row_that_allows_and_one_that_denies() {
    let asked = asked_for();
    for passing in [true, false] {
        let missing: Vec<_> = asked.difference(&covered(passing)).cloned().collect();
        assert!(missing.is_empty(), "no row with {passing} for {missing:?}");
    }
    // No table is missing.
    let tables: BTreeSet<&str> = asked.iter().map(|(table, _)| table.as_str()).collect();
    let known = [
        "file", "fs", "limits", "listen", "net", "notify", "open-url", "plugin", "process",
        "proxy", "rule", "schedule", "scratch", "secret", "secrets", "state", "ui",
    ];
    assert_eq!(tables, known.into());
}
