//! A WASI command as a plugin with one tool; each call runs the program anew.

use std::{iter::once, sync::Arc};

use sallyport_contract::{AdmittedCall, ToolDescriptor};
use sallyport_policy::PluginLimits;
use wasmtime::{Trap, component::InstancePre};
use wasmtime_wasi::{I32Exit, p2::bindings::exports::wasi::cli::run::GuestIndices};

use super::{
    InterfaceMismatch, PluginAbi, PluginExport, ToolList, ToolReturnValue, UncheckedTool,
    export_names,
};
use crate::{
    guest::Guest,
    role_links::{ProgramStreams, RoleLinks},
    run_body::{RunBody, box_run_body},
};

/// The export that every program has, in the version that error messages name.
pub(crate) const RUN_INTERFACE: &str = "wasi:cli/run@0.2.0";

/// The name of the interface up to its patch version.
const RUN_PREFIX: &str = "wasi:cli/run@0.2.";

/// Whether an export makes a component a program.
pub(crate) fn is_program(export: &str) -> bool {
    export.starts_with(RUN_PREFIX)
}

/// A program and the only tool that it provides.
pub(crate) struct WasiCommand {
    run: GuestIndices,
    tool: ToolDescriptor,
}

impl WasiCommand {
    /// Looks up the program's `run` export, if the component is a program.
    ///
    /// # Errors
    ///
    /// The component exports the interface with other types.
    pub(crate) fn new(
        pre: &InstancePre<Guest>,
        tool: ToolDescriptor,
    ) -> wasmtime::Result<Option<Self>> {
        if !export_names(pre).iter().any(|name| is_program(name)) {
            return Ok(None);
        }
        Ok(Some(Self { run: GuestIndices::new(pre)?, tool }))
    }
}

/// Whether a program succeeded.
///
/// A program that calls `exit` has not trapped. A program that aborts after it explained why, or
/// after it printed too much, has failed for that reason. A program that runs out of time or memory
/// is an error of the run instead: those limits have messages of their own.
fn has_succeeded(
    ended: wasmtime::Result<Result<(), ()>>,
    is_explained: bool,
) -> wasmtime::Result<bool> {
    let error = match ended {
        Ok(result) => return Ok(result.is_ok()),
        Err(error) => error,
    };
    if let Some(I32Exit(code)) = error.downcast_ref() {
        return Ok(*code == 0);
    }
    let is_out_of_time = error.downcast_ref() == Some(&Trap::Interrupt);
    if is_explained && !is_out_of_time { Ok(false) } else { Err(error) }
}

impl PluginAbi for WasiCommand {
    fn has_export(&self, export: PluginExport) -> bool {
        export == PluginExport::Tools
    }

    fn role_links(&self, call: &AdmittedCall, limits: &PluginLimits) -> RoleLinks {
        let program = Some(ProgramStreams::new(call.arguments_text(), limits.output_bytes));
        RoleLinks { program, ..RoleLinks::default() }
    }

    fn list_tools(&self) -> ToolList<'_> {
        let tool = UncheckedTool {
            name: self.tool.id.tool.to_string(),
            title: self.tool.title.clone(),
            description: self.tool.description.clone(),
            parameters: self.tool.parameters.to_string(),
            output: self.tool.output.as_ref().map(ToString::to_string),
            hints: self.tool.hints,
        };
        ToolList::Derived { tools: Box::new(once(tool)), refused: Vec::new() }
    }

    fn call_tool(&self, _call: Arc<AdmittedCall>) -> RunBody<ToolReturnValue> {
        let program_run = self.run.clone();
        box_run_body(move |store, instance| {
            Box::pin(async move {
                let program = store.data().run_context.role_links.program.clone();
                let program =
                    program.ok_or_else(|| wasmtime::Error::msg("the program has no streams"))?;
                let guest = program_run.load(&mut *store, &instance);
                let guest = guest.map_err(InterfaceMismatch::wrap_error)?;
                let ended = guest.call_run(&mut *store).await;
                let is_explained = program.has_explanation() && !store.data().memory.was_refused();
                Ok(match program.tool_output(has_succeeded(ended, is_explained)?) {
                    Ok(output) => ToolReturnValue::Output(output),
                    Err(failure) => ToolReturnValue::Error(failure),
                })
            })
        })
    }
}
