//! Tokens: when they are due, and what services write about them.

use std::time::Duration;

use sallyport_contract::Secret;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use url::Url;

use super::{
    BrowserLogin, CallbackListener, DeviceLogin, OAuthError, ServiceHttp, TokenSet, refresh,
    response::{DeviceDetails, ServiceTokens},
};
use crate::{AuthConfig, Definition};

const NOW_MS: u64 = 1_800_000_000_000;

fn tokens(answer: &Value, asked: &[&str]) -> TokenSet {
    let response: ServiceTokens = serde_json::from_value(answer.clone()).unwrap();
    let asked: Vec<String> = asked.iter().map(|scope| (*scope).to_owned()).collect();
    TokenSet::from_answer(response, &asked, Some(&Secret::new("old")), NOW_MS)
}

#[test]
fn a_lifetime_may_be_missing_in_the_past_or_text() {
    for (lifetime, want) in [
        (json!(3600), Some(3_600_000)),
        (json!("3600"), Some(3_600_000)),
        (json!(" 60 "), Some(60_000)),
        (json!(59.9), Some(59_000)),
        (json!(0), None),
        (json!(-5), None),
        (json!("soon"), None),
        (json!(null), None),
        (json!([1]), None),
    ] {
        let found = tokens(&json!({"access_token": "a", "expires_in": lifetime}), &[]);
        assert_eq!(found.expires_at_ms.map(|at| at - NOW_MS), want, "{lifetime}");
    }
    assert_eq!(tokens(&json!({"access_token": "a"}), &[]).expires_at_ms, None);
}

#[test]
fn a_rotated_token_replaces_the_old_one_and_a_missing_one_keeps_it() {
    let refresh = |answer: Value| tokens(&answer, &[]).refresh_token.unwrap();
    assert_eq!(refresh(json!({"access_token": "a", "refresh_token": "new"})).expose(), "new");
    assert_eq!(refresh(json!({"access_token": "a"})).expose(), "old");
}

#[test]
fn permissions_are_those_given_or_else_those_asked_for() {
    for (scope, want, missing) in [
        (json!("a b"), "a b", vec![]),
        (json!("b,a"), "b a", vec![]),
        (json!(["a"]), "a", vec!["b"]),
        (json!(""), "a b", vec![]),
        (json!(null), "a b", vec![]),
        (json!("c"), "c", vec!["a", "b"]),
    ] {
        let found = tokens(&json!({"access_token": "t", "scope": scope}), &["a", "b"]);
        assert_eq!(found.scope, want, "{scope}");
        assert_eq!(found.missing_scopes(&["a".to_owned(), "b".to_owned()]), missing, "{scope}");
    }
}

fn mail_auth() -> AuthConfig {
    let text = include_str!("../../testdata/google-mail.json");
    let mail = Definition::parse("google-mail.json", text, &|_| Some("https://x".into())).unwrap();
    mail.account.unwrap().auth.clone()
}

/// A token of a minute must not be refreshed at every call, and one of a year without a refresh
/// token never.
#[test]
fn a_token_is_refreshed_ahead_of_its_end_and_no_earlier_than_a_tenth_of_its_life() {
    let minute = 60_000;
    for (life_ms, has_refresh, age_ms, is_due) in [
        (60 * minute, true, 54 * minute, false),
        (60 * minute, true, 55 * minute, true),
        (60 * minute, true, 61 * minute, true),
        (minute, true, 0, false),
        (minute, true, 53_000, false),
        (minute, true, 54_000, true),
        (5 * minute, true, 0, false),
        (525_600 * minute, false, 525_599 * minute, false),
        (525_600 * minute, false, 525_601 * minute, false),
    ] {
        let set = TokenSet {
            access_token: Secret::new("a"),
            refresh_token: has_refresh.then(|| Secret::new("r")),
            issued_at_ms: NOW_MS,
            expires_at_ms: Some(NOW_MS + life_ms),
            scope: String::new(),
        };
        assert_eq!(set.is_due(NOW_MS + age_ms), is_due, "{life_ms} {age_ms}");
        // A clock that was set back does not make it due.
        assert!(!set.is_due(NOW_MS - 3_600_000));
    }
}

/// The time of the next question was beyond what can be counted.
#[tokio::test]
async fn a_pause_without_end_made_a_device_sign_in_panic() {
    let details: DeviceDetails = serde_json::from_value(json!({
        "device_code": "d", "user_code": "u", "verification_uri": "https://x/", "interval": 1e19,
    }))
    .unwrap();
    let http = ServiceHttp::new(false).unwrap();
    let time_max = Duration::from_secs(1);
    let finished = DeviceLogin { details }.finish(&mail_auth(), &http, time_max, || NOW_MS).await;
    assert!(matches!(finished, Err(OAuthError::Refused(_))));
}

#[test]
fn a_sign_in_has_state_and_pkce_also_where_the_definition_does_not_ask_for_it() {
    let auth = mail_auth();
    assert!(!auth.requires_pkce);
    let first = BrowserLogin::begin(&auth, "http://127.0.0.1:7/callback/google-mail").unwrap();
    let second = BrowserLogin::begin(&auth, "http://127.0.0.1:7/callback/google-mail").unwrap();
    let value = |login: &BrowserLogin, name: &str| {
        let mut pairs = login.url.query_pairs();
        pairs.find(|(own, _)| own == name).map(|(_, value)| value.into_owned())
    };
    assert_eq!(value(&first, "code_challenge_method").as_deref(), Some("S256"));
    assert_eq!(value(&first, "access_type").as_deref(), Some("offline"));
    assert_eq!(value(&first, "scope").unwrap().split(' ').count(), 5);
    for name in ["state", "code_challenge"] {
        assert_ne!(value(&first, name), value(&second, name), "{name}");
    }
    let state = value(&first, "state").unwrap();
    assert!(first.has_state(&state) && !second.has_state(&state) && !first.has_state(""));
}

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "the test is the browser")]
async fn a_connection_that_the_browser_does_not_use_delayed_the_answer() {
    let listener = CallbackListener::open("mail", None).await.unwrap();
    let login = BrowserLogin::begin(&mail_auth(), listener.redirect()).unwrap();
    let address = Url::parse(listener.redirect()).unwrap();
    let address = ("127.0.0.1", address.port().unwrap());
    let _unused = TcpStream::connect(address).await.unwrap();
    let answer = async {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let target = format!("/callback/mail?state={}&code=c1", login.state.expose());
        stream.write_all(format!("GET {target} HTTP/1.1\r\n\r\n").as_bytes()).await.unwrap();
        let mut page = String::new();
        stream.read_to_string(&mut page).await.unwrap();
        page
    };
    // The unused connection may send nothing for longer than this.
    let code = listener.wait_for_code(&login, Duration::from_secs(8));
    let (code, page) = tokio::join!(code, answer);
    assert_eq!(code.unwrap(), "c1");
    assert!(page.starts_with("HTTP/1.1 200 OK"), "{page}");
}

/// Refreshes a token at this address, as the definition would name it.
async fn refresh_at(address: &str) -> Result<TokenSet, OAuthError> {
    let auth = AuthConfig { token_url: Some(Url::parse(address).unwrap()), ..mail_auth() };
    let auth = AuthConfig { refresh_url: None, ..auth };
    let old = tokens(&json!({"access_token": "a", "refresh_token": "r"}), &[]);
    refresh(&auth, &ServiceHttp::new(false).unwrap(), &old, NOW_MS).await
}

#[tokio::test]
async fn addresses_of_a_sign_in_are_checked_like_any_other() {
    for address in [
        "https://10.0.0.1/token",
        "https://169.254.169.254/latest/meta-data",
        "https://100.64.0.1/token",
        "https://0.0.0.0/token",
        "https://[fd00::1]/token",
        "https://[fe80::1]/token",
        "https://[::ffff:10.0.0.1]/token",
        "https://0x0a000001/token",
    ] {
        let error = refresh_at(address).await.unwrap_err();
        assert!(error.to_string().contains("is not a public address"), "{address}: {error}");
    }
}

/// A redirect would carry the refresh token and the application's password to another origin.
#[tokio::test]
async fn an_answer_of_another_origin_is_not_fetched() {
    let [first, other] =
        [TcpListener::bind("127.0.0.1:0").await, TcpListener::bind("127.0.0.1:0").await];
    let (first, other) = (first.unwrap(), other.unwrap());
    let target = format!("http://{}/token", other.local_addr().unwrap());
    let address = format!("http://{}/token", first.local_addr().unwrap());
    for status in ["301 Moved", "302 Found", "307 Temporary Redirect", "308 Permanent Redirect"] {
        let answer = async {
            let (mut stream, _) = first.accept().await.unwrap();
            let mut head = [0; 4096];
            let _ = stream.read(&mut head).await.unwrap();
            let head = format!(
                "HTTP/1.1 {status}\r\nLocation: {target}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            );
            stream.write_all(head.as_bytes()).await.unwrap();
        };
        let (refreshed, ()) = tokio::join!(refresh_at(&address), answer);
        assert!(matches!(refreshed, Err(OAuthError::Unavailable(_))), "{status}: {refreshed:?}");
    }
    let visited = tokio::time::timeout(Duration::ZERO, other.accept()).await;
    assert!(visited.is_err(), "the other origin was asked");
}
