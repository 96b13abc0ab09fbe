//! Refuses components that can never be what they are loaded as, by the names of their imports and
//! exports, before anything is compiled. The imports that need a request are those of `power_imports`.

use sallyport_policy::{Manifest, PluginRole};

use crate::{
    ComponentFile, LoadError,
    abi::{self, PluginExport},
    interface::ComponentInterface,
    power_imports,
};

impl ComponentInterface {
    /// Refuses a component that can never be a plugin with this manifest: it exports nothing that
    /// the host calls, or imports a power interface that the manifest does not request.
    ///
    /// # Errors
    ///
    /// [`LoadError::NewerWasi`], [`LoadError::MissingExport`] or
    /// [`LoadError::UnrequestedCapability`].
    pub(crate) fn check_manifest(
        &self,
        file: &ComponentFile,
        manifest: &Manifest,
    ) -> Result<(), LoadError> {
        self.check_wasi_version(file)?;
        if !abi::may_be_plugin(&self.exports) {
            let role = manifest.roles.first().copied().unwrap_or(PluginRole::Tools);
            let export = PluginExport::from_role(role);
            return Err(LoadError::missing_export(
                file,
                &self.exports,
                export.display_name(),
                export.newest_interface_name(),
            ));
        }
        power_imports::check_imports(self, file, manifest)
    }

    /// Refuses a component that is not a program.
    ///
    /// # Errors
    ///
    /// [`LoadError::NewerWasi`] or [`LoadError::MissingExport`].
    pub(crate) fn check_program(&self, file: &ComponentFile) -> Result<(), LoadError> {
        self.check_wasi_version(file)?;
        if self.exports.iter().any(|name| abi::command::is_program(name)) {
            return Ok(());
        }
        Err(LoadError::missing_export(file, &self.exports, "program", abi::command::RUN_INTERFACE))
    }

    /// Refuses a component that is built for WASI 0.3, because its calling convention is turned off
    /// in this engine.
    fn check_wasi_version(&self, file: &ComponentFile) -> Result<(), LoadError> {
        let is_newer = |name: &String| name.starts_with("wasi:") && name.contains("@0.3.");
        if self.imports.iter().chain(&self.exports).any(is_newer) {
            return Err(LoadError::NewerWasi { path: file.path().to_owned() });
        }
        Ok(())
    }
}
