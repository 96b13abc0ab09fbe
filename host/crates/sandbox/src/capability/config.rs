//! `config`: the plugin's own settings. Always granted: a plugin cannot name another's settings.

use serde_json::Value;

use super::HostCall;
use crate::bindings::v0_1::sallyport::plugin::{config, types};

impl config::Host for HostCall<'_> {
    fn get(&mut self, key: String) -> wasmtime::Result<Option<String>> {
        Ok(self.shared_state.settings.get(&key).map(Value::to_string))
    }

    fn get_all(&mut self) -> wasmtime::Result<String> {
        Ok(Value::Object(self.shared_state.settings.clone()).to_string())
    }
}

impl types::Host for HostCall<'_> {}
