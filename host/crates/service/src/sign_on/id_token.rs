//! The check of an ID token: for this service, from this server, for this log-in, at this time.
//!
//! The library checks the signature, the issuer, the audience, the end and the nonce. Added are what
//! it leaves to its users: the authorized party, the time of issue, the hash of the access token,
//! and a clock that may differ.

use chrono::{DateTime, TimeDelta, Utc};
use data_encoding::BASE64URL_NOPAD;
use openidconnect::{
    AccessToken, AccessTokenHash, ClaimsVerificationError, ClientId, Nonce,
    SignatureVerificationError,
    core::{
        CoreIdToken, CoreIdTokenClaims, CoreIdTokenVerifier, CoreJwsSigningAlgorithm as Algorithm,
    },
};
use sallyport_contract::json::parse_json;
use serde_json::Value;

use super::{Claims, provider::Provider};

/// How much the clocks of the service and of the identity server may differ.
const CLOCK_SKEW: TimeDelta = TimeDelta::seconds(60);

/// Longest list of claims, in bytes. The answer that has it is not longer.
const CLAIMS_BYTES_MAX: usize = 1 << 20;

/// Signatures with a key pair. One with a shared key is refused: an attacker could sign with the
/// public key as if it were shared.
const ALGORITHMS: [Algorithm; 9] = [
    Algorithm::RsaSsaPkcs1V15Sha256,
    Algorithm::RsaSsaPkcs1V15Sha384,
    Algorithm::RsaSsaPkcs1V15Sha512,
    Algorithm::RsaSsaPssSha256,
    Algorithm::RsaSsaPssSha384,
    Algorithm::RsaSsaPssSha512,
    Algorithm::EcdsaP256Sha256,
    Algorithm::EcdsaP384Sha384,
    Algorithm::EdDsa,
];

/// Why a token is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenProblem {
    /// The key that signed it is not among those that are known.
    UnknownKey,
    /// It is refused, in words.
    Refused(&'static str),
}

/// Checks a token, and returns its claims. `begun_ms` is when the log-in began.
pub(super) fn check(
    provider: &Provider,
    client_id: &str,
    token: &CoreIdToken,
    access: &AccessToken,
    nonce: &Nonce,
    begun_ms: u64,
) -> Result<Claims, TokenProblem> {
    let id = ClientId::new(client_id.to_owned());
    let metadata = &provider.metadata;
    let keys = metadata.jwks().clone();
    // A verifier with the client's password would take signatures with it.
    let verifier =
        CoreIdTokenVerifier::new_public_client(id.clone(), metadata.issuer().clone(), keys)
            .set_allowed_algs(ALGORITHMS)
            .set_time_fn(|| Utc::now() - CLOCK_SKEW)
            .set_issue_time_verifier_fn(|issued| check_issue_time(issued, begun_ms));
    let claims = token.claims(&verifier, nonce).map_err(|error| problem_of(&error))?;
    if claims.authorized_party().is_some_and(|party| *party != id) {
        return Err(TokenProblem::Refused("it is for another service"));
    }
    check_access_token(&verifier, token, claims, access)?;
    read_claims(token)
}

fn check_issue_time(issued: DateTime<Utc>, begun_ms: u64) -> Result<(), String> {
    let begun = i64::try_from(begun_ms).ok().and_then(DateTime::from_timestamp_millis);
    let is_early = begun.is_none_or(|begun| issued + CLOCK_SKEW < begun);
    let is_late = issued > Utc::now() + CLOCK_SKEW;
    if is_early || is_late { Err("issued at another time".to_owned()) } else { Ok(()) }
}

/// A token that names the access token belongs to it alone.
fn check_access_token(
    verifier: &CoreIdTokenVerifier<'_>,
    token: &CoreIdToken,
    claims: &CoreIdTokenClaims,
    access: &AccessToken,
) -> Result<(), TokenProblem> {
    let Some(expected) = claims.access_token_hash() else { return Ok(()) };
    let other = TokenProblem::Refused("it belongs to another access token");
    let (algorithm, key) = match (token.signing_alg(), token.signing_key(verifier)) {
        (Ok(algorithm), Ok(key)) => (algorithm, key),
        _ => return Err(other),
    };
    match AccessTokenHash::from_token(access, algorithm, key) {
        Ok(found) if found == *expected => Ok(()),
        _ => Err(other),
    }
}

/// The claims as they are signed. The library's own list leaves out those that it does not know.
fn read_claims(token: &CoreIdToken) -> Result<Claims, TokenProblem> {
    let text = token.to_string();
    let bytes =
        text.split('.').nth(1).and_then(|part| BASE64URL_NOPAD.decode(part.as_bytes()).ok());
    let json = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
    match json.map(|json| parse_json(&json, CLAIMS_BYTES_MAX)) {
        Some(Ok(Value::Object(claims))) => Ok(claims),
        _ => Err(TokenProblem::Refused("its claims are not understood")),
    }
}

fn problem_of(error: &ClaimsVerificationError) -> TokenProblem {
    TokenProblem::Refused(match error {
        ClaimsVerificationError::SignatureVerification(
            SignatureVerificationError::NoMatchingKey,
        ) => return TokenProblem::UnknownKey,
        ClaimsVerificationError::SignatureVerification(
            SignatureVerificationError::DisallowedAlg(_)
            | SignatureVerificationError::UnsupportedAlg(_)
            | SignatureVerificationError::NoSignature,
        ) => "its kind of signature is not accepted",
        ClaimsVerificationError::SignatureVerification(
            SignatureVerificationError::AmbiguousKeyId(_),
        ) => "it does not say which key signed it",
        ClaimsVerificationError::SignatureVerification(_) => "its signature is wrong",
        ClaimsVerificationError::InvalidIssuer(_) => "it is from another issuer",
        ClaimsVerificationError::InvalidAudience(_) => "it is for another service",
        ClaimsVerificationError::Expired(_) => "it is not of this time",
        ClaimsVerificationError::InvalidNonce(_) => "it is of another log-in",
        _ => "it is not understood",
    })
}
