//! Manifests: whatever their text, reading them does not panic, and a policy that gives away much
//! gives nothing that is not requested.
//!
//! Parts: a manifest, settings as JSON, a request as `METHOD URL`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sallyport_fuzz::{naive, parts, situation::user_policy, toml_string};
use sallyport_policy::{Capability, Grant, Manifest, NetPattern, Policy, SecretUse};
use serde_json::{Map, Value};
use url::Url;

/// Everything that capabilities can be.
const CAPABILITIES: &str = "state = true\nschedule = true\nnotify = true\nprogress = true\n\
    open-url = { decision = 'allow' }\npackages = ['*']\n\
    scratch = [{ name = 'desk' }, { name = 'box' }]\n\
    listen = ['http://127.0.0.1:0/hooks', 'ws://127.0.0.1:0/chat', 'stdin']\n\
    ui = { confirm = true }\nprocess = { network = true, unwalled = true }";

fuzz_target!(|input: &str| {
    let [text, settings, request] = parts(input);
    let Ok(manifest) = Manifest::parse("plugin.toml", text) else { return };
    let settings = match serde_json::from_str(settings) {
        Ok(Value::Object(settings)) => settings,
        _ => Map::new(),
    };
    manifest.settings.missing_settings(&settings);
    let request = request.split_once(' ');
    let request = request.and_then(|(method, url)| Some((method, Url::parse(url).ok()?)));
    let grant = generous(&manifest, request.as_ref().map(|(_, url)| url))
        .effective_grant(&manifest, &settings);
    check_names(&manifest, &grant);
    check_capabilities(&manifest, &grant);
    if let Some((method, url)) = request {
        check_net(&manifest, &settings, &grant, method, &url);
    }
    let nothing = Policy::empty().effective_grant(&manifest, &settings);
    assert!(nothing.permission_lines().is_empty(), "{:?}", nothing.permission_lines());
    let powerless = grant.without_permissions();
    assert!(powerless.permission_lines().is_empty(), "{:?}", powerless.permission_lines());
    assert!(
        Capability::ALL
            .into_iter()
            .all(|of| !powerless.has_capability(of) && !nothing.has_capability(of))
    );
});

/// Gives a plugin much of everything, and all that lies at the place of a URL.
fn generous(manifest: &Manifest, url: Option<&Url>) -> Policy {
    let asked = manifest.request.env.iter().map(|request| toml_string(&request.name));
    let env: Vec<_> = asked.chain(["'TZ'", "'PATH'"].map(str::to_owned)).collect();
    let rest = format!(
        "fs = [{{ path = '/srv/data', access = 'read-write' }}, {{ path = '/etc/os-release' , access = 'read' }}]\n\
         env = [{}]\nsecrets = [{{ name = 'key', reveal = true }}, \
         {{ name = 'pin', to = 'https://api.example.com', header = 'Authorization' }}]\n\
         {CAPABILITIES}\n[secret.key]\nenv = 'KEY'\n[secret.pin]\nenv = 'PIN'\n",
        env.join(", ")
    );
    let with = |net: &str| {
        user_policy(&format!("[plugin.{}]\n{net}\n{rest}", toml_string(manifest.name.as_str())))
    };
    let everything_at = |url: &Url| {
        let port = url.port_or_known_default()?;
        let pattern = format!("* {}://{}:{port}/**", url.scheme(), url.host_str()?);
        with(&format!("net = [{}]", toml_string(&pattern)))
    };
    url.and_then(everything_at).or_else(|| with("net = []")).expect("the policy is right")
}

fn check_names(manifest: &Manifest, grant: &Grant) {
    let request = &manifest.request;
    // A program of this machine has no way to name its variables.
    let names_any =
        request.capabilities.iter().any(|asked| asked.requested.capability == Capability::Process);
    for name in grant.env().iter().filter(|_| !names_any) {
        assert!(request.env.iter().any(|asked| asked.name == *name), "{name}");
    }
    for mount in grant.fs() {
        let is_asked = request.fs.iter().any(|asked| {
            let path = asked.path.as_ref();
            asked.access >= mount.access && path.is_none_or(|path| mount.host.starts_with(path))
        });
        assert!(is_asked, "{mount:?}");
    }
    for secret in grant.secrets() {
        let is_asked = request.secrets.iter().any(|asked| {
            asked.name == secret.name && (asked.reveal || secret.usage != SecretUse::Reveal)
        });
        assert!(is_asked, "{}", secret.name);
    }
}

/// Of the capabilities there is what is requested, and nothing else.
fn check_capabilities(manifest: &Manifest, grant: &Grant) {
    let wishes = || manifest.request.capabilities.iter().map(|request| &request.requested);
    for capability in Capability::ALL {
        let is_asked = wishes().any(|wish| wish.capability() == capability);
        // Scratches of other names are not granted.
        let is_surely = is_asked && capability != Capability::Scratch;
        assert!(is_asked || !grant.has_capability(capability), "{capability} is not requested");
        assert!(
            grant.has_capability(capability) || !is_surely,
            "{capability} is requested and granted"
        );
    }
    for scratch in grant.scratch() {
        assert!(
            wishes().any(|wish| wish.capability == Capability::Scratch
                && wish.detail.as_ref() == Some(&scratch.name)),
            "{scratch:?}"
        );
    }
    for listen in grant.listen() {
        assert!(
            wishes().any(|wish| wish.capability == Capability::Listen
                && wish.detail.as_deref() == Some(listen.kind.as_str())),
            "{listen:?}"
        );
    }
    let confirms = wishes().any(|wish| wish.capability == Capability::Ui && wish.detail.is_some());
    assert_eq!(grant.ui().is_some_and(|ui| ui.confirm), confirms);
}

fn check_net(
    manifest: &Manifest,
    settings: &Map<String, Value>,
    grant: &Grant,
    method: &str,
    url: &Url,
) {
    let settings = manifest.settings.with_defaults(settings);
    let asked =
        manifest.request.net.iter().filter_map(|asked| asked.allow.fill_settings(&settings).ok());
    let asked: Vec<String> = asked.map(|pattern: NetPattern| pattern.to_string()).collect();
    let is_asked = asked.iter().any(|pattern| naive::matches(pattern, method, url));
    match grant.net().check_request(method, url) {
        Ok(_) => assert!(is_asked, "{method} {url} of {asked:?}"),
        Err(why) if naive::is_plain(method, url) && grant.net().is_empty() == asked.is_empty() => {
            assert!(!is_asked, "{method} {url} of {asked:?}: {why:?}");
        }
        Err(_) => (),
    }
}
