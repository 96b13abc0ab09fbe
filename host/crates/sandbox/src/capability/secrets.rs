//! `secrets`: values that the operator lets this plugin read.
//!
//! A secret that is not granted and a secret that does not exist give the same error, so a plugin
//! cannot find out which secrets exist.

use sallyport_contract::Effect;
use sallyport_policy::{SecretGrant, SecretUse};

use crate::{
    bindings::v0_1::sallyport::plugin::secrets::{Error, Host},
    guest::Guest,
};

impl Host for Guest {
    async fn get(&mut self, name: String) -> wasmtime::Result<Result<String, Error>> {
        let grant = self.run_context.current_grant();
        let can_reveal =
            |entry: &SecretGrant| entry.name.as_str() == name && entry.usage == SecretUse::Reveal;
        if !grant.secrets().iter().any(can_reveal) {
            self.run_context.effect_log.record_refusal(grant.deny_secret(&name));
            return Ok(Err(Error::NotGranted));
        }
        let found = self.run_context.look_up_secret(&name).await.map_err(Error::Unavailable);
        if found.is_ok() {
            self.run_context.effect_log.record_effect(Effect::SecretUsed { name, to: None });
        }
        Ok(found.map(|secret| secret.expose().to_owned()))
    }
}
