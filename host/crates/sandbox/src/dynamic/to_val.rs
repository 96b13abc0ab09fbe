//! JSON to the values of a component.

use std::{collections::BTreeSet, fmt};

use data_encoding::BASE64;
use sallyport_contract::text::escape_excerpt;
use serde_json::{Map, Number, Value};
use wasmtime::component::Val;

use super::{
    ERR, INFINITY, NAN, NEGATIVE_INFINITY, OK, PAYLOAD, SAFE_INTEGER_MAX, SOME, TAG,
    value_type::{IntegerType, NamedType, ResultType, ValueType, VariantCase},
};

/// Longest excerpt of a name that does not exist, in characters.
const EXCERPT_CHARS_MAX: usize = 60;

/// Most digits of an integer with a sign: those of a 64-bit one.
const DIGITS_MAX: usize = 20;

/// A value that does not fit its type, with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ValueError {
    /// The keys and indices that lead to it, innermost first.
    steps: Vec<String>,
    problem: ValueProblem,
}

/// What is wrong with a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ValueProblem {
    #[error("expected {0}")]
    Expected(String),
    #[error("it must be from {0} to {1}")]
    OutOfRange(i128, i128),
    #[error("it is beyond the range of an f32")]
    BeyondFloat32,
    #[error("a number with a fraction or an exponent is not exact there: write all digits")]
    Inexact,
    #[error("{0:?} is missing")]
    Missing(String),
    #[error("{name:?} does not exist; there is {known}")]
    Unknown { name: String, known: String },
    #[error("{0:?} stands twice")]
    Twice(String),
}

impl ValueError {
    fn new(problem: ValueProblem) -> Self {
        Self { steps: Vec::new(), problem }
    }

    fn expected(what: impl Into<String>) -> Self {
        Self::new(ValueProblem::Expected(what.into()))
    }

    fn unknown<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> Self {
        let known = escape_excerpt(&known.collect::<Vec<_>>().join(", "), 4 * EXCERPT_CHARS_MAX);
        let name = escape_excerpt(name, EXCERPT_CHARS_MAX);
        Self::new(ValueProblem::Unknown { name, known })
    }

    fn inside(mut self, step: impl ToString) -> Self {
        self.steps.push(step.to_string());
        self
    }
}

impl fmt::Display for ValueError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for step in self.steps.iter().rev() {
            write!(formatter, "/{step}")?;
        }
        let separator = if self.steps.is_empty() { "" } else { ": " };
        write!(formatter, "{separator}{}", self.problem)
    }
}

/// Converts an object of arguments to the values of the parameters, in their order.
///
/// # Errors
///
/// The first argument that does not fit, with its place.
pub(crate) fn arguments_to_vals(
    parameters: &[NamedType],
    arguments: &Value,
) -> Result<Vec<Val>, ValueError> {
    let members = read_members(parameters, arguments)?;
    Ok(members.into_iter().map(|(_, val)| val).collect())
}

/// Converts a value.
///
/// # Errors
///
/// The value, or a value in it, does not fit the type.
pub(crate) fn json_to_val(ty: &ValueType, value: &Value) -> Result<Val, ValueError> {
    Ok(match ty {
        ValueType::Bool => Val::Bool(value.as_bool().ok_or_else(|| expected("true or false"))?),
        ValueType::Integer(integer) => read_integer(*integer, value)?,
        ValueType::Float32 => Val::Float32(read_float32(value)?),
        ValueType::Float64 => Val::Float64(read_float(value)?),
        ValueType::Char => Val::Char(read_char(value)?),
        ValueType::String => Val::String(read_text(value, "a string")?.to_owned()),
        ValueType::List(element) if element.is_byte() => Val::List(read_bytes(value)?),
        ValueType::List(element) => Val::List(read_elements(element, read_array(value)?)?),
        ValueType::FixedList(element, length) => {
            let items = read_exact_array(value, *length as usize)?;
            Val::FixedLengthList(read_elements(element, items)?)
        }
        ValueType::Tuple(types) => Val::Tuple(read_tuple(types, value)?),
        ValueType::Map(key, element) => Val::Map(read_map(key, element, value)?),
        ValueType::Record(fields) => Val::Record(read_members(fields, value)?),
        ValueType::Variant(cases) => read_variant(cases, value)?,
        ValueType::Enum(names) => Val::Enum(read_name(names, value)?),
        ValueType::Flags(names) => Val::Flags(read_flags(names, value)?),
        ValueType::Option(inner) => Val::Option(read_option(inner, value)?.map(Box::new)),
        ValueType::Result(result) => read_result(result, value)?,
    })
}

fn expected(what: &str) -> ValueError {
    ValueError::expected(what)
}

fn read_text<'v>(value: &'v Value, what: &str) -> Result<&'v str, ValueError> {
    value.as_str().ok_or_else(|| expected(what))
}

fn read_array(value: &Value) -> Result<&[Value], ValueError> {
    value.as_array().map(Vec::as_slice).ok_or_else(|| expected("an array"))
}

fn read_exact_array(value: &Value, length: usize) -> Result<&[Value], ValueError> {
    let items = value.as_array().filter(|items| items.len() == length);
    items.map(Vec::as_slice).ok_or_else(|| expected(&format!("an array of length {length}")))
}

fn read_object(value: &Value) -> Result<&Map<String, Value>, ValueError> {
    value.as_object().ok_or_else(|| expected("an object"))
}

fn read_integer(integer: IntegerType, value: &Value) -> Result<Val, ValueError> {
    let number = match value {
        Value::Number(number) => exact_integer(number)?,
        Value::String(digits) if integer.is_wide() => {
            parse_digits(digits).ok_or_else(|| expected("an integer, or its decimal digits"))?
        }
        _ => return Err(expected("an integer")),
    };
    integer_val(integer, number).ok_or_else(|| {
        let (least, greatest) = integer.range();
        ValueError::new(ValueProblem::OutOfRange(least, greatest))
    })
}

fn integer_val(integer: IntegerType, number: i128) -> Option<Val> {
    match integer {
        IntegerType::S8 => number.try_into().ok().map(Val::S8),
        IntegerType::U8 => number.try_into().ok().map(Val::U8),
        IntegerType::S16 => number.try_into().ok().map(Val::S16),
        IntegerType::U16 => number.try_into().ok().map(Val::U16),
        IntegerType::S32 => number.try_into().ok().map(Val::S32),
        IntegerType::U32 => number.try_into().ok().map(Val::U32),
        IntegerType::S64 => number.try_into().ok().map(Val::S64),
        IntegerType::U64 => number.try_into().ok().map(Val::U64),
    }
}

/// The integer that a JSON number is. JSON readers turn `1.0` and `1e3` into a float, which is
/// exact up to 2^53.
fn exact_integer(number: &Number) -> Result<i128, ValueError> {
    if let Some(number) = number.as_i64() {
        return Ok(number.into());
    }
    if let Some(number) = number.as_u64() {
        return Ok(number.into());
    }
    let float = number.as_f64().filter(|float| float.fract() == 0.0);
    let float = float.ok_or_else(|| expected("an integer"))?;
    if float.abs() > SAFE_INTEGER_MAX as f64 {
        return Err(ValueError::new(ValueProblem::Inexact));
    }
    Ok(float as i128)
}

fn parse_digits(text: &str) -> Option<i128> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_decimal = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    (is_decimal && text.len() <= DIGITS_MAX).then(|| text.parse().ok())?
}

fn read_float(value: &Value) -> Result<f64, ValueError> {
    let float = match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => match text.as_str() {
            NAN => Some(f64::NAN),
            INFINITY => Some(f64::INFINITY),
            NEGATIVE_INFINITY => Some(f64::NEG_INFINITY),
            _ => None,
        },
        _ => None,
    };
    float.ok_or_else(|| expected("a number, \"NaN\", \"Infinity\" or \"-Infinity\""))
}

fn read_float32(value: &Value) -> Result<f32, ValueError> {
    let wide = read_float(value)?;
    if wide.is_finite() && wide.abs() > f64::from(f32::MAX) {
        return Err(ValueError::new(ValueProblem::BeyondFloat32));
    }
    Ok(wide as f32)
}

fn read_char(value: &Value) -> Result<char, ValueError> {
    let mut characters = value.as_str().unwrap_or_default().chars();
    match (characters.next(), characters.next()) {
        (Some(character), None) => Ok(character),
        _ => Err(expected("a string of one character")),
    }
}

fn read_bytes(value: &Value) -> Result<Vec<Val>, ValueError> {
    let bytes = value.as_str().and_then(|text| BASE64.decode(text.as_bytes()).ok());
    let bytes = bytes.ok_or_else(|| expected("bytes in Base64, with padding"))?;
    Ok(bytes.into_iter().map(Val::U8).collect())
}

fn read_elements(element: &ValueType, items: &[Value]) -> Result<Vec<Val>, ValueError> {
    let items = items.iter().enumerate();
    items
        .map(|(index, item)| json_to_val(element, item).map_err(|error| error.inside(index)))
        .collect()
}

fn read_tuple(types: &[ValueType], value: &Value) -> Result<Vec<Val>, ValueError> {
    let items = types.iter().zip(read_exact_array(value, types.len())?).enumerate();
    items
        .map(|(index, (ty, item))| json_to_val(ty, item).map_err(|error| error.inside(index)))
        .collect()
}

fn read_map(
    key: &ValueType,
    element: &ValueType,
    value: &Value,
) -> Result<Vec<(Val, Val)>, ValueError> {
    if *key == ValueType::String {
        let entries = read_object(value)?.iter();
        let entry = |(name, item): (&String, &Value)| {
            let val = json_to_val(element, item).map_err(|error| error.inside(name))?;
            Ok((Val::String(name.clone()), val))
        };
        return entries.map(entry).collect();
    }
    let pairs = read_array(value)?.iter().enumerate();
    pairs
        .map(|(index, pair)| read_pair(key, element, pair).map_err(|error| error.inside(index)))
        .collect()
}

fn read_pair(key: &ValueType, element: &ValueType, pair: &Value) -> Result<(Val, Val), ValueError> {
    let items = read_exact_array(pair, 2)?;
    let read =
        |index: usize, ty| json_to_val(ty, &items[index]).map_err(|error| error.inside(index));
    Ok((read(0, key)?, read(1, element)?))
}

/// Reads the members of an object in the order of the type. A member that is an option may be left
/// out.
fn read_members(members: &[NamedType], value: &Value) -> Result<Vec<(String, Val)>, ValueError> {
    let object = read_object(value)?;
    let is_known = |name: &String| members.iter().any(|member| member.name == *name);
    if let Some(name) = object.keys().find(|name| !is_known(name)) {
        return Err(ValueError::unknown(name, members.iter().map(|member| &*member.name)));
    }
    members.iter().map(|member| read_member(member, object)).collect()
}

fn read_member(
    member: &NamedType,
    object: &Map<String, Value>,
) -> Result<(String, Val), ValueError> {
    let value = match object.get(&member.name) {
        Some(value) => json_to_val(&member.ty, value).map_err(|error| error.inside(&member.name)),
        None if member.ty.is_option() => Ok(Val::Option(None)),
        None => Err(ValueError::new(ValueProblem::Missing(member.name.clone()))),
    };
    Ok((member.name.clone(), value?))
}

fn read_variant(cases: &[VariantCase], value: &Value) -> Result<Val, ValueError> {
    let object = read_object(value)?;
    let tag =
        object.get(TAG).ok_or_else(|| ValueError::new(ValueProblem::Missing(TAG.to_owned())))?;
    let tag = read_text(tag, "the name of a case").map_err(|error| error.inside(TAG))?;
    let case = cases.iter().find(|case| case.name == tag).ok_or_else(|| {
        ValueError::unknown(tag, cases.iter().map(|case| &*case.name)).inside(TAG)
    })?;
    let payload = case.payload.iter();
    let members = payload.map(|ty| NamedType { name: PAYLOAD.to_owned(), ty: ty.clone() });
    let tag_type = NamedType { name: TAG.to_owned(), ty: ValueType::String };
    let members: Vec<NamedType> = std::iter::once(tag_type).chain(members).collect();
    let payload = read_members(&members, value)?.into_iter().nth(1);
    Ok(Val::Variant(case.name.clone(), payload.map(|(_, val)| Box::new(val))))
}

fn read_name(names: &[String], value: &Value) -> Result<String, ValueError> {
    let name = read_text(value, "a name")?;
    let known = names.iter().find(|known| *known == name);
    known.cloned().ok_or_else(|| ValueError::unknown(name, names.iter().map(String::as_str)))
}

fn read_flags(names: &[String], value: &Value) -> Result<Vec<String>, ValueError> {
    let mut given = BTreeSet::new();
    for (index, item) in read_array(value)?.iter().enumerate() {
        let name = read_name(names, item).map_err(|error| error.inside(index))?;
        if !given.insert(name.clone()) {
            return Err(ValueError::new(ValueProblem::Twice(name)).inside(index));
        }
    }
    Ok(names.iter().filter(|name| given.contains(*name)).cloned().collect())
}

fn read_option(inner: &ValueType, value: &Value) -> Result<Option<Val>, ValueError> {
    if value.is_null() {
        return Ok(None);
    }
    if !inner.is_option() {
        return json_to_val(inner, value).map(Some);
    }
    let object = read_object(value)?;
    let is_wrapped = object.len() == 1;
    let some = object.get(SOME).filter(|_| is_wrapped);
    let some = some.ok_or_else(|| expected("null, or an object with the one key \"some\""))?;
    json_to_val(inner, some).map(Some).map_err(|error| error.inside(SOME))
}

fn read_result(result: &ResultType, value: &Value) -> Result<Val, ValueError> {
    let object = read_object(value)?;
    let only = object.iter().next().filter(|_| object.len() == 1);
    match only {
        Some((key, item)) if key == OK => {
            Ok(Val::Result(Ok(read_payload(result.ok.as_deref(), item, OK)?)))
        }
        Some((key, item)) if key == ERR => {
            Ok(Val::Result(Err(read_payload(result.err.as_deref(), item, ERR)?)))
        }
        _ => Err(expected("an object with the one key \"ok\" or \"err\"")),
    }
}

fn read_payload(
    ty: Option<&ValueType>,
    value: &Value,
    key: &str,
) -> Result<Option<Box<Val>>, ValueError> {
    let payload = match ty {
        Some(ty) => json_to_val(ty, value).map(|val| Some(Box::new(val))),
        None if value.is_null() => Ok(None),
        None => Err(expected("null")),
    };
    payload.map_err(|error| error.inside(key))
}
