//! An identity server: OAuth 2.0 as services do it, which checks what it is sent.
//!
//! It signs its user in without a page: `/authorize` sends the browser straight back. A protected
//! service is behind it (`/api`), so one server shows a whole connection.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex},
};

use data_encoding::{BASE64, BASE64URL_NOPAD};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::{Response, Server, server::Request};

/// The application that may sign users in.
const CLIENT_ID: &str = "the-client";
pub(crate) const CLIENT_SECRET: &str = "the-client-secret-4711";

/// What the server does, and what it has seen.
#[derive(Default)]
pub(crate) struct Identity {
    /// Codes that wait, with their challenge and redirect.
    codes: HashMap<String, (String, String)>,
    /// Access tokens that the service accepts.
    pub(crate) access: HashSet<String>,
    /// Refresh tokens that are valid.
    pub(crate) refresh: HashSet<String>,
    /// How many tokens were refreshed.
    pub(crate) refreshes: usize,
    /// The scope that a refresh asked for.
    pub(crate) refresh_scopes: Vec<Option<String>>,
    issued: usize,
    /// Fields of the answer in place of the usual ones; null leaves a field out.
    pub(crate) fields: Map<String, Value>,
    /// The next answers of the token endpoint, in place of its own.
    pub(crate) next: Vec<(u16, &'static str, String)>,
    /// Requests of the service that were accepted, with their bodies.
    pub(crate) accepted: Vec<(String, String)>,
    /// The next answers of the service to a valid token.
    pub(crate) answers: Vec<Response>,
    /// What happens between a refresh and its answer.
    pub(crate) on_refresh: Option<Box<dyn FnOnce() + Send>>,
    /// The permissions that sign-ins asked for.
    pub(crate) asked_scopes: Vec<Option<String>>,
    /// The permission that calls of the service need.
    pub(crate) needed_scope: Option<&'static str>,
    /// The password of the application belongs into the form.
    pub(crate) takes_secret_in_form: bool,
    /// The application has no password.
    pub(crate) is_public_client: bool,
    /// The service refuses every token.
    pub(crate) refuses_all: bool,
    /// The user has not yet signed in on the other device.
    pub(crate) is_device_pending: bool,
    /// What the tokens were asked for, at each sign-in, exchange and refresh.
    pub(crate) resources: Vec<Option<String>>,
    /// Who the answer of a sign-in says that it comes from.
    pub(crate) issuer: Option<&'static str>,
    /// What a client did wrong.
    pub(crate) problems: Vec<String>,
}

/// A running identity server.
pub(crate) struct IdentityServer {
    pub(crate) server: Server,
    state: Arc<Mutex<Identity>>,
}

impl IdentityServer {
    pub(crate) fn start() -> Self {
        Self::start_before(|_, _| None)
    }

    /// A server whose other parts come first: `front` answers what is for them.
    pub(crate) fn start_before(
        front: impl Fn(&Identity, &Request) -> Option<Response> + Send + Sync + 'static,
    ) -> Self {
        let state = Arc::new(Mutex::new(Identity::default()));
        let shared = Arc::clone(&state);
        let server = Server::start(move |request| {
            let mut identity = shared.lock().unwrap();
            let answered = front(&identity, request);
            answered.unwrap_or_else(|| identity.answer(request))
        });
        Self { server, state }
    }

    /// Looks at the server, or changes what it does.
    pub(crate) fn with<T>(&self, work: impl FnOnce(&mut Identity) -> T) -> T {
        work(&mut self.state.lock().unwrap())
    }

    /// A definition whose accounts are at this server. `fields` are further ones of its sign-in.
    pub(crate) fn definition(&self, fields: &str) -> String {
        let url = self.server.url();
        format!(
            r#"{{"plugin": {{"name": "service", "version": "1.0.0", "description": "A service.",
 "auth_config": {{"auth_type": "oauth2", "client_id": "{CLIENT_ID}",
  "client_secret": "${{CLIENT_SECRET}}", "auth_url": "{url}/authorize",
  "token_url": "{url}/token", "profile_url": "{url}/profile", "device_url": "{url}/device",
  "required_scopes": ["read", "write"]{fields}}}}},
 "actions": {{"list_items": {{"description": "Lists the items.",
  "parameters": {{"type": "object", "properties": {{}}}},
  "request": {{"url": "{url}/api/items", "result": "items"}},
  "output_guidance": {{"success_message": "Found {{item_count}} items",
   "common_errors": {{"auth_failed": "Sign in again."}}}}}}}}}}"#
        )
    }

    /// The policy that lets the service's actions run without a question.
    pub(crate) fn policy(&self) -> String {
        format!(
            "[plugin.service]\nnet = [{{ allow = \"GET {}/api/items\", to-private = true }}]\n\
             [[rule]]\ntool = \"service.*\"\ndecision = \"allow\"\n",
            self.server.url()
        )
    }

    /// All tokens that it has given out.
    pub(crate) fn secrets(&self) -> Vec<String> {
        self.with(|state| {
            let all = 1..=state.issued;
            let pair = |n| [format!("access-token-{n:04}"), format!("refresh-token-{n:04}")];
            all.flat_map(pair).chain([CLIENT_SECRET.to_owned()]).collect()
        })
    }
}

impl Identity {
    fn answer(&mut self, request: &Request) -> Response {
        let (path, query) = request.target.split_once('?').unwrap_or((&request.target, ""));
        match path {
            "/authorize" => self.authorize(&pairs(query)),
            "/token" => self.token(request),
            "/device" => Response::ok(&self.device().to_string()),
            "/profile" => Response::ok(r#"{"email": "ann@example.com", "id": "7"}"#),
            "/api/items" => self.items(request),
            _ => self.service(request),
        }
    }

    /// Signs the user in at once.
    fn authorize(&mut self, query: &HashMap<String, String>) -> Response {
        for (name, want) in
            [("client_id", CLIENT_ID), ("response_type", "code"), ("code_challenge_method", "S256")]
        {
            if query.get(name).map(String::as_str) != Some(want) {
                self.problems.push(format!("{name} is {:?}", query.get(name)));
            }
        }
        let value = |name: &str| query.get(name).cloned().unwrap_or_default();
        if value("state").len() < 16 {
            self.problems.push("the state can be guessed".to_owned());
        }
        let code = format!("code-{}", self.codes.len() + 1);
        let redirect = value("redirect_uri");
        self.codes.insert(code.clone(), (value("code_challenge"), redirect.clone()));
        self.resources.push(query.get("resource").cloned());
        self.asked_scopes.push(query.get("scope").cloned());
        let issuer = self.issuer.map(|issuer| format!("&iss={issuer}")).unwrap_or_default();
        let location = format!("{redirect}?code={code}&state={}{issuer}", value("state"));
        Response::with(302, &[("location", &location)], "")
    }

    fn token(&mut self, request: &Request) -> Response {
        if !self.next.is_empty() {
            let (status, media_type, body) = self.next.remove(0);
            return Response::with(status, &[("content-type", media_type)], &body);
        }
        let login = BASE64.encode(format!("{CLIENT_ID}:{CLIENT_SECRET}").as_bytes());
        let form = pairs(&request.body);
        let value = |name: &str| form.get(name).cloned().unwrap_or_default();
        let is_known = match self.is_public_client {
            // A client without a password names itself.
            true => value("client_id") == CLIENT_ID,
            false if self.takes_secret_in_form => {
                let named = (value("client_id"), value("client_secret"));
                named == (CLIENT_ID.to_owned(), CLIENT_SECRET.to_owned())
                    && request.header("authorization").is_none()
            }
            false => request.header("authorization") == Some(&format!("Basic {login}")),
        };
        if !is_known {
            return refusal(401, "invalid_client");
        }
        self.resources.push(form.get("resource").cloned());
        match value("grant_type").as_str() {
            "authorization_code" => {
                let challenge = BASE64URL_NOPAD.encode(&Sha256::digest(value("code_verifier")));
                let fits = (challenge, value("redirect_uri"));
                // A code is valid once.
                match self.codes.remove(&value("code")) == Some(fits) {
                    true => self.issue(),
                    false => refusal(400, "invalid_grant"),
                }
            }
            "refresh_token" => {
                self.refresh_scopes.push(form.get("scope").cloned());
                // A refresh token is valid once too.
                match self.refresh.remove(&value("refresh_token")) {
                    true => {
                        self.refreshes += 1;
                        self.on_refresh.take().into_iter().for_each(|happens| happens());
                        self.issue()
                    }
                    false => refusal(400, "invalid_grant"),
                }
            }
            "urn:ietf:params:oauth:grant-type:device_code" => {
                match std::mem::take(&mut self.is_device_pending) {
                    true => refusal(400, "authorization_pending"),
                    false => self.issue(),
                }
            }
            other => {
                self.problems.push(format!("grant type {other}"));
                refusal(400, "unsupported_grant_type")
            }
        }
    }

    fn issue(&mut self) -> Response {
        self.issued += 1;
        let (access, refresh) = (
            format!("access-token-{:04}", self.issued),
            format!("refresh-token-{:04}", self.issued),
        );
        let mut answer = json!({
            "access_token": access, "token_type": "bearer", "expires_in": 3600,
            "refresh_token": refresh, "scope": "read write",
        });
        for (name, value) in &self.fields {
            match value {
                Value::Null => drop(answer.as_object_mut().unwrap().remove(name)),
                value => answer[name] = value.clone(),
            }
        }
        self.access = HashSet::from([access]);
        self.refresh = HashSet::from([refresh]);
        Response::ok(&answer.to_string())
    }

    fn device(&self) -> Value {
        json!({
            "device_code": "device-code", "user_code": "WDJB-MJHT", "interval": 1,
            "verification_uri": "https://service.example/device", "expires_in": 60,
        })
    }

    fn items(&self, request: &Request) -> Response {
        match self.is_signed_in(request) {
            true => Response::ok(r#"{"items": ["a", "b", "c"]}"#),
            false => unauthorized(),
        }
    }

    pub(crate) fn is_signed_in(&self, request: &Request) -> bool {
        let token = request.header("authorization").and_then(|text| text.strip_prefix("Bearer "));
        token.is_some_and(|token| self.access.contains(token)) && !self.refuses_all
    }

    /// Another service behind the same sign-in: gives the answers of the test.
    fn service(&mut self, request: &Request) -> Response {
        if !self.is_signed_in(request) {
            return unauthorized();
        }
        if self.answers.is_empty() {
            return Response::with(404, &[], "{}");
        }
        let what = format!("{} {}", request.method, request.target);
        self.accepted.push((what, request.body.clone()));
        self.answers.remove(0)
    }
}

fn unauthorized() -> Response {
    let body = r#"{"error": {"message": "the token is not valid"}}"#;
    Response::with(401, &[("content-type", "application/json")], body)
}

fn refusal(status: u16, code: &str) -> Response {
    let body = json!({ "error": code }).to_string();
    Response::with(status, &[("content-type", "application/json")], &body)
}

/// The names and values of a query or a form.
fn pairs(text: &str) -> HashMap<String, String> {
    url::form_urlencoded::parse(text.as_bytes()).into_owned().collect()
}
