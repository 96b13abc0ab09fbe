//! `secrets`: values that the operator lets this plugin read.
//!
//! A secret that is not granted and a secret that does not exist give the same error, so a plugin
//! cannot find out which secrets exist.

use sallyport_contract::Effect;
use sallyport_policy::{Grant, SecretGrant, SecretUse};

use super::HostCall;
use crate::bindings::v0_1::sallyport::plugin::secrets::{Error, Host};

impl Host for HostCall<'_> {
    async fn get(&mut self, name: String) -> Result<String, Error> {
        let can_reveal =
            |entry: &SecretGrant| entry.name.as_str() == name && entry.usage == SecretUse::Reveal;
        let check = |grant: &Grant| match grant.secrets().iter().any(can_reveal) {
            true => Ok(()),
            false => Err(grant.deny_secret(&name)),
        };
        self.require_permission(check).await.map_err(|_| Error::NotGranted)?;
        let secret = self.run_context.look_up_secret(&name).await.map_err(Error::Unavailable)?;
        self.run_context.effect_log.record_effect(Effect::SecretUsed { name, to: None });
        Ok(secret.expose().to_owned())
    }
}
