//! What a record keeps, and what cannot be done to a log by what is in a record.

use std::time::Duration;

use sallyport_contract::{
    CallFailure, CallReport, Decision, Denial, Effect, FailureKind, FixRule, LogLevel, Outcome,
    PolicyFix, ToolCallContext, ToolOutput, UserAnswer,
};

use super::*;
use crate::{ArgumentsHash, AuditEffect, AuditGrant, audit::RecordVersion};

const HOSTILE: [&str; 12] = [
    "",
    "two\nlines\r\nof text",
    "\x1b[2J\x1b[31mred",
    "nul\0inside",
    "separators\u{2028}and\u{2029}",
    "\u{202e}backwards \u{200b}hidden \u{feff}mark",
    "c1 \u{9b}31m \u{85}",
    "\"}, {\"seq\":1, \"log\":{\"pruned\":{}}",
    "\\u0000 \\ \\\\n",
    "\u{fffd}\u{ffff}\u{10ffff}",
    "'; DROP TABLE audit; --",
    "tag \u{e0041} and 👩‍👩‍👧",
];

fn hostile(text: &str) -> AuditRecord {
    let some = || Some(text.to_owned());
    let text = || text.to_owned();
    AuditRecord {
        who: HostUser { name: text(), uid: 0 },
        session: some(),
        call: some(),
        plugin: some(),
        digest: some(),
        tool: some(),
        grounds: some(),
        outcome: some(),
        message: some(),
        effects: vec![
            AuditEffect::Changed { path: text() },
            AuditEffect::Asked { what: text(), answer: text() },
            AuditEffect::GrantAnswered {
                what: text(),
                answer: UserAnswer::Once,
                grants: vec![AuditGrant { key: "net".to_owned(), entry: text() }],
            },
            AuditEffect::SecretUsed { name: text(), to: some() },
            AuditEffect::Used { capability: text(), what: text() },
            AuditEffect::Refused { what: text(), why: text() },
        ],
        ..record(1)
    }
}

#[test]
fn h50_hostile_text_makes_one_valid_record_each() {
    let fixture = Fixture::new();
    let log = fixture.log();
    for text in HOSTILE {
        log.append(hostile(text)).unwrap();
    }
    log.flush(PATIENCE).unwrap();
    let entries = fixture.entries(AuditFilter::default());
    assert_eq!(entries.len(), HOSTILE.len());
    for (entry, text) in entries.iter().zip(HOSTILE) {
        assert_eq!(entry.record.as_ref(), Some(&hostile(text)), "{text:?}");
        let seen = sallyport_contract::text::escape_line(&entry.text);
        assert_eq!(entry.text, seen, "nothing in the line is obeyed or unseen");
    }
    assert_eq!(fixture.problems(), [""; 0]);
}

#[test]
fn a_record_is_written_in_one_form() {
    let mut record = AuditRecord {
        decision: Some(Decision::Ask),
        grounds: Some("policy.toml:12".to_owned()),
        arguments: Some(ArgumentsHash::from_arguments("{}")),
        ..record(7)
    };
    record.effects.push(AuditEffect::SecretUsed { name: "pin".to_owned(), to: None });
    record.who = HostUser { name: "me".to_owned(), uid: 5 };
    let hash = blake3::hash(b"{}");
    let want = format!(
        r#"{{"v":1,"at_ms":7000,"kind":"call","who":{{"name":"me","uid":5}},"session":"s-1","call":"c-7","plugin":"weather","tool":"get_weather","arguments":"{hash}","decision":"ask","grounds":"policy.toml:12","effects":[{{"did":"secret-used","name":"pin"}}],"message":"message 7"}}"#
    );
    assert_eq!(record.into_line(), want);
}

#[test]
fn a_record_of_another_form_is_not_read() {
    let line = record(1).into_line();
    assert_eq!(serde_json::from_str::<AuditRecord>(&line).unwrap().v, RecordVersion);
    let newer = line.replacen("\"v\":1", "\"v\":2", 1);
    let error = serde_json::from_str::<AuditRecord>(&newer).unwrap_err();
    assert!(error.to_string().contains("form 2 of records is not known"), "{error}");
}

#[test]
fn texts_and_effects_are_cut_and_say_so() {
    let effects = vec![AuditEffect::Changed { path: "ä".repeat(6000) }; 100];
    let long = AuditRecord { message: Some("x".repeat(1 << 20)), effects, ..record(1) }.into_line();
    assert!(long.len() < 300 * 1024, "{}", long.len());
    let read: AuditRecord = serde_json::from_str(&long).unwrap();
    let message = read.message.unwrap();
    assert!(message.ends_with("x… (1040384 more bytes)"), "{}", &message[8180..]);
    let kept = read.effects.len() as u64 - 1;
    assert_eq!(read.effects.last(), Some(&AuditEffect::LeftOut { effects: 100 - kept }));
    let whole = AuditRecord { effects: vec![AuditEffect::LeftOut { effects: 3 }], ..record(1) };
    assert_eq!(serde_json::from_str::<AuditRecord>(&whole.clone().into_line()).unwrap(), whole);
}

fn effects() -> Vec<Effect> {
    let text = |text: &str| text.to_owned();
    let requested = |what: &str, status, sent_bytes, received_bytes| Effect::Requested {
        what: text(what),
        status,
        sent_bytes,
        received_bytes,
    };
    vec![
        Effect::Logged { level: LogLevel::Info, text: text("token=123") },
        requested("GET https://a.example/x", Some(200), 1, 20),
        requested("PUT https://b.example/y", None, 300, 4000),
        Effect::Changed { path: text("/notes/a") },
        Effect::SecretUsed { name: text("spotify"), to: Some(text("https://b.example")) },
        Effect::Asked { what: text("PUT https://b.example/y"), answer: text("allowed once") },
        Effect::Refused(
            Denial::new(text("GET https://c.example/"), text("no grant"))
                .with_fix(Some(fix(&text("/home/me/.config")))),
        ),
    ]
}

#[test]
fn a_report_becomes_a_record_without_the_plugins_own_words() {
    let report = CallReport {
        effects: effects(),
        elapsed: Duration::from_millis(1234),
        memory_bytes_peak: 5678,
        ..CallReport::from(Outcome::Completed(ToolOutput::default()))
    };
    let record = record(1).with_report(&report);
    assert_eq!(record.outcome.as_deref(), Some("completed"));
    assert_eq!((record.sent_bytes, record.received_bytes), (301, 4020));
    assert_eq!((record.elapsed_ms, record.memory_bytes_peak), (1234, 5678));
    assert_eq!(record.effects.len(), effects().len() - 1);
    let line = record.into_line();
    for absent in ["token", "/home/me"] {
        assert!(!line.contains(absent), "{line}");
    }
    for present in ["a.example/x", "/notes/a", "spotify", "allowed once", "no grant"] {
        assert!(line.contains(present), "{present}: {line}");
    }
}

#[test]
fn of_a_call_all_is_kept_but_its_arguments() {
    let context = ToolCallContext {
        call_id: "c-9".to_owned(),
        session_id: "s-9".to_owned(),
        ..ToolCallContext::default()
    };
    let arguments = r#"{"pin":"1234"}"#;
    let bare = AuditRecord::new(AuditKind::Decision, 0, HostUser::from_process(""));
    let record = bare.with_call(&context, &"mail.send".parse().unwrap(), arguments);
    assert_eq!((record.call.as_deref(), record.session.as_deref()), (Some("c-9"), Some("s-9")));
    assert_eq!((record.plugin.as_deref(), record.tool.as_deref()), (Some("mail"), Some("send")));
    let hash = blake3::hash(arguments.as_bytes()).to_hex();
    assert_eq!(record.arguments.as_ref().unwrap().as_str(), hash.as_str());
    assert!(!record.into_line().contains("1234\""));
}

#[test]
fn every_end_of_a_call_is_told() {
    let denial = Denial { nobody_to_ask: true, ..Denial::new("mail may not", "policy.toml:3") };
    let failure = CallFailure::new(FailureKind::Trapped, "broke").with_detail("/host/path");
    let rows = [
        (Outcome::Denied(denial), "denied", Some("mail may not: policy.toml:3")),
        (Outcome::Failed(failure.clone()), "failed", Some("broke")),
        (Outcome::InvalidArguments(failure), "invalid-arguments", Some("broke")),
        (Outcome::Cancelled, "cancelled", None),
        (
            Outcome::TimedOut { limit: Duration::from_secs(10) },
            "timed-out",
            Some("stopped after 10s, its time limit"),
        ),
    ];
    for (outcome, word, message) in rows {
        let bare = AuditRecord::new(AuditKind::Call, 0, HostUser::from_process(""));
        let record = bare.with_report(&outcome.into());
        assert_eq!((record.outcome.as_deref(), record.message.as_deref()), (Some(word), message));
    }
}

#[test]
fn kinds_are_called_what_they_are_written_as() {
    for kind in [
        AuditKind::Decision,
        AuditKind::Call,
        AuditKind::Policy,
        AuditKind::Trouble,
        AuditKind::Checkpoint,
    ] {
        assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
    }
}

/// A fix with this policy text.
fn fix(toml: &str) -> PolicyFix {
    let rule = FixRule { tool: "*".to_owned(), net: None, page: None };
    PolicyFix::from_rule("t".parse().unwrap(), rule, toml)
}
