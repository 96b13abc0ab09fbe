//! The types of a component's own functions, with bounds on their depth and size.
//!
//! They are copied from wasmtime's, because a tree of our own can be built, compared and generated
//! in tests without a component.

use wasmtime::component::Type;

use super::type_budget::TypeBudget;

/// Most levels of a type. Real types have fewer than ten, and a value with as many levels is far
/// below the 128 at which JSON readers stop.
pub(crate) const TYPE_LEVELS_MAX: usize = 60;

/// The type of a value.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum ValueType {
    Bool,
    Integer(IntegerType),
    Float32,
    Float64,
    Char,
    String,
    List(Box<ValueType>),
    FixedList(Box<ValueType>, u32),
    Map(Box<ValueType>, Box<ValueType>),
    Record(Vec<NamedType>),
    Tuple(Vec<ValueType>),
    Variant(Vec<VariantCase>),
    Enum(Vec<String>),
    Option(Box<ValueType>),
    Result(ResultType),
    Flags(Vec<String>),
}

/// A field of a record, or a parameter of a function.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct NamedType {
    pub(crate) name: String,
    pub(crate) ty: ValueType,
}

/// A case of a variant.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct VariantCase {
    pub(crate) name: String,
    pub(crate) payload: Option<ValueType>,
}

/// The two payloads of a result.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ResultType {
    pub(crate) ok: Option<Box<ValueType>>,
    pub(crate) err: Option<Box<ValueType>>,
}

/// The width and sign of an integer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum IntegerType {
    S8,
    U8,
    S16,
    U16,
    S32,
    U32,
    S64,
    U64,
}

/// Why a type cannot be converted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum UnsupportedType {
    #[error("it uses a resource, and a call leaves nothing behind that a later one could use")]
    Resource,
    #[error("it uses a stream, which this version cannot run")]
    Stream,
    #[error("it uses a future, which this version cannot run")]
    Future,
    #[error("it uses an error-context, which this version cannot run")]
    ErrorContext,
    #[error("its types have more than {TYPE_LEVELS_MAX} levels")]
    TooDeep,
    #[error("its types have more than {} parts", TypeBudget::OF_FUNCTION.parts)]
    TooLarge,
    #[error("the names in its types have more than {} bytes", TypeBudget::OF_FUNCTION.text_bytes)]
    LongNames,
    #[error("the types of the functions before it are as large as those of one component may be")]
    NothingLeft,
}

impl IntegerType {
    /// The least and the greatest value.
    pub(crate) fn range(self) -> (i128, i128) {
        match self {
            Self::S8 => (i8::MIN.into(), i8::MAX.into()),
            Self::U8 => (0, u8::MAX.into()),
            Self::S16 => (i16::MIN.into(), i16::MAX.into()),
            Self::U16 => (0, u16::MAX.into()),
            Self::S32 => (i32::MIN.into(), i32::MAX.into()),
            Self::U32 => (0, u32::MAX.into()),
            Self::S64 => (i64::MIN.into(), i64::MAX.into()),
            Self::U64 => (0, u64::MAX.into()),
        }
    }

    /// Whether it has 64 bits, more than every JSON reader keeps.
    pub(crate) fn is_wide(self) -> bool {
        matches!(self, Self::S64 | Self::U64)
    }

    /// The name in WIT.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::S8 => "s8",
            Self::U8 => "u8",
            Self::S16 => "s16",
            Self::U16 => "u16",
            Self::S32 => "s32",
            Self::U32 => "u32",
            Self::S64 => "s64",
            Self::U64 => "u64",
        }
    }
}

impl ValueType {
    /// Whether this is the element of a list that is written as Base64.
    pub(crate) fn is_byte(&self) -> bool {
        *self == Self::Integer(IntegerType::U8)
    }

    /// Whether a value of this type can have a list in it.
    pub(crate) fn has_list(&self) -> bool {
        match self {
            Self::List(_) | Self::FixedList(..) | Self::Map(..) => true,
            Self::Record(fields) => fields.iter().any(|field| field.ty.has_list()),
            Self::Tuple(types) => types.iter().any(Self::has_list),
            Self::Variant(cases) => {
                cases.iter().any(|case| case.payload.as_ref().is_some_and(Self::has_list))
            }
            Self::Option(inner) => inner.has_list(),
            Self::Result(ResultType { ok, err }) => {
                [ok, err].into_iter().flatten().any(|ty| ty.has_list())
            }
            _ => false,
        }
    }

    /// The names of its fields, cases or flags.
    pub(crate) fn item_names(&self) -> Box<dyn Iterator<Item = &str> + '_> {
        match self {
            Self::Record(fields) => Box::new(fields.iter().map(|field| &*field.name)),
            Self::Variant(cases) => Box::new(cases.iter().map(|case| &*case.name)),
            Self::Enum(names) | Self::Flags(names) => Box::new(names.iter().map(|name| &**name)),
            _ => Box::new(std::iter::empty()),
        }
    }

    /// Whether a value of this type may be left out, or null.
    pub(crate) fn is_option(&self) -> bool {
        matches!(self, Self::Option(_))
    }
}

/// Copies the types of one function, which share the bounds on their size.
#[derive(Debug)]
pub(crate) struct TypeReader<'b> {
    function: TypeBudget,
    component: &'b mut TypeBudget,
    level: usize,
}

impl<'b> TypeReader<'b> {
    /// Copies types within what is left of the budget of their component.
    pub(crate) fn new(component: &'b mut TypeBudget) -> Self {
        Self { function: TypeBudget::OF_FUNCTION, component, level: 0 }
    }

    /// Copies a type.
    ///
    /// # Errors
    ///
    /// It, or a type in it, cannot be converted, or it exceeds a bound.
    pub(crate) fn read_type(&mut self, ty: &Type) -> Result<ValueType, UnsupportedType> {
        self.level += 1;
        if self.level > TYPE_LEVELS_MAX {
            return Err(UnsupportedType::TooDeep);
        }
        self.count(1, "")?;
        let read = self.read_inner(ty);
        self.level -= 1;
        read
    }

    fn read_inner(&mut self, ty: &Type) -> Result<ValueType, UnsupportedType> {
        Ok(match ty {
            Type::Bool => ValueType::Bool,
            Type::S8 => ValueType::Integer(IntegerType::S8),
            Type::U8 => ValueType::Integer(IntegerType::U8),
            Type::S16 => ValueType::Integer(IntegerType::S16),
            Type::U16 => ValueType::Integer(IntegerType::U16),
            Type::S32 => ValueType::Integer(IntegerType::S32),
            Type::U32 => ValueType::Integer(IntegerType::U32),
            Type::S64 => ValueType::Integer(IntegerType::S64),
            Type::U64 => ValueType::Integer(IntegerType::U64),
            Type::Float32 => ValueType::Float32,
            Type::Float64 => ValueType::Float64,
            Type::Char => ValueType::Char,
            Type::String => ValueType::String,
            Type::List(list) => ValueType::List(self.read_boxed(&list.ty())?),
            Type::FixedLengthList(list) => {
                ValueType::FixedList(self.read_boxed(&list.ty())?, list.len())
            }
            Type::Map(map) => {
                ValueType::Map(self.read_boxed(&map.key())?, self.read_boxed(&map.value())?)
            }
            Type::Tuple(tuple) => ValueType::Tuple(
                tuple.types().map(|ty| self.read_type(&ty)).collect::<Result<_, _>>()?,
            ),
            Type::Option(option) => ValueType::Option(self.read_boxed(&option.ty())?),
            Type::Result(result) => ValueType::Result(ResultType {
                ok: self.read_payload(result.ok())?.map(Box::new),
                err: self.read_payload(result.err())?.map(Box::new),
            }),
            named => return self.read_named(named),
        })
    }

    /// Copies a type that has names in it, or refuses one that has no values.
    fn read_named(&mut self, ty: &Type) -> Result<ValueType, UnsupportedType> {
        Ok(match ty {
            Type::Record(record) => {
                let fields = record.fields().map(|field| self.read_member(field.name, &field.ty));
                ValueType::Record(fields.collect::<Result<_, _>>()?)
            }
            Type::Variant(variant) => {
                let cases = variant.cases().map(|case| {
                    self.count(1, case.name)?;
                    let payload = self.read_payload(case.ty)?;
                    Ok(VariantCase { name: case.name.to_owned(), payload })
                });
                ValueType::Variant(cases.collect::<Result<_, _>>()?)
            }
            Type::Enum(all) => ValueType::Enum(self.read_names(all.names())?),
            Type::Flags(all) => ValueType::Flags(self.read_names(all.names())?),
            Type::Stream(_) => return Err(UnsupportedType::Stream),
            Type::Future(_) => return Err(UnsupportedType::Future),
            Type::ErrorContext => return Err(UnsupportedType::ErrorContext),
            _ => return Err(UnsupportedType::Resource),
        })
    }

    /// Copies a field or a parameter.
    pub(crate) fn read_member(
        &mut self,
        name: &str,
        ty: &Type,
    ) -> Result<NamedType, UnsupportedType> {
        self.count(0, name)?;
        Ok(NamedType { name: name.to_owned(), ty: self.read_type(ty)? })
    }

    fn read_boxed(&mut self, ty: &Type) -> Result<Box<ValueType>, UnsupportedType> {
        self.read_type(ty).map(Box::new)
    }

    fn read_payload(&mut self, ty: Option<Type>) -> Result<Option<ValueType>, UnsupportedType> {
        ty.map(|ty| self.read_type(&ty)).transpose()
    }

    fn read_names<'n>(
        &mut self,
        names: impl Iterator<Item = &'n str>,
    ) -> Result<Vec<String>, UnsupportedType> {
        names.map(|name| self.count(1, name).map(|()| name.to_owned())).collect()
    }

    fn count(&mut self, parts: usize, name: &str) -> Result<(), UnsupportedType> {
        let bytes = name.len();
        let is_left = |is_left: bool, error| if is_left { Ok(()) } else { Err(error) };
        is_left(self.function.take_parts(parts), UnsupportedType::TooLarge)?;
        is_left(self.function.take_text(bytes), UnsupportedType::LongNames)?;
        let in_component = self.component.take_parts(parts) && self.component.take_text(bytes);
        is_left(in_component, UnsupportedType::NothingLeft)
    }
}
