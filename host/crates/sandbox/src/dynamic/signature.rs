//! Functions and types in the form of WIT, for a function that nothing is written about.

use std::fmt::{self, Write};

use super::{
    docs::NamedTypes,
    value_type::{NamedType, ResultType, ValueType, VariantCase},
};

/// Longest signature in bytes. A longer one is cut; the schema has all of it.
const SIGNATURE_BYTES_MAX: usize = 1000;

/// A function as WIT writes it: `area: func(shape: shape) -> result<f64, string>`.
pub(crate) fn format_signature(
    name: &str,
    parameters: &[NamedType],
    result: Option<&ValueType>,
    named: &NamedTypes,
) -> String {
    let mut signature = Signature { text: String::new(), named };
    if signature.write_function(name, parameters, result).is_err() {
        signature.text.push('…');
    }
    signature.text
}

/// A text that takes nothing more once it is as long as a signature may be. So the work is bounded
/// too, however often a long name is repeated.
struct Signature<'n> {
    text: String,
    named: &'n NamedTypes,
}

impl Write for Signature<'_> {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        let left = SIGNATURE_BYTES_MAX - self.text.len();
        self.text.push_str(&part[..part.floor_char_boundary(left)]);
        if part.len() <= left { Ok(()) } else { Err(fmt::Error) }
    }
}

impl Signature<'_> {
    fn write_function(
        &mut self,
        name: &str,
        parameters: &[NamedType],
        result: Option<&ValueType>,
    ) -> fmt::Result {
        write!(self, "{name}: func(")?;
        self.write_list(parameters, Self::write_member)?;
        self.write_str(")")?;
        result.map_or(Ok(()), |result| {
            self.write_str(" -> ")?;
            self.write_type(result)
        })
    }

    /// A type by its name, or spelled out if it has none.
    fn write_type(&mut self, ty: &ValueType) -> fmt::Result {
        if let Some(docs) = self.named.docs(ty) {
            return self.write_str(&docs.name);
        }
        match ty {
            ValueType::Bool => self.write_str("bool"),
            ValueType::Integer(integer) => self.write_str(integer.as_str()),
            ValueType::Float32 => self.write_str("f32"),
            ValueType::Float64 => self.write_str("f64"),
            ValueType::Char => self.write_str("char"),
            ValueType::String => self.write_str("string"),
            ValueType::List(element) => self.write_around("list<", &[&**element], ">"),
            ValueType::FixedList(element, length) => {
                self.write_around("list<", &[&**element], &format!(", {length}>"))
            }
            ValueType::Map(key, element) => self.write_around("map<", &[&**key, &**element], ">"),
            ValueType::Record(fields) => {
                self.write_braces("record", |text| text.write_list(fields, Self::write_member))
            }
            ValueType::Tuple(types) => {
                self.write_around("tuple<", &types.iter().collect::<Vec<_>>(), ">")
            }
            ValueType::Variant(cases) => {
                self.write_braces("variant", |text| text.write_list(cases, Self::write_case))
            }
            ValueType::Enum(names) => self.write_names("enum", names),
            ValueType::Flags(names) => self.write_names("flags", names),
            ValueType::Option(inner) => self.write_around("option<", &[&**inner], ">"),
            ValueType::Result(result) => self.write_result(result),
        }
    }

    fn write_list<T>(
        &mut self,
        items: &[T],
        mut write: impl FnMut(&mut Self, &T) -> fmt::Result,
    ) -> fmt::Result {
        for (index, item) in items.iter().enumerate() {
            self.write_str(if index > 0 { ", " } else { "" })?;
            write(self, item)?;
        }
        Ok(())
    }

    fn write_around(&mut self, before: &str, types: &[&ValueType], after: &str) -> fmt::Result {
        self.write_str(before)?;
        self.write_list(types, |text, ty| text.write_type(ty))?;
        self.write_str(after)
    }

    fn write_braces(
        &mut self,
        keyword: &str,
        write: impl FnOnce(&mut Self) -> fmt::Result,
    ) -> fmt::Result {
        write!(self, "{keyword} {{ ")?;
        write(self)?;
        self.write_str(" }")
    }

    fn write_names(&mut self, keyword: &str, names: &[String]) -> fmt::Result {
        self.write_braces(keyword, |text| text.write_list(names, |text, name| text.write_str(name)))
    }

    fn write_member(&mut self, member: &NamedType) -> fmt::Result {
        write!(self, "{}: ", member.name)?;
        self.write_type(&member.ty)
    }

    fn write_case(&mut self, case: &VariantCase) -> fmt::Result {
        self.write_str(&case.name)?;
        case.payload.as_ref().map_or(Ok(()), |payload| self.write_around("(", &[payload], ")"))
    }

    fn write_result(&mut self, result: &ResultType) -> fmt::Result {
        match (result.ok.as_deref(), result.err.as_deref()) {
            (None, None) => self.write_str("result"),
            (Some(ok), None) => self.write_around("result<", &[ok], ">"),
            (Some(ok), Some(err)) => self.write_around("result<", &[ok, err], ">"),
            (None, Some(err)) => self.write_around("result<_, ", &[err], ">"),
        }
    }
}
