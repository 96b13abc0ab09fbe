//! The tables of `sallyport.toml` for services that plugins use: `[browser]`, `[packages]`.

use sallyport_policy::{
    SourceError,
    document::{TomlItem, TomlSection},
};
use serde_json::{Map, Value, json};

use super::{Env, env, file::expand_variables, setting_rows::display_address};

/// `[browser]`: how web pages are opened.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct BrowserKeys {
    /// A program that receives the address, or `none`; the desktop's browser when absent.
    pub command: Option<String>,
}

/// `[packages]`: where plugins get packages.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct PackageKeys {
    /// The address of a package index.
    pub index: Option<String>,
}

impl BrowserKeys {
    pub(super) fn read_section(table: &mut TomlSection<'_>) -> Result<Self, SourceError> {
        Ok(Self { command: table.read_optional("command", TomlItem::read_nonblank_string)? })
    }

    pub(super) fn merge_over(self, base: Self) -> Self {
        Self { command: self.command.or(base.command) }
    }

    /// Applies the environment's overrides.
    pub(super) fn with_env_overrides(self, env: &Env) -> Self {
        Self { command: env.get(env::BROWSER).map(str::to_owned).or(self.command) }
    }

    /// Its values, under the keys of the file.
    pub(super) fn display_values(&self) -> Map<String, Value> {
        Map::from_iter([("command".to_owned(), json!(self.command))])
    }
}

impl PackageKeys {
    pub(super) fn read_section(
        table: &mut TomlSection<'_>,
        env: &Env,
    ) -> Result<Self, SourceError> {
        Ok(Self { index: table.read_optional("index", |item| expand_variables(item, env))? })
    }

    pub(super) fn merge_over(self, base: Self) -> Self {
        Self { index: self.index.or(base.index) }
    }

    /// Its values, under the keys of the file. The address may contain a password, which is hidden.
    pub(super) fn display_values(&self) -> Map<String, Value> {
        let index = self.index.as_deref().map(display_address);
        Map::from_iter([("index".to_owned(), json!(index))])
    }
}
