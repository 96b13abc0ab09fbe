//! Grants written as `KEY=VALUE`, as `policy grant --grant` takes them.
//!
//! A text is refused unless a policy would understand it in the same way. A word, a key or a type
//! that is not understood must not be left out, because what is left out is often a restriction.

use std::str::FromStr;

use sallyport_contract::Decision;
use toml_edit::{InlineTable, Value};

use super::{
    FsAddition, GrantAddition, NetAddition, NetReachText, SecretAddition, SecretUseText,
    canonical_values, plain_item,
};
use crate::{
    capability::{Capability, ValueShape},
    folder::FsAccess,
    net::entry::DECISIONS,
    source::{SourceError, quoted},
};

/// The notation of a grant, as advice.
const FORM: &str = "write KEY=VALUE, such as env=TZ, state=true, state.quota=1MiB or packages=six";

/// Why a text is not a grant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} is not a grant: {reason}", quoted(text))]
pub struct GrantTextError {
    text: String,
    reason: String,
}

impl FromStr for GrantAddition {
    type Err = GrantTextError;

    /// Parses `KEY=VALUE`. The key is one of a plugin's table. The value is `true`, the text of an
    /// entry, or an entry of a list as a TOML table; `KEY.SETTING=VALUE` is a setting.
    fn from_str(text: &str) -> Result<Self, GrantTextError> {
        parse_grant(text).map_err(|reason| GrantTextError { text: text.to_owned(), reason })
    }
}

fn parse_grant(text: &str) -> Result<GrantAddition, String> {
    let (key, value) = text.split_once('=').ok_or(FORM)?;
    let (key, value) = (key.trim(), value.trim());
    if value.is_empty() {
        return Err(FORM.to_owned());
    }
    if let Some((key, setting)) = key.split_once('.') {
        return setting_from_text(key, setting, value);
    }
    let toml = value.parse::<Value>().ok();
    match toml.as_ref() {
        Some(Value::InlineTable(table)) => entry_from_table(key, value, table),
        Some(Value::Boolean(flag)) => whole_capability(key, *flag.value()),
        _ => entry_from_text(key, plain_item(value).unwrap_or_else(|| value.to_owned())),
    }
}

fn setting_from_text(key: &str, setting: &str, value: &str) -> Result<GrantAddition, String> {
    if key == "limits" {
        return Ok(GrantAddition::Limit { key: setting.to_owned(), value: value.to_owned() });
    }
    let of = Capability::from_name(key).ok_or(FORM)?;
    let known = of.kind().setting_keys();
    match known.contains(&setting) {
        true => Ok(GrantAddition::capability_setting(of, setting, value)),
        false => Err(format!("{} is not a setting; {}", quoted(setting), notation(of))),
    }
}

fn whole_capability(key: &str, is_granted: bool) -> Result<GrantAddition, String> {
    match (Capability::from_name(key), is_granted) {
        (Some(of), true) => Ok(GrantAddition::capability(of)),
        (Some(of), false) => Err(format!("false takes {of} away; write that into the policy file")),
        (None, _) => Err(FORM.to_owned()),
    }
}

fn entry_from_text(key: &str, text: String) -> Result<GrantAddition, String> {
    Ok(match key {
        "net" => {
            let (decision, reach) = (None, NetReachText::Public);
            GrantAddition::Net(NetAddition { pattern: text, decision, reach })
        }
        "fs" => {
            let (mount, deny, quota, sensitive) = (None, Vec::new(), None, false);
            let access = FsAccess::Read;
            GrantAddition::Fs(FsAddition { path: text, mount, access, deny, quota, sensitive })
        }
        "env" => GrantAddition::Env(text),
        "secrets" => {
            GrantAddition::Secret(SecretAddition { name: text, usage: SecretUseText::Reveal })
        }
        _ => GrantAddition::capability_item(Capability::from_name(key).ok_or(FORM)?, &text),
    })
}

/// Reads an entry that is a table. `toml` is its text.
fn entry_from_table(key: &str, toml: &str, table: &InlineTable) -> Result<GrantAddition, String> {
    if let Some(of) = Capability::from_name(key)
        && !matches!(of.kind().shape(), ValueShape::List(_))
    {
        return Err(notation(of));
    }
    let meant = canonical_values(key, &format!("[{toml}]")).map_err(reason_with_hint)?;
    let addition = match key {
        "net" => net_from_table(table).map(GrantAddition::Net),
        "fs" => fs_from_table(table).map(GrantAddition::Fs),
        "secrets" => secret_from_table(table).map(GrantAddition::Secret),
        _ => Capability::from_name(key)
            .map(|of| GrantAddition::capability_entry(of, toml.to_owned())),
    };
    let is_same = |addition: &GrantAddition| addition.canonical_entries().as_ref() == Ok(&meant);
    addition.filter(is_same).ok_or_else(|| FORM.to_owned())
}

fn net_from_table(table: &InlineTable) -> Option<NetAddition> {
    let decision = match text_at(table, "decision") {
        Some(word) => Some(decision_from_word(&word)?),
        None => None,
    };
    let reach = match (flag_at(table, "to-private"), texts_at(table, "range")) {
        (false, _) => NetReachText::Public,
        (true, ranges) if ranges.is_empty() => NetReachText::HostAddresses,
        (true, ranges) => NetReachText::Ranges(ranges),
    };
    Some(NetAddition { pattern: text_at(table, "allow")?, decision, reach })
}

fn decision_from_word(word: &str) -> Option<Decision> {
    DECISIONS.into_iter().find_map(|(known, decision)| (known == word).then_some(decision))
}

fn fs_from_table(table: &InlineTable) -> Option<FsAddition> {
    let access = text_at(table, "access")?;
    Some(FsAddition {
        path: text_at(table, "path")?,
        mount: text_at(table, "mount"),
        access: [FsAccess::Read, FsAccess::ReadWrite]
            .into_iter()
            .find(|one| one.as_str() == access)?,
        deny: texts_at(table, "deny"),
        quota: text_at(table, "quota"),
        sensitive: flag_at(table, "sensitive"),
    })
}

fn secret_from_table(table: &InlineTable) -> Option<SecretAddition> {
    let usage = match flag_at(table, "reveal") {
        true => SecretUseText::Reveal,
        false => SecretUseText::Inject {
            to: text_at(table, "to")?,
            header: text_at(table, "header")?,
            format: text_at(table, "format"),
        },
    };
    Some(SecretAddition { name: text_at(table, "name")?, usage })
}

fn text_at(table: &InlineTable, key: &str) -> Option<String> {
    table.get(key)?.as_str().map(str::to_owned)
}

/// The texts under a key that is one text or a list of texts.
fn texts_at(table: &InlineTable, key: &str) -> Vec<String> {
    let list = table.get(key).and_then(Value::as_array);
    let texts = list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned);
    texts.chain(text_at(table, key)).collect()
}

fn flag_at(table: &InlineTable, key: &str) -> bool {
    table.get(key).and_then(Value::as_bool).unwrap_or(false)
}

/// How a grant of a capability is written, as advice.
fn notation(of: Capability) -> String {
    let value = match of.kind().shape() {
        ValueShape::Switch => "true",
        ValueShape::Table(_) | ValueShape::List(_) => "VALUE",
    };
    let settings = of.kind().setting_keys().join(", ");
    match settings.is_empty() {
        true => format!("write {of}={value}"),
        false => format!("write {of}={value}, or {of}.SETTING=VALUE with one of {settings}"),
    }
}

fn reason_with_hint(error: SourceError) -> String {
    match error.hint {
        Some(hint) => format!("{}; {hint}", error.message),
        None => error.message,
    }
}
