//! Identity servers that are not what they should be: their tokens, their keys, their descriptions.

use serde_json::json;

use super::{
    ServiceProgram,
    sign_on::{FAILURES, MARK, ROLES, begin, come_back, home_at, refused, sign_on, signed_on},
    talking_model,
};
use crate::support::{
    Response,
    openid::{OpenId, OpenIdServer, Signing},
};

/// Each row with its claims or its way of signing, and what is said.
#[test]
fn a_token_that_is_not_for_this_log_in_is_refused() {
    let (identity, model) = (OpenIdServer::start(), talking_model());
    let home = home_at(&identity, &model, ROLES);
    let own = identity.server.url();
    let now_s = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs();
    let (issuer, other) = ("from another issuer", "for another service");
    let (kind, time) = ("kind of signature is not accepted", "not of this time");
    let claims = [
        (json!({ "iss": "https://evil.example" }), 401, issuer),
        (json!({ "iss": format!("{own}/") }), 401, issuer),
        (json!({ "aud": "another" }), 401, other),
        (json!({ "aud": ["another"] }), 401, other),
        (json!({ "aud": [] }), 401, other),
        (json!({ "aud": ["sallyport", "another"] }), 401, other),
        (json!({ "azp": "another" }), 401, other),
        (json!({ "nonce": "of-another-log-in-4711" }), 401, "of another log-in"),
        (json!({ "nonce": null }), 401, "of another log-in"),
        (json!({ "exp": now_s - 120 }), 401, time),
        (json!({ "exp": 0 }), 401, time),
        (json!({ "iat": now_s + 3600 }), 401, time),
        (json!({ "iat": now_s - 3600 }), 401, time),
        (json!({ "at_hash": "AAAAAAAAAAAAAAAAAAAAAA" }), 401, "another access token"),
        (json!({ "iss": null }), 503, "something other than tokens"),
        (json!({ "aud": null }), 401, other),
        (json!({ "exp": null }), 503, "something other than tokens"),
        (json!({ "sub": null }), 503, "something other than tokens"),
        (json!({ "sub": ["ann"] }), 503, "something other than tokens"),
    ];
    let signings = [
        (Signing::None, kind),
        (Signing::SharedPublicKey, kind),
        (Signing::SharedPassword, kind),
        (Signing::OtherKey, "signature is wrong"),
        (Signing::ChangedClaims, "signature is wrong"),
        (Signing::UnknownName, "no key of the server signed it"),
        (Signing::Critical, "not understood"),
    ];
    let claims = claims.map(|(claims, status, words)| (claims, Signing::OwnKey, status, words));
    let signings = signings.map(|(signing, words)| (json!({}), signing, 401, words));
    let rows: Vec<_> = claims.into_iter().chain(signings).collect();
    for rows in rows.chunks(FAILURES) {
        let service = ServiceProgram::start(&home);
        for (claims, signing, status, words) in rows {
            identity.with(|state| {
                state.claims = claims.as_object().unwrap().clone();
                state.signing = *signing;
            });
            let reply = sign_on(&service, &identity);
            assert!(reply.body.contains(words), "{claims} {signing:?}: {reply:#?}");
            refused(reply, *status, words);
        }
        // What differs a little is no forgery: a clock, a second name of the same service.
        let ended_s = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs() - 5;
        let close =
            json!({ "exp": ended_s, "aud": ["sallyport"], "azp": "sallyport", "at_hash": null });
        identity.with(|state| {
            (state.claims, state.signing) = (close.as_object().unwrap().clone(), Signing::OwnKey);
        });
        signed_on(&service, &identity);
    }
}

#[test]
fn an_answer_without_the_tokens_of_this_log_in_is_refused() {
    let (identity, model) = (OpenIdServer::start(), talking_model());
    let home = home_at(&identity, &model, ROLES);
    let service = ServiceProgram::start(&home);
    for (answer, status, words) in [
        (json!({ "id_token": null }), 401, "there is none"),
        (json!({ "id_token": "a.b.c" }), 503, "something other than tokens"),
        (json!({ "id_token": 7 }), 503, "something other than tokens"),
        (json!({ "access_token": null }), 503, "something other than tokens"),
        (json!({ "access_token": "of-another-user" }), 401, "another access token"),
    ] {
        identity.with(|state| {
            state.claims.clear();
            state.answer = answer.as_object().unwrap().clone();
        });
        refused(sign_on(&service, &identity), status, words);
    }
}

#[test]
fn keys_are_read_again_when_they_change_but_not_for_every_token() {
    let (identity, model) = (OpenIdServer::start(), talking_model());
    let home = home_at(&identity, &model, ROLES);
    let service = ServiceProgram::start(&home);
    signed_on(&service, &identity);
    signed_on(&service, &identity);
    assert_eq!(identity.count("/jwks"), 1, "they are kept");
    identity.with(OpenId::change_key);
    signed_on(&service, &identity);
    assert_eq!(identity.count("/jwks"), 2);
    identity.with(|state| state.signing = Signing::UnknownName);
    for _ in 0..FAILURES {
        refused(sign_on(&service, &identity), 401, "no key of the server signed it");
    }
    // Five times in a minute; a slow machine may need more than one.
    assert!(identity.count("/jwks") < 2 + FAILURES, "{}", identity.count("/jwks"));
    assert_eq!(identity.count("/.well-known/openid-configuration"), 1);
}

#[test]
fn an_identity_server_that_misbehaves_lets_nobody_in() {
    let model = talking_model();
    let json_type = [("content-type", "application/json")];
    let flood = || {
        Response::Flood(
            b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n{\"a\":[0".to_vec(),
        )
    };
    let elsewhere = || Response::with(302, &[("location", "http://127.0.0.1:1/jwks")], "");
    let (keys, about) = ("/jwks", "/.well-known/openid-configuration");
    let answers = [
        (about, Response::with(404, &json_type, "{}"), "it answered 404"),
        (about, Response::ok("[]"), "not understood"),
        (about, Response::ok("{"), "not understood"),
        (about, elsewhere(), "it answered 302"),
        (about, flood(), "longer than"),
        (about, Response::Silence, "did not answer in time"),
        (keys, elsewhere(), "it answered 302"),
        (keys, flood(), "longer than"),
        (keys, Response::ok("{}"), "not understood"),
    ];
    let fields = [
        (json!({ "issuer": "https://evil.example" }), "describes another issuer"),
        (json!({ "jwks_uri": "http://10.0.0.1/jwks" }), "without TLS"),
        (json!({ "jwks_uri": "https://169.254.169.254/jwks" }), "not a public address"),
        (json!({ "jwks_uri": "file:///etc/passwd" }), "not understood"),
        (json!({ "authorization_endpoint": "javascript:alert(1)" }), "without TLS"),
        (json!({ "authorization_endpoint": null }), "not understood"),
    ];
    let check = |change: &dyn Fn(&OpenIdServer), words: &str| {
        let identity = OpenIdServer::start();
        change(&identity);
        let service = ServiceProgram::start(&home_at(&identity, &model, ROLES));
        let reply = service.request("POST", "/console/sign-on", MARK, "").has(503);
        assert_eq!(reply.problem(), "sign-on-unavailable");
        assert!(reply.body.contains(words), "no {words:?} in {reply:#?}");
        // It is asked once for all who try at that moment.
        service.request("POST", "/console/sign-on", MARK, "").has(503);
        assert!(identity.count(about) <= 2, "{:#?}", identity.server.seen());
    };
    for (path, answer, words) in answers {
        check(
            &|identity| identity.with(|state| drop(state.answers.insert(path, answer.clone()))),
            words,
        );
    }
    for (description, words) in fields {
        let description = description.as_object().unwrap();
        check(&|identity| identity.with(|state| state.description = description.clone()), words);
    }
    // Later than at first.
    let identity = OpenIdServer::start();
    let service = ServiceProgram::start(&home_at(&identity, &model, ROLES));
    for (answer, status, words) in [
        (Response::with(500, &[], "<h1>"), 503, "something other than tokens"),
        (elsewhere(), 503, "something other than tokens"),
        (flood(), 503, "longer than"),
        (Response::Bytes(Vec::new()), 503, "the connection broke"),
    ] {
        let begun = begin(&service);
        let query = identity.log_in(&begun.page);
        identity.with(|state| drop(state.answers.insert("/token", answer)));
        refused(come_back(&service, &begun.cookie, &query), status, words);
    }
}
