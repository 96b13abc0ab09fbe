//! An identity server with OpenID Connect, which can lie in every way.
//!
//! It signs with a key of its own (ES256), checks what a client sends, and logs its user in without a
//! page: a test asks it for the answer that the browser would bring.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex},
    time::{SystemTime, UNIX_EPOCH},
};

use data_encoding::{BASE64, BASE64URL_NOPAD};
use ring::{
    hmac,
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING as ES256, EcdsaKeyPair, KeyPair},
};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use url::Url;

use super::{Response, Server, server::Request};

pub(crate) const CLIENT_ID: &str = "sallyport";
pub(crate) const CLIENT_SECRET: &str = "the-password-of-the-service-4711";

/// How the next tokens are signed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Signing {
    /// As they should be.
    #[default]
    OwnKey,
    /// Not at all, with `alg: none`.
    None,
    /// With a shared key, which is the public one.
    SharedPublicKey,
    /// With a shared key, which is the password of the client.
    SharedPassword,
    /// With another key under the name of the own one.
    OtherKey,
    /// With the own key under a name that is not published.
    UnknownName,
    /// As they should be, and then the claims are changed.
    ChangedClaims,
    /// With an extension that nobody knows.
    Critical,
}

/// What the server does, and what it has seen.
pub(crate) struct OpenId {
    url: String,
    key: EcdsaKeyPair,
    key_name: String,
    /// The codes that wait, each with what began its log-in.
    codes: HashMap<String, HashMap<String, String>>,
    issued: usize,
    pub(crate) signing: Signing,
    /// Claims of the next tokens in place of the usual ones; null leaves a claim out.
    pub(crate) claims: Map<String, Value>,
    /// What the server tells about the user besides.
    pub(crate) user_info: Value,
    /// Fields of the description in place of the usual ones; null leaves a field out.
    pub(crate) description: Map<String, Value>,
    /// Fields of the answer with the tokens; null leaves a field out.
    pub(crate) answer: Map<String, Value>,
    /// Answers in place of the own ones, by their paths.
    pub(crate) answers: BTreeMap<&'static str, Response>,
    /// Whether it names itself in the answers that browsers bring.
    pub(crate) names_itself: bool,
    /// What the client did wrong.
    pub(crate) problems: Vec<String>,
    /// All tokens and codes.
    pub(crate) secrets: Vec<String>,
}

/// A running identity server.
pub(crate) struct OpenIdServer {
    pub(crate) server: Server,
    state: Arc<Mutex<Option<OpenId>>>,
}

impl OpenIdServer {
    pub(crate) fn start() -> Self {
        let state = Arc::new(Mutex::new(None::<OpenId>));
        let shared = Arc::clone(&state);
        let server =
            Server::start(move |request| shared.lock().unwrap().as_mut().unwrap().respond(request));
        *state.lock().unwrap() = Some(OpenId::new(server.url()));
        Self { server, state }
    }

    /// Looks at the server, or changes what it does.
    pub(crate) fn with<T>(&self, work: impl FnOnce(&mut OpenId) -> T) -> T {
        work(self.state.lock().unwrap().as_mut().unwrap())
    }

    /// The table that names it.
    pub(crate) fn table(&self, more: &str) -> String {
        format!(
            "[login]\nissuer = \"{}\"\nclient_id = \"{CLIENT_ID}\"\n\
             client_secret = \"${{LOGIN_PASSWORD}}\"\nscopes = [\"profile\"]\n{more}\n",
            self.server.url()
        )
    }

    /// Logs the user in at the page that a browser was sent to. Returns the query that the browser
    /// brings back.
    pub(crate) fn log_in(&self, page: &str) -> String {
        self.with(|state| state.authorize(&Url::parse(page).unwrap()))
    }

    /// How often it was asked for a path.
    pub(crate) fn count(&self, path: &str) -> usize {
        self.server.seen().iter().filter(|request| request.target == path).count()
    }
}

impl OpenId {
    fn new(url: String) -> Self {
        Self {
            url,
            key: new_key(),
            key_name: "key-1".to_owned(),
            codes: HashMap::new(),
            issued: 0,
            signing: Signing::default(),
            claims: Map::new(),
            user_info: json!({ "sub": "ann" }),
            description: Map::new(),
            answer: Map::new(),
            answers: BTreeMap::new(),
            names_itself: true,
            problems: Vec::new(),
            secrets: vec![CLIENT_SECRET.to_owned()],
        }
    }

    /// Takes another key, and withdraws the one before.
    pub(crate) fn change_key(&mut self) {
        self.key = new_key();
        self.key_name += "-1";
    }

    fn respond(&mut self, request: &Request) -> Response {
        let path = request.target.split('?').next().unwrap_or_default();
        if let Some(answer) = self.answers.get(path) {
            return answer.clone();
        }
        match path {
            "/.well-known/openid-configuration" => Response::ok(&self.describe().to_string()),
            "/jwks" => Response::ok(&json!({ "keys": [self.public_key()] }).to_string()),
            "/token" => self.token(request),
            "/userinfo" => match request.header("authorization") {
                Some(given) if self.secrets.iter().any(|one| given == format!("Bearer {one}")) => {
                    Response::ok(&self.user_info.to_string())
                }
                _ => refusal(401, "invalid_token"),
            },
            _ => refusal(404, "not_found"),
        }
    }

    fn describe(&self) -> Value {
        let url = &self.url;
        let own = json!({
            "issuer": url,
            "authorization_endpoint": format!("{url}/authorize"),
            "token_endpoint": format!("{url}/token"),
            "userinfo_endpoint": format!("{url}/userinfo"),
            "jwks_uri": format!("{url}/jwks"),
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["ES256"],
            "authorization_response_iss_parameter_supported": true,
        });
        changed(own, &self.description)
    }

    fn public_key(&self) -> Value {
        let point = self.key.public_key().as_ref();
        json!({
            "kty": "EC", "crv": "P-256", "use": "sig", "kid": self.key_name,
            "x": BASE64URL_NOPAD.encode(&point[1..33]), "y": BASE64URL_NOPAD.encode(&point[33..]),
        })
    }

    fn authorize(&mut self, page: &Url) -> String {
        let query: HashMap<String, String> = page.query_pairs().into_owned().collect();
        for (name, want) in
            [("client_id", CLIENT_ID), ("response_type", "code"), ("code_challenge_method", "S256")]
        {
            if query.get(name).map(String::as_str) != Some(want) {
                self.problems.push(format!("{name} is {:?}", query.get(name)));
            }
        }
        let state = query.get("state").cloned().unwrap_or_default();
        let nonce = query.get("nonce").cloned().unwrap_or_default();
        if state.len() < 16 || nonce.len() < 16 || state == nonce {
            self.problems.push("the state or the nonce can be guessed".to_owned());
        }
        if query.get("scope").map(String::as_str) != Some("openid profile") {
            self.problems.push(format!("the scope is {:?}", query.get("scope")));
        }
        self.issued += 1;
        let code = format!("code-{:04}-4711", self.issued);
        self.codes.insert(code.clone(), query);
        self.secrets.push(code.clone());
        let mut answer = url::form_urlencoded::Serializer::new(String::new());
        answer.append_pair("code", &code).append_pair("state", &state);
        if self.names_itself {
            answer.append_pair("iss", &self.url);
        }
        answer.finish()
    }

    fn token(&mut self, request: &Request) -> Response {
        let form: HashMap<String, String> =
            url::form_urlencoded::parse(request.body.as_bytes()).into_owned().collect();
        let password = BASE64.encode(format!("{CLIENT_ID}:{CLIENT_SECRET}").as_bytes());
        if request.header("authorization") != Some(&format!("Basic {password}")) {
            self.problems.push(format!("not the client: {:?}", request.headers));
            return refusal(401, "invalid_client");
        }
        let value = |name: &str| form.get(name).cloned().unwrap_or_default();
        // A code counts once.
        let Some(begun) = self.codes.remove(&value("code")) else {
            return refusal(400, "invalid_grant");
        };
        let challenge = BASE64URL_NOPAD.encode(&Sha256::digest(value("code_verifier")));
        let is_same = begun.get("redirect_uri") == form.get("redirect_uri");
        if begun.get("code_challenge") != Some(&challenge) || !is_same {
            self.problems.push(format!("the code is of another log-in: {form:?}"));
            return refusal(400, "invalid_grant");
        }
        let access = format!("access-token-{:04}-4711", self.issued);
        let token = self.sign(&begun["nonce"], &access);
        self.secrets.extend([access.clone(), token.clone(), value("code_verifier")]);
        let own = json!({
            "access_token": access, "token_type": "Bearer", "expires_in": 60, "id_token": token,
        });
        Response::ok(&changed(own, &self.answer).to_string())
    }

    fn sign(&self, nonce: &str, access: &str) -> String {
        let now_s = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let hash = Sha256::digest(access);
        let own = json!({
            "iss": self.url, "sub": "ann", "aud": CLIENT_ID, "nonce": nonce, "iat": now_s,
            "exp": now_s + 300, "groups": ["staff"],
            "at_hash": BASE64URL_NOPAD.encode(&hash[..hash.len() / 2]),
        });
        let claims = changed(own, &self.claims);
        let name = &self.key_name;
        let header = match self.signing {
            Signing::None => json!({ "alg": "none" }),
            Signing::SharedPublicKey | Signing::SharedPassword => {
                json!({ "alg": "HS256", "kid": name })
            }
            Signing::UnknownName => json!({ "alg": "ES256", "kid": "key-of-nobody" }),
            Signing::Critical => json!({ "alg": "ES256", "kid": name, "crit": ["x"], "x": 1 }),
            _ => json!({ "alg": "ES256", "kid": name, "typ": "JWT" }),
        };
        let encode = |value: &Value| BASE64URL_NOPAD.encode(value.to_string().as_bytes());
        let text = format!("{}.{}", encode(&header), encode(&claims));
        let signature = BASE64URL_NOPAD.encode(&self.signature(text.as_bytes()));
        match self.signing {
            Signing::ChangedClaims => {
                let other = changed(claims, json!({ "sub": "otto" }).as_object().unwrap());
                format!("{}.{}.{signature}", encode(&header), encode(&other))
            }
            _ => format!("{text}.{signature}"),
        }
    }

    fn signature(&self, text: &[u8]) -> Vec<u8> {
        let with =
            |key: &EcdsaKeyPair| key.sign(&SystemRandom::new(), text).unwrap().as_ref().to_vec();
        let shared = |key: &[u8]| {
            hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text).as_ref().to_vec()
        };
        match self.signing {
            Signing::None => Vec::new(),
            Signing::SharedPublicKey => shared(self.key.public_key().as_ref()),
            Signing::SharedPassword => shared(CLIENT_SECRET.as_bytes()),
            Signing::OtherKey => with(&new_key()),
            _ => with(&self.key),
        }
    }
}

fn new_key() -> EcdsaKeyPair {
    let random = SystemRandom::new();
    let made = EcdsaKeyPair::generate_pkcs8(&ES256, &random).unwrap();
    EcdsaKeyPair::from_pkcs8(&ES256, made.as_ref(), &random).unwrap()
}

/// An object with other values; null leaves a field out.
fn changed(mut object: Value, fields: &Map<String, Value>) -> Value {
    for (name, value) in fields {
        match value {
            Value::Null => drop(object.as_object_mut().unwrap().remove(name)),
            value => object[name] = value.clone(),
        }
    }
    object
}

fn refusal(status: u16, code: &str) -> Response {
    let body = json!({ "error": code }).to_string();
    Response::with(status, &[("content-type", "application/json")], &body)
}
