//! What a plugin is about to do, and what a policy makes of it: the same questions to two policies
//! tell which of them allows more.

use std::path::Path;

use sallyport_contract::{Decision, ToolCallContext, ToolId};
use sallyport_policy::{
    Grant, Manifest, Policy, PolicyQuestion, PolicyVerdict,
    group::NO_LOGIN_GROUPS,
    question::{ROLE_PREFIX, ROLE_RUNS},
};
use serde_json::{Map, Value};
use url::Url;

/// The digest of every component.
pub const DIGEST: &str = "16ee56a487a0c4c3c29a6d1cf9d5ee4a17e0a5b6c7d8e9f00112233445566778";

/// The home folder.
pub const HOME: &str = "/home/me";

/// Who keeps every file.
pub const FILE: &str = "policy.toml";

/// Asks for much, so that the policy decides.
const MANIFEST: &str = r#"
name = "weather"
version = "1.0.0"
description = "d"
roles = ["tools", "provider", "listener", "guide", "ui"]
instance = "session"
request.net = [
    { allow = "* https://api.example.com/**", why = "w" },
    { allow = "* https://*.example.com/**", why = "w" },
    { allow = "GET,PUT https://a.io:1-65535/**", why = "w" },
    { allow = "* http://127.0.0.1:8080/**", why = "w" },
    { allow = "* http://localhost/**", why = "w" },
    { allow = "* https://[::1]/**", why = "w" },
]
request.fs = [{ access = "read-write", why = "w" }]
request.env = [{ name = "TZ", why = "w" }, { name = "LANG", why = "w" }]
request.secrets = [
    { name = "key", reveal = true, why = "w" },
    { name = "pin", reveal = true, why = "w" },
]
request.state = [{ why = "w" }]
request.schedule = [{ why = "w" }]
request.notify = [{ why = "w" }]
request.progress = [{ why = "w" }]
request.open-url = [{ why = "w" }]
request.packages = [{ why = "w" }]
request.scratch = [{ name = "desk", why = "w" }, { name = "box", why = "w" }]
request.listen = [
    { kind = "http", why = "w" },
    { kind = "websocket", why = "w" },
    { kind = "stdin", why = "w" },
]
request.ui = [{ confirm = true, why = "w" }]
request.process = [{ why = "w" }]
"#;

/// Requests that are asked about beside that of the input.
const REQUESTS: [(&str, &str); 4] = [
    ("GET", "https://api.example.com/v1/a"),
    ("PUT", "https://b.example.com/v1"),
    ("GET", "https://a.io:8080/"),
    ("POST", "http://127.0.0.1:8080/x"),
];

/// Pages that are opened beside that of the input.
const PAGES: [&str; 3] =
    ["https://api.example.com/v1/a?q=1", "https://b.example.com/", "http://localhost/%2e%2e/x"];

/// A tool is called, or a role is played, and something is reached for.
pub struct Situation {
    manifest: Manifest,
    tool: ToolId,
    runs: Vec<ToolId>,
    context: ToolCallContext,
    arguments: Value,
    requests: Vec<(String, Url)>,
    pages: Vec<Url>,
}

impl Situation {
    /// Reads one: a request as `METHOD URL`, whose address is a page as well, and arguments as
    /// JSON. What cannot be read is left out.
    pub fn read(request: &str, arguments: &str) -> Self {
        let fixed = REQUESTS.map(|(method, url)| request_of(method, url)).into_iter().flatten();
        let own = request.split_once(' ').and_then(|(method, url)| request_of(method, url.trim()));
        let pages = PAGES.iter().filter_map(|page| Url::parse(page).ok());
        let pages = own.iter().map(|(_, url)| url.clone()).chain(pages).collect();
        let run = |role| format!("weather.{ROLE_PREFIX}{role}").parse().expect("the name is right");
        let arguments = serde_json::from_str(arguments).ok().filter(Value::is_object);
        Self {
            manifest: Manifest::parse("plugin.toml", MANIFEST).expect("the manifest is right"),
            tool: "weather.get".parse().expect("the name is right"),
            runs: ROLE_RUNS.map(run).to_vec(),
            context: ToolCallContext {
                user_id: Some("me".to_owned()),
                ..ToolCallContext::default()
            },
            arguments: arguments.unwrap_or_else(|| Value::Object(Map::new())),
            requests: own.into_iter().chain(fixed).collect(),
            pages,
        }
    }

    /// The tool that is called.
    pub fn tool(&self) -> &ToolId {
        &self.tool
    }

    /// The manifest of its plugin.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The requests that it sends; the first is that of the input, if it has one.
    pub fn requests(&self) -> &[(String, Url)] {
        &self.requests
    }

    /// The pages that it opens; the first is that of the input, if it has one.
    pub fn pages(&self) -> &[Url] {
        &self.pages
    }

    /// What a policy grants to its plugin.
    pub fn grant(&self, policy: &Policy) -> Grant {
        policy.effective_grant(&self.manifest, &Map::new())
    }

    /// The call, as a policy is asked about it.
    pub fn question(&self) -> PolicyQuestion<'_> {
        self.question_of(&self.tool)
    }

    /// The runs in each role, as a policy is asked about them.
    pub fn runs(&self) -> impl Iterator<Item = PolicyQuestion<'_>> {
        self.runs.iter().map(|run| self.question_of(run))
    }

    fn question_of<'a>(&'a self, tool: &'a ToolId) -> PolicyQuestion<'a> {
        let Self { arguments, context, .. } = self;
        let login_groups = &NO_LOGIN_GROUPS;
        PolicyQuestion { tool, digest: DIGEST, arguments, context, login_groups }
    }

    /// What a policy says about the call.
    pub fn of_call(&self, policy: &Policy) -> PolicyVerdict {
        policy.decide_call(&self.question(), &self.grant(policy))
    }

    /// What a policy says about a run in each role.
    pub fn of_runs(&self, policy: &Policy) -> Vec<PolicyVerdict> {
        let grant = self.grant(policy);
        self.runs().map(|run| policy.decide_role(&run, &grant)).collect()
    }

    /// What a policy says about each page.
    pub fn of_pages(&self, policy: &Policy) -> Vec<PolicyVerdict> {
        let grant = self.grant(policy);
        let verdict = |page| policy.decide_page(&self.question(), &grant, page);
        self.pages.iter().map(verdict).collect()
    }

    /// What a policy decides: about the call first, then about each request.
    pub fn decisions(&self, policy: &Policy) -> Vec<Decision> {
        let grant = self.grant(policy);
        let of_request = |(method, url): &(String, Url)| match grant.check_request(method, url) {
            Ok(permit) => {
                policy.decide_access(&self.question(), &grant, method, url, &permit).decision
            }
            Err(_) => Decision::Deny,
        };
        let call = policy.decide_call(&self.question(), &grant).decision;
        std::iter::once(call).chain(self.requests.iter().map(of_request)).collect()
    }
}

fn request_of(method: &str, url: &str) -> Option<(String, Url)> {
    Some((method.to_owned(), Url::parse(url).ok()?))
}

/// Parses a policy that is one file of the user.
pub fn user_policy(text: &str) -> Option<Policy> {
    Policy::from_user_file(FILE, text, Some(Path::new(HOME))).ok()
}
