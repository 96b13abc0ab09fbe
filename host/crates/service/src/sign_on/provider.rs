//! The identity server's description and its keys, as they were last read.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use openidconnect::{
    AdditionalProviderMetadata, DiscoveryError, IssuerUrl, JsonWebKeySet, ProviderMetadata,
    core::{
        CoreAuthDisplay, CoreClaimName, CoreClaimType, CoreClientAuthMethod, CoreGrantType,
        CoreJsonWebKey, CoreJweContentEncryptionAlgorithm, CoreJweKeyManagementAlgorithm,
        CoreResponseMode, CoreResponseType, CoreSubjectIdentifierType,
    },
};
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;

use super::{
    SignOnRefusal, SignOnSettingsError,
    http::{IdentityHttp, IdentityHttpError},
};

/// How long a description is used. Then it is read again, so that keys that were withdrawn end.
const USE_TIME_MAX: Duration = Duration::from_secs(60 * 60);

/// How long a failure counts for everybody who waits, so that they do not all wait in turn.
const FAILURE_TIME: Duration = Duration::from_secs(5);

/// How often keys are read again in [`KEY_READS_TIME`], because a token can name any key.
const KEY_READS_MAX: usize = 5;
const KEY_READS_TIME: Duration = Duration::from_secs(60);

/// The description with the field of RFC 9207.
type Metadata = ProviderMetadata<
    AnswerIssuer,
    CoreAuthDisplay,
    CoreClientAuthMethod,
    CoreClaimName,
    CoreClaimType,
    CoreGrantType,
    CoreJweContentEncryptionAlgorithm,
    CoreJweKeyManagementAlgorithm,
    CoreJsonWebKey,
    CoreResponseMode,
    CoreResponseType,
    CoreSubjectIdentifierType,
>;

/// Whether the server names itself in the answers that browsers bring.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct AnswerIssuer {
    #[serde(default)]
    authorization_response_iss_parameter_supported: bool,
}

impl AdditionalProviderMetadata for AnswerIssuer {}

/// An identity server, as it describes itself.
#[derive(Debug, Clone)]
pub(super) struct Provider {
    pub(super) metadata: Metadata,
    /// Counts the times that it was read, to tell an old one from the current one.
    version: u64,
}

/// Reads the description and the keys, and keeps them.
#[derive(Debug)]
pub(super) struct ProviderCache {
    issuer: IssuerUrl,
    http: IdentityHttp,
    /// Locked while the server is asked, so that it is asked once.
    known: Mutex<KnownProvider>,
}

#[derive(Debug, Default)]
struct KnownProvider {
    current: Option<(Arc<Provider>, Instant)>,
    failure: Option<(SignOnRefusal, Instant)>,
    /// When keys were read again.
    key_reads: Vec<Instant>,
    version: u64,
}

impl Provider {
    /// Refuses an answer of another server than this one. A server that promises to name itself
    /// must do so, because an attacker could leave it out.
    pub(super) fn check_issuer(&self, named: Option<&str>) -> Result<(), SignOnRefusal> {
        let is_promised =
            self.metadata.additional_metadata().authorization_response_iss_parameter_supported;
        match named {
            Some(named) if named == self.metadata.issuer().as_str() => Ok(()),
            None if !is_promised => Ok(()),
            _ => Err(SignOnRefusal::OtherIssuer),
        }
    }
}

impl ProviderCache {
    /// Prepares to ask an issuer. Nothing is asked yet.
    ///
    /// # Errors
    ///
    /// The system's certificates cannot be read.
    pub(super) fn new(issuer: &IssuerUrl) -> Result<Self, SignOnSettingsError> {
        let http = IdentityHttp::new(issuer.url())?;
        Ok(Self { issuer: issuer.clone(), http, known: Mutex::default() })
    }

    pub(super) fn http(&self) -> &IdentityHttp {
        &self.http
    }

    /// The identity server, read if it is not known.
    pub(super) async fn current(&self) -> Result<Arc<Provider>, SignOnRefusal> {
        let mut known = self.known.lock().await;
        if let Some((provider, read)) = &known.current
            && read.elapsed() < USE_TIME_MAX
        {
            return Ok(Arc::clone(provider));
        }
        if let Some((refusal, at)) = &known.failure
            && at.elapsed() < FAILURE_TIME
        {
            return Err(refusal.clone());
        }
        match self.discover().await {
            Ok(metadata) => Ok(known.keep(metadata, Instant::now())),
            Err(refusal) => {
                known.failure = Some((refusal.clone(), Instant::now()));
                Err(refusal)
            }
        }
    }

    /// The identity server with the keys that it has now, unless they were read too often.
    pub(super) async fn with_new_keys(
        &self,
        old: &Provider,
    ) -> Result<Arc<Provider>, SignOnRefusal> {
        let mut known = self.known.lock().await;
        let (provider, read) = match &known.current {
            Some((provider, read)) => (Arc::clone(provider), *read),
            None => return Ok(Arc::new(old.clone())),
        };
        if provider.version != old.version || !known.may_read_keys() {
            return Ok(provider);
        }
        let address = provider.metadata.jwks_uri();
        let keys = JsonWebKeySet::fetch_async(address, &self.http).await.map_err(unavailable)?;
        Ok(known.keep(provider.metadata.clone().set_jwks(keys), read))
    }

    async fn discover(&self) -> Result<Metadata, SignOnRefusal> {
        let metadata = Metadata::discover_async(self.issuer.clone(), &self.http);
        let metadata = metadata.await.map_err(unavailable)?;
        // The browser goes there, so it is checked as well.
        self.http.check_address(metadata.authorization_endpoint().url())?;
        Ok(metadata)
    }
}

impl KnownProvider {
    fn keep(&mut self, metadata: Metadata, read: Instant) -> Arc<Provider> {
        self.version += 1;
        let provider = Arc::new(Provider { metadata, version: self.version });
        self.current = Some((Arc::clone(&provider), read));
        self.failure = None;
        provider
    }

    fn may_read_keys(&mut self) -> bool {
        self.key_reads.retain(|read| read.elapsed() < KEY_READS_TIME);
        let may_read = self.key_reads.len() < KEY_READS_MAX;
        if may_read {
            self.key_reads.push(Instant::now());
        }
        may_read
    }
}

/// Why the description or the keys cannot be used. The server's own texts are left out.
fn unavailable(error: DiscoveryError<IdentityHttpError>) -> SignOnRefusal {
    SignOnRefusal::Unavailable(match error {
        DiscoveryError::Request(error) => error.to_string(),
        DiscoveryError::Response(status, ..) => {
            format!("it answered {} to the question for its description or keys", status.as_u16())
        }
        DiscoveryError::Validation(_) => "it describes another issuer".to_owned(),
        _ => "its description or keys are not understood".to_owned(),
    })
}
