//! Expected effects, and the effects of a call in the same form.

use sallyport_contract::{Effect, LogLevel};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::expectation::DeniedKind;

/// An effect that must happen or, with `not`, must not. Only the keys that are written are compared.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExpectedEffect {
    #[serde(default)]
    pub(crate) not: bool,
    kind: EffectKind,
    level: Option<LogLevel>,
    text: Option<String>,
    what: Option<String>,
    status: Option<u16>,
    path: Option<String>,
    name: Option<String>,
    to: Option<String>,
    answer: Option<String>,
    capability: Option<String>,
}

/// The kinds of effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum EffectKind {
    Logged,
    Requested,
    Changed,
    SecretUsed,
    Asked,
    GrantAnswered,
    Used,
    Refused,
}

/// An effect of a call, as far as it can be expected.
#[derive(Debug, Serialize)]
pub(crate) struct ActualEffect {
    kind: EffectKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    level: Option<LogLevel>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    what: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    capability: Option<String>,
}

impl ActualEffect {
    fn of_kind(kind: EffectKind) -> Self {
        Self {
            kind,
            level: None,
            text: None,
            what: None,
            status: None,
            path: None,
            name: None,
            to: None,
            answer: None,
            capability: None,
        }
    }

    /// As JSON on one line, for messages.
    pub(crate) fn to_json(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }
}

impl From<&Effect> for ActualEffect {
    fn from(effect: &Effect) -> Self {
        let kind = Self::of_kind;
        match effect.clone() {
            Effect::Logged { level, text } => {
                Self { level: Some(level), text: Some(text), ..kind(EffectKind::Logged) }
            }
            Effect::Requested { what, status, .. } => {
                Self { what: Some(what), status, ..kind(EffectKind::Requested) }
            }
            Effect::Changed { path } => Self { path: Some(path), ..kind(EffectKind::Changed) },
            Effect::SecretUsed { name, to } => {
                Self { name: Some(name), to, ..kind(EffectKind::SecretUsed) }
            }
            Effect::Asked { what, answer } => {
                Self { what: Some(what), answer: Some(answer), ..kind(EffectKind::Asked) }
            }
            Effect::GrantAnswered { what, .. } => {
                Self { what: Some(what), ..kind(EffectKind::GrantAnswered) }
            }
            Effect::Used { capability, what } => {
                Self { capability: Some(capability), what: Some(what), ..kind(EffectKind::Used) }
            }
            Effect::Refused(denial) => {
                let denied = serde_json::to_value(DeniedKind::of(&denial)).unwrap_or_default();
                let capability = denied.as_str().map(str::to_owned);
                Self { capability, what: Some(denial.to_string()), ..kind(EffectKind::Refused) }
            }
        }
    }
}

impl ExpectedEffect {
    fn matches(&self, actual: &ActualEffect) -> bool {
        fn same<T: PartialEq>(wanted: &Option<T>, actual: &Option<T>) -> bool {
            wanted.is_none() || wanted == actual
        }
        self.kind == actual.kind
            && same(&self.level, &actual.level)
            && same(&self.text, &actual.text)
            && same(&self.what, &actual.what)
            && same(&self.status, &actual.status)
            && same(&self.path, &actual.path)
            && same(&self.name, &actual.name)
            && same(&self.to, &actual.to)
            && same(&self.answer, &actual.answer)
            && same(&self.capability, &actual.capability)
    }

    /// What is wrong, if the effect is missing or happened although it must not.
    pub(crate) fn objection(&self, actual: &[ActualEffect]) -> Option<String> {
        let found = actual.iter().find(|actual| self.matches(actual));
        match (self.not, found) {
            (false, None) => Some(format!("missing: {}", self.describe())),
            (true, Some(found)) => Some(format!("must not happen: {}", found.to_json())),
            _ => None,
        }
    }

    fn describe(&self) -> String {
        let this = self.clone();
        let described = ActualEffect {
            kind: this.kind,
            level: this.level,
            text: this.text,
            what: this.what,
            status: this.status,
            path: this.path,
            name: this.name,
            to: this.to,
            answer: this.answer,
            capability: this.capability,
        };
        described.to_json().to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn effects_are_found_missing_and_forbidden() {
        let effects = [
            Effect::Logged { level: LogLevel::Warn, text: "careful".to_owned() },
            Effect::Changed { path: "/notes/a".to_owned() },
        ];
        let actual: Vec<ActualEffect> = effects.iter().map(ActualEffect::from).collect();
        let check = |expected: &str, objection: Option<&str>| {
            let expected: ExpectedEffect = serde_json::from_str(expected).unwrap();
            assert_eq!(expected.objection(&actual).as_deref(), objection);
        };
        check(r#"{"kind": "logged", "text": "careful"}"#, None);
        check(r#"{"kind": "logged", "level": "warn"}"#, None);
        check(r#"{"kind": "changed", "path": "/notes/b", "not": true}"#, None);
        check(
            r#"{"kind": "logged", "level": "error"}"#,
            Some(r#"missing: {"kind":"logged","level":"error"}"#),
        );
        check(
            r#"{"kind": "changed", "not": true}"#,
            Some(r#"must not happen: {"kind":"changed","path":"/notes/a"}"#),
        );
        assert!(serde_json::from_str::<ExpectedEffect>(r#"{"kind": "x"}"#).is_err());
        assert!(serde_json::from_str::<ExpectedEffect>(r#"{"kind": "used", "x": 1}"#).is_err());
    }
}
