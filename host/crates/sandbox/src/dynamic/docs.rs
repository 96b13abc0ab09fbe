//! What the author of a component wrote about its functions and types.
//!
//! WIT documentation is in a custom section, `package-docs`: a version byte and JSON. Its text is
//! untrusted and optional, so a section that cannot be read is as good as none. It is read here and
//! not with the crate that writes it, because that one needs the whole component as WIT and would
//! be a second decoder of untrusted bytes inside the host.

use std::collections::HashMap;

use sallyport_contract::json;
use serde_json::Value;

use super::{
    names::short_name,
    value_type::{TypeReader, ValueType},
};

/// The name of the section.
pub(crate) const SECTION_NAME: &str = "package-docs";

/// Largest section that is read, in bytes. The documentation of all of WASI has 200 KiB.
const SECTION_BYTES_MAX: usize = 1024 * 1024;

/// Longest text about one type or field, in bytes. It is repeated wherever the type is used.
const TYPE_DOCS_BYTES_MAX: usize = 500;

/// Most named types of one interface. Real interfaces have dozens.
const NAMED_TYPES_MAX: usize = 200;

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
    items: Vec<(String, String)>,
}

impl TypeDocs {
    /// The text about a field or a case.
    pub(crate) fn item(&self, name: &str) -> Option<&str> {
        self.items.iter().find(|(known, _)| known == name).map(|(_, text)| &**text)
    }
}

/// The types of an interface that have a name. Two names of one type are both left out, because
/// nothing says which one a function uses.
#[derive(Debug, Clone, Default)]
pub(crate) struct NamedTypes(HashMap<ValueType, Option<TypeDocs>>);

impl NamedTypes {
    /// The types that an interface exports, with their documentation.
    pub(crate) fn new(
        interface: Option<&str>,
        types: impl Iterator<Item = (String, wasmtime::component::Type)>,
        package: &PackageDocs,
    ) -> Self {
        let mut named = Self::default();
        for (name, ty) in types.take(NAMED_TYPES_MAX) {
            // A type that cannot be converted is in no function that can be called.
            if let Ok(ty) = TypeReader::default().read_type(&ty) {
                let docs = package.type_docs(interface, name);
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
    /// Reads the section. One that is too large, malformed or of another version is empty.
    pub(crate) fn from_section(section: &[u8]) -> Self {
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
    pub(crate) fn function(&self, interface: Option<&str>, function: &str) -> Option<String> {
        let texts = match interface {
            Some(_) => self.interface_part(interface, "funcs"),
            None => self.world_part("func_exports").or_else(|| self.world_part("funcs")),
        };
        let entry = texts?.get(function)?;
        let text = entry.as_str().or_else(|| entry.get("docs")?.as_str())?;
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    }

    fn type_docs(&self, interface: Option<&str>, name: String) -> TypeDocs {
        let types = match interface {
            Some(_) => self.interface_part(interface, "types"),
            None => self.world_part("types"),
        };
        let Some(entry) = types.and_then(|types| types.get(&name)) else {
            return TypeDocs { name, ..TypeDocs::default() };
        };
        let items = entry.get("items").and_then(Value::as_object).into_iter().flatten();
        let items = items.filter_map(|(item, text)| Some((item.clone(), shorten(text)?)));
        TypeDocs { name, text: entry.get("docs").and_then(shorten), items: items.collect() }
    }

    /// A part of an interface, which is in the package or in a world.
    fn interface_part(&self, interface: Option<&str>, part: &str) -> Option<&Value> {
        let name = short_name(interface?);
        let in_package = self.0.get("interfaces").and_then(|all| all.get(name)?.get(part));
        in_package.or_else(|| self.world_part("interface_exports")?.get(name)?.get(part))
    }

    /// A part of the first world that has it.
    fn world_part(&self, part: &str) -> Option<&Value> {
        self.0.get("worlds")?.as_object()?.values().find_map(|world| world.get(part))
    }
}

fn shorten(text: &Value) -> Option<String> {
    let text = text.as_str()?.trim();
    let end = text.floor_char_boundary(TYPE_DOCS_BYTES_MAX);
    (!text.is_empty()).then(|| text[..end].to_owned())
}
