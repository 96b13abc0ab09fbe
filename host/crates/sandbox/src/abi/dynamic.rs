//! A component of its own interface: each function that it exports is a tool.
//!
//! Its author needs to know nothing of this host. The types of the functions, read from the
//! component once, become the schemas of the tools, and convert the arguments and the results of
//! each call.

use std::{collections::BTreeMap, future::ready, sync::Arc};

use sallyport_contract::{
    AdmittedCall, CallFailure, FailureKind, ToolHints, ToolOutput, text::escape_excerpt,
};
use serde_json::Value;
use wasmtime::{
    Store,
    component::{
        ComponentExportIndex, Instance, InstancePre, Val,
        types::{ComponentFunc, ComponentItem},
    },
};

use super::{
    PluginAbi, PluginExport, ToolList, ToolReturnValue, UncheckedTool, WASI_PREFIX, truncate_text,
};
use crate::{
    dynamic::{
        docs::{NamedTypes, PackageDocs},
        from_val::{JsonWriter, WriteError},
        names::tool_name,
        schema::{object_schema, type_schema},
        signature::format_signature,
        to_val::arguments_to_vals,
        value_type::{NamedType, ResultType, TypeReader, UnsupportedType, ValueType},
    },
    guest::Guest,
    run::{self, RunBody},
};

/// Most exports of a component that are looked at. A plugin has at most 256 tools.
const EXPORTS_MAX: usize = 1000;

/// Interfaces that a compiler exports for itself. componentize-py leaves the function in place that
/// starts the interpreter while the component is built.
const COMPILER_INTERFACES: [&str; 1] = ["exports"];

/// Longest name of a function in a sentence, in characters. A name may have 100 KB.
const NAME_CHARS_MAX: usize = 80;

/// A function that is not a tool, with the reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the function {} is not a tool: {reason}", escape_excerpt(name, NAME_CHARS_MAX))]
pub(crate) struct RefusedFunction {
    /// The name of its tool, if it were one.
    pub(crate) name: String,
    pub(crate) reason: RefusalReason,
}

/// Why a function is not a tool.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RefusalReason {
    #[error("{0}")]
    Type(#[from] UnsupportedType),
    #[error("it is asynchronous, which this version cannot run")]
    Async,
    #[error("its name is that of another function of this component")]
    NameTaken,
    #[error("{0}")]
    InvalidTool(String),
}

/// The functions of a component that can be called.
pub(crate) struct DynamicAbi {
    functions: BTreeMap<String, Arc<ExportedFunction>>,
    refused: Vec<RefusedFunction>,
}

/// A function with the types of its values.
#[derive(Debug)]
struct ExportedFunction {
    index: ComponentExportIndex,
    parameters: Vec<NamedType>,
    result: Option<ValueType>,
    description: String,
    named_types: Arc<NamedTypes>,
}

/// The exports that are named within one scope: an interface, or the component itself.
struct ExportScope<'c> {
    pre: &'c InstancePre<Guest>,
    interface: Option<(&'c str, ComponentExportIndex)>,
    named_types: Arc<NamedTypes>,
    package_docs: &'c PackageDocs,
}

impl DynamicAbi {
    /// Reads the functions of a component.
    pub(super) fn new(pre: &InstancePre<Guest>, package_docs: &PackageDocs) -> Self {
        let mut abi = Self { functions: BTreeMap::new(), refused: Vec::new() };
        let component = pre.component();
        let (ty, engine) = (component.component_type(), component.engine());
        let exports = || ty.exports(engine).take(EXPORTS_MAX).map(|(name, item)| (name, item.ty));
        abi.add_functions(&ExportScope::new(pre, None, exports(), package_docs), exports());
        for (name, item) in exports().filter(|(name, _)| is_own(name)) {
            let ComponentItem::ComponentInstance(interface) = item else { continue };
            let Some(index) = component.get_export_index(None, name) else { continue };
            let exports =
                || interface.exports(engine).take(EXPORTS_MAX).map(|(name, item)| (name, item.ty));
            let scope = ExportScope::new(pre, Some((name, index)), exports(), package_docs);
            abi.add_functions(&scope, exports());
        }
        abi
    }

    /// Whether the component exports no function at all.
    pub(super) fn is_empty(&self) -> bool {
        self.functions.is_empty() && self.refused.is_empty()
    }

    fn add_functions<'n>(
        &mut self,
        scope: &ExportScope<'_>,
        exports: impl Iterator<Item = (&'n str, ComponentItem)>,
    ) {
        for (name, item) in exports {
            let ComponentItem::ComponentFunc(function) = item else { continue };
            let tool = tool_name(scope.interface.map(|(interface, _)| interface), name);
            match scope.read_function(name, &function) {
                Ok(function) => self.add_function(tool, function),
                Err(reason) => self.refused.push(RefusedFunction { name: tool, reason }),
            }
        }
    }

    /// Adds a function. Two that would be one tool are both refused: nothing says which one a call
    /// means.
    fn add_function(&mut self, tool: String, function: ExportedFunction) {
        let is_refused = self
            .refused
            .iter()
            .any(|refused| refused.name == tool && refused.reason == RefusalReason::NameTaken);
        if is_refused || self.functions.remove(&tool).is_some() {
            self.refused.push(RefusedFunction { name: tool, reason: RefusalReason::NameTaken });
        } else {
            self.functions.insert(tool, Arc::new(function));
        }
    }
}

/// Whether an interface is the author's own.
fn is_own(interface: &str) -> bool {
    !interface.starts_with(WASI_PREFIX) && !COMPILER_INTERFACES.contains(&interface)
}

impl<'c> ExportScope<'c> {
    fn new<'n>(
        pre: &'c InstancePre<Guest>,
        interface: Option<(&'c str, ComponentExportIndex)>,
        exports: impl Iterator<Item = (&'n str, ComponentItem)>,
        package_docs: &'c PackageDocs,
    ) -> Self {
        let types = exports.filter_map(|(name, item)| match item {
            ComponentItem::Type(ty) => Some((name.to_owned(), ty)),
            _ => None,
        });
        let name = interface.map(|(name, _)| name);
        let named_types = Arc::new(NamedTypes::new(name, types, package_docs));
        Self { pre, interface, named_types, package_docs }
    }

    fn read_function(
        &self,
        name: &str,
        function: &ComponentFunc,
    ) -> Result<ExportedFunction, RefusalReason> {
        if function.async_() {
            return Err(RefusalReason::Async);
        }
        let mut reader = TypeReader::default();
        let parameters = function.params().map(|(name, ty)| reader.read_member(name, &ty));
        let parameters = parameters.collect::<Result<Vec<_>, _>>()?;
        let result = function.results().next().map(|ty| reader.read_type(&ty)).transpose()?;
        let (interface, instance) = self.interface.unzip();
        let index = self.pre.component().get_export_index(instance.as_ref(), name);
        let index = index.ok_or_else(|| RefusalReason::InvalidTool("it has no index".into()))?;
        let description = self.package_docs.function(interface, name).unwrap_or_else(|| {
            format_signature(name, &parameters, result.as_ref(), &self.named_types)
        });
        let named_types = Arc::clone(&self.named_types);
        Ok(ExportedFunction { index, parameters, result, description, named_types })
    }
}

impl ExportedFunction {
    fn describe_tool(&self, name: &str) -> UncheckedTool {
        let output = self.output_type().map(|ty| type_schema(ty, &self.named_types).to_string());
        UncheckedTool {
            name: name.to_owned(),
            title: None,
            description: self.description.clone(),
            parameters: object_schema(&self.parameters, &self.named_types).to_string(),
            output,
            hints: ToolHints::default(),
        }
    }

    /// The type of the tool's result. The error of a function is not part of it.
    fn output_type(&self) -> Option<&ValueType> {
        match &self.result {
            Some(ValueType::Result(result)) => result.ok.as_deref(),
            result => result.as_ref(),
        }
    }

    async fn call(
        &self,
        store: &mut Store<Guest>,
        instance: Instance,
        arguments: &Value,
    ) -> wasmtime::Result<ToolReturnValue> {
        let arguments = match arguments_to_vals(&self.parameters, arguments) {
            Ok(arguments) => arguments,
            Err(error) => return Ok(failure(FailureKind::InvalidArguments, error.to_string())),
        };
        let function = instance.get_func(&mut *store, self.index);
        let function = function.ok_or_else(|| wasmtime::Error::msg("the function is not there"))?;
        let mut results = vec![Val::Bool(false); usize::from(self.result.is_some())];
        function.call_async(&mut *store, &arguments, &mut results).await?;
        let bytes_max = store.data().output_bytes_max();
        let converted = self.convert_result(results.first(), bytes_max);
        Ok(converted.unwrap_or_else(|error| match error {
            WriteError::TooLarge => {
                let message = format!(
                    "the tool returned more than its limit of {bytes_max} bytes (limits.output)"
                );
                failure(FailureKind::LimitReached, message)
            }
            WriteError::OtherType => {
                failure(FailureKind::Internal, format!("the result cannot be read: {error}"))
            }
        }))
    }

    fn convert_result(
        &self,
        val: Option<&Val>,
        bytes_max: u64,
    ) -> Result<ToolReturnValue, WriteError> {
        let mut writer = JsonWriter::new(usize::try_from(bytes_max).unwrap_or(usize::MAX));
        let data = match (&self.result, val) {
            (Some(ValueType::Result(result)), Some(Val::Result(Err(error)))) => {
                return error_return(result, error.as_deref(), writer, bytes_max);
            }
            (Some(ValueType::Result(result)), Some(Val::Result(Ok(val)))) => {
                writer.payload_to_json(result.ok.as_deref(), val.as_deref())?
            }
            (ty, val) => writer.payload_to_json(ty.as_ref(), val)?,
        };
        Ok(ToolReturnValue::Output(ToolOutput { data, ..ToolOutput::default() }))
    }
}

/// The failure of a function that returned its error. The model reads the error: as it is if it is
/// a text, otherwise as JSON.
fn error_return(
    result: &ResultType,
    error: Option<&Val>,
    mut writer: JsonWriter,
    bytes_max: u64,
) -> Result<ToolReturnValue, WriteError> {
    let text = match error {
        Some(Val::String(text)) => text.clone(),
        Some(_) => writer.payload_to_json(result.err.as_deref(), error)?.to_string(),
        None => "the function returned an error without a reason".to_owned(),
    };
    Ok(failure(FailureKind::Failed, truncate_text(text, bytes_max)))
}

fn failure(kind: FailureKind, message: impl Into<String>) -> ToolReturnValue {
    ToolReturnValue::Error(CallFailure::new(kind, message))
}

impl PluginAbi for DynamicAbi {
    fn has_export(&self, export: PluginExport) -> bool {
        export == PluginExport::Tools
    }

    /// Without generated types, each element of a list is a value of its own, even a byte.
    fn host_bytes_per_guest_byte(&self) -> usize {
        size_of::<Val>()
    }

    fn list_tools(&self) -> ToolList {
        let tools = self.functions.iter().map(|(name, function)| function.describe_tool(name));
        ToolList::Derived { tools: tools.collect(), refused: self.refused.clone() }
    }

    fn call_tool(&self, call: Arc<AdmittedCall>) -> RunBody<ToolReturnValue> {
        let name = call.tool().tool.as_str();
        let Some(function) = self.functions.get(name).map(Arc::clone) else {
            let missing = failure(FailureKind::NotFound, format!("there is no function {name}"));
            return run::box_run_body(move |_, _| Box::pin(ready(Ok(missing))));
        };
        run::box_run_body(move |store, instance| {
            Box::pin(async move { function.call(store, instance, call.arguments()).await })
        })
    }
}
