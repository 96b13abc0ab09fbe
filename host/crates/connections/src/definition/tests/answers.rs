//! Answers of services: results, errors, pages; and a definition's own messages about failures.

use std::collections::BTreeMap;

use sallyport_contract::FailureKind;
use serde_json::{Value, json};

use super::{parse, with_action};
use crate::definition::{FailureFacts, OutputGuidance, PageState, RequestTemplate, ServiceAnswer};

fn template(fields: &str) -> RequestTemplate {
    let request = format!("\"request\": {{\"url\": \"https://a.example/list?per=2\"{fields}}}");
    parse(&with_action(&request)).actions[0].request.clone().unwrap()
}

fn answer(status: u16, media_type: &str, body: &str) -> ServiceAnswer {
    ServiceAnswer {
        status,
        media_type: media_type.to_owned(),
        link: None,
        retry_after: (status == 429).then(|| "30".to_owned()),
        is_quota_used: false,
        body: body.as_bytes().to_vec(),
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "it is one table")]
fn results_and_errors_are_found_in_answers() {
    let json_type = "application/json";
    let read = |fields: &str, status: u16, media_type: &str, body: &str| {
        let template = template(fields);
        match template.answer.read_result(&answer(status, media_type, body)) {
            Ok(value) => value.to_string(),
            Err(failure) => format!("{} ({:?})", failure.message, failure.facts.kind),
        }
    };
    let result = r#", "result": "data.items""#;
    let error = r#", "error": "fault.text", "error_code": "fault.code""#;
    for (fields, status, media_type, body, want) in [
        ("", 200, json_type, r#"{"a": 1}"#, r#"{"a":1}"#),
        ("", 204, "", "", "null"),
        (result, 200, json_type, r#"{"data": {"items": [1]}}"#, "[1]"),
        (
            result,
            200,
            json_type,
            r#"{"data": {}}"#,
            "the answer of the service has no \"data.items\" (BadOutput)",
        ),
        (
            "",
            200,
            "text/html",
            "<html>Sign in</html>",
            "the service answered 200 with an HTML page (BadOutput)",
        ),
        (
            "",
            200,
            "text/plain",
            "ok",
            "the service answered 200 with something other than JSON (BadOutput)",
        ),
        (
            "",
            502,
            "text/html",
            "<html>",
            "the service answered 502 with an HTML page (Unavailable)",
        ),
        ("", 500, "", "", "the service answered 500 with nothing (Unavailable)"),
        (
            "",
            401,
            json_type,
            r#"{"error": {"message": "bad token"}}"#,
            "the service answered 401: bad token (AuthRequired)",
        ),
        (
            "",
            404,
            json_type,
            r#"{"message": "Not Found"}"#,
            "the service answered 404: Not Found (NotFound)",
        ),
        (
            "",
            422,
            json_type,
            r#"{"errors": [{"message": "too long"}]}"#,
            "the service answered 422: too long (InvalidArguments)",
        ),
        (
            "",
            429,
            json_type,
            r#"{"error": "slow"}"#,
            "the service answered 429: slow (try again after 30 seconds) (Unavailable)",
        ),
        ("", 403, json_type, "[]", "the service answered 403: without a message (Failed)"),
        (
            error,
            200,
            json_type,
            r#"{"fault": {"text": "no", "code": 7}}"#,
            "the service answered 200: no (BadOutput)",
        ),
    ] {
        assert_eq!(read(fields, status, media_type, body), want, "{body}");
    }
}

/// Fetches pages from a list of answers; the addresses that were asked, and the result.
fn fetch(pages: &str, answers: &[(&str, Value)]) -> (Vec<String>, String) {
    let template = template(&format!(r#", "result": "items", "pages": {pages}"#));
    let (mut state, mut asked) = (PageState::new(), Vec::new());
    let mut request = template.build(&json!({})).unwrap();
    for (link, body) in answers {
        asked.push(request.url[url::Position::BeforePath..].to_owned());
        let link = (!link.is_empty()).then(|| (*link).to_owned());
        let answer = ServiceAnswer { link, ..answer(200, "application/json", &body.to_string()) };
        match template.answer.add_page(&mut state, &request, &answer) {
            Ok(Some(next)) if template.answer.may_continue(&state) => request = next,
            Ok(next) => return (asked, state.into_result(next.is_some()).to_string()),
            Err(failure) => return (asked, failure.message),
        }
    }
    (asked, "unfinished".to_owned())
}

/// The keys of `pages`, the answers, the addresses that are asked, and the result.
type PagesCase<'a> = (&'a str, Vec<(&'a str, Value)>, &'a [&'a str], &'a str);

#[test]
fn pages_end_at_the_last_one_or_at_their_bound_and_stay_at_their_server() {
    let page = |items: &[u8], next: Value| ("", json!({"items": items, "next": next}));
    let token = r#"{"next": "next", "query": "page"}"#;
    let long = "t".repeat(2000);
    let after_long = format!("/list?per=2&page={long}");
    let cases: [PagesCase<'_>; 9] = [
        (
            token,
            vec![page(&[1], json!(long)), page(&[2], Value::Null)],
            &["/list?per=2", &after_long],
            r#"{"has_more":false,"items":[1,2]}"#,
        ),
        (
            r#"{"next": "link"}"#,
            vec![
                ("</list?ids=1,2&c=2>; title=\"a, b\"; rel=\"last next\"", json!({"items": [1]})),
                ("</list?ids=1,2>; rel=\"prev\"", json!({"items": [2]})),
            ],
            &["/list?per=2", "/list?ids=1,2&c=2"],
            r#"{"has_more":false,"items":[1,2]}"#,
        ),
        (
            token,
            vec![page(&[1, 2], json!("t/2")), page(&[3], Value::Null)],
            &["/list?per=2", "/list?per=2&page=t%2F2"],
            r#"{"has_more":false,"items":[1,2,3]}"#,
        ),
        (
            r#"{"next": "number", "query": "page", "max": 2}"#,
            vec![page(&[1, 2], Value::Null), page(&[3, 4], Value::Null)],
            &["/list?per=2", "/list?per=2&page=2"],
            r#"{"has_more":true,"items":[1,2,3,4]}"#,
        ),
        (
            r#"{"next": "number", "query": "page"}"#,
            vec![page(&[1, 2], Value::Null), page(&[3], Value::Null)],
            &["/list?per=2", "/list?per=2&page=2"],
            r#"{"has_more":false,"items":[1,2,3]}"#,
        ),
        (
            r#"{"next": "link"}"#,
            vec![
                ("</a?x=1>; rel=\"prev\", </list?c=2>; rel=\"next\"", json!({"items": [1]})),
                ("", json!({"items": []})),
            ],
            &["/list?per=2", "/list?c=2"],
            r#"{"has_more":false,"items":[1]}"#,
        ),
        (
            r#"{"next": "next"}"#,
            vec![page(&[1], json!("https://evil.example/list"))],
            &["/list?per=2"],
            "the next page is at another server, which is not asked",
        ),
        (token, vec![page(&[], json!("x"))], &["/list?per=2"], r#"{"has_more":false,"items":[]}"#),
        (
            token,
            vec![("", json!({"items": {"a": 1}}))],
            &["/list?per=2"],
            "a page of the answer is not a list",
        ),
    ];
    for (pages, answers, asked, result) in cases {
        let found = fetch(pages, &answers);
        assert_eq!(
            (found.0.iter().map(String::as_str).collect::<Vec<_>>(), &*found.1),
            (asked.to_vec(), result)
        );
    }
}

/// A limit that came with 403 was a missing permission, and a date had the unit "seconds".
#[test]
fn a_limit_is_told_apart_from_a_missing_permission() {
    let date = "Wed, 21 Oct 2026 07:28:00 GMT";
    for (status, retry_after, is_quota_used, want) in [
        (403, None, false, ("own forbidden", "the service answered 403: no")),
        (403, None, true, ("own rate_limited", "the service answered 403: no")),
        (403, Some("60"), false, ("own rate_limited", "no (try again after 60 seconds)")),
        (429, Some(date), false, ("own rate_limited", "no (try again after Wed, 21 Oct 2026 07:")),
        (404, Some("60"), true, ("own not_found", "the service answered 404: no")),
    ] {
        let retry_after = retry_after.map(str::to_owned);
        let answer = answer(status, "application/json", r#"{"message": "no"}"#);
        let answer = ServiceAnswer { retry_after, is_quota_used, ..answer };
        let failure = template("").answer.read_result(&answer).unwrap_err();
        let own = own_messages(&["forbidden", "not_found", "rate_limited"]);
        assert_eq!(own.message_about(&failure.facts), Some(want.0), "{answer:?}");
        assert!(failure.message.contains(want.1), "{}", failure.message);
        assert_eq!(failure.message.contains("try again"), want.1.contains("try again"));
    }
}

/// Guidance with a message `own KEY` for each key.
fn own_messages(keys: &[&str]) -> OutputGuidance {
    let entry = |key: &&str| ((*key).to_owned(), format!("own {key}"));
    let common_errors = keys.iter().map(entry).collect::<BTreeMap<_, _>>();
    OutputGuidance { success_message: None, common_errors }
}

#[test]
fn a_definitions_own_message_is_used_where_its_key_fits() {
    let with_code = |status, code: &str| FailureFacts::from_answer(status, Some(code.to_owned()));
    let status = |status| FailureFacts::from_answer(status, None);
    for (keys, facts, want) in [
        (&["auth_failed", "api_error"][..], status(401), Some("own auth_failed")),
        (
            &["auth_failed"],
            FailureFacts::from_kind(FailureKind::AuthRequired),
            Some("own auth_failed"),
        ),
        (&["quota_exceeded"], status(429), Some("own quota_exceeded")),
        (&["quota_exceeded"], with_code(403, "dailyLimitExceeded"), Some("own quota_exceeded")),
        (&["quota_exceeded"], with_code(403, "insufficientPermissions"), None),
        (
            &["insufficient_permissions", "forbidden"],
            with_code(403, "insufficientPermissions"),
            Some("own insufficient_permissions"),
        ),
        (&["forbidden"], with_code(403, "other"), Some("own forbidden")),
        (&["404", "not_found"], status(404), Some("own 404")),
        (&["http_418"], status(418), Some("own http_418")),
        (&["not-found"], FailureFacts::from_kind(FailureKind::NotFound), Some("own not-found")),
        (&["timeout"], FailureFacts::timeout(), Some("own timeout")),
        (&["unavailable"], status(503), Some("own unavailable")),
        (&["api_error"], FailureFacts::from_kind(FailureKind::Failed), Some("own api_error")),
        (&["other"], status(500), None),
    ] {
        assert_eq!(own_messages(keys).message_about(&facts), want, "{keys:?} {facts:?}");
    }
}
