//! How the user of a plugin signs in.

use sallyport_contract::Secret;
use sallyport_policy::{SourceError, is_this_machine};
use url::Url;

use super::{file::AuthSection, place::DefinitionSource, variables::VariableReader};

/// What definitions write in place of a key that the host itself has.
const PLATFORM_VALUE: &str = "platform";

/// The kinds of sign-in, and their words.
const AUTH_TYPES: [(&str, AuthType); 4] = [
    ("oauth2_google", AuthType::Google),
    ("oauth2_microsoft", AuthType::Microsoft),
    ("oauth2", AuthType::OAuth2),
    ("platform_key", AuthType::PlatformKey),
];

/// A kind of sign-in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthType {
    /// An account at Google.
    Google,
    /// An account at Microsoft.
    Microsoft,
    /// An account at a service with these addresses.
    OAuth2,
    /// A key that the operator has; no user signs in.
    PlatformKey,
}

impl AuthType {
    /// The word of definitions.
    pub fn as_str(self) -> &'static str {
        AUTH_TYPES.iter().find(|(_, kind)| *kind == self).map_or("", |(word, _)| word)
    }
}

/// The addresses of a sign-in that a definition leaves out.
struct KnownAddresses {
    auth: &'static str,
    token: &'static str,
    profile: &'static str,
    device: &'static str,
}

const GOOGLE: KnownAddresses = KnownAddresses {
    auth: "https://accounts.google.com/o/oauth2/v2/auth",
    token: "https://oauth2.googleapis.com/token",
    profile: "https://www.googleapis.com/oauth2/v2/userinfo",
    device: "https://oauth2.googleapis.com/device/code",
};

const MICROSOFT: KnownAddresses = KnownAddresses {
    auth: "https://login.microsoftonline.com/common/oauth2/v2.0/authorize",
    token: "https://login.microsoftonline.com/common/oauth2/v2.0/token",
    profile: "https://graph.microsoft.com/v1.0/me",
    device: "https://login.microsoftonline.com/common/oauth2/v2.0/devicecode",
};

const NONE: KnownAddresses = KnownAddresses { auth: "", token: "", profile: "", device: "" };

/// How the user of a plugin signs in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthConfig {
    /// The kind of sign-in.
    pub auth_type: AuthType,
    /// The name of the application at the service.
    pub client_id: String,
    /// The application's password, or the key of a plugin that needs no account.
    pub client_secret: Option<Secret>,
    /// The fixed address that the service sends the browser back to, if the definition has one.
    pub redirect_uri: Option<String>,
    /// Whether the service takes the password in the form, and not in a header.
    pub has_secret_in_form: bool,
    /// Where the user signs in.
    pub auth_url: Option<Url>,
    /// Where a code becomes tokens.
    pub token_url: Option<Url>,
    /// Where tokens are refreshed.
    pub refresh_url: Option<Url>,
    /// Who the user is.
    pub profile_url: Option<Url>,
    /// Where a sign-in without a browser begins.
    pub device_url: Option<Url>,
    /// Whether the service insists on PKCE, which is used in any case.
    pub requires_pkce: bool,
    /// The permissions that the actions need.
    pub required_scopes: Vec<String>,
    /// What the tokens are for, for a service that gives tokens for several (RFC 8707).
    pub resource: Option<String>,
    /// Who answers a sign-in, for a service that says so in its answer (RFC 9207).
    pub issuer: Option<String>,
    /// Whether the service always says so, so that an answer that does not is refused.
    pub requires_issuer: bool,
}

impl AuthConfig {
    pub(super) fn read(
        section: AuthSection,
        source: &DefinitionSource<'_>,
        variables: &mut VariableReader<'_>,
    ) -> Result<Self, SourceError> {
        let auth_type = read_auth_type(&section.auth_type, source)?;
        let known = match auth_type {
            AuthType::Google => GOOGLE,
            AuthType::Microsoft => MICROSOFT,
            AuthType::OAuth2 | AuthType::PlatformKey => NONE,
        };
        let mut reader = AuthReader { source, variables: &mut *variables };
        let secret = reader.text("client_secret", section.client_secret.as_deref())?;
        let is_platform = auth_type == AuthType::PlatformKey && secret == PLATFORM_VALUE;
        let auth = Self {
            auth_type,
            client_id: reader.text("client_id", section.client_id.as_deref())?,
            client_secret: (!secret.is_empty() && !is_platform).then(|| Secret::new(secret)),
            redirect_uri: Some(reader.text("redirect_uri", section.redirect_uri.as_deref())?)
                .filter(|address| !address.is_empty()),
            auth_url: reader.address("auth_url", section.auth_url.as_deref(), known.auth)?,
            token_url: reader.address("token_url", section.token_url.as_deref(), known.token)?,
            refresh_url: reader.address("refresh_url", section.refresh_url.as_deref(), "")?,
            profile_url: reader.address(
                "profile_url",
                section.profile_url.as_deref(),
                known.profile,
            )?,
            device_url: reader.address(
                "device_url",
                section.device_url.as_deref(),
                known.device,
            )?,
            requires_pkce: section.requires_pkce,
            required_scopes: section.required_scopes,
            resource: None,
            issuer: None,
            requires_issuer: false,
            has_secret_in_form: false,
        };
        if !variables.has_missing() {
            auth.check_complete(source)?;
        }
        Ok(auth)
    }

    fn check_complete(&self, source: &DefinitionSource<'_>) -> Result<(), SourceError> {
        if self.auth_type == AuthType::PlatformKey {
            return Ok(());
        }
        let missing = [
            ("client_id", self.client_id.is_empty()),
            ("auth_url", self.auth_url.is_none()),
            ("token_url", self.token_url.is_none()),
        ];
        match missing.iter().find(|(_, is_missing)| *is_missing) {
            None => Ok(()),
            Some((key, _)) => {
                let message =
                    format!("a sign-in of the type {} needs {key}", self.auth_type.as_str());
                Err(source.error(&["plugin", "auth_config", key], message))
            }
        }
    }

    /// Where tokens are refreshed.
    pub fn refresh_address(&self) -> Option<&Url> {
        self.refresh_url.as_ref().or(self.token_url.as_ref())
    }
}

fn read_auth_type(word: &str, source: &DefinitionSource<'_>) -> Result<AuthType, SourceError> {
    AUTH_TYPES.iter().find(|(known, _)| *known == word).map(|(_, kind)| *kind).ok_or_else(|| {
        let error =
            source.error(&["plugin", "auth_config", "auth_type"], "no such kind of sign-in");
        let words: Vec<_> = AUTH_TYPES.iter().map(|(word, _)| *word).collect();
        error.with_hint(format!("write {}", words.join(", ")))
    })
}

/// Reads the fields of the section, with the values of their variables.
struct AuthReader<'r, 's, 'v> {
    source: &'r DefinitionSource<'s>,
    variables: &'r mut VariableReader<'v>,
}

impl AuthReader<'_, '_, '_> {
    fn text(&mut self, key: &str, text: Option<&str>) -> Result<String, SourceError> {
        let keys = ["plugin", "auth_config", key];
        Ok(self.variables.replace(&keys, text.unwrap_or_default())?.trim().to_owned())
    }

    fn address(
        &mut self,
        key: &str,
        text: Option<&str>,
        known: &str,
    ) -> Result<Option<Url>, SourceError> {
        let text = self.text(key, text)?;
        let text = if text.is_empty() { known } else { &*text };
        // With a missing variable, the plugin is disabled and its address is never used.
        if text.is_empty() || text.contains("${") {
            return Ok(None);
        }
        let keys = ["plugin", "auth_config", key];
        let url =
            Url::parse(text).map_err(|_| self.source.error(&keys, "this is not an address"))?;
        match is_safe_for_tokens(&url) {
            true => Ok(Some(url)),
            false => {
                let error = self.source.error(&keys, "tokens may not travel to this address");
                Err(error.with_hint("use https, or http on this machine (127.0.0.1, localhost)"))
            }
        }
    }
}

/// Whether nobody on the way can read a token: https, or this machine. The address has no user name.
pub fn is_safe_for_tokens(url: &Url) -> bool {
    let has_user = !url.username().is_empty() || url.password().is_some();
    !has_user
        && url.host().is_some()
        && (url.scheme() == "https" || (url.scheme() == "http" && is_this_machine(url)))
}
