//! Mistakes in definitions, each with its line, its column and what to do.

use super::{variable, with_action};
use crate::Definition;

#[track_caller]
fn check(text: &str, want: &str) {
    let error = Definition::parse("p.json", text, &variable).expect_err(text);
    let hint = error.hint.as_deref().map(|hint| format!(" | {hint}")).unwrap_or_default();
    assert_eq!(format!("{}: {}{hint}", error.line, error.message), want, "{text}");
}

#[test]
fn a_field_that_is_missing_unknown_or_twice_is_refused_at_its_place() {
    let plugin = |fields: &str| format!("{{\n\"plugin\": {{{fields}}},\n\"actions\": {{}}}}");
    let whole = r#""name": "p", "version": "1.0.0", "description": "d""#;
    for (text, want) in [
        ("", "1: EOF while parsing a value".to_owned()),
        ("{}", "1: missing field `plugin`".to_owned()),
        ("[]", "1: invalid length 0, expected struct DefinitionFile with 2 elements".to_owned()),
        (
            &*plugin(r#""name": "p", "version": "1.0.0""#),
            "2: missing field `description`".to_owned(),
        ),
        (&*plugin(whole), "3: a plugin without actions does nothing".to_owned()),
        (&*plugin(&format!(r#"{whole}, "name": "q""#)), "2: duplicate field `name`".to_owned()),
        (
            &*plugin(r#""name": "P", "version": "1.0.0", "description": "d""#),
            "2: \"P\" is not a plugin name: use up to 64 lower-case letters, digits, '-' and '_', \
             starting with a letter"
                .to_owned(),
        ),
        (
            &*plugin(r#""name": "p", "version": "one", "description": "d""#),
            "2: this is not a version | write three numbers: 1.0.0".to_owned(),
        ),
    ] {
        check(text, &want);
    }
    let unknown = with_action(r#""usage_contxt": "x""#);
    let error = Definition::parse("p.json", &unknown, &variable).unwrap_err();
    assert!(error.message.starts_with("unknown field `usage_contxt`, expected"), "{error}");
    assert_eq!(error.line, 6);
    let twice = with_action("\"rules\": {}")
        .replace("\"do\":", "\"do\": {\"description\": \"d\", \"parameters\": {}}, \"do\":");
    assert!(
        Definition::parse("p.json", &twice, &variable)
            .unwrap_err()
            .message
            .contains("duplicate field `do`")
    );
}

#[test]
fn a_rule_that_is_not_understood_is_refused_at_its_place() {
    let limit = |condition: &str, action: &str, message: &str| {
        with_action(&format!(
            "\"rules\": {{\"limits\": {{\"r\": {{\n\"condition\": \"{condition}\",\n\"action\": \
             \"{action}\",\n\"message\": \"{message}\"}}}}}}"
        ))
    };
    check(
        &limit("total_files > 5", "block", "m"),
        "7: nothing defines \"total_files\" | a list \"files\" in \"parameters\" would define it",
    );
    check(
        &limit("total_tags > 5", "confirm", "m"),
        "8: the action of limits is \"block\" | write \"action\": \"block\"",
    );
    check(
        &limit("total_tags > 5", "block", "{nothing}"),
        "9: nothing defines \"nothing\" | a property \"nothing\" in \"parameters\" would define it",
    );
    check(
        &limit("total_tags >", "block", "m"),
        "7: the condition is not understood at 1:13 of it: the condition is incomplete",
    );
}

#[test]
fn a_request_that_could_leave_its_origin_is_refused() {
    let variable_hint = "${VAR} is for \"auth_config\" and for the start of a request's \"url\"";
    for (request, want) in [
        (
            r#"{"url": "https://{id}.example/a"}"#,
            "an argument could send the request to another server | write the scheme, the host and the port out",
        ),
        (
            r#"{"url": "https://a.example:{n}/a"}"#,
            "an argument could send the request to another server | write the scheme, the host and the port out",
        ),
        (
            r#"{"url": "{id}"}"#,
            "an argument could send the request to another server | write the scheme, the host and the port out",
        ),
        (
            r#"{"url": "https://a.example/{n}"}"#,
            "the address needs \"n\", which a call may leave out | put it into \"required\", or give it a \"default\"",
        ),
        (
            r#"{"url": "https://a.example/{nope}"}"#,
            "there is no parameter \"nope\" | the parameters are id, n, place, size, tags",
        ),
        (r#"{"url": "https://a.example/{"}"#, "a brace stands alone | write {{ or }} for a brace"),
        (r#"{"url": "ftp://a.example/"}"#, "this is not an address of http or https"),
        (r#"{"url": "https://me:pw@a.example/"}"#, "this is not an address of http or https"),
        (
            r#"{"url": "https://a.example/${SERVICE_URL}"}"#,
            "a variable can only be at the start of an address | write \"${SERVICE_URL}/path\"",
        ),
        (
            r#"{"url": "https://a.example/", "method": "BREW"}"#,
            "this method is not known | write GET, POST, PUT, PATCH, DELETE, HEAD",
        ),
        (
            r#"{"url": "https://a.example/", "headers": {"Host": "b"}}"#,
            "the host sets this header | the sign-in is sent by itself; leave it out",
        ),
        (
            r#"{"url": "https://a.example/", "headers": {"a b": "b"}}"#,
            "this is not the name of a header",
        ),
        (
            r#"{"url": "https://a.example/", "json": {}, "form": {}}"#,
            "a request has one body: \"json\" or \"form\"",
        ),
        (
            r#"{"url": "https://a.example/", "query": {"q": "${SERVICE_URL}"}}"#,
            &format!("a variable may not be here | {variable_hint}"),
        ),
        (
            r#"{"url": "https://a.example/", "pages": {"next": "number"}}"#,
            "\"number\" needs \"query\" | name the value of the query that has the number",
        ),
        (
            r#"{"url": "https://a.example/", "pages": {"next": "link", "max": 0}}"#,
            "a call fetches 1 to 20 pages",
        ),
    ] {
        check(&with_action(&format!("\"request\": {request}")), &format!("6: {want}"));
    }
}

#[test]
fn a_sign_in_that_others_could_read_is_refused() {
    let auth = |fields: &str| {
        with_action("\"rules\": {}").replace(
            "\"description\": \"d\"}",
            &format!(
                "\"description\": \"d\",\n\"auth_config\": {{\"client_id\": \"c\", {fields}}}}}"
            ),
        )
    };
    for (fields, want) in [
        (
            r#""auth_type": "saml""#,
            "no such kind of sign-in | write oauth2_google, oauth2_microsoft, oauth2, platform_key",
        ),
        (
            r#""auth_type": "oauth2", "auth_url": "https://a.example/""#,
            "a sign-in of the type oauth2 needs token_url",
        ),
        (
            r#""auth_type": "oauth2", "auth_url": "http://a.example/""#,
            "tokens may not travel to this address | use https, or http on this machine (127.0.0.1, localhost)",
        ),
        (r#""auth_type": "oauth2", "auth_url": "nowhere""#, "this is not an address"),
        (
            r#""auth_type": "oauth2", "auth_url": "https://a.example/${lower-case}""#,
            "this is not the name of a variable | write it like ${NAME}, in capital letters",
        ),
    ] {
        check(&auth(fields), &format!("2: {want}"));
    }
}
