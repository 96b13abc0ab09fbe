//! The fields of a definition, as they are written.
//!
//! A field that is not listed here is refused, because a misspelt limit would limit nothing.

use std::{collections::BTreeMap, fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{Error as _, MapAccess, Visitor},
};
use serde_json::Value;

/// The whole file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DefinitionFile {
    pub(super) plugin: PluginSection,
    pub(super) actions: NamedEntries<ActionSection>,
}

/// The plugin itself.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PluginSection {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) description: String,
    pub(super) context: Option<String>,
    pub(super) icon: Option<String>,
    pub(super) category: Option<String>,
    pub(super) label: Option<String>,
    #[serde(rename = "displayName")]
    pub(super) display_name: Option<String>,
    #[serde(rename = "isPopular", default)]
    pub(super) is_popular: bool,
    #[serde(rename = "isSystem", default)]
    pub(super) is_system: bool,
    pub(super) auth_config: Option<AuthSection>,
}

/// How a user signs in.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AuthSection {
    pub(super) auth_type: String,
    pub(super) client_id: Option<String>,
    pub(super) client_secret: Option<String>,
    pub(super) redirect_uri: Option<String>,
    pub(super) auth_url: Option<String>,
    pub(super) token_url: Option<String>,
    pub(super) refresh_url: Option<String>,
    pub(super) profile_url: Option<String>,
    pub(super) device_url: Option<String>,
    #[serde(default)]
    pub(super) requires_pkce: bool,
    #[serde(default)]
    pub(super) required_scopes: Vec<String>,
}

/// One action.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ActionSection {
    pub(super) description: String,
    pub(super) usage_context: Option<String>,
    pub(super) parameters: Value,
    #[serde(default)]
    pub(super) rules: RulesSection,
    #[serde(default)]
    pub(super) output_guidance: GuidanceSection,
    pub(super) request: Option<RequestSection>,
}

/// The rules of an action.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RulesSection {
    #[serde(default)]
    pub(super) limits: NamedEntries<RuleSection>,
    #[serde(default)]
    pub(super) confirmations: NamedEntries<RuleSection>,
}

/// One rule.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RuleSection {
    pub(super) condition: String,
    pub(super) action: String,
    pub(super) message: String,
}

/// What is declared about results and failures.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GuidanceSection {
    pub(super) success_message: Option<String>,
    #[serde(default)]
    pub(super) common_errors: BTreeMap<String, String>,
}

/// The request that an action sends.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RequestSection {
    #[serde(default = "get")]
    pub(super) method: String,
    pub(super) url: String,
    #[serde(default)]
    pub(super) query: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) headers: BTreeMap<String, String>,
    pub(super) json: Option<Value>,
    pub(super) form: Option<BTreeMap<String, String>>,
    pub(super) result: Option<String>,
    pub(super) error: Option<String>,
    pub(super) error_code: Option<String>,
    pub(super) pages: Option<PagesSection>,
}

/// How the pages of an answer follow each other.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PagesSection {
    pub(super) next: String,
    pub(super) query: Option<String>,
    pub(super) max: Option<u32>,
}

fn get() -> String {
    "GET".to_owned()
}

/// Entries by name, in the order of the file and each once.
#[derive(Debug)]
pub(super) struct NamedEntries<T>(pub(super) Vec<(String, T)>);

impl<T> Default for NamedEntries<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for NamedEntries<T> {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        reader.deserialize_map(EntriesVisitor(PhantomData))
    }
}

struct EntriesVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for EntriesVisitor<T> {
    type Value = NamedEntries<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut entries: Vec<(String, T)> = Vec::new();
        while let Some((name, entry)) = map.next_entry::<String, T>()? {
            if entries.iter().any(|(known, _)| *known == name) {
                return Err(A::Error::custom(format!("duplicate field `{name}`")));
            }
            entries.push((name, entry));
        }
        Ok(NamedEntries(entries))
    }
}
