//! The change to the user's policy that would lift a refusal, as data.
//!
//! The policy makes it, and whoever shows a refusal words it: as the command that makes the change,
//! or as policy text.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de::IgnoredAny};

use crate::{PluginName, text::shell_word};

/// The word in a command for a folder that only the user can choose.
pub const FOLDER_PLACEHOLDER: &str = "FOLDER";

/// A change to the user's policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PolicyFix {
    /// The plugin that gets the grants.
    #[schemars(with = "String")]
    pub plugin: PluginName,
    /// The grants to add.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grants: Vec<FixGrant>,
    /// The rule to add, so that nobody has to be asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<FixRule>,
    /// Whether the grants are all that the manifest requests and the policy can still grant.
    #[serde(default)]
    pub is_all_requested: bool,
    /// The same change as policy text: the plugin's whole table, and the rule.
    pub toml: String,
}

/// One grant, in the notation of a policy.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct FixGrant {
    /// What it is a grant of, as the key of a plugin's table: `net`, `fs`, `secrets`, a capability.
    pub key: String,
    /// The entry as a TOML value: `"GET https://example.org/"`, `{ name = "key", reveal = true }`,
    /// `true`.
    pub entry: String,
    /// The arguments of `sallyport policy grant` that add it, if a flag of its own does.
    pub flags: Vec<String>,
}

/// A rule that allows calls, or accesses of calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FixRule {
    /// The tool, without its plugin; `*` for all of them.
    pub tool: String,
    /// The requests that it is about, if it is not about calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub net: Option<String>,
    /// The pages that it is about, if it is not about calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<String>,
}

impl PolicyFix {
    /// Creates a fix that adds a rule and no grant. `toml` is the rule as policy text.
    pub fn from_rule(plugin: PluginName, rule: FixRule, toml: impl Into<String>) -> Self {
        let (grants, toml) = (Vec::new(), toml.into());
        Self { plugin, grants, rule: Some(rule), is_all_requested: false, toml }
    }

    /// Returns the command that makes the change. Flags that only one entry can have appear once;
    /// further entries use `--grant KEY=VALUE`.
    pub fn command(&self) -> String {
        let mut words: Vec<String> =
            ["sallyport", "policy", "grant", self.plugin.as_str()].map(str::to_owned).into();
        match self.is_all_requested {
            true => words.push("--requested".to_owned()),
            false => words.extend(self.grant_arguments()),
        }
        words.extend(self.rule.iter().flat_map(FixRule::arguments));
        words.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" ")
    }

    fn grant_arguments(&self) -> impl Iterator<Item = String> {
        let is_only_one = self.grants.len() == 1;
        self.grants.iter().flat_map(move |grant| match grant.flags.as_slice() {
            // One flag with its value has no other flags that belong to it.
            flags @ [_, _] => flags.to_vec(),
            flags if is_only_one && !flags.is_empty() => flags.to_vec(),
            _ => vec!["--grant".to_owned(), format!("{}={}", grant.key, grant.entry)],
        })
    }

    /// The texts that may contain secrets.
    pub fn texts_mut(&mut self) -> Vec<&mut String> {
        let mut texts = vec![&mut self.toml];
        texts.extend(self.grants.iter_mut().flat_map(FixGrant::texts_mut));
        texts.extend(
            self.rule.iter_mut().flat_map(|rule| [&mut rule.net, &mut rule.page]).flatten(),
        );
        texts
    }
}

impl FixGrant {
    /// The texts that may contain secrets.
    pub(crate) fn texts_mut(&mut self) -> impl Iterator<Item = &mut String> {
        [&mut self.entry].into_iter().chain(&mut self.flags)
    }
}

impl FixRule {
    fn arguments(&self) -> Vec<String> {
        let parts = [("--allow", Some(&self.tool)), ("--rule-net", self.net.as_ref())];
        let parts = parts.into_iter().chain([("--rule-page", self.page.as_ref())]);
        let given = parts.filter_map(|(flag, value)| Some([flag.to_owned(), value?.clone()]));
        given.flatten().collect()
    }
}

/// Reads a fix. That of an earlier version was text, which is left out, because the edge words it.
///
/// # Errors
///
/// The input cannot be read.
pub fn read_fix<'de, D: Deserializer<'de>>(reader: D) -> Result<Option<Box<PolicyFix>>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum AnyFix {
        Current(Box<PolicyFix>),
        Earlier(IgnoredAny),
    }
    Ok(match Option::deserialize(reader)? {
        Some(AnyFix::Current(fix)) => Some(fix),
        Some(AnyFix::Earlier(_)) | None => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grant(key: &str, entry: &str, flags: &[&str]) -> FixGrant {
        let flags = flags.iter().map(|flag| (*flag).to_owned()).collect();
        FixGrant { key: key.to_owned(), entry: entry.to_owned(), flags }
    }

    #[test]
    fn one_command_makes_the_whole_change() {
        let net = || grant("net", "\"GET https://a.io/**\"", &["--net", "GET https://a.io/**"]);
        let folder = || {
            let entry = "{ path = \"/srv\", mount = \"/n\", access = \"read\" }";
            grant("fs", entry, &["--read", "/srv", "--mount", "/n"])
        };
        let rule = |tool: &str, net: Option<&str>| {
            Some(FixRule { tool: tool.to_owned(), net: net.map(str::to_owned), page: None })
        };
        let rows = [
            (vec![net()], None, false, "--net 'GET https://a.io/**'"),
            (vec![net()], rule("*", None), true, "--requested --allow '*'"),
            (vec![folder()], None, false, "--read /srv --mount /n"),
            (
                vec![net(), folder()],
                None,
                false,
                "--net 'GET https://a.io/**' --grant 'fs={ path = \"/srv\", mount = \"/n\", \
                 access = \"read\" }'",
            ),
            (vec![], rule("get", None), false, "--allow get"),
            (
                vec![],
                rule("get", Some("GET https://a.io/it's")),
                false,
                r"--allow get --rule-net 'GET https://a.io/it'\''s'",
            ),
        ];
        for (grants, rule, is_all_requested, want) in rows {
            let plugin = "mail".parse().unwrap();
            let fix = PolicyFix { plugin, grants, rule, is_all_requested, toml: String::new() };
            assert_eq!(fix.command(), format!("sallyport policy grant mail {want}"));
        }
    }
}
