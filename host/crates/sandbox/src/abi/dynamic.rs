//! A component of its own interface: each function that it exports is a tool.
//!
//! Its author needs to know nothing of this host. The types of the functions, read from the
//! component once, become the schemas of the tools, and convert the arguments and the results of
//! each call.

use std::{
    collections::{BTreeMap, BTreeSet},
    future::ready,
    sync::Arc,
};

use sallyport_contract::{
    AdmittedCall, CallFailure, FailureKind, ToolHints, ToolName, ToolOutput, text::escape_excerpt,
};
use serde_json::Value;
use wasmtime::{
    Store,
    component::{
        ComponentExportIndex, Instance, InstancePre, Val,
        types::{ComponentExtern, ComponentFunc, ComponentItem},
    },
};

use super::{
    PluginAbi, PluginExport, TOOLS_MAX, ToolList, ToolReturnValue, UncheckedTool, WASI_PREFIX,
    shorten_description, truncate_text,
};
use crate::{
    dynamic::{
        docs::{NamedTypes, PackageDocs},
        from_val::{JsonWriter, WriteError},
        names::tool_name,
        schema::{object_schema, type_schema},
        signature::format_signature,
        to_val::arguments_to_vals,
        type_budget::TypeBudget,
        value_type::{NamedType, ResultType, TypeReader, UnsupportedType, ValueType},
    },
    guest::Guest,
    run_body::{RunBody, box_run_body, limit_host_call},
};

/// Most exports of a component and of its interfaces, in all. Real components have hundreds.
const EXPORTS_MAX: usize = 10_000;

/// Interfaces that a compiler exports for itself. componentize-py leaves the function in place that
/// starts the interpreter while the component is built.
const COMPILER_INTERFACES: [&str; 1] = ["exports"];

/// Longest name of a function in a sentence, in characters. A name may have 100 KB.
const NAME_CHARS_MAX: usize = 80;

/// Longest reason that does not come from the host alone, in characters.
const REASON_CHARS_MAX: usize = 400;

/// A function that is not a tool, with the reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the function {name} is not a tool: {reason}")]
pub(crate) struct RefusedFunction {
    /// The name of its tool, if it were one, cut to the length that is shown.
    name: String,
    reason: RefusalReason,
}

/// Why none of the functions of a component is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TooManyExports {
    #[error("it exports more than {TOOLS_MAX} functions, at most {TOOLS_MAX} are taken")]
    Functions,
    #[error(
        "it exports more than {EXPORTS_MAX} functions, types and interfaces, at most {EXPORTS_MAX} are taken"
    )]
    Exports,
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

/// The exports of one scope: an interface, or the component itself.
struct ExportScope<'c> {
    pre: &'c InstancePre<Guest>,
    interface: Option<(&'c str, ComponentExportIndex)>,
    exports: &'c [(&'c str, ComponentItem)],
    package_docs: &'c PackageDocs,
}

/// Reads the functions of a component, and counts what it has read.
struct FunctionReader {
    abi: DynamicAbi,
    /// The names that two functions have.
    taken: BTreeSet<String>,
    exports_left: usize,
    budget: TypeBudget,
}

impl RefusedFunction {
    pub(crate) fn new(tool: &str, reason: RefusalReason) -> Self {
        Self { name: escape_excerpt(tool, NAME_CHARS_MAX), reason }
    }
}

impl RefusalReason {
    /// A reason with texts of the component in it.
    pub(crate) fn invalid_tool(reason: &str) -> Self {
        Self::InvalidTool(escape_excerpt(reason, REASON_CHARS_MAX))
    }
}

impl DynamicAbi {
    /// Reads the functions of a component.
    ///
    /// # Errors
    ///
    /// It has more than a plugin may have.
    pub(super) fn new(
        pre: &InstancePre<Guest>,
        package_docs: &PackageDocs,
    ) -> Result<Self, TooManyExports> {
        let component = pre.component();
        let (ty, engine) = (component.component_type(), component.engine());
        let mut reader = FunctionReader::new();
        let exports = reader.take_exports(ty.exports(engine))?;
        let all = ExportScope { pre, interface: None, exports: &exports, package_docs };
        reader.add_functions(&all)?;
        for (name, item) in exports.iter().filter(|(name, _)| is_own(name)) {
            let ComponentItem::ComponentInstance(interface) = item else { continue };
            let Some(index) = component.get_export_index(None, name) else { continue };
            let exports = reader.take_exports(interface.exports(engine))?;
            let interface = Some((*name, index));
            reader.add_functions(&ExportScope { interface, exports: &exports, ..all })?;
        }
        Ok(reader.abi)
    }

    /// Whether the component exports no function at all.
    pub(super) fn is_empty(&self) -> bool {
        self.functions.is_empty() && self.refused.is_empty()
    }
}

impl FunctionReader {
    fn new() -> Self {
        Self {
            abi: DynamicAbi { functions: BTreeMap::new(), refused: Vec::new() },
            taken: BTreeSet::new(),
            exports_left: EXPORTS_MAX,
            budget: TypeBudget::OF_COMPONENT,
        }
    }

    fn take_exports<'n>(
        &mut self,
        exports: impl ExactSizeIterator<Item = (&'n str, ComponentExtern<'n>)>,
    ) -> Result<Vec<(&'n str, ComponentItem)>, TooManyExports> {
        let left = self.exports_left.checked_sub(exports.len());
        self.exports_left = left.ok_or(TooManyExports::Exports)?;
        Ok(exports.map(|(name, item)| (name, item.ty)).collect())
    }

    fn add_functions(&mut self, scope: &ExportScope<'_>) -> Result<(), TooManyExports> {
        let mut named_types = None;
        for (name, item) in scope.exports {
            let ComponentItem::ComponentFunc(function) = item else { continue };
            let named_types =
                named_types.get_or_insert_with(|| Arc::new(scope.read_types(&mut self.budget)));
            let tool = tool_name(scope.interface.map(|(interface, _)| interface), name);
            // A name that no tool can have is not kept: it may be long.
            let read = tool.parse::<ToolName>();
            let read = read
                .map_err(|error| RefusalReason::invalid_tool(&error.to_string()))
                .and_then(|_| scope.read_function(name, function, named_types, &mut self.budget));
            match read {
                Ok(function) => self.add_function(tool, function),
                Err(reason) => self.abi.refused.push(RefusedFunction::new(&tool, reason)),
            }
            if self.abi.functions.len() > TOOLS_MAX {
                return Err(TooManyExports::Functions);
            }
        }
        Ok(())
    }

    /// Adds a function. Two that would be one tool are both refused: nothing says which one a call
    /// means.
    fn add_function(&mut self, tool: String, function: ExportedFunction) {
        let is_taken = self.taken.contains(&tool) || self.abi.functions.remove(&tool).is_some();
        if is_taken {
            self.abi.refused.push(RefusedFunction::new(&tool, RefusalReason::NameTaken));
            self.taken.insert(tool);
        } else {
            self.abi.functions.insert(tool, Arc::new(function));
        }
    }
}

/// Whether an export is the author's own.
pub(super) fn is_own(interface: &str) -> bool {
    !interface.starts_with(WASI_PREFIX) && !COMPILER_INTERFACES.contains(&interface)
}

impl ExportScope<'_> {
    fn read_types(&self, budget: &mut TypeBudget) -> NamedTypes {
        let types = self.exports.iter().filter_map(|(name, item)| match item {
            ComponentItem::Type(ty) => Some((*name, ty)),
            _ => None,
        });
        let name = self.interface.map(|(name, _)| name);
        NamedTypes::new(name, types, self.package_docs, budget)
    }

    fn read_function(
        &self,
        name: &str,
        function: &ComponentFunc,
        named_types: &Arc<NamedTypes>,
        budget: &mut TypeBudget,
    ) -> Result<ExportedFunction, RefusalReason> {
        if function.async_() {
            return Err(RefusalReason::Async);
        }
        let mut reader = TypeReader::new(budget);
        let parameters = function.params().map(|(name, ty)| reader.read_member(name, &ty));
        let parameters = parameters.collect::<Result<Vec<_>, _>>()?;
        let result = function.results().next().map(|ty| reader.read_type(&ty)).transpose()?;
        let (interface, instance) = self.interface.unzip();
        let index = self.pre.component().get_export_index(instance.as_ref(), name);
        let index = index.ok_or_else(|| RefusalReason::InvalidTool("it has no index".into()))?;
        let description = match self.package_docs.function(interface, name) {
            Some(text) => shorten_description(text.to_owned()),
            None => format_signature(name, &parameters, result.as_ref(), named_types),
        };
        let named_types = Arc::clone(named_types);
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

    /// The bytes that one byte of the guest can take in the host while the result is handed over.
    /// Without generated types, each element of a list is a value of its own, even a byte.
    fn host_bytes_per_guest_byte(&self) -> usize {
        let has_list = self.result.as_ref().is_some_and(ValueType::has_list);
        if has_list { size_of::<Val>() } else { 1 }
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
        limit_host_call(store, self.host_bytes_per_guest_byte());
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

    fn list_tools(&self) -> ToolList<'_> {
        let tools = self.functions.iter().map(|(name, function)| function.describe_tool(name));
        ToolList::Derived { tools: Box::new(tools), refused: self.refused.clone() }
    }

    fn call_tool(&self, call: Arc<AdmittedCall>) -> RunBody<ToolReturnValue> {
        let name = call.tool().tool.as_str();
        let Some(function) = self.functions.get(name).map(Arc::clone) else {
            let missing = failure(FailureKind::NotFound, format!("there is no function {name}"));
            return box_run_body(move |_, _| Box::pin(ready(Ok(missing))));
        };
        box_run_body(move |store, instance| {
            Box::pin(async move { function.call(store, instance, call.arguments()).await })
        })
    }
}
