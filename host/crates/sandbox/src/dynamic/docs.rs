//! What the author of a component wrote about its functions and types.
//!
//! WIT documentation is in a custom section, `package-docs`: a version byte and JSON. Its text is
//! untrusted and optional, so a section that cannot be read is as good as none. It is read here and
//! not with the crate that writes it, because that one needs the whole component as WIT and would
//! be a second decoder of untrusted bytes inside the host.

use std::collections::{BTreeMap, HashMap};

use sallyport_contract::json;
use serde_json::Value;

use super::{
    names::short_name,
    type_budget::TypeBudget,
    value_type::{TypeReader, ValueType},
};
use crate::interface::find_custom_section;

/// The name of the section.
const SECTION_NAME: &str = "package-docs";

/// Largest section that is read, in bytes. The documentation of all of WASI has 200 KiB.
const SECTION_BYTES_MAX: usize = 1024 * 1024;

/// Longest text about one type or field, in bytes. It is repeated wherever the type is used.
const TYPE_DOCS_BYTES_MAX: usize = 500;

/// Most worlds that are searched. A package of a real component has one or two.
const WORLDS_MAX: usize = 50;

/// The documentation of a package, as its section has it.
#[derive(Debug, Default)]
pub(crate) struct PackageDocs(Value);

/// The documentation of a type.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TypeDocs {
    /// Its name in WIT.
    pub(crate) name: String,
    pub(crate) text: Option<String>,
    /// Fields and cases with their texts.
    items: BTreeMap<String, String>,
}

impl TypeDocs {
    /// The text about a field or a case.
    pub(crate) fn item(&self, name: &str) -> Option<&str> {
        self.items.get(name).map(String::as_str)
    }
}

/// The types of an interface that have a name. Two names of one type are both left out, because
/// nothing says which one a function uses.
#[derive(Debug, Clone, Default)]
pub(crate) struct NamedTypes(HashMap<ValueType, Option<TypeDocs>>);

impl NamedTypes {
    /// The types that an interface exports, with their documentation, as far as the budget of the
    /// component allows.
    pub(crate) fn new<'n>(
        interface: Option<&str>,
        types: impl Iterator<Item = (&'n str, &'n wasmtime::component::Type)>,
        package: &PackageDocs,
        budget: &mut TypeBudget,
    ) -> Self {
        let mut named = Self::default();
        for (name, ty) in types {
            // A type that cannot be converted is in no function that can be called.
            let Ok(ty) = TypeReader::new(budget).read_type(ty) else { continue };
            if budget.take_text(name.len()) {
                let docs = package.type_docs(interface, name, &ty, budget);
                named.0.entry(ty).and_modify(|known| *known = None).or_insert(Some(docs));
            }
        }
        named
    }

    /// What is known of a type that has a name.
    pub(crate) fn docs(&self, ty: &ValueType) -> Option<&TypeDocs> {
        self.0.get(ty)?.as_ref()
    }
}

impl PackageDocs {
    /// Reads the section of a component, if it has one.
    pub(crate) fn from_component(bytes: &[u8]) -> Self {
        Self::from_section(find_custom_section(bytes, SECTION_NAME).unwrap_or_default())
    }

    /// Reads the section. One that is too large, malformed or of another version is empty.
    pub(super) fn from_section(section: &[u8]) -> Self {
        let text = match section {
            [0 | 1, text @ ..] if text.len() <= SECTION_BYTES_MAX => text,
            _ => return Self::default(),
        };
        let text = std::str::from_utf8(text).ok();
        Self(
            text.and_then(|text| json::parse_json(text, SECTION_BYTES_MAX).ok())
                .unwrap_or_default(),
        )
    }

    /// The text about a function.
    pub(crate) fn function(&self, interface: Option<&str>, function: &str) -> Option<&str> {
        let entry = self.entry(interface, "func_exports", function);
        let entry = entry.or_else(|| self.entry(interface, "funcs", function))?;
        let text = entry.as_str().or_else(|| entry.get("docs")?.as_str())?.trim();
        Some(text).filter(|text| !text.is_empty())
    }

    /// What is written about a type, and about those items that it has.
    fn type_docs(
        &self,
        interface: Option<&str>,
        name: &str,
        ty: &ValueType,
        budget: &mut TypeBudget,
    ) -> TypeDocs {
        let mut docs = TypeDocs { name: name.to_owned(), ..TypeDocs::default() };
        let Some(entry) = self.entry(interface, "types", name) else { return docs };
        let mut affordable = |text| shorten(text).filter(|text| budget.take_text(text.len()));
        docs.text = entry.get("docs").and_then(&mut affordable);
        let items = entry.get("items");
        let items = ty
            .item_names()
            .filter_map(|item| Some((item.to_owned(), affordable(items?.get(item)?)?)));
        docs.items = items.collect();
        docs
    }

    /// What is written about a function or a type of an interface, or of the component itself. An
    /// interface is in the package, or in a world.
    fn entry(&self, interface: Option<&str>, part: &str, name: &str) -> Option<&Value> {
        let Some(interface) = interface.map(short_name) else {
            return self.world_entry(|world| world.get(part)?.get(name));
        };
        let path = [interface, part, name];
        let in_package = self.0.get("interfaces").and_then(|all| follow(all, path));
        in_package
            .or_else(|| self.world_entry(|world| follow(world.get("interface_exports")?, path)))
    }

    /// An entry that is in a world. If worlds differ in it, there is none, because nothing says for
    /// which of them the component was built.
    fn world_entry(&self, find: impl Fn(&Value) -> Option<&Value>) -> Option<&Value> {
        let worlds = self.0.get("worlds")?.as_object()?.values().take(WORLDS_MAX);
        let mut entries = worlds.filter_map(find);
        let first = entries.next()?;
        entries.all(|entry| entry == first).then_some(first)
    }
}

fn follow<'v>(value: &'v Value, path: [&str; 3]) -> Option<&'v Value> {
    path.iter().try_fold(value, |value, key| value.get(key))
}

fn shorten(text: &Value) -> Option<String> {
    let text = text.as_str()?.trim();
    let end = text.floor_char_boundary(TYPE_DOCS_BYTES_MAX);
    (!text.is_empty()).then(|| text[..end].to_owned())
}
